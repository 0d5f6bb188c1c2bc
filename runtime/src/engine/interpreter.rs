//! The stages of a step, one after the other, for engines that run where the host does.

use super::code::{Code, Measure, Pass, Sight};
use super::compiled::Table;
use super::reduce::Reduction;
use super::store::Store;
use super::{Engine, Facts, Progress};
use crate::error::{Error, Result};
use crate::layout::{Domain, Edit, State, View};
use crate::number::Number;
use crate::program::Uniform;
use crate::step::{self, Settings, Stage, Step};
use meshweft_schedule::Rule;
use std::sync::Arc;

/// What an engine that runs where the host does can do with all vertices. [`Interpreter`] makes an [`Engine`] of it.
pub(crate) trait Walker<T: Number>: Store<T> {
    /// Runs updates in sequence. Tells the first of them that did not come out finite everywhere.
    ///
    /// # Errors
    /// Another host was lost.
    fn pass(&mut self, passes: Vec<Pass<T>>) -> Result<Option<usize>>;

    /// Runs one round of an update. Tells whether it came out finite, and whether it changed any vertex that is here.
    ///
    /// # Errors
    /// Another host was lost.
    fn round(&mut self, pass: Pass<T>) -> Result<(bool, bool)> {
        let bits =
            |view: View<T>| [view.shared, view.private].map(|reals| bytemuck::cast_slice::<T, u8>(reals).to_vec());
        let before = bits(self.view()?);
        let non_finite = self.pass(vec![pass])?;
        Ok((non_finite.is_none(), bits(self.view()?) != before))
    }

    /// Projects the elements of a star. Tells whether all came out finite.
    ///
    /// # Errors
    /// The device was lost.
    fn project(&mut self, _star: usize, _pass: Pass<T>) -> Result<bool> {
        unreachable!("a backend that projects no elements is refused when a simulation is built");
    }

    /// Whether something holds on any host.
    ///
    /// # Errors
    /// Another host was lost.
    fn any(&mut self, own: bool) -> Result<bool> {
        Ok(own)
    }

    /// Runs rounds of an update until one changes nothing, `most` at most. Tells how many ran, and whether all came out finite.
    ///
    /// # Errors
    /// Another host was lost.
    fn fixpoint(&mut self, pass: Pass<T>, most: u32) -> Result<(u32, bool)> {
        fixpoint(self, &pass, most)
    }

    /// Says what will be measured after the next [`Walker::pass`], before anything else, and looks at no neighbors: a host may do that as it
    /// goes.
    fn expect(&mut self, _measures: Vec<Measure<T>>) {}

    /// Measures all of its vertices, and combines the values in the leaves of the tree.
    ///
    /// # Errors
    /// The device was lost.
    fn reduce(&mut self, measure: Measure<T>) -> Result<Reduction>;

    /// What all hosts have measured, together.
    ///
    /// # Errors
    /// Another host was lost.
    fn total(&mut self, own: Reduction) -> Result<f64> {
        Reduction::total(vec![own]).ok_or_else(|| Error::Internal("a host that is alone has all leaves".into()))
    }

    /// Goes on with other elements of changing stars, and with another state where slots are others than before.
    ///
    /// # Errors
    /// The device was lost.
    fn renew(&mut self, _domain: Arc<Domain>, _state: Option<State<T>>) -> Result<()> {
        unreachable!("a backend that has no changing stars is refused when a simulation is built");
    }

    /// What there is to know of it.
    fn facts(&self) -> Facts;
}

/// [`Walker::fixpoint`], round by round.
///
/// # Errors
/// As there.
pub(crate) fn fixpoint<T: Number, W: Walker<T> + ?Sized>(
    walker: &mut W,
    pass: &Pass<T>,
    most: u32,
) -> Result<(u32, bool)> {
    let mut finite = true;
    for round in 0..most {
        let (is_finite, has_changed) = walker.round(pass.clone())?;
        finite &= is_finite;
        if !walker.any(has_changed)? {
            return Ok((round + 1, finite));
        }
    }
    Ok((most, finite))
}

/// Runs steps stage by stage on a [`Walker`], and keeps globals and progress.
pub(crate) struct Interpreter<T, W> {
    pub(crate) walker: W,
    table: Arc<Table<T>>,
    globals: Vec<T>,
    progress: Progress,
}

impl<T: Number, W: Walker<T>> Interpreter<T, W> {
    pub(crate) fn new(walker: W, table: Arc<Table<T>>, globals: Vec<T>) -> Interpreter<T, W> {
        Interpreter { walker, table, globals, progress: Progress::default() }
    }

    /// Counts progress from here on: the state was changed.
    pub(crate) fn reset(&mut self) {
        self.progress = Progress::default();
    }

    /// The functions of a kernel.
    fn code(&self, kernel: usize) -> Code<T> {
        self.table.kernels[kernel].code.clone()
    }

    fn total(&mut self, kernel: usize, uniform: Uniform<T>) -> Result<f64> {
        let own = self.walker.reduce(Measure { kernel, code: self.code(kernel), uniform })?;
        self.walker.total(own)
    }

    /// Takes some steps, of which the first that is not finite is the last that counts. Updates in sequence go to the host
    /// together, across steps.
    ///
    /// # Errors
    /// As those of [`Walker`].
    pub(crate) fn steps(&mut self, steps: &[Step<T>]) -> Result<()> {
        let mut run = Run { engine: self, step: &steps[0], number: 0, passes: Vec::new(), non_finite: None };
        let mut after = Vec::with_capacity(steps.len());
        for (number, step) in steps.iter().enumerate() {
            (run.step, run.number) = (step, number);
            run.stages(&step.stages, 0)?;
            if !run.engine.table.is_finite(&run.engine.globals) {
                run.note_non_finite(number);
            }
            run.engine.progress.steps += 1;
            after.push(run.engine.progress.clone());
        }
        run.flush()?;
        let non_finite = run.non_finite;
        if let Some(step) = non_finite {
            self.progress = after.swap_remove(step);
        }
        self.progress.non_finite = non_finite.is_some();
        Ok(())
    }
}

impl<T: Number, W: Walker<T>> Engine<T> for Interpreter<T, W> {
    fn step(&mut self, step: &Step<T>) -> Result<()> {
        self.steps(std::slice::from_ref(step))
    }

    fn settle(&mut self) -> Result<Progress> {
        Ok(self.progress.clone())
    }

    fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn measure(&mut self, kernel: usize, settings: &Settings, parameters: &[T], step: u32) -> Result<f64> {
        let (parameters, globals) = (parameters.to_vec(), self.globals.clone());
        let uniform = Uniform { parameters, globals, settings: settings.map(T::from_f64), step, draw: 0 };
        self.total(kernel, uniform)
    }

    fn state(&self) -> Result<View<'_, T>> {
        self.walker.view()
    }

    fn edit(&mut self, edit: &mut Edit<T>) -> Result<()> {
        self.walker.change(edit)
    }

    fn elements(&self, star: usize) -> Result<View<'_, T>> {
        Ok(self.walker.elements(star))
    }

    fn edit_elements(&mut self, star: usize, edit: &mut Edit<T>) -> Result<()> {
        self.walker.change_elements(star, edit);
        Ok(())
    }

    fn globals(&self) -> Result<Vec<T>> {
        Ok(self.globals.clone())
    }

    fn set_globals(&mut self, globals: &[T]) -> Result<()> {
        self.globals = globals.to_vec();
        Ok(())
    }

    fn renew(&mut self, domain: Arc<Domain>, begin: Option<&mut Edit<T>>) -> Result<()> {
        self.walker.renew(domain, None)?;
        begin.map_or(Ok(()), |begin| self.edit(begin))
    }

    fn facts(&self) -> Facts {
        self.walker.facts()
    }
}

/// Steps under way. Updates in sequence go to the engine together, so that it needs no barrier between them.
struct Run<'a, T, W> {
    engine: &'a mut Interpreter<T, W>,
    /// The step whose stages are being told, and which of the steps it is.
    step: &'a Step<T>,
    number: usize,
    /// Updates that were told and not run yet, and the steps they belong to.
    passes: Vec<(usize, Pass<T>)>,
    /// The first step that was not finite.
    non_finite: Option<usize>,
}

impl<T: Number, W: Walker<T>> Run<'_, T, W> {
    /// `outer`: what the list draws random numbers by.
    fn stages(&mut self, stages: &[Stage], outer: u32) -> Result<()> {
        for (i, stage) in stages.iter().enumerate() {
            let draw = step::draw(outer, i);
            match stage {
                &Stage::Update { kernel, settings, part, rule, rounds } => {
                    if rule != Rule::Alone {
                        self.engine.progress.rounds += u64::from(rounds);
                        self.engine.progress.swept += if rule == Rule::AtOnce { 0 } else { u64::from(rounds) };
                    }
                    let (code, uniform) = (self.engine.code(kernel), self.uniform(&settings, draw));
                    self.passes.push((self.number, Pass { kernel, part, code, rule, rounds, before: 0, uniform }));
                }
                &Stage::Fixpoint { kernel, settings, most } => {
                    self.flush()?;
                    let (code, uniform) = (self.engine.code(kernel), self.uniform(&settings, draw));
                    let pass = Pass { kernel, part: None, code, rule: Rule::AtOnce, rounds: 1, before: 0, uniform };
                    let (rounds, finite) = self.engine.walker.fixpoint(pass, most)?;
                    self.engine.progress.rounds += u64::from(rounds);
                    self.engine.progress.loops.note(kernel, rounds, most, rounds < most);
                    if !finite {
                        self.note_non_finite(self.number);
                    }
                }
                &Stage::Project { kernel, settings, rounds } => {
                    self.flush()?;
                    let (code, uniform) = (self.engine.code(kernel), self.uniform(&settings, draw));
                    let Code::Project { star, .. } = code else { unreachable!("only projections project") };
                    let pass = Pass { kernel, part: None, code, rule: Rule::InOrder, rounds, before: 0, uniform };
                    if !self.engine.walker.project(star, pass)? {
                        self.note_non_finite(self.number);
                    }
                }
                &Stage::Reduce { kernel, settings, into } => {
                    self.flush_before(self.expected(&stages[i..], draw))?;
                    let uniform = self.uniform(&settings, draw);
                    self.engine.globals[into] = T::from_f64(self.engine.total(kernel, uniform)?);
                }
                Stage::Scalar { kernel, settings } => {
                    let uniform = self.uniform(settings, draw);
                    if let Code::Scalar(compute) = self.engine.code(*kernel) {
                        self.engine.globals = compute(&uniform);
                    }
                }
                Stage::Until { test, settings, most, stages } => {
                    let mut iterations = 0;
                    // Once more than it goes round, for whoever wants to know whether it has arrived.
                    let held = loop {
                        let uniform = self.uniform(settings, draw);
                        let holds =
                            matches!(&self.engine.table.kernels[*test].code, Code::Test(test) if test(&uniform));
                        if holds || iterations == *most {
                            break holds;
                        }
                        self.stages(stages, step::draw(draw, iterations as usize))?;
                        iterations += 1;
                    };
                    self.engine.progress.loops.note(*test, iterations, *most, held);
                }
            }
        }
        Ok(())
    }

    /// The measures with which some stages begin that look at no neighbors, and after the first at no globals either: those will have
    /// changed.
    fn expected(&self, stages: &[Stage], draw: u32) -> Vec<Measure<T>> {
        let measure = |(i, stage): (usize, &Stage)| match stage {
            &Stage::Reduce { kernel, settings, .. } => {
                let code = self.engine.code(kernel);
                let Code::Measure { sight, .. } = code else { return None };
                let is_known = sight == Sight::Own || (sight == Sight::Globals && i == 0);
                is_known.then(|| Measure { kernel, code, uniform: self.uniform(&settings, draw) })
            }
            _ => None,
        };
        stages.iter().enumerate().map_while(measure).collect()
    }

    fn flush(&mut self) -> Result<()> {
        self.flush_before(Vec::new())
    }

    /// Runs what was told, after which some measures follow.
    fn flush_before(&mut self, measures: Vec<Measure<T>>) -> Result<()> {
        let (steps, passes): (Vec<usize>, _) = std::mem::take(&mut self.passes).into_iter().unzip();
        if steps.is_empty() {
            return Ok(());
        }
        self.engine.walker.expect(measures);
        if let Some(pass) = self.engine.walker.pass(passes)? {
            self.note_non_finite(steps[pass]);
        }
        Ok(())
    }

    fn note_non_finite(&mut self, step: usize) {
        self.non_finite = Some(self.non_finite.map_or(step, |first| first.min(step)));
    }

    fn uniform(&self, settings: &Settings, draw: u32) -> Uniform<T> {
        Uniform {
            parameters: self.step.parameters.clone(),
            globals: self.engine.globals.clone(),
            settings: settings.map(T::from_f64),
            step: self.step.number,
            draw,
        }
    }
}
