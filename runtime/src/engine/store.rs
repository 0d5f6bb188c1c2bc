//! What has the state of all vertices that are here.

use crate::error::Result;
use crate::layout::{View, ViewMut};
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
    fn change(&mut self, change: &mut dyn FnMut(ViewMut<'_, T>)) -> Result<()>;

    /// Does `work(i)` for all `i` below `count`, in any order, on as many threads as it has. `kind` tells it from other work.
    fn each(&mut self, _kind: u64, count: usize, work: Arc<dyn Fn(usize) + Send + Sync>) {
        (0..count).for_each(|i| work(i));
    }
}
