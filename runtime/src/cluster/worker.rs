//! A worker: it has a share of the mesh, and does what the driver says.

use super::account::{Account, Tally};
use super::agreement::{self, FIRST, next, vote};
use super::copies;
use super::exchange::Exchange;
use super::grid::Lines;
use super::kind::CONTROL;
use super::message::{self, Begin, Control, DRIVER, WritePiece, unexpected};
use super::packing::Compress;
use super::pieces::OwnPiece;
use super::stream::{Incoming, Outgoing};
use super::timeline;
use crate::engine::{
    Code, Cpu, Engine, Facts, Grid, Interpreter, MOST, Measure, Pass, Progress, Reduction, Store, Table, Timeline,
    Walker, is_built, round_by_round,
};
use crate::error::{Error, Result};
use crate::gpu;
use crate::layout::{Blocks, Domain, Edit, Shape, State, View, ViewMut};
use crate::number::Number;
use crate::piece::{Frame, Placement, check_name};
use crate::program::Part;
use crate::step::Step;
use crate::trace;
use meshweft_schedule::Rule;
use meshweft_shaders::Scalar;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a walk over several steps is to take, about, and how many it takes at most. At its end hosts wait for each other, and only
/// then does it tell how far it is.
const WALK: Duration = Duration::from_millis(500);
const TOGETHER: f64 = 256.0;

/// The part of the mesh that is here, and the rest of it elsewhere.
struct Share<T: Number> {
    walker: Box<dyn Walker<T>>,
    exchange: Arc<Exchange>,
    domain: Arc<Domain>,
    /// Its place among hosts that stand in a grid, and its links there.
    grid: Option<(Grid<T>, Lines)>,
}

impl<T: Number> Share<T> {
    /// Whether it is a relaxation along a star that is cut in blocks.
    fn is_searched(&self, pass: &Pass<T>) -> bool {
        match (&pass.code, &self.grid) {
            (Code::Vertex { relax: Some(relax), .. }, Some((grid, _))) => grid.has(relax.star),
            _ => false,
        }
    }

    /// Runs rounds of such a relaxation; none if it is another.
    fn search(&mut self, pass: &Pass<T>, most: u32) -> Result<Option<(u32, bool)>> {
        let Code::Vertex { relax: Some(relax), .. } = &pass.code else { return Ok(None) };
        let Some((grid, lines)) = self.grid.as_mut().filter(|(grid, _)| grid.has(relax.star)) else { return Ok(None) };
        let outcome = (relax.in_grid)(grid, &mut *self.walker, lines, &pass.uniform, most)?;
        let changed = lines.border(&self.domain, self.walker.view()?)?;
        if !changed.is_empty() {
            self.walker.change(&mut |view| changed.iter().for_each(|&(i, x)| view.shared[i] = x))?;
        }
        Ok(Some(outcome))
    }
}

impl<T: Number> Store<T> for Share<T> {
    fn view(&self) -> Result<View<'_, T>> {
        self.walker.view()
    }

    fn change(&mut self, change: &mut Edit<T>) -> Result<()> {
        self.walker.change(change)
    }

    fn elements(&self, star: usize) -> View<'_, T> {
        self.walker.elements(star)
    }

    fn change_elements(&mut self, star: usize, change: &mut Edit<T>) {
        self.walker.change_elements(star, change);
    }
}

impl<T: Number> Walker<T> for Share<T> {
    fn pass(&mut self, passes: Vec<Pass<T>>) -> Result<Option<usize>> {
        if !passes.iter().any(|pass| self.is_searched(pass)) {
            return self.walker.pass(passes);
        }
        // No walk measures the result of a search.
        self.walker.expect(Vec::new());
        let mut not_finite = None;
        for (i, pass) in passes.into_iter().enumerate() {
            let is_finite = match (self.is_searched(&pass), pass.rule) {
                (false, _) => self.walker.pass(vec![pass])?.is_none(),
                // Once a round has changed nothing, those after it change nothing either.
                (true, Rule::AtOnce) => self.search(&pass, pass.rounds)?.is_none_or(|(_, is_finite)| is_finite),
                (true, _) => {
                    return Err(Error::Cluster(
                        "a relaxation is swept in place, but hosts that stand in a grid have no such order: cut along the curve"
                            .into(),
                    ));
                }
            };
            if !is_finite && not_finite.is_none() {
                not_finite = Some(i);
            }
        }
        Ok(not_finite)
    }

    fn fixpoint(&mut self, pass: Pass<T>, most: u32) -> Result<(u32, bool)> {
        match self.search(&pass, most)? {
            Some(outcome) => Ok(outcome),
            None => round_by_round(self, &pass, most),
        }
    }

    fn project(&mut self, star: usize, pass: Pass<T>) -> Result<bool> {
        self.walker.project(star, pass)
    }

    fn expect(&mut self, measures: Vec<Measure<T>>) {
        self.walker.expect(measures);
    }

    fn reduce(&mut self, measure: Measure<T>) -> Result<Reduction> {
        self.walker.reduce(measure)
    }

    fn total(&mut self, own: Reduction) -> Result<f64> {
        agreement::total(&self.exchange, own)
    }

    fn round(&mut self, pass: Pass<T>) -> Result<(bool, bool)> {
        self.walker.round(pass)
    }

    fn any(&mut self, own: bool) -> Result<bool> {
        vote(&self.exchange, own)
    }

    fn renew(&mut self, domain: Arc<Domain>, state: Option<State<T>>) -> Result<()> {
        self.domain = domain.clone();
        self.walker.renew(domain, state)
    }

    fn facts(&self) -> Facts {
        self.walker.facts()
    }
}

/// Does what the driver says until the run is over. `begin`: what the driver said first; `table`: the program; `folder`: the only one that files are
/// written to, or none if the driver says where.
///
/// # Errors
/// Another program or version than the driver's, a host that was lost, or malformed messages of the driver.
pub(crate) fn work<T: Number>(
    exchange: &Arc<Exchange>,
    begin: &Begin,
    table: Table<T>,
    folder: Option<PathBuf>,
) -> Result<()> {
    // A kernel that panics would do so anywhere: the driver is to know, rather than to try again.
    let serve = || serve(exchange, begin, table, folder);
    let result = catch_unwind(AssertUnwindSafe(serve)).unwrap_or_else(|panic| {
        #[cfg(test)]
        let panic = super::simulated::pass_on(panic);
        let what = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Error::Cluster(format!("a kernel panicked: {}", what.unwrap_or("it says nothing"))))
    });
    // Wherever it was noticed that a host is gone.
    let result = result.map_err(|error| exchange.check().err().unwrap_or(error));
    match &result {
        Ok(()) => {}
        Err(Error::Lost(why)) => exchange.send(DRIVER, Control::Cut(why.clone()).encode()),
        Err(Error::TooLarge(why)) => exchange.send(DRIVER, Control::TooLarge(why.clone()).encode()),
        Err(other) => exchange.send(DRIVER, Control::failed(other).encode()),
    }
    result
}

/// Waits for what the driver says first.
///
/// # Errors
/// The driver was lost, says something else, or has another version.
pub(crate) fn begin(exchange: &Exchange) -> Result<Begin> {
    match next(exchange, DRIVER)? {
        Control::Begin(begin) if begin.version == env!("CARGO_PKG_VERSION") => Ok(begin),
        Control::Begin(begin) => Err(Error::Cluster(format!(
            "the driver has version {} of meshweft, this worker {}: start the same binary everywhere",
            begin.version,
            env!("CARGO_PKG_VERSION")
        ))),
        Control::End { .. } => {
            exchange.finish();
            Err(failed())
        }
        other => unexpected(DRIVER, &other),
    }
}

fn failed() -> Error {
    Error::Cluster("the run has failed, which its driver tells more of".into())
}

fn serve<T: Number>(
    exchange: &Arc<Exchange>,
    begin: &Begin,
    mut table: Table<T>,
    folder: Option<PathBuf>,
) -> Result<()> {
    let reals = table.records.lengths();
    let own = [table.program.to_string(), table.fingerprint()];
    if own != [&begin.program[..], &begin.fingerprint] {
        let ([name, shape], Begin { program, fingerprint, .. }) = (own, begin);
        return Err(Error::Cluster(format!(
            "the driver runs {program} ({fingerprint}), this worker has {name} ({shape}): start the same binary everywhere"
        )));
    }
    let globals: Vec<T> = message::numbers(&begin.globals, reals[3])?;
    let mut from = Incoming::new(exchange, DRIVER);
    let domain = Domain::read(&mut from, T::PRECISION, message::stars(&begin.stars)?)?;
    if !is_built::<T>(domain.width) && begin.gpus.get(host_of(exchange) - 1).is_none_or(Option::is_none) {
        return Err(Error::Cluster(format!(
            "the driver groups {} vertices, but this worker is built for another processor: start the same binary everywhere, or \
             build both with the feature `all-widths`",
            domain.width
        )));
    }
    let shape = |shared: usize, private: usize| Shape { shared, private, ..domain.shape };
    let of_elements = table.projected.iter().map(|(&star, state)| (star, shape(0, state.len())));
    check_shapes(&domain, shape(reals[0], reals[1]), of_elements)?;
    let domain = Arc::new(domain);
    let physics =
        trace::physics(&table.records, &domain.stars, &table.projected, gpu::scalar::<T>().unwrap_or(Scalar::F32));
    let traced = table.trace(&physics, &domain.stars)?;
    let table = Arc::new(table);
    let state = state_of(&domain, &mut from)?;
    let own = (exchange.transport().host() - 1, domain.along_curve.len());
    let blocks = begin.grid.map(|_| Blocks::read(&mut from, T::PRECISION, &domain.stars, own.0, own.1)).transpose()?;
    exchange.set_share(&domain, begin.compress);
    let timeline = begin.is_recorded.then(|| exchange.timeline.get_or_init(|| Arc::new(Timeline::new(MOST))).clone());
    let host = host_of(exchange);
    let walker: Box<dyn Walker<T>> = match begin.gpus.get(host - 1) {
        Some(&Some(_)) if !domain.elements.is_empty() => {
            return Err(Error::Cluster(
                "elements are projected, which no share of a GPU does: start this worker without its GPU".into(),
            ));
        }
        Some(&Some(adapter)) => {
            gpu::scalar::<T>()?;
            let (device, kernels) = (gpu::Device::open(adapter as usize)?, gpu::sources(traced)?);
            let start = (state, globals.clone());
            gpu::share(device, domain.clone(), (&physics, kernels), start, (exchange.clone(), timeline))?
        }
        _ => {
            let mut cpu = Cpu::share(begin.threads as usize, domain.clone(), state, exchange.clone())?;
            timeline.into_iter().for_each(|timeline| cpu.record(timeline));
            Box::new(cpu)
        }
    };
    let gpu = walker.facts().gpu.map_or(String::new(), |(adapter, _)| adapter.name);
    let grid = blocks.map(|blocks| {
        let lines = Lines::new(exchange, &blocks, &domain, begin.compress);
        (Grid::new(blocks, &domain), lines)
    });
    let share = Share { walker, exchange: exchange.clone(), domain: domain.clone(), grid };
    let mut worker = Worker {
        engine: Interpreter::new(share, table.clone(), globals),
        domain,
        exchange: exchange.clone(),
        parts: table.records.state().0,
        table,
        reals,
        walked: 0.0,
        together: 1,
        ended: None,
        said: None,
        folder,
        piece: None,
        gpu,
        compress: begin.compress,
    };
    exchange.send(DRIVER, Control::Ready(worker.gpu.clone()).encode());
    worker.run()
}

/// Refuses a share of other states. `of_elements`: by star.
fn check_shapes(domain: &Domain, shape: Shape, of_elements: impl Iterator<Item = (usize, Shape)>) -> Result<()> {
    let has = domain.elements.iter().map(|(&star, elements)| (star, elements.shape));
    if domain.shape != shape || !has.eq(of_elements) {
        return Err(Error::Cluster("the share of the mesh is for another program".into()));
    }
    Ok(())
}

/// The state of a share, which the driver sends.
fn state_of<T: Number>(domain: &Domain, from: &mut Incoming) -> Result<State<T>> {
    let mut state = domain.zeros();
    state.read(0..domain.slots(), from)?;
    for (star, elements) in &mut state.elements {
        elements.read(0..domain.elements[star].slots(), from)?;
    }
    Ok(state)
}

/// The number of this host.
fn host_of(exchange: &Exchange) -> usize {
    exchange.transport().host() as usize
}

/// A worker that has its share.
struct Worker<T: Number> {
    engine: Interpreter<T, Share<T>>,
    domain: Arc<Domain>,
    exchange: Arc<Exchange>,
    table: Arc<Table<T>>,
    /// Reals of shared state, private state, parameters and globals.
    reals: [usize; 4],
    /// Seconds of all steps.
    walked: f64,
    /// How many steps to walk as one.
    together: usize,
    /// How far it was after the first step that was not finite.
    ended: Option<Account>,
    /// What was received and is to be done next.
    said: Option<Control>,
    /// Names of the reals of the state.
    parts: Vec<Part>,
    /// The only folder that files are written to, unless the driver says where.
    folder: Option<PathBuf>,
    /// Its piece of the mesh, once the driver has sent it.
    piece: Option<OwnPiece>,
    /// The GPU that it updates on, if it does, and whether values are to be packed.
    gpu: String,
    compress: Compress,
}

impl<T: Number> Worker<T> {
    fn run(&mut self) -> Result<()> {
        loop {
            let message = match self.said.take() {
                Some(message) => message,
                None => next(&self.exchange, DRIVER)?,
            };
            match message {
                Control::Step { .. } => self.steps(message)?,
                Control::Settle { ticket } => self.report(Some(ticket)),
                Control::Measure { kernel, settings, parameters, step } => {
                    let parameters = message::numbers::<T>(&parameters, self.reals[2])?;
                    let kernel = kernel as usize;
                    let code = self.table.kernels.get(kernel).map(|kernel| &kernel.code);
                    if !matches!(code, Some(Code::Measure { .. })) {
                        return Err(Error::Cluster(format!("kernel {kernel} measures nothing")));
                    }
                    let total = self.engine.measure(kernel, &settings, &parameters, step)?;
                    if self.exchange.transport().host() == FIRST {
                        self.exchange.send(DRIVER, Control::Total(total).encode());
                    }
                }
                Control::State => {
                    #[cfg(test)]
                    self.flip()?;
                    // The steps behind this do not wait until the driver has it.
                    let mut out = Outgoing::copying(&self.exchange, DRIVER);
                    let view = self.engine.state()?;
                    let sent = self.domain.own_slots().into_iter().try_for_each(|slots| view.write(slots, &mut out));
                    let stars = &mut self.domain.elements.iter();
                    let elements = stars.try_for_each(|(&star, elements)| {
                        let view = self.engine.walker.elements(star);
                        elements.own_slots().into_iter().try_for_each(|slots| view.write(slots, &mut out))
                    });
                    let sent = sent.and(elements).and_then(|()| copies::write(&self.domain, view, &mut out));
                    sent.and_then(|()| out.flush()).map_err(|error| Error::Cluster(error.to_string()))?;
                }
                Control::Edit => {
                    let state = state_of(&self.domain, &mut Incoming::new(&self.exchange, DRIVER))?;
                    let replace = |state: &State<T>, view: ViewMut<'_, T>| {
                        view.shared.copy_from_slice(&state.shared);
                        view.private.copy_from_slice(&state.private);
                    };
                    self.engine.edit(&mut |view| replace(&state, view))?;
                    for (&star, state) in &state.elements {
                        self.engine.edit_elements(star, &mut |view| replace(state, view))?;
                    }
                    self.engine.reset();
                    self.ended = None;
                }
                Control::Renew => {
                    self.renew()?;
                    self.exchange.send(DRIVER, Control::Ready(self.gpu.clone()).encode());
                }
                Control::Globals => {
                    let globals = self.engine.globals()?;
                    self.exchange.send(DRIVER, Control::GlobalsAre(message::bits(&globals)).encode());
                }
                Control::SetGlobals(globals) => {
                    self.engine.set_globals(&message::numbers::<T>(&globals, self.reals[3])?)?;
                }
                Control::Piece => self.piece = Some(OwnPiece::read(&self.exchange, DRIVER, &self.domain)?),
                Control::WritePiece(said) => self.write_piece(&said)?,
                Control::Clock | Control::Timeline => timeline::answer(&self.exchange, &message)?,
                Control::End { has_failed } => {
                    self.exchange.finish();
                    return if has_failed { Err(failed()) } else { Ok(()) };
                }
                other => return unexpected(DRIVER, &other),
            }
        }
    }

    /// Takes the share with other elements of changing stars, and the state that it begins with.
    fn renew(&mut self) -> Result<()> {
        let mut from = Incoming::new(&self.exchange, DRIVER);
        let domain = Domain::read(&mut from, T::PRECISION, self.domain.stars.clone())?;
        let of_elements = self.domain.elements.iter().map(|(&star, elements)| (star, elements.shape));
        check_shapes(&domain, self.domain.shape, of_elements)?;
        let state = state_of(&domain, &mut from)?;
        self.domain = Arc::new(domain);
        self.exchange.set_share(&self.domain, self.compress);
        self.engine.walker.renew(self.domain.clone(), Some(state))?;
        self.engine.reset();
        self.ended = None;
        Ok(())
    }

    /// Changes a bit of what it has of others, if a test wants that.
    #[cfg(test)]
    fn flip(&mut self) -> Result<()> {
        let Some((ghost, bit)) = self.exchange.patient.flip() else { return Ok(()) };
        let share = self.domain.share.as_ref().expect("a host has a share");
        let slots: Vec<u32> = share.ghosts.iter().flat_map(Clone::clone).collect();
        let slot = slots[ghost % slots.len()] as usize;
        self.engine.edit(&mut |view| {
            let reals = view.shape.shared;
            let first = view.shape.shared_index(slot, 0);
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut view.shared[first..first + reals]);
            let place = bit as usize % (8 * bytes.len());
            bytes[place / 8] ^= 1 << (place % 8);
        })
    }

    /// Writes its piece of the mesh.
    fn write_piece(&mut self, said: &WritePiece) -> Result<()> {
        let WritePiece { folder, name, positions, raised, before } = said;
        check_name(name)?;
        let placement = Placement { positions: positions.clone(), raised: raised.clone() };
        let folder = self.folder.as_deref().unwrap_or(Path::new(folder));
        let frame = Frame { folder, name, placement: &placement, before: *before };
        let Some(piece) = &mut self.piece else {
            return Err(Error::Cluster("it is to write a piece of the mesh that it does not have".into()));
        };
        piece.write(&self.exchange, &self.parts, (&self.domain, self.engine.state()?), &frame)?;
        self.exchange.send(DRIVER, Control::Wrote.encode());
        Ok(())
    }

    /// Takes a step, and with it those that have come meanwhile.
    fn steps(&mut self, first: Control) -> Result<()> {
        let mut steps = vec![self.step(first)?];
        while steps.len() < self.together {
            let is_control = |from, message: &[u8]| from == DRIVER && message.first() == Some(&CONTROL);
            let Some((_, message)) = self.exchange.try_receive(is_control) else { break };
            match Control::decode(&message)? {
                step @ Control::Step { .. } => steps.push(self.step(step)?),
                other => {
                    self.said = Some(other);
                    break;
                }
            }
        }
        let start = self.exchange.now();
        self.engine.steps(&steps)?;
        let took = (self.exchange.now() - start).as_secs_f64();
        self.walked += took;
        self.together = (WALK.as_secs_f64() / took * steps.len() as f64).clamp(1.0, TOGETHER) as usize;
        if self.engine.progress().non_finite && self.ended.is_none() {
            self.ended = Some(self.account());
        }
        self.report(None);
        Ok(())
    }

    fn step(&self, message: Control) -> Result<Step<T>> {
        let Control::Step { number, parameters, stages } = message else { return unexpected(DRIVER, &message) };
        let parameters = message::numbers(&parameters, self.reals[2])?;
        Ok(Step { number, parameters, stages: message::stages(&stages, &self.table)? })
    }

    fn account(&self) -> Account {
        let Progress { steps, rounds, swept, loops, non_finite, .. } = self.engine.progress();
        Account { steps, rounds, swept, loops, non_finite, tally: self.tally() }
    }

    fn tally(&self) -> Tally {
        let (transport, waiting) = (self.exchange.transport(), self.exchange.overlap.waited().as_secs_f64());
        let found = self.engine.walker.grid.as_ref().map(|(_, lines)| lines.sent()).unwrap_or_default();
        let sent =
            (FIRST..transport.hosts()).filter(|&host| host != transport.host()).map(|host| transport.traffic(host));
        let Facts { threads, left_out, .. } = self.engine.facts();
        Tally {
            threads: threads as u32,
            left_out,
            updating: (self.walked * threads as f64 - waiting).max(0.0),
            waiting,
            overlap: self.exchange.overlap.seconds(),
            sent_messages: sent.clone().map(|traffic| traffic.sent_messages).sum(),
            sent_bytes: sent.map(|traffic| traffic.sent_bytes).sum(),
            value_bytes: self.exchange.value_bytes(),
            search_bytes: [found.lists, found.frontiers, found.offers, found.predecessors],
            search_ids: found.ids,
            memory_bytes: most_memory().unwrap_or(0),
        }
    }

    fn report(&self, ticket: Option<u64>) {
        let progress = self.ended.clone().unwrap_or_else(|| self.account());
        self.exchange.send(DRIVER, Control::Progress { ticket, progress }.encode());
    }
}

/// The most memory that this process has held, in bytes, if the system tells.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
