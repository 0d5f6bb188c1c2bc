//! Simulations, whatever their program.

use crate::error::{Error, raised};
use crate::mesh::Mesh;
use meshweft::tapes::TapeProgram;
use meshweft::{AnySimulation, Backend, Checkpoint, Cluster, Gathering, Kind, Order, Part, Worker};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How to run a program.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    backend: String,
    threads: usize,
    adapter: usize,
    order: Option<String>,
    pub(crate) precision: String,
    /// Processes that share the mesh, started here by this command; none if it is one process.
    processes: u32,
    worker: Vec<String>,
    hosts: Option<Py<Hosts>>,
}

/// A driver that waits for workers on other hosts.
#[pyclass(module = "meshweft._meshweft")]
pub(crate) struct Hosts {
    gathering: Option<Gathering>,
    token: String,
}

#[pymethods]
impl Hosts {
    #[new]
    fn new(workers: u32, listen: &str) -> PyResult<Hosts> {
        let listen = listen.parse().map_err(|_| {
            Error::new_err(format!("{listen:?} is no address to listen at: write 0.0.0.0:0, or the address of a network and a port"))
        })?;
        let gathering = Cluster::gather(workers, listen).map_err(raised)?;
        Ok(Hosts { token: gathering.token(), gathering: Some(gathering) })
    }

    fn token(&self) -> &str {
        &self.token
    }
}

/// How long workers may take to come.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long hosts may, which people start.
const PATIENCE_OF_HOSTS: Duration = Duration::from_secs(600);

/// Works for the driver that started this process, until the run is over.
#[pyfunction]
pub(crate) fn work_attached(python: Python<'_>) -> PyResult<()> {
    python.detach(|| Worker::attached((Ipv4Addr::LOCALHOST, 0).into())?.run_data()).map_err(raised)
}

/// Works for the driver that has this token, until the run is over.
#[pyfunction]
pub(crate) fn work(python: Python<'_>, token: &str) -> PyResult<()> {
    python.detach(|| Worker::join(token, (Ipv4Addr::UNSPECIFIED, 0).into())?.run_data()).map_err(raised)
}

impl Options {
    pub(crate) fn backend(&self, python: Python<'_>) -> PyResult<Backend> {
        if let Some(cluster) = self.cluster(python)? {
            return Ok(Backend::Cluster(cluster.threads(self.threads)));
        }
        match self.backend.as_str() {
            "cpu" => Ok(Backend::Cpu { threads: self.threads }),
            "serial" => Ok(Backend::Serial),
            "gpu" => Ok(Backend::Gpu { adapter: self.adapter }),
            other => Err(Error::new_err(format!("unknown backend {other:?}: one of cpu, gpu, serial"))),
        }
    }

    fn cluster(&self, python: Python<'_>) -> PyResult<Option<Cluster>> {
        let (gathering, patience) = match &self.hosts {
            Some(hosts) => {
                let gathering = hosts.borrow_mut(python).gathering.take();
                let used = || Error::new_err("these hosts have run a simulation already: each takes hosts of its own");
                (gathering.ok_or_else(used)?, PATIENCE_OF_HOSTS)
            }
            None if self.processes > 0 => {
                let mut gathering =
                    Cluster::gather(self.processes, (Ipv4Addr::LOCALHOST, 0).into()).map_err(raised)?;
                for host in 1..=self.processes {
                    let mut command = Command::new(&self.worker[0]);
                    command.args(&self.worker[1..]);
                    gathering.start(&format!("worker {host}"), command).map_err(raised)?;
                }
                (gathering, PATIENCE)
            }
            None => return Ok(None),
        };
        python.detach(|| gathering.wait(patience, |_| {})).map(Some).map_err(raised)
    }

    pub(crate) fn order(&self) -> PyResult<Option<Order>> {
        let parse = |word: &String| word.parse::<Order>().map_err(|error| raised(error.into()));
        self.order.as_ref().map(parse).transpose()
    }
}

/// A program on a mesh, with its state.
#[pyclass(module = "meshweft._meshweft", subclass)]
pub(crate) struct Simulation {
    pub(crate) simulation: Box<dyn AnySimulation>,
}

/// A state in memory.
#[pyclass(module = "meshweft._meshweft", frozen)]
pub(crate) struct Saved(meshweft::Saved);

/// How often it is looked for an interrupt while steps are taken.
const LOOK: Duration = Duration::from_millis(50);

fn described(parts: Vec<Part>) -> Vec<(String, usize, bool)> {
    parts.into_iter().map(|part| (part.name, part.components, part.kind == Kind::Integer)).collect()
}

#[pymethods]
impl Simulation {
    /// Takes steps without the interpreter's lock. `tell`, if any, is called now and then with the number of those taken; interrupts raise in
    /// between.
    #[pyo3(signature = (count, tell = None))]
    fn step(&mut self, python: Python<'_>, count: u64, tell: Option<Py<PyAny>>) -> PyResult<()> {
        let simulation = &mut self.simulation;
        python.detach(|| {
            let mut looked = Instant::now();
            for taken in 0..count {
                simulation.step().map_err(raised)?;
                if looked.elapsed() > LOOK {
                    Python::attach(|python| {
                        python.check_signals()?;
                        tell.as_ref().map_or(Ok(()), |tell| tell.call1(python, (taken + 1,)).map(drop))
                    })?;
                    looked = Instant::now();
                }
            }
            Ok(())
        })
    }

    fn wait(&mut self, python: Python<'_>) -> PyResult<()> {
        python.detach(|| self.simulation.wait()).map_err(raised)
    }

    fn steps(&self) -> u64 {
        self.simulation.steps()
    }

    fn time(&self) -> f64 {
        self.simulation.time()
    }

    fn time_step(&self) -> f64 {
        self.simulation.time_step()
    }

    fn precision(&self) -> &'static str {
        self.simulation.precision()
    }

    fn order(&self) -> String {
        self.simulation.order().to_string()
    }

    /// Number and vertices of each host, if there are several.
    fn hosts(&self) -> Vec<(u32, usize)> {
        self.simulation.hosts().iter().map(|host| (host.host, host.vertices)).collect()
    }

    fn threads(&self) -> usize {
        self.simulation.threads()
    }

    fn adapter(&self) -> Option<String> {
        self.simulation.adapter().map(|adapter| adapter.name)
    }

    fn setup(&self) -> Vec<(&'static str, f64)> {
        self.simulation.setup().to_vec()
    }

    fn mesh(&self) -> Mesh {
        Mesh { mesh: Arc::new(self.simulation.mesh().clone()) }
    }

    /// Name, number of components, and whether integers, of each part of the state.
    fn fields(&self) -> Vec<(String, usize, bool)> {
        described(self.simulation.fields())
    }

    fn globals(&self) -> Vec<(String, usize, bool)> {
        described(self.simulation.globals())
    }

    #[pyo3(name = "global_")]
    fn global(&self, python: Python<'_>, name: &str) -> PyResult<Vec<f64>> {
        python.detach(|| self.simulation.global(name)).map_err(raised)
    }

    /// The number of components of a part of the state, and its values, flat, in the type that it has.
    fn field<'py>(&self, python: Python<'py>, name: &str) -> PyResult<(usize, Bound<'py, PyAny>)> {
        let field = python.detach(|| self.simulation.field(name)).map_err(raised)?;
        let part = self.simulation.fields().into_iter().find(|part| part.name == name);
        let is_integer = part.is_some_and(|part| part.kind == Kind::Integer);
        let values = match (is_integer, self.simulation.precision()) {
            (false, "f64") => field.values.into_pyarray(python).into_any(),
            (false, "f32") => {
                let values: Vec<f32> = field.values.iter().map(|&x| x as f32).collect();
                values.into_pyarray(python).into_any()
            }
            _ => {
                let values: Vec<i32> = field.values.iter().map(|&x| x as i32).collect();
                values.into_pyarray(python).into_any()
            }
        };
        Ok((field.components, values))
    }

    fn set_field(&mut self, name: &str, values: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let values = values.as_array();
        let values: std::borrow::Cow<'_, [f64]> = match values.as_slice() {
            Some(values) => values.into(),
            None => values.to_vec().into(),
        };
        self.simulation.set_field(name, &values).map_err(raised)
    }

    /// Replaces the values of the parameters of a program that is data.
    fn set_parameters(&mut self, values: Vec<f64>, time_step: f64) -> PyResult<()> {
        let program: Option<&mut TapeProgram> = self.simulation.program_mut().downcast_mut();
        let program = program.ok_or_else(|| Error::new_err("the parameters of this program cannot be changed"))?;
        if values.len() != program.values.len() {
            return Err(Error::new_err("these are not as many values as the program has parameters"));
        }
        (program.values, program.time_step) = (values, time_step);
        Ok(())
    }

    fn metrics(&mut self, python: Python<'_>) -> PyResult<Vec<(&'static str, &'static str, f64)>> {
        let metrics = python.detach(|| self.simulation.metrics()).map_err(raised)?;
        Ok(metrics.into_iter().map(|metric| (metric.name, metric.unit, metric.value)).collect())
    }

    fn digest(&self, python: Python<'_>) -> PyResult<String> {
        python.detach(|| self.simulation.digest()).map_err(raised)
    }

    fn save(&mut self, python: Python<'_>) -> PyResult<Saved> {
        python.detach(|| self.simulation.save()).map(Saved).map_err(raised)
    }

    fn restore(&mut self, python: Python<'_>, saved: &Saved) -> PyResult<()> {
        python.detach(|| self.simulation.restore(&saved.0)).map_err(raised)
    }

    fn checkpoint(&mut self, python: Python<'_>, folder: PathBuf) -> PyResult<()> {
        python.detach(|| self.simulation.checkpoint(&folder)).map_err(raised)
    }

    fn resume(&mut self, python: Python<'_>, folder: PathBuf) -> PyResult<()> {
        python.detach(|| self.simulation.resume(&Checkpoint::newest(&folder)?)).map_err(raised)
    }
}

/// Names of the GPUs that there are, by number.
#[pyfunction]
pub(crate) fn adapters() -> Vec<String> {
    meshweft::adapters().into_iter().map(|adapter| adapter.name).collect()
}
