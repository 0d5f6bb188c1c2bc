//! The façade: a program on a mesh, stepped by its owner.

mod backend;
mod builder;
mod fields;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod widths;

use crate::engine::{Audit, Cpu, Engine, Job, Serial};
use crate::error::{Error, Result};
pub use crate::gpu::Counters as GpuCounters;
use crate::gpu::{Adapter, Gpu};
use crate::layout::{Layout, State};
use crate::program::{Kernel, Map, Metrics, Number, PrivateOf, Program, Record, Reduce, SharedOf, Stages, convert};
use crate::schedule::Schedule;
pub use backend::{Backend, Simd};
pub use builder::Builder;
use meshweft_mesh::{Curve, Mesh};
use std::sync::{Mutex, OnceLock, PoisonError};

/// One measured quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit; empty for a pure number.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
}

/// What [`Simulation::audit`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// Rounds of sweeps that were watched.
    pub rounds: u32,
    /// Updates that were watched: rounds × vertices.
    pub updates: u64,
    /// Neighbor relations that were checked before and after the updates of sweeps.
    pub relations: u64,
}

/// A program on a mesh, with its state.
///
/// The owner keeps the loop: [`Simulation::step`] advances one time step; fields can be read and written between steps,
/// in the order of the mesh's vertices whatever the order of the schedule. There is no global state: any number of
/// simulations may live at once, each with its own threads.
pub struct Simulation<P: Program, T: Number = f32> {
    mesh: Mesh,
    program: P,
    curve: Curve,
    layout: Layout<T>,
    /// Directed edges of the data graph.
    edges: usize,
    /// On a GPU, a copy of the state, if there is one that is not out of date.
    state: OnceLock<State<T>>,
    engine: AnyEngine,
    audit: Option<Audit>,
    steps: u64,
    rounds: u64,
    /// Those of the rounds that an order bound.
    swept: u64,
    setup: Vec<(&'static str, f64)>,
}

enum AnyEngine {
    Serial(Serial),
    Cpu(Cpu),
    Gpu(Box<Mutex<OnGpu>>),
}

/// A GPU, and how its state and ours hang together.
struct OnGpu {
    gpu: Gpu,
    /// Whether our copy was changed since it was sent.
    is_changed: bool,
    /// Steps taken when it was sent.
    since: u64,
}

impl<P: Program, T: Number> Simulation<P, T> {
    /// Advances one time step. A GPU is asked for it and works on while the caller does, see [`Simulation::wait`].
    ///
    /// # Errors
    /// [`Error::Diverged`] if a value is no longer finite; it names the vertex and the step, and so does every later call.
    pub fn step(&mut self) -> Result<()> {
        let parameters = convert(self.program.parameters(self.time()));
        if let AnyEngine::Gpu(_) = self.engine {
            return self.step_on_gpu(&parameters);
        }
        let mut job = Job::<P, T> {
            parameters,
            layout: &self.layout,
            state: self.state.get_mut().expect("the CPU's engines keep the state here"),
            audit: self.audit.as_ref(),
            finite: true,
        };
        let (rounds, swept) = match &self.engine {
            AnyEngine::Serial(engine) => run_step(engine, &self.program, &mut job),
            AnyEngine::Cpu(engine) => run_step(engine, &self.program, &mut job),
            AnyEngine::Gpu(_) => unreachable!("a GPU has been asked above"),
        };
        let finite = job.finite;
        self.steps += 1;
        self.rounds += rounds;
        self.swept += swept;
        if finite { Ok(()) } else { self.check_finite() }
    }

    /// Sends the state to the device if it was changed here.
    fn send(&mut self) -> Result<()> {
        if let AnyEngine::Gpu(on_gpu) = &mut self.engine {
            let OnGpu { gpu, is_changed, since } = on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let (true, Some(state)) = (*is_changed, self.state.get()) {
                gpu.upload(state)?;
                (*is_changed, *since) = (false, self.steps);
            }
        }
        Ok(())
    }

    /// A step on the device. The host is told later whether all was finite; the device stops at the step where it was not.
    fn step_on_gpu(&mut self, parameters: &P::Parameters<T>) -> Result<()> {
        self.send()?;
        // From here on the copy is out of date, also if the step fails.
        self.state.take();
        let AnyEngine::Gpu(on_gpu) = &mut self.engine else { return Ok(()) };
        let gpu = &mut on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner).gpu;
        let (rounds, swept, finite) = gpu.step::<P, T>(&self.program, parameters, &self.layout)?;
        self.steps += 1;
        self.rounds += rounds;
        self.swept += swept;
        if finite { Ok(()) } else { self.stopped() }
    }

    /// Where the state on the device stopped being finite.
    fn stopped(&mut self) -> Result<()> {
        if let AnyEngine::Gpu(on_gpu) = &mut self.engine {
            let OnGpu { gpu, since, .. } = on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Some(step) = gpu.frozen_at()? {
                // The steps after it were asked for, but not taken.
                self.steps = *since + step;
            }
        }
        self.state().map(|_| ())
    }

    /// The state, read back if it is on a GPU.
    fn state(&self) -> Result<&State<T>> {
        if let Some(state) = self.state.get() {
            return Ok(state);
        }
        let AnyEngine::Gpu(on_gpu) = &self.engine else { unreachable!("the CPU's engines keep the state here") };
        let OnGpu { gpu, since, .. } = &mut *on_gpu.lock().unwrap_or_else(PoisonError::into_inner);
        let frozen = gpu.frozen_at()?;
        let zero = T::from_f64(0.0);
        let (slots, width) = (self.layout.slots(), self.layout.width);
        let mut state =
            State::new(slots, width, |_| (<SharedOf<P, T>>::build(|_| zero), <PrivateOf<P, T>>::build(|_| zero)));
        gpu.download(&mut state)?;
        match frozen {
            None => Ok(self.state.get_or_init(|| state)),
            Some(step) => Err(self.first_spoilt(&state, *since + step).unwrap_or_else(|| {
                Error::Gpu(format!("an update was not finite in step {}, but the state is", *since + step))
            })),
        }
    }

    /// The state, to change it.
    fn state_mut(&mut self) -> Result<&mut State<T>> {
        self.state()?;
        if let AnyEngine::Gpu(on_gpu) = &mut self.engine {
            on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner).is_changed = true;
        }
        Ok(self.state.get_mut().expect("it has just been read"))
    }

    /// Waits until all steps are done: a GPU is asked for them and works on while the caller does. Reading the state waits
    /// too.
    ///
    /// # Errors
    /// As [`Simulation::step`].
    pub fn wait(&mut self) -> Result<()> {
        let AnyEngine::Gpu(on_gpu) = &mut self.engine else { return Ok(()) };
        match on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner).gpu.wait()? {
            true => Ok(()),
            false => self.stopped(),
        }
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Rounds of sweeps taken so far: each updates every vertex once.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Simulated time in seconds.
    pub fn time(&self) -> f64 {
        self.steps as f64 * self.program.time_step()
    }

    /// The mesh, as it was given.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The program.
    pub fn program(&self) -> &P {
        &self.program
    }

    /// The program, to change its parameters between steps.
    pub fn program_mut(&mut self) -> &mut P {
        &mut self.program
    }

    /// The schedule of its sweeps.
    pub fn schedule(&self) -> &Schedule {
        &self.layout.schedule
    }

    /// The curve that numbers its vertices.
    pub fn curve(&self) -> Curve {
        self.curve
    }

    /// Threads that update vertices.
    pub fn threads(&self) -> usize {
        match &self.engine {
            AnyEngine::Serial(_) => 1,
            AnyEngine::Cpu(cpu) => cpu.threads(),
            AnyEngine::Gpu(_) => 1,
        }
    }

    /// The GPU that updates run on, if they do.
    pub fn adapter(&self) -> Option<Adapter> {
        self.gpu(|gpu| gpu.about().clone())
    }

    /// What has been asked of the GPU so far, if there is one.
    pub fn gpu_counters(&self) -> Option<GpuCounters> {
        self.gpu(|gpu| gpu.counters())
    }

    fn gpu<A>(&self, ask: impl FnOnce(&Gpu) -> A) -> Option<A> {
        match &self.engine {
            AnyEngine::Gpu(on_gpu) => Some(ask(&on_gpu.lock().unwrap_or_else(PoisonError::into_inner).gpu)),
            _ => None,
        }
    }

    /// Seconds that each stage of building took, in order.
    pub fn setup(&self) -> &[(&'static str, f64)] {
        &self.setup
    }

    /// Directed edges of the data graph: twice the pairs of vertices that read each other.
    pub fn directed_edges(&self) -> usize {
        self.edges
    }

    /// Bytes of state, schedule and stars, without the mesh.
    pub fn memory_bytes(&self) -> usize {
        let slots = self.layout.slots();
        let reals = slots * (crate::layout::shared_stride(<SharedOf<P, T>>::LEN) + <PrivateOf<P, T>>::LEN);
        self.state.get().map_or(reals * T::BYTES, State::bytes) + self.layout.bytes()
    }

    /// Bytes that one round must move at least between memory and processor when nothing of the last one is left in a
    /// cache: stars and halos in, shared state in and out, private state in. Private state that changes goes out on top.
    pub fn round_bytes(&self) -> usize {
        if let Some(bytes) = self.gpu(Gpu::round_bytes) {
            return bytes;
        }
        let (shared, private) = (crate::layout::shared_stride(<SharedOf<P, T>>::LEN), <PrivateOf<P, T>>::LEN);
        self.layout.round_bytes() + (2 * shared + private) * self.layout.slots() * T::BYTES
    }

    /// Vertices that a core updates side by side.
    pub fn width(&self) -> usize {
        self.layout.width
    }

    /// Measures the quantities that the program names.
    ///
    /// # Errors
    /// As [`Simulation::vertex`].
    pub fn metrics(&mut self) -> Result<Vec<Metric>> {
        struct Measure<'a, P: Program, T: Number> {
            engine: &'a mut AnyEngine,
            job: Job<'a, P, T>,
            metrics: Result<Vec<Metric>>,
        }
        impl<P: Program, T: Number> Metrics<P> for Measure<'_, P, T> {
            fn measure<K: Reduce<P>>(&mut self, _: K) {
                let Ok(metrics) = &mut self.metrics else { return };
                let value = match &mut *self.engine {
                    AnyEngine::Serial(engine) => Ok(engine.measure::<P, T, K>(&self.job)),
                    AnyEngine::Cpu(engine) => Ok(engine.measure::<P, T, K>(&self.job)),
                    AnyEngine::Gpu(on_gpu) => {
                        let gpu = &mut on_gpu.get_mut().unwrap_or_else(PoisonError::into_inner).gpu;
                        gpu.measure::<P, T, K>(&self.job.parameters)
                    }
                };
                match value {
                    Ok(value) => metrics.push(Metric { name: K::NAME, unit: K::UNIT, value }),
                    Err(error) => self.metrics = Err(error),
                }
            }
        }
        self.send()?;
        self.wait()?;
        let parameters = convert(self.program.parameters(self.time()));
        // A GPU measures what it has.
        let mut elsewhere = State::new::<SharedOf<P, T>, PrivateOf<P, T>>(0, 1, |_| unreachable!("no slots"));
        let (layout, state) = (&self.layout, self.state.get_mut().unwrap_or(&mut elsewhere));
        let job = Job { parameters, layout, state, audit: None, finite: true };
        let mut measure = Measure { engine: &mut self.engine, job, metrics: Ok(Vec::new()) };
        self.program.metrics(&mut measure);
        measure.metrics
    }

    /// BLAKE3 of the whole state in the order of the mesh's vertices, as 64 hexadecimal digits.
    ///
    /// Every real as little-endian bits, shared state before private; both zeros count as one value.
    ///
    /// # Errors
    /// As [`Simulation::vertex`].
    pub fn digest(&self) -> Result<String> {
        let state = self.state()?;
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::new();
        for v in 0..self.vertices() {
            let (shared, private) = self.vertex_of(state, v);
            let mut push = |x: T| bytes.extend_from_slice(&x.canonical_bits().to_le_bytes()[..T::BYTES]);
            shared.each(|_, x| push(x));
            private.each(|_, x| push(x));
            if bytes.len() >= 1 << 16 {
                hasher.update(&bytes);
                bytes.clear();
            }
        }
        hasher.update(&bytes);
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Compares the state with that of another run, bit for bit.
    ///
    /// # Errors
    /// [`Error::Mismatch`] names the first vertex and part that differ.
    ///
    /// # Panics
    /// If the meshes have different numbers of vertices.
    pub fn compare(&self, other: &Simulation<P, T>) -> Result<()> {
        assert_eq!(self.vertices(), other.vertices(), "runs on one mesh");
        let states = [self.state()?, other.state()?];
        for v in 0..self.vertices() {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for (simulation, state, reals) in [(self, states[0], &mut left), (other, states[1], &mut right)] {
                let (shared, private) = simulation.vertex_of(state, v);
                shared.each(|_, x| reals.push(x));
                private.each(|_, x| reals.push(x));
            }
            if let Some(k) = (0..left.len()).find(|&k| left[k].canonical_bits() != right[k].canonical_bits()) {
                let (field, component) = self.name_of(k);
                let (left, right) = (left[k].to_f64(), right[k].to_f64());
                return Err(Error::Mismatch { vertex: v, step: self.steps, field, component, left, right });
            }
        }
        Ok(())
    }

    /// What the watch over all updates found, if [`Builder::audit`] asked for it and the engine is the CPU's.
    ///
    /// # Errors
    /// [`Error::Contract`] names a vertex that was not updated once a round, or two neighbors updated out of order.
    pub fn audit(&self) -> Result<Option<AuditReport>> {
        let (Some(audit), AnyEngine::Cpu(_)) = (&self.audit, &self.engine) else { return Ok(None) };
        let name = |place: u32| self.layout.vertex_at(place);
        if let Some((v, u)) = audit.breach() {
            return Err(Error::Contract(format!("neighbors {} and {} were updated out of order", name(v), name(u))));
        }
        let rounds = self.rounds as u32;
        if let Some((place, count)) = audit.miscounted(rounds) {
            let v = name(place as u32);
            return Err(Error::Contract(format!("vertex {v} was updated {count} times in {rounds} rounds")));
        }
        let updates = self.rounds * u64::from(self.vertices());
        let relations = 2 * self.swept * self.edges as u64;
        Ok(Some(AuditReport { rounds, updates, relations }))
    }

    fn check_finite(&self) -> Result<()> {
        let state = self.state()?;
        if state.is_finite() { Ok(()) } else { self.first_spoilt(state, self.steps).map_or(Ok(()), Err) }
    }

    /// The error of the first vertex whose state is not finite after `step`.
    fn first_spoilt(&self, state: &State<T>, step: u64) -> Option<Error> {
        (0..self.vertices()).find_map(|v| {
            let (shared, private) = self.vertex_of(state, v);
            let mut found = None;
            let mut look = |k: usize, x: T| {
                if !x.finite() && found.is_none() {
                    found = Some((k, x.to_f64()));
                }
            };
            shared.each(&mut look);
            private.each(|k, x| look(<SharedOf<P, T>>::LEN + k, x));
            let (k, value) = found?;
            Some(Error::Diverged { vertex: v, step, field: self.name_of(k).0, value })
        })
    }

    /// Number of vertices.
    fn vertices(&self) -> u32 {
        self.mesh.points().len() as u32
    }
}

/// Runs one step and returns the rounds that updated every vertex from its neighbors, and how many of them an order bound.
fn run_step<P: Program, T: Number, E: Engine>(engine: &E, program: &P, job: &mut Job<P, T>) -> (u64, u64) {
    struct Run<'a, 'b, P: Program, T: Number, E> {
        engine: &'a E,
        job: &'a mut Job<'b, P, T>,
        rounds: u64,
        swept: u64,
    }
    impl<P: Program, T: Number, E: Engine> Stages<P> for Run<'_, '_, P, T, E> {
        fn map<K: Map<P>>(&mut self, _: K) {
            self.engine.map::<P, T, K>(self.job);
        }
        fn sweep<K: Kernel<P>>(&mut self, _: K, rounds: usize) {
            self.engine.sweep::<P, T, K>(self.job, rounds);
            self.rounds += rounds as u64;
            if !self.job.layout.schedule.is_double_buffered() {
                self.swept += rounds as u64;
            }
        }
        fn jacobi<K: Kernel<P>>(&mut self, _: K, rounds: usize) {
            self.engine.jacobi::<P, T, K>(self.job, rounds);
            self.rounds += rounds as u64;
        }
    }
    let mut run = Run { engine, job, rounds: 0, swept: 0 };
    program.step(&mut run);
    (run.rounds, run.swept)
}
