//! Equations of finite elements: what diffuses, and solids that deform little.

use super::boundary::Condition;
use meshweft::mesh::{At, Elements, Matrix, Patch};

/// `matrix × unknowns = loads`, with `N` unknowns a node. Those whose values are known are no unknowns any more: their rows hold the diagonal
/// alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation<const N: usize> {
    /// Symmetric, and positive where enough is held.
    pub matrix: Matrix<N>,
    /// Shape [nodes × N].
    pub loads: Vec<[f64; N]>,
    /// The values that are known. Shape [nodes × N].
    pub held: Vec<[Option<f64>; N]>,
}

/// A linear elastic solid that is the same in all directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elastic {
    /// Young's modulus, Pa.
    pub young: f64,
    /// Poisson's ratio: above -1, below 0.5.
    pub poisson: f64,
    /// Of what lies in a plane, whether it is thin there and free to get thinner (plane stress), or thick and held (plane strain).
    pub is_thin: bool,
}

impl Elastic {
    /// Lamé's `λ` and `μ`, Pa, for a mesh of so many dimensions.
    ///
    /// ```
    /// use meshweft_physics::Elastic;
    /// let steel = Elastic { young: 200e9, poisson: 0.25, is_thin: true };
    /// assert_eq!(steel.lame(3), [80e9, 80e9]);
    /// // λ' = 2 λ μ / (λ + 2 μ).
    /// assert!((steel.lame(2)[0] / (160e9 / 3.0) - 1.0).abs() < 1e-15);
    /// ```
    pub fn lame(&self, dimension: usize) -> [f64; 2] {
        let shear = self.young / (2.0 * (1.0 + self.poisson));
        let bulk = 2.0 * shear * self.poisson / (1.0 - 2.0 * self.poisson);
        let is_thin = self.is_thin && dimension < 3;
        [if is_thin { 2.0 * bulk * shear / (bulk + 2.0 * shear) } else { bulk }, shear]
    }
}

/// What holds at a face of a solid.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Support {
    /// Along each axis how far it is displaced, m, if that is given.
    pub held: [Option<f64>; 3],
    /// The force on a square meter, Pa; in 2D for a thickness of 1 m.
    pub pulled: [f64; 3],
}

/// The steady state of what diffuses: `-∇·(conductivity ∇u) = source`, with a [`Condition`] on each face of the boundary.
///
/// `conductivity` and `source` (in a cubic meter and second) by place. `condition`: by the name of the group of a face in the mesh file, if it
/// has one, and by place. Cost that of a [stiffness matrix](Patch::stiffness).
///
/// ```
/// use meshweft::mesh::generate::generate;
/// use meshweft_physics::{Condition, diffusion};
/// // 0 at the left of a meter, 6 through the right, 2 W/(m K).
/// let elements = generate("bar:5x2x2", 1)?.elements(1)?;
/// let equation = diffusion(&elements, |_| 2.0, |_| 0.0, |group, _| match group {
///     Some("left") => Condition::Value(0.0),
///     Some("right") => Condition::Flux(6.0),
///     _ => Condition::Flux(0.0),
/// });
/// let low = elements.mesh().bounds()[0][0];
/// let values: Vec<[f64; 1]> = elements.mesh().points().iter().map(|p| [3.0 * (p[0] - low)]).collect();
/// let missing = equation.matrix.times(&values).iter().zip(&equation.loads).map(|(a, b)| (a[0] - b[0]).abs()).fold(0.0, f64::max);
/// assert!(missing < 1e-14);
/// # Ok::<(), meshweft::Error>(())
/// ```
pub fn diffusion(
    elements: &Elements,
    conductivity: impl Fn(&At) -> f64 + Sync,
    source: impl Fn(&At) -> f64 + Sync,
    condition: impl Fn(Option<&str>, &At) -> Condition + Sync,
) -> Equation<1> {
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let mut matrix = elements.cells().stiffness(|at, a, b| [[conductivity(at) * dot(a, b)]]);
    let mut loads = elements.cells().loads(|at| [source(at)]);
    let rim = elements.rim();
    let at = |at: &At| condition(name(elements, rim, at), at);
    matrix.add(&rim.mass(|place| match at(place) {
        Condition::Exchange { per_difference, .. } => [[per_difference]],
        _ => [[0.0]],
    }));
    let flows = rim.loads(|place| match at(place) {
        Condition::Flux(flux) => [flux],
        Condition::Exchange { per_difference, outside } => [per_difference * outside],
        Condition::Value(_) => [0.0],
    });
    add(&mut loads, &flows);
    let mut held = vec![[None]; loads.len()];
    rim.each_node(|node, place| {
        if let Condition::Value(value) = at(place) {
            held[node as usize] = [Some(value)];
        }
    });
    matrix.hold(&held, &mut loads);
    Equation { matrix, loads, held }
}

/// The displacements of a solid that deforms little, three a node: also of what lies in the xy plane, which stays there.
///
/// `weight`: the force on a cubic meter by place, N/m³. `support`: by the name of the group of a face in the mesh file, if it has one, and by
/// place; where faces meet, what any of them holds is held. Cost that of a [stiffness matrix](Patch::stiffness).
///
/// Source: Hughes, The Finite Element Method, 1987, section 2.7.
pub fn elasticity(
    elements: &Elements,
    material: Elastic,
    weight: impl Fn(&At) -> [f64; 3] + Sync,
    support: impl Fn(Option<&str>, &At) -> Support + Sync,
) -> Equation<3> {
    let dimension = elements.mesh().dimension();
    let [bulk, shear] = material.lame(dimension);
    let mut matrix = elements.cells().stiffness(|_, a, b| {
        let dot = shear * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
        // Transposed if both are swapped, to the last bit.
        let entry = |i: usize, j: usize| bulk * (a[i] * b[j]) + shear * (a[j] * b[i]) + if i == j { dot } else { 0.0 };
        std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
    });
    let mut loads = elements.cells().loads(weight);
    let rim = elements.rim();
    let at = |at: &At| support(name(elements, rim, at), at);
    let pulls = rim.loads(|place| at(place).pulled);
    add(&mut loads, &pulls);
    let mut held = vec![[None; 3]; loads.len()];
    rim.each_node(|node, place| {
        let support = at(place);
        held[node as usize].iter_mut().zip(support.held).for_each(|(held, own)| *held = held.or(own));
    });
    if dimension < 3 {
        held.iter_mut().for_each(|node| node[2] = Some(0.0));
        // Nothing resists there.
        matrix.diagonal.iter_mut().for_each(|block| block[2][2] = block[0][0].max(block[1][1]));
    }
    matrix.hold(&held, &mut loads);
    Equation { matrix, loads, held }
}

fn name<'a>(elements: &'a Elements, rim: &Patch, at: &At) -> Option<&'a str> {
    rim.group(at.element).map(|group| &*elements.mesh().groups()[group].name)
}

fn add<const N: usize>(sums: &mut [[f64; N]], more: &[[f64; N]]) {
    sums.as_flattened_mut().iter_mut().zip(more.as_flattened()).for_each(|(sum, x)| *sum += x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft::mesh::generate::generate;

    #[test]
    fn what_is_bent_evenly_is_in_balance() {
        // A constant stress in a body that is held where it is known to go.
        for (spec, degree) in [("box:3", 1), ("hexes:3", 2), ("sheet:4", 2), ("quads:4x3", 1)] {
            let elements = generate(spec, 3).unwrap().elements(degree).unwrap();
            let is_flat = elements.mesh().dimension() == 2;
            let strain = [[1e-3, 2e-4, 3e-4], [2e-4, -5e-4, 1e-4], [3e-4, 1e-4, 7e-4]];
            let moved = |p: [f64; 3]| -> [f64; 3] {
                std::array::from_fn(|i| if is_flat && i == 2 { 0.0 } else { (0..3).map(|j| strain[i][j] * p[j]).sum() })
            };
            let material = Elastic { young: 3.0, poisson: 0.3, is_thin: false };
            let support = |_: Option<&str>, at: &At| Support { held: moved(at.place).map(Some), pulled: [0.0; 3] };
            let equation = elasticity(&elements, material, |_| [0.0; 3], support);
            let values: Vec<[f64; 3]> = elements.mesh().points().iter().map(|p| moved(*p)).collect();
            let pull = equation.matrix.times(&values);
            let off = pull.as_flattened().iter().zip(equation.loads.as_flattened()).map(|(a, b)| (a - b).abs());
            assert!(off.fold(0.0, f64::max) < 1e-16, "{spec} {degree}");
        }
    }
}
