//! What is to be run: the options that commands share, and the plan they make.

use super::programs::Programs;
use super::vary;
use crate::{Entry, Options, Precision, Settings};
use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use meshweft::{Adapter, AdapterKind, Backend, Order, Simd};
#[cfg(feature = "cluster")]
use meshweft::{Cluster, Compress, Worker, mesh::Cut};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// An example on a mesh, in an order, on a backend: everything but what happens to its results.
#[derive(Args, Clone, Debug)]
pub(super) struct Problem {
    /// The example (`meshweft list` shows all), or a case file NAME.toml
    #[arg(value_name = "EXAMPLE")]
    name: Option<String>,
    /// The example, in case files
    #[arg(long = "example", hide = true)]
    example: Option<String>,
    /// File with these options, as in `steps = 200` or `order = "color"`, and settings in a table `[set]`;
    /// options of the command line win
    #[arg(long, value_name = "FILE.toml")]
    case: Option<PathBuf>,
    /// A mesh file (.obj .ply .stl .msh .node .ele .vtk .vtu .vti .vtr .vts), a graph (.el .wel .mtx .graph), or a generator such as sheet:256, box:64, torus:128x64
    #[arg(long, value_name = "FILE|GENERATOR")]
    mesh: Option<OsString>,
    /// The order of a sweep: color (or colour), level-color, color-level, priority-dag, blocked, blocked:SIZE or jacobi,
    /// with morton/, hilbert/, random/ or degree/ before it for what numbers the vertices; another order is another
    /// result. Blocks hold about a 128th of the mesh, 512 to 4096 vertices, on a GPU 64 to 512, unless SIZE says otherwise
    /// [default: that of the example, or else morton/blocked, on a GPU morton/color]
    #[arg(long, value_name = "[CURVE/]KEY")]
    order: Option<Order>,
    /// Where updates run. On CPUs the result is the same bit for bit; a GPU rounds some functions otherwise
    #[arg(long, value_enum, default_value_t)]
    backend: Place,
    /// How much of the mesh the GPU has with --backend hybrid, between 0 and 1 [default: at first what `meshweft plan` or else a short
    /// trial expects to take both equally long, then what they turn out to do in the same time]
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "PART", value_parser = part)]
    share: Option<f64>,
    /// The GPU, by its number in `meshweft doctor` or a part of its name; on several hosts by its number on each
    /// [default: the best]
    #[arg(long, value_name = "N|NAME")]
    adapter: Option<String>,
    /// Threads of the cpu backend, and those that draw, 0 for one per core; changes the speed, never the result
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=4096))]
    threads: u16,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(super) launch: super::cluster::Launch,
    /// How the mesh is cut for several hosts; `meshweft info MESH --parts N` shows it. Changes the speed, never the result
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "curve|bisection|grid[:ROWSxCOLUMNS]", default_value_t, help_heading = super::cluster::HEADING)]
    cut: Cut,
    /// How much of the mesh each host has, of all together, as in 3,1 [default: the same]. Changes the speed, never the result
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "PART,...", value_delimiter = ',', help_heading = super::cluster::HEADING)]
    shares: Vec<f64>,
    /// Whether hosts pack the values that they send each other, without loss. Changes the speed, never the result
    #[cfg(feature = "cluster")]
    #[arg(long, value_parser = one_of(COMPRESS), default_value = "auto", value_name = "WHEN", help_heading = super::cluster::HEADING)]
    compress: Compress,
    /// Registers by which the cpu backend updates vertices side by side; changes the speed, never the result
    #[arg(long, value_parser = one_of(SIMD), default_value = "auto")]
    simd: Simd,
    /// Precision of state and arithmetic [default: on cores that of the example, mostly f32; on a GPU f32]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// A setting of the example, with its unit in `meshweft list`; may be repeated. With `run`, NAME=LOW..HIGH:COUNT runs a copy for each of
    /// so many values from end to end, with :log spaced by factors: the same as --vary
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Seed of mesh generators that use random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<0>)]
    seed: u64,
}

/// The backends by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Place {
    /// One vertex after the other: the oracle
    Serial,
    /// The cores of this machine
    #[default]
    Cpu,
    /// A GPU, in 32 bits
    Gpu,
    /// The cores of this machine and a GPU beside them, which has --share of the mesh, in 32 bits
    #[cfg(feature = "cluster")]
    Hybrid,
    /// A GPU if the machine has one that is no software, else the cores
    Auto,
}

/// Words that stand for values, each with a line of help.
pub(super) type Words<T> = &'static [(&'static str, T, &'static str)];

/// Reads one of some words.
pub(super) fn one_of<T: Clone + Send + Sync + 'static>(words: Words<T>) -> impl TypedValueParser<Value = T> {
    let names = words.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names.collect::<Vec<_>>()).map(|word| {
        let (_, value, _) = words.iter().find(|(name, ..)| *name == word).expect("it is one of the names");
        value.clone()
    })
}

#[cfg(feature = "cluster")]
const COMPRESS: Words<Compress> = &[
    ("auto", Compress::Auto, "Each link by itself, where that is quicker by what was measured"),
    ("always", Compress::Always, "All values"),
    ("never", Compress::Never, "None"),
];

const SIMD: Words<Simd> = &[
    ("auto", Simd::Auto, "The widest that the program was compiled for"),
    ("off", Simd::Off, "One vertex after the other"),
    ("256", Simd::Bits256, "256 bits: 8 vertices in f32, 4 in f64; if the program was built for it"),
    ("512", Simd::Bits512, "512 bits: 16 vertices in f32, 8 in f64; likewise"),
];

impl Problem {
    /// The case file, if one is named in either way.
    pub(super) fn case_file(&self) -> Option<&Path> {
        let named = self.name.as_deref().map(Path::new).filter(|path| is_case(path));
        self.case.as_deref().or(named)
    }

    /// The name of the example, if it is on the command line.
    pub(super) fn example_name(&self) -> Option<&str> {
        self.name.as_deref().filter(|name| !is_case(Path::new(name))).or(self.example.as_deref())
    }

    /// Whether an order is named.
    pub(super) fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// Threads that were asked for, 0 for one per core.
    pub(super) fn threads(&self) -> usize {
        usize::from(self.threads)
    }

    /// Whether hosts are to pack what they send each other.
    #[cfg(feature = "cluster")]
    pub(super) fn compress(&self) -> Compress {
        self.compress
    }

    /// Checks that updates run on the cores of this machine alone, before anybody is waited for.
    ///
    /// # Errors
    /// They do not.
    pub(super) fn check_here(&self) -> Result<()> {
        if !matches!(self.backend, Place::Serial | Place::Cpu) {
            bail!("copies run on the cores of this machine, each on one: take --backend cpu");
        }
        #[cfg(feature = "cluster")]
        if self.launch.is_asked_for() || Cluster::rank()?.is_some() {
            bail!(
                "copies run on the cores of this machine: leave out --processes, --hosts and --workers, and start no ranks; of several hosts each may take a --part"
            );
        }
        Ok(())
    }

    /// The name of the example, which must be there.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn named(&self) -> Result<&str> {
        self.example_name()
            .context("no example is named: write `meshweft run EXAMPLE`, or example = \"EXAMPLE\" in the case file")
    }

    /// Looks everything up, with the defaults of the example.
    ///
    /// # Errors
    /// An unknown example, or a setting that is unknown or out of range.
    pub(super) fn plan(&self, programs: &Programs, verify: bool) -> Result<Plan> {
        let entry = programs.find(self.named()?)?;
        let mut settings = Settings::new(entry.info.settings);
        for word in &self.set {
            let Some((name, value)) = word.split_once('=') else {
                bail!("--set {word}: write NAME=VALUE, such as --set dt=1e-3");
            };
            if vary::is_range(value) {
                bail!("--set {word}: `meshweft run` takes a range of values, one copy for each");
            }
            settings.set(entry.info.settings, name.trim(), value)?;
        }
        let chosen = self.backend()?;
        #[cfg(feature = "cluster")]
        let beside = chosen.beside;
        let Chosen { backend, note, .. } = chosen;
        let has_gpus = backend.has_gpus();
        let options = Options {
            order: self.order.or(entry.info.order).unwrap_or_else(|| backend.order()),
            backend,
            simd: self.simd,
            precision: self.precision.unwrap_or(if has_gpus { Precision::F32 } else { entry.info.precision }),
            verify,
            timeline: false,
            tapes: false,
            plans: None,
        };
        let mesh = self.mesh.clone().unwrap_or_else(|| entry.info.mesh.into());
        Ok(Plan {
            seed: self.seed,
            settings,
            note,
            #[cfg(feature = "cluster")]
            beside,
            #[cfg(feature = "cluster")]
            is_one_machine: !self.needs_other_hosts()?,
            #[cfg(feature = "cluster")]
            threads: self.threads(),
            ..Plan::new(entry, mesh, options)
        })
    }

    /// The worker that this process is, if its environment says that it is a rank of a run, and none that drives it.
    ///
    /// # Errors
    /// An environment that states half a rank, or a rank where the options say otherwise; a driver that cannot be reached.
    #[cfg(feature = "cluster")]
    pub(super) fn worker(&self) -> Result<Option<Worker>> {
        if let Some((rank, world)) = Cluster::rank()? {
            let what = format!("the environment says that this is rank {rank} of {world} that share the mesh");
            if self.launch.is_asked_for() {
                bail!("{what}: leave out --processes, --hosts and --workers, or unset it");
            }
            if !matches!(self.backend, Place::Cpu | Place::Gpu) {
                bail!("{what} among their cores or GPUs: take --backend cpu or gpu, or unset it");
            }
        }
        Ok(Worker::from_env()?)
    }

    /// Whether other machines may have a part of the mesh.
    #[cfg(feature = "cluster")]
    pub(super) fn needs_other_hosts(&self) -> Result<bool> {
        Ok(self.launch.is_elsewhere() || Cluster::rank()?.is_some())
    }

    /// Starts the workers, or waits for them, if several hosts are to share the mesh.
    #[cfg(feature = "cluster")]
    fn cluster(&self) -> Result<Option<Backend>> {
        let is_shared = self.launch.is_asked_for() || Cluster::rank()?.is_some();
        if !is_shared {
            return Ok(None);
        }
        let adapter = match (self.backend, &self.adapter) {
            (Place::Cpu, _) => None,
            (Place::Gpu, _) if self.precision == Some(Precision::F64) => bail!(ONLY_F32),
            (Place::Gpu, None) => Some(0),
            (Place::Gpu, Some(number)) => match number.parse() {
                Ok(number) => Some(number),
                Err(_) => bail!("--adapter {number}: the GPUs of several hosts are known by their numbers, from 0"),
            },
            _ => bail!("several hosts share the mesh among their cores or their GPUs: take --backend cpu or gpu"),
        };
        let as_asked = |cluster: Cluster| {
            let cluster = cluster.cut(self.cut).compress(self.compress());
            match adapter {
                Some(adapter) => cluster.on_gpus(adapter),
                None => cluster,
            }
        };
        let Some(cluster) = self.launch.cluster(self.threads())?.map(as_asked) else { return Ok(None) };
        Ok(Some(Backend::Cluster(match &self.shares[..] {
            [] => cluster,
            shares => cluster.shares(shares)?,
        })))
    }

    /// Where updates run, and why if that was left open.
    fn backend(&self) -> Result<Chosen> {
        let cpu = Backend::Cpu { threads: usize::from(self.threads) };
        #[cfg(feature = "cluster")]
        let is_hybrid = self.backend == Place::Hybrid;
        #[cfg(feature = "cluster")]
        if self.share.is_some() && !is_hybrid {
            bail!("--share says how much a GPU has beside the cores: add --backend hybrid");
        }
        #[cfg(not(feature = "cluster"))]
        let is_hybrid = false;
        let wants_gpu = is_hybrid || matches!(self.backend, Place::Gpu | Place::Auto);
        if let (false, Some(name)) = (wants_gpu, &self.adapter) {
            bail!("--adapter {name} names a GPU: add --backend gpu");
        }
        #[cfg(feature = "cluster")]
        if let Some(backend) = self.cluster()? {
            return Ok(backend.into());
        }
        #[cfg(feature = "cluster")]
        if !self.shares.is_empty() {
            bail!("--shares says how much each of several hosts has: add --processes, --hosts or --workers");
        }
        match self.backend {
            Place::Serial => return Ok(Backend::Serial.into()),
            Place::Cpu => return Ok(cpu.into()),
            Place::Gpu if self.precision == Some(Precision::F64) => bail!(ONLY_F32),
            Place::Auto if self.precision == Some(Precision::F64) => {
                return Ok(Chosen::noted(cpu, "cpu, because a GPU computes in f32 only".into()));
            }
            #[cfg(feature = "cluster")]
            Place::Hybrid if self.precision == Some(Precision::F64) => bail!(ONLY_F32),
            #[cfg(feature = "cluster")]
            Place::Hybrid => {}
            Place::Gpu | Place::Auto => {}
        }
        let adapters = meshweft::adapters();
        let chosen = match &self.adapter {
            None => (!adapters.is_empty()).then_some(0),
            Some(name) => Some(find_adapter(&adapters, name)?),
        };
        let is_auto = self.backend == Place::Auto;
        match chosen {
            None if is_auto => {
                Ok(Chosen::noted(cpu, "cpu, because this machine has no GPU that can be reached".into()))
            }
            None => bail!(
                "this machine has no GPU that can be reached, and no driver of a software one; --backend cpu runs everywhere"
            ),
            Some(0) if is_auto && self.adapter.is_none() && adapters[0].kind == AdapterKind::Software => {
                let note = format!("cpu, because {} is only software: --backend gpu takes it", adapters[0].name);
                Ok(Chosen::noted(cpu, note))
            }
            #[cfg(feature = "cluster")]
            Some(adapter) if is_hybrid => {
                let beside = Beside { adapter, share: self.share, threads: self.threads() };
                Ok(Chosen { backend: beside.backend(HALF)?, note: None, beside: Some(beside) })
            }
            Some(adapter) => {
                let chosen: Chosen = Backend::Gpu { adapter }.into();
                Ok(Chosen { note: is_auto.then(|| format!("gpu, {}", adapters[adapter].name)), ..chosen })
            }
        }
    }
}

/// Where updates run.
struct Chosen {
    backend: Backend,
    /// Why, if that was left open.
    note: Option<String>,
    #[cfg(feature = "cluster")]
    beside: Option<Beside>,
}

impl Chosen {
    fn noted(backend: Backend, note: String) -> Chosen {
        Chosen { note: Some(note), ..backend.into() }
    }
}

impl From<Backend> for Chosen {
    fn from(backend: Backend) -> Chosen {
        Chosen {
            backend,
            note: None,
            #[cfg(feature = "cluster")]
            beside: None,
        }
    }
}

const ONLY_F32: &str = "a GPU computes in f32: leave out --precision f64, or use --backend cpu";

/// Reads an integer.
pub(super) fn at_least<const LEAST: u64>(word: &str) -> Result<u64, String> {
    word.parse().ok().filter(|&n| n >= LEAST).ok_or_else(|| format!("take an integer, {LEAST} or more"))
}

/// Reads a part of a whole.
#[cfg(feature = "cluster")]
fn part(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(part) if part > 0.0 && part < 1.0 => Ok(part),
        _ => Err("take more than 0 and less than 1, as in 0.3".into()),
    }
}

/// The number of the adapter that is named by its number or a part of its name.
///
/// # Errors
/// None, or one of several.
pub(super) fn find_adapter(adapters: &[Adapter], name: &str) -> Result<usize> {
    let known = || adapters.iter().enumerate().map(|(i, a)| format!("{i} {}", a.name)).collect::<Vec<_>>().join(", ");
    if let Ok(number) = name.parse::<usize>() {
        return match number < adapters.len() {
            true => Ok(number),
            false => bail!("there is no adapter {number}: this machine has {}", or_none(&known())),
        };
    }
    let word = name.to_lowercase();
    let found: Vec<usize> = (0..adapters.len()).filter(|&i| adapters[i].name.to_lowercase().contains(&word)).collect();
    match found[..] {
        [only] => Ok(only),
        [] => bail!("no adapter is called {name:?}: this machine has {}", or_none(&known())),
        _ => bail!("{name:?} is a part of several names: this machine has {}", known()),
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn is_case(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// What is to be run, looked up and checked.
pub(super) struct Plan {
    pub(super) entry: &'static Entry,
    pub(super) mesh: OsString,
    pub(super) seed: u64,
    pub(super) settings: Settings,
    pub(super) options: Options,
    /// What was chosen where the user left the backend open, and why.
    pub(super) note: Option<String>,
    /// The GPU beside the cores, if there is to be one.
    #[cfg(feature = "cluster")]
    pub(super) beside: Option<Beside>,
    /// Whether no other machine has a part of the mesh.
    #[cfg(feature = "cluster")]
    pub(super) is_one_machine: bool,
    /// Threads of each host; 0 for one a core.
    #[cfg(feature = "cluster")]
    pub(super) threads: usize,
}

/// A GPU beside the cores.
#[cfg(feature = "cluster")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) adapter: usize,
    /// How much of the mesh it has, if that is stated.
    pub(super) share: Option<f64>,
    /// Of the cores, 0 for one each.
    pub(super) threads: usize,
}

/// What a GPU begins with where nothing is known.
pub(super) const HALF: f64 = 0.5;

#[cfg(feature = "cluster")]
impl Beside {
    /// The backend. `first`: what the GPU begins with, unless its share is stated.
    pub(super) fn backend(self, first: f64) -> Result<Backend> {
        let cluster = match self.share {
            Some(share) => Cluster::hybrid(self.adapter, share)?,
            None => Cluster::hybrid(self.adapter, first)?.balanced(),
        };
        Ok(Backend::Cluster(cluster.threads(self.threads)))
    }
}

impl Plan {
    /// With the settings of the example, on this machine.
    pub(super) fn new(entry: &'static Entry, mesh: OsString, options: Options) -> Plan {
        Plan {
            entry,
            mesh,
            seed: 1,
            settings: Settings::new(entry.info.settings),
            options,
            note: None,
            #[cfg(feature = "cluster")]
            beside: None,
            #[cfg(feature = "cluster")]
            is_one_machine: true,
            #[cfg(feature = "cluster")]
            threads: 0,
        }
    }

    /// The name of the backend.
    pub(super) fn backend(&self) -> &'static str {
        match self.options.backend {
            Backend::Serial => "serial",
            Backend::Cpu { .. } => "cpu",
            Backend::Gpu { .. } => "gpu",
            #[cfg(feature = "cluster")]
            Backend::Cluster(_) => "cluster",
        }
    }

    /// The name of the precision.
    pub(super) fn precision(&self) -> &'static str {
        self.options.precision.name()
    }
}
