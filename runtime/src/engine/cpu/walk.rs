//! Walks the task graph through several rounds and stages without a barrier.
//!
//! Each task has an epoch: how many rounds it has done, in all stages. It may do the next one when no neighbor lags behind
//! what the stage's rule asks for ([`is_ready`](meshweft_schedule::is_ready)). Nothing else is waited for, so tasks far apart may be
//! rounds, and stages, apart. How ready tasks are found is a policy:
//!
//! - In **sequences**: each thread has tasks of its own, the same in every round, sorted by how long a chain of predecessors a
//!   task has, then by number. It draws them in that order once they are ready, and takes from another thread when its own
//!   next one is not ready for a while. So memory is read in order, and what a task wrote in the last round is still in the
//!   caches of the core that did: both were measured to be worth more than taking whatever became ready last
//!   (docs/perf/decisions/threads.md).
//! - In **rounds**: each thread does whole rounds, a few tasks behind the thread that does the round before. For orders whose
//!   neighbors are never far apart, such as levels: a wavefront of those has no work for two, but rounds have.
//! - In **wavefronts**: one sequence for all, in which the tasks of a wavefront have no edge between them; one may begin when all
//!   tasks before it are done. Two counters instead of an epoch a task: cheaper where wavefronts are many and small.
//!
//! A task is drawn only when it is ready, and of all that are left the first by round, chain and number is always ready or
//! running, and the next of its sequence: some thread finds it, whatever the graph and however few threads.
//!
//! [`Policy`] has the sequences, [`Course`] draws from them and knows how far tasks are; `boundary.rs` is what other hosts are told,
//! `arrivals.rs` what they tell.

mod arrivals;
mod boundary;
mod course;

use super::border::Outbox;
use super::ground::Ground;
use super::measures::Followers;
use super::quiet::Watch;
use super::team::{Job, Longest, Wait};
use super::tile::Visit;
use crate::engine::code::{Code, Pass};
use crate::engine::legs::{Leg, Legs};
use crate::engine::reduce::Reduction;
use crate::engine::timeline::Pen;
use crate::number::Number;
use boundary::Before;
use course::{Course, Draw};
use crossbeam_utils::CachePadded;
use meshweft_schedule::Rule;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a worker looks for its own next task before it helps another: a few microseconds. What it takes from
/// another is not in its caches, and what it leaves may soon be ready.
const PATIENCE: u32 = 200;

/// Some passes over all tasks.
pub(super) struct Walk<T> {
    course: Course<T>,
    /// Of walks in which some task may have nothing to do.
    watch: Option<Watch>,
    /// What is measured of vertices after their last round.
    then: Option<Followers<T>>,
    /// Which workers may have a task in their hands.
    busy: Vec<CachePadded<AtomicBool>>,
    /// The first pass some update of which was not finite.
    non_finite: AtomicUsize,
    stopped: AtomicBool,
    waited: Longest,
    spin: Duration,
}

impl<T: Number> Walk<T> {
    /// `then`: what is measured of vertices after their last round. `threads` may take part; each spins for `spin` before it sleeps.
    pub(super) fn new(
        ground: Arc<Ground<T>>,
        (legs, watch): (Legs<T>, Option<Watch>),
        then: Option<Followers<T>>,
        threads: usize,
        spin: Duration,
    ) -> Walk<T> {
        ground.memory.forget_marks();
        Walk {
            course: Course::new(ground, legs),
            watch,
            then,
            busy: (0..threads).map(|_| CachePadded::new(AtomicBool::new(false))).collect(),
            non_finite: AtomicUsize::new(usize::MAX),
            stopped: AtomicBool::new(false),
            waited: Longest::default(),
            spin,
        }
    }

    /// Which array holds the shared state after it.
    pub(super) fn target(&self) -> usize {
        self.course.legs.target()
    }

    /// Rounds of all walks up to its end.
    pub(super) fn end(&self) -> u64 {
        self.course.legs.end()
    }

    /// The first pass some update of which was not finite.
    pub(super) fn non_finite(&self) -> Option<usize> {
        Some(self.non_finite.load(Ordering::Relaxed)).filter(|&pass| pass != usize::MAX)
    }

    /// What was measured, by kernel.
    pub(super) fn measured(&self) -> Vec<(usize, Reduction)> {
        self.then.as_ref().map_or_else(Vec::new, Followers::found)
    }

    /// Does all of it on the calling thread: the tasks in order need no waiting.
    pub(super) fn alone(&self) {
        let (course, tasks) = (&self.course, self.course.tasks() as u32);
        let mut pen = self.pen(0);
        for leg in course.legs.iter() {
            for epoch in leg.first..leg.first + leg.pass.rounds {
                for i in 0..tasks {
                    let t = if leg.is_backward() { tasks - 1 - i } else { i };
                    self.visit(leg, t, epoch);
                    self.measure(t, epoch);
                }
                pen.updated(leg.pass.kernel, tasks, course.round(epoch));
            }
        }
    }

    /// What a thread writes down what it does with.
    fn pen(&self, worker: u32) -> Pen<'_> {
        Pen::of(self.course.ground.timeline.as_deref(), worker)
    }

    /// Updates a task, unless it has nothing to do. Other hosts need not be told again what is as it was before.
    fn visit(&self, leg: &Leg<T>, t: u32, epoch: u32) -> Before {
        let Ground { domain, memory, audit, .. } = &*self.course.ground;
        if leg.pass.leaves_out(domain, t) {
            // Maps are not watched.
            if let Some(audit) = audit.as_ref().filter(|_| leg.pass.rule != Rule::Alone) {
                let slots = domain.slots_of_tiles(domain.tiles_of(t as usize..t as usize + 1));
                audit.left_out(leg.pass.rule, domain.places(slots));
            }
            return Before::Same;
        }
        let Some(watch) = &self.watch else {
            self.task(leg, t, epoch);
            return Before::Unknown;
        };
        let (graph, rule) = (&domain.graph, leg.pass.rule);
        let slots = domain.slots_of_tiles(domain.tiles_of(t as usize..t as usize + 1));
        if watch.is_quiet(leg.number, graph, t, rule) {
            watch.leave_out(domain.places(slots.clone()).count());
            if let Some(audit) = audit {
                audit.left_out(rule, domain.places(slots));
            }
            return Before::Same;
        }
        let before = memory.copy(slots.clone(), leg.source(epoch));
        self.task(leg, t, epoch);
        watch.note(leg.number, t, epoch, before != memory.copy(slots.clone(), leg.source(epoch + 1)));
        let [shared, _] = before;
        if leg.pass.is_quiet() { Before::Bits(slots.start, shared) } else { Before::Unknown }
    }

    #[expect(unsafe_code, reason = "opens the state for what the schedule allows")]
    fn task(&self, leg: &Leg<T>, t: u32, epoch: u32) {
        let Ground { domain, memory, vertices, audit, .. } = &*self.course.ground;
        let Pass { code, rule, uniform, before, .. } = &leg.pass;
        let touches = code.touches();
        if matches!(code, Code::Tell) {
            return;
        }
        let (Code::Vertex { tile, .. } | Code::Project { tile, .. }) = code else {
            unreachable!("only updates and projections change vertices")
        };
        let source = leg.source(epoch);
        let (rule, round) = (*rule, before + epoch - leg.first);
        // SAFETY: this thread runs the task, alone or after `is_ready` held: no neighbor runs, or it reads the array that is not
        // written.
        let cells = unsafe { memory.open(source, rule != Rule::AtOnce) };
        // SAFETY: as above; elements whose corners this one has belong to the task or to its neighbors.
        let vertices = vertices.as_ref().map_or(cells, |vertices| unsafe { vertices.open(source, true) });
        let visit =
            Visit { domain, cells, vertices, uniform, audit: audit.as_deref(), rule, round, touches, sees: true };
        let tiles = &domain.tiles[domain.tiles_of(t as usize..t as usize + 1)];
        let mut finite = true;
        match leg.is_backward() {
            false => tiles.iter().for_each(|one| finite &= tile(&visit, one)),
            true => tiles.iter().rev().for_each(|one| finite &= tile(&visit, one)),
        }
        if !finite {
            self.non_finite.fetch_min(leg.number, Ordering::Relaxed);
        }
    }

    /// A task of the own sequences, or of another thread's if those have none for a while, its epoch, and whether none was ready at
    /// first; none after the last.
    fn next(&self, own: usize, outbox: &mut Outbox) -> Option<(u32, u32, bool)> {
        let (mut wait, mut turns) = (Wait::new(self.spin), 0);
        let (sequences, each) = (self.course.sequences(), self.course.ground.policy.each());
        let first = own * each % sequences;
        while !self.is_over() {
            let mut ended = true;
            for s in (0..sequences).map(|k| (first + k) % sequences) {
                // The tasks of a thread that has not begun yet are there to be taken.
                let is_its_own = s / each != first / each && self.busy[s / each].load(Ordering::Relaxed);
                if !ended && is_its_own && turns < PATIENCE {
                    continue;
                }
                match self.course.draw(s) {
                    Draw::Task(t, epoch) => {
                        self.post(outbox, Some((t, epoch)));
                        if let Some(border) = &self.course.ground.border {
                            border.look(outbox);
                        }
                        return Some((t, epoch, turns > 0));
                    }
                    Draw::Wait => ended = false,
                    Draw::End => {}
                }
            }
            self.post(outbox, None);
            if ended {
                return None;
            }
            turns += 1;
            self.rest(&mut wait);
        }
        None
    }

    /// Whether nothing is to be waited for any more: a task panicked, or another host was lost.
    fn is_over(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
            || self.course.ground.border.as_ref().is_some_and(|border| border.is_cut_off())
    }

    /// Waits a little for another thread, or another host.
    fn rest(&self, wait: &mut Wait) {
        match &self.course.ground.border {
            Some(border) => border.rest(),
            None => self.waited.rest(wait),
        }
    }

    /// Measures what is to be measured of a task, if that was its last round.
    fn measure(&self, t: u32, epoch: u32) {
        if let Some(then) = self.then.as_ref().filter(|_| epoch + 1 == self.course.legs.rounds) {
            then.come(t);
        }
    }

    /// All tasks are drawn: waits until they are done too. Not for the workers, who may only just have begun.
    fn wait_for_the_last(&self) {
        let (mut wait, mut seen) = (Wait::new(self.spin), 0);
        while !self.is_over() {
            if self.course.is_done(&mut seen) {
                return;
            }
            self.rest(&mut wait);
        }
        self.wait_for_the_others();
    }

    /// The walk was stopped, or is done: waits until no helper has a task in hand.
    fn wait_for_the_others(&self) {
        let mut wait = Wait::new(self.spin);
        while self.busy[1..].iter().any(|busy| busy.load(Ordering::SeqCst)) {
            self.waited.rest(&mut wait);
        }
    }
}

impl<T: Number> Job for Walk<T> {
    fn work(&self, worker: usize) {
        // A panic of a task must not leave the other workers waiting for it.
        let _stop = StopOnPanic(self, worker);
        // Before the first draw: a thread that stops the walk waits for those that may have a task in their hands.
        self.busy[worker].store(true, Ordering::SeqCst);
        let (mut outbox, mut pen) = (Outbox::default(), self.pen(worker as u32));
        while let Some((t, epoch, has_waited)) = self.next(worker, &mut outbox) {
            let leg = self.course.leg(epoch);
            pen.found(has_waited);
            let before = self.visit(leg, t, epoch);
            if !matches!(leg.pass.code, Code::Tell) {
                pen.updated(leg.pass.kernel, 1, self.course.round(epoch));
            }
            self.pack(t, epoch, &before, &mut outbox);
            self.measure(t, epoch);
            self.course.advance(t, epoch);
            if let Some(name) = pen.is_used().then(|| self.name_of_read(t)).flatten() {
                pen.sent(name, self.course.round(epoch));
            }
        }
        // Helpers hand in what they wrote before they are seen to be done.
        let pen = (worker == 0).then_some(pen);
        self.busy[worker].store(false, Ordering::SeqCst);
        let Some(mut pen) = pen else { return };
        self.wait_for_the_last();
        if pen.is_used() {
            pen.found(true);
            self.wait_for_the_others();
        }
    }

    fn longest_wait(&self) -> Duration {
        self.waited.get()
    }

    fn has_failed(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }
}

struct StopOnPanic<'a, T: Number>(&'a Walk<T>, usize);

impl<T: Number> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let StopOnPanic(walk, worker) = *self;
            walk.stopped.store(true, Ordering::SeqCst);
            walk.busy[worker].store(false, Ordering::SeqCst);
            if worker == 0 {
                walk.wait_for_the_others();
            }
        }
    }
}
