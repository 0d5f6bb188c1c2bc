//! How a run on several hosts starts.

use super::balance::Balance;
use super::crew::{Crew, Plan};
use super::driver;
use super::exchange::Exchange;
use super::message::Begin;
use super::packing::Compress;
use super::workers::{Secret, Workers};
use crate::engine::Table;
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{Layout, State};
use crate::number::Number;
use meshweft_mesh::{Cut, Mesh};
use meshweft_net::children::{self, Children};
use meshweft_net::quic::{Listening, Progress, Settings};
use meshweft_net::{MAX_MESSAGE, Rank, RunKey};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long workers may take to come that this process has started: also where it sleeps for half a minute meanwhile.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// How long the ranks of a run may take, which a scheduler starts when it has room.
pub(super) const PATIENCE_OF_RANKS: Duration = Duration::from_secs(600);

/// Hosts that wait for a simulation: what [`Backend::Cluster`](crate::Backend::Cluster) runs on.
///
/// The process that builds the simulation is the driver: it keeps its loop and its results, and leaves the updates to workers.
/// A cluster serves one simulation.
///
/// ```no_run
/// # fn run<P: meshweft::Program>(mesh: meshweft::Mesh, program: P) -> meshweft::Result<()> {
/// use meshweft::{Backend, Cluster, Simulation, Worker};
/// // First in `main`: this binary is the workers too.
/// if let Some(worker) = Worker::from_env()? {
///     return worker.run::<P>();
/// }
/// let cluster = Cluster::processes(2)?.threads(1);
/// let mut simulation = Simulation::builder(mesh, program).backend(Backend::Cluster(cluster)).build()?;
/// simulation.step()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Cluster {
    hosts: Arc<Mutex<Option<Workers>>>,
    workers: u32,
    threads: usize,
    cut: Cut,
    /// How much of the mesh each worker is to have, of all together, and the adapter that it updates on, if not on its cores.
    parts: Vec<(f64, Option<usize>)>,
    compress: Compress,
    is_balanced: bool,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Cluster { workers, threads, cut, compress, .. } = self;
        f.debug_struct("Cluster")
            .field("workers", workers)
            .field("threads", threads)
            .field("cut", cut)
            .field("compress", compress)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts this very program `count` times on this machine, as workers, and waits until they are connected.
    ///
    /// The program's `main` must begin with [`Worker::from_env`](crate::Worker::from_env).
    ///
    /// # Errors
    /// None or too many processes; a program that cannot be started, or does not join within two minutes; a process that is a worker
    /// itself.
    pub fn processes(count: u32) -> Result<Cluster> {
        /// More is surely a typo.
        const MOST: u32 = 1024;
        if count == 0 || count > MOST {
            return Err(Error::Invalid(format!("{count} processes: take 1 to {MOST}")));
        }
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        let mut gathering = Cluster::gather(count, listen)?;
        for _ in 0..count {
            gathering.start_here(listen)?;
        }
        gathering.wait(PATIENCE, |_| {})
    }

    /// Waits for workers on other hosts, which join with the token that [`Gathering::token`] gives.
    ///
    /// `listen`: where this host is to be reached; port 0 takes any free one. Everything that goes between hosts is encrypted, and
    /// no host without the token gets in.
    ///
    /// # Errors
    /// None or too many workers; an address that is not this host's.
    pub fn gather(workers: u32, listen: SocketAddr) -> Result<Gathering> {
        let exchange = Exchange::new();
        let settings = Settings { listen, ..Settings::default() };
        let listening = Listening::start(workers, settings.clone(), exchange.sink())?;
        Ok(Gathering::of(listening, exchange, workers, settings))
    }

    /// Waits for workers that have the token of a key made ahead of the run. `listen`: port 0 takes the one at which that token says
    /// the driver will be, if it says so.
    ///
    /// # Errors
    /// Those of [`gather`](Cluster::gather).
    pub fn gather_with(key: RunKey, workers: u32, mut listen: SocketAddr) -> Result<Gathering> {
        if listen.port() == 0 {
            listen.set_port(key.port().unwrap_or(0));
        }
        let exchange = Exchange::new();
        let settings = Settings { listen, ..Settings::default() };
        let listening = Listening::with_key(key, workers, settings.clone(), exchange.sink())?;
        Ok(Gathering::of(listening, exchange, workers, settings))
    }

    /// The rank of this process and the number of all, if its environment says that one command was started several times to share
    /// a run: by hand (`MESHWEFT_RANK`, `MESHWEFT_WORLD`, and `MESHWEFT_TOKEN`, a file), by `srun`, or as an indexed Job of
    /// Kubernetes.
    ///
    /// # Errors
    /// A variable that is missing beside others, or malformed.
    pub fn rank() -> Result<Option<(u32, u32)>> {
        Ok(Rank::from_env()?.map(|rank| (rank.rank, rank.world)))
    }

    /// The cluster of rank 0, if this process is one of several [ranks](Cluster::rank): a worker on each, one beside this driver
    /// too. The others are workers by [`Worker::from_env`](crate::Worker::from_env). `said`: as for [`Gathering::wait`].
    ///
    /// # Errors
    /// Those of [`rank`](Cluster::rank); ranks that do not come within ten minutes; a file for the token that exists already.
    pub fn from_env(said: impl FnMut(&str)) -> Result<Option<Cluster>> {
        let Some(rank) = Rank::from_env()? else { return Ok(None) };
        if rank.rank > 0 {
            let what = format!("this process is rank {}, a worker: begin `main` with `Worker::from_env`", rank.rank);
            return Err(Error::Invalid(what));
        }
        let key = rank.key.as_deref().map(RunKey::load).transpose()?;
        // Workers that have a token have no use for another.
        let shared = key.is_none().then_some(&*rank.token);
        let mut gathering = match key {
            Some(key) => Cluster::gather_with(key, rank.world, rank.listen())?,
            None => Cluster::gather(rank.world, rank.listen())?,
        };
        gathering.start_here((Ipv4Addr::UNSPECIFIED, 0).into())?;
        // Until all have read it.
        let _shared = shared.map(|path| Secret::token(path, &gathering.token())).transpose()?;
        gathering.wait(PATIENCE_OF_RANKS, said).map(Some)
    }

    /// Workers that are threads of this process, each with a share of the mesh: everything but the network.
    ///
    /// # Errors
    /// None or too many.
    pub fn inside(count: u32) -> Result<Cluster> {
        if count == 0 || count > 64 {
            return Err(Error::Invalid(format!("{count} workers inside of a process: take 1 to 64")));
        }
        Ok(Cluster::of(count, Workers::inside(count)))
    }

    /// The cores of this process and a GPU beside them, which has `share` of the mesh, between 0 and 1. In 32 bits.
    ///
    /// # Errors
    /// A share that is not between 0 and 1.
    ///
    /// ```
    /// # use meshweft::{Backend, Mesh, Program, Result, Simulation, Stages, Stars, kernels, stars, vertex};
    /// # use meshweft::{Cluster, mesh::generate::generate};
    /// # vertex! { struct Seen<R> { shared count: R } }
    /// # stars! { Edges[1]; }
    /// # struct Count;
    /// # kernels! {
    /// #     for Count: Seen;
    /// #     update Next |_, own, around| {
    /// #         Seen { count: around.fold(Edges, own.count, |sum, [other], ()| sum + other.count) }
    /// #     };
    /// # }
    /// # impl Program for Count {
    /// #     fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> { stars.add(Edges, mesh.edges(), |_| ()); Ok(()) }
    /// #     fn initial(&self, _: &Mesh, _: u32) -> Seen<f64> { Seen { count: 1.0 } }
    /// #     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Next, 1) }
    /// # }
    /// if !meshweft::adapters().is_empty() {
    ///     let start = |backend| Simulation::builder(generate("sheet:20", 1)?, Count).order("color".parse()?).backend(backend).build();
    ///     let mut hybrid = start(Backend::Cluster(Cluster::hybrid(0, 0.3)?))?;
    ///     hybrid.step()?;
    ///     let mut cores = start(Backend::Cpu { threads: 2 })?;
    ///     cores.step()?;
    ///     // Sums of whole numbers are exact everywhere.
    ///     assert_eq!(hybrid.field("count")?.values, cores.field("count")?.values);
    /// }
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn hybrid(adapter: usize, share: f64) -> Result<Cluster> {
        if !(share > 0.0 && share < 1.0) {
            return Err(Error::Invalid(format!("a share of {share} for the GPU: take more than 0 and less than 1")));
        }
        Ok(Cluster { parts: vec![(1.0 - share, None), (share, Some(adapter))], ..Cluster::inside(2)? })
    }

    fn of(workers: u32, hosts: Workers) -> Cluster {
        let parts = vec![(1.0, None); workers as usize];
        Cluster {
            hosts: Arc::new(Mutex::new(Some(hosts))),
            workers,
            threads: 1,
            cut: Cut::default(),
            compress: Compress::default(),
            is_balanced: false,
            parts,
        }
    }

    /// Lets every worker update on a GPU of its host: `adapter` is its number among those of [`adapters`](crate::adapters) there. In 32
    /// bits: a simulation in 64 that is built on it, or a host without that adapter, is an error then.
    pub fn on_gpus(mut self, adapter: usize) -> Cluster {
        self.parts.iter_mut().for_each(|part| part.1 = Some(adapter));
        self
    }

    /// Whether some worker updates on a GPU.
    pub(crate) fn has_gpus(&self) -> bool {
        self.parts.iter().any(|part| part.1.is_some())
    }

    /// Whether workers stand in a grid.
    pub(crate) fn is_grid(&self) -> bool {
        matches!(self.cut, Cut::Grid(_))
    }

    /// Sets the threads of each worker; 0 takes one for each of its cores.
    pub fn threads(self, threads: usize) -> Cluster {
        Cluster { threads, ..self }
    }

    /// Sets how much of the mesh each worker has, of all together: for hosts of which some are quicker. No result depends on it.
    ///
    /// ```
    /// use meshweft::Cluster;
    /// assert!(Cluster::inside(2)?.shares(&[0.7, 0.3]).is_ok());
    /// assert!(Cluster::inside(2)?.shares(&[1.0]).is_err());
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of shares than of workers, or one that is not a finite number above 0.
    pub fn shares(mut self, shares: &[f64]) -> Result<Cluster> {
        let are_sound = shares.iter().all(|&share| share > 0.0 && share.is_finite());
        if shares.len() != self.parts.len() || !are_sound {
            let hosts = self.parts.len();
            return Err(Error::Invalid(format!("shares {shares:?} for {hosts} hosts: take a number above 0 for each")));
        }
        self.parts.iter_mut().zip(shares).for_each(|(part, share)| part.0 = *share);
        Ok(self)
    }

    /// Sets how the mesh is cut into shares. No result depends on it.
    pub fn cut(self, cut: Cut) -> Cluster {
        Cluster { cut, ..self }
    }

    /// Sets whether hosts pack the values that they send each other. No result depends on it.
    pub fn compress(self, compress: Compress) -> Cluster {
        Cluster { compress, ..self }
    }

    /// Lets shares follow what workers [inside](Cluster::inside) of this process turn out to do: while the run goes on, work is divided anew
    /// where some were busy for much longer than others. A GPU that is quicker than the cores so gets more. Shares are runs of the curve:
    /// with another [cut](Cluster::cut) a simulation is an error when it is built.
    ///
    /// Results of cores do not depend on it. Which vertices a GPU rounds in its own way does: they then differ from run to run, within its
    /// bound (claim C6), unless the share is named.
    ///
    /// ```
    /// # use meshweft::{Backend, Mesh, Program, Result, Simulation, Stages, Stars, kernels, stars, vertex};
    /// # use meshweft::{Cluster, mesh::generate::generate};
    /// # vertex! { struct Heat<R> { shared heat: R } }
    /// # stars! { Edges[1]; }
    /// # struct Mean;
    /// # kernels! {
    /// #     for Mean: Heat;
    /// #     update Next |_, own, around| Heat { heat: (own.heat + around.sum(Edges, |[other], ()| other.heat)) * R::lit(0.125) };
    /// # }
    /// # impl Program for Mean {
    /// #     fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> { stars.add(Edges, mesh.edges(), |_| ()); Ok(()) }
    /// #     fn initial(&self, _: &Mesh, v: u32) -> Heat<f64> { Heat { heat: f64::from(v) } }
    /// #     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Next, 1) }
    /// # }
    /// let start = |backend| Simulation::builder(generate("sheet:20", 1)?, Mean).backend(backend).build();
    /// let (mut shared, mut alone) = (start(Backend::Cluster(Cluster::inside(2)?.balanced()))?, start(Backend::Serial)?);
    /// (0..20).try_for_each(|_| shared.step())?;
    /// (0..20).try_for_each(|_| alone.step())?;
    /// assert_eq!(shared.digest()?, alone.digest()?);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn balanced(self) -> Cluster {
        Cluster { is_balanced: true, ..self }
    }

    /// Number of workers.
    pub fn workers(&self) -> u32 {
        self.workers
    }

    /// Hands out shares.
    ///
    /// # Errors
    /// A balanced cluster with another cut than along the curve; one that has run a simulation already; a host that was lost, or cannot
    /// hold its share.
    pub(crate) fn start<T: Number>(
        &self,
        layout: &Arc<Layout>,
        mesh: &Arc<Mesh>,
        table: &Arc<Table<T>>,
        state: State<T>,
        globals: &[T],
        is_recorded: bool,
    ) -> Result<Crew<T>> {
        if self.is_balanced && self.cut != Cut::Curve {
            return Err(Error::Invalid(format!(
                "`balanced` cuts the mesh along the curve, not by {}: leave out `cut`, or leave out `balanced`",
                self.cut
            )));
        }
        let begin = Begin { is_recorded, ..self.begin(layout, table, globals)? };
        let workers = self.take_hosts()?;
        // What is recorded is told by workers that are there to the end.
        let is_balanced = self.is_balanced && !is_recorded;
        let balance = is_balanced.then(|| Balance::new(&self.weights(), self.most(layout)));
        let (layout, domain) = (layout.clone(), layout.domain.clone());
        let (table, weights) = (table.clone(), self.weights());
        let plan = Plan { layout, domain, mesh: mesh.clone(), table, begin, cut: self.cut, weights };
        let advice = |why: String| if is_balanced { why } else { format!("{why}, or give the GPU a smaller share") };
        match Crew::start(plan, workers, state, globals, balance) {
            Err(Error::TooLarge(why)) => Err(Error::TooLarge(advice(why))),
            crew => crew,
        }
    }

    /// Where workers are: those of other processes run one simulation.
    fn take_hosts(&self) -> Result<Workers> {
        match &mut *self.hosts.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Workers::Inside(_)) => Ok(Workers::inside(self.workers)),
            hosts => hosts.take().ok_or_else(|| {
                Error::Invalid("this cluster has run a simulation already: each takes a cluster of its own".into())
            }),
        }
    }

    /// What workers are told first.
    fn begin<T: Number>(&self, layout: &Layout, table: &Table<T>, globals: &[T]) -> Result<Begin> {
        let gpus = self.parts.iter().map(|part| part.1.map(|adapter| adapter as u32)).collect();
        if table.data.len() > MAX_MESSAGE / 2 {
            return Err(Error::Invalid("the kernels of this program are too long to be sent to other hosts".into()));
        }
        let begin = driver::begin(table, &layout.stars, globals, self.threads);
        Ok(Begin { gpus, compress: self.compress, grid: self.cut.grid(self.workers)?, ..begin })
    }

    /// What each worker is to have, all together.
    fn weights(&self) -> Vec<f64> {
        self.parts.iter().map(|part| part.0).collect()
    }

    /// What of the whole each part on a GPU of this process can be at most, as far as that is known beforehand: shared state must fit
    /// into one array.
    fn most(&self, layout: &Layout) -> Vec<Option<f64>> {
        /// Of an array, what is kept for the state of neighbors on other hosts. More than that, and the GPU refuses.
        const GHOSTS: f64 = 0.05;
        let adapters = if self.has_gpus() { gpu::adapters() } else { Vec::new() };
        let bytes = gpu::shared_bytes(layout.slots(), layout.shape.shared) as f64;
        let most = |adapter: usize| {
            let array = adapters.get(adapter).map_or(u64::MAX, |gpu| gpu.binding_bytes.min(gpu.buffer_bytes)) as f64;
            if array < bytes { (1.0 - GHOSTS) * array / bytes } else { 1.0 }
        };
        self.parts.iter().map(|part| part.1.map(most)).collect()
    }
}

/// A driver that waits for workers on other hosts. See [`Cluster::gather`].
pub struct Gathering {
    listening: Listening,
    exchange: Arc<Exchange>,
    workers: u32,
    settings: Settings,
    children: Children,
    secrets: Vec<Secret>,
    /// Where the key goes.
    key_file: Option<PathBuf>,
}

impl Gathering {
    fn of(listening: Listening, exchange: Arc<Exchange>, workers: u32, settings: Settings) -> Gathering {
        let (children, secrets, key_file) = (Children::none(), Vec::new(), None);
        Gathering { listening, exchange, workers, settings, children, secrets, key_file }
    }

    /// What workers join with: one line, which is a secret. `meshweft worker --join FILE` reads it from a file, [`Worker::join`](crate::Worker::join)
    /// takes it as it is.
    pub fn token(&self) -> String {
        self.listening.token().reveal()
    }

    /// Writes it to a new file, which only its owner may read, and which is removed when the run is over.
    ///
    /// # Errors
    /// A file, or a link, that is there already; one that cannot be written.
    pub fn write_token(&mut self, path: &Path) -> Result<()> {
        self.secrets.push(Secret::token(path, &self.token())?);
        Ok(())
    }

    /// Writes the key of the run to a file once all workers are here, in the place of what is there, which only its owner may read, and
    /// which is removed when the run is over. It is what another process needs to take the place of this one, should it be lost: workers that
    /// [joined](crate::Worker::join) it look for their driver at the same port for ten minutes, and
    /// [`Cluster::gather_with`] that key gets them back.
    pub fn keep_key(&mut self, path: &Path) {
        self.key_file = Some(path.to_owned());
    }

    /// Starts a worker by a command of any kind, which may well be on another host: `ssh host-b meshweft worker --join - --until-eof`.
    ///
    /// It gets the token on its standard input, which stays open until the run is over: a worker calls [`Worker::attached`](crate::Worker::attached) to
    /// end with it. What it writes to its standard error is shown with `name` before each line.
    ///
    /// # Errors
    /// A command that cannot be started.
    pub fn start(&mut self, name: &str, command: Command) -> Result<()> {
        let token = self.token();
        Ok(self.children.start(command, Some(name), &token)?)
    }

    /// Starts this very program as a worker beside the driver.
    fn start_here(&mut self, listen: SocketAddr) -> Result<()> {
        let token = self.token();
        Ok(self.children.start(children::this_program(listen)?, None, &token)?)
    }

    /// Waits until all workers are here. `said` is told of each that comes, leaves, or is refused.
    ///
    /// # Errors
    /// Not all have come in time: it says how many. A command of [`start`](Gathering::start) that has ended, at once.
    pub fn wait(self, patience: Duration, mut said: impl FnMut(&str)) -> Result<Cluster> {
        let Gathering { listening, exchange, workers, settings, mut children, mut secrets, key_file } = self;
        let key = listening.key();
        let mut refused = 0;
        let progress = |progress| {
            refused += u32::from(matches!(progress, Progress::Refused { .. }));
            match progress {
                Progress::Refused { .. } if refused == TOLD + 1 => return said("more callers were not let in"),
                Progress::Refused { .. } if refused > TOLD => return,
                _ => {}
            }
            said(&match progress {
                Progress::Joined { host, address } => format!("worker {host} has joined from {address}"),
                Progress::Refused { address, why } => format!("{address} was not let in: {why}"),
                Progress::Left { host, why } => format!("worker {host} has left: {why}"),
            });
        };
        /// Callers that were not let in, of which as many are told.
        const TOLD: u32 = 10;
        let mut is_told = false;
        let watch = || {
            let fault = children.fault();
            is_told = fault.is_some();
            fault.map_or(Ok(()), Err)
        };
        let deadline = Instant::now() + patience;
        let joined = listening.wait_for_workers(deadline, progress, watch);
        // A worker that ended is the reason of whatever else went wrong; but once one is told, or the time is over, others end because
        // of it.
        let is_late = Instant::now() >= deadline;
        let quic =
            joined.map_err(|error| if is_told || is_late { error } else { children.fault().unwrap_or(error) })?;
        if let Some(path) = key_file {
            secrets.push(Secret::key(&path, &key)?);
        }
        Ok(Cluster::of(workers, Workers::connected(quic, exchange, settings, children, secrets)))
    }
}

impl PartialEq for Cluster {
    fn eq(&self, other: &Cluster) -> bool {
        Arc::ptr_eq(&self.hosts, &other.hosts)
    }
}

impl Eq for Cluster {}
