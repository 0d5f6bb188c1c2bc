//! Contacts of deforming surfaces with themselves and each other.

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
