//! Takes the values of ghosts into a walk.

use super::Walk;
use crate::engine::cpu::border::{Arrivals, Lag};
use crate::engine::cpu::ground::Ground;
use crate::error::{Error, Result};
use crate::number::Number;

impl<T: Number> Arrivals for Walk<T> {
    fn is_due(&self, t: u32, epoch: u64) -> bool {
        let course = &self.course;
        course.legs.epoch(epoch).is_some_and(|before| {
            // While this holds no own task reads or writes what the ghost holds.
            course.ground.domain.is_ghost(t) && course.is_ready(course.leg(before).pass.rule, t, before)
        })
    }

    fn arrive(&self, t: u32, epoch: u64, bits: &[u8]) -> Result<()> {
        let Ground { domain, memory, .. } = &*self.course.ground;
        let refuse = |why: &str| Err(Error::Cluster(format!("ghost {t} cannot advance to epoch {epoch}: {why}")));
        let due = self.course.legs.epoch(epoch).filter(|_| self.is_due(t, epoch));
        let (Some(share), Some(before)) = (domain.share.as_ref(), due) else {
            return refuse("that is not due");
        };
        let (leg, ghost) = (self.course.leg(before), &share.ghosts[t as usize]);
        let slots = ghost.start as usize..ghost.end as usize;
        let (from, to) = (leg.source(before), leg.source(before + 1));
        let has_changed = match memory.unpack(slots.clone(), from, to, bits) {
            Some(has_changed) => has_changed,
            // Its host says that nothing has changed.
            None if bits.is_empty() && leg.pass.is_quiet() => {
                memory.keep(slots, from, to);
                false
            }
            None if bits.is_empty() => return refuse("no values come with it, and its kernel is not quiet"),
            None => return refuse(&format!("its values are not {} bytes", bits.len())),
        };
        if let Some(watch) = &self.watch {
            watch.note(leg.number, t, before, has_changed);
        }
        self.course.advance(t, before);
        Ok(())
    }

    fn lags(&self) -> (u64, Vec<Lag>) {
        self.course.lags()
    }
}
