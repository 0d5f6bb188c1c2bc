//! The oracle: one thread, one loop, in order. It specifies what every other engine must compute, bit for bit [C1].

use super::Facts;
use super::code::{Code, Measure, Pass};
use super::interpreter::Walker;
use super::one::One;
use super::reduce::Reduction;
use super::store::Store;
use crate::error::Result;
use crate::layout::{Domain, Edit, State, View};
use crate::number::Number;
use meshweft_schedule::Rule;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs every update by itself, in the order of the schedule.
pub(crate) struct Serial<T> {
    pub(super) domain: Arc<Domain>,
    state: State<T>,
    /// By star, the state of elements that are projected.
    elements: BTreeMap<usize, State<T>>,
}

impl<T: Number> Serial<T> {
    pub(crate) fn new(domain: Arc<Domain>, mut state: State<T>) -> Serial<T> {
        let elements = std::mem::take(&mut state.elements);
        Serial { domain, state, elements }
    }
}

impl<T: Number> Store<T> for Serial<T> {
    fn view(&self) -> Result<View<'_, T>> {
        Ok(self.state.view())
    }

    fn change(&mut self, change: &mut Edit<T>) -> Result<()> {
        change(self.state.view_mut());
        Ok(())
    }

    fn elements(&self, star: usize) -> View<'_, T> {
        self.elements[&star].view()
    }

    fn change_elements(&mut self, star: usize, change: &mut Edit<T>) {
        change(self.elements.get_mut(&star).expect("its elements are projected").view_mut());
    }
}

impl<T: Number> Walker<T> for Serial<T> {
    fn pass(&mut self, passes: Vec<Pass<T>>) -> Result<Option<usize>> {
        let (mut non_finite, mut reals) = (None, Vec::new());
        for (pass, Pass { code, part, rule, rounds, uniform, .. }) in passes.into_iter().enumerate() {
            let mut finite = true;
            let Code::Vertex { one, .. } = code else { unreachable!("only updates change vertices") };
            let domain = self.domain.clone();
            let tasks = domain.tasks_in(part);
            let own = domain.slots_of_tiles(domain.tiles_of(tasks.start as usize..tasks.end as usize));
            for round in 0..rounds {
                let mut next = (rule == Rule::AtOnce).then(|| self.state.shared.clone());
                domain.each_vertex(rule == Rule::Backward, |tile, i| {
                    reals.clear();
                    let slot = tile.own().start + i;
                    if !own.contains(&slot) {
                        return;
                    }
                    let state = self.state.view();
                    finite &= one(&One { tile, i, state, vertices: state, uniform: &uniform, round }, &mut reals);
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

    fn project(&mut self, star: usize, pass: Pass<T>) -> Result<bool> {
        let Pass { code: Code::Project { one, .. }, rounds, uniform, .. } = pass else {
            unreachable!("only projections project")
        };
        let (domain, shared) = (self.domain.elements[&star].clone(), self.state.shape.shared);
        let (mut finite, mut reals) = (true, Vec::new());
        let Serial { state: vertices, elements, .. } = self;
        let state = elements.get_mut(&star).expect("its elements are projected");
        for round in 0..rounds {
            domain.each_vertex(false, |tile, i| {
                reals.clear();
                let (own, corners) = (tile.own().start + i, tile.corners(i));
                let (state_now, vertices_now) = (state.view(), vertices.view());
                let element = One { tile, i, state: state_now, vertices: vertices_now, uniform: &uniform, round };
                finite &= one(&element, &mut reals);
                for (k, &slot) in corners.iter().enumerate() {
                    if tile.fixed_corners(i, corners.len(), 1).is_none_or(|fixed| !fixed[k]) {
                        vertices.set_shared(slot as usize, &reals[k * shared..][..shared]);
                    }
                }
                state.set(own, &reals[corners.len() * shared..], None);
            });
        }
        Ok(finite)
    }

    fn reduce(&mut self, Measure { code, uniform, .. }: Measure<T>) -> Result<Reduction> {
        let Code::Measure { how, one: measure, .. } = code else { unreachable!("only measures measure") };
        let mut values = Vec::with_capacity(self.state.len);
        self.domain.each_vertex(false, |tile, i| {
            let state = self.state.view();
            values.push(measure(&One { tile, i, state, vertices: state, uniform: &uniform, round: 0 }).to_f64());
        });
        Ok(Reduction::of(how, &self.domain, &|slot| values[slot]))
    }

    fn renew(&mut self, domain: Arc<Domain>, state: Option<State<T>>) -> Result<()> {
        self.domain = domain;
        state.into_iter().for_each(|state| self.state = state);
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts { threads: 1, ..Facts::default() }
    }
}
