//! What has the state of all vertices that are here.

use crate::error::Result;
use crate::layout::{Edit, View};
use crate::number::Number;
use std::sync::Arc;

/// Has the state of all vertices that are here, and threads to work on it.
pub(crate) trait Store<T: Number>: Send + Sync {
    /// The state.
    ///
    /// # Errors
    /// The device was lost.
    fn view(&self) -> Result<View<'_, T>>;

    /// Changes the state.
    ///
    /// # Errors
    /// The device was lost.
    fn change(&mut self, change: &mut Edit<T>) -> Result<()>;

    /// The state of the elements of a star that are projected.
    fn elements(&self, _star: usize) -> View<'_, T> {
        unreachable!("a backend that projects no elements is refused when a simulation is built");
    }

    /// Changes it.
    fn change_elements(&mut self, _star: usize, _change: &mut Edit<T>) {
        unreachable!("a backend that projects no elements is refused when a simulation is built");
    }

    /// Does `work(i)` for all `i` below `count`, in any order, on as many threads as it has. `kind` tells it from other work.
    fn each(&mut self, _kind: u64, count: usize, work: Arc<dyn Fn(usize) + Send + Sync>) {
        (0..count).for_each(|i| work(i));
    }
}
