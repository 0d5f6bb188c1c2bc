//! Contacts of deforming surfaces with themselves and each other.
//!
//! A [`Surface`] says what may touch. A [`Finder`] finds all pairs of a vertex and a triangle, and of two edges, that are closer than
//! a radius, and how far each vertex may move without passing through anything. [`crossings`] judges whether something did, exactly.
//! [`separate`] does the same for a step that is known in advance: which gaps must stay open, whatever else moves how far.
//! [`SignedDistance`] says how far a point is from a closed surface, and on which side.
//!
//! # How far a vertex may move
//!
//! The clearance of a vertex is the least distance of all pairs of which it is a corner: the vertex or a corner of the triangle in the
//! one kind, an end of either edge in the other. Pairs that share a vertex are left out. So the corners of a pair of distance `d` have
//! clearances of `d` at most. If each vertex stays within less than half of its clearance from where it stood, then each point of either
//! part, which is a mean of corners, stays within less than `d / 2`: the parts never touch, whatever the paths. This is the bound
//! of Chen, Hsu, Yang and others, "Offset Geometric Contact" (2025).
//!
//! Nor do triangles that share a vertex come to meet elsewhere, though pairs that share a vertex are left out:
//!
//! - *Two triangles with one vertex in common.* If they meet in another point too, they do in a piece of a straight line from the
//!   vertex, which ends at the opposite side of one of them. That side and the other triangle share no vertex. When they first touched,
//!   a vertex touched a triangle or an edge an edge, and the pair shared no vertex, or a triangle had lost its height.
//! - *Two triangles with an edge in common*, a hinge. They meet elsewhere only if they are folded flat onto each other. Then the third
//!   corner of one lies in the other, or two of their sides cross that share no vertex.
//! - *A triangle loses its height* when a corner reaches the opposite side. If another edge starts at that corner, then it and the
//!   side are a pair of edges without a common vertex. If another triangle has that side, the corner and it are a pair.
//!
//! What remains: a triangle by itself, which has no such neighbors, can turn inside out; what touches at the start cannot move, its
//! clearance is 0; and the argument is about numbers without rounding. Where a clearance is below some 1e-12 of the coordinates, a
//! vertex had better stay, for the next place that its coordinates can name may be farther.
//!
//! # What is close at rest
//!
//! Where triangles are smaller than the radius, pairs beside each other on a flat surface are closer than the radius, and would push it
//! apart. Newton (2025) leaves out pairs that are joined by two edges or less, and those closer at rest than a given distance, wherever
//! they are. But a number of edges says nothing of lengths, and layers of a garment that lie on each other at rest are to be contacts.
//! So here a pair is no contact if it is both closer at rest than a given radius and joined by a path of edges that is not much longer:
//! at most twice the radius and the longest edge of the pair. It counts for clearance all the same: without a force that holds it
//! apart, it still must not pass.
//!
//! # What this does not do
//!
//! It finds no pairs of a loose point and a rod, nor of two points: both pass each other in space. Only [`separate`] knows of motion.
//!
//! ```
//! use meshweft_mesh::{contact::{Finder, Surface, crossings}, generate::generate};
//! let sheet = generate("sheet:9", 0)?;
//! let surface = Surface::new(sheet.points(), &sheet.triangles(), &[], &[])?;
//! // Folded in the middle, so that the layers are 0.05 apart.
//! let fold = |p: &[f64; 3]| if p[0] <= 0.5 { *p } else { [1.0 - p[0], p[1], 0.05] };
//! let folded: Vec<[f64; 3]> = sheet.points().iter().map(fold).collect();
//! let mut finder = Finder::new(surface, 0.06)?;
//! let found = finder.find(&folded, 0.06)?;
//! assert!(found.vertex_triangle.len() > 50 && found.edge_edge.len() > 50);
//! let moved: Vec<[f64; 3]> = folded.iter().zip(&found.clearance).map(|(p, c)| [p[0], p[1], p[2] - 0.49 * c]).collect();
//! assert!(crossings(finder.surface(), &moved)?.is_empty());
//! # Ok::<(), meshweft_mesh::Error>(())
//! ```

mod crossing;
mod distance;
mod finder;
mod list;
mod rest;
mod separation;
mod signed;
mod surface;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tree;

pub use crossing::crossings;
pub use distance::{EdgeEdge, PointTriangle, edge_edge, point_triangle};
pub use finder::{Contacts, Finder};
pub use separation::{FREEDOM, Gap, Separation, separate};
pub use signed::SignedDistance;
pub use surface::Surface;
