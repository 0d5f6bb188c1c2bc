//! The GPU engine: interprets steps on a [`Device`], by the dispatches of a [`Plan`].
//!
//! State and globals stay on the device from step to step. Once an update is not finite the device freezes them at the end of
//! that step, so the host finds them as they were, however late it looks.

mod arrays;
#[cfg(feature = "cluster")]
mod border;
mod elements;
mod loops;
mod measures;
#[cfg(feature = "cluster")]
mod share;

use super::device::Device;
use super::kernels::Kernel;
use super::pipelines::Pipelines;
use super::plan::{Limits, Plan, Rounds, Walk};
use super::queue::Queue;
use crate::engine::{Engine, Facts, Loops, Progress};
use crate::error::{Error, Result};
use crate::layout::{Domain, Edit, State, View};
use crate::number::Number;
use crate::shared::Shared;
use crate::step::{Settings, Stage, Step, draw};
use crate::trace::Role;
use arrays::Arrays;
use elements::{Elements, Padding};
use measures::Measures;
use meshweft_schedule::Rule;
use meshweft_shaders::layout::Given;
use meshweft_shaders::{Entry, Physics, TICK};
#[cfg(feature = "cluster")]
pub(crate) use share::share;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What runs steps on a GPU.
struct Gpu<T> {
    domain: Arc<Domain>,
    work: Mutex<Work>,
    /// A copy of the state, if there is one that is not out of date.
    here: OnceLock<State<T>>,
    /// The same of elements that are projected, by star.
    elements_here: BTreeMap<usize, OnceLock<State<T>>>,
}

/// The device and what it has been asked for.
struct Work {
    device: Device,
    queue: Queue,
    limits: Limits,
    plan: Plan,
    arrays: Arrays,
    pipelines: Pipelines,
    tick: (wgpu::ComputePipeline, wgpu::BindGroup),
    measures: Option<Measures>,
    /// By star, what is projected, and what repeats vertices after that.
    elements: BTreeMap<usize, Elements>,
    padding: Option<Padding>,
    /// What each kernel is for, and whether it draws random numbers.
    roles: Vec<Role>,
    draws: Vec<bool>,
    /// Steps asked for so far, and those that were before the device began to count.
    steps: u64,
    since: u64,
    /// Rounds asked for, and how many of them an order bound.
    rounds: [u64; 2],
    /// How often loops went round that the host has seen end.
    loops: Loops,
    /// Rounds after each of the last steps, of which the device may not have taken all.
    taken: VecDeque<(u64, [u64; 2])>,
}

#[cfg(test)]
thread_local! {
    /// What the next device of this thread can do less: bytes that a kernel sees of an array, workgroups in one dimension. It
    /// also takes long for everything. For tests of what is cut then.
    pub(super) static LESS: std::cell::Cell<Option<(u64, u32)>> = const { std::cell::Cell::new(None) };
    /// The next device that is laid out, if a test has asked for it, to see what happens when it is lost. None may still be here when the
    /// thread ends: some drivers are gone by then.
    pub(super) static OPENED: std::cell::Cell<Option<Option<wgpu::Device>>> = const { std::cell::Cell::new(None) };
}

/// What the stages of a step have in common.
#[derive(Clone, Copy)]
struct Scene<'a, T> {
    domain: &'a Domain,
    parameters: &'a [T],
    step: u32,
    /// What the list of stages draws random numbers by.
    draw: u32,
    /// How many loops the stages lie in.
    depth: usize,
}

/// The engine that runs a program on a device.
pub(crate) fn engine<T: Number>(
    device: Device,
    domain: Arc<Domain>,
    (physics, kernels): (&Physics, Vec<Kernel>),
    state: State<T>,
    globals: Vec<T>,
) -> Result<Box<dyn Engine<T>>> {
    Ok(Box::new(Gpu::new(device, domain, (physics, kernels), state, globals)?))
}

impl<T: Number> Gpu<T> {
    /// Lays a program out on a device, and compiles its kernels.
    fn new(
        #[cfg_attr(not(test), expect(unused_mut))] mut device: Device,
        domain: Arc<Domain>,
        (physics, kernels): (&Physics, Vec<Kernel>),
        mut state: State<T>,
        globals: Vec<T>,
    ) -> Result<Gpu<T>> {
        #[cfg(test)]
        let less = LESS.get().inspect(|less| device.about.workgroups = less.1);
        #[cfg(test)]
        OPENED.set(OPENED.take().map(|_| Some(device.device.clone())));
        let about = &device.about;
        let limits = Limits {
            binding_bytes: about.binding_bytes.min(about.buffer_bytes),
            workgroup_bytes: about.workgroup_bytes,
            invocations: about.invocations,
        };
        #[cfg(test)]
        let limits = Limits { binding_bytes: less.map_or(limits.binding_bytes, |less| less.0), ..limits };
        let mut plan = Plan::new(&domain, &limits)?;
        let record_bytes = 4 * Given::words_with(physics.parameters.len()) as u64;
        let queue = Queue::new(&device, &words(&globals), record_bytes)?;
        #[cfg(test)]
        let queue = if less.is_some() { queue.slow() } else { queue };
        let roles: Vec<Role> = kernels.iter().map(|kernel| kernel.role).collect();
        let draws = kernels.iter().map(|kernel| kernel.draws).collect();
        let measured = roles.iter().any(|role| matches!(role, Role::Measure(_))).then_some(domain.slots());
        let arrays = Arrays::new(&device, &queue, &mut plan, &domain, (record_bytes, measured))?;
        let elements = Elements::of(&device, &queue, (&domain, &limits), record_bytes)?;
        let padding = if elements.is_empty() { None } else { Padding::new(&device, &domain)? };
        let vertices = (&plan, &*domain, arrays.pipeline_layout());
        let laid = elements
            .iter()
            .map(|(&star, Elements { domain, plan, arrays })| (star, (plan, &**domain, arrays.pipeline_layout())));
        let laid = laid.collect();
        let pipelines = Pipelines::new(&device, physics, &kernels, |kernel| *kernel.of(&vertices, &laid))?;
        let measures = measured.map(|_| Measures::new(&device, &queue, &arrays, physics.scalar)).transpose()?;
        let tick = device.kernel(TICK, &[&queue.words])?;
        let (steps, since, rounds, loops, taken) = (0, 0, [0, 0], Loops::default(), VecDeque::from([(0, [0, 0])]));
        let work = Work {
            device,
            queue,
            limits,
            plan,
            arrays,
            pipelines,
            tick,
            measures,
            elements,
            padding,
            roles,
            draws,
            steps,
            since,
            rounds,
            loops,
            taken,
        };
        work.arrays.upload(&work.device, &state)?;
        let elements = std::mem::take(&mut state.elements);
        let elements_here = elements.into_iter().map(|(star, state)| (star, OnceLock::from(state))).collect();
        Ok(Gpu { domain, work: Mutex::new(work), here: OnceLock::from(state), elements_here })
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work_mut(&mut self) -> &mut Work {
        self.work.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on with other elements of changing stars, and a state of their domain: all lists are made anew.
    fn go_on(&mut self, domain: Arc<Domain>, state: State<T>) -> Result<()> {
        self.here.take();
        let work = self.work_mut();
        work.queue.settle(&work.device)?;
        work.plan = Plan::of(&domain, &work.limits, work.plan.harness)?;
        work.arrays.renew(&work.device, &work.queue, &mut work.plan, &domain)?;
        if let Some(measures) = &mut work.measures {
            measures.renew(&work.device, &work.queue, &work.arrays)?;
        }
        work.arrays.upload(&work.device, &state)?;
        work.reset()?;
        (self.domain, self.here) = (domain, OnceLock::from(state));
        Ok(())
    }
}

impl<T: Number> Engine<T> for Gpu<T> {
    fn step(&mut self, step: &Step<T>) -> Result<()> {
        self.here.take();
        self.elements_here.values_mut().for_each(|here| drop(here.take()));
        let (domain, parameters) = (&self.domain.clone(), &step.parameters[..]);
        let scene = Scene { domain, parameters, step: step.number, draw: 0, depth: 0 };
        loops::check(&step.stages)?;
        let work = self.work_mut();
        work.thaw()?;
        work.steps += 1;
        let tick =
            work.begin().and_then(|()| work.stages(scene, &step.stages)).and_then(|()| work.queue.pace(&work.device));
        work.note();
        // Half a step is on the device: nothing can go on from there.
        tick.map_err(|error| match error {
            Error::Gpu(_) | Error::TooLarge(_) => error,
            other => work.device.fail(&other.to_string()),
        })
    }

    fn settle(&mut self) -> Result<Progress> {
        let work = self.work_mut();
        work.queue.settle(&work.device)?;
        Ok(work.progress())
    }

    fn progress(&self) -> Progress {
        self.work().progress()
    }

    fn measure(&mut self, kernel: usize, settings: &Settings, parameters: &[T], step: u32) -> Result<f64> {
        let domain = &self.domain.clone();
        self.work_mut().measured(Scene { domain, parameters, step, draw: 0, depth: 0 }, kernel, settings)
    }

    fn state(&self) -> Result<View<'_, T>> {
        let mut work = self.work();
        let work = &mut *work;
        work.device.check()?;
        if self.here.get().is_none() {
            work.queue.settle(&work.device)?;
            let state = work.arrays.download(&work.device, &self.domain)?;
            // Nobody else has set it: we hold the lock.
            let _ = self.here.set(state);
        }
        self.here.get().map(State::view).ok_or_else(|| Error::Internal("a state that was read back is lost".into()))
    }

    fn edit(&mut self, edit: &mut Edit<T>) -> Result<()> {
        self.state()?;
        let Some(mut state) = self.here.take() else { return Ok(()) };
        edit(state.view_mut());
        let work = self.work_mut();
        work.queue.settle(&work.device)?;
        work.arrays.upload(&work.device, &state)?;
        work.reset()?;
        self.here = OnceLock::from(state);
        Ok(())
    }

    fn elements(&self, star: usize) -> Result<View<'_, T>> {
        let (mut work, here) = (self.work(), &self.elements_here[&star]);
        let Work { device, queue, elements, .. } = &mut *work;
        device.check()?;
        if here.get().is_none() {
            queue.settle(device)?;
            let Elements { domain, arrays, .. } = &elements[&star];
            let _ = here.set(arrays.download(device, domain)?);
        }
        here.get().map(State::view).ok_or_else(|| Error::Internal("a state that was read back is lost".into()))
    }

    fn edit_elements(&mut self, star: usize, edit: &mut Edit<T>) -> Result<()> {
        self.elements(star)?;
        let here = self.elements_here.get_mut(&star).and_then(OnceLock::take);
        let Some(mut state) = here else { return Ok(()) };
        edit(state.view_mut());
        let work = self.work_mut();
        work.queue.settle(&work.device)?;
        work.elements[&star].arrays.upload(&work.device, &state)?;
        self.elements_here.insert(star, OnceLock::from(state));
        Ok(())
    }

    fn renew(&mut self, domain: Arc<Domain>, begin: Option<&mut Edit<T>>) -> Result<()> {
        self.state()?;
        let Some(mut state) = self.here.take() else { return Ok(()) };
        begin.into_iter().for_each(|begin| begin(state.view_mut()));
        self.go_on(domain, state)
    }

    fn globals(&self) -> Result<Vec<T>> {
        let mut work = self.work();
        let work = &mut *work;
        let status = work.queue.settle(&work.device)?;
        Ok(bytemuck::cast_slice(&status.globals).to_vec())
    }

    fn set_globals(&mut self, globals: &[T]) -> Result<()> {
        let work = self.work_mut();
        work.queue.settle(&work.device)?;
        work.queue.set_globals(&work.device, words(globals))
    }

    fn shared(&mut self) -> Result<Option<Shared>> {
        let work = self.work_mut();
        work.queue.settle(&work.device)?;
        let Device { device, queue, .. } = &work.device;
        let buffer = work.arrays.shared().clone();
        Ok(Some(Shared { device: device.clone(), queue: queue.clone(), buffer }))
    }

    fn facts(&self) -> Facts {
        let work = self.work();
        let gpu = Some((work.device.about.clone(), work.queue.counters));
        Facts { threads: 1, round_bytes: Some(work.arrays.round_bytes()), gpu, ..Facts::default() }
    }
}

impl Work {
    fn progress(&self) -> Progress {
        let status = self.queue.status();
        let non_finite = status.is_non_finite();
        // What was asked for after that step was not taken.
        let steps = if non_finite { self.since + u64::from(status.words.steps) } else { self.steps };
        let known = self.taken.iter().find(|(after, _)| non_finite && *after == steps);
        let [rounds, swept] = known.map_or(self.rounds, |(_, rounds)| *rounds);
        let loops = self.loops.clone();
        Progress { steps, rounds, swept, loops, non_finite, is_pending: self.queue.is_pending() }
    }

    /// Notes the rounds of the step that was asked for, and forgets those of steps that are done.
    fn note(&mut self) {
        self.taken.push_back((self.steps, self.rounds));
        let status = self.queue.status();
        let done = if status.is_non_finite() { 0 } else { self.since + u64::from(status.words.steps) };
        while self.taken.front().is_some_and(|(after, _)| *after < done) {
            self.taken.pop_front();
        }
    }

    /// Counts steps from here.
    fn reset(&mut self) -> Result<()> {
        let Progress { steps, rounds, swept, .. } = self.progress();
        (self.steps, self.since, self.rounds) = (steps, steps, [rounds, swept]);
        self.taken = VecDeque::from([(steps, self.rounds)]);
        self.queue.reset(&self.device)
    }

    /// Goes on after an update that was not finite: the host has looked, and found a state that is.
    fn thaw(&mut self) -> Result<()> {
        if self.queue.status().is_non_finite() {
            self.queue.settle(&self.device)?;
            self.reset()?;
        }
        Ok(())
    }

    /// Begins a step.
    fn begin(&mut self) -> Result<()> {
        let (pipeline, group) = &self.tick;
        self.queue.dispatch(&self.device, |pass| {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        })?;
        // Not before: what was recorded until then may have been handed over without it.
        self.queue.expect_step();
        Ok(())
    }

    fn stages<T: Number>(&mut self, list: Scene<T>, stages: &[Stage]) -> Result<()> {
        for (i, stage) in stages.iter().enumerate() {
            let scene = Scene { draw: draw(list.draw, i), ..list };
            match stage {
                &Stage::Update { kernel, settings, part, rule, rounds } => {
                    self.update(scene, kernel, &settings, (part, rule, rounds))?;
                }
                &Stage::Fixpoint { kernel, settings, most } => self.fixpoint(scene, kernel, &settings, most)?,
                &Stage::Project { kernel, settings, rounds } => self.project(scene, kernel, &settings, rounds)?,
                &Stage::Reduce { kernel, settings, into } => self.reduce(scene, kernel, &settings, into)?,
                &Stage::Scalar { kernel, settings } => {
                    let given = self.given(scene, &settings, false)?;
                    self.once(kernel, given)?;
                }
                Stage::Until { test, settings, most, stages } => {
                    self.until(scene, (*test, settings), *most, stages)?;
                }
            }
        }
        Ok(())
    }

    fn update<T: Number>(
        &mut self,
        scene: Scene<T>,
        kernel: usize,
        settings: &Settings,
        (part, rule, rounds): Rounds,
    ) -> Result<()> {
        let double = rule == Rule::AtOnce;
        if double {
            self.arrays.make_double(&self.device, &self.queue)?;
        }
        self.rounds(scene, kernel, settings, rounds, |work, rounds, given| {
            let walk = work.walk(scene.domain, (part, rule, rounds))?;
            work.visit(&walk, kernel, given, double)?;
            if double {
                work.arrays.swap();
            }
            Ok(walk.rounds)
        })?;
        if rule != Rule::Alone {
            self.rounds[0] += u64::from(rounds);
            self.rounds[1] += if double { 0 } else { u64::from(rounds) };
        }
        Ok(())
    }

    /// Does rounds of a kernel. `visit`: records as many of so many as are planned together, by what they are given, and tells how many.
    fn rounds<T: Number>(
        &mut self,
        scene: Scene<T>,
        kernel: usize,
        settings: &Settings,
        rounds: u32,
        visit: impl Fn(&mut Work, u32, u32) -> Result<u32>,
    ) -> Result<()> {
        let draws = self.draws[kernel];
        let mut given = self.given(scene, settings, false)?;
        let mut left = rounds;
        while left > 0 {
            if draws && left < rounds {
                // Every round draws other numbers.
                given = self.given(Scene { draw: scene.draw.wrapping_add(rounds - left), ..scene }, settings, false)?;
            }
            left -= visit(self, if draws { 1 } else { left }, given)?;
        }
        Ok(())
    }

    /// A walk, with its records on the device.
    fn walk(&mut self, domain: &Domain, of: Rounds) -> Result<Arc<Walk>> {
        let walk = self.plan.walk(domain, of);
        self.arrays.take(&self.device, &self.queue, &self.plan)?;
        Ok(walk)
    }

    /// Records the dispatches of a walk. `given`: what its stage is given.
    fn visit(&mut self, walk: &Walk, kernel: usize, given: u32, double: bool) -> Result<()> {
        self.arrays.visit(&self.device, &mut self.queue, &self.pipelines, walk, (kernel, given, double))
    }

    /// Runs a kernel of one invocation.
    fn once(&mut self, kernel: usize, given: u32) -> Result<()> {
        let pipeline = self.pipelines.get(kernel, Entry::Once, false)?;
        let group = self.arrays.group(0);
        self.queue.dispatch(&self.device, |pass| {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[0, given]);
            pass.dispatch_workgroups(1, 1, 1);
        })
    }

    /// Puts down what a stage is given. `begins`: of a test, whether its loop begins here.
    fn given<T: Number>(&mut self, scene: Scene<T>, settings: &Settings, begins: bool) -> Result<u32> {
        let settings = settings.map(T::from_f64);
        let given =
            Given { step: scene.step, levels: levels(scene.depth), begins: u32::from(begins), draw: scene.draw };
        let [a, b, c, d] = settings.map(|x| words(&[x])[0]);
        self.queue.record(&self.device, given.with([a, b, c, d], &words(scene.parameters)))
    }
}

/// A bit for each of so many loops.
fn levels(depth: usize) -> u32 {
    (1 << depth) - 1
}

/// Numbers of 32 bits as words.
fn words<T: Number>(numbers: &[T]) -> Vec<u32> {
    bytemuck::cast_slice(numbers).to_vec()
}

/// Workgroups in two dimensions, none above `most`.
fn grid(groups: u32, most: u32) -> [u32; 2] {
    let rows = groups.div_ceil(most).max(1);
    [groups.div_ceil(rows).max(1), rows]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_hold_all_groups_and_few_more() {
        for groups in [0, 1, 2, 65_535, 65_536, 100_003, u32::MAX / 64] {
            for most in [3, 1000, 65_535] {
                let [x, y] = grid(groups, most);
                let total = u64::from(x) * u64::from(y);
                assert!(x <= most && total >= u64::from(groups) && total < u64::from(groups) + u64::from(y) + 1);
            }
        }
    }
}
