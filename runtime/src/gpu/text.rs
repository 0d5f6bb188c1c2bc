//! The shaders of a program, as text: for those who want to read them, and for tests without a device.

use super::plan::{Limits, Plan, Round, What};
use crate::error::Result;
use crate::layout::Layout;
use crate::program::{Kernel, Map, Metrics, Number, PrivateOf, Program, Record, Reduce, SharedOf, Stages};
use crate::trace;
use meshweft_shaders::{Body, Entry, Physics, module};

/// One compute shader of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shader {
    /// The kernel: its name in the program.
    pub kernel: &'static str,
    /// How its vertices are visited: the entry point.
    pub entry: &'static str,
    /// Whether it reads neighbors from another array than it writes.
    pub double_buffered: bool,
    /// The structs of the program's records.
    pub records: String,
    /// What was traced from the kernel.
    pub function: String,
    /// The whole module, as a driver gets it.
    pub module: String,
}

/// What WebGPU promises on every device.
fn limits<P: Program, T: Number>() -> Limits {
    Limits {
        binding_bytes: 128 << 20,
        workgroup_bytes: 16 << 10,
        invocations: 256,
        shared: <SharedOf<P, T>>::LEN,
        private: <PrivateOf<P, T>>::LEN,
    }
}

/// The shaders that a step and the measures of a program need on a layout, each once.
pub(crate) fn shaders<P: Program, T: Number>(
    program: &P,
    layout: &Layout<T>,
    physics: &Physics,
) -> Result<Vec<Shader>> {
    let plan = Plan::new(layout, &limits::<P, T>())?;
    let mut writer = Writer { layout, plan, physics, shaders: Ok(Vec::new()) };
    program.step(&mut writer);
    program.metrics(&mut writer);
    writer.shaders
}

struct Writer<'a, T> {
    layout: &'a Layout<T>,
    plan: Plan,
    physics: &'a Physics,
    shaders: Result<Vec<Shader>>,
}

impl<T: Number> Writer<'_, T> {
    fn push(&mut self, kernel: &'static str, entries: &[Entry], double: bool, body: Result<Body>) {
        let Ok(shaders) = &mut self.shaders else { return };
        let body = match body {
            Ok(body) => body,
            Err(error) => {
                self.shaders = Err(error);
                return;
            }
        };
        for &entry in entries {
            let shader = Shader {
                kernel,
                entry: entry.name(),
                double_buffered: double,
                records: self.physics.declarations(),
                function: body.function().into(),
                module: module(self.physics, &self.plan.harness, &body, entry, double),
            };
            if !shaders.contains(&shader) {
                shaders.push(shader);
            }
        }
    }

    fn entries(&self, of: &[super::plan::Visit]) -> Vec<Entry> {
        let entry = |what: &What| if matches!(what, What::Slots(_)) { Entry::Phase } else { Entry::Tasks };
        let mut entries: Vec<Entry> = of.iter().map(|visit| entry(&visit.what)).collect();
        entries.sort();
        entries.dedup();
        entries
    }
}

impl<P: Program, T: Number> Stages<P> for Writer<'_, T> {
    fn map<K: Map<P>>(&mut self, _: K) {
        self.push(K::NAME, &[Entry::Phase], false, trace::map::<P, K>(self.physics));
    }

    fn sweep<K: Kernel<P>>(&mut self, kernel: K, rounds: usize) {
        if self.layout.schedule.is_double_buffered() {
            return Stages::<P>::jacobi(self, kernel, rounds);
        }
        let entries = match &self.plan.sweep {
            Round::Visits(visits) => self.entries(visits),
            Round::Waves => vec![Entry::Ready],
        };
        self.push(K::NAME, &entries, false, trace::kernel::<P, K>(self.physics));
    }

    fn jacobi<K: Kernel<P>>(&mut self, _: K, _: usize) {
        let entries = self.entries(&self.plan.all);
        self.push(K::NAME, &entries, true, trace::kernel::<P, K>(self.physics));
    }
}

impl<P: Program, T: Number> Metrics<P> for Writer<'_, T> {
    fn measure<K: Reduce<P>>(&mut self, _: K) {
        let entries = self.entries(&self.plan.all);
        self.push(K::NAME, &entries, false, trace::measure::<P, K>(self.physics));
    }
}
