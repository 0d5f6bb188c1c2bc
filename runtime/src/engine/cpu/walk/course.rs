//! How far the tasks of a walk are, and which is next.

use crate::engine::cpu::border::Lag;
use crate::engine::cpu::ground::Ground;
use crate::engine::cpu::policy::Policy;
use crate::engine::epochs::Epochs;
use crate::engine::legs::{Leg, Legs};
use crate::number::Number;
use crossbeam_utils::CachePadded;
use meshweft_schedule::Rule;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How far the tasks of a walk are, and which is next.
pub(super) struct Course<T> {
    pub(super) ground: Arc<Ground<T>>,
    pub(super) legs: Legs<T>,
    epochs: Epochs,
    /// How many tasks were drawn from each sequence, in all rounds.
    drawn: Vec<CachePadded<AtomicUsize>>,
    /// Tasks done, in all rounds; of wavefronts alone.
    done: CachePadded<AtomicUsize>,
}

/// What a sequence has to give.
pub(super) enum Draw {
    /// A task that is ready, and its epoch.
    Task(u32, u32),
    /// The next task is not ready.
    Wait,
    End,
}

impl<T: Number> Course<T> {
    pub(super) fn new(ground: Arc<Ground<T>>, legs: Legs<T>) -> Course<T> {
        Course {
            legs,
            epochs: Epochs::new(ground.domain.graph.len()),
            drawn: (0..ground.policy.count()).map(|_| CachePadded::new(AtomicUsize::new(0))).collect(),
            done: CachePadded::new(AtomicUsize::new(0)),
            ground,
        }
    }

    /// Tasks, ghosts included.
    pub(super) fn tasks(&self) -> usize {
        self.epochs.len()
    }

    /// Sequences of all threads.
    #[inline]
    pub(super) fn sequences(&self) -> usize {
        self.drawn.len()
    }

    #[inline]
    pub(super) fn leg(&self, epoch: u32) -> &Leg<T> {
        self.legs.at(epoch)
    }

    #[inline]
    pub(super) fn round(&self, epoch: u32) -> u64 {
        self.legs.round(epoch)
    }

    /// Whether a task has done `epoch` rounds and may do the next.
    #[inline]
    pub(super) fn is_ready(&self, rule: Rule, t: u32, epoch: u32) -> bool {
        self.epochs.is_ready(&self.ground.domain.graph, rule, t, epoch)
    }

    /// Draws the next task of a sequence, if it is ready.
    #[inline]
    pub(super) fn draw(&self, sequence: usize) -> Draw {
        match &self.ground.policy {
            Policy::Sequences { tasks, .. } => self.draw_of_own(sequence, &tasks[sequence]),
            Policy::Rounds(threads) => self.draw_of_rounds(sequence, *threads),
            Policy::Waves(waves) => self.draw_of_waves(waves),
        }
    }

    /// Of some tasks, the same in every round.
    #[inline]
    fn draw_of_own(&self, sequence: usize, tasks: &[u32]) -> Draw {
        let at = |leg: &Leg<T>, i: usize, epoch| (tasks[i], self.is_ready(leg.pass.rule, tasks[i], epoch));
        self.draw_at(sequence, tasks.len(), |n| n, at)
    }

    /// Of all tasks, in every `stride`-th round.
    #[inline]
    fn draw_of_rounds(&self, first: usize, stride: usize) -> Draw {
        let at = |leg: &Leg<T>, i: usize, epoch| (i as u32, self.is_ready(leg.pass.rule, i as u32, epoch));
        self.draw_at(first, self.epochs.len(), |n| first + stride * n, at)
    }

    /// Of all tasks in order: each as soon as all before its wavefront are done.
    #[inline]
    fn draw_of_waves(&self, waves: &[Range<u32>]) -> Draw {
        let at = |leg: &Leg<T>, i: usize, epoch: u32| {
            // Tasks that are done by the time a wavefront begins.
            let before = match leg.pass.rule {
                Rule::InOrder => waves[i].start as usize,
                Rule::Backward => waves.len() - waves[i].end as usize,
                Rule::Alone | Rule::AtOnce => 0,
            };
            (i as u32, self.done.load(Ordering::Acquire) >= epoch as usize * waves.len() + before)
        };
        self.draw_at(0, waves.len(), |n| n, at)
    }

    /// Of a sequence with `tasks` places a round. `round`: the round that is the n-th of it; `at`: the task at a place of a round, and
    /// whether it is ready.
    #[inline]
    fn draw_at(
        &self,
        sequence: usize,
        tasks: usize,
        round: impl Fn(usize) -> usize,
        at: impl Fn(&Leg<T>, usize, u32) -> (u32, bool),
    ) -> Draw {
        let drawn = &self.drawn[sequence];
        loop {
            let place = drawn.load(Ordering::Acquire);
            let Some(epoch) = place.checked_div(tasks).map(&round).filter(|&n| n < self.legs.rounds as usize) else {
                return Draw::End;
            };
            let (i, epoch) = (place % tasks, epoch as u32);
            let leg = self.leg(epoch);
            let (t, is_ready) = at(leg, if leg.is_backward() { tasks - 1 - i } else { i }, epoch);
            if !is_ready {
                if drawn.load(Ordering::Relaxed) == place {
                    return Draw::Wait;
                }
            } else if drawn.compare_exchange(place, place + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return Draw::Task(t, epoch);
            }
        }
    }

    /// A task has done the round that began at `epoch`.
    #[inline]
    pub(super) fn advance(&self, t: u32, epoch: u32) {
        match &self.ground.policy {
            Policy::Sequences { .. } | Policy::Rounds(_) => self.epochs.set(t, epoch + 1),
            Policy::Waves(_) => _ = self.done.fetch_add(1, Ordering::AcqRel),
        }
    }

    /// Whether all tasks have done all rounds. `seen`: how many are known to have, 0 at first.
    pub(super) fn is_done(&self, seen: &mut usize) -> bool {
        match &self.ground.policy {
            Policy::Sequences { .. } | Policy::Rounds(_) => {
                *seen += self.epochs.done(*seen, self.legs.rounds);
                *seen == self.epochs.len()
            }
            Policy::Waves(waves) => self.done.load(Ordering::Acquire) == waves.len() * self.legs.rounds as usize,
        }
    }

    /// How many tasks were drawn so far, and what the next ones wait for.
    pub(super) fn lags(&self) -> (u64, Vec<Lag>) {
        let drawn: Vec<usize> = self.drawn.iter().map(|drawn| drawn.load(Ordering::Relaxed)).collect();
        let moves = drawn.iter().sum::<usize>() as u64;
        let Policy::Sequences { tasks: sequences, .. } = &self.ground.policy else { return (moves, Vec::new()) };
        let mut lags = Vec::new();
        for (tasks, drawn) in sequences.iter().zip(drawn).filter(|(tasks, _)| !tasks.is_empty()) {
            let (round, i) = ((drawn / tasks.len()) as u32, drawn % tasks.len());
            if round >= self.legs.rounds {
                continue;
            }
            let leg = self.leg(round);
            let t = tasks[if leg.is_backward() { tasks.len() - 1 - i } else { i }];
            let slow = self.epochs.slow(&self.ground.domain.graph, leg.pass.rule, t, round);
            lags.extend(slow.map(|of| Lag { task: t, epoch: self.round(round), of }));
        }
        (moves, lags)
    }
}
