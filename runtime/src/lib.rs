//! Physics on meshes as data-graph computations.
