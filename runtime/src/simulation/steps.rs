//! How a simulation goes on: its steps, changes of its state in between, and what becomes of either.

use super::any::AnySimulation;
use super::core::{Clock, Core, Health, Typed};
use crate::engine::Progress;
use crate::error::{Error, Result};
use crate::layout::{Edit, View, ViewMut};
use crate::number::Number;
use crate::step::{Settings, Stage, Step};
use std::iter;
use std::time::Instant;

impl<T: Number> Core<T> {
    /// The stages of the next step, as the program tells them, and which global says how long it lasts, if one does.
    pub(super) fn stages(&self) -> Result<(Vec<Stage>, Option<usize>)> {
        self.program.step(self.list()).finish()
    }

    /// Runs stages that belong to no step.
    pub(super) fn aside(&mut self, stages: Vec<Stage>) -> Result<()> {
        // Steps that a device has not taken yet have their own numbers.
        self.wait()?;
        let (steps, time) = (self.clock.steps, self.clock.time);
        let result = self.advance(stages, 0.0).and_then(|()| self.wait());
        (self.clock.steps, self.clock.time, self.clock.first_pending) = (steps, time, steps);
        result.map_err(|error| match self.health {
            // It was no step of its own.
            Health::Diverged(_) => {
                self.health = Health::Diverged(steps);
                self.find_fault(steps).unwrap_or(error)
            }
            _ => error,
        })
    }

    pub(super) fn advance(&mut self, stages: Vec<Stage>, dt: f64) -> Result<()> {
        self.check_health()?;
        let step = Step { number: self.clock.steps as u32, parameters: self.parameters()?, stages };
        self.renew(true)?;
        self.changing.is_stale = true;
        // A panic of a kernel leaves this behind.
        self.health = Health::Poisoned(self.clock.steps + 1);
        let result = self.engine.step(&step);
        self.health = Health::Well;
        result?;
        self.clock.pending.push(self.clock.time);
        self.clock.steps += 1;
        self.clock.time += dt;
        let progress = self.engine.progress();
        if progress.non_finite {
            return self.look();
        }
        if !progress.is_pending {
            self.settled(progress);
        }
        Ok(())
    }

    /// The step that was taken at the time `before` has lasted as long as a global says.
    pub(super) fn last(&mut self, global: usize, before: f64) -> Result<()> {
        self.wait()?;
        let lasted = self.engine.globals()?[global].to_f64();
        if !(lasted > 0.0 && lasted.is_finite()) {
            let name = self.table.records.globals.name(global).0;
            let step = self.clock.steps;
            return Err(Error::Program(format!("step {step} lasts {lasted} s by global {name}: it must be above 0")));
        }
        self.clock.time = before + lasted;
        Ok(())
    }

    /// Finds the elements of changing stars for the state as it is, unless they are known. `begins`: whether a step does, whose state
    /// may be another.
    fn renew(&mut self, begins: bool) -> Result<()> {
        let mut domain = None;
        if self.changing.is_there && (self.changing.is_stale || begins && self.changing.are_measured) {
            let state = (&self.fields, self.engine.state()?);
            let when = (self.clock.time, begins);
            domain = Some(self.changing.renew(&*self.program, &self.mesh, &self.layout, state, when)?);
        }
        let begin = if begins { self.changing.begin(&self.layout, &self.fields) } else { None };
        let started = Instant::now();
        let renewed = match (domain, begin) {
            (Some(domain), Some(mut begin)) => self.engine.renew(domain, Some(&mut begin)),
            (Some(domain), None) => self.engine.renew(domain, None),
            (None, Some(mut begin)) => self.engine.edit(&mut begin),
            (None, None) => return Ok(()),
        };
        self.changing.repair += started.elapsed();
        renewed
    }

    /// The parameters of the next step, rounded.
    pub(super) fn parameters(&self) -> Result<Vec<T>> {
        let reals = self.program.parameters(self.clock.time);
        match self.table.records.parameters.first_not_finite(&reals) {
            None => Ok(reals),
            Some((name, value)) => Err(Error::Program(match value.is_nan() {
                true => format!("parameter {name} has no value: `Program::parameters` gives every parameter one"),
                false => format!("parameter {name} is {value}, which is not finite: use f64, or other units"),
            })),
        }
    }

    pub(super) fn check_health(&self) -> Result<()> {
        match self.health {
            Health::Well => Ok(()),
            Health::Poisoned(step) => Err(Error::Poisoned { step }),
            Health::Diverged(step) => self.find_fault(step).map_or(Ok(()), Err),
        }
    }

    /// Refuses to read what a kernel that panicked has left.
    pub(super) fn check_whole(&self) -> Result<()> {
        match self.health {
            Health::Poisoned(step) => Err(Error::Poisoned { step }),
            _ => Ok(()),
        }
    }

    /// Some update was not finite: looks where, and at which step, once the engine is done.
    pub(super) fn look(&mut self) -> Result<()> {
        let progress = self.engine.settle()?;
        let since = self.clock.engine.steps;
        // Steps after the one that was not finite were asked for, but not taken.
        let steps = self.clock.first_pending + progress.steps - since;
        let lost = self.clock.steps - steps;
        if let Some(&time) = self.clock.pending.get((steps - self.clock.first_pending) as usize) {
            (self.clock.steps, self.clock.time) = (steps, time);
        }
        self.settled(progress);
        match self.find_fault(steps) {
            None if lost == 0 => Ok(()),
            None => Err(Error::Gpu(format!(
                "an update was not finite in step {steps}, though a later one mended it: {lost} steps that were asked for after it \
                 were not taken; ask for them again, or guard the update"
            ))),
            Some(error) => {
                self.health = Health::Diverged(steps);
                Err(error)
            }
        }
    }

    /// All steps so far are done.
    pub(super) fn settled(&mut self, progress: Progress) {
        self.clock.pending.clear();
        (self.clock.first_pending, self.clock.engine.steps) = (self.clock.steps, progress.steps);
    }

    pub(super) fn measure_kernel(&mut self, kernel: usize, settings: Settings) -> Result<f64> {
        self.wait()?;
        self.renew(false)?;
        let parameters = self.parameters()?;
        self.engine.measure(kernel, &settings, &parameters, self.clock.steps as u32)
    }

    /// The state after all steps so far.
    pub(super) fn reals(&self) -> Result<View<'_, T>> {
        self.check_whole()?;
        let state = self.engine.state()?;
        // A device may only now have told that a step was not finite.
        let progress = self.engine.progress();
        if matches!(self.health, Health::Well) && progress.non_finite {
            let step = self.clock.first_pending + progress.steps - self.clock.engine.steps;
            return self.find_fault(step).map_or(Ok(state), Err);
        }
        Ok(state)
    }

    /// Changes the state. A simulation that diverged goes on if that leaves it finite.
    pub(super) fn edit(&mut self, change: &mut dyn FnMut(&mut ViewMut<'_, T>)) -> Result<()> {
        self.check_whole()?;
        self.changing.is_stale = true;
        let progress = self.engine.settle()?;
        if progress.non_finite && matches!(self.health, Health::Well) {
            self.look()?;
        }
        self.engine.edit(&mut |mut state| change(&mut state))?;
        let progress = self.engine.settle()?;
        self.settled(progress);
        if let Health::Diverged(step) = self.health
            && self.find_fault(step).is_none()
        {
            self.health = Health::Well;
        }
        Ok(())
    }

    /// Goes to another state, that of so many steps, which `set` puts in place of the one there is.
    ///
    /// # Errors
    /// Before it does so, that of a step which is still under way.
    pub(super) fn go_back(
        &mut self,
        steps: u64,
        time: f64,
        (globals, elements): (&[T], &[T]),
        set: &mut Edit<T>,
    ) -> Result<()> {
        if matches!(self.health, Health::Well) && self.engine.settle()?.non_finite {
            self.look()?;
        }
        self.changing.is_stale = true;
        self.engine.edit(set)?;
        self.set_element_reals(elements)?;
        self.engine.set_globals(globals)?;
        self.clock = Clock { steps, time, ..Clock::default() };
        if let (Health::Poisoned(_), Some(audit)) = (&self.health, &self.audit) {
            audit.recount(self.engine.progress().rounds as u32);
        }
        self.health = Health::Well;
        let progress = self.engine.settle()?;
        self.settled(progress);
        Ok(())
    }

    /// The error of the first vertex, or global, that is not finite after `step`.
    pub(super) fn find_fault(&self, step: u64) -> Option<Error> {
        let (state, elements) = match (self.engine.state(), self.by_element()) {
            (Ok(state), Ok(elements)) => (state, elements),
            (Err(error), _) | (_, Err(error)) => return Some(error),
        };
        let mut parts = iter::once(self.by_vertex(state)).chain(elements);
        if let Some(fault) = parts.find_map(|part| part.fault(step)) {
            return Some(self.placed(fault));
        }
        let globals = self.engine.globals().ok()?;
        let (name, value) = self.table.records.globals.first_not_finite(&globals)?;
        Some(Error::Global { name: name.into(), step, value })
    }

    /// Says where the vertex is that diverged, or which cell it is.
    fn placed(&self, mut fault: Error) -> Error {
        if let Error::Diverged { vertex, is_cell, place, field, .. } = &mut fault {
            *place = self.mesh.points().get(*vertex as usize).copied();
            let first = self.locate(field).map_or(0, |(.., rows)| rows.start);
            if let (1.., Some(cell)) = (first, vertex.checked_sub(first)) {
                (*vertex, *is_cell) = (cell, true);
            }
        }
        fault
    }
}
