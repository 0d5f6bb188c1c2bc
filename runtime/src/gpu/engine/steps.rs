//! The stages of a step, as a program tells them.

use super::{Gpu, Trace};
use crate::error::Result;
use crate::program::{Kernel, Map, Program, Stages};
use crate::schedule::{self, Schedule};
use crate::trace;
use meshweft_shaders::{Body, Physics};
use std::any::TypeId;

/// Runs the stages of a step as the program tells them.
pub(super) struct Steps<'a> {
    gpu: &'a mut Gpu,
    schedule: &'a Schedule,
    pub(super) rounds: u64,
    pub(super) swept: u64,
    /// A kernel after one round of which to stop, and whether it was met.
    until: Option<&'a str>,
    pub(super) is_found: bool,
    pub(super) result: Result<()>,
}

impl<'a> Steps<'a> {
    /// `until`: a kernel after one round of which to stop.
    pub(super) fn new(gpu: &'a mut Gpu, schedule: &'a Schedule, until: Option<&'a str>) -> Steps<'a> {
        Steps { gpu, schedule, rounds: 0, swept: 0, until, is_found: false, result: Ok(()) }
    }

    /// Runs some rounds of a kernel: none once there is nothing more to do.
    fn run(&mut self, kernel: (TypeId, &str), rounds: usize, double: bool, traced: Trace) {
        if self.result.is_err() || self.is_found {
            return;
        }
        self.is_found = self.until == Some(kernel.1);
        let rounds = if self.is_found { rounds.min(1) } else { rounds };
        if rounds == 0 {
            return;
        }
        let written = self.gpu.written.get(kernel.1).filter(|_| self.gpu.by_hand).cloned();
        let body = |physics: &Physics| match &written {
            Some(text) => Ok(Body::by_hand(physics, text)),
            None => traced(physics),
        };
        let list = if double { Some(self.gpu.lists.all.clone()) } else { self.gpu.lists.sweep.clone() };
        self.result = match (list, self.schedule.plan()) {
            (None, schedule::Plan::Tasks { graph, .. }) => self.gpu.run_waves(kernel, graph, rounds, &body),
            (list, _) => self.gpu.run(kernel, &list.unwrap_or_else(|| [].into()), rounds, double, &body),
        };
        self.rounds += rounds as u64;
        self.swept += if double { 0 } else { rounds as u64 };
    }
}

impl<P: Program> Stages<P> for Steps<'_> {
    fn map<K: Map<P>>(&mut self, _: K) {
        if self.result.is_ok() && !self.is_found {
            let list = self.gpu.lists.each.clone();
            self.result = self.gpu.run((TypeId::of::<K>(), K::NAME), &list, 1, false, &trace::map::<P, K>);
        }
    }

    fn sweep<K: Kernel<P>>(&mut self, _: K, rounds: usize) {
        let double = self.schedule.is_double_buffered();
        self.run((TypeId::of::<K>(), K::NAME), rounds, double, &trace::kernel::<P, K>);
    }

    fn jacobi<K: Kernel<P>>(&mut self, _: K, rounds: usize) {
        self.run((TypeId::of::<K>(), K::NAME), rounds, true, &trace::kernel::<P, K>);
    }
}
