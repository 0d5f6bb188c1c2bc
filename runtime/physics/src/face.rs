//! Faces between the cells of a flat mesh, and what flows through them to second order.

use meshweft::mesh::{BoundaryFace, Dual};
use meshweft::nalgebra::{Matrix2, Vector2};
use meshweft::{Real, record};

record! {
    /// A face between two cells of a mesh in the plane, as one of them sees it.
    pub struct Face<R> {
        /// Out of the cell, of length 1.
        normal: Vector2<R>,
        /// How long it is, m.
        length: R,
        /// From the middle of the cell to that of the face, m.
        reach: Vector2<R>,
        /// From the middle of the other cell to that of the face, m.
        beyond: Vector2<R>,
        /// What a difference of 1 between the cells adds to the gradient in this one, 1/m.
        slope: Vector2<R>,
    }
}

record! {
    /// A face that only one cell has.
    pub struct Rim<R> {
        /// Out of the cell, of length 1.
        normal: Vector2<R>,
        /// How long it is, m.
        length: R,
        /// From the middle of the cell to that of the face, m.
        reach: Vector2<R>,
    }
}

fn plane([x, y, _]: [f64; 3]) -> Vector2<f64> {
    Vector2::new(x, y)
}

/// For each face of a mesh in the xy plane, how its first cell sees it and how its second does: the data of a star of the
/// [faces](Dual::faces). Cost O(faces).
///
/// Gradients are those of least squares, differences weighted by one over the distance squared (Mavriplis, Revisiting the least-squares
/// procedure for gradient reconstruction on unstructured meshes, 2003): exact where values are linear. A cell with fewer than three neighbors,
/// or whose neighbors all lie in one line, has no gradient: nothing would tell a wrong one.
///
/// ```
/// use meshweft::mesh::generate::generate;
/// let dual = generate("sheet:9", 1)?.dual()?;
/// // The gradient of x + 2y in the cell that has the middle of the sheet as a corner.
/// let value = |c: u32| { let [x, y, _] = dual.mesh.points()[c as usize]; x + 2.0 * y };
/// let mut gradient = [0.0, 0.0];
/// let cell = 55;
/// for (face, sides) in dual.faces.iter().zip(meshweft_physics::faces(&dual)) {
///     for k in (0..2).filter(|&k| face.cells[k] == cell) {
///         let difference = value(face.cells[1 - k]) - value(cell);
///         (0..2).for_each(|axis| gradient[axis] += difference * sides[k].slope[axis]);
///     }
/// }
/// assert!((gradient[0] - 1.0).abs() < 1e-12 && (gradient[1] - 2.0).abs() < 1e-12);
/// # Ok::<(), meshweft::Error>(())
/// ```
pub fn faces(dual: &Dual) -> Vec<[Face<f64>; 2]> {
    let middle = |c: u32| plane(dual.mesh.points()[c as usize]);
    // Of both cells, as the first sees them.
    let places = |face: &meshweft::mesh::Face| {
        let [first, second] = face.cells.map(middle);
        [first, second + plane(face.shift)]
    };
    let mut squares = vec![(Matrix2::zeros(), 0); dual.volumes.len()];
    for face in &dual.faces {
        let [first, second] = places(face);
        let way = second - first;
        for c in face.cells {
            let (square, neighbors) = &mut squares[c as usize];
            (*square, *neighbors) = (*square + way * way.transpose() / way.norm_squared(), *neighbors + 1);
        }
    }
    // In units of a meter over a meter: what is nearly singular does not depend on the size of a cell.
    let is_sound = |(square, neighbors): &(Matrix2<f64>, usize)| *neighbors > 2 && square.determinant() > 1e-9;
    let inverse = |c: u32| Some(squares[c as usize]).filter(is_sound).and_then(|(square, _)| square.try_inverse());
    let side = |k: usize, face: &meshweft::mesh::Face| {
        let (places, at) = (places(face), plane(face.centroid));
        let way = places[1 - k] - places[k];
        Face {
            normal: plane(face.normal) * [1.0, -1.0][k],
            length: face.area,
            reach: at - places[k],
            beyond: at - places[1 - k],
            slope: inverse(face.cells[k]).unwrap_or_default() * way / way.norm_squared(),
        }
    };
    dual.faces.iter().map(|face| [side(0, face), side(1, face)]).collect()
}

/// A face of the boundary of a mesh in the xy plane, as its cell sees it.
pub fn rim(dual: &Dual, face: &BoundaryFace) -> Rim<f64> {
    let reach = plane(face.centroid) - plane(dual.mesh.points()[face.cell as usize]);
    Rim { normal: plane(face.normal), length: face.area, reach }
}

record! {
    /// How a quantity changes in a cell: its gradient, 1/m, and how far the cells around lie below and above.
    pub struct Trend<R> {
        /// The gradient.
        gradient: Vector2<R>,
        /// The least difference of a cell around, at most 0.
        low: R,
        /// The largest, at least 0.
        high: R,
    }
}

impl<R: Real> Trend<R> {
    /// That of a cell alone: nothing changes.
    #[inline(always)]
    pub fn flat() -> Trend<R> {
        Trend { gradient: Vector2::zeros(), low: R::lit(0.0), high: R::lit(0.0) }
    }

    /// With a cell behind a face, from which the quantity differs by so much.
    #[inline(always)]
    pub fn with(self, difference: R, face: &Face<R>) -> Trend<R> {
        let gradient = self.gradient + face.slope * difference;
        Trend { gradient, low: self.low.min(difference), high: self.high.max(difference) }
    }

    /// The share of the gradient that may be kept so that at a face, `reach` from the middle, the quantity lies between those of the cells
    /// around. `small`: a difference that need not be limited, squared.
    ///
    /// Source: Venkatakrishnan, Convergence to steady state solutions of the Euler equations on unstructured grids with limiters, 1995.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector2;
    /// use meshweft_physics::Trend;
    /// let trend = Trend { gradient: Vector2::new(1.0, 0.0), low: -1.0, high: 0.0 };
    /// // It rises to the right, where no cell lies higher.
    /// assert_eq!(trend.share(Vector2::new(0.5, 0.0), 0.0), 0.0);
    /// assert_eq!(trend.share(Vector2::new(-0.5, 0.0), 0.0), 1.0);
    /// ```
    #[inline(always)]
    pub fn share(&self, reach: Vector2<R>, small: R) -> R {
        let change = self.gradient.dot(&reach);
        let room = R::select(change.greater(R::lit(0.0)), self.high, self.low);
        let (square, product, tiny) = (change * change, change * room, R::lit(1e-30));
        let most = room * room + small;
        let share = (most + product + product) / (most + square + square + product + tiny);
        R::select(square.greater(R::lit(0.0)), share.min(R::lit(1.0)), R::lit(1.0))
    }
}
