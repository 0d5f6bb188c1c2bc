//! `meshweft resume`: goes on with a run that was stopped, or takes one further.
//!
//! A run notes its own arguments in its checkpoints. Going on is running with those, and with those of this command behind them, of
//! which later ones win. What decides about results, as the mesh or the order, is not among the latter.

use super::checkpoints::Resumed;
use super::console::Console;
use super::{run, words};
use anyhow::{Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Options of `run` that say what is run and what its files are: those of the checkpoint.
const ITS_OWN: [&str; 14] = [
    "name",
    "example",
    "case",
    "order",
    "precision",
    "set",
    "seed",
    "out",
    "from",
    "fields",
    "pieces",
    "copies",
    "vary",
    "part",
];
/// Those that say where it runs: any of the first four replaces them all.
const WHERE: [&str; 4] = ["backend", "processes", "hosts", "workers"];
const WHERE_TOO: [&str; 9] =
    ["share", "adapter", "threads", "remote-program", "ssh", "listen", "token", "key", "shares"];

const EXAMPLES: &str = "\
Examples:
  meshweft resume out/EXAMPLE                            from the newest checkpoint, to the end
  meshweft resume out/EXAMPLE --steps 2000               a run that has ended, further
  meshweft resume out/EXAMPLE --processes 3 --threads 1  elsewhere than before: the same digest
  meshweft resume out/EXAMPLE --hosts host-b,me@host-c
  meshweft resume out/EXAMPLE --mesh /data/part.msh      where its mesh is now

Where it runs, its threads and its pictures are as they were, unless options here say otherwise; its results are the same in any
case. A mesh from a file must be there, and be the same.";

/// What to go on with, and how.
pub(super) struct Arguments {
    folder: PathBuf,
    /// As words of `run`.
    words: Vec<String>,
}

impl Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let folder = clap::Arg::new("folder")
            .value_name("FOLDER")
            .required(true)
            .value_parser(clap::value_parser!(PathBuf))
            .help("The folder that the run writes to, as in out/EXAMPLE");
        let options = run::Arguments::augment_args(Command::new("run"));
        let options = options.get_arguments().filter(|option| !ITS_OWN.contains(&option.get_id().as_str()));
        let mesh = |option: clap::Arg| match option.get_id().as_str() {
            "mesh" => option.value_name("FILE").help("Where the mesh file is now [default: where it was]"),
            _ => option,
        };
        command.arg(folder).args(options.cloned().map(mesh)).args_override_self(true).after_help(EXAMPLES)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
        let folder = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_default();
        let command = Arguments::augment_args(Command::new("resume"));
        Ok(Arguments { folder, words: words::of(matches, &command, &["folder"]) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Whether a file that was named by its whole path is not there.
fn is_gone(path: &str) -> bool {
    Path::new(path).is_absolute() && !Path::new(path).exists()
}

impl Arguments {
    /// Looks whether the mesh is where it was.
    ///
    /// # Errors
    /// It is not, and nobody says where it is.
    fn find_mesh(&self, resumed: &Resumed) -> Result<()> {
        let of = |words: &[String]| words.iter().find_map(|word| word.strip_prefix("--mesh=").map(str::to_string));
        match of(&resumed.note.arguments) {
            Some(path) if of(&self.words).is_none() && is_gone(&path) => {
                bail!("the mesh of this run was {path}, which is not there: say where it is now by --mesh FILE")
            }
            _ => Arguments::find_meshes_of_settings(resumed),
        }
    }

    /// Likewise those that settings name: of all settings these alone are whole paths. What decides about results cannot be said again.
    fn find_meshes_of_settings(resumed: &Resumed) -> Result<()> {
        let mut of_settings =
            resumed.note.arguments.iter().filter_map(|word| word.strip_prefix("--set=")?.split_once('='));
        match of_settings.find(|(_, path)| is_gone(path)) {
            Some((name, path)) => bail!("{name} of this run was {path}, which is not there: put it back"),
            None => Ok(()),
        }
    }

    /// Where the driver of a run was lost, its workers look for one with the same key.
    #[cfg(feature = "cluster")]
    fn meet_again(&self, words: &mut Vec<OsString>) {
        let key = super::cluster::kept_key(&self.folder);
        let begins = |word: &OsString, with: &str| word.to_str().is_some_and(|word| word.starts_with(with));
        let has = |words: &[OsString], with: &str| words.iter().any(|word| begins(word, with));
        let is_another = self.words.iter().any(|word| ["--token", "--listen"].iter().any(|own| word.starts_with(own)));
        let has_key = self.words.iter().any(|word| word.starts_with("--key"));
        if key.is_file() && has(words, "--workers") && !has_key && !is_another {
            words.retain(|word| !begins(word, "--token") && !begins(word, "--key"));
            words.extend(["--key".into(), key.into()]);
        }
    }

    /// Finds the run, and the words of the command that goes on with it.
    ///
    /// # Errors
    /// No whole checkpoint in its folder.
    pub(super) fn find(&self, console: &mut Console) -> Result<(Resumed, Vec<OsString>)> {
        let resumed = Resumed::find(&self.folder)?;
        for what in resumed.from.passed_over() {
            writeln!(console.err, "warning: {what}: the checkpoint before it is taken")?;
        }
        let is_of = |word: &str, names: &[&str]| {
            let name = word.trim_start_matches("--").split('=').next().unwrap_or_default();
            names.contains(&name)
        };
        let moves = self.words.iter().any(|word| is_of(word, &WHERE));
        // Whoever says how far it is to go does not want it to end before.
        let goes_on = self.words.iter().any(|word| is_of(word, &["steps", "until"]));
        let stays = |word: &&String| {
            !(moves && (is_of(word, &WHERE) || is_of(word, &WHERE_TOO))) && !(goes_on && is_of(word, &["stop"]))
        };
        self.find_mesh(&resumed)?;
        let mut words: Vec<OsString> = vec!["meshweft".into(), "run".into()];
        words.extend(resumed.note.arguments.iter().filter(stays).map(Into::into));
        words.extend(resumed.note.changes.iter().map(|change| change.to_word().into()));
        words.push(format!("--order={}", resumed.from.order()).into());
        words.push(format!("--precision={}", resumed.from.precision()).into());
        words.extend(self.words.iter().map(Into::into));
        words.extend(["--out".into(), self.folder.clone().into()]);
        #[cfg(feature = "cluster")]
        self.meet_again(&mut words);
        Ok((resumed, words))
    }
}
