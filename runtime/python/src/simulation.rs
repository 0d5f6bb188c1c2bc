//! Simulations, whatever their program.

use crate::error::{Error, raised};
use crate::mesh::Mesh;
use crate::view::{Shared, Watch};
use meshweft::tapes::TapeProgram;
use meshweft::{AnySimulation, Backend, Checkpoint, Cluster, Gathering, Kind, Order, Part, Worker};
use numpy::{IntoPyArray, PyReadonlyArray1};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};
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
            Error::new_err(format!(
                "{listen:?} is no address to listen at: write 0.0.0.0:0, or the address of a network and a port"
            ))
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
    /// Where it runs. Starts workers, or waits for them: whatever else can be refused comes before.
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
                let (program, words) =
                    self.worker.split_first().ok_or_else(|| Error::new_err("no command starts workers"))?;
                let mut gathering = Cluster::gather(self.processes, (Ipv4Addr::LOCALHOST, 0).into()).map_err(raised)?;
                for host in 1..=self.processes {
                    let mut command = Command::new(program);
                    command.args(words);
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

/// A program on a mesh, with its state. Threads of Python may share it: each call waits until no other is at work.
#[pyclass(module = "meshweft._meshweft", frozen)]
pub(crate) struct Simulation {
    simulation: Shared,
    watch: OnceLock<Arc<Watch>>,
}

impl Simulation {
    pub(crate) fn new(simulation: Box<dyn AnySimulation>) -> Simulation {
        Simulation { simulation: Arc::new(Mutex::new(simulation)), watch: OnceLock::new() }
    }

    /// Works on it without the interpreter's lock, which whoever holds it may need.
    fn with<T: Send>(&self, python: Python<'_>, work: impl FnOnce(&mut dyn AnySimulation) -> T + Send) -> T {
        python.detach(|| work(&mut **self.simulation.lock()))
    }
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
    /// Takes steps without the interpreter's lock: so many, or as many as it takes to be at time `until`, the last of which may be shorter.
    /// `tell`, if any, is called now and then with the number of those taken; interrupts raise in between, and other threads get their turn.
    #[pyo3(signature = (count, tell = None, until = None))]
    fn step(&self, python: Python<'_>, count: u64, tell: Option<Py<PyAny>>, until: Option<f64>) -> PyResult<()> {
        let (mut taken, mut is_there) = (0, false);
        let watch = self.watch.get();
        let _stepping = watch.map(|watch| watch.stepping());
        loop {
            taken += python
                .detach(|| {
                    let begun = Instant::now();
                    let mut simulation = self.simulation.lock();
                    let mut some = 0;
                    while taken + some < count && (some == 0 || begun.elapsed() < LOOK) {
                        is_there = until.is_some_and(|time| simulation.time() >= time);
                        if is_there {
                            break;
                        }
                        if watch.is_some_and(|watch| !watch.may_step(&mut **simulation)) {
                            break;
                        }
                        match until {
                            Some(time) => simulation.step_until(time)?,
                            None => simulation.step()?,
                        }
                        some += 1;
                    }
                    // To whoever waits for it: else the next turn of this loop would be first, again and again.
                    MutexGuard::unlock_fair(simulation);
                    Ok::<u64, meshweft::Error>(some)
                })
                .map_err(raised)?;
            if taken == count || is_there {
                return Ok(());
            }
            python.check_signals()?;
            tell.as_ref().map_or(Ok(()), |tell| tell.call1(python, (taken,)).map(drop))?;
        }
    }

    /// Serves a page that shows it, and returns its address. `name`: what the page says it is; `color`: the field that colors it at first;
    /// `is_framed`: whether the page of a notebook may have it within.
    fn view(&self, python: Python<'_>, name: String, color: Option<String>, is_framed: bool) -> PyResult<String> {
        if self.watch.get().is_none() {
            let watch = python.detach(|| Watch::start(&self.simulation, name, color, is_framed))?;
            let _ = self.watch.set(watch); // another thread may have been first
        }
        Ok(self.watch.get().map(|watch| watch.url.clone()).unwrap_or_default())
    }

    fn wait(&self, python: Python<'_>) -> PyResult<()> {
        self.with(python, |simulation| simulation.wait()).map_err(raised)
    }

    fn steps(&self, python: Python<'_>) -> u64 {
        self.with(python, |simulation| simulation.steps())
    }

    fn rounds(&self, python: Python<'_>) -> u64 {
        self.with(python, |simulation| simulation.rounds())
    }

    fn time(&self, python: Python<'_>) -> f64 {
        self.with(python, |simulation| simulation.time())
    }

    fn time_step(&self, python: Python<'_>) -> f64 {
        self.with(python, |simulation| simulation.time_step())
    }

    fn precision(&self, python: Python<'_>) -> &'static str {
        self.with(python, |simulation| simulation.precision())
    }

    fn order(&self, python: Python<'_>) -> String {
        self.with(python, |simulation| simulation.order().to_string())
    }

    /// Number and vertices of each host, if there are several.
    fn hosts(&self, python: Python<'_>) -> Vec<(u32, usize)> {
        self.with(python, |simulation| simulation.hosts().iter().map(|host| (host.host, host.vertices)).collect())
    }

    fn threads(&self, python: Python<'_>) -> usize {
        self.with(python, |simulation| simulation.threads())
    }

    fn adapter(&self, python: Python<'_>) -> Option<String> {
        self.with(python, |simulation| simulation.adapter().map(|adapter| adapter.name))
    }

    fn setup(&self, python: Python<'_>) -> Vec<(&'static str, f64)> {
        self.with(python, |simulation| simulation.setup().to_vec())
    }

    fn mesh(&self, python: Python<'_>) -> Mesh {
        Mesh { mesh: Arc::new(self.with(python, |simulation| simulation.mesh().clone())) }
    }

    /// Name, number of components, and whether integers, of each part of the state.
    fn fields(&self, python: Python<'_>) -> Vec<(String, usize, bool)> {
        described(self.with(python, |simulation| simulation.fields()))
    }

    fn globals(&self, python: Python<'_>) -> Vec<(String, usize, bool)> {
        described(self.with(python, |simulation| simulation.globals()))
    }

    #[pyo3(name = "global_")]
    fn global(&self, python: Python<'_>, name: &str) -> PyResult<Vec<f64>> {
        self.with(python, |simulation| simulation.global(name)).map_err(raised)
    }

    /// The number of components of a part of the state, and its values, flat, in the type that it has.
    fn field<'py>(&self, python: Python<'py>, name: &str) -> PyResult<(usize, Bound<'py, PyAny>)> {
        let (field, parts, precision) =
            self.with(python, |simulation| (simulation.field(name), simulation.fields(), simulation.precision()));
        let field = field.map_err(raised)?;
        let is_integer = parts.iter().any(|part| part.name == name && part.kind == Kind::Integer);
        let values = match (is_integer, precision) {
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

    fn is_of_cells(&self, python: Python<'_>, name: &str) -> bool {
        self.with(python, |simulation| simulation.is_of_cells(name))
    }

    fn set_field(&self, python: Python<'_>, name: &str, values: PyReadonlyArray1<'_, f64>) -> PyResult<()> {
        let values = values.as_array().to_vec();
        self.with(python, |simulation| simulation.set_field(name, &values)).map_err(raised)
    }

    /// Replaces the values of the parameters of a program that is data.
    fn set_parameters(&self, python: Python<'_>, values: Vec<f64>, time_step: f64) -> PyResult<()> {
        self.with(python, |simulation| {
            let program: Option<&mut TapeProgram> = simulation.program_mut().downcast_mut();
            let program = program.ok_or("the parameters of this program cannot be changed")?;
            if values.len() != program.values.len() {
                return Err("these are not as many values as the program has parameters");
            }
            (program.values, program.time_step) = (values, time_step);
            Ok(())
        })
        .map_err(Error::new_err)
    }

    fn metrics(&self, python: Python<'_>) -> PyResult<Vec<(&'static str, &'static str, f64)>> {
        let metrics = self.with(python, |simulation| simulation.metrics()).map_err(raised)?;
        Ok(metrics.into_iter().map(|metric| (metric.name, metric.unit, metric.value)).collect())
    }

    /// Of each loop its name, and times, total, last, longest, ran_out and limit of its iterations.
    fn loops(&self, python: Python<'_>) -> PyResult<Vec<(&'static str, [u64; 6])>> {
        let found = self.with(python, |simulation| Ok(simulation.loops())).map_err(raised)?;
        let row = |of: meshweft::Iterations| {
            [of.times, of.total, of.last.into(), of.longest.into(), of.ran_out, of.limit.into()]
        };
        Ok(found.into_iter().map(|(name, of)| (name, row(of))).collect())
    }

    fn digest(&self, python: Python<'_>) -> PyResult<String> {
        self.with(python, |simulation| simulation.digest()).map_err(raised)
    }

    fn save(&self, python: Python<'_>) -> PyResult<Saved> {
        self.with(python, |simulation| simulation.save()).map(Saved).map_err(raised)
    }

    fn restore(&self, python: Python<'_>, saved: &Saved) -> PyResult<()> {
        self.with(python, |simulation| simulation.restore(&saved.0)).map_err(raised)
    }

    fn checkpoint(&self, python: Python<'_>, folder: PathBuf) -> PyResult<()> {
        self.with(python, |simulation| simulation.checkpoint(&folder)).map_err(raised)
    }

    fn resume(&self, python: Python<'_>, folder: PathBuf) -> PyResult<()> {
        self.with(python, |simulation| simulation.resume(&Checkpoint::newest(&folder)?)).map_err(raised)
    }
}

/// Names of the GPUs that there are, by number.
#[pyfunction]
pub(crate) fn adapters() -> Vec<String> {
    meshweft::adapters().into_iter().map(|adapter| adapter.name).collect()
}
