//! Records the stages of a step.

use super::{Kernel, Kernels, Map, Record, Reduce, Scalar, Test, Update};
use crate::error::{Error, Result};
use crate::number::Number;
use crate::schedule::Rule;
use crate::step::{Settings, Stage};
use std::any::TypeId;
use std::marker::PhantomData;

/// Receives the stages of a step, in order; [`Program::step`](crate::Program::step) and
/// [`Simulation::run`](crate::Simulation::run) are given one.
///
/// Nothing runs while it is told: the list is run as a whole afterwards. A kernel that [`kernels!`](crate::kernels) did not
/// name makes the step fail.
pub struct Stages<P> {
    /// Identities of the kernels, by number.
    known: Vec<TypeId>,
    is_double_buffered: bool,
    precision: Precision,
    stages: Vec<Stage>,
    fault: Option<String>,
    program: PhantomData<fn(P)>,
}

/// What a number must fit into: its name, and whether it does.
#[derive(Clone, Copy)]
struct Precision {
    name: &'static str,
    fits: fn(f64) -> bool,
}

impl Precision {
    fn of<T: Number>() -> Precision {
        Precision { name: T::NAME, fits: |x| T::from_f64(x).finite() }
    }
}

impl<P: Kernels> Stages<P> {
    /// Records what `tell` says. `known`: identity of each kernel. `is_double_buffered`: whether the order is
    /// [`Order::JACOBI`](crate::Order::JACOBI), under which sweeps read old values.
    ///
    /// # Errors
    /// A stage with a kernel that is not known, or that makes no sense.
    pub(crate) fn record<T: Number>(
        known: Vec<TypeId>,
        is_double_buffered: bool,
        tell: impl FnOnce(&mut Self),
    ) -> Result<Vec<Stage>> {
        let precision = Precision::of::<T>();
        let (stages, program) = (Vec::new(), PhantomData);
        let mut stages = Stages { known, is_double_buffered, precision, stages, fault: None, program };
        tell(&mut stages);
        match stages.fault {
            None => Ok(stages.stages),
            Some(fault) => Err(Error::Program(fault)),
        }
    }

    /// Updates every vertex by itself.
    pub fn map<K: Map<P>>(&mut self, kernel: K) {
        self.update(kernel, Rule::Alone, 1);
    }

    /// Updates every vertex `rounds` times in place, in the order of the schedule: new values of earlier neighbors, old
    /// values of later ones (Gauss–Seidel). Under [`Order::JACOBI`](crate::Order::JACOBI) the same as [`Stages::jacobi`].
    pub fn sweep<K: Update<P>>(&mut self, kernel: K, rounds: usize) {
        self.update(kernel, Rule::InOrder, rounds);
    }

    /// Sweeps in the reverse order: after a sweep forward, symmetric Gauss–Seidel.
    pub fn sweep_backward<K: Update<P>>(&mut self, kernel: K, rounds: usize) {
        self.update(kernel, Rule::Backward, rounds);
    }

    /// Updates every vertex `rounds` times from the old values of all neighbors, double-buffered.
    pub fn jacobi<K: Update<P>>(&mut self, kernel: K, rounds: usize) {
        self.update(kernel, Rule::AtOnce, rounds);
    }

    /// Updates every vertex from the old values of all neighbors, round after round, until one changes nothing: the fixed point of
    /// the update, of labels that spread or distances that shrink. At most `most` rounds; the last, which changes nothing, counts.
    ///
    /// It takes kernels that are `quiet` or `relax` (others may change by themselves). Only what lies around vertices that
    /// have changed is looked at again. [`Relax`](crate::Relax) has an example.
    pub fn fixpoint<K: Update<P>>(&mut self, kernel: K, most: usize) {
        if !K::QUIET {
            return self.refuse(format!(
                "a fixpoint is asked for of kernel {}, which may change by itself: declare it `quiet update` or `relax`",
                K::NAME
            ));
        }
        if let Some((kernel, settings)) = self.find(&kernel)
            && most > 0
        {
            let most = self.rounds(most);
            self.stages.push(Stage::Fixpoint { kernel, settings, most });
        }
    }

    /// Measures every vertex and writes the combination into a global: `stages.reduce(Residual, |g| &mut g.residual)`.
    pub fn reduce<K: Reduce<P>>(
        &mut self,
        kernel: K,
        into: impl for<'a> FnOnce(&'a mut P::Globals<f64>) -> &'a mut f64,
    ) {
        // Where it points is found by what a write through it changes.
        let mut globals = P::Globals::<f64>::build(|_| 0.0);
        *into(&mut globals) = 1.0;
        let mut place = None;
        globals.each(|k, x| place = if x == 1.0 { Some(k) } else { place });
        let Some(into) = place else {
            return self.refuse(format!("kernel {} is reduced into something that is no global", K::NAME));
        };
        if let Some((kernel, settings)) = self.find(&kernel) {
            self.stages.push(Stage::Reduce { kernel, settings, into });
        }
    }

    /// Computes new globals.
    pub fn scalar<K: Scalar<P>>(&mut self, kernel: K) {
        if let Some((kernel, settings)) = self.find(&kernel) {
            self.stages.push(Stage::Scalar { kernel, settings });
        }
    }

    /// Repeats stages until a test of the globals holds, at most `most` times. The test comes first: if it holds already,
    /// nothing runs.
    pub fn until<K: Test<P>>(&mut self, test: K, most: usize, repeat: impl FnOnce(&mut Self)) {
        let outside = std::mem::take(&mut self.stages);
        repeat(self);
        let stages = std::mem::replace(&mut self.stages, outside);
        if let Some((test, settings)) = self.find(&test) {
            let most = self.rounds(most);
            self.stages.push(Stage::Until { test, settings, most, stages });
        }
    }

    fn update<K: Kernel>(&mut self, kernel: K, rule: Rule, rounds: usize) {
        let rule = match rule {
            Rule::InOrder | Rule::Backward if self.is_double_buffered => Rule::AtOnce,
            rule => rule,
        };
        if let Some((kernel, settings)) = self.find(&kernel)
            && rounds > 0
        {
            let rounds = self.rounds(rounds);
            self.stages.push(Stage::Update { kernel, settings, rule, rounds });
        }
    }

    fn rounds(&mut self, rounds: usize) -> u32 {
        rounds.try_into().unwrap_or_else(|_| {
            self.refuse(format!("{rounds} rounds are more than 2^32 - 1"));
            0
        })
    }

    /// The number of a kernel, and its settings.
    fn find<K: Kernel>(&mut self, kernel: &K) -> Option<(usize, Settings)> {
        let Some(number) = self.known.iter().position(|&known| known == TypeId::of::<K>()) else {
            self.refuse(format!(
                "a step uses kernel {}, which is not among the program's kernels: name it in `kernels!`",
                K::NAME
            ));
            return None;
        };
        match settings(kernel, self.precision) {
            Ok(settings) => Some((number, settings)),
            Err(fault) => {
                self.refuse(fault);
                None
            }
        }
    }

    fn refuse(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}

/// The settings of a kernel.
///
/// # Errors
/// One that is not finite in `T`.
pub(crate) fn settings_of<T: Number, K: Kernel>(kernel: &K) -> Result<Settings> {
    settings(kernel, Precision::of::<T>()).map_err(Error::Program)
}

fn settings<K: Kernel>(kernel: &K, precision: Precision) -> Result<Settings, String> {
    let (name, given) = (K::NAME, kernel.settings());
    if let Some((i, x)) = given.iter().enumerate().find(|(_, x)| !(precision.fits)(**x)) {
        return Err(match x.is_finite() {
            false => format!("setting {i} of kernel {name} is {x}: it must be finite"),
            true => format!(
                "setting {i} of kernel {name} is {x:?}, which does not fit into {}: use f64, or other units",
                precision.name
            ),
        });
    }
    let mut settings = Settings::default();
    match settings.get_mut(..given.len()) {
        Some(slots) => slots.copy_from_slice(&given),
        None => return Err(format!("kernel {name} has {} settings, at most {}", given.len(), settings.len())),
    }
    Ok(settings)
}
