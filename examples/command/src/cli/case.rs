//! Case files: the options of a command in TOML.
//!
//! A case file is nothing but arguments written down: `steps = 200` is `--steps 200`, `verify = true` is `--verify`, and
//! an entry `dt = 1e-3` of the table `[set]` is `--set dt=1e-3`. [`parse`] puts them before those of the command line,
//! where a later argument replaces an earlier one. So there is one list of names and one check of values for both.

use super::parser::{Cli, Command};
use super::programs::Programs;
use super::{run, vary, words};
use crate::Settings;
use anyhow::{Result, anyhow};
use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, FromArgMatches};
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Parses a command line by `parser`, with the arguments of the case file that it names.
///
/// # Errors
/// Usage errors are [`clap::Error`]; those of the case file name the file and the line.
pub(super) fn parse(arguments: &[OsString], parser: &clap::Command, programs: &Programs) -> Result<Cli> {
    let cli = of_words(parser, arguments)?;
    let problem = match &cli.command {
        Command::Run(run) => &run.problem,
        Command::Bench(bench) => &bench.problem,
        Command::Plan(plan) => &plan.problem,
        _ => return Ok(cli),
    };
    let Some(path) = problem.case_file() else { return Ok(cli) };
    let text = std::fs::read_to_string(path).map_err(|e| anyhow!("case file {}: {e}", path.display()))?;
    let file = File { path, text: &text, parser, programs };
    let command = arguments[1].to_string_lossy();
    let mut all = arguments.to_vec();
    all.splice(2..2, file.arguments(&command, problem.example_name())?);
    Ok(of_words(parser, &all)?)
}

/// The arguments of `run` that are these words, without a look at case files.
///
/// # Errors
/// They are none.
pub(super) fn of_run(parser: &clap::Command, all: &[OsString]) -> Result<run::Arguments> {
    match of_words(parser, all)?.command {
        Command::Run(arguments) => Ok(*arguments),
        _ => Err(anyhow!("these are no arguments of `meshweft run`: {all:?}")),
    }
}

/// Parses words. Negative numbers are values, which each option judges, and not options of their own.
fn of_words(
    parser: &clap::Command,
    words: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Cli, clap::Error> {
    let mut words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    if words.get(1).is_some_and(|command| command == "run") {
        words = vary::swept(words);
    }
    let matches = with_negative_values(parser.clone()).try_get_matches_from(words).map_err(advised)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    let given = matches.subcommand_matches("run").zip(parser.find_subcommand("run"));
    if let (Command::Run(arguments), Some((matches, command))) = (&mut cli.command, given) {
        arguments.are(words::of(matches, command, &run::NOT_NOTED));
    }
    Ok(cli)
}

/// What has another name than one may think is named by an error.
fn advised(mut error: clap::Error) -> clap::Error {
    let is_resume =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if word == "--resume");
    if is_resume {
        error.remove(ContextKind::SuggestedArg);
        let tip = "`meshweft resume FOLDER` goes on with a run".into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

fn with_negative_values(command: clap::Command) -> clap::Command {
    let values = |argument: clap::Arg| match argument.get_action().takes_values() {
        true => argument.allow_negative_numbers(true),
        false => argument,
    };
    command.mut_args(values).mut_subcommands(with_negative_values)
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
    parser: &'a clap::Command,
    programs: &'a Programs,
}

impl File<'_> {
    /// The options that the file gives to `command`; `example` is named by the command line.
    fn arguments(&self, command: &str, example: Option<&str>) -> Result<Vec<OsString>> {
        let table = DeTable::parse(self.text).map_err(|e| self.error(e.span(), e.message()))?.into_inner();
        // A file may serve several commands: keys that only another one takes are checked too, and then left out.
        let commands = [command, "run", "bench"];
        let options = |name| self.parser.find_subcommand(name).into_iter().flat_map(clap::Command::get_arguments);
        let named = |name, key: &str| options(name).find(|a| a.get_long() == Some(key) && key != "case");
        let mut arguments = Vec::new();
        for (key, value) in &table {
            let (key, value, span) = (key.get_ref().replace('_', "-"), value.get_ref(), key.span());
            let found = commands.iter().find_map(|&name| Some((name, named(name, &key)?)));
            let Some((taker, argument)) = found else {
                let mut keys: Vec<_> = commands.into_iter().flat_map(options).filter_map(clap::Arg::get_long).collect();
                keys.sort_unstable();
                keys.dedup();
                keys.retain(|&known| !["case", "help", "tiny"].contains(&known));
                return Err(self.error(Some(span), &format!("unknown key {key:?}: one of {}", keys.join(", "))));
            };
            let mut words = Vec::new();
            match (argument.get_action(), value) {
                (ArgAction::SetTrue, DeValue::Boolean(true)) => words.push(format!("--{key}")),
                (ArgAction::SetTrue, DeValue::Boolean(false)) => {}
                (ArgAction::SetTrue, _) => return Err(self.error(Some(span), &format!("{key} is true or false"))),
                (ArgAction::Append, DeValue::Table(settings)) if key == "vary" => {
                    for (name, values) in settings {
                        let values = self.plain(values.get_ref(), name.span())?;
                        words.push(format!("--vary={}={values}", name.get_ref()));
                    }
                }
                (ArgAction::Append, DeValue::Table(settings)) => {
                    let own = || table.get("example").and_then(|value| value.get_ref().as_str());
                    words.extend(self.settings(settings, example.or_else(own))?);
                }
                (ArgAction::Append, _) => {
                    return Err(self.error(Some(span), &format!("{key} is a table: [{key}] and lines name = value")));
                }
                _ => words.push(format!("--{key}={}", self.plain(value, span.clone())?)),
            }
            self.check(taker, &words, span)?;
            if taker == command {
                arguments.extend(words.into_iter().map(OsString::from));
            }
        }
        Ok(arguments)
    }

    /// The entries of the table of settings as options, checked against those of the example.
    fn settings(&self, table: &DeTable, example: Option<&str>) -> Result<Vec<String>> {
        let entry = example.and_then(|name| self.programs.find(name).ok());
        let mut words = Vec::new();
        for (name, value) in table {
            let (name, text) = (name.get_ref(), self.plain(value.get_ref(), name.span())?);
            if let Some(entry) = entry.filter(|_| !vary::is_range(&text)) {
                let known = entry.info.settings;
                let set = Settings::new(known).set(known, name, &text);
                set.map_err(|e| self.error(Some(value.span()), &e.to_string()))?;
            }
            words.push(format!("--set={name}={text}"));
        }
        Ok(words)
    }

    /// A string, or a number as it is written.
    fn plain(&self, value: &DeValue, span: Range<usize>) -> Result<String> {
        match value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
            DeValue::Float(number) => Ok(number.as_str().replace('_', "")),
            other => {
                Err(self.error(Some(span), &format!("a number or a string is expected, not a {}", other.type_str())))
            }
        }
    }

    /// Parses options alone, so that a wrong value is reported with its line.
    fn check(&self, command: &str, words: &[String], span: Range<usize>) -> Result<()> {
        let parsed = of_words(self.parser, ["meshweft", command].into_iter().chain(words.iter().map(String::as_str)));
        let Err(error) = parsed.map(|_| ()) else { return Ok(()) };
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let line: Vec<_> = first.lines().map(str::trim).collect();
        Err(self.error(Some(span), &line.join(" ")))
    }

    fn error(&self, span: Option<Range<usize>>, message: &str) -> anyhow::Error {
        let before = self.text.get(..span.map_or(0, |s| s.start)).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        anyhow!("{}:{line}: {message}", self.path.display())
    }
}
