//! What the command understands: its parser.

use super::programs::Programs;
use super::{bench, completions, convert, doctor, info, man, new, plan, resume, run, shader, verify, view};
#[cfg(feature = "cluster")]
use super::{cluster, worker};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{CommandFactory, Parser, Subcommand};

/// Physics on meshes: vertex updates swept in an order, with the same bits on any number of threads.
#[derive(Parser)]
#[command(name = "meshweft", version, max_term_width = 110, after_help = START)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

const START: &str = "\
Examples:
  meshweft list                                  what there is to run
  meshweft run EXAMPLE                           a first run: a film, a ParaView series and a table in out/EXAMPLE
  meshweft run EXAMPLE --mesh sheet:128 --steps 500
  meshweft verify all                            do the programs compute what they should?";

/// The commands, each with its arguments.
#[derive(Subcommand)]
pub(super) enum Command {
    /// List examples with their settings, mesh generators and orders
    List,
    /// Run an example: writes a film, a ParaView series and a history, prints a table
    Run(Box<run::Arguments>),
    /// Go on with a run that was stopped, here or elsewhere, or take one further
    Resume(resume::Arguments),
    /// Run the acceptance test of an example: measured numbers beside those they must be
    Verify(verify::Arguments),
    /// Measure the time of an update beside what the machine can do
    Bench(bench::Arguments),
    /// Predict how long every configuration takes, and what limits it: orders, blocks, threads, hosts
    Plan(plan::Arguments),
    /// Describe a mesh and its graph: cells, fields, colors, neighbor distances, cuts
    Info(info::Arguments),
    /// Print the shaders that run an example on a GPU
    Shader(shader::Arguments),
    /// Say what this machine has to run on: processor, GPUs, and what works
    Doctor(doctor::Arguments),
    /// Convert a mesh file, or write a generated mesh
    Convert(convert::Arguments),
    /// Show a mesh, or a series of states, in a page of the browser
    View(view::Arguments),
    /// Make a package with a program of your own, ready to run
    New(new::Arguments),
    /// Print what a shell needs to complete commands and options
    Completions(completions::Arguments),
    /// Write manual pages
    Man(man::Arguments),
    /// Work for a run on another host
    #[cfg(feature = "cluster")]
    Worker(worker::Arguments),
    /// Make the secrets of a run ahead of it
    #[cfg(feature = "cluster")]
    #[command(subcommand)]
    Cluster(cluster::Command),
}

/// The parser, with what it says of the programs.
pub(super) fn parser(programs: &Programs) -> clap::Command {
    /// Puts the first of them where the help says EXAMPLE.
    fn with_example(command: clap::Command, name: &str) -> clap::Command {
        let help = command.get_after_help().map(|help| help.to_string().replace("EXAMPLE", name));
        let command = match help {
            Some(help) => command.after_help(help),
            None => command,
        };
        command.mut_subcommands(|command| with_example(command, name))
    }
    let studies = programs.studies.iter().map(|study| PossibleValue::new(study.name).help(study.about));
    let studies = PossibleValuesParser::new(studies.collect::<Vec<_>>());
    let (has_all, has_studies) = (programs.all.is_some(), !programs.studies.is_empty());
    let parser = Cli::command().mut_subcommand("bench", |bench| {
        let hidden = [("all", has_all), ("quick", has_all), ("study", has_studies), ("out", has_all || has_studies)];
        let bench = bench.mut_arg("study", |study| study.value_parser(studies));
        hidden.into_iter().fold(bench, |bench, (name, has)| bench.mut_arg(name, |option| option.hide(!has)))
    });
    match programs.entries.first() {
        Some(entry) => with_example(parser, entry.info.name),
        None => parser,
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::DIFFUSION;
    use super::*;

    #[test]
    fn the_parser_is_consistent() {
        parser(&Programs::of(&[])).debug_assert();
        parser(&DIFFUSION).debug_assert();
    }

    #[test]
    fn the_help_shows_the_first_program() {
        let help = |programs: &Programs| {
            let mut parser = parser(programs);
            parser.find_subcommand_mut("run").unwrap().render_long_help().to_string()
        };
        assert!(help(&DIFFUSION).contains("meshweft run NAME --mesh"), "{}", help(&DIFFUSION));
        assert!(help(&Programs::of(&[])).contains("meshweft run EXAMPLE --mesh"));
    }
}
