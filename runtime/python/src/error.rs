//! Errors as exceptions, with the same words.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(meshweft, Error, PyException, "Whatever Meshweft refuses or stops at.");
create_exception!(
    meshweft,
    ProgramError,
    Error,
    "A program that breaks the rules of programs: its author can mend it."
);
create_exception!(meshweft, MeshError, Error, "A mesh, or a file of one, that is not as it should be.");
create_exception!(
    meshweft,
    DivergedError,
    Error,
    "A value that is no longer finite; the message names vertex and step."
);

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let python = module.py();
    module.add("Error", python.get_type::<Error>())?;
    module.add("ProgramError", python.get_type::<ProgramError>())?;
    module.add("MeshError", python.get_type::<MeshError>())?;
    module.add("DivergedError", python.get_type::<DivergedError>())
}

pub(crate) fn raised(error: meshweft::Error) -> PyErr {
    let message = error.to_string();
    match error {
        meshweft::Error::Program(_) => ProgramError::new_err(message),
        meshweft::Error::Mesh(_) => MeshError::new_err(message),
        meshweft::Error::Diverged { .. } | meshweft::Error::Global { .. } => DivergedError::new_err(message),
        _ => Error::new_err(message),
    }
}

pub(crate) fn mesh(error: meshweft_mesh::Error) -> PyErr {
    MeshError::new_err(error.to_string())
}
