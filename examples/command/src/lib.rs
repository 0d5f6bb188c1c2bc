//! The `meshweft` command, for any programs: it runs, draws, measures and judges those of the table that it is given.
//!
//! A program implements [`Example`]: a name, a scene, settings, a look and an acceptance test. [`Entry`] makes it a line of a table,
//! whatever its types, and [`cli::main`] is the command that knows these [`cli::Programs`]. An application that keeps its loop starts a
//! [`Run`] of an entry and writes the same files by [`output`].
//!
//! Nothing here knows any physics.

#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as meshweft_command; // as the template names it

pub mod cli;
mod entry;
mod example;
#[cfg(test)]
mod means;
mod names;
mod oracle;
pub mod output;
mod run;
mod settings;
#[cfg(test)]
#[path = "../template/src/main.rs"]
#[expect(dead_code, reason = "a program of its own, which tests run")]
mod template;

pub use entry::Entry;
pub use example::{CellsNow, CellsOf, Check, Column, Example, Info, Look, Precision, Tolerance, find};
pub use meshweft_picture::{ColorMap, Prop, Section};
pub use run::{Options, Run};
pub use settings::{Kind, Setting, Settings};
