//! The dual of a mesh: its cells become vertices and the faces between them edges, as finite volumes need it.

mod periodic;
mod shown;

use crate::cell::{CellKind, Cells};
use crate::error::{Error, Result};
use crate::incidence::Incidence;
use crate::measure::{add, cross, dot, scaled, sub};
use crate::mesh::Mesh;
use crate::parallel;
use crate::sort::{NONE, scatter};
use rayon::prelude::*;
use std::sync::atomic::Ordering;

pub use shown::{Means, Shown};

/// The cells of the highest dimension as vertices, and the faces between them: what finite volumes are computed on.
///
/// A face has one dimension less than the cells: a triangle or quad in 3D, an edge in 2D, a vertex in 1D. A program
/// runs on `mesh`: its vertex `i` is cell `cells[i]`, and its edge `k` is face `k`. Made by [`Mesh::dual`].
///
/// All `c` cells have positive volume. In a flat or solid mesh, the sum of `area × normal` over the faces of a cell,
/// outward, is 0 up to rounding.
#[derive(Clone, Debug, PartialEq)]
pub struct Dual {
    /// Points: the centroids of the cells, shape `[c × 3]`. Cells: for each face, the edge between its two cells; two
    /// cells that share two faces are joined by two edges. Files, films and views of it show the cells: its [`primal`](Mesh::primal) mesh.
    pub mesh: Mesh,
    /// The cell of the original mesh that each vertex stands for, ascending. Shape `[c]`.
    pub cells: Vec<u32>,
    /// Volume of each cell in 3D (m³), area in 2D (m²), length in 1D (m). Shape `[c]`.
    pub volumes: Vec<f64>,
    /// The faces between two cells, by their first cell and then in the order of [`CellKind::facets`]; after them those of [sides that are
    /// one](Dual::periodic).
    pub faces: Vec<Face>,
    /// The faces that only one cell has, in the same order.
    pub boundary_faces: Vec<BoundaryFace>,
}

/// A face between two cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Face {
    /// The two cells, as vertices of the dual mesh, the smaller first.
    pub cells: [u32; 2],
    /// Unit vector from the first cell to the second; 0 for a face of no area.
    ///
    /// In 2D it lies in the plane of the cells. Where a surface or line bends at the face, it is the direction halfway
    /// between those of the two cells, so that neither is preferred; 0 where they are folded upon each other.
    pub normal: [f64; 3],
    /// Area in 3D (m²), length of the edge in 2D (m), 1 in 1D.
    pub area: f64,
    /// Its centroid as the first cell sees it, m.
    pub centroid: [f64; 3],
    /// How far the second cell is moved to where it touches the first, m: 0 but where two sides are [one](Dual::periodic).
    pub shift: [f64; 3],
}

/// A face that only one cell has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BoundaryFace {
    /// The cell, as a vertex of the dual mesh.
    pub cell: u32,
    /// Unit vector out of the cell, in 2D in the plane of the cell; 0 for a face of no area.
    pub normal: [f64; 3],
    /// Area in 3D (m²), length of the edge in 2D (m), 1 in 1D.
    pub area: f64,
    /// Its centroid, m.
    pub centroid: [f64; 3],
    /// Index in [`Mesh::groups`] of the first group that has a cell with the corners of this face, or else of the first
    /// whose cells of kind [`CellKind::Vertex`] are at all its corners.
    pub group: Option<usize>,
}

impl Mesh {
    /// The dual mesh for finite volumes: cells of the highest dimension become vertices, faces between them edges.
    ///
    /// Kinds may be mixed, and corners may go round either way. A solid's quad face is taken as the four triangles around
    /// the mean of its corners, whichever cell looks at it, so that volumes fill the mesh without gaps even where quads
    /// are not flat; its `area × normal` is that of any surface between its edges. A quad cell's area is that seen along
    /// its normal, half the cross product of its diagonals. A facet whose corners repeat (a hex collapsed to a wedge) is
    /// a triangle or no face.
    ///
    /// Values do not depend on the names of vertices, nor, but for which cell of a face is the first, on the order of
    /// cells. Cost O(cells), in parallel; memory beside the result: 4 bytes a facet, and the faces once
    /// more while they are joined. Source: the split of quads
    /// and the volumes are those of OpenFOAM (primitiveMeshFaceCentresAndAreas.C, primitiveMeshCellCentresAndVols.C).
    ///
    /// # Errors
    /// No cell but vertices; a cell whose volume is 0 or not finite; a face whose area is not finite, or that three cells
    /// share, or that one cell has twice.
    ///
    /// ```
    /// use meshweft_mesh::{CellKind, Cells, Mesh};
    /// let square = vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
    /// let dual = Mesh::new(square, Cells::of(CellKind::Triangle, vec![0, 1, 2, 0, 2, 3]))?.dual()?;
    /// assert_eq!((dual.mesh.points().len(), dual.faces.len(), dual.boundary_faces.len()), (2, 1, 4));
    /// let face = dual.faces[0];
    /// assert_eq!((face.cells, dual.mesh.cells().corners(0)), ([0, 1], &[0, 1][..]));
    /// assert!((face.area - 2f64.sqrt()).abs() < 1e-15 && (face.normal[1] - 0.5f64.sqrt()).abs() < 1e-15);
    /// assert_eq!(dual.volumes, [0.5, 0.5]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn dual(&self) -> Result<Dual> {
        /// Enough cells to be worth a task, and few enough for each thread to get several.
        const CELLS: usize = 1 << 12;
        let shapes = Shapes::of(self)?;
        let mut volumes = vec![0.0; shapes.len()];
        let mut centroids = vec![[0.0; 3]; shapes.len()];
        let pieces = (0..).step_by(CELLS).zip(volumes.chunks_mut(CELLS).zip(centroids.chunks_mut(CELLS)));
        parallel::each(pieces, |(first, (volumes, centroids))| {
            let slots = volumes.iter_mut().zip(centroids);
            (first..).zip(slots).for_each(|(i, (volume, centroid))| (*volume, *centroid) = shapes.volume(i));
        });
        if let Some(i) = volumes.iter().position(|v| *v == 0.0 || !v.is_finite()) {
            let (c, name, v) = (shapes.ids[i], shapes.kind(i).name(), volumes[i]);
            return Err(Error::Invalid(format!("cell {c} ({name}) has volume {v}: finite volumes need more than 0")));
        }
        let (starts, others) = shapes.others()?;
        let groups = Groups::of(self, shapes.dimension);
        let parts = parallel::map((0..shapes.len()).step_by(CELLS), |first| {
            let (mut faces, mut boundary_faces) = (Vec::new(), Vec::new());
            for i in first..shapes.len().min(first + CELLS) {
                let own = i as u32;
                for (f, &other) in others[starts[i] as usize..starts[i + 1] as usize].iter().enumerate() {
                    if other == NONE {
                        let (area, normal, centroid) = shapes.face(i, f, volumes[i]);
                        let group = groups.of_face(shapes.key(i, f));
                        boundary_faces.push(BoundaryFace { cell: own, normal, area, centroid, group });
                    } else if other > own {
                        let (area, mut normal, centroid) = shapes.face(i, f, volumes[i]);
                        if shapes.dimension < 3 {
                            normal = unit(sub(normal, shapes.twin_normal(i, f, other as usize))).1;
                        }
                        faces.push(Face { cells: [own, other], normal, area, centroid, shift: [0.0; 3] });
                    }
                }
            }
            (faces, boundary_faces)
        });
        let (faces, boundary_faces): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (faces, boundary_faces) = (parallel::concat(faces), parallel::concat(boundary_faces));
        let areas = faces.iter().map(|face| (face.area, face.cells[0]));
        let mut areas = areas.chain(boundary_faces.iter().map(|face| (face.area, face.cell)));
        if let Some((area, i)) = areas.find(|(area, _)| !area.is_finite()) {
            return Err(Error::Invalid(format!("a face of cell {} has area {area}", shapes.ids[i as usize])));
        }
        let edges = parallel::collect(faces.len(), |f| faces[f].cells);
        let volumes = volumes.into_iter().map(f64::abs).collect();
        let mesh = Mesh::from_edges(centroids, edges)?.of_cells(self.with_some_cells(&shapes.ids));
        Ok(Dual { mesh, cells: shapes.ids, volumes, faces, boundary_faces })
    }
}

/// The corners of a face ascending, each once, filled up with [`NONE`]: the same from both sides.
type Key = [u32; 4];

pub(crate) fn key(corners: impl Iterator<Item = u32>) -> Key {
    let mut key = [NONE; 4];
    corners.zip(&mut key).for_each(|(v, slot)| *slot = v);
    let sorted = |[a, b, c, d]: Key| {
        let ([a, b], [c, d]) = ([a.min(b), a.max(b)], [c.min(d), c.max(d)]);
        let ([a, c], [b, d]) = ([a.min(c), a.max(c)], [b.min(d), b.max(d)]);
        [a, b.min(c), b.max(c), d]
    };
    let key = sorted(key);
    match key.windows(2).any(|pair| pair[0] == pair[1] && pair[0] != NONE) {
        true => sorted(std::array::from_fn(|k| if k > 0 && key[k] == key[k - 1] { NONE } else { key[k] })),
        false => key,
    }
}

/// The cells of the highest dimension, counted anew.
struct Shapes<'a> {
    points: &'a [[f64; 3]],
    all: &'a Cells,
    dimension: usize,
    /// Their numbers in the mesh.
    ids: Vec<u32>,
}

impl Shapes<'_> {
    fn of(mesh: &Mesh) -> Result<Shapes<'_>> {
        let (all, dimension) = (mesh.cells(), mesh.dimension());
        if dimension == 0 {
            return Err(Error::Invalid("the mesh has no cells of dimension 1 to 3, so it has no dual".into()));
        }
        let ids = parallel::filter(all.len(), |c| all.kind(c).dimension() == dimension);
        Ok(Shapes { points: mesh.points(), all, dimension, ids })
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn kind(&self, i: usize) -> CellKind {
        self.all.kind(self.ids[i] as usize)
    }

    fn corners(&self, i: usize) -> &[u32] {
        self.all.corners(self.ids[i] as usize)
    }

    fn point(&self, i: usize, corner: u8) -> [f64; 3] {
        self.points[self.corners(i)[corner as usize] as usize]
    }

    /// The corners of facet `f` of cell `i`.
    fn key(&self, i: usize, f: usize) -> Key {
        key(self.kind(i).facets()[f].iter().map(|&k| self.corners(i)[k as usize]))
    }

    /// For each facet of each cell, the cell at its other side, [`NONE`] at the boundary, or the cell itself for a facet
    /// that is no face because its corners repeat. With where the facets of each cell start, and the end.
    fn others(&self) -> Result<(Vec<u32>, Vec<u32>)> {
        let mut starts = vec![0u32];
        // A cell has no more facets than corners, and a mesh fewer than 2^32 corners.
        starts.extend((0..self.len()).scan(0, |end, i| {
            *end += self.kind(i).facets().len() as u32;
            Some(*end)
        }));
        let incidence = Incidence::new(self.points.len(), self.len(), |i| self.corners(i));
        let mut faults = Vec::new();
        let others = scatter(starts[self.len()] as usize, |slots| {
            // A facet is looked at in the range of its lowest corner.
            faults = incidence.by_range(Vec::<(Key, u32, u32)>::new, |facets, vertices, touching| {
                facets.clear();
                touching.for_each(|i| {
                    let corners = self.corners(i);
                    for (f, facet) in (starts[i]..).zip(self.kind(i).facets()) {
                        let corners = facet.iter().map(|&k| corners[k as usize]);
                        // Most are not of this range: seen at once, before their corners are sorted.
                        if !vertices.contains(&corners.clone().fold(NONE, u32::min)) {
                            continue;
                        }
                        let key = key(corners);
                        match key[self.dimension - 1] {
                            NONE => slots[f as usize].store(i as u32, Ordering::Relaxed),
                            _ => facets.push((key, i as u32, f)),
                        }
                    }
                });
                // As one number, which is compared at once.
                facets.sort_unstable_by_key(|(key, ..)| key.iter().fold(0, |all, &v| all << 32 | u128::from(v)));
                let mut fault = None;
                for twins in facets.chunk_by(|a, b| a.0 == b.0) {
                    let store = |slot: u32, other| slots[slot as usize].store(other, Ordering::Relaxed);
                    match *twins {
                        [(_, _, slot)] => store(slot, NONE),
                        [(_, a, slot_a), (_, b, slot_b)] if a != b => {
                            store(slot_a, b);
                            store(slot_b, a);
                        }
                        _ => fault = fault.or_else(|| Some((twins[0].0, twins.iter().map(|t| t.1).collect()))),
                    }
                }
                fault
            });
        });
        if let Some((key, cells)) = faults.into_iter().flatten().next() {
            let (corners, cells): (&[u32], Vec<u32>) = (&key, cells);
            let corners: Vec<u32> = corners.iter().copied().filter(|&v| v != NONE).collect();
            let cells: Vec<u32> = cells.into_iter().map(|i| self.ids[i as usize]).collect();
            return Err(Error::Invalid(format!(
                "the face between vertices {corners:?} is one of cells {cells:?}: two different cells may share it"
            )));
        }
        Ok((starts, others))
    }

    /// The volume of cell `i`, negative if its corners go round the other way, and its centroid.
    fn volume(&self, i: usize) -> (f64, [f64; 3]) {
        let kind = self.kind(i);
        let n = kind.corners();
        let total = (0..n as u8).fold([0.0; 3], |sum, k| add(sum, scaled(1.0 / n as f64, self.point(i, k))));
        let middle = total;
        let from = |k| sub(self.point(i, k), self.point(i, 0));
        match kind {
            CellKind::Edge => (unit(from(1)).0, middle),
            CellKind::Tet => (dot(cross(from(1), from(2)), from(3)) / 6.0, middle),
            CellKind::Triangle | CellKind::Quad => {
                let (vector, centroid) = Polygon::new((0..n as u8).map(|k| self.point(i, k))).measure();
                (unit(vector).0, centroid)
            }
            _ => {
                // Tets from the middle to the triangles of the faces.
                let (mut volume, mut moment) = (0.0, [0.0; 3]);
                for f in 0..kind.facets().len() {
                    let (face, turned) = self.polygon(i, f);
                    let sign = if turned { -1.0 } else { 1.0 };
                    for [a, b, c] in face.triangles() {
                        let corners = [a, b, c].map(|p| sub(p, middle));
                        let share = sign * dot(cross(sub(b, a), sub(c, a)), corners[0]) / 6.0;
                        volume += share;
                        moment = add(moment, scaled(0.25 * share, add(corners[0], add(corners[1], corners[2]))));
                    }
                }
                (volume, add(middle, moment.map(|x| x / volume)))
            }
        }
    }

    /// Facet `f` of the solid `i` in an order of its corners that is the same from both sides, and whether that is the
    /// other way round than seen from outside.
    fn polygon(&self, i: usize, f: usize) -> (Polygon, bool) {
        let seen = Polygon::new(self.kind(i).facets()[f].iter().map(|&k| self.point(i, k)));
        let (p, n) = (seen.corners(), seen.count);
        // From the first in space (by x, then y, then z) toward the one beside it that comes first.
        let start = (1..n).fold(0, |first, k| if p[k] < p[first] { k } else { first });
        let turned = p[(start + n - 1) % n] < p[(start + 1) % n];
        let corner = |k: usize| p[(start + if turned { n - k } else { k }) % n];
        (Polygon::new((0..n).map(corner)), turned)
    }

    /// Area, outward unit normal and centroid of facet `f` of cell `i`, whose volume has this sign.
    fn face(&self, i: usize, f: usize, volume: f64) -> (f64, [f64; 3], [f64; 3]) {
        match *self.kind(i).facets()[f] {
            [k] => (1.0, unit(sub(self.point(i, k), self.point(i, 1 - k))).1, self.point(i, k)),
            [k, l] => {
                let [a, b] = [self.point(i, k), self.point(i, l)];
                let corners = (0..self.kind(i).corners() as u8).map(|k| self.point(i, k));
                let (_, plane) = unit(Polygon::new(corners).measure().0);
                let (length, along) = unit(sub(b, a));
                (length, unit(cross(along, plane)).1, add(scaled(0.5, a), scaled(0.5, b)))
            }
            _ => {
                let (polygon, turned) = self.polygon(i, f);
                let (vector, centroid) = polygon.measure();
                let (area, normal) = unit(vector);
                (area, if turned == (volume > 0.0) { scaled(-1.0, normal) } else { normal }, centroid)
            }
        }
    }

    /// The outward normal of the cell `other` at facet `f` of cell `i`, which they share; not for solids.
    fn twin_normal(&self, i: usize, f: usize, other: usize) -> [f64; 3] {
        let shared = self.key(i, f);
        let twin = (0..self.kind(other).facets().len()).find(|&g| self.key(other, g) == shared);
        self.face(other, twin.expect("both cells have the face"), 1.0).1
    }
}

/// A triangle, or a quad that need not be flat.
struct Polygon {
    points: [[f64; 3]; 4],
    count: usize,
}

impl Polygon {
    fn new(corners: impl ExactSizeIterator<Item = [f64; 3]>) -> Polygon {
        let (mut points, count) = ([[0.0; 3]; 4], corners.len());
        corners.zip(&mut points).for_each(|(p, slot)| *slot = p);
        Polygon { points, count }
    }

    fn corners(&self) -> &[[f64; 3]] {
        &self.points[..self.count]
    }

    /// A triangle is one; a quad is four, around the mean of its corners.
    fn triangles(&self) -> impl Iterator<Item = [[f64; 3]; 3]> {
        let [a, b, c, d] = self.points;
        let mean = scaled(0.25, add(add(a, c), add(b, d)));
        let triangles = match self.count {
            3 => [[a, b, c]; 4],
            _ => [[mean, a, b], [mean, b, c], [mean, c, d], [mean, d, a]],
        };
        triangles.into_iter().take(if self.count == 3 { 1 } else { 4 })
    }

    /// Normal times area, and the centroid of its picture along the normal.
    fn measure(&self) -> ([f64; 3], [f64; 3]) {
        let area_of = |[a, b, c]: [[f64; 3]; 3]| scaled(0.5, cross(sub(b, a), sub(c, a)));
        let vector = self.triangles().map(area_of).fold([0.0; 3], add);
        let (area, normal) = unit(vector);
        // Measured from a corner, so that a mesh far from the origin loses no digits.
        let mut moment = [0.0; 3];
        for triangle in self.triangles() {
            let [a, b, c] = triangle.map(|p| sub(p, self.points[0]));
            // The only triangle counts in full, even if it has no area.
            let share = if self.count == 3 { 1.0 } else { dot(area_of(triangle), normal) / area };
            moment = add(moment, scaled(share / 3.0, add(a, add(b, c))));
        }
        match moment.iter().all(|x| x.is_finite()) {
            true => (vector, add(self.points[0], moment)),
            false => (vector, self.triangles().next().expect("there is one")[0]), // a quad of no area: its mean
        }
    }
}

/// Length and direction of a vector; both 0 for 0. Divided by its largest component first, so that no square underflows.
fn unit(v: [f64; 3]) -> (f64, [f64; 3]) {
    let largest = v.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest == 0.0 {
        return (0.0, [0.0; 3]);
    }
    let v = v.map(|x| x / largest);
    let length = dot(v, v).sqrt();
    (largest * length, v.map(|x| x / length))
}

/// Which group a face of the boundary belongs to.
pub(crate) struct Groups {
    /// Facets that are cells of a group, ascending.
    facets: Vec<(Key, usize)>,
    /// Groups with cells that are vertices, and these, ascending.
    vertices: Vec<(usize, Vec<u32>)>,
}

impl Groups {
    pub(crate) fn of(mesh: &Mesh, dimension: usize) -> Groups {
        let (mut facets, mut vertices) = (Vec::new(), Vec::new());
        for (g, group) in mesh.groups().iter().enumerate() {
            let mut own = Vec::new();
            for &c in &group.cells {
                let (kind, corners) = (mesh.cells().kind(c as usize), mesh.cells().corners(c as usize));
                if kind.dimension() + 1 == dimension {
                    facets.push((key(corners.iter().copied()), g));
                } else if kind == CellKind::Vertex {
                    own.push(corners[0]);
                }
            }
            if !own.is_empty() {
                own.sort_unstable();
                vertices.push((g, own));
            }
        }
        facets.par_sort_unstable();
        Groups { facets, vertices }
    }

    pub(crate) fn of_face(&self, key: Key) -> Option<usize> {
        let place = self.facets.partition_point(|facet| facet.0 < key);
        let by_facet = self.facets.get(place).filter(|facet| facet.0 == key).map(|facet| facet.1);
        let has_all = |own: &[u32]| key.iter().filter(|&&v| v != NONE).all(|v| own.binary_search(v).is_ok());
        by_facet.or_else(|| self.vertices.iter().find(|(_, own)| has_all(own)).map(|&(g, _)| g))
    }
}

#[cfg(test)]
mod tests;
