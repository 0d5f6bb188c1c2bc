//! Records the stages of a step.

use super::{Kernel, Kernels, Map, Project, Record, Reduce, Scalar, Test, Update};
use crate::error::{Error, Result};
use crate::number::{Number, Precision};
use crate::step::{Settings, Stage};
use meshweft_schedule::Rule;
use std::any::TypeId;
use std::marker::PhantomData;

/// Receives the stages of a step, in order; [`Program::step`](crate::Program::step) and
/// [`Simulation::run`](crate::Simulation::run) are given one.
///
/// Nothing runs while it is told: the list is run as a whole afterwards. A kernel that [`kernels!`](crate::kernels) did not
/// name makes the step fail.
pub struct Stages<P> {
    list: StageList,
    program: PhantomData<fn(P)>,
}

/// The stages of a step while they are told, whatever the program.
pub(crate) struct StageList {
    /// Identities of the kernels, by number.
    known: Vec<KernelId>,
    /// How many parts the data graph has, and the one that stages are told for, if not all.
    parts: u32,
    pub(crate) part: Option<u32>,
    is_double_buffered: bool,
    precision: Precision,
    stages: Vec<Stage>,
    /// Which global says how long the step lasts, if one does.
    lasts: Option<usize>,
    fault: Option<String>,
}

/// What tells the kernels of a program apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelId {
    /// The type of one that is compiled.
    Of(TypeId),
    /// The place of one that is data.
    At(usize),
}

impl KernelId {
    pub(crate) fn of<K: Kernel>() -> KernelId {
        KernelId::Of(TypeId::of::<K>())
    }
}

/// A kernel as a stage names it.
pub(crate) struct Named {
    pub(crate) name: &'static str,
    pub(crate) id: KernelId,
    pub(crate) settings: Vec<f64>,
}

impl Named {
    fn of<K: Kernel>(kernel: &K) -> Named {
        Named { name: K::NAME, id: KernelId::of::<K>(), settings: kernel.settings() }
    }
}

impl<P: Kernels> Stages<P> {
    /// Records what `tell` says.
    pub(crate) fn tell(list: StageList, tell: impl FnOnce(&mut Self)) -> StageList {
        let mut stages = Stages { list, program: PhantomData };
        tell(&mut stages);
        stages.list
    }

    /// Updates every vertex by itself.
    pub fn map<K: Map<P>>(&mut self, kernel: K) {
        self.list.update(Named::of(&kernel), Rule::Alone, 1);
    }

    /// Updates every vertex `rounds` times in place, in the order of the schedule: new values of earlier neighbors, old
    /// values of later ones (Gauss–Seidel). Under [`Order::JACOBI`](crate::Order::JACOBI) the same as [`Stages::jacobi`].
    pub fn sweep<K: Update<P>>(&mut self, kernel: K, rounds: usize) {
        self.list.update(Named::of(&kernel), Rule::InOrder, rounds);
    }

    /// Sweeps in the reverse order: after a sweep forward, symmetric Gauss–Seidel.
    pub fn sweep_backward<K: Update<P>>(&mut self, kernel: K, rounds: usize) {
        self.list.update(Named::of(&kernel), Rule::Backward, rounds);
    }

    /// Updates every vertex `rounds` times from the old values of all neighbors, double-buffered.
    pub fn jacobi<K: Update<P>>(&mut self, kernel: K, rounds: usize) {
        self.list.update(Named::of(&kernel), Rule::AtOnce, rounds);
    }

    /// Updates every vertex from the old values of all neighbors, round after round, until one changes nothing: the fixed point of
    /// the update, of labels that spread or distances that shrink. At most `most` rounds; the last, which changes nothing, counts.
    ///
    /// It takes kernels that are `quiet` or `relax` (others may change by themselves). Only what lies around vertices that
    /// have changed is looked at again. [`Relax`](crate::Relax) has an example.
    pub fn fixpoint<K: Update<P>>(&mut self, kernel: K, most: usize) {
        self.list.fixpoint(Named::of(&kernel), K::QUIET, most);
    }

    /// Projects every element of the kernel's star `rounds` times in place, one after the other in the order of the schedule.
    /// [`Project`] says which that is.
    pub fn project<K: Project<P>>(&mut self, kernel: K, rounds: usize) {
        self.list.project(Named::of(&kernel), rounds);
    }

    /// Tells stages that update the vertices of one part alone: 0 those of the mesh, then those that [`Program::parts`](crate::Program::parts)
    /// adds. They sweep in place or map; what they do not visit costs next to nothing. Without it a stage updates all parts.
    ///
    /// # Example
    ///
    /// A coarse vertex takes the mean of the fine ones, and they take a part of it back:
    ///
    /// ```
    /// use meshweft::{Mesh, Program, Simulation, Stages, Stars, kernels, stars, vertex};
    /// vertex! { pub struct Level<R> { shared value: R } }
    /// stars! { pub Links[1]; }
    /// struct Two;
    /// kernels! {
    ///     for Two: Level;
    ///     update Sum |_, _, around| Level { value: around.sum(Links, |[other], ()| other.value) };
    ///     update Halve |_, own, around| {
    ///         let coarse = around.sum(Links, |[other], ()| other.value);
    ///         Level { value: own.value - coarse * R::lit(0.5) }
    ///     };
    /// }
    /// impl Program for Two {
    ///     fn parts(&self, _: &Mesh) -> Vec<Vec<[f64; 3]>> { vec![vec![[0.5, 0.0, 0.0]]] }
    ///     fn stars(&self, _: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
    ///         stars.add(Links, vec![[0, 2], [1, 2]], |_| ());
    ///         Ok(())
    ///     }
    ///     fn initial(&self, _: &Mesh, v: u32) -> Level<f64> { Level { value: f64::from(v) } }
    ///     fn step(&self, stages: &mut Stages<Self>) {
    ///         stages.on(1, |stages| stages.sweep(Sum, 1));
    ///         stages.on(0, |stages| stages.sweep(Halve, 1));
    ///     }
    /// }
    /// let mut two = Simulation::builder(Mesh::from_graph(2, Vec::new())?, Two).build()?;
    /// two.step()?;
    /// assert_eq!((two.field("value")?.values, two.vertex(2)?.value), (vec![-0.5, 0.5], 1.0));
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn on(&mut self, part: usize, tell: impl FnOnce(&mut Self)) {
        let before = self.list.turn_to(part);
        tell(self);
        self.list.part = before;
    }

    /// Measures every vertex of the mesh and writes the combination into a global: `stages.reduce(Residual, |g| &mut g.residual)`.
    pub fn reduce<K: Reduce<P>>(
        &mut self,
        kernel: K,
        into: impl for<'a> FnOnce(&'a mut P::Globals<f64>) -> &'a mut f64,
    ) {
        self.list.reduce(Named::of(&kernel), place_of::<P>(into));
    }

    /// Computes new globals.
    pub fn scalar<K: Scalar<P>>(&mut self, kernel: K) {
        self.list.scalar(Named::of(&kernel));
    }

    /// The step lasts as long as a global says when it is over, in seconds, which must be above 0: a time step that is chosen from what the
    /// step has measured. [`Program::time_step`](crate::Program::time_step) is then the longest that it may be. A GPU is waited for.
    ///
    /// ```
    /// use meshweft::{Mesh, Program, Simulation, Stages, kernels, record, vertex};
    /// vertex! { struct Falling<R> { height: R, speed: R } }
    /// record! { struct Parameters<R> { longest: R } }
    /// record! { struct Chosen<R> { fastest: R, dt: R } }
    /// struct Fall { dt: f64 }
    /// kernels! {
    ///     for Fall: Falling, Parameters, Chosen;
    ///     max Fastest |_, own, _| own.speed;
    ///     // Nothing moves by more than 0.05 m.
    ///     scalar Choose |p| Chosen { dt: p.longest.min(R::lit(0.05) / p.globals.fastest), ..p.globals };
    ///     map Move |p, own| {
    ///         let speed = own.speed + p.globals.dt;
    ///         Falling { speed, height: own.height - speed * p.globals.dt }
    ///     };
    /// }
    /// impl Program for Fall {
    ///     fn time_step(&self) -> f64 { self.dt }
    ///     fn set_time_step(&mut self, dt: f64) -> bool { self.dt = dt; true }
    ///     fn parameters(&self, _: f64) -> Parameters<f64> { Parameters { longest: self.dt } }
    ///     fn globals(&self) -> Chosen<f64> { Chosen { fastest: 0.0, dt: 0.0 } }
    ///     fn initial(&self, _: &Mesh, _: u32) -> Falling<f64> { Falling { height: 100.0, speed: 1.0 } }
    ///     fn step(&self, stages: &mut Stages<Self>) {
    ///         stages.reduce(Fastest, |g| &mut g.fastest);
    ///         stages.scalar(Choose);
    ///         stages.map(Move);
    ///         stages.lasts(|g| &mut g.dt);
    ///     }
    /// }
    /// let mut fall = Simulation::builder(Mesh::from_graph(4, Vec::new())?, Fall { dt: 0.1 }).precision::<f64>().build()?;
    /// while fall.time() < 1.0 {
    ///     fall.step_until(1.0)?;
    /// }
    /// assert_eq!(fall.time(), 1.0);
    /// assert!((fall.vertex(0)?.speed - 2.0).abs() < 1e-12 && fall.steps() > 20);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn lasts(&mut self, global: impl for<'a> FnOnce(&'a mut P::Globals<f64>) -> &'a mut f64) {
        self.list.lasts(place_of::<P>(global));
    }

    /// Repeats stages until a test of the globals holds, at most `most` times. The test comes first: if it holds already,
    /// nothing runs.
    pub fn until<K: Test<P>>(&mut self, test: K, most: usize, repeat: impl FnOnce(&mut Self)) {
        let outside = self.list.begin();
        repeat(self);
        self.list.until(Named::of(&test), most, outside);
    }
}

/// Which global that is: what a write through it changes.
fn place_of<P: Kernels>(global: impl for<'a> FnOnce(&'a mut P::Globals<f64>) -> &'a mut f64) -> Option<usize> {
    let mut globals = P::Globals::<f64>::build(|_| 0.0);
    *global(&mut globals) = 1.0;
    let mut place = None;
    globals.each(|k, x| place = if x == 1.0 { Some(k) } else { place });
    place
}

impl StageList {
    /// None so far. `known`: identity of each kernel; `parts`: how many the data graph has. `is_double_buffered`: whether the order is
    /// [`Order::JACOBI`](crate::Order::JACOBI), under which sweeps read old values.
    pub(crate) fn new<T: Number>(known: Vec<KernelId>, parts: u32, is_double_buffered: bool) -> StageList {
        StageList {
            known,
            parts,
            part: None,
            is_double_buffered,
            precision: T::PRECISION,
            stages: Vec::new(),
            lasts: None,
            fault: None,
        }
    }

    /// All that were told, and which global says how long they last, if one does.
    ///
    /// # Errors
    /// A stage with a kernel that is not known, or that no engine can run.
    pub(crate) fn finish(self) -> Result<(Vec<Stage>, Option<usize>)> {
        match self.fault {
            None => Ok((self.stages, self.lasts)),
            Some(fault) => Err(Error::Program(fault)),
        }
    }

    pub(crate) fn update(&mut self, kernel: Named, rule: Rule, rounds: usize) {
        let rule = match rule {
            Rule::InOrder | Rule::Backward if self.is_double_buffered => Rule::AtOnce,
            rule => rule,
        };
        if let (Some(part), Rule::AtOnce) = (self.part, rule) {
            return self.refuse(format!(
                "kernel {} is to update part {part} alone from old values: sweep in an order that is in place",
                kernel.name
            ));
        }
        if let Some((kernel, settings)) = self.find(&kernel)
            && rounds > 0
        {
            let (part, rounds) = (self.part, self.rounds(rounds));
            self.stages.push(Stage::Update { kernel, settings, part, rule, rounds });
        }
    }

    /// Tells stages for a part from here on. Returns the one before.
    pub(crate) fn turn_to(&mut self, part: usize) -> Option<u32> {
        if part >= self.parts as usize {
            self.refuse(format!("stages are told for part {part}, but there are {}: 0 is the mesh", self.parts));
        }
        self.part.replace(part as u32)
    }

    pub(crate) fn fixpoint(&mut self, kernel: Named, is_quiet: bool, most: usize) {
        if !is_quiet {
            return self.refuse(format!(
                "a fixpoint is asked for of kernel {}, which may change by itself: declare it `quiet update` or `relax`",
                kernel.name
            ));
        }
        if let Some(part) = self.part {
            return self.refuse(format!("a fixpoint of kernel {} is asked for on part {part} alone", kernel.name));
        }
        if let Some((kernel, settings)) = self.find(&kernel)
            && most > 0
        {
            let most = self.rounds(most);
            self.stages.push(Stage::Fixpoint { kernel, settings, most });
        }
    }

    pub(crate) fn project(&mut self, kernel: Named, rounds: usize) {
        if let Some((kernel, settings)) = self.find(&kernel)
            && rounds > 0
        {
            let rounds = self.rounds(rounds);
            self.stages.push(Stage::Project { kernel, settings, rounds });
        }
    }

    pub(crate) fn reduce(&mut self, kernel: Named, into: Option<usize>) {
        let Some(into) = into else {
            return self.refuse(format!("kernel {} is reduced into something that is no global", kernel.name));
        };
        if let Some((kernel, settings)) = self.find(&kernel) {
            self.stages.push(Stage::Reduce { kernel, settings, into });
        }
    }

    pub(crate) fn lasts(&mut self, global: Option<usize>) {
        match global {
            Some(_) => self.lasts = global,
            None => self.refuse("a step lasts as long as something says that is no global".into()),
        }
    }

    pub(crate) fn scalar(&mut self, kernel: Named) {
        if let Some((kernel, settings)) = self.find(&kernel) {
            self.stages.push(Stage::Scalar { kernel, settings });
        }
    }

    /// Begins a list of its own, and returns the one that it stands in, for [`StageList::until`].
    pub(crate) fn begin(&mut self) -> Vec<Stage> {
        std::mem::take(&mut self.stages)
    }

    pub(crate) fn until(&mut self, test: Named, most: usize, outside: Vec<Stage>) {
        let stages = std::mem::replace(&mut self.stages, outside);
        if let Some((test, settings)) = self.find(&test) {
            let most = self.rounds(most);
            self.stages.push(Stage::Until { test, settings, most, stages });
        }
    }

    fn rounds(&mut self, rounds: usize) -> u32 {
        rounds.try_into().unwrap_or_else(|_| {
            self.refuse(format!("{rounds} rounds are more than 2^32 - 1"));
            0
        })
    }

    /// The number of a kernel, and its settings.
    fn find(&mut self, kernel: &Named) -> Option<(usize, Settings)> {
        let Some(number) = self.known.iter().position(|&known| known == kernel.id) else {
            self.refuse(format!(
                "a step uses kernel {}, which is not among the program's kernels: name it in `kernels!`",
                kernel.name
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

    pub(crate) fn refuse(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}

/// The settings of a kernel.
///
/// # Errors
/// One that is not finite in `T`.
pub(crate) fn settings_of<T: Number, K: Kernel>(kernel: &K) -> Result<Settings> {
    settings(&Named::of(kernel), T::PRECISION).map_err(Error::Program)
}

fn settings(kernel: &Named, precision: Precision) -> Result<Settings, String> {
    let (name, given) = (kernel.name, &kernel.settings);
    if let Some((i, x)) = given.iter().enumerate().find(|(_, x)| !precision.holds(**x)) {
        return Err(match x.is_finite() {
            false => format!("setting {i} of kernel {name} is {x}: it must be finite"),
            true => format!(
                "setting {i} of kernel {name} is {x:?}, which does not fit into {}: use f64, or other units",
                precision.name()
            ),
        });
    }
    let mut settings = Settings::default();
    match settings.get_mut(..given.len()) {
        Some(slots) => slots.copy_from_slice(given),
        None => return Err(format!("kernel {name} has {} settings, at most {}", given.len(), settings.len())),
    }
    Ok(settings)
}
