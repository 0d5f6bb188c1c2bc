//! WGSL text of the kernels that surround a traced program.
