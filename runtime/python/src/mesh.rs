//! Meshes with NumPy's arrays.

use crate::error::{self, MeshError};
use meshweft_mesh::{self as mesh, CellKind, Cells, Field, io};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Points in space and cells between them. Points are meters in the examples.
#[pyclass(module = "meshweft", frozen, subclass)]
pub(crate) struct Mesh {
    pub(crate) mesh: Arc<mesh::Mesh>,
}

pub(crate) fn kind(name: &str) -> PyResult<CellKind> {
    CellKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<&str> = CellKind::ALL.iter().map(|kind| kind.name()).collect();
        MeshError::new_err(format!("unknown cells {name:?}: one of {}", names.join(", ")))
    })
}

/// Rows of so many numbers as an array.
fn rows<'py, T: numpy::Element, const K: usize>(python: Python<'py>, rows: Vec<[T; K]>) -> Bound<'py, PyArray2<T>>
where
    [T; K]: Copy,
{
    let count = rows.len();
    let flat = rows.into_flattened();
    Array2::from_shape_vec((count, K), flat).expect("rows are full").into_pyarray(python)
}

type LaplacianOf<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Cells, normals, areas and centroids of faces.
type FacesOf<'py, C> = (C, Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>);

/// Faces between two cells, and those of one, with names of groups.
type DualOf<'py> = (
    Mesh,
    Bound<'py, PyArray1<f64>>,
    FacesOf<'py, Bound<'py, PyArray2<u32>>>,
    FacesOf<'py, Bound<'py, PyArray1<u32>>>,
    Vec<Option<String>>,
);

#[pymethods]
impl Mesh {
    /// A mesh of points, shape (n, 3), and cells of each kind, shape (cells, corners).
    #[new]
    fn new(points: PyReadonlyArray2<'_, f64>, cells: Vec<(String, PyReadonlyArray2<'_, u32>)>) -> PyResult<Mesh> {
        let points = points.as_array();
        if points.ncols() != 3 {
            return Err(MeshError::new_err(format!("points have shape (n, 3), not (n, {})", points.ncols())));
        }
        let points = points.rows().into_iter().map(|row| [row[0], row[1], row[2]]).collect();
        let mut all = Cells::new();
        for (name, corners) in cells {
            let (kind, corners) = (kind(&name)?, corners.as_array());
            if corners.ncols() != kind.corners() {
                return Err(MeshError::new_err(format!(
                    "a {name} has {} corners, not {}",
                    kind.corners(),
                    corners.ncols()
                )));
            }
            let mut cell = [0; 8];
            for row in corners.rows() {
                row.iter().zip(&mut cell).for_each(|(&v, to)| *to = v);
                all.push(kind, &cell[..kind.corners()]);
            }
        }
        Ok(Mesh { mesh: Arc::new(mesh::Mesh::new(points, all).map_err(error::mesh)?) })
    }

    #[staticmethod]
    fn generate(spec: &str, seed: u64) -> PyResult<Mesh> {
        Ok(Mesh { mesh: Arc::new(mesh::generate::generate(spec, seed).map_err(error::mesh)?) })
    }

    #[staticmethod]
    fn read(python: Python<'_>, path: PathBuf) -> PyResult<Mesh> {
        let mesh = python.detach(|| io::read(&path)).map_err(error::mesh)?;
        Ok(Mesh { mesh: Arc::new(mesh) })
    }

    fn write(&self, python: Python<'_>, path: PathBuf) -> PyResult<()> {
        python.detach(|| io::write(&path, &self.mesh)).map_err(error::mesh)
    }

    fn points<'py>(&self, python: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        rows(python, self.mesh.points().to_vec())
    }

    fn edges<'py>(&self, python: Python<'py>) -> Bound<'py, PyArray2<u32>> {
        rows(python, self.mesh.edges())
    }

    fn triangles<'py>(&self, python: Python<'py>) -> Bound<'py, PyArray2<u32>> {
        rows(python, self.mesh.triangles())
    }

    fn tets<'py>(&self, python: Python<'py>) -> Bound<'py, PyArray2<u32>> {
        rows(python, self.mesh.tets().into_owned())
    }

    /// Cells of each kind that there are, with their corners.
    fn cells<'py>(&self, python: Python<'py>) -> Vec<(&'static str, Bound<'py, PyArray2<u32>>)> {
        let cells = self.mesh.cells();
        let of = |kind: CellKind| {
            let flat: Vec<u32> = (0..cells.len())
                .filter(|&c| cells.kind(c) == kind)
                .flat_map(|c| cells.corners(c).iter().copied())
                .collect();
            let shape = (flat.len() / kind.corners(), kind.corners());
            let array = Array2::from_shape_vec(shape, flat).expect("cells are whole").into_pyarray(python);
            (kind.name(), array)
        };
        cells.counts().into_iter().map(|(kind, _)| of(kind)).collect()
    }

    /// Numbers of the cells of each kind that there are.
    fn cell_numbers<'py>(&self, python: Python<'py>) -> Vec<(&'static str, Bound<'py, PyArray1<u32>>)> {
        let cells = self.mesh.cells();
        let of = |kind| (0..cells.len()).filter(|&c| cells.kind(c) == kind).map(|c| c as u32).collect::<Vec<_>>();
        cells.counts().into_iter().map(|(kind, _)| (kind.name(), of(kind).into_pyarray(python))).collect()
    }

    fn field_names(&self, of_cells: bool) -> Vec<String> {
        let fields = if of_cells { self.mesh.cell_fields() } else { self.mesh.point_fields() };
        fields.iter().map(|field| field.name.clone()).collect()
    }

    fn field<'py>(
        &self,
        python: Python<'py>,
        name: &str,
        of_cells: bool,
    ) -> PyResult<(usize, Bound<'py, PyArray1<f64>>)> {
        let field = if of_cells { self.mesh.cell_field(name) } else { self.mesh.point_field(name) };
        let field = field.ok_or_else(|| {
            let known = self.field_names(of_cells).join(", ");
            MeshError::new_err(format!(
                "the mesh has no field {name:?}, but {}",
                if known.is_empty() { "none" } else { &known }
            ))
        })?;
        Ok((field.components, field.values.clone().into_pyarray(python)))
    }

    /// The same mesh with a field more, or another one of that name.
    fn with_field(
        &self,
        name: String,
        components: usize,
        values: PyReadonlyArray1<'_, f64>,
        of_cells: bool,
    ) -> PyResult<Mesh> {
        let mut mesh = (*self.mesh).clone();
        let field = Field { name, components, values: values.as_array().to_vec() };
        let set = if of_cells { mesh.set_cell_field(field) } else { mesh.set_point_field(field) };
        set.map_err(error::mesh)?;
        Ok(Mesh { mesh: Arc::new(mesh) })
    }

    /// The same mesh with its points elsewhere, shape (n, 3); where its vertices stand for cells, they are points alone then.
    fn with_points(&self, points: PyReadonlyArray1<'_, f64>) -> PyResult<Mesh> {
        let points = points.as_array().to_vec().as_chunks().0.to_vec();
        let mut mesh = match self.mesh.primal() {
            Some(_) => self.mesh.with_cells(self.mesh.cells().clone()).map_err(error::mesh)?,
            None => (*self.mesh).clone(),
        };
        mesh.set_points(points).map_err(error::mesh)?;
        Ok(Mesh { mesh: Arc::new(mesh) })
    }

    fn boundary<'py>(&self, python: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        self.mesh.boundary().into_pyarray(python)
    }

    /// For each named group its name, and whether each vertex is a corner of one of its cells.
    fn groups<'py>(&self, python: Python<'py>) -> Vec<(String, Bound<'py, PyArray1<bool>>)> {
        let of = |group: &mesh::Group| {
            let mut members = vec![false; self.mesh.points().len()];
            let corners = group.cells.iter().flat_map(|&c| self.mesh.cells().corners(c as usize));
            corners.for_each(|&v| members[v as usize] = true);
            (group.name.clone(), members.into_pyarray(python))
        };
        self.mesh.groups().iter().map(of).collect()
    }

    /// The dual: its mesh; volumes of the cells; the faces between them, and those of the boundary with the names of their groups.
    fn dual<'py>(&self, python: Python<'py>) -> PyResult<DualOf<'py>> {
        let dual = python.detach(|| self.mesh.dual()).map_err(error::mesh)?;
        let (faces, walls) = (|| dual.faces.iter(), || dual.boundary_faces.iter());
        let between = (
            rows(python, faces().map(|face| face.cells).collect()),
            rows(python, faces().map(|face| face.normal).collect()),
            faces().map(|face| face.area).collect::<Vec<f64>>().into_pyarray(python),
            rows(python, faces().map(|face| face.centroid).collect()),
        );
        let around = (
            walls().map(|face| face.cell).collect::<Vec<u32>>().into_pyarray(python),
            rows(python, walls().map(|face| face.normal).collect()),
            walls().map(|face| face.area).collect::<Vec<f64>>().into_pyarray(python),
            rows(python, walls().map(|face| face.centroid).collect()),
        );
        let groups = walls().map(|face| face.group.map(|g| self.mesh.groups()[g].name.clone())).collect();
        Ok((Mesh { mesh: Arc::new(dual.mesh) }, dual.volumes.into_pyarray(python), between, around, groups))
    }

    /// Of linear finite elements: edges, their weights, and masses of the vertices.
    fn laplacian<'py>(&self, python: Python<'py>) -> PyResult<LaplacianOf<'py>> {
        let made = python.detach(|| mesh::Laplacian::of(&self.mesh)).map_err(error::mesh)?;
        Ok((rows(python, made.edges), made.weights.into_pyarray(python), made.masses.into_pyarray(python)))
    }

    fn bounds(&self) -> [[f64; 3]; 2] {
        self.mesh.bounds()
    }

    fn vertex_count(&self) -> usize {
        self.mesh.points().len()
    }

    fn cell_count(&self) -> usize {
        self.mesh.cells().len()
    }
}
