//! Processes that something else starts, with one command line on all hosts: what their environment says.
//!
//! | set by | rank | how many | token |
//! |---|---|---|---|
//! | hand | `MESHWEFT_RANK` | `MESHWEFT_WORLD` | `MESHWEFT_TOKEN` |
//! | Kubernetes, an indexed Job | `JOB_COMPLETION_INDEX` | `MESHWEFT_WORLD` | `MESHWEFT_TOKEN` |
//! | Slurm, a step of `srun` | `SLURM_PROCID` | `SLURM_NTASKS` | a file in the working folder, or `MESHWEFT_TOKEN` |
//!
//! The token is a file that all ranks can read. Rank 0 writes it when it has begun to listen, and the others wait for it, unless
//! `MESHWEFT_KEY` names the key that it was made with ahead of the run. `MESHWEFT_DRIVER=HOST:PORT` is where rank 0 listens.

use crate::error::{Error, Result};
use crate::identity::{Token, read_secret};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// One process of several that share a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The driver is 0.
    pub rank: u32,
    /// How many there are, each of which updates a share of the mesh.
    pub world: u32,
    /// The file with the token.
    pub token: PathBuf,
    /// The file with the key of the driver, if the token was made ahead.
    pub key: Option<PathBuf>,
    /// Where the driver is to be reached, if the token does not say it.
    driver: Option<String>,
}

/// How long a rank waits before it says so.
const QUIET: Duration = Duration::from_secs(5);

/// What Slurm calls steps that `srun` did not start: of a batch script, an interactive shell, and the like.
const NO_STEPS: std::ops::RangeFrom<u32> = 0xffff_fff0..;

impl Rank {
    /// Reads the rank that the environment of this process states. None: this process is alone.
    ///
    /// # Errors
    /// A variable that is missing beside others, or invalid.
    pub fn from_env() -> Result<Option<Rank>> {
        Rank::read(|name| Some(std::env::var_os(name)?.to_string_lossy().into_owned()))
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Rank>> {
        let has = |name: &str| variable(name).is_some();
        let (rank_name, world_name, file) = if has("MESHWEFT_RANK") {
            ("MESHWEFT_RANK", "MESHWEFT_WORLD", None)
        } else if has("MESHWEFT_WORLD") && has("JOB_COMPLETION_INDEX") {
            ("JOB_COMPLETION_INDEX", "MESHWEFT_WORLD", None)
        } else if has("MESHWEFT_WORLD") {
            return Err(missing("MESHWEFT_RANK", "MESHWEFT_WORLD"));
        } else if is_step(&variable)? {
            ("SLURM_PROCID", "SLURM_NTASKS", Some(slurm_file(&variable)?))
        } else if has("MESHWEFT_TOKEN") {
            return Err(missing("MESHWEFT_RANK", "MESHWEFT_TOKEN"));
        } else {
            return Ok(None);
        };
        let number = |name, beside| match variable(name) {
            None => Err(missing(name, beside)),
            Some(text) => text.trim().parse::<u32>().map_err(|_| wrong(name, &text, "is no number from 0 on")),
        };
        let (rank, world) = (number(rank_name, world_name)?, number(world_name, rank_name)?);
        if !(1..=256).contains(&world) {
            return Err(wrong(world_name, &world.to_string(), "is out of range: a run has 1 to 256 ranks"));
        }
        if rank >= world {
            let what = format!("is out of range: {world_name}={world} has ranks 0 to {}", world - 1);
            return Err(wrong(rank_name, &rank.to_string(), &what));
        }
        if world == 1 {
            return Ok(None);
        }
        let driver = variable("MESHWEFT_DRIVER");
        if let Some(driver) = driver.as_ref().filter(|driver| port(driver).is_none()) {
            return Err(wrong("MESHWEFT_DRIVER", driver, "is not HOST:PORT, such as host-a:7777"));
        }
        let token = variable("MESHWEFT_TOKEN").or(file).ok_or_else(|| missing("MESHWEFT_TOKEN", rank_name))?;
        Ok(Some(Rank { rank, world, token: token.into(), key: variable("MESHWEFT_KEY").map(PathBuf::from), driver }))
    }

    /// Returns where the driver listens: on all addresses. Port 0: any free one.
    pub fn listen(&self) -> SocketAddr {
        let driver = self.driver.as_deref().unwrap_or_default();
        let port = port(driver).unwrap_or(0);
        match driver.parse() {
            Ok(SocketAddr::V6(_)) => (Ipv6Addr::UNSPECIFIED, port).into(),
            _ => (Ipv4Addr::UNSPECIFIED, port).into(),
        }
    }

    /// Waits for the file with the token, and reads it.
    ///
    /// # Errors
    /// No such file, or none that can be read, until the deadline.
    pub fn wait_for_token(&self, deadline: Instant) -> Result<Token> {
        let mut told_at = Some(Instant::now() + QUIET);
        loop {
            // A file that is being written is cut off, which its checksum tells.
            let error = match self.read_token() {
                Ok(token) => return Ok(token),
                Err(error) => error,
            };
            if Instant::now() > deadline {
                let what = "rank 0 writes it when it has begun, to a folder that all ranks must share";
                return Err(Error::Secret(format!("rank {}: {error}; {what}", self.rank)));
            }
            if told_at.take_if(|at| Instant::now() > *at).is_some() {
                // Nothing can be done if that cannot be written.
                let _ = writeln!(std::io::stderr(), "rank {} waits: {error}", self.rank);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn read_token(&self) -> Result<Token> {
        let token = Token::parse(&read_secret(&self.token)?)?;
        Ok(match &self.driver {
            Some(driver) => token.of_driver(driver)?,
            None => token,
        })
    }
}

/// The port of `HOST:PORT`.
fn port(driver: &str) -> Option<u16> {
    let (host, port) = driver.rsplit_once(':')?;
    port.parse().ok().filter(|&port| port > 0 && !host.is_empty())
}

/// Whether this process is a task of `srun`.
fn is_step(variable: &impl Fn(&str) -> Option<String>) -> Result<bool> {
    let Some(step) = variable("SLURM_STEP_ID") else { return Ok(false) };
    let step: u32 = step.parse().map_err(|_| wrong("SLURM_STEP_ID", &step, "is no number"))?;
    Ok(!NO_STEPS.contains(&step))
}

/// The file for the token of a step: no two steps have one name, nor has one that was begun again.
fn slurm_file(variable: &impl Fn(&str) -> Option<String>) -> Result<String> {
    let word = |name| variable(name).filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    let job = word("SLURM_JOB_ID").ok_or_else(|| missing("SLURM_JOB_ID", "SLURM_STEP_ID"))?;
    let step = word("SLURM_STEP_ID").ok_or_else(|| missing("SLURM_STEP_ID", "SLURM_JOB_ID"))?;
    let again = word("SLURM_RESTART_COUNT").map(|count| format!(".{count}")).unwrap_or_default();
    Ok(format!("meshweft-{job}.{step}{again}.token"))
}

fn missing(name: &str, beside: &str) -> Error {
    Error::Invalid(format!(
        "{beside} is set and {name} is not: ranks need MESHWEFT_RANK, MESHWEFT_WORLD and MESHWEFT_TOKEN; unset {beside} to run alone"
    ))
}

fn wrong(name: &str, value: &str, what: &str) -> Error {
    Error::Invalid(format!("{name}={value:?} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of an environment, written as `NAME=VALUE` with blanks between.
    fn read(environment: &str) -> Result<Option<Rank>, String> {
        let pairs: Vec<_> = environment.split(' ').filter_map(|pair| pair.split_once('=')).collect();
        let variable = |name: &str| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.to_string());
        Rank::read(variable).map_err(|error| error.to_string())
    }

    #[test]
    fn ranks_are_read_from_the_environment() {
        let rank = |rank, world, token: &str| Rank { rank, world, token: token.into(), key: None, driver: None };
        let slurm = "SLURM_JOB_ID=12 SLURM_STEP_ID=3 SLURM_PROCID=1 SLURM_NTASKS=2";
        for (environment, expected) in [
            ("", None),
            ("MESHWEFT_RANK=0 MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t", Some(rank(0, 2, "t"))),
            ("MESHWEFT_RANK=255 MESHWEFT_WORLD=256 MESHWEFT_TOKEN=t", Some(rank(255, 256, "t"))),
            ("MESHWEFT_RANK=0 MESHWEFT_WORLD=1", None),
            ("JOB_COMPLETION_INDEX=1 MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t", Some(rank(1, 2, "t"))),
            // A Job of runs that have nothing to do with each other.
            ("JOB_COMPLETION_INDEX=1", None),
            ("MESHWEFT_RANK=0 JOB_COMPLETION_INDEX=1 MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t", Some(rank(0, 2, "t"))),
            (slurm, Some(rank(1, 2, "meshweft-12.3.token"))),
            (&format!("{slurm} SLURM_RESTART_COUNT=2"), Some(rank(1, 2, "meshweft-12.3.2.token"))),
            (&format!("{slurm} MESHWEFT_TOKEN=t"), Some(rank(1, 2, "t"))),
            (&format!("MESHWEFT_RANK=0 MESHWEFT_WORLD=3 MESHWEFT_TOKEN=t {slurm}"), Some(rank(0, 3, "t"))),
            ("SLURM_JOB_ID=12 SLURM_STEP_ID=3 SLURM_PROCID=0 SLURM_NTASKS=1", None),
            // A batch script, and a shell of its own step: their commands run alone.
            ("SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_NTASKS=2", None),
            ("SLURM_JOB_ID=12 SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_NTASKS=2", None),
        ] {
            assert_eq!(read(environment).unwrap(), expected, "{environment}");
        }
        let all = "MESHWEFT_RANK=0 MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t MESHWEFT_KEY=k MESHWEFT_DRIVER=host:7";
        let all = read(all).unwrap().unwrap();
        assert_eq!((all.key.clone(), all.driver.clone()), (Some("k".into()), Some("host:7".into())));
        assert_eq!(all.listen().to_string(), "0.0.0.0:7");
        assert_eq!(Rank { driver: None, ..all.clone() }.listen().to_string(), "0.0.0.0:0");
        assert_eq!(Rank { driver: Some("[::1]:8".into()), ..all }.listen().to_string(), "[::]:8");
    }

    #[test]
    fn half_an_environment_is_refused_by_what_is_missing_or_wrong() {
        let rank = "MESHWEFT_RANK=0 MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t";
        for (environment, says) in [
            ("MESHWEFT_RANK=0", "MESHWEFT_RANK is set and MESHWEFT_WORLD is not"),
            ("MESHWEFT_WORLD=2", "MESHWEFT_WORLD is set and MESHWEFT_RANK is not"),
            ("MESHWEFT_TOKEN=t", "MESHWEFT_TOKEN is set and MESHWEFT_RANK is not"),
            ("MESHWEFT_RANK=0 MESHWEFT_WORLD=2", "MESHWEFT_RANK is set and MESHWEFT_TOKEN is not"),
            ("JOB_COMPLETION_INDEX=0 MESHWEFT_WORLD=2", "JOB_COMPLETION_INDEX is set and MESHWEFT_TOKEN is not"),
            ("MESHWEFT_RANK=one MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t", "MESHWEFT_RANK=\"one\" is no number"),
            ("MESHWEFT_RANK= MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t", "MESHWEFT_RANK=\"\" is no number"),
            ("MESHWEFT_RANK=-1 MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t", "MESHWEFT_RANK=\"-1\" is no number"),
            ("MESHWEFT_RANK=0 MESHWEFT_WORLD=2.5 MESHWEFT_TOKEN=t", "MESHWEFT_WORLD=\"2.5\" is no number"),
            ("MESHWEFT_RANK=2 MESHWEFT_WORLD=2 MESHWEFT_TOKEN=t", "MESHWEFT_WORLD=2 has ranks 0 to 1"),
            ("MESHWEFT_RANK=0 MESHWEFT_WORLD=0 MESHWEFT_TOKEN=t", "MESHWEFT_WORLD=\"0\" is out of range"),
            ("MESHWEFT_RANK=0 MESHWEFT_WORLD=257 MESHWEFT_TOKEN=t", "MESHWEFT_WORLD=\"257\" is out of range"),
            (&format!("{rank} MESHWEFT_DRIVER=host"), "MESHWEFT_DRIVER=\"host\" is not HOST:PORT"),
            (&format!("{rank} MESHWEFT_DRIVER=host:0"), "is not HOST:PORT"),
            (&format!("{rank} MESHWEFT_DRIVER=:7"), "is not HOST:PORT"),
            ("SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_NTASKS=2", "SLURM_NTASKS is set and SLURM_PROCID is not"),
            ("SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID=0", "SLURM_PROCID is set and SLURM_NTASKS is not"),
            ("SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2", "SLURM_STEP_ID is set and SLURM_JOB_ID is not"),
            ("SLURM_JOB_ID=../x SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2", "SLURM_JOB_ID is not"),
            ("SLURM_STEP_ID=x", "SLURM_STEP_ID=\"x\" is no number"),
        ] {
            let error = read(environment).unwrap_err();
            assert!(error.contains(says), "{environment}: {error}");
        }
    }
}
