//! When a run has come to its end: after some steps, at a time, or when a measured quantity is where it should be.

use super::text;
use crate::Run;
use anyhow::{Result, bail};
use meshweft::Metric;
use serde_json::{Value, json};
use std::fmt;
use std::str::FromStr;

/// Part of a time step by which the sum of all may fall short of a time and count as there: sums are rounded.
const ROUNDING: f64 = 1e-6;

/// What a run is to come to.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    /// Steps to take; with a time, as many as that will be if the time step stays as it is.
    pub(super) steps: u64,
    /// Simulated seconds.
    pub(super) until: Option<f64>,
    stop: Option<Condition>,
}

impl Goal {
    /// The goal of a run that has not begun: some steps, or to be at a time instead, and a condition that may end it before.
    ///
    /// # Errors
    /// A time that no number of steps leads to, or a quantity that the run does not measure.
    pub(super) fn new(steps: u64, until: Option<f64>, stop: Option<Condition>, run: &mut Run) -> Result<Goal> {
        let steps = match until {
            None => steps,
            Some(until) => steps_to(until, run.time_step())?,
        };
        if let Some(stop) = &stop {
            run.metric(&stop.metric)?;
        }
        Ok(Goal { steps, until, stop })
    }

    /// Whether all steps have been taken.
    pub(super) fn is_reached(&self, run: &Run) -> bool {
        match self.until {
            None => run.steps() >= self.steps,
            Some(until) => run.time() + ROUNDING * run.time_step() >= until,
        }
    }

    /// Takes a step that ends where the run is to end, at the latest.
    ///
    /// # Errors
    /// As [`Run::step`].
    pub(super) fn step(&self, run: &mut Run) -> Result<()> {
        run.step_until(self.until.unwrap_or(f64::INFINITY))
    }

    /// About how many steps the run will have taken when it ends.
    pub(super) fn expected_steps(&self, run: &Run) -> u64 {
        match self.until {
            Some(until) if run.time() > 0.0 => (run.steps() as f64 * until / run.time() - ROUNDING).ceil() as u64,
            _ => self.steps,
        }
    }

    /// Whether there is a condition, so that each step is to be judged.
    pub(super) fn is_judged(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether the condition holds after a step that is done. Measuring is a pass over the mesh.
    ///
    /// # Errors
    /// As [`Run::metric`].
    pub(super) fn is_met(&self, run: &mut Run) -> Result<bool> {
        match &self.stop {
            None => Ok(false),
            Some(stop) => Ok(stop.holds(run.metric(&stop.metric)?)),
        }
    }

    /// The condition, and what came of it.
    pub(super) fn to_json(&self, met: bool, last: &[Metric]) -> Option<Value> {
        let stop = self.stop.as_ref()?;
        let value = last.iter().find(|metric| metric.name == stop.metric).map(|metric| metric.value);
        Some(json!({ "condition": stop.to_string(), "value": value, "reached": met }))
    }

    /// What was reached, if the goal is more than some steps. `met`: whether the condition held.
    pub(super) fn to_text(&self, met: bool, last: &[Metric], run: &Run) -> Option<String> {
        let (steps, time) = (text::counted(run.steps() as usize, "step", "steps"), text::quantity(run.time(), "s"));
        let after = format!("after {steps}, at t = {time}");
        let said = |reached: bool| if reached { "reached" } else { "not reached" };
        if let Some(stop) = &self.stop {
            let metric = last.iter().find(|metric| metric.name == stop.metric);
            let value = metric.map(|metric| text::quantity(metric.value, metric.unit)).unwrap_or_default();
            return Some(format!("{}: {stop}; it is {value} {after}", said(met)));
        }
        let until = self.until?;
        Some(format!("{}: t = {} {after}", said(self.is_reached(run)), text::quantity(until, "s")))
    }
}

/// The first number of steps after which a time has come.
fn steps_to(until: f64, time_step: f64) -> Result<u64> {
    /// More are not told apart as time goes on.
    const MOST: f64 = 9e15;
    let steps = (until / time_step - ROUNDING).ceil();
    let is_near = time_step > 0.0 && steps <= MOST;
    if !is_near {
        bail!("t = {until} s is too many steps away, each of {time_step} s: take an earlier time, or --steps");
    }
    Ok(steps.max(0.0) as u64)
}

/// Reads a time for `--until`.
pub(super) fn time(word: &str) -> Result<f64, String> {
    let time = word.parse().ok().filter(|t: &f64| t.is_finite() && *t >= 0.0);
    time.ok_or_else(|| "take simulated seconds, 0 or more".to_string())
}

/// A bound that a measured quantity is to pass: `kinetic energy<1e-6`, `energy>500`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    metric: String,
    /// Whether values above the bound are meant, not below.
    is_above: bool,
    bound: f64,
}

impl Condition {
    /// Whether a value has passed the bound. NaN never has.
    fn holds(&self, value: f64) -> bool {
        if self.is_above { value > self.bound } else { value < self.bound }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{} {} {}", self.metric, if self.is_above { '>' } else { '<' }, self.bound)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(word: &str) -> Result<Condition, String> {
        let read = || {
            let at = word.find(['<', '>'])?;
            let (metric, bound) = (word[..at].trim(), word[at + 1..].trim());
            let bound = bound.parse().ok().filter(|bound: &f64| bound.is_finite())?;
            let is_above = word[at..].starts_with('>');
            (!metric.is_empty()).then(|| Condition { metric: metric.to_string(), is_above, bound })
        };
        read().ok_or_else(|| "write NAME<VALUE or NAME>VALUE, in quotes, as in --stop 'energy<310'".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written() {
        for (word, written) in [
            ("energy<310", "energy < 310"),
            (" kinetic energy > 1e-6 ", "kinetic energy > 0.000001"),
            ("a>-2.5", "a > -2.5"),
        ] {
            let condition: Condition = word.parse().unwrap();
            assert_eq!(condition.to_string(), written);
            assert_eq!(written.parse::<Condition>().unwrap(), condition);
        }
        for word in ["", "energy", "energy<", "<3", "energy=3", "energy<=3", "energy<warm", "energy<inf", "energy<nan"]
        {
            assert!(word.parse::<Condition>().unwrap_err().contains("NAME<VALUE"), "{word}");
        }
        let cold: Condition = "energy<310".parse().unwrap();
        assert_eq!([309.9, 310.0, f64::NAN].map(|x| cold.holds(x)), [true, false, false]);
    }

    #[test]
    fn as_many_steps_as_lead_to_a_time() {
        for (until, time_step, steps) in
            [(0.5, 1.0 / 600.0, 300), (0.3, 0.1, 3), (0.31, 0.1, 4), (0.0, 0.1, 0), (1e-9, 0.1, 0), (0.01, 0.1, 1)]
        {
            assert_eq!(steps_to(until, time_step).unwrap(), steps, "{until} by {time_step}");
        }
        for time_step in [0.0, -1.0, f64::NAN, 1e-300] {
            assert!(steps_to(1.0, time_step).unwrap_err().to_string().contains("too many steps away"));
        }
        assert_eq!(
            (time("2.5"), time("-1").is_err(), time("inf").is_err(), time("x").is_err()),
            (Ok(2.5), true, true, true)
        );
    }
}
