//! A mesh: points, cells, named fields and groups.

use crate::cell::{CellKind, Cells};
use crate::edges;
use crate::error::{Error, Result, shown_name};
use crate::incidence::Incidence;
use crate::parallel;
use std::borrow::Cow;
use std::sync::Arc;

/// A named array over the points or the cells of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name, unique among the fields of its kind.
    pub name: String,
    /// Numbers per point or cell: 1 a scalar, 3 a vector.
    pub components: usize,
    /// The numbers, point after point: shape [points × components].
    pub values: Vec<f64>,
}

impl Field {
    /// The field over some of its points or cells, by their numbers. Cost O(values of those).
    ///
    /// # Panics
    /// A number that it does not have.
    ///
    /// ```
    /// let field = meshweft_mesh::Field { name: "velocity".into(), components: 2, values: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0] };
    /// assert_eq!(field.of(&[2, 0]).values, [4.0, 5.0, 0.0, 1.0]);
    /// ```
    pub fn of(&self, places: &[u32]) -> Field {
        let n = self.components;
        let values = places.iter().flat_map(|&place| &self.values[place as usize * n..][..n]).copied().collect();
        Field { name: self.name.clone(), values, ..*self }
    }
}

/// A named set of cells, such as a physical group of Gmsh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Topological dimension of its cells, 0 to 3.
    pub dimension: usize,
    /// Cell ids, ascending.
    pub cells: Vec<u32>,
}

/// Points in space, cells between them, named fields over both, and named groups of cells.
///
/// Coordinates are meters in the examples. A point is also called a vertex: it is where the data of a program live.
/// A mesh that exists is valid: every coordinate is finite, every corner is a point, every field has the right length.
///
/// ```
/// use meshweft_mesh::{CellKind, Cells, Mesh};
/// let points = vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
/// let mesh = Mesh::new(points, Cells::of(CellKind::Triangle, vec![0, 1, 2]))?;
/// assert_eq!(mesh.points().len(), 3);
/// assert!(Mesh::new(vec![[f64::NAN; 3]], Cells::new()).is_err());
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mesh {
    points: Vec<[f64; 3]>,
    cells: Cells,
    point_fields: Vec<Field>,
    cell_fields: Vec<Field>,
    groups: Vec<Group>,
    /// See [`Mesh::primal`].
    primal: Option<Arc<Mesh>>,
}

impl Mesh {
    /// Checks and joins points and cells.
    ///
    /// # Errors
    /// A coordinate that is not finite, a corner that is no point (both name the element), or more than 2^32 - 2 points.
    pub fn new(points: Vec<[f64; 3]>, mut cells: Cells) -> Result<Mesh> {
        check_count(points.len())?;
        cells.shrink_to_fit();
        if let Some(v) = parallel::first(points.len(), |v| points[v].iter().any(|x| !x.is_finite())) {
            return Err(Error::Invalid(format!("point {v} has a coordinate that is not finite: {:?}", points[v])));
        }
        let n = points.len();
        if parallel::first(cells.all_corners().len(), |k| cells.all_corners()[k] as usize >= n).is_some() {
            let c = (0..cells.len()).find(|&c| cells.corners(c).iter().any(|&v| v as usize >= n));
            let c = c.expect("some cell holds the corner");
            let corners = cells.corners(c);
            return Err(Error::Invalid(format!(
                "cell {c} ({}) has corners {corners:?}, but there are only {n} points",
                cells.kind(c).name()
            )));
        }
        Ok(Mesh { points, cells, ..Mesh::default() })
    }

    /// A mesh of line cells: springs, hairs, roads, or the neighbors of particles.
    ///
    /// `points`: shape `[n × 3]`. `edges`: shape [edges × 2]; each is a cell, also one that repeats another.
    ///
    /// # Errors
    /// As [`Mesh::new`], and 2^31 edges.
    ///
    /// ```
    /// use meshweft_mesh::{CellKind, Mesh};
    /// let hair = Mesh::from_edges(vec![[0.0; 3], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]], vec![[0, 1], [1, 2]])?;
    /// assert_eq!(hair.cells().counts(), [(CellKind::Edge, 2)]);
    /// assert!(Mesh::from_edges(vec![[0.0; 3]], vec![[0, 1]]).is_err());
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn from_edges(points: Vec<[f64; 3]>, edges: Vec<[u32; 2]>) -> Result<Mesh> {
        if edges.len() > u32::MAX as usize / 2 {
            return Err(Error::Invalid(format!("{} edges: at most {} are supported", edges.len(), u32::MAX / 2)));
        }
        Mesh::new(points, Cells::of(CellKind::Edge, edges.into_flattened()))
    }

    /// A mesh of line cells for a graph that has no geometry: all `n` points are at the origin.
    ///
    /// Where a curve numbers vertices by place, as [`Curve::order`](crate::Curve::order) does, these keep the order of
    /// their ids: for a fast run, ids of neighbors should be near to each other. All lengths are 0, so a
    /// [`Laplacian`](crate::Laplacian) has no edges.
    ///
    /// # Errors
    /// As [`Mesh::from_edges`].
    ///
    /// ```
    /// use meshweft_mesh::{Curve, Mesh};
    /// let friends = Mesh::from_graph(4, vec![[0, 3], [1, 2], [1, 3]])?;
    /// assert_eq!(friends.edges(), [[0, 3], [1, 2], [1, 3]]);
    /// assert_eq!(Curve::default().order(friends.points()).order(), [0, 1, 2, 3]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn from_graph(n: usize, edges: Vec<[u32; 2]>) -> Result<Mesh> {
        check_count(n)?; // before their points are allocated
        Mesh::from_edges(vec![[0.0; 3]; n], edges)
    }

    /// Coordinates of the points, shape [points × 3].
    pub fn points(&self) -> &[[f64; 3]] {
        &self.points
    }

    /// The cells.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// Fields over the points.
    pub fn point_fields(&self) -> &[Field] {
        &self.point_fields
    }

    /// Fields over the cells.
    pub fn cell_fields(&self) -> &[Field] {
        &self.cell_fields
    }

    /// Named groups of cells.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// The field of that name over the points.
    pub fn point_field(&self, name: &str) -> Option<&Field> {
        self.point_fields.iter().find(|f| f.name == name)
    }

    /// The field of that name over the cells.
    pub fn cell_field(&self, name: &str) -> Option<&Field> {
        self.cell_fields.iter().find(|f| f.name == name)
    }

    /// Adds or replaces a field over the points.
    ///
    /// # Errors
    /// A wrong number of values.
    pub fn set_point_field(&mut self, field: Field) -> Result<()> {
        insert(&mut self.point_fields, field, self.points.len(), "points")
    }

    /// Adds or replaces a field over the cells.
    ///
    /// # Errors
    /// A wrong number of values.
    pub fn set_cell_field(&mut self, field: Field) -> Result<()> {
        insert(&mut self.cell_fields, field, self.cells.len(), "cells")
    }

    /// Adds a group, or adds the cells to the group of that name and dimension.
    ///
    /// # Errors
    /// A cell that does not exist.
    pub fn add_group(&mut self, mut group: Group) -> Result<()> {
        group.cells.sort_unstable();
        group.cells.dedup();
        if let Some(&c) = group.cells.last().filter(|&&c| c as usize >= self.cells.len()) {
            let count = self.cells.len();
            let name = shown_name(&group.name);
            return Err(Error::Invalid(format!("group {name} names cell {c} of {count}")));
        }
        match self.groups.iter_mut().find(|g| g.name == group.name && g.dimension == group.dimension) {
            Some(known) => {
                known.cells.append(&mut group.cells);
                known.cells.sort_unstable();
                known.cells.dedup();
            }
            None => self.groups.push(group),
        }
        Ok(())
    }

    /// Replaces the coordinates.
    ///
    /// # Errors
    /// Another number of points, or a coordinate that is not finite.
    pub fn set_points(&mut self, points: Vec<[f64; 3]>) -> Result<()> {
        if points.len() != self.points.len() {
            return Err(Error::Invalid(format!("{} points given for {}", points.len(), self.points.len())));
        }
        if let Some(v) = parallel::first(points.len(), |v| points[v].iter().any(|x| !x.is_finite())) {
            return Err(Error::Invalid(format!("point {v} has a coordinate that is not finite: {:?}", points[v])));
        }
        self.points = points;
        Ok(())
    }

    /// A mesh with the same points and the fields of those, and other cells, without fields and groups.
    ///
    /// # Errors
    /// A corner that is no point.
    ///
    /// ```
    /// use meshweft_mesh::{Cells, Field, generate::generate};
    /// let mut sheet = generate("sheet:3", 1)?;
    /// sheet.set_point_field(Field { name: "body".into(), components: 1, values: vec![2.0; 9] })?;
    /// let points = sheet.with_cells(Cells::new())?;
    /// assert_eq!((points.cells().len(), points.point_fields()), (0, sheet.point_fields()));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn with_cells(&self, cells: Cells) -> Result<Mesh> {
        let mut mesh = Mesh::new(self.points.clone(), cells)?;
        mesh.point_fields = self.point_fields.clone();
        Ok(mesh)
    }

    /// The mesh whose cells the vertices of this one stand for, one each in their order, as those of a [dual](Mesh::dual) do; `None` for any
    /// other mesh. It has cells of one dimension, with their fields and groups.
    pub fn primal(&self) -> Option<&Mesh> {
        self.primal.as_deref()
    }

    /// The same mesh, whose vertices stand for the cells of another one, as many.
    pub(crate) fn of_cells(self, primal: Mesh) -> Mesh {
        debug_assert_eq!(self.points.len(), primal.cells.len(), "one vertex a cell");
        Mesh { primal: Some(Arc::new(primal)), ..self }
    }

    /// The mesh as it is written to a file: where vertices stand for cells, those cells with the fields of the vertices.
    ///
    /// ```
    /// use meshweft_mesh::{Field, generate::generate};
    /// let mut cells = generate("quads:3x2", 1)?.dual()?.mesh;
    /// cells.set_point_field(Field { name: "pressure".into(), components: 1, values: vec![1.0, 4.0] })?;
    /// let written = cells.written();
    /// assert_eq!((written.points().len(), &written.cell_field("pressure").unwrap().values[..]), (6, &[1.0, 4.0][..]));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn written(&self) -> Cow<'_, Mesh> {
        let Some(primal) = &self.primal else { return Cow::Borrowed(self) };
        let mut mesh = (**primal).clone();
        for field in &self.point_fields {
            match mesh.cell_fields.iter_mut().find(|known| known.name == field.name) {
                Some(known) => *known = field.clone(),
                None => mesh.cell_fields.push(field.clone()),
            }
        }
        Cow::Owned(mesh)
    }

    /// The cells with these numbers, ascending, on the same points, with their fields and groups.
    pub(crate) fn with_some_cells(&self, kept: &[u32]) -> Mesh {
        let mut cells = Cells::new();
        kept.iter().map(|&c| c as usize).for_each(|c| cells.push(self.cells.kind(c), self.cells.corners(c)));
        let place = |c: &u32| kept.binary_search(c).ok().map(|place| place as u32);
        let groups = self
            .groups
            .iter()
            .map(|group| Group { cells: group.cells.iter().filter_map(place).collect(), ..group.clone() });
        Mesh {
            points: self.points.clone(),
            cells,
            point_fields: self.point_fields.clone(),
            cell_fields: self.cell_fields.iter().map(|field| field.of(kept)).collect(),
            groups: groups.filter(|group| !group.cells.is_empty()).collect(),
            primal: None,
        }
    }

    /// Smallest box around the points: lower and upper corner; two zeros for an empty mesh. Cost O(n): once for a mesh, not for each
    /// vertex.
    pub fn bounds(&self) -> [[f64; 3]; 2] {
        let Some(&first) = self.points.first() else { return [[0.0; 3]; 2] };
        self.points.iter().fold([first; 2], |[low, high], p| {
            [std::array::from_fn(|k| low[k].min(p[k])), std::array::from_fn(|k| high[k].max(p[k]))]
        })
    }

    /// The place of the point nearest to `target` among those of which `takes` says yes; ties go to the first in space
    /// (by x, then y, then z). `None` if there is none, or the target has a coordinate that is NaN. Cost O(n).
    ///
    /// ```
    /// let mesh = meshweft_mesh::generate::sheet(3, 3)?;
    /// assert_eq!(mesh.nearest([0.6, 0.9, 0.0], |_| true), Some([0.5, 1.0, 0.0]));
    /// assert_eq!(mesh.nearest([0.25, 0.0, 0.0], |v| v != 0), Some([0.5, 0.0, 0.0]));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn nearest(&self, target: [f64; 3], takes: impl Fn(usize) -> bool) -> Option<[f64; 3]> {
        if target.iter().any(|x| x.is_nan()) {
            return None;
        }
        let key = |p: [f64; 3]| ((0..3).map(|k| (p[k] - target[k]).powi(2)).sum::<f64>(), p);
        let taken = self.points.iter().enumerate().filter(|(v, _)| takes(*v)).map(|(_, &p)| p);
        taken.min_by(|&a, &b| key(a).partial_cmp(&key(b)).expect("coordinates are finite"))
    }

    /// Highest dimension of its cells; 0 without cells.
    pub fn dimension(&self) -> usize {
        self.cells.iter().map(|(kind, _)| kind.dimension()).max().unwrap_or(0)
    }

    /// Triangles that show the mesh: its triangles and halved quads; for solids, the facets that only one cell has,
    /// seen from outside. Shape [triangles × 3].
    pub fn surface(&self) -> Vec<[u32; 3]> {
        if self.dimension() < 3 {
            return self.triangles();
        }
        let mut triangles = Vec::new();
        self.boundary_facets().into_iter().for_each(|facet| fan(&self.facet(facet), &mut triangles));
        triangles
    }

    /// The surface as a mesh by itself: for solids, the facets that only one cell has, seen from outside; else the
    /// triangles and quads. It has the points of those, and no others, in the same order.
    ///
    /// Point fields come along; facets of solids have the values of their cells, by which they are ordered. Groups of
    /// triangles and quads come along where these are facets of the surface. Cost O(n log n) in the number of cells.
    ///
    /// ```
    /// use meshweft_mesh::{CellKind, generate::generate};
    /// let skin = generate("box:3", 1)?.skin();
    /// assert_eq!((skin.points().len(), skin.cells().counts()), (26, vec![(CellKind::Triangle, 48)]));
    /// assert!(generate("chain:3", 1)?.skin().points().is_empty());
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn skin(&self) -> Mesh {
        let mut owners: Vec<(usize, Option<u8>)> = match self.dimension() {
            3 => self.boundary_facets().into_iter().map(|(c, f)| (c, Some(f))).collect(),
            _ => (0..self.cells.len()).filter(|&c| self.cells.kind(c).dimension() == 2).map(|c| (c, None)).collect(),
        };
        owners.sort_unstable();
        let facets: Vec<Vec<u32>> = owners
            .iter()
            .map(|&(c, f)| f.map_or_else(|| self.cells.corners(c).to_vec(), |f| self.facet((c, f))))
            .collect();
        let mut places = vec![u32::MAX; self.points.len()];
        facets.iter().flatten().for_each(|&v| places[v as usize] = 0);
        let kept: Vec<u32> = (0..places.len() as u32).filter(|&v| places[v as usize] == 0).collect();
        (0..).zip(&kept).for_each(|(place, &v)| places[v as usize] = place);
        let mut cells = Cells::new();
        for facet in &facets {
            let corners: Vec<u32> = facet.iter().map(|&v| places[v as usize]).collect();
            cells.push(if facet.len() == 3 { CellKind::Triangle } else { CellKind::Quad }, &corners);
        }
        let points = kept.iter().map(|&v| self.points[v as usize]).collect();
        let owners: Vec<u32> = owners.into_iter().map(|(c, _)| c as u32).collect();
        let point_fields = self.point_fields.iter().map(|field| field.of(&kept)).collect();
        let cell_fields = self.cell_fields.iter().map(|field| field.of(&owners)).collect();
        let mut known: Vec<([u32; 4], u32)> = facets.iter().map(|facet| key(facet.iter().copied())).zip(0..).collect();
        known.sort_unstable();
        let group = |group: &Group| {
            let places = group.cells.iter().filter_map(|&c| {
                let key = key(self.cells.corners(c as usize).iter().copied());
                known.binary_search_by_key(&key, |facet| facet.0).ok().map(|k| known[k].1)
            });
            let mut cells: Vec<u32> = places.collect();
            cells.sort_unstable();
            (!cells.is_empty()).then(|| Group { cells, ..group.clone() })
        };
        let groups = self.groups.iter().filter(|group| group.dimension == 2).filter_map(group).collect();
        Mesh { points, cells, point_fields, cell_fields, groups, primal: None }
    }

    /// The mesh of some of its points, ascending, and of the cells whose corners are all among them. Fields come along, groups do not.
    /// Cost O(points + cells).
    ///
    /// # Panics
    /// A point that it does not have.
    ///
    /// ```
    /// use meshweft_mesh::generate::generate;
    /// let part = generate("sheet:3x3", 1)?.part(&[0, 1, 3, 4, 8]);
    /// assert_eq!((part.points().len(), part.cells().len()), (5, 2));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn part(&self, points: &[u32]) -> Mesh {
        let mut places = vec![u32::MAX; self.points.len()];
        (0..).zip(points).for_each(|(place, &v)| places[v as usize] = place);
        let (mut cells, mut kept) = (Cells::new(), Vec::new());
        for (c, (kind, corners)) in self.cells.iter().enumerate() {
            let corners: Vec<u32> = corners.iter().map(|&v| places[v as usize]).collect();
            if !corners.contains(&u32::MAX) {
                cells.push(kind, &corners);
                kept.push(c as u32);
            }
        }
        let point_fields = self.point_fields.iter().map(|field| field.of(points)).collect();
        let cell_fields = self.cell_fields.iter().map(|field| field.of(&kept)).collect();
        let points = points.iter().map(|&v| self.points[v as usize]).collect();
        Mesh { points, cells, point_fields, cell_fields, ..Mesh::default() }
    }

    /// Whether each point lies on the boundary: in a facet that only one cell of the highest dimension has. Shape `[n]`.
    /// A closed surface has no boundary.
    pub fn boundary(&self) -> Vec<bool> {
        let mut on_boundary = vec![false; self.points.len()];
        let facets = self.boundary_facets().into_iter().flat_map(|facet| self.facet(facet));
        facets.for_each(|v| on_boundary[v as usize] = true);
        on_boundary
    }

    /// Facets that only one cell of the highest dimension has, as cell and number of the facet, by ascending corners.
    pub(crate) fn boundary_facets(&self) -> Vec<(usize, u8)> {
        let (dimension, cells) = (self.dimension(), &self.cells);
        let incidence = Incidence::new(self.points.len(), cells.len(), |c| cells.corners(c));
        // Those of a range are the facets of which the first corner is in it.
        let parts = incidence.by_range(Vec::new, |facets: &mut Vec<([u32; 4], u32, u8)>, range, touching| {
            facets.clear();
            touching.for_each(|c| {
                let kind = cells.kind(c);
                let numbers = 0..if kind.dimension() == dimension { kind.facets().len() as u8 } else { 0 };
                let own = numbers.map(|f| (key(self.corners((c, f))), c as u32, f));
                facets.extend(own.filter(|(key, ..)| range.contains(&key[0])));
            });
            facets.sort_unstable();
            let single = facets.chunk_by(|a, b| a.0 == b.0).filter(|twins| twins.len() == 1);
            single.map(|twins| (twins[0].1 as usize, twins[0].2)).collect()
        });
        parallel::concat(parts)
    }

    /// The corners of a facet of a cell.
    pub(crate) fn facet(&self, facet: (usize, u8)) -> Vec<u32> {
        self.corners(facet).collect()
    }

    fn corners(&self, (c, f): (usize, u8)) -> impl Iterator<Item = u32> {
        let corners = self.cells.corners(c);
        self.cells.kind(c).facets()[f as usize].iter().map(|&k| corners[k as usize])
    }

    /// Unique edges of the cells, shape [edges × 2], the smaller id first, ascending. Cost O(points + cells), in parallel.
    pub fn edges(&self) -> Vec<[u32; 2]> {
        edges::of_cells(self.points.len(), &self.cells)
    }

    /// Triangles of the mesh, quads halved along their first diagonal. Shape [triangles × 3].
    pub fn triangles(&self) -> Vec<[u32; 3]> {
        let mut triangles = Vec::new();
        self.cells.iter().filter(|(kind, _)| kind.dimension() == 2).for_each(|(_, c)| fan(c, &mut triangles));
        triangles
    }

    /// Tets of the mesh; pyramids, wedges and hexes are cut into tets without new points. Shape `[tets × 4]`.
    ///
    /// Every quad facet is cut along the diagonal from its first corner in space (by x, then y, then z), so the two cells
    /// at a facet agree whatever the order of their corners. Source: Dompierre, Labbé, Vallet and Camarero, "How to
    /// subdivide pyramids, prisms and hexahedra into tetrahedra", 1999, with places for names.
    /// Where all cells are tets they are lent, not copied.
    pub fn tets(&self) -> Cow<'_, [[u32; 4]]> {
        if parallel::first(self.cells.len(), |c| self.cells.kind(c) != CellKind::Tet).is_none() {
            return Cow::Borrowed(self.cells.all_corners().as_chunks().0);
        }
        let place = |v: &u32| (self.points[*v as usize].map(|x| x + 0.0), *v);
        let first = |corners: &[u32]| {
            let before = |a: &&u32, b: &&u32| place(a).partial_cmp(&place(b)).expect("coordinates are finite");
            *corners.iter().min_by(before).expect("a cell has corners")
        };
        let mut tets = Vec::new();
        for (kind, c) in self.cells.iter().filter(|(kind, _)| kind.dimension() == 3) {
            if kind == CellKind::Tet {
                tets.push([c[0], c[1], c[2], c[3]]);
                continue;
            }
            // The first corner of the cell is joined to the triangles of the facets that do not have it.
            let apex = first(c);
            for facet in kind.facets() {
                let facet: Vec<u32> = facet.iter().map(|&k| c[k as usize]).collect();
                if facet.contains(&apex) {
                    continue;
                }
                let low = first(&facet);
                let start = facet.iter().position(|&v| v == low).expect("the first is one of them");
                let corner = |k: usize| facet[(start + k) % facet.len()];
                // Facets are seen from outside, the apex lies inside.
                tets.extend((2..facet.len()).map(|k| [corner(0), corner(k), corner(k - 1), apex]));
            }
        }
        Cow::Owned(tets)
    }
}

fn check_count(points: usize) -> Result<()> {
    match points < u32::MAX as usize {
        true => Ok(()),
        false => Err(Error::Invalid(format!("{points} points: at most {} are supported", u32::MAX - 1))),
    }
}

fn insert(fields: &mut Vec<Field>, field: Field, count: usize, what: &str) -> Result<()> {
    if field.components == 0 || field.values.len() != count * field.components {
        return Err(Error::Invalid(format!(
            "field {} has {} values of {} components for {count} {what}",
            shown_name(&field.name),
            field.values.len(),
            field.components
        )));
    }
    match fields.iter_mut().find(|f| f.name == field.name) {
        Some(known) => *known = field,
        None => fields.push(field),
    }
    Ok(())
}

/// The corners of a facet in ascending order, whatever the way round; `u32::MAX` pads.
fn key(facet: impl Iterator<Item = u32>) -> [u32; 4] {
    let mut key = [u32::MAX; 4];
    facet.zip(&mut key).for_each(|(v, slot)| *slot = v);
    key.sort_unstable();
    key
}

fn fan(corners: &[u32], triangles: &mut Vec<[u32; 3]>) {
    (2..corners.len()).for_each(|k| triangles.push([corners[0], corners[k - 1], corners[k]]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surface_of_two_tets_hides_the_face_between() {
        let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]];
        let mesh = Mesh::new(points, Cells::of(CellKind::Tet, vec![0, 1, 2, 3, 1, 2, 3, 4])).unwrap();
        assert_eq!(mesh.surface().len(), 6);
        assert_eq!(mesh.edges().len(), 9);
        assert!(mesh.boundary().iter().all(|&b| b));
    }

    #[test]
    fn the_skin_has_the_points_values_and_groups_of_what_is_outside() {
        let mut points: Vec<[f64; 3]> = vec![[7.0; 3]]; // no cell has it
        for k in 0..12 {
            points.push([k % 2, k / 2 % 2, k / 4].map(f64::from));
        }
        let hex = |low: u32| [0, 1, 3, 2, 4, 5, 7, 6].map(|k| low + k);
        let mut cells = Cells::of(CellKind::Hex, [hex(1), hex(5)].concat());
        cells.push(CellKind::Quad, &[9, 10, 12, 11]); // on top
        cells.push(CellKind::Quad, &[5, 6, 8, 7]); // between the two
        let mut mesh = Mesh::new(points, cells).unwrap();
        let field = |values| Field { name: "a".into(), components: 1, values };
        mesh.set_point_field(field((0..13).map(f64::from).collect())).unwrap();
        mesh.set_cell_field(field(vec![10.0, 20.0, 30.0, 40.0])).unwrap();
        mesh.add_group(Group { name: "top".into(), dimension: 2, cells: vec![2, 3] }).unwrap();
        mesh.add_group(Group { name: "inner".into(), dimension: 2, cells: vec![3] }).unwrap();
        let skin = mesh.skin();
        assert_eq!(skin.cells().counts(), [(CellKind::Quad, 10)]);
        assert_eq!(skin.point_field("a").unwrap().values, (1..13).map(f64::from).collect::<Vec<_>>());
        assert_eq!(skin.cell_fields()[0].values, [[10.0; 5], [20.0; 5]].concat());
        let [top] = skin.groups() else { panic!("{:?}", skin.groups()) };
        assert_eq!((&*top.name, skin.cells().corners(top.cells[0] as usize)), ("top", &[8, 9, 11, 10][..]));
        assert_eq!((skin.surface().len(), skin.boundary_facets().len()), (mesh.surface().len(), 0));
        assert_eq!(skin.skin(), skin);
    }

    #[test]
    fn corner_out_of_range_names_the_cell() {
        let error = Mesh::new(vec![[0.0; 3]; 3], Cells::of(CellKind::Edge, vec![0, 1, 1, 3])).unwrap_err();
        assert!(error.to_string().contains("cell 1 (edge)"), "{error}");
    }

    #[test]
    fn meshes_of_edges_are_checked() {
        let error = Mesh::from_graph(usize::MAX, vec![]).unwrap_err().to_string();
        assert!(error.contains("points"), "{error}");
        let error = Mesh::from_graph(2, vec![[0, 1], [1, 2]]).unwrap_err().to_string();
        assert!(error.contains("cell 1 (edge)"), "{error}");
        assert!(Mesh::from_edges(vec![[f64::INFINITY; 3]], vec![]).is_err());
        assert_eq!(Mesh::from_graph(0, vec![]).unwrap(), Mesh::default());
    }

    #[test]
    fn the_nearest_point_does_not_depend_on_names() {
        let points = vec![[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 3.0, 0.0]];
        let mesh = Mesh::new(points, Cells::new()).unwrap();
        assert_eq!(mesh.nearest([0.0; 3], |_| true), Some([-1.0, 0.0, 0.0]));
        assert_eq!(mesh.nearest([0.0; 3], |v| v != 1), Some([1.0, 0.0, 0.0]));
        assert_eq!(mesh.nearest([f64::INFINITY; 3], |_| true), Some([-1.0, 0.0, 0.0]));
        assert_eq!(mesh.nearest([f64::NAN; 3], |_| true), None);
        assert_eq!(mesh.nearest([0.0; 3], |_| false), None);
    }

    #[test]
    fn a_cube_is_cut_into_tets_of_the_same_volume() {
        let cube = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]];
        let points: Vec<[f64; 3]> = cube.map(|p| p.map(f64::from)).to_vec();
        let mesh = Mesh::new(points.clone(), Cells::of(CellKind::Hex, (0..8).collect())).unwrap();
        let volume: f64 = mesh.tets().iter().map(|t| volume_of(t.map(|v| points[v as usize]))).sum();
        assert!((volume - 1.0).abs() < 1e-15, "{volume}");
        assert!(mesh.tets().iter().all(|t| volume_of(t.map(|v| points[v as usize])) > 0.0));
        // Turned by a quarter, the same cube gives the same tets.
        let turned = Mesh::new(points, Cells::of(CellKind::Hex, vec![1, 2, 3, 0, 5, 6, 7, 4])).unwrap();
        let sorted = |mesh: &Mesh| {
            let mut tets: Vec<[u32; 4]> = mesh.tets().into_owned();
            tets.iter_mut().for_each(|t| t.sort_unstable());
            tets.sort_unstable();
            tets
        };
        assert_eq!((sorted(&mesh), sorted(&mesh).len()), (sorted(&turned), 6));
    }

    #[test]
    fn wedges_and_pyramids_are_cut_into_tets_of_the_same_volume() {
        let points: Vec<[f64; 3]> =
            [[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1]].map(|p| p.map(f64::from)).to_vec();
        // Wound so that facets face outward, from either end.
        for corners in [vec![0, 2, 1, 3, 5, 4], vec![3, 4, 5, 0, 1, 2]] {
            let wedge = Mesh::new(points.clone(), Cells::of(CellKind::Wedge, corners)).unwrap();
            let volumes: Vec<f64> = wedge.tets().iter().map(|t| volume_of(t.map(|v| points[v as usize]))).collect();
            assert_eq!(volumes.len(), 3);
            assert!(
                volumes.iter().all(|&v| v > 0.0) && (volumes.iter().sum::<f64>() - 0.5).abs() < 1e-15,
                "{volumes:?}"
            );
        }
        let points: Vec<[f64; 3]> =
            [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]].map(|p| p.map(f64::from)).to_vec();
        let pyramid = Mesh::new(points.clone(), Cells::of(CellKind::Pyramid, (0..5).collect())).unwrap();
        let volume: f64 = pyramid.tets().iter().map(|t| volume_of(t.map(|v| points[v as usize]))).sum();
        assert!((volume - 1.0 / 3.0).abs() < 1e-15, "{volume}");
    }

    fn volume_of([a, b, c, d]: [[f64; 3]; 4]) -> f64 {
        let e = |p: [f64; 3]| -> [f64; 3] { std::array::from_fn(|k| p[k] - a[k]) };
        let ([x0, x1, x2], [y0, y1, y2], [z0, z1, z2]) = (e(b), e(c), e(d));
        (x0 * (y1 * z2 - y2 * z1) - x1 * (y0 * z2 - y2 * z0) + x2 * (y0 * z1 - y1 * z0)) / 6.0
    }
}
