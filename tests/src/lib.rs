//! Harness of the whole-system tests: runs any example from a mesh and a few words.

#![forbid(unsafe_code)]

pub mod random;

pub use meshweft::conformance::orders;

use anyhow::Result;
use meshweft_command::{Entry, Options, Run, Settings};
use meshweft_examples::EXAMPLES;
use meshweft_mesh::Mesh;

/// Whether the case `i, j` of a table is tried: every third, so that each row and column has some, or all where `EVERY_CASE` is set, as
/// docs/perf/campaign.sh does.
pub fn is_tried(i: usize, j: usize) -> bool {
    (i + 2 * j).is_multiple_of(3) || std::env::var_os("EVERY_CASE").is_some()
}

/// The example of that name.
///
/// # Panics
/// If there is none.
pub fn example(name: &str) -> &'static Entry {
    EXAMPLES.iter().find(|e| e.info.name == name).unwrap_or_else(|| panic!("no example {name}"))
}

/// Whether the elements of an example move their corners, which they do in sweeps in place alone, compiled.
pub fn projects(name: &str) -> bool {
    name == "xpbd"
}

/// Starts an example on a mesh with its default settings, changed by `set`.
///
/// # Errors
/// Whatever the example says of mesh or settings.
pub fn start(name: &str, mesh: &Mesh, set: &[(&str, &str)], options: &Options) -> Result<Run> {
    let entry = example(name);
    let mut settings = Settings::new(entry.info.settings);
    for (key, value) in set {
        settings.set(entry.info.settings, key, value)?;
    }
    entry.start(mesh.clone(), &settings, options)
}

/// Runs some steps and returns the digest.
///
/// # Errors
/// Whatever stops the run.
pub fn digest_after(steps: usize, run: &mut Run) -> Result<String> {
    for _ in 0..steps {
        run.step()?;
    }
    Ok(run.digest()?)
}

/// The code blocks of the guide, compiled and run. Those of the README are on the front page of the runtime.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../docs/guide/cookbook.md")]
    struct Cookbook;
    #[doc = include_str!("../../docs/guide/embed.md")]
    struct Embed;
    #[doc = include_str!("../../docs/guide/gpu.md")]
    struct Gpu;
    #[doc = include_str!("../../docs/guide/run-on-a-lan.md")]
    struct RunOnALan;
    #[doc = include_str!("../../docs/guide/files.md")]
    struct Files;
    #[doc = include_str!("../../docs/guide/stop-resume-survive.md")]
    struct StopResumeSurvive;
    #[doc = include_str!("../../docs/guide/write-a-program.md")]
    struct WriteAProgram;
}
