//! The command line `meshweft`.
//!
//! [`run`] takes arguments and a [`Console`] and returns an exit code, so that everything can be tested in process:
//! 0 when all went well, 1 when a check failed, 2 when something was wrong with the input or a file, 74 when no checkpoint could be
//! written any more, 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
//! Results go to standard output, progress and errors to standard error. A reader that closes standard output early,
//! such as `head`, ends the command quietly.
//!
//! ```
//! use meshweft_command::cli::{self, Console, Programs};
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! static PROGRAMS: Programs = Programs::of(&[]); // `info` needs none
//! let code = cli::run(&PROGRAMS, ["meshweft", "info", "sheet:3x3"], &mut Console::new(&mut out, &mut err));
//! assert_eq!((code, err.len()), (0, 0));
//! assert!(String::from_utf8_lossy(&out).contains("8 triangles"));
//! ```

pub mod bench;
mod case;
mod changes;
mod checkpoints;
#[cfg(feature = "cluster")]
mod cluster;
mod completions;
mod console;
mod convert;
mod doctor;
mod ensemble;
mod goal;
mod hosts;
mod info;
mod list;
mod loops;
mod man;
mod memory;
mod meshes;
mod model;
mod new;
mod options;
mod pace;
mod parser;
#[cfg(feature = "cluster")]
mod parts;
mod pictures;
mod plan;
pub mod probe;
mod programs;
mod progress;
mod report;
mod resume;
mod run;
mod shader;
mod signals;
mod state;
pub mod system;
pub mod text;
mod vary;
mod verify;
mod view;
mod watch;
mod words;
#[cfg(feature = "cluster")]
mod worker;

use anyhow::Result;
pub use console::Console;
use console::Outcome;
pub use meshes::mesh;
use parser::{Command, parser};
pub use programs::{Measure, Programs, Scale, Study, Trial};
pub use signals::{Signal, Signals};
use std::error::Error;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// The exit code of a run that cannot be saved any more: that of an error of input or output in `sysexits.h`.
const UNSAVED: u8 = 74;

/// Runs the command with the arguments of the process on its standard streams. `programs`: what it can run; `meshweft new` makes a
/// package that calls this with a program of its own.
pub fn main(programs: &Programs) -> ExitCode {
    // Workers that this program starts get no arguments. Ranks do, which are to be found right before they work.
    #[cfg(feature = "cluster")]
    if std::env::args_os().len() < 2 {
        match meshweft::Worker::from_env() {
            Ok(None) => {}
            Ok(Some(worker)) => {
                // A scheduler signals all processes at once, and the driver alone ends the run: this one ends with it.
                let _ = signals::watch(|_| {});
                return worker::work(worker, programs, &mut std::io::stderr());
            }
            Err(error) => {
                eprintln!("error: worker: {error}");
                return ExitCode::from(2);
            }
        }
    }
    let (mut out, mut err) = (std::io::BufWriter::new(std::io::stdout()), std::io::stderr());
    let terminal = err.is_terminal();
    let console = &mut Console { terminal, ..Console::new(&mut out, &mut err) };
    let signals = console.signals.clone();
    let told = move |signal: Signal| {
        if signals.receive(signal) {
            #[cfg(feature = "cluster")]
            if !signals.is_stoppable() {
                cluster::remove_secrets();
            }
            std::process::exit(signal.code().into());
        }
    };
    if let Err(error) = signals::watch(told) {
        let _ = writeln!(console.err, "warning: Ctrl-C will stop at once, without a last frame: {error}");
    }
    ExitCode::from(run(programs, std::env::args_os(), console))
}

/// Runs the command of some programs with `arguments`, the first of which is its own name, and returns its exit code.
pub fn run<A: Into<OsString>>(
    programs: &Programs,
    arguments: impl IntoIterator<Item = A>,
    console: &mut Console,
) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let outcome = dispatch(programs, &arguments, console);
    let flushed = console.out.flush();
    match (outcome, flushed) {
        // A terminal that has hung up reads no more.
        (Ok(Outcome::Stopped(signal)), _) => signal.code(),
        (Err(error), _) => report(&error, console),
        (Ok(_), Err(error)) => report(&error.into(), console),
        (Ok(Outcome::Done), Ok(())) => 0,
        (Ok(Outcome::Wrong), Ok(())) => 1,
    }
}

fn dispatch(programs: &Programs, arguments: &[OsString], console: &mut Console) -> Result<Outcome> {
    let parser = parser(programs);
    let command = case::parse(arguments, &parser, programs)?.command;
    meshweft_mesh::start_threads()?;
    match command {
        Command::List => list::run(programs, console),
        Command::Run(arguments) => run::run(&arguments, programs, console),
        Command::Resume(arguments) => {
            let (resumed, words) = arguments.find(console)?;
            run::resume(&case::of_run(&parser, &words)?, programs, resumed, console)
        }
        Command::Verify(arguments) => verify::run(&arguments, programs, console),
        Command::Bench(arguments) => bench::run(&arguments, programs, console),
        Command::Plan(arguments) => plan::run(&arguments, programs, console),
        Command::Info(arguments) => info::run(&arguments, programs, console),
        Command::Shader(arguments) => shader::run(&arguments, programs, console),
        Command::Doctor(arguments) => doctor::run(&arguments, programs, console),
        Command::Convert(arguments) => convert::run(&arguments, console),
        Command::View(arguments) => view::run(&arguments, console),
        Command::New(arguments) => new::run(&arguments, console),
        Command::Completions(arguments) => completions::run(&arguments, parser, console),
        Command::Man(arguments) => man::run(&arguments, parser, console),
        #[cfg(feature = "cluster")]
        Command::Worker(arguments) => worker::run(&arguments, programs, console),
        #[cfg(feature = "cluster")]
        Command::Cluster(command) => cluster::run(&command, console),
    }
}

/// Says what went wrong and returns the exit code. Nothing can be done if even that cannot be written.
fn report(error: &anyhow::Error, console: &mut Console) -> u8 {
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        // Help and version are such errors too: they are what was asked for.
        let stream = if usage.use_stderr() { &mut console.err } else { &mut console.out };
        let text = usage.render();
        let _ = match console.terminal {
            true => write!(stream, "{}", text.ansi()),
            false => write!(stream, "{text}"),
        };
        let _ = console.out.flush();
        return usage.exit_code() as u8;
    }
    // Errors of files say which: one without a word more is from printing.
    if let Some(io) = error.downcast_ref::<std::io::Error>().filter(|_| error.source().is_none()) {
        if io.kind() == ErrorKind::BrokenPipe {
            return 0;
        }
        let _ = writeln!(console.err, "error: cannot write to standard output: {io}");
        return 2;
    }
    let _ = writeln!(console.err, "error: {}", with_causes(error.as_ref()));
    let wrong = error.chain().filter_map(|e| e.downcast_ref::<meshweft::Error>()).any(|e| {
        // Not the user's mistake but ours, found by a check.
        matches!(e, meshweft::Error::Mismatch { .. } | meshweft::Error::Internal(_))
    });
    let unsaved = error.chain().any(|e| matches!(e.downcast_ref(), Some(meshweft::Error::Unsaved(_))));
    match (wrong, unsaved) {
        (true, _) => 1,
        (_, true) => UNSAVED,
        _ => 2,
    }
}

/// The message of an error with those of its causes, except where a message already ends with that of its cause.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_printing_and_of_files_are_told_apart() {
        let said = |error: anyhow::Error| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let code = report(&error, &mut Console::new(&mut out, &mut err));
            (code, String::from_utf8(err).unwrap())
        };
        let io = |kind: ErrorKind| anyhow::Error::from(std::io::Error::from(kind));
        assert_eq!(said(io(ErrorKind::BrokenPipe)), (0, String::new()));
        let full = "error: cannot write to standard output: no storage space\n";
        assert_eq!(said(io(ErrorKind::StorageFull)), (2, full.to_string()));
        let file = said(io(ErrorKind::StorageFull).context("cannot write a.vtu"));
        assert_eq!(file, (2, "error: cannot write a.vtu: no storage space\n".to_string()));
    }

    #[test]
    fn a_cause_is_said_once() {
        let io = || std::io::Error::from(ErrorKind::NotFound);
        let error = anyhow::Error::from(meshweft_mesh::Error::io("a.obj".as_ref(), io()));
        assert_eq!(with_causes(error.as_ref()), "a.obj: entity not found");
        assert_eq!(with_causes(error.context("cannot start").as_ref()), "cannot start: a.obj: entity not found");
    }
}
