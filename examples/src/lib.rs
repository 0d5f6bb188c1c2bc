//! Physics programs.
