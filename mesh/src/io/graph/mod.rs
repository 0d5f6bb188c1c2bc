//! Files of graphs: edges between vertices that have no place in space.
//!
//! A graph is read as a mesh of line cells whose points all lie at the origin, as [`Mesh::from_graph`](crate::Mesh::from_graph) makes
//! them. Cell `e` is edge `e`, from its first corner to its second, in the order of the file; repeats and edges from a vertex to
//! itself are kept. A number that each edge has becomes the cell field `weight`. Where vertex `v` is not called `v` in the file, the point
//! field `id` has its name.

mod edge_list;
mod edges;
mod matrix_market;
mod metis;

pub(super) use edge_list::parse as parse_edge_list;
pub(super) use matrix_market::parse as parse_matrix_market;
pub(super) use metis::parse as parse_metis;
