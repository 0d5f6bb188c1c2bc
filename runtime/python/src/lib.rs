//! What `import meshweft` loads: meshes, formulas, simulations and examples, thin. The rest of the package is Python.

mod error;
mod examples;
mod formula;
mod mesh;
mod program;
mod simulation;
mod view;

use pyo3::prelude::*;

#[pymodule]
fn _meshweft(module: &Bound<'_, PyModule>) -> PyResult<()> {
    error::add(module)?;
    module.add_class::<formula::Formula>()?;
    module.add_class::<mesh::Mesh>()?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<simulation::Saved>()?;
    module.add_class::<simulation::Hosts>()?;
    module.add_function(wrap_pyfunction!(simulation::work_attached, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::work, module)?)?;
    module.add_function(wrap_pyfunction!(program::build, module)?)?;
    module.add_function(wrap_pyfunction!(examples::examples, module)?)?;
    module.add_function(wrap_pyfunction!(examples::example, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::adapters, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
