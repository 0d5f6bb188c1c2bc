//! The `meshweft` command.
fn main() {}
