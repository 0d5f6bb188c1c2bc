//! The façade: a program on a mesh, stepped by its owner.

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod widths;

use crate::engine::{Audit, Cpu, Engine, Job, Serial};
use crate::error::{Error, Result};
pub use crate::gpu::Counters as GpuCounters;
use crate::gpu::{Adapter, Gpu, Shader, shaders};
use crate::layout::{Layout, State, data_graph};
use crate::program::{
    Kernel, Lanes, Map, Metrics, Number, Part, PrivateOf, Program, Record, Reduce, SharedOf, Stages, Stars, contract,
    convert,
};
use crate::schedule::{Order, Schedule};
use crate::trace;
use meshweft_mesh::{Curve, Field, Mesh};
use meshweft_shaders::Scalar;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// Where updates run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The oracle: one thread, one vertex after the other.
    Serial,
    /// The cores of this machine; 0 threads take one a core.
    Cpu {
        /// Number of threads.
        threads: usize,
    },
    /// A GPU, in 32 bits. Its results are those of the oracle within a bound, and the same on every run of one device
    /// and driver (claim C6).
    Gpu {
        /// Which of [`adapters`](crate::adapters).
        adapter: usize,
    },
}

impl Backend {
    /// Vertices a block of [`Order::Blocked`] where the user names no size: a power of two from 64 to 4096, about a 128th of the
    /// mesh; on a GPU at most 512.
    ///
    /// It depends on nothing else, because another size is another order and so other bits. 4096 vertices with their edges are
    /// about the size of a core's second-level cache; small meshes take smaller blocks so that threads find work. A GPU has a
    /// hundred processors, each of which wants several blocks at a time and holds them in a few kilobytes.
    ///
    /// ```
    /// use meshweft::Backend;
    /// let sizes = |backend: Backend| [1_000, 50_000, 2_000_000].map(|vertices| backend.default_block_size(vertices));
    /// assert_eq!(sizes(Backend::Cpu { threads: 0 }), [64, 512, 4096]);
    /// assert_eq!(sizes(Backend::Gpu { adapter: 0 }), [64, 512, 512]);
    /// ```
    pub fn default_block_size(self, vertices: usize) -> usize {
        let most = if let Backend::Gpu { .. } = self { 512 } else { 4096 };
        (vertices / 128).next_power_of_two().clamp(64, most)
    }
}

impl Default for Backend {
    fn default() -> Backend {
        Backend::Cpu { threads: 0 }
    }
}

/// How many vertices a core updates side by side. Results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Simd {
    /// The widest registers that the program was compiled for.
    #[default]
    Auto,
    /// One vertex after the other.
    Off,
    /// Eight vertices in 32 bits, four in 64.
    Bits256,
    /// Sixteen vertices in 32 bits, eight in 64.
    Bits512,
}

impl Simd {
    /// Vertices side by side.
    fn width<T: Number>(self) -> usize {
        match self {
            Simd::Off => 1,
            Simd::Bits256 => T::Half::WIDTH,
            Simd::Bits512 => T::Full::WIDTH,
            Simd::Auto if cfg!(target_feature = "avx512f") => T::Full::WIDTH,
            Simd::Auto => T::Half::WIDTH,
        }
    }
}

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

/// Settings of a simulation before it is built. See [`Simulation::builder`].
pub struct Builder<P, T> {
    mesh: Mesh,
    program: P,
    order: Order,
    curve: Curve,
    backend: Backend,
    simd: Simd,
    block_size: Option<usize>,
    audit: bool,
    wgsl: BTreeMap<String, String>,
    precision: PhantomData<T>,
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

impl<P: Program> Simulation<P, f32> {
    /// Starts to build a simulation in 32 bits, in the default order, on all cores.
    ///
    /// See the [crate's front page](crate) for an example.
    pub fn builder(mesh: Mesh, program: P) -> Builder<P, f32> {
        Builder {
            mesh,
            program,
            order: Order::default(),
            curve: Curve::default(),
            backend: Backend::default(),
            simd: Simd::default(),
            block_size: None,
            audit: false,
            wgsl: BTreeMap::new(),
            precision: PhantomData,
        }
    }
}

impl<P: Program, T: Number> Builder<P, T> {
    /// Sets the order of sweeps. Another order is another result; everything else here only changes the speed.
    pub fn order(self, order: Order) -> Self {
        Builder { order, ..self }
    }

    /// Sets the curve that numbers the vertices. Another curve is another order.
    pub fn curve(self, curve: Curve) -> Self {
        Builder { curve, ..self }
    }

    /// Sets the vertices a block of [`Order::Blocked`] instead of [`Backend::default_block_size`]. Another size is another order.
    pub fn block_size(self, vertices: usize) -> Self {
        Builder { block_size: Some(vertices), ..self }
    }

    /// Sets where updates run.
    pub fn backend(self, backend: Backend) -> Self {
        Builder { backend, ..self }
    }

    /// Sets how many vertices a core updates side by side. No result depends on it.
    pub fn simd(self, simd: Simd) -> Self {
        Builder { simd, ..self }
    }

    /// Watches every update of the CPU engine, for [`Simulation::audit`]. Costs two counts a neighbor and update.
    pub fn audit(self, audit: bool) -> Self {
        Builder { audit, ..self }
    }

    /// Gives a GPU the update of a kernel in WGSL, instead of what is traced from the program. Nobody needs it.
    ///
    /// `text`: a function `fn update(place: Place, own: Shared, body: Private) -> New`, over the structs and functions that
    /// `meshweft shader` prints, and others that it calls. Whenever the simulation is built on a GPU, it runs one round
    /// beside what is traced, on the state at the start, and is refused if both differ by more than rounding. Where updates
    /// run on the CPU it has no effect.
    pub fn wgsl(mut self, kernel: &str, text: &str) -> Self {
        self.wgsl.insert(kernel.into(), text.into());
        self
    }

    /// Sets the precision of the state and of all arithmetic.
    pub fn precision<U: Number>(self) -> Builder<P, U> {
        let Builder { mesh, program, order, curve, backend, simd, block_size, audit, wgsl, .. } = self;
        Builder { mesh, program, order, curve, backend, simd, block_size, audit, wgsl, precision: PhantomData }
    }

    /// The shaders that would run on a GPU with the limits that WebGPU promises: no device is asked.
    ///
    /// # Errors
    /// As [`Builder::build`], but for the start; a kernel that needs what WGSL cannot write.
    pub fn shaders(self) -> Result<Vec<Shader>> {
        /// Vertices of a group: what most GPUs run in lockstep.
        const WIDTH: usize = 32;
        let numbers = self.curve.order(self.mesh.points());
        let mut stars = Stars::default();
        self.program.stars(&self.mesh, &mut stars)?;
        contract::check(&self.program, &stars.plans)?;
        stars.plans.sort_by_key(|plan| plan.index);
        let block_size =
            self.block_size.unwrap_or_else(|| Backend::Gpu { adapter: 0 }.default_block_size(numbers.len()));
        let schedule = Schedule::new(&data_graph(&numbers, &stars.plans)?, self.order, block_size)?;
        let physics = trace::physics::<P>(&stars.plans, scalar::<T>()?);
        let layout = Layout::<T>::new(schedule, &numbers, stars.plans, WIDTH)?;
        shaders(&self.program, &layout, &physics)
    }

    /// Numbers the vertices, plans the schedule, lays out stars and state.
    ///
    /// Cost: a sort of the vertices, O(vertices + edges) for graph, colors and plan; see [`Simulation::setup`].
    ///
    /// # Errors
    /// Whatever the program says of the mesh; stars that name vertices that do not exist, or that kernels read in another
    /// shape than they were added in; a block size of zero; a start
    /// that is not finite.
    pub fn build(self) -> Result<Simulation<P, T>> {
        let Builder { mesh, program, order, curve, backend, simd, block_size, audit, wgsl, .. } = self;
        let mut setup = Vec::new();
        let mut clock = Instant::now();
        let mut lap = |name, setup: &mut Vec<_>| {
            setup.push((name, clock.elapsed().as_secs_f64()));
            clock = Instant::now();
        };
        let numbers = curve.order(mesh.points());
        lap("number", &mut setup);
        let mut stars = Stars::default();
        program.stars(&mesh, &mut stars)?;
        contract::check(&program, &stars.plans)?;
        lap("stars", &mut setup);
        let graph = data_graph(&numbers, &stars.plans)?;
        lap("graph", &mut setup);
        let block_size = block_size.unwrap_or_else(|| backend.default_block_size(numbers.len()));
        let schedule = Schedule::new(&graph, order, block_size)?;
        let edges = graph.directed_edges();
        let audit = audit.then(|| Audit::new(graph.permuted(schedule.permutation())));
        drop(graph);
        lap("schedule", &mut setup);
        let lay_out = |plans, width| Layout::new(schedule, &numbers, plans, width);
        let (engine, layout) = match backend {
            Backend::Serial => (AnyEngine::Serial(Serial), lay_out(stars.plans, 1)?),
            Backend::Cpu { threads } => (AnyEngine::Cpu(Cpu::new(threads)?), lay_out(stars.plans, simd.width::<T>())?),
            Backend::Gpu { adapter } => {
                stars.plans.sort_by_key(|plan| plan.index);
                let physics = trace::physics::<P>(&stars.plans, scalar::<T>()?);
                let (gpu, layout) = Gpu::new::<T>(adapter, |width| lay_out(stars.plans, width), physics, wgsl)?;
                (AnyEngine::Gpu(Box::new(Mutex::new(OnGpu { gpu, is_changed: true, since: 0 }))), layout)
            }
        };
        lap("layout", &mut setup);
        let state = State::new(layout.slots(), layout.width, |slot| {
            let (shared, private) = program.initial(&mesh, layout.vertex_at(layout.place(slot) as u32));
            (convert::<_, T, SharedOf<P, T>>(shared), convert::<_, T, PrivateOf<P, T>>(private))
        });
        if let AnyEngine::Gpu(on_gpu) = &engine {
            let gpu = &mut on_gpu.lock().unwrap_or_else(PoisonError::into_inner).gpu;
            gpu.parity::<P, T>(&program, &convert(program.parameters(0.0)), &layout, &state)?;
        }
        lap("state", &mut setup);
        let simulation = Simulation {
            mesh,
            program,
            curve,
            layout,
            edges,
            state: OnceLock::from(state),
            engine,
            audit,
            steps: 0,
            rounds: 0,
            swept: 0,
            setup,
        };
        simulation.check_finite().map_err(|error| match error {
            Error::Diverged { vertex, field, value, .. } => Error::Invalid(format!(
                "{field} of vertex {vertex} is {value} at the start: it does not fit into {}; \
                 use f64, or scale the mesh to ordinary units",
                T::NAME
            )),
            other => other,
        })?;
        Ok(simulation)
    }
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

    /// Names the parts of the state that can be read and written: shared ones first, then private ones.
    pub fn fields(&self) -> Vec<Part> {
        let mut parts = <SharedOf<P, T>>::parts("");
        parts.extend(<PrivateOf<P, T>>::parts(""));
        parts
    }

    /// Reads one part of the state, in the order of the mesh's vertices: shape [vertices × components].
    ///
    /// # Errors
    /// An unknown name; the message lists those there are.
    pub fn field(&self, name: &str) -> Result<Field> {
        let (location, components) = self.locate(name)?;
        let state = self.state()?;
        let mut values = Vec::with_capacity(self.vertices() as usize * components);
        for v in 0..self.vertices() {
            let slot = self.layout.slot(v);
            values.extend((0..components).map(|k| self.real(state, location, slot, k).to_f64()));
        }
        Ok(Field { name: name.into(), components, values })
    }

    /// Writes one part of the state, in the order of the mesh's vertices. Values are rounded to the precision.
    ///
    /// # Errors
    /// An unknown name, a wrong number of values, or one that is not finite (names the vertex).
    pub fn set_field(&mut self, name: &str, values: &[f64]) -> Result<()> {
        let (location, components) = self.locate(name)?;
        let n = self.vertices() as usize;
        if values.len() != n * components {
            let given = values.len();
            return Err(Error::Invalid(format!("{name} takes {n} × {components} values, {given} were given")));
        }
        if let Some(i) = values.iter().position(|&x| !T::from_f64(x).finite()) {
            let (v, x) = (i / components, values[i]);
            return Err(Error::Invalid(format!(
                "{name} of vertex {v} would be {x}, which is not a finite {}",
                T::NAME
            )));
        }
        self.state_mut()?;
        let Some(state) = self.state.get_mut() else { unreachable!("it has just been read") };
        for (v, value) in values.chunks_exact(components).enumerate() {
            for slot in self.layout.slots_of(v as u32) {
                for (k, &x) in value.iter().enumerate() {
                    *real_mut::<P, T>(state, location, slot, k) = T::from_f64(x);
                }
            }
        }
        Ok(())
    }

    /// The state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// A GPU that failed, or a state on one that is not finite.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn vertex(&self, v: u32) -> Result<(SharedOf<P, T>, PrivateOf<P, T>)> {
        Ok(self.vertex_of(self.state()?, v))
    }

    fn vertex_of(&self, state: &State<T>, v: u32) -> (SharedOf<P, T>, PrivateOf<P, T>) {
        let slot = self.layout.slot(v);
        (state.shared(slot), state.private(slot))
    }

    /// Replaces the state of vertex `v` of the mesh.
    ///
    /// # Errors
    /// As [`Simulation::vertex`].
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn set_vertex(&mut self, v: u32, shared: SharedOf<P, T>, private: PrivateOf<P, T>) -> Result<()> {
        let slots = self.layout.slots_of(v);
        let state = self.state_mut()?;
        for slot in slots {
            state.set_shared(slot, shared);
            state.set_private(slot, private);
        }
        Ok(())
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

    /// The part and component of real `k` of shared and private state together.
    fn name_of(&self, mut k: usize) -> (String, usize) {
        for part in self.fields() {
            if k < part.components {
                return (part.name, k);
            }
            k -= part.components;
        }
        unreachable!("real {k} lies in some part")
    }

    /// Whether a part is shared, the number of its first real, and its components.
    fn locate(&self, name: &str) -> Result<((bool, usize), usize)> {
        for (is_shared, parts) in [(true, <SharedOf<P, T>>::parts("")), (false, <PrivateOf<P, T>>::parts(""))] {
            let mut first = 0;
            for part in parts {
                if part.name == name {
                    return Ok(((is_shared, first), part.components));
                }
                first += part.components;
            }
        }
        let names: Vec<_> = self.fields().into_iter().map(|p| p.name).collect();
        Err(Error::Invalid(format!("unknown field {name:?}: one of {}", names.join(", "))))
    }

    /// Number of vertices.
    fn vertices(&self) -> u32 {
        self.mesh.points().len() as u32
    }

    fn real(&self, state: &State<T>, location: (bool, usize), slot: usize, k: usize) -> T {
        let i = index::<P, T>(state, location, slot, k);
        if location.0 { state.shared[i] } else { state.private[i] }
    }
}

/// What a GPU calls the numbers of a precision.
///
/// # Errors
/// 64 bits.
fn scalar<T: Number>() -> Result<Scalar> {
    match T::NAME {
        "f32" => Ok(Scalar::F32),
        "i32" => Ok(Scalar::I32),
        name => Err(Error::Invalid(format!("a GPU computes in f32 or i32, not in {name}: that runs on the CPU"))),
    }
}

/// Where a real of a part lies: in shared or private state, by the number of the part's first real.
fn index<P: Program, T: Number>(state: &State<T>, (is_shared, first): (bool, usize), slot: usize, k: usize) -> usize {
    match is_shared {
        true => slot * crate::layout::shared_stride(<SharedOf<P, T>>::LEN) + first + k,
        false => state.private_index::<PrivateOf<P, T>>(slot, first + k),
    }
}

fn real_mut<P: Program, T: Number>(state: &mut State<T>, location: (bool, usize), slot: usize, k: usize) -> &mut T {
    let i = index::<P, T>(state, location, slot, k);
    if location.0 { &mut state.shared[i] } else { &mut state.private[i] }
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
