//! Lagrange finite elements: nodes, and what is summed up over cells and over the boundary.

mod matrix;
mod patch;
mod periodic;
mod shape;
mod sums;

use crate::cell::{CellKind, Cells};
use crate::dual::Groups;
use crate::error::{Error, Result};
use crate::mesh::{Group, Mesh};
use crate::parallel;
pub use matrix::Matrix;
pub use patch::{At, Patch};
use patch::{NONE, shapes};
use shape::Shape;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use sums::{Sums, Touching};

/// Finite elements on a mesh.
///
/// Of degree 1 the nodes are the points of the mesh; of degree 2 there is one more in the middle of each edge, of each quad and of each hex. Cells
/// stay as straight as they were.
///
/// Source: Hughes, The Finite Element Method, 1987, chapter 3.
///
/// ```
/// use meshweft_mesh::generate::generate;
/// // The energy of u = x in a cube: half of its volume.
/// let elements = generate("box:4", 1)?.elements(2)?;
/// let matrix = elements.cells().stiffness(|_, a, b| [[(0..3).map(|k| a[k] * b[k]).sum()]]);
/// let x: Vec<[f64; 1]> = elements.mesh().points().iter().map(|p| [p[0]]).collect();
/// let energy: f64 = matrix.times(&x).iter().zip(&x).map(|(a, b)| 0.5 * a[0] * b[0]).sum();
/// assert!((energy - 0.5).abs() < 1e-14);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Elements {
    mesh: Mesh,
    cells: Patch,
    rim: Patch,
    /// The node that each takes its values from, if two sides are one.
    leads: Option<Vec<u32>>,
}

impl Mesh {
    /// Finite elements of degree 1 or 2 on the cells of the highest dimension. Cost O(cells), of degree 2 O(cells × log).
    ///
    /// # Errors
    /// Another degree; a mesh without cells that have an extent; pyramids of degree 2; too many nodes.
    pub fn elements(&self, degree: usize) -> Result<Elements> {
        let dimension = self.dimension();
        if !(1..=2).contains(&degree) {
            return Err(Error::Invalid(format!("finite elements are of degree 1 or 2 here, not {degree}")));
        }
        if dimension == 0 {
            return Err(Error::Invalid("finite elements need cells: this mesh has points alone".into()));
        }
        let shapes = shapes(degree);
        let mut nodes = Nodes { mesh: self, shapes: &shapes, middles: BTreeMap::new(), points: self.points().to_vec() };
        // Of degree 1 cells stay whole.
        let mut cut = if degree == 1 { self.cells().clone() } else { Cells::new() };
        // Where the parts of each cell begin.
        let mut starts = Vec::with_capacity(self.cells().len() + 1);
        let mut cells = Patch::empty(dimension, degree);
        let mut of_cells = vec![NONE; self.cells().len()];
        for (g, group) in self.groups().iter().enumerate().rev() {
            group.cells.iter().for_each(|&c| of_cells[c as usize] = g as u32);
        }
        for (c, (kind, corners)) in self.cells().iter().enumerate() {
            starts.push(if degree == 1 { c } else { cut.len() } as u32);
            let own = nodes.of(c, kind, corners)?;
            let parts = nodes.shape(kind).filter(|_| degree > 1).into_iter().flat_map(|shape| &shape.parts);
            for part in parts {
                cut.push(kind, &part.iter().map(|&k| own[k as usize]).collect::<Vec<u32>>());
            }
            if kind.dimension() == dimension {
                cells.push(kind, &own, of_cells[c], None);
            }
        }
        starts.push(cut.len() as u32);
        let groups = Groups::of(self, dimension);
        let mut rim = Patch::empty(dimension - 1, degree);
        let mut facets = self.boundary_facets();
        facets.sort_unstable();
        for facet in facets {
            let corners = self.facet(facet);
            let kind =
                CellKind::ALL.into_iter().find(|k| k.dimension() + 1 == dimension && k.corners() == corners.len());
            let own = nodes.of(facet.0, kind.expect("facets are cells"), &corners)?;
            let group = groups.of_face(crate::dual::key(corners.iter().copied())).map_or(NONE, |group| group as u32);
            rim.push(kind.expect("facets are cells"), &own, group, Some(mean(self, self.cells().corners(facet.0))));
        }
        if u32::try_from(nodes.points.len().max(cells.nodes.len()).max(rim.nodes.len())).is_err() {
            return Err(Error::Invalid(
                "finite elements of this mesh have 2^32 nodes or more: take fewer cells".into(),
            ));
        }
        let mut mesh = Mesh::new(nodes.points, cut)?;
        for group in self.groups() {
            let cells = group.cells.iter().flat_map(|&c| starts[c as usize]..starts[c as usize + 1]).collect();
            mesh.add_group(Group { cells, ..group.clone() })?;
        }
        let points = Arc::new(mesh.points().to_vec());
        for patch in [&mut cells, &mut rim] {
            patch.points = points.clone();
            patch.shrink();
        }
        cells.check()?;
        Ok(Elements { mesh, cells, rim, leads: None })
    }
}

fn mean(mesh: &Mesh, corners: &[u32]) -> [f64; 3] {
    let sum = |k: usize| corners.iter().map(|&v| mesh.points()[v as usize][k]).sum::<f64>();
    [0, 1, 2].map(|k| sum(k) / corners.len() as f64)
}

/// Corners that a node lies between, ascending.
fn key(between: &[u8], corners: &[u32]) -> [u32; 4] {
    let mut key = [u32::MAX; 4];
    key.iter_mut().zip(between).for_each(|(key, &k)| *key = corners[k as usize]);
    key.sort_unstable();
    key
}

/// Nodes by the points that they lie between.
struct Nodes<'a> {
    mesh: &'a Mesh,
    shapes: &'a [Option<Shape>],
    /// Middles of edges and quads, by their corners in ascending order.
    middles: BTreeMap<[u32; 4], u32>,
    points: Vec<[f64; 3]>,
}

impl<'a> Nodes<'a> {
    fn shape(&self, kind: CellKind) -> Option<&'a Shape> {
        self.shapes[kind as usize].as_ref()
    }

    /// Those of an element.
    fn of<'b>(&mut self, cell: usize, kind: CellKind, corners: &'b [u32]) -> Result<Cow<'b, [u32]>> {
        let Some(shape) = self.shape(kind) else {
            let way_out = "take degree 1, or a mesh without them";
            return Err(Error::Invalid(format!("cell {cell} is a {}, which has no degree 2: {way_out}", kind.name())));
        };
        if shape.nodes.len() == corners.len() {
            return Ok(Cow::Borrowed(corners));
        }
        let mut nodes = corners.to_vec();
        for between in &shape.nodes[corners.len()..] {
            let next = self.points.len() as u32;
            // That of a hex is in no other.
            let node =
                if between.len() > 4 { next } else { *self.middles.entry(key(between, corners)).or_insert(next) };
            // Of the points as the cell names them: in any names of these the place is the same.
            if node == next {
                let ends: Vec<u32> = between.iter().map(|&k| corners[k as usize]).collect();
                self.points.push(mean(self.mesh, &ends));
            }
            nodes.push(node);
        }
        Ok(Cow::Owned(nodes))
    }
}

impl Elements {
    /// The nodes as points, and cells between them: of degree 2 each cell is cut in its middles, so that files and films show all values. Groups
    /// come along.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The same, when the elements have served. Cost O(1).
    pub fn into_mesh(self) -> Mesh {
        self.mesh
    }

    /// The cells.
    pub fn cells(&self) -> &Patch {
        &self.cells
    }

    /// The faces of the boundary: of a solid its facets, of a surface its edges, of a line its ends.
    pub fn rim(&self) -> &Patch {
        &self.rim
    }

    /// Pairs of a node and one that [follows](Elements::periodic) it: where that is done, it is to have its values. None unless sides are one. Cost
    /// O(nodes).
    pub fn followers(&self) -> Vec<[u32; 2]> {
        let pairs = self.leads.iter().flat_map(|leads| leads.iter().copied().zip(0..));
        pairs.filter(|(lead, v)| lead != v).map(|(lead, v)| [lead, v]).collect()
    }

    /// How the mean slope at a node depends on the values of the others: `Σ (value there - value here) × slope` over the pairs [there, here].
    /// Shapes [pairs × 2] and [pairs × 3], slopes in 1/m. Of degree 1 the slopes of cells in their middle, of degree 2 at the node, weighted by the
    /// volumes. Cost O(nodes of all cells).
    ///
    /// Source: Zienkiewicz and Zhu, A simple error estimator and adaptive procedure, 1987: means of what is constant by cell.
    pub fn mean_slopes(&self) -> (Vec<[u32; 2]>, Vec<[f64; 3]>) {
        let shapes = shapes(self.cells.degree);
        let cells = &self.cells;
        let volumes: Vec<f64> = parallel::collect(cells.len(), |e| cells.measure(&shapes, e));
        // Placed anew for each node: what was kept of an element would not be in a cache any more.
        let parts = cells.by_node(
            |_, _: &mut Vec<()>| (),
            |here, touching, slopes: &mut Sums<[f64; 3]>, (pairs, around): &mut (Vec<_>, Vec<_>)| {
                let all: f64 = touching.iter().map(|touching| volumes[touching.element]).sum();
                for &Touching { element, node, .. } in touching {
                    let sloped = cells.sloped(&cells.shape(&shapes, element).at_nodes[node], element);
                    let weight = volumes[element] / all;
                    for (j, &there) in cells.unknowns(element).iter().enumerate().filter(|(_, there)| **there != here) {
                        let (_, slope) = sloped.function(j);
                        let place = slopes.place(there, [0.0; 3]);
                        slopes.sums[place].iter_mut().zip(slope).for_each(|(sum, slope)| *sum += weight * slope);
                    }
                }
                slopes.drain(|there, slope| {
                    pairs.push([there, here]);
                    around.push(slope);
                });
            },
        );
        let (pairs, slopes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (mut pairs, mut slopes) = (parallel::concat(pairs), parallel::concat(slopes));
        let own = pairs.len();
        for [lead, follower] in self.followers() {
            // Those of nodes that lead ascend by the node here.
            let first = pairs[..own].partition_point(|pair| pair[1] < lead);
            let own = first..pairs[..own].partition_point(|pair| pair[1] <= lead);
            slopes.extend_from_within(own.clone());
            let there: Vec<u32> = pairs[own].iter().map(|pair| pair[0]).collect();
            pairs.extend(there.into_iter().map(|there| [there, follower]));
        }
        (pairs, slopes)
    }
}

#[cfg(test)]
mod tests;
