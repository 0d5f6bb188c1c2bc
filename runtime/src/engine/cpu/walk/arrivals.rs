//! Takes the values of ghosts into a walk.

use super::Walk;
use crate::engine::cpu::border::{Arrivals, Lag};
use crate::engine::cpu::ground::Ground;
use crate::error::{Error, Result};
use crate::number::Number;
use std::ops::Range;

impl<T: Number> Arrivals for Walk<T> {
    fn tasks(&self) -> Range<u32> {
        let Ground { domain, first, .. } = &*self.course.ground;
        *first..first + domain.graph.len() as u32
    }

    fn is_due(&self, t: u32, epoch: u64) -> bool {
        let (course, tasks) = (&self.course, self.tasks());
        let t = t.wrapping_sub(tasks.start);
        t < tasks.len() as u32
            && course.legs.epoch(epoch).is_some_and(|before| {
                // While this holds no own task reads or writes what the ghost holds.
                course.ground.domain.is_ghost(t) && course.is_ready(course.leg(before).pass.rule, t, before)
            })
    }

    fn arrive(&self, t: u32, epoch: u64, bits: &[u8]) -> Result<()> {
        let Ground { domain, memory, vertices, .. } = &*self.course.ground;
        let refuse = |why: &str| Err(Error::Cluster(format!("ghost {t} cannot advance to epoch {epoch}: {why}")));
        let due = self.course.legs.epoch(epoch).filter(|_| self.is_due(t, epoch));
        let (Some(share), Some(before)) = (domain.share.as_ref(), due) else {
            return refuse("that is not due");
        };
        let t = t - self.tasks().start;
        let (leg, ghost) = (self.course.leg(before), &share.ghosts[t as usize]);
        let slots = ghost.start as usize..ghost.end as usize;
        let (from, to) = (leg.source(before), leg.source(before + 1));
        let unpacked = match vertices {
            None => memory.unpack(slots.clone(), from, to, bits),
            Some(vertices) => vertices.unpack_each(&share.corners[slots.clone()], to, bits),
        };
        let has_changed = match unpacked {
            Some(has_changed) => has_changed,
            // Its host says that nothing has changed.
            None if bits.is_empty() && (leg.pass.is_quiet() || leg.pass.leaves_out(domain, t)) => {
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
        let (moves, mut lags) = self.course.lags();
        let first = self.tasks().start;
        lags.iter_mut().for_each(|lag| (lag.task, lag.of) = (lag.task + first, lag.of + first));
        (moves, lags)
    }
}
