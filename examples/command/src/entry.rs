//! The table of examples: what can be done with each, whatever its types.

use crate::example::{Check, Example, Info};
use crate::run::{Make, Options, Run, configure, make};
use crate::settings::Settings;
use anyhow::{Context, Result};
#[cfg(feature = "cluster")]
use meshweft::Worker;
use meshweft::{Backend, Shader};
use meshweft_mesh::Mesh;
use std::marker::PhantomData;

/// One example in the table of all.
pub struct Entry {
    /// What is known of it.
    pub info: Info,
    /// Runs its acceptance test.
    pub checks: fn() -> Result<Vec<Check>>,
    /// Its programs: the first that the settings ask for runs.
    programs: &'static [Runner],
}

/// What can be done with a program of an example, whatever its types.
struct Runner {
    runs: fn(&Settings) -> bool,
    make: Make,
    #[cfg(feature = "cluster")]
    work: fn(Worker) -> Result<()>,
    #[cfg(feature = "cluster")]
    name: fn() -> &'static str,
    shaders: fn(Mesh, &Settings, &Options) -> Result<Vec<Shader>>,
}

impl Runner {
    const fn of<P: Example>() -> Runner {
        Runner {
            runs: P::runs,
            make: make::<P>,
            #[cfg(feature = "cluster")]
            work: |worker| Ok(worker.run::<P>()?),
            #[cfg(feature = "cluster")]
            name: std::any::type_name::<P>,
            shaders: |mut mesh, settings, options| {
                let program = P::new(&mut mesh, settings, options.order)?;
                let options = Options { backend: Backend::Gpu { adapter: 0 }, ..options.clone() };
                Ok(configure(mesh, program, &options).shaders()?)
            },
        }
    }
}

/// The programs of an example, in a type: the address of a constant of one lasts.
struct Programs<P, Q>(PhantomData<(P, Q)>);

impl<P: Example, Q: Example> Programs<P, Q> {
    const BOTH: &'static [Runner] = &[Runner::of::<P>(), Runner::of::<Q>()];
}

impl Entry {
    /// The entry of an example of one program.
    pub const fn of<P: Example>() -> Entry {
        Entry::either::<P, P>()
    }

    /// The entry of an example of two programs: `P` where it [runs](Example::runs), else `Q`.
    pub const fn either<P: Example, Q: Example>() -> Entry {
        Entry { info: Q::INFO, checks: Q::checks, programs: Programs::<P, Q>::BOTH }
    }

    fn runner(&self, settings: &Settings) -> Result<&Runner> {
        let found = self.programs.iter().find(|program| (program.runs)(settings));
        found.with_context(|| format!("no program of {} runs with these settings", self.info.name))
    }

    /// Builds a run on a mesh.
    ///
    /// # Errors
    /// A mesh or options that the physics cannot run on.
    pub fn start(&self, mesh: Mesh, settings: &Settings, options: &Options) -> Result<Run> {
        Run::start(self.runner(settings)?.make, mesh, settings, options)
    }

    /// The shaders that would run it on a GPU.
    ///
    /// # Errors
    /// As [`Entry::start`].
    pub fn shaders(&self, mesh: Mesh, settings: &Settings, options: &Options) -> Result<Vec<Shader>> {
        (self.runner(settings)?.shaders)(mesh, settings, options)
    }

    /// What works for a driver until the run is over, if the program of that name is one of this example.
    #[cfg(feature = "cluster")]
    pub fn work(&self, program: &str) -> Option<fn(Worker) -> Result<()>> {
        self.programs.iter().find(|known| (known.name)() == program).map(|known| known.work)
    }
}
