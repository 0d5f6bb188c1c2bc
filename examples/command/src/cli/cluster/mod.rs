//! How a run is shared among hosts: the options for it, and the workers they start or wait for.

mod hosts;
mod token;

use super::console::{Console, Outcome};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use hosts::Hosts;
use meshweft::{Cluster, Gathering, RunKey};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Under which the options are shown.
pub(super) const HEADING: &str = "Several hosts";
/// Options of which each says where workers are, but for this machine.
const ELSEWHERE: &str = "elsewhere";

/// Who shares the mesh. No result depends on it.
#[derive(Args, Clone, Debug)]
pub(super) struct Launch {
    /// Processes of this machine that share the mesh, each with --threads threads [default there: the cores, shared evenly];
    /// changes the speed, never the result
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = HEADING)]
    processes: Option<u32>,
    /// Hosts that share the mesh: a worker is started on each by ssh, two on one that is named twice, without ssh on localhost.
    /// They need this program and a login without a password, nothing else
    #[arg(long, value_name = "[USER@]HOST,...", group = ELSEWHERE, conflicts_with = "processes", help_heading = HEADING)]
    hosts: Option<String>,
    /// Where the program is on those hosts [default: as it was called here, by its whole path or by its name]
    #[arg(long, value_name = "PATH", requires = "hosts", help_heading = HEADING)]
    remote_program: Option<String>,
    /// The ssh for --hosts, with options, as in "ssh -p 2222"
    #[arg(long, value_name = "COMMAND", requires = "hosts", default_value = "ssh", help_heading = HEADING)]
    ssh: String,
    /// Workers on other hosts that share the mesh: waits until that many have joined with `meshweft worker`
    #[arg(
        long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256),
        group = ELSEWHERE, conflicts_with = "processes", help_heading = HEADING
    )]
    workers: Option<u32>,
    /// Where workers reach this host [default: all of its addresses, any free port]
    #[arg(long, value_name = "ADDRESS:PORT", requires = ELSEWHERE, help_heading = HEADING)]
    listen: Option<SocketAddr>,
    /// File for what workers join with, readable by its owner alone [default: it is shown]
    #[arg(long, value_name = "FILE", requires = "workers", help_heading = HEADING)]
    token: Option<PathBuf>,
    /// Key that `meshweft cluster token` made, whose token the workers have already [default: MESHWEFT_KEY,
    /// or else one is made]
    #[arg(long, value_name = "FILE", requires = "workers", conflicts_with = "token", help_heading = HEADING)]
    key: Option<PathBuf>,
    /// File for the key as long as the run goes, with which it is resumed and gets its workers back if this process is lost.
    #[arg(skip)]
    kept_key: Option<PathBuf>,
}

/// What there is to do ahead of a run.
#[derive(Subcommand)]
pub(super) enum Command {
    /// Make the key of a run and the token for its workers, as two files
    Token(token::Arguments),
}

/// Does it.
pub(super) fn run(command: &Command, console: &mut Console) -> Result<Outcome> {
    match command {
        Command::Token(arguments) => token::run(arguments, console),
    }
}

/// How long workers may take to be started by hand.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a worker may take to join that ssh has started.
const SOON: Duration = Duration::from_secs(60);

/// Files with secrets of a run that has not begun: they would be in the way of the next.
static SECRETS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the secrets of a run that ends before it has begun, while it waits for workers.
pub(super) fn remove_secrets() {
    let mut secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    secrets.drain(..).for_each(|path| drop(std::fs::remove_file(path)));
}

/// Notes such a file.
fn note_secret(path: &Path) {
    SECRETS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
}

/// The key of a run whose files are in a folder, as long as it goes, or if its driver was lost.
pub(super) fn kept_key(folder: &Path) -> PathBuf {
    folder.join("driver.key")
}

impl Launch {
    /// Whether several hosts share the mesh.
    pub(super) fn is_asked_for(&self) -> bool {
        self.processes.is_some() || self.hosts.is_some() || self.workers.is_some()
    }

    /// Whether some of them may be other machines.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.hosts.is_some() || self.workers.is_some()
    }

    /// Has the key of the run kept in the folder of its files.
    pub(super) fn keep_key(&mut self, folder: &Path) {
        self.kept_key = self.workers.is_some().then(|| kept_key(folder));
    }

    /// Removes the key that a run has left in a folder whose workers this one does not want.
    pub(super) fn forget_key(&self, folder: &Path) {
        if self.kept_key.is_none() {
            let _ = std::fs::remove_file(kept_key(folder));
        }
    }

    /// Starts the workers, or waits for them, if several hosts are to share the mesh. `threads`: of each, 0 for all cores.
    ///
    /// # Errors
    /// Hosts that cannot take part; workers that do not come.
    pub(super) fn cluster(&self, threads: usize) -> Result<Option<Cluster>> {
        let cluster = if let Some(processes) = self.processes {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let threads = if threads == 0 { (cores / processes as usize).max(1) } else { threads };
            return Ok(Some(Cluster::processes(processes)?.threads(threads)));
        } else if let Some(names) = &self.hosts {
            let hosts = Hosts::parse(names, &self.ssh, self.remote_program.as_deref())?;
            hosts.check()?;
            let mut gathering = self.gather(hosts.count())?;
            hosts.start(&mut gathering)?;
            gathering.wait(SOON, |said| eprintln!("{said}"))?
        } else if let Some(workers) = self.workers {
            let mut gathering = match self.key() {
                Some(path) => {
                    let key = RunKey::load(&path).with_context(|| format!("the key in {}", path.display()))?;
                    Cluster::gather_with(key, workers, self.listen())?
                }
                None => self.gather(workers)?,
            };
            self.tell(&mut gathering)?;
            if let Some(path) = &self.kept_key {
                let folder = path.parent().unwrap_or(path);
                std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
                gathering.keep_key(path);
            }
            gathering.wait(PATIENCE, |said| eprintln!("{said}"))?
        } else {
            return Ok(Cluster::from_env(|said| eprintln!("{said}"))?.map(|cluster| cluster.threads(threads)));
        };
        Ok(Some(cluster.threads(threads)))
    }

    fn gather(&self, workers: u32) -> Result<Gathering> {
        Ok(Cluster::gather(workers, self.listen())?)
    }

    fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into())
    }

    /// The file with the key, where it was made ahead.
    fn key(&self) -> Option<PathBuf> {
        let stated = || std::env::var_os("MESHWEFT_KEY").filter(|_| self.token.is_none()).map(PathBuf::from);
        self.key.clone().or_else(stated)
    }

    /// Says how to join.
    fn tell(&self, gathering: &mut Gathering) -> Result<()> {
        let own = hosts::own_name();
        match &self.token {
            _ if self.key().is_some() => eprintln!("waiting for workers that have the token of this key"),
            None => eprintln!("on each worker: {own} worker --join {}", gathering.token()),
            Some(path) => {
                gathering.write_token(path)?;
                note_secret(path);
                eprintln!("on each worker: {own} worker --join {}, with that file copied there", path.display());
            }
        }
        Ok(())
    }
}
