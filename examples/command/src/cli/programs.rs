//! What a command is made of: its programs, and what it can do with several of them.

use super::console::Console;
use crate::Entry;
use crate::names::unknown;
use anyhow::{Context, Result, bail};
use std::path::Path;

/// The programs of a command, and what is measured of several of them together.
pub struct Programs {
    /// All of them, in the order in which they are listed. The first is the one that the help names.
    pub entries: &'static [Entry],
    /// What `doctor` runs to try a GPU; the first program on its own mesh without one.
    pub trial: Option<Trial>,
    /// What `bench --all` does, if this command has that.
    pub all: Option<Measure>,
    /// What `bench --study` does.
    pub studies: &'static [Study],
}

/// A program on a mesh that takes no time.
pub struct Trial {
    /// The name of the program.
    pub example: &'static str,
    /// The generator of the mesh, as for `--mesh`.
    pub mesh: &'static str,
}

/// Measures some of the programs, writes what came out to a folder, the usual one of these measurements if none is named, and prints it.
///
/// # Errors
/// A program that fails, a folder that cannot be written to.
pub type Measure = fn(&Programs, Scale, Option<&Path>, &mut Console) -> Result<()>;

/// Measurements with a name.
pub struct Study {
    /// The word after `--study`.
    pub name: &'static str,
    /// What is measured, in one line.
    pub about: &'static str,
    /// Does it.
    pub measure: Measure,
}

/// How large the meshes of measurements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As large as they are to be, for figures that are kept.
    Full,
    /// Smaller, with shorter trials, to look whether something changed: `--quick`.
    Quick,
    /// So small that they take no time, to test the command.
    Tiny,
}

impl Programs {
    /// Some programs, with nothing beside them.
    ///
    /// ```
    /// use meshweft_command::cli::Programs;
    /// static NONE: Programs = Programs::of(&[]);
    /// assert!(NONE.find("diffusion").is_err());
    /// ```
    pub const fn of(entries: &'static [Entry]) -> Programs {
        Programs { entries, trial: None, all: None, studies: &[] }
    }

    /// The program of that name.
    ///
    /// # Errors
    /// There is none; the message names those there are, and the one that was probably meant.
    pub fn find(&self, name: &str) -> Result<&'static Entry> {
        if let Some(entry) = self.entries.iter().find(|entry| entry.info.name == name) {
            return Ok(entry);
        }
        let names: Vec<_> = self.entries.iter().map(|entry| entry.info.name).collect();
        bail!("{} (`meshweft list` says what they do)", unknown("example", name, &names))
    }

    /// The first of them.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn first(&self) -> Result<&'static Entry> {
        self.entries.first().context("this command has no programs")
    }

    /// What to try a GPU with: a program, and the generator of its mesh.
    ///
    /// # Errors
    /// There is none of that name, or none at all.
    pub(super) fn trial(&self) -> Result<(&'static Entry, &'static str)> {
        match &self.trial {
            Some(Trial { example, mesh }) => Ok((self.find(example)?, mesh)),
            None => self.first().map(|entry| (entry, entry.info.mesh)),
        }
    }

    /// The measurements of that name.
    pub(super) fn study(&self, name: &str) -> Option<Measure> {
        self.studies.iter().find(|study| study.name == name).map(|study| study.measure)
    }
}

/// The program that `meshweft new` makes.
#[cfg(test)]
pub(crate) static DIFFUSION: Programs = Programs::of(&[Entry::of::<crate::template::Diffusion>()]);
