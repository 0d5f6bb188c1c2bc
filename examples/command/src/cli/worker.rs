//! `meshweft worker`: a process that works for a driver.

use super::console::{Console, Outcome};
use super::programs::Programs;
use super::signals::Signals;
use anyhow::{Context, Result, bail};
use clap::Args;
use meshweft::net::Token;
use meshweft::{Error, Worker};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Whose run to join.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// What the driver wrote: a file with its token, `-` for the standard input, or the token itself, which others on this
    /// machine can then see
    #[arg(long, value_name = "FILE|-|TOKEN")]
    join: String,
    /// Where the other hosts reach this one [default: all of its addresses, any free port]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Update on the GPU of this number in `meshweft doctor`, whatever the driver asks for
    #[arg(long, value_name = "N")]
    gpu: Option<usize>,
    /// With `--join -`: the token is the first line, and the worker ends when the standard input does, which is when
    /// what started it is gone
    #[arg(long)]
    until_eof: bool,
    /// Folder for this worker's pieces of a run with --pieces, the only files that it writes [default: out; with
    /// --until-eof that of the run]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  on the driver:      meshweft run EXAMPLE --mesh box:128 --workers 2 --token run.token
  on both workers:    meshweft worker --join run.token

Over ssh, in one line on the driver, which starts the workers itself:
  meshweft run EXAMPLE --mesh box:128 --hosts host-b,host-c

A worker needs this program and the token, no mesh and no other file, and writes none but those of --out. It ends with the run. It may come
while a run is under way, and leaves it in good order after Ctrl-C or SIGTERM.";

/// Joins and works until the run is over.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let listen = arguments.listen.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
    let worker = match (arguments.until_eof, &*arguments.join) {
        (true, "-") => Worker::attached(listen)?,
        (true, _) => bail!("--until-eof watches the standard input, so the token comes from there: write --join -"),
        (false, word) => {
            let token = read_token(word)?;
            // Where nobody is there it takes a minute to say so.
            writeln!(console.err, "waiting for the driver at {}", Token::parse(&token).map_err(Error::from)?.places())?;
            Worker::join(&token, listen)?
        }
    };
    let worker = match &arguments.out {
        Some(folder) => worker.folder(folder),
        None => worker,
    };
    writeln!(console.err, "joined; the driver runs {}", worker.program())?;
    let worker = match arguments.gpu {
        Some(adapter) => worker.on_gpu(adapter),
        None => worker,
    };
    console.signals.make_stoppable();
    leave_when_asked(&worker, console.signals.clone());
    serve(worker, programs)?;
    Ok(Outcome::Done)
}

/// Has a worker leave the run once a signal asks it to; a second one ends it at once.
fn leave_when_asked(worker: &Worker, signals: Arc<Signals>) {
    let leaver = worker.leaver();
    let wait = move || {
        while signals.count() == 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        leaver.leave();
    };
    // Without that thread a signal is heard by nobody, and the second one ends the worker.
    let _ = std::thread::Builder::new().name("leave".into()).spawn(wait);
}

/// Works for rank 0, from which every rank learns that the run is over, also by Ctrl-C: that reaches all ranks of one terminal.
pub(super) fn as_rank(worker: Worker, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    console.signals.make_stoppable();
    serve(worker, programs).map(|()| Outcome::Done)
}

/// Works for the driver that started this process.
pub(super) fn work(worker: Worker, programs: &Programs, err: &mut dyn Write) -> ExitCode {
    match serve(worker, programs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done if even that cannot be written.
            let _ = writeln!(err, "error: worker: {error}");
            ExitCode::from(2)
        }
    }
}

fn serve(worker: Worker, programs: &Programs) -> Result<()> {
    if worker.is_data() {
        return Ok(worker.run_data()?);
    }
    match programs.entries.iter().find_map(|entry| entry.work(worker.program())) {
        Some(work) => work(worker),
        None => Err(worker.refuse().into()),
    }
}

/// Longer than any token.
const LONGEST: u64 = 4096;

fn read_token(word: &str) -> Result<String> {
    let mut token = String::new();
    match word {
        "-" => _ = std::io::stdin().take(LONGEST).read_to_string(&mut token).context("cannot read the token")?,
        word if word.starts_with("meshweft") && word.contains('/') && !Path::new(word).exists() => {
            return Ok(word.to_string());
        }
        path => {
            let file = std::fs::File::open(path).with_context(|| format!("cannot read the token in {path}"))?;
            file.take(LONGEST)
                .read_to_string(&mut token)
                .with_context(|| format!("cannot read the token in {path}"))?;
        }
    }
    Ok(token.trim().to_string())
}
