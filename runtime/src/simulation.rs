//! The façade: a program on a mesh, stepped by its owner.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod widths;

use crate::engine::{Audit, Cpu, Engine, Job, Serial};
use crate::error::{Error, Result};
use crate::layout::{Layout, State, data_graph};
use crate::program::{
    Float, Kernel, Lanes, Map, Metrics, Part, PrivateOf, Program, Record, Reduce, SharedOf, Stages, Stars, contract,
    convert,
};
use crate::schedule::{Order, Schedule};
use meshweft_mesh::{Curve, Field, Mesh};
use std::marker::PhantomData;
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
    fn width<T: Float>(self) -> usize {
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
    precision: PhantomData<T>,
}

/// A program on a mesh, with its state.
///
/// The owner keeps the loop: [`Simulation::step`] advances one time step; fields can be read and written between steps,
/// in the order of the mesh's vertices whatever the order of the schedule. There is no global state: any number of
/// simulations may live at once, each with its own threads.
pub struct Simulation<P: Program, T: Float = f32> {
    mesh: Mesh,
    program: P,
    curve: Curve,
    layout: Layout<T>,
    /// Directed edges of the data graph.
    edges: usize,
    state: State<T>,
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
            precision: PhantomData,
        }
    }
}

impl<P: Program, T: Float> Builder<P, T> {
    /// Sets the order of sweeps. Another order is another result; everything else here only changes the speed.
    pub fn order(self, order: Order) -> Self {
        Builder { order, ..self }
    }

    /// Sets the curve that numbers the vertices. Another curve is another order.
    pub fn curve(self, curve: Curve) -> Self {
        Builder { curve, ..self }
    }

    /// Sets the vertices a block of [`Order::Blocked`]. Another size is another order.
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

    /// Sets the precision of the state and of all arithmetic.
    pub fn precision<U: Float>(self) -> Builder<P, U> {
        let Builder { mesh, program, order, curve, backend, simd, block_size, audit, .. } = self;
        Builder { mesh, program, order, curve, backend, simd, block_size, audit, precision: PhantomData }
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
        let Builder { mesh, program, order, curve, backend, simd, block_size, audit, .. } = self;
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
        let schedule = Schedule::new(&graph, order, block_size)?;
        let edges = graph.directed_edges();
        let audit = audit.then(|| Audit::new(graph.permuted(schedule.permutation())));
        drop(graph);
        lap("schedule", &mut setup);
        let width = if backend == Backend::Serial { 1 } else { simd.width::<T>() };
        let layout = Layout::new(schedule, &numbers, stars.plans, width)?;
        lap("layout", &mut setup);
        let engine = match backend {
            Backend::Serial => AnyEngine::Serial(Serial),
            Backend::Cpu { threads } => AnyEngine::Cpu(Cpu::new(threads)?),
        };
        let state = State::new(layout.slots(), width, |slot| {
            let (shared, private) = program.initial(&mesh, layout.vertex_at(layout.place(slot) as u32));
            (convert::<_, T, SharedOf<P, T>>(shared), convert::<_, T, PrivateOf<P, T>>(private))
        });
        lap("state", &mut setup);
        let simulation = Simulation {
            mesh,
            program,
            curve,
            layout,
            edges,
            state,
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

impl<P: Program, T: Float> Simulation<P, T> {
    /// Advances one time step.
    ///
    /// # Errors
    /// [`Error::Diverged`] if a value is no longer finite; it names the vertex and the step, and so does every later call.
    pub fn step(&mut self) -> Result<()> {
        let parameters = convert(self.program.parameters(self.time()));
        let mut job = Job::<P, T> {
            parameters,
            layout: &self.layout,
            state: &mut self.state,
            audit: self.audit.as_ref(),
            finite: true,
        };
        let (rounds, swept) = match &self.engine {
            AnyEngine::Serial(engine) => run_step(engine, &self.program, &mut job),
            AnyEngine::Cpu(engine) => run_step(engine, &self.program, &mut job),
        };
        let finite = job.finite;
        self.steps += 1;
        self.rounds += rounds;
        self.swept += swept;
        if finite { Ok(()) } else { self.check_finite() }
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
        self.state.bytes() + self.layout.bytes()
    }

    /// Bytes that one round must move at least between memory and processor when nothing of the last one is left in a
    /// cache: stars and halos in, shared state in and out, private state in. Private state that changes goes out on top.
    pub fn round_bytes(&self) -> usize {
        self.layout.round_bytes() + (2 * self.state.shared.len() + self.state.private.len()) * T::BYTES
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
        let mut values = Vec::with_capacity(self.vertices() as usize * components);
        for v in 0..self.vertices() {
            let slot = self.layout.slot(v);
            values.extend((0..components).map(|k| self.real(location, slot, k).to_f64()));
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
        for (v, value) in values.chunks_exact(components).enumerate() {
            for slot in self.layout.slots_of(v as u32) {
                value.iter().enumerate().for_each(|(k, &x)| *self.real_mut(location, slot, k) = T::from_f64(x));
            }
        }
        Ok(())
    }

    /// The state of vertex `v` of the mesh.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn vertex(&self, v: u32) -> (SharedOf<P, T>, PrivateOf<P, T>) {
        let slot = self.layout.slot(v);
        (self.state.shared(slot), self.state.private(slot))
    }

    /// Replaces the state of vertex `v` of the mesh.
    ///
    /// # Panics
    /// If `v` is no vertex.
    pub fn set_vertex(&mut self, v: u32, shared: SharedOf<P, T>, private: PrivateOf<P, T>) {
        for slot in self.layout.slots_of(v) {
            self.state.set_shared(slot, shared);
            self.state.set_private(slot, private);
        }
    }

    /// Measures the quantities that the program names.
    pub fn metrics(&mut self) -> Vec<Metric> {
        struct Measure<'a, P: Program, T: Float> {
            engine: &'a AnyEngine,
            job: Job<'a, P, T>,
            metrics: Vec<Metric>,
        }
        impl<P: Program, T: Float> Metrics<P> for Measure<'_, P, T> {
            fn measure<K: Reduce<P>>(&mut self, _: K) {
                let value = match self.engine {
                    AnyEngine::Serial(engine) => engine.measure::<P, T, K>(&self.job),
                    AnyEngine::Cpu(engine) => engine.measure::<P, T, K>(&self.job),
                };
                self.metrics.push(Metric { name: K::NAME, unit: K::UNIT, value });
            }
        }
        let parameters = convert(self.program.parameters(self.time()));
        let (layout, state) = (&self.layout, &mut self.state);
        let job = Job { parameters, layout, state, audit: None, finite: true };
        let mut measure = Measure { engine: &self.engine, job, metrics: Vec::new() };
        self.program.metrics(&mut measure);
        measure.metrics
    }

    /// BLAKE3 of the whole state in the order of the mesh's vertices, as 64 hexadecimal digits.
    ///
    /// Every real as little-endian bits, shared state before private; both zeros count as one value.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::new();
        for v in 0..self.vertices() {
            let (shared, private) = self.vertex(v);
            let mut push = |x: T| bytes.extend_from_slice(&x.canonical_bits().to_le_bytes()[..T::BYTES]);
            shared.each(|_, x| push(x));
            private.each(|_, x| push(x));
            if bytes.len() >= 1 << 16 {
                hasher.update(&bytes);
                bytes.clear();
            }
        }
        hasher.update(&bytes);
        hasher.finalize().to_hex().to_string()
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
        for v in 0..self.vertices() {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for (simulation, reals) in [(self, &mut left), (other, &mut right)] {
                let (shared, private) = simulation.vertex(v);
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
        if self.state.is_finite() {
            return Ok(());
        }
        for v in 0..self.vertices() {
            let (shared, private) = self.vertex(v);
            let mut found = None;
            let mut look = |k: usize, x: T| {
                if !x.finite() && found.is_none() {
                    found = Some((k, x.to_f64()));
                }
            };
            shared.each(&mut look);
            private.each(|k, x| look(<SharedOf<P, T>>::LEN + k, x));
            if let Some((k, value)) = found {
                let field = self.name_of(k).0;
                return Err(Error::Diverged { vertex: v, step: self.steps, field, value });
            }
        }
        Ok(())
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

    fn index(&self, (is_shared, first): (bool, usize), slot: usize, k: usize) -> usize {
        if is_shared {
            slot * crate::layout::shared_stride(<SharedOf<P, T>>::LEN) + first + k
        } else {
            self.state.private_index::<PrivateOf<P, T>>(slot, first + k)
        }
    }

    /// Number of vertices.
    fn vertices(&self) -> u32 {
        self.mesh.points().len() as u32
    }

    fn real(&self, location: (bool, usize), slot: usize, k: usize) -> T {
        let i = self.index(location, slot, k);
        if location.0 { self.state.shared[i] } else { self.state.private[i] }
    }

    fn real_mut(&mut self, location: (bool, usize), slot: usize, k: usize) -> &mut T {
        let i = self.index(location, slot, k);
        if location.0 { &mut self.state.shared[i] } else { &mut self.state.private[i] }
    }
}

/// Runs one step and returns the rounds that updated every vertex from its neighbors, and how many of them an order bound.
fn run_step<P: Program, T: Float, E: Engine>(engine: &E, program: &P, job: &mut Job<P, T>) -> (u64, u64) {
    struct Run<'a, 'b, P: Program, T: Float, E> {
        engine: &'a E,
        job: &'a mut Job<'b, P, T>,
        rounds: u64,
        swept: u64,
    }
    impl<P: Program, T: Float, E: Engine> Stages<P> for Run<'_, '_, P, T, E> {
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
