//! The oracle: one thread, one loop, in order. It specifies what every other engine must compute, bit for bit [C1].

use super::Facts;
use super::code::{Code, Measure, Pass};
use super::interpreter::Walker;
use super::one::One;
use super::reduce::Reduction;
use super::store::Store;
use crate::error::Result;
use crate::layout::{Domain, State, View, ViewMut};
use crate::number::Number;
use meshweft_schedule::Rule;
use std::sync::Arc;

/// Runs every update by itself, in the order of the schedule.
pub(crate) struct Serial<T> {
    pub(super) domain: Arc<Domain>,
    state: State<T>,
}

impl<T: Number> Serial<T> {
    pub(crate) fn new(domain: Arc<Domain>, state: State<T>) -> Serial<T> {
        Serial { domain, state }
    }
}

impl<T: Number> Store<T> for Serial<T> {
    fn view(&self) -> Result<View<'_, T>> {
        Ok(self.state.view())
    }

    fn change(&mut self, change: &mut dyn FnMut(ViewMut<'_, T>)) -> Result<()> {
        change(self.state.view_mut());
        Ok(())
    }
}

impl<T: Number> Walker<T> for Serial<T> {
    fn pass(&mut self, passes: Vec<Pass<T>>) -> Result<Option<usize>> {
        let (mut non_finite, mut reals) = (None, Vec::new());
        for (pass, Pass { code, rule, rounds, uniform, .. }) in passes.into_iter().enumerate() {
            let mut finite = true;
            let Code::Vertex { one, .. } = code else { unreachable!("only updates change vertices") };
            for round in 0..rounds {
                let mut next = (rule == Rule::AtOnce).then(|| self.state.shared.clone());
                self.domain.clone().each_vertex(rule == Rule::Backward, |tile, i| {
                    reals.clear();
                    let slot = tile.own().start + i;
                    finite &= one(&One { tile, i, state: self.state.view(), uniform: &uniform, round }, &mut reals);
                    if tile.fixed(slot..slot + 1).is_none() {
                        self.state.set(slot, &reals, next.as_mut());
                    }
                });
                self.state.shared = next.unwrap_or(std::mem::take(&mut self.state.shared));
            }
            non_finite = non_finite.or((!finite).then_some(pass));
        }
        Ok(non_finite)
    }

    fn reduce(&mut self, Measure { code, uniform, .. }: Measure<T>) -> Result<Reduction> {
        let Code::Measure { how, one: measure, .. } = code else { unreachable!("only measures measure") };
        let mut values = Vec::with_capacity(self.state.len);
        self.domain.each_vertex(false, |tile, i| {
            values.push(measure(&One { tile, i, state: self.state.view(), uniform: &uniform, round: 0 }).to_f64());
        });
        Ok(Reduction::of(how, &self.domain, &|slot| values[slot]))
    }

    fn renew(&mut self, domain: Arc<Domain>) {
        self.domain = domain;
    }

    fn facts(&self) -> Facts {
        Facts { threads: 1, ..Facts::default() }
    }
}
