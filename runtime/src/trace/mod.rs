//! Tracing: one run of a kernel on symbols, written down as WGSL.
//!
//! A kernel is generic over its number type. Run once on [`Expr`], it leaves on a tape what it computes: each value once,
//! whatever functions and matrices of the program it came through. A fold runs its closure once, on the symbols of one
//! thing, and becomes a loop. What does not depend on the thing moves out of the loop; what nobody needs is not written.
//!
//! The text is a function over the structs of [`Physics`], which have the names of the program's records:
//!
//! ```wgsl
//! fn update(place: Place, own: Shared, body: Private) -> New
//! ```

mod expr;
mod tape;
#[cfg(test)]
mod tests;
mod write;

use crate::error::{Error, Result};
use crate::program::{
    Combine, Given, Kernel, KernelList, Kernels, Kind, Map, Neighbors, PrivateOf, Record, Reduce, Relax, Scalar,
    SharedOf, Star, StarShape, Test, Update, Vertex, VertexOf,
};
pub(crate) use expr::Expr;
use expr::{put, with_tape};
use meshweft_shaders as shaders;
use shaders::{Body, Physics};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use tape::{Fold, Id, Input, Node, Tape, Type};
use write::Writer;

/// Names of the records of a program, for its shaders. `stars`: in order.
pub(crate) fn physics<P: Kernels>(stars: &[StarShape], scalar: shaders::Scalar) -> Physics {
    let star = |(index, star): (usize, &StarShape)| shaders::Star {
        name: star.name.clone(),
        others: star.others,
        data: shaders::Record::new(&format!("Data{index}"), &star.parts, scalar),
    };
    Physics {
        scalar,
        parameters: record::<P::Parameters<Expr>>("Parameters", scalar),
        globals: record::<P::Globals<Expr>>("Globals", scalar),
        shared: record::<SharedOf<P, Expr>>("Shared", scalar),
        private: record::<PrivateOf<P, Expr>>("Private", scalar),
        stars: stars.iter().enumerate().map(star).collect(),
    }
}

fn record<A: Record<Expr>>(name: &str, scalar: shaders::Scalar) -> shaders::Record {
    let is_integer = (0..A::LEN).map(|k| scalar == shaders::Scalar::F32 && A::kind(k) == Kind::Integer).collect();
    shaders::Record::new(name, &parts::<A>(), scalar).with_integers(is_integer)
}

fn parts<A: Record<Expr>>() -> Vec<(String, usize)> {
    A::parts("").into_iter().map(|part| (part.name, part.components)).collect()
}

/// What is known of a kernel that was run on symbols.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    /// Its WGSL, or why it cannot be written.
    pub(crate) body: Result<Body, String>,
    /// Whether it asks for the number of the vertex.
    pub(crate) reads_vertex: bool,
    /// Whether it asks for the number of the step.
    reads_step: bool,
    /// Whether it draws random numbers.
    pub(crate) draws: bool,
    /// Whether it is a map.
    pub(crate) is_map: bool,
    /// Whether it is a relaxation.
    is_relaxation: bool,
    /// The stars along which it looks.
    stars: Vec<usize>,
}

/// Whether relaxations look along a star, and nothing else does.
pub(crate) fn is_searched(kernels: &[Traced], star: usize) -> bool {
    let mut looking = kernels.iter().filter(|kernel| kernel.stars.contains(&star)).peekable();
    looking.peek().is_some() && looking.all(|kernel| kernel.is_relaxation)
}

/// Runs every kernel of a program once on symbols, in the order in which the program names them.
///
/// # Errors
/// [`Error::Program`] names the kernel, and what breaks the rules that all engines rely on.
pub(crate) fn kernels<P: Kernels>(physics: &Physics, stars: &[StarShape]) -> Result<Vec<Traced>> {
    let mut tracer =
        Tracer { physics, stars, traced: Vec::new(), names: Vec::new(), fault: None, program: PhantomData::<P> };
    P::list(&mut tracer);
    match tracer.fault {
        None => Ok(tracer.traced),
        Some(fault) => Err(Error::Program(fault)),
    }
}

/// What a vertex that has taken an offer knows of who makes it, besides the offer.
#[cfg(feature = "cluster")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// Nothing.
    Forgotten,
    /// Something that no neighbor sees.
    Kept,
    /// Something that neighbors see.
    Shown,
}

/// What takers of a relaxation know. `stars`: those of the program.
#[cfg(feature = "cluster")]
pub(crate) fn maker<P: Kernels, K: Relax<P>>(stars: &[StarShape]) -> Maker {
    let outer = with_tape(|tape| std::mem::replace(tape, Tape::new(shaders::Scalar::F32)));
    let recorder = Recorder { stars, fault: RefCell::default() };
    let maker = Cell::new(Maker::Shown);
    let _: Expr = Neighbors::<P, _>::fold(&recorder, K::ALONG, put(Node::Literal(Type::Real, 0)), |zero, [from], _| {
        // An offer that nothing is known of.
        let offer = K::Key::<Expr>::build(|_| put(Node::Input(Input::Draw, 0)));
        let (shared, private) = K::take(&given(), own::<P>(), offer, from).split();
        let knows = |ids: Vec<Id>| ids.into_iter().any(|id| with_tape(|tape| tape.reads_other(id)));
        maker.set(match (knows(ids(&shared)), knows(ids(&private))) {
            (true, _) => Maker::Shown,
            (_, true) => Maker::Kept,
            _ => Maker::Forgotten,
        });
        zero
    });
    with_tape(|tape| *tape = outer);
    maker.get()
}

struct Tracer<'a, P> {
    physics: &'a Physics,
    stars: &'a [StarShape],
    traced: Vec<Traced>,
    names: Vec<&'static str>,
    fault: Option<String>,
    program: PhantomData<P>,
}

impl<P: Kernels> Tracer<'_, P> {
    /// Runs a kernel on an empty tape and writes down what it leaves there.
    fn trace<K: Kernel, A>(
        &mut self,
        run: impl FnOnce(&Given<P, Expr>, &Recorder) -> A,
        write: impl FnOnce(&Physics, A) -> Result<Body, String>,
    ) {
        // A kernel may build another simulation, which is traced on this thread too.
        let outer = with_tape(|tape| std::mem::replace(tape, Tape::new(self.physics.scalar)));
        let recorder = Recorder { stars: self.stars, fault: RefCell::default() };
        let output = run(&given(), &recorder);
        let mut fault = recorder.fault.into_inner().map(|fault| format!("kernel {} {fault}", K::NAME));
        if let Some(broken) = with_tape(|tape| tape.fault()) {
            fault.get_or_insert(format!("kernel {} would not be the same everywhere: {broken}", K::NAME));
        }
        if self.names.contains(&K::NAME) {
            fault = Some(format!("two kernels are called {}: each needs a name of its own", K::NAME));
        }
        self.names.push(K::NAME);
        if let Some(fault) = fault {
            self.fault.get_or_insert(fault);
            with_tape(|tape| *tape = outer);
            return;
        }
        let stars = with_tape(|tape| tape.folds.iter().map(|fold| fold.star).collect());
        let body = write(self.physics, output);
        with_tape(|tape| *tape = outer);
        let reads = |what| body.as_ref().map_or(true, |body| body.function().contains(what));
        let (reads_vertex, reads_step, draws) = (reads("vertex(place)"), reads("step()"), reads("draw()"));
        let body = body.map_err(|fault| format!("kernel {} cannot run on a GPU: {fault}", K::NAME));
        let (is_map, is_relaxation) = (false, false);
        self.traced.push(Traced { body, reads_vertex, reads_step, draws, is_map, is_relaxation, stars });
    }

    /// Checks that a vertex holds an offer once it has taken it: otherwise it would take it again and again.
    fn holds_what_it_takes<K: Relax<P>>(&mut self) {
        let outer = with_tape(|tape| std::mem::replace(tape, Tape::new(self.physics.scalar)));
        let recorder = Recorder { stars: self.stars, fault: RefCell::default() };
        let holds = Cell::new(false);
        let _: Expr =
            Neighbors::<P, _>::fold(&recorder, K::ALONG, put(Node::Literal(Type::Real, 0)), |zero, [from], edge| {
                let offer = K::offer(&given::<P>(), from, edge);
                let (taken, _) = K::take(&given(), own::<P>(), offer, from).split();
                holds.set(ids(&K::held(&taken)) == ids(&offer));
                zero
            });
        with_tape(|tape| *tape = outer);
        let len = <K::Key<Expr>>::LEN;
        if len != 1 {
            let fault = format!("kernel {} compares keys of {len} reals: a key is one real or one integer", K::NAME);
            self.fault.get_or_insert(fault);
        } else if !holds.get() {
            let fault = format!(
                "kernel {} takes an offer and holds something else: `held` of what it takes must be the offer",
                K::NAME
            );
            self.fault.get_or_insert(fault);
        }
    }
}

impl<P: Kernels> KernelList<P> for Tracer<'_, P> {
    fn map<K: Map<P>>(&mut self) {
        self.trace::<K, _>(|given, _| K::map(given, own::<P>()), vertex::<P>);
        self.traced.iter_mut().last().into_iter().for_each(|kernel| kernel.is_map = true);
    }

    fn update<K: Update<P>>(&mut self) {
        self.trace::<K, _>(|given, around| K::update(given, own::<P>(), around), vertex::<P>);
        if K::QUIET && self.traced.last().is_some_and(|kernel| kernel.reads_step || kernel.draws) {
            self.fault.get_or_insert(format!(
                "kernel {} is quiet, but reads the step or draws random numbers: it changes by itself, so leave out `quiet`",
                K::NAME
            ));
        }
    }

    fn relax<K: Relax<P>>(&mut self) {
        self.update::<K>();
        self.traced.iter_mut().last().into_iter().for_each(|kernel| kernel.is_relaxation = true);
        if self.traced.last().is_some_and(|kernel| kernel.reads_vertex) {
            self.fault.get_or_insert(format!(
                "kernel {} reads the number of the vertex, but an offer is the same for all who hear it: keep the number in a field",
                K::NAME
            ));
        }
        self.holds_what_it_takes::<K>();
    }

    fn reduce<K: Reduce<P>>(&mut self) {
        self.trace::<K, _>(
            |given, around| K::measure(given, own::<P>(), around).0,
            |physics, output| {
                let statements = write(physics, &[output], |outputs| outputs[0].clone())?;
                Ok(Body::measure(statements, K::COMBINE == Combine::Sum))
            },
        );
    }

    fn scalar<K: Scalar<P>>(&mut self) {
        self.trace::<K, _>(
            |given, _| ids(&K::compute(given)),
            |physics, outputs| {
                let globals = |reals: &[String]| physics.globals.build(|k| reals[k].clone());
                Ok(Body::scalar(write(physics, &outputs, globals)?))
            },
        );
    }

    fn test<K: Test<P>>(&mut self) {
        self.trace::<K, _>(
            |given, _| K::test::<Expr>(given).id(),
            |physics, output| Ok(Body::test(write(physics, &[output], |outputs| outputs[0].clone())?)),
        );
    }
}

/// The update of a vertex, as WGSL.
fn vertex<P: Kernels>(physics: &Physics, new: VertexOf<P, Expr>) -> Result<Body, String> {
    let (shared, private) = new.split();
    let (shared, private) = (ids(&shared), ids(&private));
    let outputs: Vec<Id> = shared.iter().chain(&private).copied().collect();
    let changes = |input, ids: &[Id]| -> Vec<bool> {
        let is_changed = |(k, &id): (usize, &Id)| with_tape(|tape| tape.node(id)) != Node::Input(input, k);
        ids.iter().enumerate().map(is_changed).collect()
    };
    let (shared_changes, private_changes) = (changes(Input::Shared, &shared), changes(Input::Private, &private));
    let text = write(physics, &outputs, |outputs| {
        let (own, body) = outputs.split_at(shared.len());
        // What does not change at all is passed on as it is.
        let record = |record: &shaders::Record, changes: &[bool], name: &str, reals: &[String]| {
            if changes.contains(&true) { record.build(|k| reals[k].clone()) } else { name.into() }
        };
        let own = record(&physics.shared, &shared_changes, "own", own);
        format!("New({own}, {})", record(&physics.private, &private_changes, "body", body))
    })?;
    Ok(Body::update(text, shared_changes.contains(&true), private_changes))
}

fn write(physics: &Physics, outputs: &[Id], result: impl FnOnce(&[String]) -> String) -> Result<String, String> {
    with_tape(|tape| Writer::new(tape, physics, outputs).body(outputs, result))
}

fn ids<A: Record<Expr>>(record: &A) -> Vec<Id> {
    let mut ids = Vec::with_capacity(A::LEN);
    record.each(|_, x| ids.push(x.0));
    ids
}

fn input<A: Record<Expr>>(input: Input) -> A {
    A::build(|k| put(Node::Input(input, k)))
}

fn given<P: Kernels>() -> Given<P, Expr> {
    Given::build(
        |k| put(Node::Input(Input::Parameters, k)),
        |k| put(Node::Input(Input::Globals, k)),
        |k| put(Node::Input(Input::Settings, k)),
        [Input::Vertex, Input::Step, Input::Draw].map(|input| put(Node::Input(input, 0))),
    )
}

fn own<P: Kernels>() -> VertexOf<P, Expr> {
    Vertex::join(input(Input::Shared), input(Input::Private))
}

/// Records each fold once, and checks that it fits the star it names.
struct Recorder<'a> {
    stars: &'a [StarShape],
    fault: RefCell<Option<String>>,
}

impl Recorder<'_> {
    /// Elements cut at another length would name vertices that are no neighbors.
    fn check<const N: usize, E: Star<N>>(&self) {
        let wanted = (N, <E::Data<Expr> as Record<Expr>>::LEN);
        let star = self.stars.get(E::INDEX).filter(|star| star.name == E::NAME);
        let fault = match star.map(StarShape::lengths) {
            Some(given) if given == wanted => return,
            Some((others, reals)) => format!(
                "folds over star {} with {} others and {} reals, but it was added with {others} others and {reals} reals",
                E::NAME,
                wanted.0,
                wanted.1
            ),
            None => format!("folds over star {}, which was not added: `Program::stars` adds it", E::NAME),
        };
        self.fault.borrow_mut().get_or_insert(fault);
    }
}

impl<P: Kernels> Neighbors<P, Expr> for Recorder<'_> {
    fn fold<const N: usize, E: Star<N>, A: Record<Expr>>(
        &self,
        _: E,
        init: A,
        f: impl Fn(A, [SharedOf<P, Expr>; N], E::Data<Expr>) -> A,
    ) -> A {
        self.check::<N, E>();
        let names = parts::<A>().into_iter().flat_map(|(name, components)| {
            (0..components).map(move |k| match components {
                1 => name.clone(),
                2..=4 => format!("{name}_{}", ["x", "y", "z", "w"][k]),
                _ => format!("{name}_{k}"),
            })
        });
        let integers = with_tape(|tape| tape.integers());
        let fold = Fold {
            star: E::INDEX,
            name: E::NAME.into(),
            others: N,
            names: names.collect(),
            types: (0..A::LEN).map(|k| if A::kind(k) == Kind::Real { Type::Real } else { integers }).collect(),
            init: ids(&init),
            next: Vec::new(),
            parent: None,
            end: 0,
        };
        let fold = with_tape(|tape| tape.open(fold));
        let gathered = A::build(|k| put(Node::Gathered { fold, k }));
        let others = std::array::from_fn(|other| input(Input::Other { fold, other }));
        let next = f(gathered, others, input(Input::Data { fold }));
        let next = ids(&next);
        with_tape(|tape| tape.close(next));
        A::build(|k| put(Node::Result { fold, k }))
    }
}
