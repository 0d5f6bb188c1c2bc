//! Contacts of deforming surfaces with themselves and each other.

mod distance;
mod finder;
mod surface;
#[cfg(test)]
mod testing;
mod tree;

pub use distance::{EdgeEdge, PointTriangle, edge_edge, point_triangle};
pub use finder::{Contacts, Finder};
pub use surface::Surface;
