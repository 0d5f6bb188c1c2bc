//! From a mesh and a program to a simulation.

use super::{Backend, Clock, Health, Simd, Simulation};
use crate::engine::{Audit, Cpu, Engine, Interpreter, MOST, Serial, Table, Timeline};
use crate::error::{Error, Result};
use crate::gpu::{self, Device, Shader};
use crate::layout::{Forms, Layout, Shape, State, check_elements, data_graph, degrees};
use crate::number::{Int, Number, Real};
use crate::program::{
    Kernels, PrivateOf, Program, Record, SharedOf, Stages, StarPlan, StarShape, Stars, Vertex, convert, leaves, parts,
};
use crate::schedule::{Key, Order, Schedule};
use crate::trace::{self, Expr};
use meshweft_mesh::{Curve, Mesh, Permutation};
use meshweft_shaders::Scalar;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

/// Settings of a simulation before it is built. See [`Simulation::builder`].
pub struct Builder<P, T> {
    mesh: Mesh,
    program: P,
    order: Option<Order>,
    backend: Backend,
    simd: Simd,
    audit: bool,
    timeline: bool,
    key: Option<OwnKey>,
    precision: PhantomData<T>,
}

/// An order of the host's own.
type OwnKey = Box<dyn Fn(u32) -> u64 + Send + Sync>;

impl<P: Program> Simulation<P, f32> {
    /// Starts to build a simulation in 32 bits, in the order that suits the backend ([`Backend::order`]), on all cores.
    ///
    /// See the [crate's front page](crate) for an example.
    pub fn builder(mesh: Mesh, program: P) -> Builder<P, f32> {
        Builder {
            mesh,
            program,
            order: None,
            backend: Backend::default(),
            simd: Simd::default(),
            audit: false,
            timeline: false,
            key: None,
            precision: PhantomData,
        }
    }
}

impl<P: Program, T: Number> Builder<P, T> {
    /// Sets the order of sweeps. Another order is another result; everything else here only changes the speed.
    pub fn order(self, order: Order) -> Self {
        Builder { order: Some(order), ..self }
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
    /// #     fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> { stars.add(Edges, mesh.edges(), |_| ()); Ok(()) }
    /// #     fn initial(&self, _: &Mesh, _: u32) -> Seen<f64> { Seen { count: 0.0, last: 0.0 } }
    /// #     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Next, 1) }
    /// # }
    /// // From the last vertex of a chain to the first, each counts one more than its neighbor.
    /// let mut chain = Simulation::builder(generate("chain:5", 1)?, Count).order_by(|v| 100 - u64::from(v)).build()?;
    /// chain.step()?;
    /// assert_eq!(chain.field("count")?.values, [5.0, 4.0, 3.0, 2.0, 1.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn order_by(self, key: impl Fn(u32) -> u64 + Send + Sync + 'static) -> Self {
        let order = Order { key: Key::Own, ..self.order.unwrap_or_default() };
        Builder { key: Some(Box::new(key)), order: Some(order), ..self }
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

    /// Writes down what the threads of all hosts do, for [`Simulation::write_timeline`]: those of [`Backend::Cpu`], or those of the
    /// workers of a cluster. No result depends on it. Costs three looks at the clock a task, and at most 8 MB a host.
    pub fn timeline(self, timeline: bool) -> Self {
        Builder { timeline, ..self }
    }

    /// Sets the precision of the state and of all arithmetic.
    pub fn precision<U: Number>(self) -> Builder<P, U> {
        let Builder { mesh, program, order, backend, simd, audit, timeline, key, .. } = self;
        Builder { mesh, program, order, backend, simd, audit, timeline, key, precision: PhantomData }
    }

    /// The shaders that would run on a GPU with the limits that WebGPU promises: no device is asked.
    ///
    /// # Errors
    /// As [`Builder::build`], but for the start; a kernel that needs what WGSL cannot write.
    pub fn shaders(self) -> Result<Vec<Shader>> {
        /// Vertices of a group: what most GPUs run in lockstep.
        const WIDTH: usize = 32;
        let Builder { mesh, program, order, key, .. } = self;
        let backend = Backend::Gpu { adapter: 0 };
        let order = order.unwrap_or_else(|| backend.order());
        let stars = stars(&program, &mesh)?;
        let numbers = number(&mesh, order, key.as_ref(), &stars)?;
        let shapes = shapes(&stars);
        let physics = trace::physics::<P>(&shapes, gpu::scalar::<T>()?);
        let kernels = gpu::sources(&Table::<T>::of::<P>(), trace::kernels::<P>(&physics, &shapes)?)?;
        let schedule = Schedule::new(&data_graph(&numbers, &stars)?, order, backend.grain(numbers.len()))?;
        let shape = Shape { width: WIDTH, shared: <SharedOf<P, T>>::LEN, private: <PrivateOf<P, T>>::LEN };
        let mut layout = Layout::<T>::new(schedule, &numbers, stars, shape, Forms::Tables)?;
        layout.fix(|v| program.fixed(&mesh, v));
        gpu::shaders(&kernels, &layout, &physics)
    }

    /// Numbers the vertices, plans the schedule, lays out stars and state.
    ///
    /// Cost: a sort of the vertices, O(vertices + edges) for graph, colors and plan; see [`Simulation::setup`]. Every kernel is
    /// run once on symbols.
    ///
    /// # Errors
    /// Whatever the program says of the mesh; [`Error::Program`] for a program that breaks the rules of programs, which names
    /// kernel, field or star; a block size of zero; a start, parameter or datum that is not finite.
    pub fn build(self) -> Result<Simulation<P, T>> {
        let Builder { mesh, program, order, backend, simd, audit, timeline, key, .. } = self;
        let order = order.unwrap_or_else(|| backend.order());
        let mut setup = Vec::new();
        let mut clock = Instant::now();
        let mut lap = |name, setup: &mut Vec<_>| {
            setup.push((name, clock.elapsed().as_secs_f64()));
            clock = Instant::now();
        };
        meshweft_mesh::start_threads()?;
        check_shapes::<P, T>()?;
        let table = Arc::new(Table::<T>::of::<P>());
        let mut stars = stars(&program, &mesh)?;
        // A search along some edges finds each list by itself.
        let is_relaxed = stars.iter().any(|plan| table.relaxed.contains(&plan.index));
        let forms = match backend.searches() && is_relaxed {
            true => Forms::Rows,
            false if backend.has_gpus() => Forms::Tables,
            false => Forms::Any,
        };
        let scalar = gpu::scalar::<T>().unwrap_or(Scalar::F32);
        let shapes = shapes(&stars);
        let physics = trace::physics::<P>(&shapes, scalar);
        let traced = trace::kernels::<P>(&physics, &shapes)?;
        stars.iter_mut().for_each(|plan| plan.is_searched = trace::is_searched(&traced, plan.index));
        Stages::<P>::record::<T>(table.ids(), false, |stages| program.step(stages))?;
        lap("stars", &mut setup);
        let numbers = number(&mesh, order, key.as_ref(), &stars)?;
        lap("number", &mut setup);
        let graph = data_graph(&numbers, &stars)?;
        lap("graph", &mut setup);
        let schedule = Schedule::new(&graph, order, backend.grain(numbers.len()))?;
        let edges = graph.directed_edges();
        let audit = audit.then(|| Arc::new(Audit::new(graph.permuted(schedule.permutation()))));
        drop(graph);
        lap("schedule", &mut setup);
        let device = match &backend {
            &Backend::Gpu { adapter } => Some((Device::open(adapter)?, gpu::scalar::<T>()?)),
            _ => None,
        };
        let width = match (&device, &backend) {
            (Some((device, _)), _) => device.width(),
            (None, Backend::Serial) => 1,
            (None, _) => simd.width::<T>(),
        };
        let shape = Shape { width, shared: <SharedOf<P, T>>::LEN, private: <PrivateOf<P, T>>::LEN };
        let mut layout = Layout::new(schedule, &numbers, stars, shape, forms)?;
        layout.fix(|v| program.fixed(&mesh, v));
        if traced.iter().any(|kernel| kernel.reads_vertex) {
            layout.number();
        }
        let layout = Arc::new(layout);
        lap("layout", &mut setup);
        let state = State::new(layout.slots(), width, |slot| {
            let vertex = program.initial(&mesh, layout.vertex_at(layout.place(slot) as u32));
            let (shared, private) = vertex.split();
            (convert::<_, T, SharedOf<P, T>>(shared), convert::<_, T, PrivateOf<P, T>>(private))
        });
        let globals = leaves(&program.globals());
        let timeline = timeline.then(|| Arc::new(Timeline::new(MOST)));
        let engine: Box<dyn Engine<T>> = match (device, &backend) {
            #[cfg(feature = "cluster")]
            (None, Backend::Cluster(cluster)) => {
                Box::new(cluster.start::<P, T>(&layout, mesh.points(), &table, state, &globals, timeline.is_some())?)
            }
            (Some((device, _)), _) => {
                let kernels = gpu::sources(&table, traced)?;
                gpu::engine(device, layout.domain.clone(), (&physics, kernels), state, globals)?
            }
            (None, &Backend::Cpu { threads }) => {
                let mut cpu = Cpu::new(threads, layout.domain.clone(), audit.clone(), state)?;
                timeline.iter().for_each(|timeline| cpu.record(timeline.clone()));
                Box::new(Interpreter::new(cpu, table.clone(), globals))
            }
            (None, _) => Box::new(Interpreter::new(Serial::new(layout.domain.clone(), state), table.clone(), globals)),
        };
        lap("state", &mut setup);
        let parts = parts::<P, T>();
        let audit = audit.filter(|_| matches!(backend, Backend::Cpu { .. }));
        let (clock, health) = (Clock::default(), Health::Well);
        let simulation =
            Simulation { mesh, program, layout, table, edges, engine, audit, timeline, parts, clock, health, setup };
        simulation.check_start()?;
        Ok(simulation)
    }
}

impl<P: Program, T: Number> Simulation<P, T> {
    /// Refuses a start that is not finite, with advice that fits the cause.
    fn check_start(&self) -> Result<()> {
        if let Some((i, part)) =
            self.parts.iter().enumerate().find(|(i, part)| self.parts[..*i].iter().any(|other| other.name == part.name))
        {
            let (name, _) = (&part.name, i);
            return Err(Error::Program(format!(
                "two fields of a vertex are called {name}: each needs a name of its own"
            )));
        }
        self.parameters()?;
        let why = |value: f64| match value.is_nan() {
            true => "its formula has no value there".to_string(),
            false => format!("it does not fit into {}; use f64, or scale the mesh to ordinary units", T::NAME),
        };
        match self.find_fault(0) {
            None => Ok(()),
            Some(Error::Diverged { vertex, field, value, .. }) => {
                Err(Error::Invalid(format!("{field} of vertex {vertex} is {value} at the start: {}", why(value))))
            }
            Some(Error::Global { name, value, .. }) => {
                Err(Error::Invalid(format!("global {name} is {value} at the start: {}", why(value))))
            }
            Some(other) => Err(other),
        }
    }
}

/// Numbers the vertices: along the curve, or by a key of the host's own first.
///
/// # Errors
/// An order by a key of the host's own, and no key.
fn number(mesh: &Mesh, order: Order, key: Option<&OwnKey>, stars: &[StarPlan]) -> Result<Permutation> {
    let numbers = match order.curve {
        Curve::Degree => Permutation::by_degree(&degrees(mesh.points().len(), stars)),
        curve => curve.order(mesh.points()),
    };
    match (order.key, key) {
        (Key::Own, Some(key)) => {
            Ok(Permutation::sorted_by_key(numbers.len(), |v| (key(v), numbers.rank()[v as usize])))
        }
        (Key::Own, None) => Err(Error::Invalid(format!("order {order}: `Builder::order_by` takes the key"))),
        _ => Ok(numbers),
    }
}

/// The stars that a program adds for a mesh, in the order in which it declares them.
///
/// # Errors
/// Whatever the program says of the mesh; two stars at one rank, or a rank without a star.
fn stars<P: Program>(program: &P, mesh: &Mesh) -> Result<Vec<StarPlan>> {
    let mut stars = Stars::default();
    program.stars(mesh, &mut stars)?;
    let mut plans = stars.plans;
    plans.sort_by_key(|plan| plan.index);
    if let Some(pair) = plans.windows(2).find(|pair| pair[0].index == pair[1].index) {
        let [a, b] = [pair[0].name, pair[1].name];
        return Err(Error::Program(match a == b {
            true => format!("star {a} was added twice"),
            false => format!("stars {a} and {b} were declared apart: declare all stars of a program in one `stars!`"),
        }));
    }
    check_elements(mesh.points().len(), &plans)?;
    match plans.iter().enumerate().find(|(i, plan)| plan.index != *i) {
        None => Ok(plans),
        Some((i, plan)) => Err(Error::Program(format!(
            "star {} has rank {}, but no star of rank {i} was added: `Program::stars` adds every star that `stars!` declares",
            plan.name, plan.index
        ))),
    }
}

/// What the elements of each star have in common.
fn shapes(stars: &[StarPlan]) -> Vec<StarShape> {
    stars.iter().map(StarPlan::common).collect()
}

/// Refuses records whose length depends on the number type: engines would cut the state at different places.
fn check_shapes<P: Kernels, T: Number>() -> Result<()> {
    fn shape<P: Kernels, R: Real>() -> [usize; 4] {
        let [shared, private] = [<SharedOf<P, R>>::LEN, <PrivateOf<P, R>>::LEN];
        [shared, private, <P::Parameters<R>>::LEN, <P::Globals<R>>::LEN]
    }
    let shapes = [
        shape::<P, f32>(),
        shape::<P, f64>(),
        shape::<P, Int>(),
        shape::<P, T::Half>(),
        shape::<P, T::Full>(),
        shape::<P, Expr>(),
    ];
    match ["shared state", "private state", "parameters", "globals"]
        .iter()
        .enumerate()
        .find(|&(i, _)| shapes.iter().any(|shape| shape[i] != shapes[0][i]))
    {
        None => Ok(()),
        Some((_, what)) => Err(Error::Program(format!(
            "the number of reals of the {what} depends on the number type: `Record::LEN` must be the same for all"
        ))),
    }
}
