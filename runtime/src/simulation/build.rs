//! From a mesh and a program to a simulation.

use super::changing::Changing;
use super::checkpoint::Identity;
use super::core::{Clock, Core, Health, Typed};
use super::fields::rows;
use super::plans::{self, Laid, Plans, Traces};
use super::{Backend, Simd};
use crate::engine::{Audit, Cpu, Engine, Interpreter, MOST, Serial, Table, Timeline};
use crate::error::{Error, Result, named};
use crate::gpu::{self, Device, Shader};
use crate::layout::{ElementPlan, Forms, Layout, Shape, State, check_elements, data_graph, degrees};
use crate::number::{Int, Number};
use crate::program::{AnyProgram, StageList, StarPlan, StarShape, Stars};
use crate::trace::{self, Traced};
use meshweft_mesh::{Curve, Graph, Mesh, Permutation};
use meshweft_schedule::{Key, Order, Schedule};
use meshweft_shaders::{Physics, Scalar};
use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Once};
use std::time::Instant;

/// An order of the host's own.
type OwnKey = Box<dyn Fn(u32) -> u64 + Send + Sync>;

/// How to run a program, and on what.
pub(super) struct Config {
    pub(super) mesh: Mesh,
    pub(super) order: Option<Order>,
    pub(super) backend: Backend,
    pub(super) simd: Simd,
    pub(super) audit: bool,
    pub(super) timeline: bool,
    pub(super) tapes: bool,
    pub(super) key: Option<OwnKey>,
    /// What it shares with others that are built beside it.
    pub(super) plans: Option<Plans>,
}

impl Config {
    pub(super) fn of(mesh: Mesh) -> Config {
        let (backend, simd) = Default::default();
        Config { mesh, order: None, backend, simd, audit: false, timeline: false, tapes: false, key: None, plans: None }
    }
}

/// A simulation before it is built.
pub(super) struct Plan<T> {
    pub(super) program: Box<dyn AnyProgram<T>>,
    pub(super) table: Arc<Table<T>>,
    /// What decides about the table: the types of program and number; none of a program that is data.
    pub(super) kind: Option<TypeId>,
    pub(super) config: Config,
}

/// Builds a simulation.
pub(super) fn start<T: Number>(plan: Plan<T>) -> Result<Box<dyn Typed<T>>> {
    Ok(*build_any(Box::new(plan))?.downcast().expect("a plan in a precision is built in that"))
}

/// The shaders that it would run on a GPU.
pub(super) fn shaders<T: Number>(plan: Plan<T>) -> Result<Vec<Shader>> {
    write_any(Box::new(plan))
}

// These two are not generic, so what they call is compiled in this crate, once for each number type, and not again in every crate
// that has a program.

#[inline(never)]
fn build_any(plan: Box<dyn Any>) -> Result<Box<dyn Any>> {
    fn core<T: Number>(plan: Plan<T>) -> Result<Box<dyn Any>> {
        let core: Box<dyn Typed<T>> = Box::new(build(plan)?);
        Ok(Box::new(core))
    }
    in_its_precision(plan, (core::<f32>, core::<f64>, core::<Int>))
}

#[inline(never)]
fn write_any(plan: Box<dyn Any>) -> Result<Vec<Shader>> {
    in_its_precision(plan, (written::<f32>, written::<f64>, written::<Int>))
}

/// A function of plans for each number type.
type Each<A> = (fn(Plan<f32>) -> A, fn(Plan<f64>) -> A, fn(Plan<Int>) -> A);

fn in_its_precision<A>(plan: Box<dyn Any>, each: Each<A>) -> A {
    let plan = match plan.downcast() {
        Ok(plan) => return each.0(*plan),
        Err(plan) => plan,
    };
    match plan.downcast() {
        Ok(plan) => each.1(*plan),
        Err(plan) => each.2(*plan.downcast().expect("there are three number types")),
    }
}

/// What is known of a program on a mesh before anything is laid out.
struct Outline {
    vertices: Vertices,
    stars: Vec<StarPlan>,
    physics: Physics,
    traced: Vec<Traced>,
}

impl Outline {
    fn of<T: Number>(plan: &mut Plan<T>, scalar: Scalar) -> Result<Outline> {
        let Plan { program, table, kind, config } = plan;
        let vertices = Vertices::of(&config.mesh, AnyProgram::<T>::parts(&**program, &config.mesh))?;
        let (tapes, mut stars) = (config.tapes, stars(&**program, table, (&config.mesh, vertices.len()))?);
        let shapes: Vec<StarShape> = stars.iter().map(StarPlan::common).collect();
        let physics = trace::physics(&table.records, &shapes, &table.projected, scalar);
        if tapes && stars.iter().any(|plan| plan.changes) {
            return Err(Error::Program("kernels that look along stars that change cannot run as tapes".into()));
        }
        let trace = |table: &mut Arc<Table<T>>| {
            let table = Arc::get_mut(table).expect("a table that is not traced has no other owner");
            let traced = table.trace(&physics, &shapes)?;
            if tapes {
                table.interpret(&shapes)?;
            }
            Ok(traced)
        };
        let traced = match (&config.plans, *kind) {
            (Some(plans), Some(program)) => {
                plans.traced(Traces { program, stars: shapes.clone(), tapes }, table, trace)?
            }
            _ => trace(table)?,
        };
        stars.iter_mut().for_each(|plan| plan.is_searched = trace::is_searched(&traced, plan.index));
        Ok(Outline { vertices, stars, physics, traced })
    }
}

fn shape<T>(table: &Table<T>, width: usize) -> Shape {
    let [shared, private, ..] = table.records.lengths();
    Shape { width, shared, private }
}

fn written<T: Number>(mut plan: Plan<T>) -> Result<Vec<Shader>> {
    /// Vertices of a group: what most GPUs run in lockstep.
    const WIDTH: usize = 32;
    let Outline { vertices, stars, physics, traced } = Outline::of(&mut plan, gpu::scalar::<T>()?)?;
    let Plan { program, table, config: Config { mesh, order, key, .. }, .. } = plan;
    let backend = Backend::Gpu { adapter: 0 };
    let order = order.unwrap_or_else(|| backend.order());
    check_projections(&table, &stars, order, &backend)?;
    let numbers = vertices.number(&mesh, order, key.as_ref(), &stars)?;
    let kernels = gpu::sources(traced)?;
    let graph = data_graph(&numbers, &stars)?;
    let schedule = Schedule::of_parts(&graph, order, backend.grain(numbers.len()), &vertices.starts)?;
    drop(graph);
    let mut layout = Layout::new(schedule, &numbers, &stars, T::PRECISION, shape(&table, WIDTH), Forms::Tables)?;
    let is_fixed = |v| program.fixed(&mesh, v);
    layout.fix(is_fixed);
    add_elements(&mut layout, &table, &stars, (&numbers, order, &backend), false, is_fixed)?;
    gpu::shaders(&kernels, &layout, &physics)
}

fn build<T: Number>(mut plan: Plan<T>) -> Result<Core<T>> {
    let mut setup = Vec::new();
    let mut clock = Instant::now();
    let mut lap = |name, setup: &mut Vec<_>| {
        setup.push((name, clock.elapsed().as_secs_f64()));
        clock = Instant::now();
    };
    meshweft_mesh::start_threads()?;
    advise(&plan.config.backend);
    let outline = Outline::of(&mut plan, gpu::scalar::<T>().unwrap_or(Scalar::F32))?;
    let Outline { vertices, stars, physics, traced } = outline;
    let Plan { program, table, config, .. } = plan;
    let Config { mesh, order, mut backend, simd, audit, timeline, key, plans, tapes: _ } = config;
    if let (Backend::Cpu { threads: threads @ 0 }, Some(_)) = (&mut backend, &plans) {
        *threads = 1;
    }
    let (order, mesh) = (order.unwrap_or_else(|| backend.order()), Arc::new(mesh));
    program.step(StageList::new::<T>(table.ids(), vertices.parts(), false)).finish()?;
    let changing = Changing::new(stars.iter().any(|plan| plan.changes));
    check_projections(&table, &stars, order, &backend)?;
    let fields = table.records.state();
    let rows = rows(&program.of_cells(), &mesh, &fields.0, &vertices.starts)?;
    lap("stars", &mut setup);
    let numbers = vertices.number(&mesh, order, key.as_ref(), &stars)?;
    lap("number", &mut setup);
    let device = match &backend {
        &Backend::Gpu { adapter } => {
            let device = Device::open(adapter)?;
            gpu::scalar::<T>()?;
            Some(device)
        }
        _ => None,
    };
    let width = match (&device, &backend) {
        (Some(device), _) => device.width(),
        (None, Backend::Serial) => 1,
        (None, _) => simd.width::<T>()?,
    };
    // A search along some edges finds each list by itself.
    let is_relaxed = stars.iter().any(|plan| table.relaxed.contains(&plan.index));
    let forms = match backend.searches() && is_relaxed {
        true => Forms::Rows,
        false if backend.has_gpus() => Forms::Tables,
        false => Forms::Any,
    };
    let (shape, grain) = (shape(&table, width), backend.grain(numbers.len()));
    let is_numbered = traced.iter().any(|kernel| kernel.reads_vertex);
    // An audit needs the graph, which is not kept.
    let plans = plans.filter(|_| !audit).map(|plans| {
        let projected = &table.projected;
        let starts = &vertices.starts;
        let how = format!("{} {order} {grain} {shape:?} {forms:?} {is_numbered} {projected:?} {starts:?}", T::NAME);
        let key = plans::key(&how, &numbers, &stars, |v| program.fixed(&mesh, v));
        (plans, key)
    });
    let mut watch = None;
    let laid = match plans.as_ref().and_then(|(plans, key)| plans.laid(key, &mesh)) {
        Some(laid) => laid,
        None => {
            let graph = data_graph(&numbers, &stars)?;
            lap("graph", &mut setup);
            let schedule = Schedule::of_parts(&graph, order, grain, &vertices.starts)?;
            let edges = graph.directed_edges();
            let watched = audit.then(|| Audit::new(graph.permuted(schedule.permutation())));
            drop(graph);
            lap("schedule", &mut setup);
            let is_fixed = |v| program.fixed(&mesh, v);
            let mut layout = Layout::new(schedule, &numbers, &stars, T::PRECISION, shape, forms)?;
            layout.beside = vertices.beside;
            layout.fix(is_fixed);
            if is_numbered {
                layout.number();
            }
            let graphs = add_elements(&mut layout, &table, &stars, (&numbers, order, &backend), is_numbered, is_fixed)?;
            watch = watched.map(|watched| Arc::new(watched.with_elements(graphs)));
            drop(stars);
            let laid = Laid { mesh, layout: Arc::new(layout), edges };
            match &plans {
                Some((plans, key)) => plans.keep(key, laid),
                None => laid,
            }
        }
    };
    let Laid { mesh, layout, edges } = laid;
    lap("layout", &mut setup);
    let mut state = State::new(layout.slots(), layout.shape, |slot, reals| {
        program.initial(&mesh, layout.vertex_at(layout.place(slot) as u32), reals);
    });
    state.elements = layout.domain.elements_of_zeros();
    let (globals, audit) = (program.globals(), watch);
    let timeline = timeline.then(|| Arc::new(Timeline::new(MOST)));
    let engine: Box<dyn Engine<T>> = match (device, &backend) {
        #[cfg(feature = "cluster")]
        (None, Backend::Cluster(cluster)) => {
            Box::new(cluster.start(&layout, &mesh, &table, state, &globals, timeline.is_some())?)
        }
        (Some(device), _) => {
            let kernels = gpu::sources(traced)?;
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
    let audit = audit.filter(|_| matches!(backend, Backend::Cpu { .. }));
    let (clock, health) = (Clock::default(), Health::Well);
    let identity = Identity {
        program: table.program,
        kernels: table.fingerprint(),
        precision: T::NAME,
        fields: fields.0.clone().into(),
        rows,
        mesh: mesh.clone(),
        layout: layout.clone(),
        facts: Arc::default(),
    };
    let core = Core {
        mesh,
        program,
        layout,
        table,
        edges,
        engine,
        audit,
        timeline,
        fields,
        identity,
        clock,
        health,
        changing,
        setup,
    };
    check_start(&core)?;
    Ok(core)
}

/// Lays out elements that are projected. Returns which of them share a corner, by star.
fn add_elements<T>(
    layout: &mut Layout,
    table: &Table<T>,
    stars: &[StarPlan],
    (curve, order, backend): (&Permutation, Order, &Backend),
    is_numbered: bool,
    is_fixed: impl Fn(u32) -> bool + Sync + Copy,
) -> Result<BTreeMap<usize, Graph>> {
    let mut graphs = BTreeMap::new();
    for (&index, state) in &table.projected {
        let star = &stars[index];
        let grain = backend.grain(star.elements().len() / star.corners);
        let shape = Shape { width: layout.width, shared: 0, private: state.len() };
        let plan = ElementPlan { star, curve, order, grain, shape, is_numbered };
        let (elements, graph) = layout.of_elements(&plan, is_fixed)?;
        layout.add_elements(index, elements);
        graphs.insert(index, graph);
    }
    Ok(graphs)
}

/// Refuses projections that nothing here can run.
///
/// # Errors
/// Stars that change, an order without an order, hosts with GPUs.
fn check_projections<T>(table: &Table<T>, stars: &[StarPlan], order: Order, backend: &Backend) -> Result<()> {
    let Some((&star, _)) = table.projected.iter().next() else { return Ok(()) };
    let name = stars[star].name;
    if backend.has_gpus() && !matches!(backend, Backend::Gpu { .. }) {
        return Err(Error::Program(format!(
            "elements of star {name} are projected, which a GPU does only by itself: take one without other hosts, or hosts without GPUs"
        )));
    }
    if order.key.is_double_buffered() {
        return Err(Error::Program(format!(
            "elements of star {name} are projected one after the other, which order {order} does not say: take another order"
        )));
    }
    match table.projected.keys().map(|&star| &stars[star]).find(|star| star.changes) {
        Some(star) => Err(Error::Program(format!("star {} changes: its elements cannot be projected", star.name))),
        None => Ok(()),
    }
}

/// Says once, on standard error, what a build loses on this processor: nobody would find out by themselves. `MESHWEFT_ADVICE=off` is
/// silence.
fn advise(backend: &Backend) {
    static SAID: Once = Once::new();
    let is_wanted = !cfg!(debug_assertions) && std::env::var_os("MESHWEFT_ADVICE").is_none_or(|word| word != "off");
    if let (Backend::Cpu { .. }, true, Some(advice)) = (backend, is_wanted, Simd::advice()) {
        SAID.call_once(|| eprintln!("note: {advice}"));
    }
}

/// Refuses a start that is not finite, with advice that fits the cause.
fn check_start<T: Number>(core: &Core<T>) -> Result<()> {
    core.parameters()?;
    let why = |value: f64| match value.is_nan() {
        true => "its formula has no value there".to_string(),
        false => format!("it does not fit into {}; use f64, or scale the mesh to ordinary units", T::NAME),
    };
    match core.find_fault(0) {
        None => Ok(()),
        Some(Error::Diverged { vertex, is_cell, place, field, value, .. }) => Err(Error::Invalid(format!(
            "{field} of {} is {value} at the start: {}",
            named(vertex, is_cell, place),
            why(value)
        ))),
        Some(Error::Global { name, value, .. }) => {
            Err(Error::Invalid(format!("global {name} is {value} at the start: {}", why(value))))
        }
        Some(other) => Err(other),
    }
}

/// The vertices of a program: those of the mesh, and parts beside them.
struct Vertices {
    /// Where parts start among them all, and the end.
    starts: Vec<u32>,
    /// Where those are that are not of the mesh.
    beside: Vec<[f64; 3]>,
}

impl Vertices {
    /// # Errors
    /// A coordinate that is not finite, or more vertices than there are numbers.
    fn of(mesh: &Mesh, parts: Vec<Vec<[f64; 3]>>) -> Result<Vertices> {
        let mut ends = vec![0, mesh.points().len()];
        ends.extend(parts.iter().scan(mesh.points().len(), |end, part| {
            *end += part.len();
            Some(*end)
        }));
        let beside = parts.concat();
        if let Some(v) = beside.iter().position(|point| point.iter().any(|x| !x.is_finite())) {
            let (vertex, point) = (v + ends[1], beside[v]);
            return Err(Error::Program(format!("vertex {vertex}, which is not of the mesh, lies at {point:?}")));
        }
        match ends.iter().map(|&end| u32::try_from(end)).collect() {
            Ok(starts) => Ok(Vertices { starts, beside }),
            Err(_) => Err(Error::Program(format!("parts of {} vertices: there are 2^32 - 2 numbers", beside.len()))),
        }
    }

    fn len(&self) -> usize {
        self.starts[self.starts.len() - 1] as usize
    }

    fn parts(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    /// Numbers them: along the curve, or by a key of the host's own first, which is for vertices of the mesh; parts one after the other.
    ///
    /// # Errors
    /// An order by a key of the host's own, and no key.
    fn number(&self, mesh: &Mesh, order: Order, key: Option<&OwnKey>, stars: &[StarPlan]) -> Result<Permutation> {
        let points = match self.beside.is_empty() {
            true => Cow::Borrowed(mesh.points()),
            false => Cow::Owned([mesh.points(), &self.beside].concat()),
        };
        let numbers = match order.curve {
            Curve::Degree => Permutation::by_degree(&degrees(self.len(), stars)),
            curve => curve.order(&points),
        };
        let (own, part) = (self.starts[1], |v: u32| self.starts.partition_point(|&start| start <= v) as u64 - 1);
        match (order.key, key) {
            (Key::Own, Some(key)) => Ok(Permutation::sorted_by_key(numbers.len(), |v| {
                (part(v), if v < own { key(v) } else { 0 }, numbers.rank()[v as usize])
            })),
            (Key::Own, None) => Err(Error::Invalid(format!("order {order}: `Builder::order_by` takes the key"))),
            _ if self.beside.is_empty() => Ok(numbers),
            _ => Ok(Permutation::sorted_by_number(numbers.len(), |v| {
                part(v) * numbers.len() as u64 + u64::from(numbers.rank()[v as usize])
            })),
        }
    }
}

/// The stars that a program adds for a mesh, in the order in which it declares them; the edges of the mesh if it adds none and kernels
/// look for them.
///
/// # Errors
/// Whatever the program says of the mesh; two stars at one rank, or a rank without a star.
fn stars<T: Number>(
    program: &dyn AnyProgram<T>,
    table: &Table<T>,
    (mesh, vertices): (&Mesh, usize),
) -> Result<Vec<StarPlan>> {
    let mut stars = Stars::default();
    program.stars(mesh, &mut stars)?;
    if stars.plans.is_empty()
        && let Some(name) = trace::plain_edges(table.kernels.iter().map(|kernel| &kernel.script))
    {
        stars = Stars::plain_edges(name, mesh.edges());
    }
    let mut plans = stars.plans;
    plans.sort_by_key(|plan| plan.index);
    if let Some(pair) = plans.windows(2).find(|pair| pair[0].index == pair[1].index) {
        let [a, b] = [pair[0].name, pair[1].name];
        return Err(Error::Program(match a == b {
            true => format!("star {a} was added twice"),
            false => format!("stars {a} and {b} were declared apart: declare all stars of a program in one `stars!`"),
        }));
    }
    check_elements(vertices, &plans)?;
    match plans.iter().enumerate().find(|(i, plan)| plan.index != *i) {
        None => Ok(plans),
        Some((i, plan)) => Err(Error::Program(format!(
            "star {} has rank {}, but no star of rank {i} was added: `Program::stars` adds every star that `stars!` declares",
            plan.name, plan.index
        ))),
    }
}
