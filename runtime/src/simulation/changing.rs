//! Elements of changing stars.

use crate::error::{Error, Result};
use crate::layout::{Domain, Layout, View, ViewMut};
use crate::number::Number;
use crate::program::{AnyProgram, Fields, Found, StarPlan, Stars};
use meshweft_mesh::Mesh;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a program says of its changing stars.
#[derive(Default)]
pub(super) struct Changing {
    /// Whether it has any.
    pub(super) is_there: bool,
    /// Whether those that the engine has are of another state.
    pub(super) is_stale: bool,
    /// Whether those are for measuring alone.
    pub(super) are_measured: bool,
    /// What the next step begins with: parts of the state, as the number of the first real, and their values by number along the curve.
    fields: Vec<(usize, Vec<f64>)>,
    /// Numbers of vertices that begin it with another state, and their reals.
    states: Vec<(u32, Vec<f64>)>,
    /// The elements of the last time, and the domain with them.
    before: Option<(Vec<StarPlan>, Arc<Domain>)>,
    /// Time that programs have taken to find elements.
    pub(super) finding: Duration,
    /// Time that everything has taken to go on with them.
    pub(super) repair: Duration,
}

impl Changing {
    /// `is_there`: whether the program has changing stars.
    pub(super) fn new(is_there: bool) -> Changing {
        Changing { is_there, is_stale: true, ..Changing::default() }
    }

    /// Lets a program find the elements for a state at a time. `begins`: whether a step does then.
    ///
    /// # Errors
    /// Whatever it says of the state; an element or a field that does not exist, or a value that is not finite.
    pub(super) fn renew<T: Number>(
        &mut self,
        program: &dyn AnyProgram<T>,
        mesh: &Mesh,
        layout: &Layout,
        (fields, state): (&Fields, View<T>),
        (time, begins): (f64, bool),
    ) -> Result<Arc<Domain>> {
        let (kinds, order) = (fields.kinds(), layout.schedule.permutation().order());
        let number = |v: u32| order[layout.places.rank()[v as usize] as usize];
        let reals = |number: u32, reals: &mut [f64]| {
            let slot = layout.along_curve[number as usize] as usize;
            for (k, (real, kind)) in reals.iter_mut().zip(&kinds).enumerate() {
                *real = kind.encode(kind.decode(state.real(slot, k)));
            }
        };
        let vertices = order.len() as u32;
        let found = Found {
            vertices,
            time,
            begins,
            was_asked: false,
            number: &number,
            reals: &reals,
            stars: Stars { renews: true, ..Stars::default() },
            fields: Vec::new(),
            states: Vec::new(),
        };
        let started = Instant::now();
        let Found { stars, fields: values, states, was_asked, .. } = program.renew(mesh, found)?;
        let found = Instant::now();
        self.finding += found - started;
        // The list of before is still there, so that no other has its address.
        let is_same = |a: &StarPlan, b: &StarPlan| {
            a.index == b.index && a.lasts && b.lasts && std::ptr::eq(a.elements(), b.elements())
        };
        let before = self.before.take();
        let before = before.as_ref().map(|(plans, domain)| {
            let same = stars.plans.iter().filter(|plan| plans.iter().any(|known| is_same(plan, known)));
            (&**domain, same.map(|plan| plan.index).collect::<Vec<_>>())
        });
        let domain = Arc::new(layout.renewed(&stars.plans, before)?);
        let lasting = stars.plans.into_iter().filter(|plan| plan.lasts).collect::<Vec<_>>();
        self.before = (!lasting.is_empty()).then(|| (lasting, domain.clone()));
        self.fields.clear();
        let holds = |x: f64| T::PRECISION.holds(x);
        for (name, values) in values {
            let (first, part) = fields.locate(name).map_err(Error::Program)?;
            if values.len() != order.len() * part.components {
                let (n, components, given) = (order.len(), part.components, values.len());
                return Err(Error::Program(format!("{name} takes {n} × {components} values, a renewal gave {given}")));
            }
            if let Some(x) = values.iter().find(|&&x| !holds(x)) {
                return Err(Error::Program(format!("a renewal gave {name} the value {x:?}, which is not finite")));
            }
            self.fields.push((first, values));
        }
        if let Some((number, x)) = states.iter().find_map(|(v, reals)| Some((v, reals.iter().find(|&&x| !holds(x))?))) {
            return Err(Error::Program(format!(
                "a renewal gave the vertex of number {number} {x:?}, which is not finite"
            )));
        }
        self.states = states;
        self.is_stale = false;
        self.are_measured = was_asked && !begins;
        self.repair += found.elapsed();
        Ok(domain)
    }

    /// What the next step begins with, once: sets it in a state.
    pub(super) fn begin<T: Number>(&mut self, layout: &Layout, fields: &Fields) -> Option<impl FnMut(ViewMut<T>)> {
        let (values, states) = (std::mem::take(&mut self.fields), std::mem::take(&mut self.states));
        let kinds = fields.kinds();
        let vertices = layout.places.len();
        (!values.is_empty() || !states.is_empty()).then_some(move |mut state: ViewMut<T>| {
            for (number, reals) in &states {
                for slot in layout.with_padding(layout.along_curve[*number as usize] as usize) {
                    reals.iter().enumerate().for_each(|(k, &x)| state.set(slot, k, kinds[k].encode(x)));
                }
            }
            for (first, values) in &values {
                let components = values.len() / vertices.max(1);
                for (number, values) in values.chunks_exact(components.max(1)).enumerate() {
                    for slot in layout.with_padding(layout.along_curve[number] as usize) {
                        let set = |(k, &x): (usize, &f64)| state.set(slot, first + k, kinds[first + k].encode(x));
                        values.iter().enumerate().for_each(set);
                    }
                }
            }
        })
    }
}
