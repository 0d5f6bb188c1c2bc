//! From a mesh and a program to a simulation.

use super::{AnyEngine, Backend, OnGpu, Simd, Simulation};
use crate::engine::{Audit, Cpu, Serial};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Shader, shaders};
use crate::layout::{Layout, State, data_graph};
use crate::program::{Number, PrivateOf, Program, SharedOf, contract, convert};
use crate::schedule::{Order, Schedule};
use crate::trace;
use meshweft_mesh::{Curve, Mesh};
use meshweft_shaders::Scalar;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

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
        let stars = contract::stars(&self.program, &self.mesh)?;
        let block_size =
            self.block_size.unwrap_or_else(|| Backend::Gpu { adapter: 0 }.default_block_size(numbers.len()));
        let schedule = Schedule::new(&data_graph(&numbers, &stars)?, self.order, block_size)?;
        let physics = trace::physics::<P>(&stars, scalar::<T>()?);
        let layout = Layout::<T>::new(schedule, &numbers, stars, WIDTH)?;
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
        let stars = contract::stars(&program, &mesh)?;
        lap("stars", &mut setup);
        let graph = data_graph(&numbers, &stars)?;
        lap("graph", &mut setup);
        let block_size = block_size.unwrap_or_else(|| backend.default_block_size(numbers.len()));
        let schedule = Schedule::new(&graph, order, block_size)?;
        let edges = graph.directed_edges();
        let audit = audit.then(|| Audit::new(graph.permuted(schedule.permutation())));
        drop(graph);
        lap("schedule", &mut setup);
        let lay_out = |stars, width| Layout::new(schedule, &numbers, stars, width);
        let (engine, layout) = match backend {
            Backend::Serial => (AnyEngine::Serial(Serial), lay_out(stars, 1)?),
            Backend::Cpu { threads } => (AnyEngine::Cpu(Cpu::new(threads)?), lay_out(stars, simd.width::<T>())?),
            Backend::Gpu { adapter } => {
                let physics = trace::physics::<P>(&stars, scalar::<T>()?);
                let (gpu, layout) = Gpu::new::<T>(adapter, |width| lay_out(stars, width), physics, wgsl)?;
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
