//! The threads that meshes are set up with.

use crate::error::{Error, Result};

/// Starts the threads that meshes and simulations are set up with, Rayon's global pool, unless they have been started. No result
/// depends on their number, which `RAYON_NUM_THREADS` sets.
///
/// Without a call they start when they are first needed; then what goes wrong is a panic, here it is an error.
///
/// # Errors
/// A number of threads that no machine has, or that the system refuses.
///
/// ```
/// meshweft_mesh::start_threads()?;
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn start_threads() -> Result<()> {
    /// More are a slip of the keyboard; each costs a stack.
    const MOST: usize = 4096;
    let wanted = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.trim().parse::<usize>().ok());
    if let Some(wanted) = wanted.filter(|&wanted| wanted > MOST) {
        return Err(Error::Invalid(format!("RAYON_NUM_THREADS is {wanted}, at most {MOST} make sense: unset it")));
    }
    match rayon::ThreadPoolBuilder::new().build_global() {
        Ok(()) => Ok(()),
        // The pool is there already; anything else has a cause.
        Err(error) if std::error::Error::source(&error).is_none() => Ok(()),
        Err(error) => Err(Error::Invalid(format!(
            "cannot start the threads of the set-up: {error}; set RAYON_NUM_THREADS to fewer, or raise the limit of processes"
        ))),
    }
}
