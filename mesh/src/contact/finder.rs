//! Finds contacts, again and again, while a surface moves.

use super::distance::FARTHEST;
use super::list::{List, MOST, Pairs};
use super::rest::joined;
use super::surface::Surface;
use crate::error::{Error, Result};
use crate::parallel;
use std::sync::atomic::{AtomicU64, Ordering};

/// The least radius: the squares of others could be 0.
const NEAREST: f64 = 1.0 / FARTHEST;
/// How far ahead pairs are listed, in radii: with more the list is longer, with less it is made more often. Measured where each vertex
/// moves by 1% of an edge a call, for radii of 0.3 and of 0.5 edges.
const SKIN: f64 = 0.75;
/// A list takes as long as some walks: so many steps it should serve.
const ENOUGH: usize = 3;
/// Where lists do not, one is tried once in so many steps.
const LONGEST: usize = 31;

/// What [`Finder::find`] finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contacts {
    /// A vertex, and the corners of a triangle, ascending: shape [pairs × 4], in lexicographic order.
    pub vertex_triangle: Vec<[u32; 4]>,
    /// The ends of an edge, ascending, and those of a later one: shape [pairs × 4], in lexicographic order.
    pub edge_edge: Vec<[u32; 4]>,
    /// The least distance of all pairs of which a vertex is a corner, also of those that are no contacts; at most the radius, which it is for vertices
    /// that the surface does not have. Shape `[n]`.
    pub clearance: Vec<f64>,
}

/// Finds the contacts of a surface, and remembers which pairs are near, so that the next time is quicker.
///
/// What it finds is a function of the positions and the radius alone.
pub struct Finder {
    surface: Surface,
    /// Pairs that are no contacts, of vertices and triangles and of edges, ascending.
    excluded: [Pairs; 2],
    list: Option<List>,
    /// Steps that the list has served, those that are to be walked before there is another, and how many that were last time.
    served: usize,
    walks: usize,
    pause: usize,
}

impl Finder {
    /// Gets ready to find contacts of a surface.
    ///
    /// `rest_radius`: pairs that are closer at rest, and joined along the surface by a path of edges of at most twice that radius and
    /// the longest edge of the pair, are no contacts; 0 for none. Give the radius at which contacts begin to push. Cost that of a
    /// walk, and of a search along the surface for each pair that is so close at rest.
    ///
    /// # Errors
    /// A radius that is negative, not finite, or so large that more than 128 pairs a vertex are closer at rest.
    pub fn new(surface: Surface, rest_radius: f64) -> Result<Finder> {
        if !(0.0..=FARTHEST).contains(&rest_radius) {
            return Err(Error::Invalid(format!(
                "the radius at rest is {rest_radius}: from 0 to {FARTHEST:e} make sense"
            )));
        }
        let close = List::new(&surface, &surface.rest, rest_radius, 0.0, [&Pairs::new(); 2]);
        let close = close.ok_or_else(|| too_many(rest_radius))?.all();
        let excluded = [1, 2].map(|sources| joined(&surface, sources, &close[sources - 1], rest_radius));
        Ok(Finder { surface, excluded, list: None, served: 0, walks: 0, pause: 0 })
    }

    /// The surface.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Finds all pairs that are closer than the radius, share no vertex, and are not close at rest already; and how far each vertex may
    /// move.
    ///
    /// `positions`: shape `[n × 3]`. Cost: that of the pairs nearby, about 25 ns each, as long as vertices have moved against each other by
    /// less than 0.375 radii; else that of a walk, O(n log n), about ten times as much. In parallel. Memory: 20 bytes a pair nearby.
    ///
    /// # Errors
    /// A position that is not finite or beyond 1e30, which names the vertex; a radius that is not in 1e-30 to 1e30; more than 128 pairs a
    /// vertex.
    ///
    /// ```
    /// use meshweft_mesh::contact::{Finder, Surface};
    /// let points = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 0.1]];
    /// let surface = Surface::new(&points, &[[0, 1, 2]], &[], &[3])?;
    /// let mut finder = Finder::new(surface, 0.0)?;
    /// let found = finder.find(&points, 0.2)?;
    /// assert_eq!(found.vertex_triangle, [[3, 0, 1, 2]]);
    /// assert!(found.edge_edge.is_empty() && found.clearance == [0.1; 4]);
    /// assert_eq!(finder.find(&points, 0.05)?.clearance, [0.05; 4]);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn find(&mut self, positions: &[[f64; 3]], radius: f64) -> Result<Contacts> {
        if !(NEAREST..=FARTHEST).contains(&radius) {
            return Err(Error::Invalid(format!("the radius is {radius}: from {NEAREST:e} to {FARTHEST:e} make sense")));
        }
        self.surface.check(positions)?;
        let nearest: Vec<AtomicU64> = positions.iter().map(|_| AtomicU64::new(f64::INFINITY.to_bits())).collect();
        let surface = &self.surface;
        let usable = self.list.as_ref().and_then(|list| list.filter(surface, positions, radius, &nearest));
        let filter = match usable {
            Some(filter) => filter,
            None => {
                let excluded = [&self.excluded[0], &self.excluded[1]];
                // Whether there are too many pairs must depend on those closer than the radius alone, so at last without a skin.
                let list = [SKIN, 0.25 * SKIN, 0.0]
                    .into_iter()
                    .find_map(|skin| List::new(surface, positions, radius, skin * radius, excluded));
                let list = list.ok_or_else(|| too_many(radius))?;
                let list = self.list.insert(list);
                list.filter(surface, positions, radius, &nearest).expect("a new list has all pairs")
            }
        };
        let list = self.list.as_ref().expect("there was one, or it has been made");
        let [vertex_triangle, edge_edge] = filter.contacts(list);
        let clearance =
            parallel::collect(nearest.len(), |v| f64::from_bits(nearest[v].load(Ordering::Relaxed)).sqrt().min(radius));
        Ok(Contacts { vertex_triangle, edge_edge, clearance })
    }

    /// Pairs of vertices and triangles, and of edges, in any order: all that are closer than the radius, and more. None where a walk is likely to
    /// be quicker.
    pub(super) fn near(&mut self, positions: &[[f64; 3]], radius: f64) -> Option<[Pairs; 2]> {
        let surface = &self.surface;
        if let Some(near) = self.list.as_ref().and_then(|list| list.near(surface, positions, radius)) {
            self.served += 1;
            return Some(near);
        }
        if self.walks > 0 {
            self.walks -= 1;
            return None;
        }
        let excluded = [&self.excluded[0], &self.excluded[1]];
        // What served long enough is made anew. Else that is left for longer and longer.
        self.pause = if self.served < ENOUGH { LONGEST.min(2 * self.pause + 1) } else { 0 };
        (self.served, self.walks) = (0, self.pause);
        self.list = List::new(surface, positions, radius, SKIN * radius, excluded);
        self.list.as_ref()?.near(surface, positions, radius)
    }
}

pub(super) fn too_many(radius: f64) -> Error {
    Error::Invalid(format!(
        "more than {MOST} pairs a vertex are closer than {radius}: take less, or move the surface apart"
    ))
}
