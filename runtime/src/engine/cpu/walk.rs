//! Walks the task graph through several rounds and stages without a barrier.
//!
//! Each task has an epoch: how many rounds it has done, in all stages. It may do the next one when no neighbor lags behind
//! what the stage's rule asks for ([`is_ready`]). Nothing else is waited for, so tasks far apart may be rounds, and stages,
//! apart. How ready tasks are found is a policy:
//!
//! - In **sequences**: each thread has tasks of its own, the same in every round, sorted by how long a chain of predecessors a
//!   task has, then by number. It draws them in that order once they are ready, and takes from another thread when its own
//!   next one is not ready for a while. So memory is read in order, and what a task wrote in the last round is still in the
//!   caches of the core that did: both were measured to be worth more than taking whatever became ready last
//!   (docs/perf/decisions/threads.md).
//! - In **rounds**: each thread does whole rounds, a few tasks behind the thread that does the round before. For orders whose
//!   neighbors are never far apart, such as levels: a wave of those has no work for two, but rounds have.
//! - In **waves**: one sequence for all, in which the tasks of a wave have no edge between them; a wave may begin when all
//!   tasks before it are done. Two counters instead of an epoch a task: cheaper where waves are many and small.
//!
//! A task is drawn only when it is ready, and of all that are left the first by round, chain and number is always ready or
//! running, and the next of its sequence: some thread finds it, whatever the graph and however few threads.

use super::border::{Arrivals, Border, Haste, Lag, Outbox};
use super::cells::Memory;
use super::measures::Followers;
use super::quiet::Watch;
use super::team::{Job, Longest, Wait};
use super::tile::Visit;
use crate::engine::code::{Code, Pass};
use crate::engine::legs::{Leg, Legs};
use crate::engine::reduce::Reduction;
use crate::engine::{Audit, Timeline};
use crate::error::{Error, Result};
use crate::layout::Domain;
use crate::number::Number;
use crate::schedule::{Rule, is_ready};
use crossbeam_utils::CachePadded;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a worker looks for its own next task before it helps another: a few microseconds. What it takes from
/// another is not in its caches, and what it leaves may soon be ready.
const PATIENCE: u32 = 200;
/// Vertices of a task, in the mean, from which it is worth a neighborhood of its own.
const LARGE: usize = 1024;

/// How ready tasks are found.
pub(super) enum Policy {
    /// Tasks of each thread: so many sequences each, the one to prefer first.
    Sequences { tasks: Vec<Vec<u32>>, each: usize },
    /// All tasks in every so-and-so-many-th round, for so many threads.
    Rounds(usize),
    /// For each task, where its wave starts and ends.
    Waves(Vec<Range<u32>>),
}

impl Policy {
    pub(super) fn new<T: Number>(domain: &Domain<T>, threads: usize) -> Policy {
        if domain.share.is_some() {
            return Policy::sequences(domain, threads);
        }
        let (graph, tasks) = (&domain.graph, domain.graph.len());
        let waves = domain.waves();
        let reach = |t: u32| graph.neighbors(t).last().map_or(0, |&u| u.saturating_sub(t) as usize);
        let farthest = (0..tasks as u32).map(reach).max().unwrap_or(0);
        // A thread begins its round when the one before is that many tasks ahead.
        if 4 * threads * farthest <= tasks && !domain.is_double_buffered() {
            return Policy::Rounds(threads);
        }
        // Blocks are few a wave; pieces of a color or level are many.
        if domain.slots() / tasks.max(1) >= LARGE || waves.len() > tasks / 4 {
            return Policy::sequences(domain, threads);
        }
        Policy::waves(domain)
    }

    /// Tasks for each of the threads.
    pub(super) fn sequences<T: Number>(domain: &Domain<T>, threads: usize) -> Policy {
        let tasks = sequences(domain, threads);
        Policy::Sequences { each: tasks.len() / threads, tasks }
    }

    /// Wave after wave.
    pub(super) fn waves<T: Number>(domain: &Domain<T>) -> Policy {
        Policy::Waves(domain.waves().windows(2).flat_map(|w| (w[0]..w[1]).map(move |_| w[0]..w[1])).collect())
    }

    fn count(&self) -> usize {
        match self {
            Policy::Sequences { tasks, .. } => tasks.len(),
            Policy::Rounds(threads) => *threads,
            Policy::Waves(_) => 1,
        }
    }

    /// Sequences of a thread.
    fn each(&self) -> usize {
        if let Policy::Sequences { each, .. } = self { *each } else { 1 }
    }
}

/// Tasks for each thread. All are sorted by the longest chain of predecessors, then by number, and the threads share the
/// tasks of each length of chain in equal runs. Of a share of a mesh each thread has two sequences: tasks at the border, which it
/// prefers, so that what they come to is on its way early, and tasks inside, for while those wait for other hosts.
///
/// So every thread has the same tasks in every round, whose state its caches may still hold, and, where numbers follow a
/// curve, has them in one region. Chains are those of the whole mesh, so of all tasks of all hosts that are left the first by
/// round and length of chain can run: nobody waits in a ring.
fn sequences<T: Number>(domain: &Domain<T>, threads: usize) -> Vec<Vec<u32>> {
    let depth = |t: u32| domain.depths[t as usize];
    let is_inside = |t: u32| domain.graph.neighbors(t).iter().all(|&u| !domain.is_ghost(u));
    let mut own: Vec<u32> = (0..domain.graph.len() as u32).filter(|&t| !domain.is_ghost(t)).collect();
    own.sort_by_cached_key(|&t| (depth(t), t));
    let (inside, border): (Vec<u32>, Vec<u32>) = own.into_iter().partition(|&t| is_inside(t));
    let kinds = if domain.share.is_some() { vec![border, inside] } else { vec![inside] };
    let of_thread = |tasks: &[u32], i: usize| {
        let same = tasks.chunk_by(|&t, &u| depth(t) == depth(u));
        same.flat_map(|same| &same[same.len() * i / threads..same.len() * (i + 1) / threads]).copied().collect()
    };
    (0..threads).flat_map(|i| kinds.iter().map(move |tasks| of_thread(tasks, i))).collect()
}

/// What a walk works on.
pub(super) struct Ground<T> {
    pub(super) domain: Arc<Domain<T>>,
    pub(super) memory: Memory<T>,
    pub(super) policy: Policy,
    pub(super) audit: Option<Arc<Audit>>,
    /// What carries values between hosts, if the domain is a share.
    pub(super) border: Option<Arc<dyn Border>>,
    /// Where threads write down what they do, if somebody wants to know.
    pub(super) timeline: Option<Arc<Timeline>>,
}

/// Some passes over all tasks.
pub(super) struct Walk<T> {
    ground: Arc<Ground<T>>,
    legs: Legs<T>,
    /// Of walks in which some task may have nothing to do.
    watch: Option<Watch>,
    /// What is measured of vertices after their last round.
    then: Option<Followers<T>>,
    /// Rounds that each task has done.
    epochs: Vec<AtomicU32>,
    /// How many tasks were drawn from each sequence, in all rounds.
    drawn: Vec<CachePadded<AtomicUsize>>,
    /// Tasks done, in all rounds; of waves alone.
    done: CachePadded<AtomicUsize>,
    /// Which workers may have a task in their hands.
    busy: Vec<CachePadded<AtomicBool>>,
    /// The first pass some update of which was not finite.
    spoilt: AtomicUsize,
    stopped: AtomicBool,
    waited: Longest,
    spin: Duration,
}

/// What is known of the shared state of a task before its round, once that is done.
enum Before {
    /// Nothing: hosts that read it are sent all of it.
    Unknown,
    /// It was the same.
    Same,
    /// The bits of it, from the first slot of the task on.
    Bits(usize, Vec<u8>),
}

/// What a sequence has to give.
enum Draw {
    /// A task that is ready, and its epoch.
    Task(u32, u32),
    /// The next task is not ready.
    Wait,
    End,
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
        let tasks = ground.domain.graph.len();
        Walk {
            legs,
            watch,
            then,
            epochs: (0..tasks).map(|_| AtomicU32::new(0)).collect(),
            drawn: (0..ground.policy.count()).map(|_| CachePadded::new(AtomicUsize::new(0))).collect(),
            done: CachePadded::new(AtomicUsize::new(0)),
            busy: (0..threads).map(|_| CachePadded::new(AtomicBool::new(false))).collect(),
            spoilt: AtomicUsize::new(usize::MAX),
            stopped: AtomicBool::new(false),
            waited: Longest::default(),
            spin,
            ground,
        }
    }

    /// Which array holds the shared state after it.
    pub(super) fn target(&self) -> usize {
        self.legs.target()
    }

    /// Rounds of all walks up to its end.
    pub(super) fn end(&self) -> u64 {
        self.legs.end()
    }

    /// The first pass some update of which was not finite.
    pub(super) fn spoilt(&self) -> Option<usize> {
        Some(self.spoilt.load(Ordering::Relaxed)).filter(|&pass| pass != usize::MAX)
    }

    /// What was measured, by kernel.
    pub(super) fn measured(&self) -> Vec<(usize, Reduction)> {
        self.then.as_ref().map_or_else(Vec::new, Followers::found)
    }

    /// Does all of it on the calling thread: the tasks in order need no waiting.
    pub(super) fn alone(&self) {
        let tasks = self.epochs.len() as u32;
        let mut pen = self.ground.timeline.as_deref().map(|timeline| timeline.pen(0));
        for leg in self.legs.iter() {
            for epoch in leg.first..leg.first + leg.pass.rounds {
                for i in 0..tasks {
                    let t = if leg.is_backward() { tasks - 1 - i } else { i };
                    self.visit(leg, t, epoch);
                    self.measure(t, epoch);
                }
                if let Some(pen) = &mut pen {
                    pen.updated(leg.pass.kernel, tasks, self.round(epoch));
                }
            }
        }
    }

    fn round(&self, epoch: u32) -> u64 {
        self.legs.round(epoch)
    }

    fn leg(&self, epoch: u32) -> &Leg<T> {
        self.legs.at(epoch)
    }

    /// Updates a task, unless it has nothing to do. Other hosts need not be told again what is as it was before.
    fn visit(&self, leg: &Leg<T>, t: u32, epoch: u32) -> Before {
        let Some(watch) = &self.watch else {
            self.task(leg, t, epoch);
            return Before::Unknown;
        };
        let Ground { domain, memory, audit, .. } = &*self.ground;
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
        let Ground { domain, memory, audit, .. } = &*self.ground;
        let Pass { code, rule, uniform, .. } = &leg.pass;
        let Code::Vertex { tile, .. } = code else { unreachable!("only updates change vertices") };
        let tile = tile.at::<T>(domain.width);
        let source = leg.source(epoch);
        let (rule, round) = (*rule, epoch - leg.first);
        // SAFETY: this thread runs the task, and `is_ready` held: no neighbor runs, or it reads the array that is not written.
        let cells = unsafe { memory.open(source, rule != Rule::AtOnce) };
        let visit = Visit { domain, cells, uniform, audit: audit.as_deref(), rule, round, sees: true };
        let tiles = &domain.tiles[domain.tiles_of(t as usize..t as usize + 1)];
        let mut finite = true;
        match leg.is_backward() {
            false => tiles.iter().for_each(|one| finite &= tile(&visit, one)),
            true => tiles.iter().rev().for_each(|one| finite &= tile(&visit, one)),
        }
        if !finite {
            self.spoilt.fetch_min(leg.number, Ordering::Relaxed);
        }
    }

    /// A task of the own sequences, or of another thread's if those have none for a while, its epoch, and whether none was ready at
    /// first; none after the last.
    fn next(&self, own: usize, outbox: &mut Outbox) -> Option<(u32, u32, bool)> {
        let (mut wait, mut turns) = (Wait::new(self.spin), 0);
        let (sequences, each) = (self.drawn.len(), self.ground.policy.each());
        let first = own * each % sequences;
        while !self.is_over() {
            let mut ended = true;
            for s in (0..sequences).map(|k| (first + k) % sequences) {
                // What a thread that has not come yet was to do is there to be taken.
                let is_its_own = s / each != first / each && self.busy[s / each].load(Ordering::Relaxed);
                if !ended && is_its_own && turns < PATIENCE {
                    continue;
                }
                match self.draw(s) {
                    Draw::Task(t, epoch) => {
                        self.post(own, outbox, Some((t, epoch)));
                        return Some((t, epoch, turns > 0));
                    }
                    Draw::Wait => ended = false,
                    Draw::End => {}
                }
            }
            self.post(own, outbox, None);
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
        self.stopped.load(Ordering::SeqCst) || self.ground.border.as_ref().is_some_and(|border| border.is_cut_off())
    }

    /// Waits a little for another thread, or another host.
    fn rest(&self, wait: &mut Wait) {
        match &self.ground.border {
            Some(border) => border.rest(),
            None => self.waited.rest(wait),
        }
    }

    fn draw(&self, sequence: usize) -> Draw {
        let drawn = &self.drawn[sequence];
        // Its tasks in a round, the first of its rounds, and from one to the next.
        let (tasks, first, stride) = match &self.ground.policy {
            Policy::Sequences { tasks, .. } => (tasks[sequence].len(), 0, 1),
            Policy::Rounds(threads) => (self.epochs.len(), sequence, *threads),
            Policy::Waves(waves) => (waves.len(), 0, 1),
        };
        loop {
            let place = drawn.load(Ordering::Acquire);
            let Some(round) =
                place.checked_div(tasks).map(|n| first + stride * n).filter(|&n| n < self.legs.rounds as usize)
            else {
                return Draw::End;
            };
            let (i, epoch) = (place % tasks, round as u32);
            let leg = self.leg(epoch);
            let i = if leg.is_backward() { tasks - 1 - i } else { i };
            let (t, ready) = match &self.ground.policy {
                Policy::Sequences { tasks, .. } => {
                    let t = tasks[sequence][i];
                    (t, self.is_ready(leg.pass.rule, t, epoch))
                }
                Policy::Rounds(_) => (i as u32, self.is_ready(leg.pass.rule, i as u32, epoch)),
                Policy::Waves(waves) => {
                    // Tasks that are done by the time a wave begins.
                    let before = match leg.pass.rule {
                        Rule::InOrder => waves[i].start as usize,
                        Rule::Backward => tasks - waves[i].end as usize,
                        Rule::Alone | Rule::AtOnce => 0,
                    };
                    (i as u32, self.done.load(Ordering::Acquire) >= epoch as usize * tasks + before)
                }
            };
            if !ready {
                if drawn.load(Ordering::Relaxed) == place {
                    return Draw::Wait;
                }
            } else if drawn.compare_exchange(place, place + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Draw::Task(t, epoch);
            }
        }
    }

    fn is_ready(&self, rule: Rule, t: u32, epoch: u32) -> bool {
        let of = |u: u32| self.epochs[u as usize].load(Ordering::Acquire);
        of(t) == epoch && is_ready(&self.ground.domain.graph, t, rule, of)
    }

    fn finish(&self, t: u32, epoch: u32, before: &Before, outbox: &mut Outbox) {
        if let Some(border) = &self.ground.border {
            let (memory, which) = (&self.ground.memory, self.leg(epoch).source(epoch + 1));
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
            border.pack(outbox, t, self.round(epoch), &gather);
        }
        self.measure(t, epoch);
        self.advance(t, epoch);
    }

    /// Measures what is to be measured of a task, if that was its last round.
    fn measure(&self, t: u32, epoch: u32) {
        if let Some(then) = self.then.as_ref().filter(|_| epoch + 1 == self.legs.rounds) {
            then.come(t);
        }
    }

    /// Whether others read a task.
    fn is_read(&self, t: u32) -> bool {
        self.ground.border.as_ref().is_some_and(|border| border.is_read(t))
    }

    /// Sends what waits to be sent. It may wait for more where the thread goes on with a task that will add to it: for long if tasks at
    /// the border are ahead of those inside, so that nobody waits for them.
    fn post(&self, worker: usize, outbox: &mut Outbox, next: Option<(u32, u32)>) {
        let Some(border) = &self.ground.border else { return };
        let adds = next.is_some_and(|(t, epoch)| border.is_read(t) && self.round(epoch) == outbox.epoch);
        let haste = match adds {
            false => Haste::Now,
            true if self.is_ahead(worker) => Haste::Later,
            true => Haste::Soon,
        };
        border.post(outbox, haste);
    }

    /// Whether the tasks of a thread at the border are ahead of those inside.
    fn is_ahead(&self, worker: usize) -> bool {
        let Policy::Sequences { tasks, each: 2 } = &self.ground.policy else { return false };
        let [border, inside] =
            [2 * worker, 2 * worker + 1].map(|s| (self.drawn[s].load(Ordering::Relaxed), tasks[s].len()));
        border.0 * inside.1 > inside.0 * border.1
    }

    /// The number of a task in the whole mesh.
    fn name(&self, t: u32) -> u32 {
        self.ground.domain.share.as_ref().map_or(t, |share| share.names[t as usize])
    }

    fn advance(&self, t: u32, epoch: u32) {
        match &self.ground.policy {
            // From here on neighbors may run.
            Policy::Sequences { .. } | Policy::Rounds(_) => self.epochs[t as usize].store(epoch + 1, Ordering::Release),
            Policy::Waves(_) => _ = self.done.fetch_add(1, Ordering::AcqRel),
        }
    }
}

impl<T: Number> Job for Walk<T> {
    fn work(&self, worker: usize) {
        // A panic of a task must not leave the other workers waiting for it.
        let _stop = StopOnPanic(self, worker);
        // Before the first draw: whoever stops the walk waits for those that may have a task in their hands.
        self.busy[worker].store(true, Ordering::SeqCst);
        let mut outbox = Outbox::default();
        let mut pen = self.ground.timeline.as_deref().map(|timeline| timeline.pen(worker as u32));
        while let Some((t, epoch, has_waited)) = self.next(worker, &mut outbox) {
            let leg = self.leg(epoch);
            if let Some(pen) = &mut pen {
                pen.found(has_waited);
            }
            let before = self.visit(leg, t, epoch);
            if let Some(pen) = &mut pen {
                pen.updated(leg.pass.kernel, 1, self.round(epoch));
            }
            self.finish(t, epoch, &before, &mut outbox);
            if let Some(pen) = pen.as_mut().filter(|_| self.is_read(t)) {
                pen.sent(self.name(t), self.round(epoch));
            }
        }
        // Helpers hand in what they wrote before they are seen to be done.
        let pen = pen.filter(|_| worker == 0);
        self.busy[worker].store(false, Ordering::SeqCst);
        if worker == 0 {
            self.wait_for_the_last();
        }
        if let Some(mut pen) = pen {
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

impl<T: Number> Walk<T> {
    /// All tasks are drawn: waits until they are done too. Not for the workers, who may only just have come.
    fn wait_for_the_last(&self) {
        let (mut wait, mut done) = (Wait::new(self.spin), 0);
        while !self.is_over() {
            let all = match &self.ground.policy {
                Policy::Sequences { .. } | Policy::Rounds(_) => {
                    let left = self.epochs[done..].iter();
                    done += left.take_while(|epoch| epoch.load(Ordering::Acquire) == self.legs.rounds).count();
                    done == self.epochs.len()
                }
                Policy::Waves(waves) => self.done.load(Ordering::Acquire) == waves.len() * self.legs.rounds as usize,
            };
            if all {
                return;
            }
            self.rest(&mut wait);
        }
        self.wait_for_the_others();
    }

    /// The walk was stopped, or is done: waits until nobody has a task in hand.
    fn wait_for_the_others(&self) {
        let mut wait = Wait::new(self.spin);
        while self.busy[1..].iter().any(|busy| busy.load(Ordering::SeqCst)) {
            self.waited.rest(&mut wait);
        }
    }
}

impl<T: Number> Arrivals for Walk<T> {
    fn is_due(&self, t: u32, epoch: u64) -> bool {
        self.legs.epoch(epoch).is_some_and(|before| {
            // While this holds no own task reads or writes what the ghost holds.
            self.ground.domain.is_ghost(t) && self.is_ready(self.leg(before).pass.rule, t, before)
        })
    }

    fn arrive(&self, t: u32, epoch: u64, bits: &[u8]) -> Result<()> {
        let Ground { domain, memory, .. } = &*self.ground;
        let nonsense = |why: &str| Err(Error::Cluster(format!("ghost {t} cannot come to epoch {epoch}: {why}")));
        let due = self.legs.epoch(epoch).filter(|_| self.is_due(t, epoch));
        let (Some(share), Some(before)) = (domain.share.as_ref(), due) else {
            return nonsense("that is not due");
        };
        let (leg, ghost) = (self.leg(before), &share.ghosts[t as usize]);
        let slots = ghost.start as usize..ghost.end as usize;
        let (from, to) = (leg.source(before), leg.source(before + 1));
        let has_changed = match memory.unpack(slots.clone(), from, to, bits) {
            Some(has_changed) => has_changed,
            // Its host says that nothing has changed.
            None if bits.is_empty() && leg.pass.is_quiet() => {
                memory.keep(slots, from, to);
                false
            }
            None if bits.is_empty() => return nonsense("no values come with it, and its kernel is not quiet"),
            None => return nonsense(&format!("its values are not {} bytes", bits.len())),
        };
        if let Some(watch) = &self.watch {
            watch.note(leg.number, t, before, has_changed);
        }
        self.epochs[t as usize].store(before + 1, Ordering::Release);
        Ok(())
    }

    fn lags(&self) -> (u64, Vec<Lag>) {
        let drawn: Vec<usize> = self.drawn.iter().map(|drawn| drawn.load(Ordering::Relaxed)).collect();
        let moves = drawn.iter().sum::<usize>() as u64;
        let Policy::Sequences { tasks: sequences, .. } = &self.ground.policy else { return (moves, Vec::new()) };
        let of = |u: u32| self.epochs[u as usize].load(Ordering::Acquire);
        let mut lags = Vec::new();
        for (tasks, drawn) in sequences.iter().zip(drawn).filter(|(tasks, _)| !tasks.is_empty()) {
            let (round, i) = ((drawn / tasks.len()) as u32, drawn % tasks.len());
            if round >= self.legs.rounds {
                continue;
            }
            let leg = self.leg(round);
            let t = tasks[if leg.is_backward() { tasks.len() - 1 - i } else { i }];
            let least = |u: u32| round + u32::from(leg.pass.rule.puts_first(u, t));
            let slow = self.ground.domain.graph.neighbors(t).iter().filter(|&&u| of(u) < least(u));
            lags.extend(slow.map(|&of| Lag { task: t, epoch: self.round(round), of }));
        }
        (moves, lags)
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
