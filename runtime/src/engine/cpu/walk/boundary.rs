//! What other hosts are told of a task at the border, and when.

use super::Walk;
use crate::engine::cpu::border::Outbox;
use crate::engine::cpu::ground::Ground;
use crate::number::Number;

/// What is known of the shared state of a task before its round, once that is done.
pub(super) enum Before {
    /// Nothing: hosts that read it are sent all of it.
    Unknown,
    /// It was the same.
    Same,
    /// The bits of it, from the first slot of the task on.
    Bits(usize, Vec<u8>),
}

impl<T: Number> Walk<T> {
    /// Puts what other hosts are to know of a task into an outbox.
    #[inline]
    pub(super) fn pack(&self, t: u32, epoch: u32, before: &Before, outbox: &mut Outbox) {
        let Ground { memory, vertices, border: Some(border), first: first_task, .. } = &*self.course.ground else {
            return;
        };
        let memory = vertices.as_ref().unwrap_or(memory);
        let which = self.course.leg(epoch).source(epoch + 1);
        let gather = |slots: &[u32], bits: &mut Vec<u8>| {
            let start = bits.len();
            match before {
                Before::Same => {}
                Before::Unknown => memory.pack(slots, which, bits),
                Before::Bits(first, copy) => {
                    memory.pack(slots, which, bits);
                    if memory.is_same(slots, &bits[start..], *first, copy) {
                        bits.truncate(start);
                    }
                }
            }
        };
        border.pack(outbox, first_task + t, self.course.round(epoch), &gather);
    }

    /// Sends what waits to be sent; it may wait for more if the thread goes on with a task that adds to it.
    #[inline]
    pub(super) fn post(&self, outbox: &mut Outbox, next: Option<(u32, u32)>) {
        let Some(border) = &self.course.ground.border else { return };
        let adds = next.is_some_and(|(t, epoch)| {
            border.is_read(self.course.ground.first + t) && self.course.round(epoch) == outbox.epoch
        });
        border.post(outbox, adds);
    }

    /// The number in the whole mesh of a task that other hosts read.
    pub(super) fn name_of_read(&self, t: u32) -> Option<u32> {
        let Ground { domain, border, first, .. } = &*self.course.ground;
        let is_read = border.as_ref().is_some_and(|border| border.is_read(first + t));
        is_read.then(|| domain.share.as_ref().map_or(t, |share| share.names[t as usize]))
    }
}
