//! What can go wrong in a simulation.

use std::fmt;

/// Everything the runtime refuses or stops at.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A mesh or a file of one.
    #[error(transparent)]
    Mesh(#[from] meshweft_mesh::Error),
    /// A checkpoint that is not there to go on from, or is damaged.
    #[error(transparent)]
    Checkpoint(meshweft_checkpoint::Error),
    /// A checkpoint that could not be written: those before stay.
    #[error(transparent)]
    Unsaved(meshweft_checkpoint::Error),
    /// A setting that makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A program that breaks the rules of programs: its author can mend it.
    #[error("{0}")]
    Program(String),
    /// A mistake of this crate.
    #[error("internal error, please report it: {0}")]
    Internal(String),
    /// A GPU that is missing, too small, or failed.
    #[error("GPU: {0}")]
    Gpu(String),
    /// A mesh, or a share of one, that is more than a GPU can hold.
    #[error("GPU: {0}")]
    TooLarge(String),
    /// A host of a run that is missing, was refused, or cannot go on; or a token that lets no one in.
    #[error("cluster: {0}")]
    Cluster(String),
    /// A host of a run was lost: killed, frozen or cut off.
    #[error("cluster: {0}")]
    Lost(String),
    /// The state is no longer finite.
    #[error(
        "the run diverged: {field} of {} is {value} after step {step}; a smaller time step or softer parameters may help",
        named(*vertex, *is_cell, *place)
    )]
    Diverged {
        /// The vertex, or cell, as the mesh numbers it.
        vertex: u32,
        /// Whether it is a cell, of a [field of cells](crate::Program::of_cells).
        is_cell: bool,
        /// Where the mesh has the vertex, in m; none of what is beside it.
        place: Option<[f64; 3]>,
        /// The step that produced it, counted from 1.
        step: u64,
        /// The part of the state.
        field: String,
        /// The value: infinite or NaN.
        value: f64,
    },
    /// The state of an element that is projected is no longer finite.
    #[error("the run diverged: {field} of element {element} of star {star} is {value} after step {step}")]
    Element {
        /// The star.
        star: String,
        /// The element, in the order in which they were added.
        element: u32,
        /// The step that produced it, counted from 1.
        step: u64,
        /// The part of its state.
        field: String,
        /// The value: infinite or NaN.
        value: f64,
    },
    /// A global is no longer finite.
    #[error("the run diverged: global {name} is {value} after step {step}; guard quotients whose divisor may vanish")]
    Global {
        /// Its name.
        name: String,
        /// The step that produced it, counted from 1.
        step: u64,
        /// The value: infinite or NaN.
        value: f64,
    },
    /// A kernel panicked in the middle of a step, so the state is neither old nor new.
    #[error("a kernel panicked in step {step} and left the state half updated: restore a saved one")]
    Poisoned {
        /// The step, counted from 1.
        step: u64,
    },
    /// A copy of an ensemble failed; the others went on.
    #[error("copy {copy}: {error}")]
    Copy {
        /// The copy, counted from 0.
        copy: usize,
        /// What became of it.
        #[source]
        error: Box<Error>,
    },
    /// Two runs that must agree do not.
    #[error("{field}[{component}] of vertex {vertex} differs after step {step}: {left:e} here, {right:e} there")]
    Mismatch {
        /// The vertex, as the mesh numbers it.
        vertex: u32,
        /// The step after which they were compared, counted from 1.
        step: u64,
        /// The part of the state.
        field: String,
        /// The component of that part.
        component: usize,
        /// The value of the one.
        left: f64,
        /// The value of the other.
        right: f64,
    },
    /// Two runs that must agree do not in the state of an element that is projected.
    #[error("{field} of element {element} of star {star} differs after step {step}: {left:e} here, {right:e} there")]
    ElementMismatch {
        /// The star.
        star: String,
        /// The element, in the order in which they were added.
        element: u32,
        /// The step after which they were compared, counted from 1.
        step: u64,
        /// The part of its state.
        field: String,
        /// The value of the one.
        left: f64,
        /// The value of the other.
        right: f64,
    },
}

/// What messages call a vertex, or a cell.
pub(crate) fn named(vertex: u32, is_cell: bool, place: Option<[f64; 3]>) -> String {
    let of = if is_cell { "cell" } else { "vertex" };
    // As many digits as help to find it.
    place
        .map(|place| place.map(|x| x as f32))
        .map_or(format!("{of} {vertex}"), |[x, y, z]| format!("{of} {vertex} at ({x}, {y}, {z})"))
}

/// As it is displayed: what `main` returns is printed so.
impl fmt::Debug for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl From<meshweft_checkpoint::Error> for Error {
    fn from(error: meshweft_checkpoint::Error) -> Error {
        match error {
            meshweft_checkpoint::Error::Write { .. } => Error::Unsaved(error),
            _ => Error::Checkpoint(error),
        }
    }
}

impl From<meshweft_schedule::Error> for Error {
    fn from(error: meshweft_schedule::Error) -> Error {
        match error {
            meshweft_schedule::Error::Mesh(error) => Error::Mesh(error),
            meshweft_schedule::Error::Invalid(what) => Error::Invalid(what),
            meshweft_schedule::Error::Internal(what) => Error::Internal(what),
            // The enum may grow.
            other => Error::Invalid(other.to_string()),
        }
    }
}

#[cfg(feature = "cluster")]
impl From<meshweft_net::Error> for Error {
    fn from(error: meshweft_net::Error) -> Error {
        match error {
            meshweft_net::Error::Invalid(what) => Error::Invalid(what),
            meshweft_net::Error::Secret(what) | meshweft_net::Error::Hosts(what) => Error::Cluster(what),
            meshweft_net::Error::Internal(what) => Error::Internal(what),
            // The enum may grow.
            other => Error::Cluster(other.to_string()),
        }
    }
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "cluster")]
    use meshweft_net::Error as Net;
    use meshweft_schedule::Error as Schedule;

    #[test]
    fn errors_of_orders_say_the_same_as_errors_of_the_runtime() {
        for make in [Schedule::Invalid as fn(String) -> Schedule, Schedule::Internal] {
            let error = make("a task holds at least one vertex".into());
            let said = error.to_string();
            assert_eq!(Error::from(error).to_string(), said);
        }
    }

    #[test]
    #[cfg(feature = "cluster")]
    fn errors_of_hosts_say_the_same_as_errors_of_the_runtime() {
        let makers: [fn(String) -> Net; 4] = [Net::Invalid, Net::Secret, Net::Hosts, Net::Internal];
        for make in makers {
            let error = make("3 of 4 workers joined".into());
            let said = error.to_string();
            assert_eq!(Error::from(error).to_string(), said);
        }
    }
}
