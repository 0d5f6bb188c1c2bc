//! What the values of cells look like: the mesh that the cells are of, with a number at each of its points.

use crate::cell::Cells;
use crate::mesh::{Field, Mesh};
use crate::parallel;
use crate::sort::group;

/// For each of some places the cells around it: the number of a place is the mean of theirs, NaN where there are none.
#[derive(Clone, Debug, PartialEq)]
pub struct Means {
    /// Where those of each place start, and the end. Shape [places + 1].
    starts: Vec<u32>,
    cells: Vec<u32>,
}

impl Means {
    /// The cells around each point of a mesh. Cost O(points + corners).
    ///
    /// ```
    /// use meshweft_mesh::{Means, generate::generate};
    /// let sheet = generate("sheet:2x2", 1)?;
    /// let means = Means::at_points(&sheet);
    /// let mut values: Vec<f64> = (0..4).map(|v| means.mean(v, |cell| [1.0, 3.0][cell as usize])).collect();
    /// // One triangle alone at two of the corners of the square, both at the others.
    /// values.sort_by(f64::total_cmp);
    /// assert_eq!(values, [1.0, 2.0, 2.0, 3.0]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn at_points(mesh: &Mesh) -> Means {
        let cells = mesh.cells();
        let owners: Vec<u32> =
            (0..).zip(cells.iter()).flat_map(|(c, (_, corners))| corners.iter().map(move |_| c)).collect();
        let corners = cells.all_corners();
        let (starts, cells) = group(mesh.points().len(), corners.len(), |k| [(corners[k], owners[k])]);
        Means { starts, cells }
    }

    /// The mean at a place of a number of each cell.
    pub fn mean(&self, place: usize, number: impl Fn(u32) -> f64) -> f64 {
        let around = &self.cells[self.starts[place] as usize..self.starts[place + 1] as usize];
        around.iter().map(|&c| number(c)).sum::<f64>() / around.len() as f64
    }

    /// The means at all places of a field over cells, part by part.
    pub fn of(&self, field: &Field) -> Field {
        let (n, places) = (field.components, self.starts.len() - 1);
        let values = parallel::collect(n * places, |i| self.mean(i / n, |c| field.values[c as usize * n + i % n]));
        Field { name: field.name.clone(), components: n, values }
    }
}

/// What the values of cells look like: see [`Mesh::shown`].
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Points with a number each, and cells between them.
    pub mesh: Mesh,
    /// The vertices that the number of each point comes from.
    pub means: Means,
}

impl Mesh {
    /// For a mesh whose vertices stand for cells, as those of a [dual](Mesh::dual) do, what shows numbers of theirs: `smooth`, means at the
    /// points of the mesh that the cells are of; or else each cell in one color, with corners of its own. Solids are shown smooth, since the inside of
    /// a cut has no cells. `None` for any other mesh. Cost O(corners).
    ///
    /// ```
    /// use meshweft_mesh::generate::generate;
    /// let dual = generate("quads:3x2", 1)?.dual()?;
    /// let flat = dual.mesh.shown(false).unwrap();
    /// assert_eq!((dual.mesh.points().len(), flat.mesh.points().len()), (2, 8));
    /// assert_eq!(flat.means.mean(5, |cell| [1.0, 4.0][cell as usize]), 4.0);
    /// let smooth = dual.mesh.shown(true).unwrap();
    /// assert_eq!(smooth.mesh.points().len(), 6);
    /// assert_eq!(smooth.means.mean(1, |cell| [1.0, 4.0][cell as usize]), 2.5);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn shown(&self, smooth: bool) -> Option<Shown> {
        let primal = self.primal()?;
        if smooth || primal.dimension() == 3 {
            return Some(Shown { mesh: primal.clone(), means: Means::at_points(primal) });
        }
        let (mut cells, mut points, mut owners) = (Cells::new(), Vec::new(), Vec::new());
        for (c, (kind, corners)) in (0..).zip(primal.cells().iter()) {
            let first = points.len() as u32;
            points.extend(corners.iter().map(|&v| primal.points()[v as usize]));
            owners.extend(corners.iter().map(|_| c));
            cells.push(kind, &(first..points.len() as u32).collect::<Vec<_>>());
        }
        let means = Means { starts: (0..=points.len() as u32).collect(), cells: owners };
        Mesh::new(points, cells).ok().map(|mesh| Shown { mesh, means })
    }
}
