//! The threads of this machine.

mod border;
mod each;
pub(super) mod elements;
mod ground;
mod measures;
mod memory;
#[cfg(feature = "jit")]
mod native;
mod pace;
mod policy;
mod quiet;
pub(super) mod relaxation;
#[cfg(test)]
pub(crate) mod stress;
mod table;
pub(super) mod taped;
mod team;
pub(super) mod tile;
mod walk;

pub(crate) use border::Border;
#[cfg(feature = "cluster")]
pub(crate) use border::{AHEAD, Arrivals, Lag, Outbox};

use super::code::{Code, Measure, Pass};
use super::interpreter::{self, Walker};
use super::legs::Legs;
use super::reduce::Reduction;
use super::store::Store;
use super::{Audit, Facts, Timeline};
use crate::error::{Error, Result};
use crate::layout::{Domain, Edit, State, View};
use crate::number::Number;
use each::Each;
use ground::Ground;
use measures::Measures;
use memory::Memory;
use meshweft_schedule::Rule;
use pace::Pace;
use policy::Policy;
use quiet::Quiet;
use relaxation::{Frontier, Place};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use team::Team;
use walk::Walk;

/// Walks the task graph on a team of threads.
pub(crate) struct Cpu<T> {
    ground: Arc<Ground<T>>,
    team: Team,
    pace: Pace,
    quiet: Quiet<T>,
    /// By star, what relaxations work with; none where the layout does not allow it.
    frontiers: BTreeMap<usize, Option<Arc<Frontier>>>,
    /// By star, what elements are projected on.
    elements: BTreeMap<usize, Arc<Ground<T>>>,
    /// Slots that repeat the one before, once elements are projected.
    padding: Vec<u32>,
    /// Once something is measured.
    measures: Option<Measures>,
    /// What is to be measured by the walk that comes next, and what the last one has measured, by kernel.
    expected: Vec<Measure<T>>,
    measured: Vec<(usize, Reduction)>,
    /// Which array holds the shared state.
    current: usize,
    /// Rounds of all walks so far.
    epochs: u64,
}

impl<T: Number> Cpu<T> {
    /// A team of `threads`; 0 takes one for each core.
    ///
    /// # Errors
    /// More threads than the system has.
    pub(crate) fn new(
        threads: usize,
        domain: Arc<Domain>,
        audit: Option<Arc<Audit>>,
        state: State<T>,
    ) -> Result<Cpu<T>> {
        Cpu::with(threads, domain, audit, state, None)
    }

    /// The same for a share of a mesh.
    ///
    /// # Errors
    /// More threads than the system has.
    pub(crate) fn share(
        threads: usize,
        domain: Arc<Domain>,
        state: State<T>,
        border: Arc<dyn Border>,
    ) -> Result<Cpu<T>> {
        Cpu::with(threads, domain, None, state, Some(border))
    }

    fn with(
        threads: usize,
        domain: Arc<Domain>,
        audit: Option<Arc<Audit>>,
        mut state: State<T>,
        border: Option<Arc<dyn Border>>,
    ) -> Result<Cpu<T>> {
        /// More are a slip of the keyboard; each costs a stack.
        const MOST: usize = 4096;
        let wanted = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        if wanted > MOST {
            return Err(Error::Invalid(format!("{wanted} threads are more than {MOST}")));
        }
        let team = Team::new(wanted).map_err(|e| {
            Error::Invalid(format!(
                "cannot start {wanted} threads: {e}; ask for fewer, or raise the limit of processes"
            ))
        })?;
        let policy = Policy::new(&domain, wanted);
        let quiet = Quiet::new(domain.graph.len());
        let states = std::mem::take(&mut state.elements);
        let memory = Arc::new(Memory::new(state));
        let ground =
            Arc::new(Ground { domain, first: 0, memory, vertices: None, policy, audit, border, timeline: None });
        let (elements, padding) = of_elements(&ground, states, wanted);
        let (pace, frontiers, (expected, measured)) = Default::default();
        let (measures, current, epochs) = (None, 0, 0);
        Ok(Cpu {
            ground,
            team,
            pace,
            quiet,
            frontiers,
            elements,
            padding,
            measures,
            expected,
            measured,
            current,
            epochs,
        })
    }

    /// Lets threads write down what they do. Before anything is done.
    pub(crate) fn record(&mut self, timeline: Arc<Timeline>) {
        for ground in self.elements.values_mut().chain([&mut self.ground]) {
            let ground = Arc::get_mut(ground).expect("nobody walks before anything is done");
            ground.timeline = Some(timeline.clone());
        }
    }

    /// Walks, with other hosts if there are any.
    fn walk(&mut self, kind: u64, walk: &Arc<Walk<T>>) -> Result<()> {
        match self.ground.border.clone() {
            None => self.work(kind, |team, alone| if alone { walk.alone() } else { team.run(walk.clone()) }),
            Some(border) => {
                border.begin(walk.clone(), self.epochs..walk.end())?;
                self.team.run(walk.clone());
                border.end()?;
            }
        }
        self.epochs = walk.end();
        Ok(())
    }

    /// Walks through one pass on some ground. Returns whether all of it was finite.
    fn walk_through(&mut self, kind: u64, ground: Arc<Ground<T>>, pass: Pass<T>) -> Result<bool> {
        let legs = Legs::new(vec![pass], self.current, self.epochs);
        let walk = Arc::new(Walk::new(ground, (legs, None), None, self.team.threads(), self.team.spin()));
        self.walk(kind, &walk)?;
        Ok(walk.non_finite().is_none())
    }

    /// Does work alone or with the team, whichever is quicker. `kind` tells it from other work.
    fn work(&mut self, kind: u64, work: impl FnOnce(&mut Team, bool)) {
        if self.team.threads() == 1 {
            return work(&mut self.team, true);
        }
        // Tests share everything.
        let is_left_out = self.team.is_alone();
        let alone = is_left_out || (!cfg!(test) && self.pace.is_alone(kind));
        let clock = Instant::now();
        work(&mut self.team, alone);
        if !is_left_out {
            self.pace.note(kind, alone, clock.elapsed());
        }
    }
}

/// What the elements of each star are projected on, which begin with these states, and slots that repeat the one before.
fn of_elements<T: Number>(
    ground: &Ground<T>,
    states: BTreeMap<usize, State<T>>,
    threads: usize,
) -> (BTreeMap<usize, Arc<Ground<T>>>, Vec<u32>) {
    let Ground { domain, memory, audit, border, timeline, .. } = ground;
    let mut first = domain.graph.len() as u32;
    let of_star = |(star, state)| {
        let elements: &Arc<Domain> = &domain.elements[&star];
        let ground = Ground {
            domain: elements.clone(),
            first,
            memory: Arc::new(Memory::new(state)),
            vertices: Some(memory.clone()),
            policy: Policy::new(elements, threads),
            audit: audit.as_ref().and_then(|audit| audit.elements.get(&star).cloned()),
            border: border.clone(),
            timeline: timeline.clone(),
        };
        first += elements.graph.len() as u32;
        (star, Arc::new(ground))
    };
    let elements: BTreeMap<usize, Arc<Ground<T>>> = states.into_iter().map(of_star).collect();
    let padding = if elements.is_empty() { Vec::new() } else { domain.padding() };
    (elements, padding)
}

/// Where waves of tasks start, and the end, if so many threads go wave by wave.
pub(crate) fn waves(domain: &Domain, threads: usize) -> Option<Vec<u32>> {
    matches!(Policy::new(domain, threads), Policy::Waves(_)).then(|| domain.waves())
}

/// What tells some work from other work.
fn kind(numbers: impl IntoIterator<Item = u64>) -> u64 {
    numbers.into_iter().fold(0, |hash, x| (hash ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23))
}

impl<T: Number> Store<T> for Cpu<T> {
    #[expect(unsafe_code, reason = "the state between walks")]
    fn view(&self) -> Result<View<'_, T>> {
        // SAFETY: walks and searches end before the methods that start them return, and those borrow the engine mutably.
        Ok(unsafe { self.ground.memory.view(self.current) })
    }

    #[expect(unsafe_code, reason = "the state between walks")]
    fn change(&mut self, change: &mut Edit<T>) -> Result<()> {
        self.quiet.forget();
        self.measured.clear();
        // SAFETY: as in `view`; and the engine is borrowed mutably, so nobody holds a view.
        change(unsafe { self.ground.memory.view_mut(self.current) });
        Ok(())
    }

    #[expect(unsafe_code, reason = "the state between walks")]
    fn elements(&self, star: usize) -> View<'_, T> {
        // SAFETY: as in `view`.
        unsafe { self.elements[&star].memory.view(0) }
    }

    #[expect(unsafe_code, reason = "the state between walks")]
    fn change_elements(&mut self, star: usize, change: &mut Edit<T>) {
        // SAFETY: as in `change`.
        change(unsafe { self.elements[&star].memory.view_mut(0) });
    }

    fn each(&mut self, kind: u64, count: usize, each: Arc<dyn Fn(usize) + Send + Sync>) {
        self.work(kind, |team, alone| match alone {
            true => (0..count).for_each(|i| each(i)),
            false => Each::run(team, count, each),
        });
    }
}

impl<T: Number> Walker<T> for Cpu<T> {
    fn pass(&mut self, passes: Vec<Pass<T>>) -> Result<Option<usize>> {
        let kernels = passes.iter().flat_map(|pass| [pass.kernel as u64, pass.rule as u64, pass.rounds.into()]);
        let kind = kind(kernels.chain(self.expected.iter().map(|measure| measure.kernel as u64)));
        let watch = self.quiet.begin(&passes);
        let (threads, spin) = (self.team.threads(), self.team.spin());
        let legs = Legs::new(passes, self.current, self.epochs);
        let then = self.followers(legs.target());
        let walk = Arc::new(Walk::new(self.ground.clone(), (legs, watch), then, threads, spin));
        self.walk(kind, &walk)?;
        self.current = walk.target();
        self.measured = walk.measured();
        Ok(walk.non_finite())
    }

    fn fixpoint(&mut self, pass: Pass<T>, most: u32) -> Result<(u32, bool)> {
        self.measured.clear();
        let Code::Vertex { relax: Some(relax), .. } = &pass.code else {
            return interpreter::fixpoint(self, &pass, most);
        };
        // Taken out, so that what a kernel that panics leaves behind is not used again.
        let known = self.frontiers.remove(&relax.star);
        let known = known.unwrap_or_else(|| Frontier::new(&self.ground.domain, relax.star).map(Arc::new));
        let outcome = match known.clone() {
            Some(frontier) => {
                self.quiet.forget();
                let place = Place { ground: self.ground.clone(), frontier, source: self.current };
                Ok((relax.here)(self, place, &pass.uniform, most))
            }
            None => interpreter::fixpoint(self, &pass, most),
        };
        self.frontiers.insert(relax.star, known);
        outcome
    }

    /// On hosts, who has a vertex hears of the elements that move it, as does who has elements around it; all others that read it are told
    /// once those are done, after a few rounds. So nobody is ahead of anybody by more than these.
    #[expect(unsafe_code, reason = "opens the state between walks")]
    fn project(&mut self, star: usize, mut pass: Pass<T>) -> Result<bool> {
        self.quiet.forget();
        self.measured.clear();
        self.ground.memory.forget_marks();
        let kind = kind([pass.kernel as u64, u64::MAX, pass.rounds.into()]);
        let ground = self.elements[&star].clone();
        if let Some(audit) = &ground.audit {
            audit.expect(pass.rounds);
        }
        let most = if ground.border.is_some() { border::AHEAD as u32 } else { pass.rounds };
        let (mut finite, end) = (true, pass.before + pass.rounds);
        while pass.before < end {
            pass.rounds = most.min(end - pass.before);
            finite &= self.walk_through(kind, ground.clone(), pass.clone())?;
            pass.before += pass.rounds;
            if ground.border.is_some() {
                let tell = Pass { code: Code::Tell, rule: Rule::Alone, rounds: 1, ..pass.clone() };
                self.walk_through(kind, self.ground.clone(), tell)?;
            }
        }
        // SAFETY: the walk is over, and the engine is borrowed mutably.
        unsafe { self.ground.memory.open(self.current, true) }.pad(&self.padding);
        Ok(finite)
    }

    fn round(&mut self, pass: Pass<T>) -> Result<(bool, bool)> {
        let non_finite = self.pass(vec![pass])?;
        let domain = &self.ground.domain;
        let own = (0..domain.graph.len()).filter(|&t| !domain.is_ghost(t as u32));
        Ok((non_finite.is_none(), self.quiet.has_changed(own)))
    }

    fn expect(&mut self, measures: Vec<Measure<T>>) {
        self.expected = measures;
    }

    fn reduce(&mut self, Measure { kernel, code, uniform }: Measure<T>) -> Result<Reduction> {
        match self.measured.iter().position(|measured| measured.0 == kernel) {
            Some(known) => Ok(self.measured.swap_remove(known).1),
            None => Ok(self.reduction(code, uniform)),
        }
    }

    fn renew(&mut self, domain: Arc<Domain>, state: Option<State<T>>) -> Result<()> {
        self.quiet.forget();
        self.measured.clear();
        self.frontiers.clear();
        if let Some(audit) = &self.ground.audit {
            audit.renew(&domain.changing_pairs());
        }
        let policy = Policy::new(&domain, self.team.threads());
        let Ground { memory, audit, border, timeline, .. } = &*self.ground;
        let (mut memory, audit, border, timeline) = (memory.clone(), audit.clone(), border.clone(), timeline.clone());
        let states = state.map(|mut state| {
            let states = std::mem::take(&mut state.elements);
            (memory, self.current) = (Arc::new(Memory::new(state)), 0);
            (self.quiet, self.measures) = (self.quiet.of_others(domain.graph.len()), None);
            states
        });
        self.ground = Arc::new(Ground { domain, first: 0, memory, vertices: None, policy, audit, border, timeline });
        if let Some(states) = states {
            (self.elements, self.padding) = of_elements(&self.ground, states, self.team.threads());
        }
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            threads: self.team.threads(),
            stalls: self.team.stalls,
            left_out: self.quiet.left_out(),
            ..Facts::default()
        }
    }
}
