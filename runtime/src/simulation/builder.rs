//! The typed face of what builds a simulation.

use super::build::{self, Config, Plan};
use super::plans::Plans;
use super::{AnySimulation, Backend, Checkpoint, Simd, Simulation};
use crate::engine::Table;
use crate::error::Result;
use crate::gpu::Shader;
use crate::number::Number;
use crate::program::Program;
use crate::tapes::TapeProgram;
use meshweft_mesh::Mesh;
use meshweft_schedule::{Key, Order};
use std::any::TypeId;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

/// Settings of a simulation before it is built. See [`Simulation::builder`].
pub struct Builder<P, T> {
    program: P,
    config: Config,
    precision: PhantomData<T>,
}

impl<P: Program> Simulation<P, f32> {
    /// Starts to build a simulation in 32 bits, in the order that suits the backend ([`Backend::order`]), on all cores.
    ///
    /// See the [crate's front page](crate) for an example.
    pub fn builder(mesh: Mesh, program: P) -> Builder<P, f32> {
        Builder { program, config: Config::of(mesh), precision: PhantomData }
    }
}

impl TapeProgram {
    /// Starts to build a simulation in 32 bits, as [`Simulation::builder`] does.
    pub fn builder(self, mesh: Mesh) -> Builder<TapeProgram, f32> {
        Builder { program: self, config: Config::of(mesh), precision: PhantomData }
    }
}

impl<T: Number> Builder<TapeProgram, T> {
    /// As [`Builder::build`] of a program that is compiled.
    ///
    /// # Errors
    /// Those of that, and values of the program that do not fit each other.
    pub fn start(self) -> Result<Box<dyn AnySimulation>> {
        let table = Arc::new(self.program.table()?);
        Ok(build::start(Plan::<T> { program: Box::new(self.program), table, kind: None, config: self.config })?)
    }
}

impl<P, T: Number> Builder<P, T> {
    /// Sets the order of sweeps. Another order is another result; everything else here only changes the speed.
    pub fn order(mut self, order: Order) -> Self {
        self.config.order = Some(order);
        self
    }

    /// Sweeps the vertices of the mesh by a key of the host's own, ties along the curve: an order like the others, which any
    /// number of threads walks as a task graph. Only as much can run at the same time as neighbors allow.
    ///
    /// ```
    /// # use meshweft::{Mesh, Program, Result, Simulation, Stages, Stars, kernels, stars, vertex};
    /// # use meshweft::mesh::generate::generate;
    /// # vertex! { struct Seen<R> { shared count: R, last: R } }
    /// # stars! { Edges[1]; }
    /// # struct Count;
    /// # kernels! {
    /// #     for Count: Seen;
    /// #     update Next |_, _, around| {
    /// #         let most = around.fold(Edges, R::lit(0.0), |most, [other], ()| most.max(other.count));
    /// #         Seen { count: most + R::lit(1.0), last: most }
    /// #     };
    /// # }
    /// # impl Program for Count {
    /// #     fn initial(&self, _: &Mesh, _: u32) -> Seen<f64> { Seen { count: 0.0, last: 0.0 } }
    /// #     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Next, 1) }
    /// # }
    /// // From the last vertex of a chain to the first, each counts one more than its neighbor.
    /// let mut chain = Simulation::builder(generate("chain:5", 1)?, Count).order_by(|v| 100 - u64::from(v)).build()?;
    /// chain.step()?;
    /// assert_eq!(chain.field("count")?.values, [5.0, 4.0, 3.0, 2.0, 1.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn order_by(mut self, key: impl Fn(u32) -> u64 + Send + Sync + 'static) -> Self {
        self.config.order = Some(Order { key: Key::Own, ..self.config.order.unwrap_or_default() });
        self.config.key = Some(Box::new(key));
        self
    }

    /// Sets where updates run.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.config.backend = backend;
        self
    }

    /// Sets how many vertices a core updates side by side. No result depends on it.
    pub fn simd(mut self, simd: Simd) -> Self {
        self.config.simd = simd;
        self
    }

    /// Watches every update of the CPU engine, for [`AnySimulation::audit`](super::AnySimulation::audit). Costs two counts a neighbor and update.
    pub fn audit(mut self, audit: bool) -> Self {
        self.config.audit = audit;
        self
    }

    /// Runs kernels as tapes: traced once and interpreted on the cores of this process, as those are that nobody compiles. No result depends
    /// on it; they take five to ten times as long.
    ///
    /// ```
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::Mixing};
    /// let mesh = || generate("sheet:9", 1).unwrap();
    /// let mut compiled = Simulation::builder(mesh(), Mixing).build()?;
    /// let mut interpreted = Simulation::builder(mesh(), Mixing).tapes(true).build()?;
    /// compiled.step()?;
    /// interpreted.step()?;
    /// assert_eq!(interpreted.digest()?, compiled.digest()?);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn tapes(mut self, tapes: bool) -> Self {
        self.config.tapes = tapes;
        self
    }

    /// Writes down what the threads of all hosts do, for [`AnySimulation::write_timeline`](super::AnySimulation::write_timeline): those of [`Backend::Cpu`], or those of the
    /// workers of a cluster. No result depends on it. Costs three looks at the clock a task, and at most 8 MB a host.
    pub fn timeline(mut self, timeline: bool) -> Self {
        self.config.timeline = timeline;
        self
    }

    /// Builds it as one of many that run beside each other, such as the copies of an [`Ensemble`](crate::Ensemble): what it has in
    /// common with those before it is planned once, and it takes one thread where no other number is asked for, that of whoever steps
    /// it. No result depends on it.
    ///
    /// ```
    /// # use meshweft::{Plans, Simulation, mesh::generate::generate, toy::Mixing};
    /// let plans = Plans::default();
    /// let build = || Simulation::builder(generate("sheet:9", 1).unwrap(), Mixing).one_of(&plans).build();
    /// let (first, second) = (build()?, build()?);
    /// assert_eq!(second.threads(), 1);
    /// assert!(std::ptr::eq(first.schedule(), second.schedule()));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn one_of(mut self, plans: &Plans) -> Self {
        self.config.plans = Some(plans.clone());
        self
    }

    /// Sets the precision of the state and of all arithmetic.
    pub fn precision<U: Number>(self) -> Builder<P, U> {
        Builder { program: self.program, config: self.config, precision: PhantomData }
    }
}

impl<P: Program, T: Number> Builder<P, T> {
    /// The shaders that would run on a GPU with the limits that WebGPU promises: no device is asked.
    ///
    /// # Errors
    /// As [`Builder::build`], but for the start; a kernel that needs what WGSL cannot write.
    pub fn shaders(self) -> Result<Vec<Shader>> {
        build::shaders(self.plan())
    }

    /// Numbers the vertices, plans the schedule, lays out stars and state.
    ///
    /// Cost: a sort of the vertices, O(vertices + edges) for graph, colors and plan; see [`AnySimulation::setup`](super::AnySimulation::setup). Every kernel is
    /// run on symbols.
    ///
    /// # Errors
    /// Whatever the program says of the mesh; [`Error::Program`](crate::Error::Program) for a program that breaks the rules of programs,
    /// which names kernel, field or star; a block size of zero; a start, parameter or datum that is not finite.
    pub fn build(self) -> Result<Simulation<P, T>> {
        Ok(Simulation { core: build::start(self.plan())?, program: PhantomData })
    }

    /// Builds it, and goes on from the newest whole [`Checkpoint`] of a folder, in its order unless another is set.
    ///
    /// # Errors
    /// Those of [`Builder::build`], [`Checkpoint::newest`] and [`AnySimulation::resume`](super::AnySimulation::resume).
    pub fn resume(mut self, folder: &Path) -> Result<Simulation<P, T>> {
        let from = Checkpoint::newest(folder)?;
        let order = self.config.order.get_or_insert(from.order());
        // Blocks whose size is open have that of the checkpoint, whatever suits this backend.
        if let Key::Blocked { size } = from.order().key {
            *order = order.resolved(size);
        }
        let mut simulation = self.build()?;
        simulation.resume(&from)?;
        Ok(simulation)
    }

    fn plan(self) -> Plan<T> {
        let (table, kind) = (Arc::new(Table::of::<P>()), Some(TypeId::of::<(P, T)>()));
        Plan { program: Box::new(self.program), table, kind, config: self.config }
    }
}
