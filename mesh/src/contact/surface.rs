//! What may touch: triangles, edges and vertices, and their shape at rest.

use super::distance::FARTHEST;
use super::tree::{self, Bounds, Order, Slot, Tree};
use crate::error::{Error, Result};
use crate::parallel;
use rayon::prelude::*;

/// Triangles, edges and points that may touch each other, with their shape at rest.
///
/// Ids of vertices are kept; corners ascend, and so do the lists, each element once.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    pub(super) rest: Vec<[f64; 3]>,
    pub(super) triangles: Vec<[u32; 3]>,
    pub(super) edges: Vec<[u32; 2]>,
    pub(super) vertices: Vec<u32>,
    /// Vertices, triangles and edges along a curve through their places at rest.
    orders: [Order; 3],
}

impl Surface {
    /// The surface of some triangles, with rods and points if there are any.
    ///
    /// `rest`: the places of all vertices at rest, shape `[n × 3]`. `triangles`: shape [triangles × 3], in any order and orientation.
    /// `rods`: edges beside those of the triangles, shape [rods × 2]. `points`: vertices beside those. Cost O(n log n), in parallel.
    ///
    /// # Errors
    /// A vertex that does not exist, or twice in an element; a place that is not finite; 2^30 triangles.
    ///
    /// ```
    /// use meshweft_mesh::{contact::Surface, generate::generate};
    /// let sheet = generate("sheet:3", 0)?;
    /// let surface = Surface::new(sheet.points(), &sheet.triangles(), &[], &[])?;
    /// assert_eq!((surface.triangles().len(), surface.edges().len(), surface.vertices().len()), (8, 16, 9));
    /// assert!(Surface::new(sheet.points(), &[[0, 1, 1]], &[], &[]).is_err());
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn new(rest: &[[f64; 3]], triangles: &[[u32; 3]], rods: &[[u32; 2]], points: &[u32]) -> Result<Surface> {
        const MOST: usize = 1 << 30;
        if triangles.len().max(rods.len()).max(points.len()) >= MOST {
            return Err(Error::Invalid(format!("a surface has at most {MOST} triangles, rods and points: split it")));
        }
        let triangles = canonical("triangle", rest.len(), triangles)?;
        let rods = canonical("rod", rest.len(), rods)?;
        let points = canonical("point", rest.len(), points.as_chunks::<1>().0)?;
        let sides = triangles.par_iter().flat_map_iter(|&[a, b, c]| [[a, b], [a, c], [b, c]]);
        let edges = unique(sides.chain(rods).collect());
        let corners = edges.par_iter().flatten().copied();
        let vertices = unique(corners.chain(points.into_par_iter().flatten()).collect());
        let rest = rest.to_vec();
        let mut surface = Surface { rest, triangles, edges, vertices, orders: Default::default() };
        surface.check(&surface.rest)?;
        surface.orders = surface.ordered(&|v| v);
        Ok(surface)
    }

    /// The same where some vertices were one and have come apart: parts of which one has a vertex that the other once had are left out as if they
    /// still shared it. `once`: of each vertex the one that it was, shape `[n]`.
    ///
    /// ```
    /// use meshweft_mesh::contact::{Surface, crossings};
    /// let rest = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, -1.0]];
    /// let surface = Surface::new(&rest, &[[0, 1, 2]], &[[3, 4]], &[])?;
    /// let moved = [rest[0], rest[1], rest[2], [0.0, 0.0, 1.0], rest[4]];
    /// assert_eq!(crossings(&surface, &moved)?.len(), 1);
    /// assert!(crossings(&surface.with_once(vec![0, 1, 2, 0, 4]), &moved)?.is_empty());
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    ///
    /// # Panics
    /// If not every vertex has one.
    pub fn with_once(self, once: Vec<u32>) -> Surface {
        assert_eq!(once.len(), self.rest.len(), "each vertex was one");
        let orders = self.ordered(&|v| once[v as usize]);
        Surface { orders, ..self }
    }

    /// Its primitives along a curve. `name`: what a vertex counts as where parts are said to share one.
    fn ordered(&self, name: &(dyn Fn(u32) -> u32 + Sync)) -> [Order; 3] {
        let Surface { rest, vertices, triangles, edges, .. } = self;
        let at = |v: u32| rest[v as usize];
        [
            Order::new(vertices.len(), &|i| [at(vertices[i]); 2], &|i| [name(vertices[i]); 3]),
            Order::new(triangles.len(), &|i| tree::bounds(triangles[i].map(at)), &|i| triangles[i].map(name)),
            Order::new(edges.len(), &|i| tree::bounds(edges[i].map(at)), &|i| [0, 1, 1].map(|k| name(edges[i][k]))),
        ]
    }

    /// The places of all vertices at rest.
    pub fn rest(&self) -> &[[f64; 3]] {
        &self.rest
    }

    /// Its triangles, with ascending corners, ascending.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// The edges of its triangles, and its rods, with ascending ends, ascending.
    pub fn edges(&self) -> &[[u32; 2]] {
        &self.edges
    }

    /// Its vertices, ascending.
    pub fn vertices(&self) -> &[u32] {
        &self.vertices
    }

    /// Trees of its vertices, triangles and edges, with boxes that are `margin` larger on all sides. `bounds`: the box of a vertex.
    pub(super) fn trees(&self, bounds: &(dyn Fn(u32) -> Bounds + Sync), margin: f64) -> [Tree; 3] {
        let Surface { vertices, triangles, edges, .. } = self;
        let origin = vertices.first().map_or([0.0; 3], |&v| bounds(v)[0]);
        // A primitive is as long as all of them at most.
        let [low, high] = vertices.iter().map(|&v| bounds(v)).reduce(tree::wider).unwrap_or_default();
        let margin = margin + tree::ERROR * (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let boxes = parallel::collect(self.rest.len(), |v| tree::outward(bounds(v as u32), margin, origin));
        let around = |corners: &[u32]| -> Slot {
            let wider =
                |[a, b]: Slot, [c, d]: Slot| [[0, 1, 2].map(|k| a[k].min(c[k])), [0, 1, 2].map(|k| b[k].max(d[k]))];
            corners[1..].iter().fold(boxes[corners[0] as usize], |all, &v| wider(all, boxes[v as usize]))
        };
        let [points, faces, sides] = self.orders.clone();
        [
            Tree::new(points, &|i| boxes[vertices[i] as usize], origin),
            Tree::new(faces, &|i| around(&triangles[i]), origin),
            Tree::new(sides, &|i| around(&edges[i]), origin),
        ]
    }

    /// The corners of vertex `i` and triangle `j` (`EDGES`: of edges `i` and `j`).
    #[inline(always)]
    pub(super) fn pair<const EDGES: bool>(&self, i: u32, j: u32) -> [u32; 4] {
        let Surface { vertices, triangles, edges, .. } = self;
        if EDGES {
            let [[a, b], [c, d]] = [edges[i as usize], edges[j as usize]];
            [a, b, c, d]
        } else {
            let (a, [b, c, d]) = (vertices[i as usize], triangles[j as usize]);
            [a, b, c, d]
        }
    }

    /// Calls `visit` for vertices of the lowest node `group` and triangles (`EDGES`: for edges, the earlier first) whose boxes meet, and which share
    /// no vertex.
    #[inline(always)]
    pub(super) fn meeting<const EDGES: bool>(
        [own, others]: [&Tree; 2],
        group: usize,
        stack: &mut Vec<(usize, usize)>,
        mut visit: impl FnMut(u32, u32),
    ) {
        match EDGES {
            false => own.meeting::<1, 3>(group, others, stack, visit),
            true => own.meeting::<2, 2>(group, others, stack, |i, j| visit(i.min(j), i.max(j))),
        }
    }

    /// Refuses positions with which nothing can be computed.
    pub(super) fn check(&self, positions: &[[f64; 3]]) -> Result<()> {
        if positions.len() != self.rest.len() {
            let (given, wanted) = (positions.len(), self.rest.len());
            return Err(Error::Invalid(format!(
                "{given} positions for a surface of {wanted} vertices: give one for each"
            )));
        }
        let wrong = |&v: &u32| !positions[v as usize].iter().all(|x| x.abs() <= FARTHEST);
        match parallel::first(self.vertices.len(), |i| wrong(&self.vertices[i])) {
            Some(i) => {
                let v = self.vertices[i];
                let place = positions[v as usize];
                Err(Error::Invalid(format!(
                    "vertex {v} is at {place:?}, which is not finite or beyond {FARTHEST:e}: use a smaller step"
                )))
            }
            None => Ok(()),
        }
    }
}

/// The elements with ascending vertices, ascending, each once.
fn canonical<const K: usize>(kind: &str, vertices: usize, elements: &[[u32; K]]) -> Result<Vec<[u32; K]>> {
    let sorted = |i: usize| {
        let mut element = elements[i];
        element.sort_unstable();
        element
    };
    let wrong = |e: [u32; K]| e[K - 1] as usize >= vertices || e.windows(2).any(|w| w[0] == w[1]);
    if let Some(i) = parallel::first(elements.len(), |i| wrong(sorted(i))) {
        return Err(Error::Invalid(format!(
            "{kind} {i} joins vertices {:?}: they must differ, and be below {vertices}",
            elements[i]
        )));
    }
    Ok(unique((0..elements.len()).into_par_iter().map(sorted).collect()))
}

fn unique<T: Ord + Send>(mut elements: Vec<T>) -> Vec<T> {
    elements.par_sort_unstable();
    elements.dedup();
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_once_in_order_and_wrong_ones_are_named() {
        let rest: Vec<[f64; 3]> = (0..7).map(|i| [f64::from(i), 0.0, 0.0]).collect();
        let surface = Surface::new(&rest, &[[3, 1, 2], [2, 1, 3], [0, 2, 1]], &[[5, 3], [2, 1]], &[3, 6, 6]).unwrap();
        assert_eq!(surface.triangles(), [[0, 1, 2], [1, 2, 3]]);
        assert_eq!(surface.edges(), [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [3, 5]]);
        assert_eq!(surface.vertices(), [0, 1, 2, 3, 5, 6]);

        let check = |rods: &[[u32; 2]], points: &[u32], rest: &[[f64; 3]], expected: &str| {
            let error = Surface::new(rest, &[[0, 1, 2]], rods, points).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&[[0, 1], [2, 2]], &[], &rest, "rod 1 joins vertices [2, 2]");
        check(&[], &[7], &rest, "point 0 joins vertices [7]: they must differ, and be below 7");
        check(&[], &[], &rest[..2], "triangle 0 joins vertices [0, 1, 2]");
        check(&[], &[], &[[0.0; 3], [f64::NAN; 3], [1.0; 3]], "vertex 1 is at [NaN, NaN, NaN], which is not finite");
        assert!(surface.check(&rest[1..]).unwrap_err().to_string().starts_with("6 positions for a surface of 7"));
    }
}
