//! A share of a mesh on a device.
//!
//! Stages come one by one, and a round goes level after level: what the border of a level reads of other hosts is brought to the
//! device, the border is updated and packed, and while the device updates the inside, this thread sends what was packed.

use super::border::Boundary;
use super::{Gpu, Scene};
use crate::engine::{
    Arrivals, Border, Engine, Epochs, Facts, Lag, Legs, Measure, Outbox, Pass, Pen, Reduction, Store, Timeline, Walker,
};
use crate::error::{Error, Result};
use crate::gpu::device::Device;
use crate::gpu::kernels::Kernel;
use crate::gpu::plan::Planned;
use crate::layout::{Domain, Edit, State, View};
use crate::number::Number;
use crate::program::Uniform;
use crate::trace::Role;
use meshweft_schedule::Rule;
use meshweft_shaders::Physics;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What walks a share.
struct Share<T: Number> {
    gpu: Gpu<T>,
    border: Arc<dyn Border>,
    timeline: Option<Arc<Timeline>>,
    boundary: Boundary,
    /// Levels under each rule that was met so far.
    levels: Vec<(Of, Arc<[Planned]>)>,
    /// The bits of each ghost as they are known last: of tasks that are none, none.
    ghosts: Vec<Vec<u8>>,
    /// Rounds of all walks so far.
    epochs: u64,
}

/// What walks a share of a mesh on a device. `border`: what carries values between hosts; `timeline`: where it writes down what it
/// does, if that is recorded.
///
/// # Errors
/// What the driver refuses; a share that does not fit.
pub(crate) fn share<T: Number>(
    device: Device,
    domain: Arc<Domain>,
    (physics, kernels): (&Physics, Vec<Kernel>),
    (state, globals): (State<T>, Vec<T>),
    (border, timeline): (Arc<dyn Border>, Option<Arc<Timeline>>),
) -> Result<Box<dyn Walker<T>>> {
    let ghosts = ghosts(&domain, state.view());
    let mut gpu = Gpu::new(device, domain, (physics, kernels), state, globals)?;
    let domain = gpu.domain.clone();
    let work = gpu.work_mut();
    let boundary = Boundary::new(&work.device, &domain)?;
    Ok(Box::new(Share { gpu, border, timeline, boundary, levels: Vec::new(), ghosts, epochs: 0 }))
}

/// The bits of the shared state of each ghost.
fn ghosts<T: Number>(domain: &Domain, view: View<'_, T>) -> Vec<Vec<u8>> {
    let bits = |ghost: &Range<u32>| {
        let reals = (ghost.start..ghost.end).flat_map(|slot| (0..view.shape.shared).map(move |k| (slot as usize, k)));
        let reals: Vec<T> = reals.map(|(slot, k)| view.real(slot, k)).collect();
        bytemuck::cast_slice(&reals).to_vec()
    };
    domain.share.iter().flat_map(|share| &share.ghosts).map(bits).collect()
}

/// How far the tasks of a walk are, and the values of ghosts that are not on the device yet.
struct Course<T> {
    domain: Arc<Domain>,
    legs: Legs<T>,
    /// An own task has done a round as soon as the device was asked for it.
    epochs: Epochs,
    arrived: Mutex<Arrived>,
    /// As in [`Share::ghosts`].
    ghosts: Mutex<Vec<Vec<u8>>>,
    /// Tasks that wait for ghosts, and how many levels did not have to any more.
    waiting: Mutex<Vec<u32>>,
    moves: AtomicU64,
}

/// A part or all, and a rule by which it is visited.
type Of = (Option<u32>, Rule);

/// The values of ghosts that are not on the device yet, for each of the two arrays: of each ghost the last.
type Arrived = [BTreeMap<u32, Vec<u8>>; 2];

fn lock<A>(mutex: &Mutex<A>) -> MutexGuard<'_, A> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Number> Course<T> {
    fn new(domain: Arc<Domain>, legs: Legs<T>, ghosts: Vec<Vec<u8>>) -> Course<T> {
        let epochs = Epochs::new(domain.graph.len());
        let (arrived, waiting, moves) = (Mutex::default(), Mutex::default(), AtomicU64::new(0));
        Course { domain, legs, epochs, arrived, ghosts: Mutex::new(ghosts), waiting, moves }
    }

    /// Whether a task has done `epoch` rounds and may do the next.
    fn is_ready(&self, rule: Rule, t: u32, epoch: u32) -> bool {
        self.epochs.is_ready(&self.domain.graph, rule, t, epoch)
    }

    /// The device was asked for a round of some tasks: from here on their neighbors may run.
    fn advance(&self, tasks: &[u32], epoch: u32) {
        tasks.iter().for_each(|&t| self.epochs.set(t, epoch + 1));
    }

    /// Takes the values that have come.
    fn take(&self) -> Arrived {
        std::mem::take(&mut *lock(&self.arrived))
    }
}

impl<T: Number> Arrivals for Course<T> {
    fn tasks(&self) -> Range<u32> {
        0..self.domain.graph.len() as u32
    }

    fn is_due(&self, t: u32, epoch: u64) -> bool {
        self.legs
            .epoch(epoch)
            .is_some_and(|before| self.domain.is_ghost(t) && self.is_ready(self.legs.at(before).pass.rule, t, before))
    }

    fn arrive(&self, t: u32, epoch: u64, bits: &[u8]) -> Result<()> {
        let refuse = |why: &str| Err(Error::Cluster(format!("ghost {t} cannot advance to epoch {epoch}: {why}")));
        let due = self.legs.epoch(epoch).filter(|_| self.is_due(t, epoch));
        let Some(before) = due else { return refuse("that is not due") };
        let (leg, known) = (self.legs.at(before), &mut lock(&self.ghosts)[t as usize]);
        match bits.len() {
            len if len == known.len() => known.copy_from_slice(bits),
            // Its host says that nothing has changed.
            0 if leg.pass.is_quiet() || leg.pass.leaves_out(&self.domain, t) => {}
            len => return refuse(&format!("its values are not {len} bytes")),
        }
        let array = leg.source(before + 1);
        lock(&self.arrived)[array].insert(t, known.clone());
        // After that: who sees the epoch finds the values.
        self.epochs.set(t, before + 1);
        Ok(())
    }

    fn lags(&self) -> (u64, Vec<Lag>) {
        let lag = |&task: &u32| {
            let epoch = self.epochs.of(task);
            let rule = self.legs.at(epoch.min(self.legs.rounds - 1)).pass.rule;
            let slow = self.epochs.slow(&self.domain.graph, rule, task, epoch);
            slow.map(move |of| Lag { task, epoch: self.legs.round(epoch), of })
        };
        (self.moves.load(Ordering::Relaxed), lock(&self.waiting).iter().flat_map(lag).collect())
    }
}

impl<T: Number> Share<T> {
    /// The levels of a part or all under a rule, planned once.
    fn levels(&mut self, of: Of) -> Result<Arc<[Planned]>> {
        if let Some((_, levels)) = self.levels.iter().find(|(known, _)| *known == of) {
            return Ok(levels.clone());
        }
        let domain = self.gpu.domain.clone();
        let work = self.gpu.work_mut();
        let levels: Arc<[Planned]> = work.plan.levels(&domain, of).into();
        work.arrays.take(&work.device, &work.queue, &work.plan)?;
        self.levels.push((of, levels.clone()));
        Ok(levels)
    }

    /// Waits until some tasks may run. Tells whether they may: not if another host was lost.
    fn wait(&self, course: &Course<T>, tasks: &[u32], is_ready: impl Fn(u32) -> bool) -> bool {
        let mut done = 0;
        loop {
            done += tasks[done..].iter().take_while(|&&t| is_ready(t)).count();
            if done == tasks.len() || self.border.is_cut_off() {
                lock(&course.waiting).clear();
                course.moves.fetch_add(1, Ordering::Relaxed);
                return done == tasks.len();
            }
            *lock(&course.waiting) = tasks[done..].to_vec();
            self.border.rest();
        }
    }

    /// Brings what has come to the device.
    fn take_in(&mut self, course: &Course<T>) -> Result<()> {
        let arrived = course.take();
        let work = self.gpu.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (array, values) in arrived.iter().enumerate() {
            let values: Vec<(u32, &[u8])> = values.iter().map(|(&t, bits)| (t, &bits[..])).collect();
            if !values.is_empty() {
                self.boundary.unpack_into(work, &course.domain, array, &values)?;
            }
        }
        Ok(())
    }

    /// Runs the passes of a course, as far as no other host is lost.
    fn run(&mut self, course: &Course<T>) -> Result<()> {
        for leg in course.legs.iter() {
            let levels = self.levels((leg.pass.part, leg.pass.rule))?;
            let work = self.gpu.work_mut();
            work.queue.mark(&work.device, leg.number)?;
            work.set_globals(&leg.pass.uniform.globals)?;
            for epoch in leg.first..leg.first + leg.pass.rounds {
                if !self.round(course, &levels, epoch)? {
                    return Ok(());
                }
            }
        }
        let ghosts: Vec<u32> = (0..course.domain.graph.len() as u32).filter(|&t| course.domain.is_ghost(t)).collect();
        if self.wait(course, &ghosts, |t| course.epochs.of(t) == course.legs.rounds) {
            self.take_in(course)?;
        }
        Ok(())
    }

    /// Runs a round. Tells whether it did: not if another host was lost.
    fn round(&mut self, course: &Course<T>, levels: &[Planned], epoch: u32) -> Result<bool> {
        let leg = course.legs.at(epoch);
        let Pass { kernel, rule, ref uniform, .. } = leg.pass;
        let double = rule == Rule::AtOnce;
        let timeline = self.timeline.clone();
        let mut pen = Pen::of(timeline.as_deref(), 0);
        for Planned { level, border, inside } in levels {
            if !self.wait(course, &level.border, |t| course.is_ready(rule, t, epoch)) {
                return Ok(false);
            }
            pen.found(true);
            self.take_in(course)?;
            let work = self.gpu.work.get_mut().unwrap_or_else(PoisonError::into_inner);
            let given = work.given_of(&course.domain, uniform, epoch - leg.first)?;
            work.visit(border, kernel, given, double)?;
            course.advance(&level.border, epoch);
            let packed = self.boundary.pack(work, &level.border, leg.source(epoch + 1))?;
            work.visit(inside, kernel, given, double)?;
            course.advance(&level.inside, epoch);
            if let Some(packed) = packed {
                work.queue.submit(&work.device)?;
                let (row, mut outbox) = (self.boundary.read(work, packed)?, Outbox::default());
                for &t in &level.border {
                    self.border.pack(&mut outbox, t, course.legs.round(epoch), &|slots, bits| row.gather(slots, bits));
                }
                self.border.post(&mut outbox, false);
            }
            let tasks = (level.border.len() + level.inside.len()) as u32;
            pen.updated(kernel, tasks, course.legs.round(epoch));
        }
        if double {
            self.gpu.work_mut().arrays.swap();
        }
        Ok(true)
    }
}

impl<T: Number> Store<T> for Share<T> {
    fn view(&self) -> Result<View<'_, T>> {
        self.gpu.state()
    }

    fn change(&mut self, change: &mut Edit<T>) -> Result<()> {
        self.gpu.edit(change)?;
        self.ghosts = ghosts(&self.gpu.domain, self.gpu.state()?);
        Ok(())
    }
}

impl<T: Number> Walker<T> for Share<T> {
    fn pass(&mut self, passes: Vec<Pass<T>>) -> Result<Option<usize>> {
        self.gpu.here.take();
        let work = self.gpu.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        if passes.iter().any(|pass| pass.rule == Rule::AtOnce) {
            work.arrays.make_double(&work.device, &work.queue)?;
        }
        self.boundary.bind(work)?;
        work.queue.take_non_finite();
        let legs = Legs::new(passes, usize::from(work.arrays.current()), self.epochs);
        let course = Arc::new(Course::new(self.gpu.domain.clone(), legs, std::mem::take(&mut self.ghosts)));
        self.border.begin(course.clone(), self.epochs..course.legs.end())?;
        let ran = self.run(&course);
        // Who was lost says more than what came of it.
        self.border.end()?;
        ran?;
        self.epochs = course.legs.end();
        self.ghosts = std::mem::take(&mut *lock(&course.ghosts));
        let work = self.gpu.work_mut();
        work.queue.settle(&work.device)?;
        Ok(work.queue.take_non_finite())
    }

    fn reduce(&mut self, Measure { kernel, uniform, .. }: Measure<T>) -> Result<Reduction> {
        let domain = self.gpu.domain.clone();
        let work = self.gpu.work_mut();
        let Role::Measure(how) = work.roles[kernel] else {
            return Err(Error::Internal(format!("kernel {kernel} measures nothing")));
        };
        work.set_globals(&uniform.globals)?;
        let given = work.given_of(&domain, &uniform, 0)?;
        let values = work.values_of::<T>(&domain, kernel, given)?;
        Ok(Reduction::of(how, &domain, &|slot| values[slot].to_f64()))
    }

    fn renew(&mut self, domain: Arc<Domain>, state: Option<State<T>>) -> Result<()> {
        let Some(state) = state else {
            return Err(Error::Internal("a share that is made anew comes with its state".into()));
        };
        self.ghosts = ghosts(&domain, state.view());
        self.gpu.go_on(domain.clone(), state)?;
        self.boundary = self.boundary.renewed(&self.gpu.work_mut().device, &domain)?;
        self.levels.clear();
        Ok(())
    }

    fn facts(&self) -> Facts {
        self.gpu.facts()
    }
}

impl super::Work {
    /// Puts down what a round of a stage is given.
    fn given_of<T: Number>(&mut self, domain: &Domain, uniform: &Uniform<T>, round: u32) -> Result<u32> {
        let Uniform { parameters, settings, step, draw, .. } = uniform;
        let scene = Scene { domain, parameters, step: *step, draw: draw.wrapping_add(round), depth: 0 };
        self.given(scene, &settings.map(T::to_f64), false)
    }

    /// Replaces the globals, unless they are those that the device has.
    fn set_globals<T: Number>(&mut self, globals: &[T]) -> Result<()> {
        let globals = super::words(globals);
        if self.queue.status().globals == globals {
            return Ok(());
        }
        self.queue.settle(&self.device)?;
        self.queue.set_globals(&self.device, globals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::stress::{Case, STIR, traced_table};
    use crate::layout::Shares;
    use crate::number::Int;
    use meshweft_schedule::Order;

    #[test]
    fn of_values_for_one_place_only_the_last_waits_for_the_device() {
        const ROUNDS: u32 = 40;
        let case = Case::new(200, (1..200).map(|v| [v - 1, v]).collect(), Order::BLOCKED, 10);
        let (layout, state) = case.laid_out(8);
        let owners: Vec<u32> = (0..case.schedule.graph().len() as u32).map(|t| t % 2).collect();
        let shares = Shares::new(&layout, &owners, 2, None);
        let (domain, state) = (Arc::new(shares.domain(0)), shares.state(0, state.view()));
        let uniform =
            Uniform { parameters: Vec::new(), globals: vec![Int(0); 2], settings: [Int(0); 4], step: 0, draw: 0 };
        let code = traced_table().kernels[STIR].code.clone();
        let pass = Pass { kernel: STIR, part: None, code, rule: Rule::AtOnce, rounds: ROUNDS, before: 0, uniform };
        let bits = ghosts(&domain, state.view());
        let course = Course::new(domain.clone(), Legs::new(vec![pass], 0, 0), bits.clone());
        let (beyond, own): (Vec<u32>, Vec<u32>) = (0..domain.graph.len() as u32).partition(|&t| domain.is_ghost(t));
        let values = |t: u32, round: u32| vec![round as u8; bits[t as usize].len()];
        for round in 1..=ROUNDS {
            beyond.iter().for_each(|&t| course.arrive(t, u64::from(round), &values(t, round)).unwrap());
            course.advance(&own, round - 1);
        }
        let waiting = lock(&course.arrived).iter().map(BTreeMap::len).sum::<usize>();
        assert!(!beyond.is_empty() && waiting == 2 * beyond.len(), "{waiting} values of {} ghosts", beyond.len());
        // An even number of rounds ends in the array in which it began.
        for (array, last) in course.take().iter().zip([ROUNDS, ROUNDS - 1]) {
            assert!(array.iter().all(|(&t, bits)| *bits == values(t, last)) && array.keys().eq(&beyond));
        }
        assert!(course.take().iter().all(BTreeMap::is_empty));
    }
}
