//! From a program of Python to one that is data.

use crate::error::{ProgramError, raised};
use crate::formula::Formula;
use crate::mesh::{self, Mesh};
use crate::simulation::{Options, Simulation};
use meshweft::tapes::{Purpose, TapeKernel, TapeProgram, TapeStage, TapeStar};
use meshweft::{AnySimulation, Combine, Kind, Part};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

/// Name, components, and whether they are integers.
type PartOf = (String, usize, bool);

fn parts(of: Vec<PartOf>) -> Vec<Part> {
    let part = |(name, components, is_integer)| {
        let kind = if is_integer { Kind::Integer } else { Kind::Real };
        Part { name, components, kind }
    };
    of.into_iter().map(part).collect()
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Star<'py> {
    name: String,
    shape: String,
    is_directed: bool,
    elements: PyReadonlyArray1<'py, u32>,
    parts: Vec<PartOf>,
    data: PyReadonlyArray1<'py, f64>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Kernel<'py> {
    name: String,
    purpose: String,
    is_quiet: bool,
    metric: Option<(String, String)>,
    formula: PyRef<'py, Formula>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Stage {
    what: String,
    kernel: usize,
    settings: Vec<f64>,
    /// Rounds, the most rounds, the real that a measure goes into or that says how long a step lasts, or a part.
    count: usize,
    repeat: Vec<Stage>,
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Program<'py> {
    name: String,
    shared: Vec<PartOf>,
    private: Vec<PartOf>,
    parameters: Vec<PartOf>,
    globals: Vec<PartOf>,
    stars: Vec<Star<'py>>,
    kernels: Vec<Kernel<'py>>,
    parts: Vec<PyReadonlyArray1<'py, f64>>,
    of_cells: Vec<String>,
    initial: PyReadonlyArray1<'py, f64>,
    fixed: PyReadonlyArray1<'py, bool>,
    start: Vec<f64>,
    values: Vec<f64>,
    time_step: f64,
    time_parameter: Option<usize>,
    step: Vec<Stage>,
}

fn star(star: Star<'_>) -> PyResult<TapeStar> {
    Ok(TapeStar {
        name: star.name,
        shape: mesh::kind(&star.shape)?,
        is_directed: star.is_directed,
        elements: star.elements.as_array().to_vec().into(),
        parts: parts(star.parts),
        data: star.data.as_array().to_vec().into(),
    })
}

fn kernel(kernel: &Kernel<'_>) -> PyResult<TapeKernel> {
    let measure = |combine| Purpose::Measure { combine, metric: kernel.metric.clone() };
    let purpose = match kernel.purpose.as_str() {
        "map" => Purpose::Map,
        "update" => Purpose::Update { quiet: kernel.is_quiet },
        "sum" => measure(Combine::Sum),
        "minimum" => measure(Combine::Min),
        "maximum" => measure(Combine::Max),
        "scalar" => Purpose::Scalar,
        "test" => Purpose::Test,
        other => return Err(ProgramError::new_err(format!("there are no kernels that are a {other}"))),
    };
    let formula = kernel.formula.formula.clone();
    Ok(TapeKernel { name: kernel.name.clone(), purpose, formula: formula.into() })
}

fn stages(all: Vec<Stage>) -> PyResult<Vec<TapeStage>> {
    all.into_iter().map(stage).collect()
}

fn stage(stage: Stage) -> PyResult<TapeStage> {
    let Stage { what, kernel, settings, count, repeat } = stage;
    Ok(match what.as_str() {
        "map" => TapeStage::Map { kernel, settings },
        "sweep" => TapeStage::Sweep { kernel, settings, rounds: count },
        "sweep_backward" => TapeStage::SweepBackward { kernel, settings, rounds: count },
        "jacobi" => TapeStage::Jacobi { kernel, settings, rounds: count },
        "fixpoint" => TapeStage::Fixpoint { kernel, settings, most: count },
        "reduce" => TapeStage::Reduce { kernel, settings, into: count },
        "scalar" => TapeStage::Scalar { kernel, settings },
        "lasts" => TapeStage::Lasts { global: count },
        "on" => TapeStage::On { part: count, stages: stages(repeat)? },
        "until" => TapeStage::Until { kernel, settings, most: count, repeat: stages(repeat)? },
        other => return Err(ProgramError::new_err(format!("there is no stage {other}"))),
    })
}

/// Builds a simulation of a program.
#[pyfunction]
pub(crate) fn build(python: Python<'_>, program: Program<'_>, mesh: &Mesh, options: Options) -> PyResult<Simulation> {
    let program = TapeProgram {
        name: program.name,
        shared: parts(program.shared),
        private: parts(program.private),
        parameters: parts(program.parameters),
        globals: parts(program.globals),
        stars: program.stars.into_iter().map(star).collect::<PyResult<_>>()?,
        kernels: program.kernels.iter().map(kernel).collect::<PyResult<_>>()?,
        parts: program.parts.iter().map(|of| of.as_array().to_vec().as_chunks().0.to_vec()).collect(),
        of_cells: program.of_cells,
        initial: program.initial.as_array().to_vec(),
        fixed: program.fixed.as_array().to_vec(),
        start: program.start,
        values: program.values,
        time_step: program.time_step,
        time_parameter: program.time_parameter,
        step: stages(program.step)?,
    };
    let mut builder = program.builder((*mesh.mesh).clone());
    if let Some(order) = options.order()? {
        builder = builder.order(order);
    }
    let builder = builder.backend(options.backend(python)?);
    let built: meshweft::Result<Box<dyn AnySimulation>> = match options.precision.as_str() {
        "f64" => python.detach(|| builder.precision::<f64>().start()),
        "i32" => python.detach(|| builder.precision::<meshweft::Int>().start()),
        _ => python.detach(|| builder.start()),
    };
    Ok(Simulation::new(built.map_err(raised)?))
}
