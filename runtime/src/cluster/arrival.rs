//! When messages of values were taken in, for the timeline.

use super::values;
use crate::engine::{NETWORK, Timeline, What};
use meshweft_net::Host;
use std::sync::Arc;

/// A message of values that is taken in.
pub(super) struct Arrival<'a>(Option<(&'a Timeline, u64)>);

impl Arrival<'_> {
    /// It has come.
    pub(super) fn begin(timeline: Option<&Arc<Timeline>>) -> Arrival<'_> {
        Arrival(timeline.map(|timeline| (&**timeline, timeline.now())))
    }

    /// It was taken in: what has come is not packed.
    pub(super) fn end(self, from: Host, message: &[u8]) {
        let Some((timeline, start)) = self.0 else { return };
        let task = values::tasks(message).next().flatten();
        if let (Some(round), Some((task, _))) = (values::epoch(message), task) {
            timeline.add(NETWORK, What::Receive { from, task }, round, start);
        }
    }
}
