//! Tracing: one run of a kernel on symbols, written down as WGSL.
//!
//! A kernel is generic over its number type. Run once on [`Expr`], it leaves on a tape what it computes: each value once,
//! whatever functions and matrices of the program it came through. A fold runs its closure once, on the symbols of one
//! element, and becomes a loop. What does not depend on the element moves out of the loop; what is not needed is not written.
//!
//! The text is a function over the structs of [`Physics`], which have the names of the program's records:
//!
//! ```wgsl
//! fn update(place: Place, own: Shared, body: Private) -> New
//! ```

mod algebra;
mod expr;
mod formula;
mod order;
mod tape;
#[cfg(test)]
mod tests;
mod write;

use crate::error::{Error, Result};
use crate::program::{
    Combine, Corners, Elements, Fields, Given, Kernels, Kind, Map, Neighbors, Part, Project, Record, Records, Reduce,
    Relax, Scalar, SharedOf, Star, StarShape, Test, Update, Vertex, VertexOf,
};
pub(crate) use expr::Expr;

use expr::{put, with_tape};
#[cfg(feature = "cluster")]
pub(crate) use formula::Line;
pub use formula::{Along, Formula, Leaf, Value};
use meshweft_shaders as shaders;
pub(crate) use order::{Event, Order};
use shaders::{Body, Physics};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
pub use tape::{Binary, Input, Type, Unary};
pub(crate) use tape::{Fold, Id, Node, Tape};
use write::Writer;

/// Names of the records of a program, for its shaders. `stars`: in order; `projected`: those whose elements are, with the state of one.
pub(crate) fn physics(
    records: &Records,
    stars: &[StarShape],
    projected: &BTreeMap<usize, Fields>,
    scalar: shaders::Scalar,
) -> Physics {
    let record = |name: &str, fields: &Fields| {
        let is_integer = |kind| scalar == shaders::Scalar::F32 && kind == Kind::Integer;
        let parts: Vec<_> = fields.0.iter().map(|part| (part.name.clone(), part.components)).collect();
        let integers = fields.kinds().into_iter().map(is_integer).collect();
        shaders::Record::new(name, &parts, scalar).with_integers(integers)
    };
    let nothing = Fields::default();
    let star = |(index, star): (usize, &StarShape)| shaders::Star {
        name: star.name.clone(),
        others: star.others,
        data: shaders::Record::new(&format!("Data{index}"), &star.parts, scalar),
        state: record(&format!("State{index}"), projected.get(&index).unwrap_or(&nothing)),
    };
    Physics {
        scalar,
        parameters: record("Parameters", &records.parameters),
        globals: record("Globals", &records.globals),
        shared: record("Shared", &records.shared),
        private: record("Private", &records.private),
        stars: stars.iter().enumerate().map(star).collect(),
    }
}

/// What runs a kernel on the tape of this thread. Returns what it comes to: of a vertex the shared reals first.
type Run = Arc<dyn Fn(&Recorder) -> Vec<Id> + Send + Sync>;

/// A kernel as a function that runs it on symbols.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    run: Run,
    takes: Option<Takes>,
}

/// Runs a relaxation: reals of its key, and whether a vertex that has taken an offer holds it.
type Takes = fn(&Recorder) -> (usize, bool);

/// What a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Map,
    Update { is_quiet: bool },
    Project { star: usize },
    Measure(Combine),
    Scalar,
    Test,
}

impl Script {
    fn new(name: &'static str, role: Role, run: impl Fn(&Recorder) -> Vec<Id> + Send + Sync + 'static) -> Script {
        Script { name, role, run: Arc::new(run), takes: None }
    }

    /// A kernel that is data.
    pub(crate) fn formula(name: &'static str, role: Role, formula: Arc<Formula>) -> Script {
        Script::new(name, role, move |recorder| {
            formula.replay(&|&Along { star: index, name, lengths: (others, reals) }| {
                recorder.look(Looked { index, name, others, reals });
            })
        })
    }

    pub(crate) fn map<P: Kernels, K: Map<P>>() -> Script {
        let run = |_: &Recorder| vertex::<P>(K::map(&given(), own::<P>()));
        Script::new(K::NAME, Role::Map, run)
    }

    pub(crate) fn update<P: Kernels, K: Update<P>>() -> Script {
        let run = |around: &Recorder| vertex::<P>(K::update(&given(), own::<P>(), around));
        Script::new(K::NAME, Role::Update { is_quiet: K::QUIET }, run)
    }

    pub(crate) fn relax<P: Kernels, K: Relax<P>>() -> Script {
        Script { takes: Some(takes::<P, K>), ..Script::update::<P, K>() }
    }

    pub(crate) fn project<P: Kernels, K: Project<P>>() -> Script {
        Script::new(K::NAME, Role::Project { star: K::Along::INDEX }, projected::<P, K>)
    }

    pub(crate) fn measure<P: Kernels, K: Reduce<P>>() -> Script {
        let run = |around: &Recorder| vec![K::measure(&given(), own::<P>(), around).0];
        Script::new(K::NAME, Role::Measure(K::COMBINE), run)
    }

    pub(crate) fn scalar<P: Kernels, K: Scalar<P>>() -> Script {
        let run = |_: &Recorder| ids(&K::compute(&given::<P>()));
        Script::new(K::NAME, Role::Scalar, run)
    }

    pub(crate) fn test<P: Kernels, K: Test<P>>() -> Script {
        let run = |_: &Recorder| vec![K::test::<Expr>(&given::<P>()).id()];
        Script::new(K::NAME, Role::Test, run)
    }
}

impl Script {
    /// Runs it on an exact tape. Returns that and what it comes to. It was [traced](kernels) before.
    pub(crate) fn tape(&self, stars: &[StarShape]) -> (Tape, Vec<Id>) {
        let (outputs, _, tape) = record(Tape::exact(), stars, &*self.run);
        (tape, outputs)
    }
}

/// What is known of a kernel that was run on symbols.
#[derive(Clone, Debug)]
pub(crate) struct Traced {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// Its WGSL, or why it cannot be written.
    pub(crate) body: Result<Body, String>,
    /// Whether it asks for the number of the vertex.
    pub(crate) reads_vertex: bool,
    /// Whether it asks for globals.
    pub(crate) reads_globals: bool,
    /// Whether it draws random numbers.
    pub(crate) draws: bool,
    /// Whether it is a relaxation.
    is_relaxation: bool,
    /// The stars along which it looks.
    pub(crate) stars: Vec<usize>,
    /// Private reals that an update reads, other than to keep them, or changes.
    pub(crate) private: Vec<usize>,
}

/// Whether relaxations look along a star, and nothing else does.
pub(crate) fn is_searched(kernels: &[Traced], star: usize) -> bool {
    let mut looking = kernels.iter().filter(|kernel| kernel.stars.contains(&star)).peekable();
    looking.peek().is_some() && looking.all(|kernel| kernel.is_relaxation)
}

/// Runs every kernel of a program on symbols.
///
/// # Errors
/// [`Error::Program`] names the first kernel that breaks the rules that all engines rely on, and how.
pub(crate) fn kernels<'a>(
    scripts: impl Iterator<Item = &'a Script>,
    physics: &Physics,
    stars: &[StarShape],
) -> Result<Vec<Traced>> {
    let mut traced: Vec<Traced> = Vec::new();
    for script in scripts {
        let name = script.name;
        if traced.iter().any(|other| other.name == name) {
            return Err(Error::Program(format!("two kernels are called {name}: each needs a name of its own")));
        }
        traced.push(script.trace(physics, stars).map_err(|why| Error::Program(format!("kernel {name} {why}")))?);
    }
    Ok(traced)
}

/// The one star that kernels look along, if that is of edges without data: what a program has that says nothing of stars.
pub(crate) fn plain_edges<'a>(scripts: impl Iterator<Item = &'a Script>) -> Option<&'static str> {
    let look = |script: &Script| record(Tape::new(shaders::Scalar::F32), &[], &*script.run).1.looked.into_inner();
    let seen: Vec<Looked> = scripts.flat_map(look).collect();
    let Looked { name, .. } = *seen.first()?;
    seen.iter().all(|looked| *looked == Looked { index: 0, name, others: 1, reals: 0 }).then_some(name)
}

/// A star as a kernel looks along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Looked {
    index: usize,
    name: &'static str,
    others: usize,
    reals: usize,
}

/// Works on a tape of its own. Returns the result, what was looked along, and the tape.
fn record<A>(tape: Tape, stars: &[StarShape], work: impl FnOnce(&Recorder) -> A) -> (A, Recorder<'_>, Tape) {
    // A kernel may build another simulation, which is traced on this thread too.
    let outer = with_tape(|own| std::mem::replace(own, tape));
    let recorder = Recorder { stars, looked: RefCell::default(), fault: RefCell::default() };
    let output = work(&recorder);
    let tape = with_tape(|tape| std::mem::replace(tape, outer));
    (output, recorder, tape)
}

impl Script {
    /// Runs it, and writes down what it leaves on the tape.
    fn trace(&self, physics: &Physics, stars: &[StarShape]) -> Result<Traced, String> {
        let traced = trace((self.name, self.role), physics, stars, &*self.run)?;
        let Some(takes) = self.takes else { return Ok(traced) };
        if traced.reads_vertex {
            return Err(
                "reads the number of the vertex, but an offer is the same for all who hear it: keep the number in a field"
                    .into(),
            );
        }
        match record(Tape::new(physics.scalar), stars, takes).0 {
            (1, true) => Ok(Traced { is_relaxation: true, ..traced }),
            (1, false) => {
                Err("takes an offer and holds something else: `held` of what it takes must be the offer".into())
            }
            (len, _) => Err(format!("compares keys of {len} reals: a key is one real or one integer")),
        }
    }
}

fn trace(
    (name, role): (&'static str, Role),
    physics: &Physics,
    stars: &[StarShape],
    run: &dyn Fn(&Recorder) -> Vec<Id>,
) -> Result<Traced, String> {
    let (outputs, recorder, tape) = record(Tape::new(physics.scalar), stars, run);
    if let Some(fault) = recorder.fault.into_inner() {
        return Err(fault);
    }
    if let Some(broken) = tape.fault() {
        return Err(format!("would not be the same everywhere: {broken}"));
    }
    // Once more: what looks at a clock, a random number or a static that changes leaves another tape, as a rule.
    let (again, _, other) = record(Tape::new(physics.scalar), stars, run);
    if again != outputs || other != tape {
        return Err("is not the same every time it runs: it must depend on what it is given alone".into());
    }
    let reads = |wanted: Input| tape.reads(&outputs, |node| matches!(node, Node::Input(input, _) if input == wanted));
    let (reads_step, draws) = (reads(Input::Step), reads(Input::Draw));
    if role == (Role::Update { is_quiet: true }) && (reads_step || draws) {
        return Err(
            "is quiet, but reads the step or draws random numbers: it changes by itself, so leave out `quiet`".into()
        );
    }
    let body = body(&tape, physics, role, &outputs);
    Ok(Traced {
        name,
        role,
        body: body.map_err(|why| format!("kernel {name} cannot run on a GPU: {why}")),
        reads_vertex: reads(Input::Vertex),
        reads_globals: reads(Input::Globals),
        draws,
        is_relaxation: false,
        stars: tape.folds.iter().map(|fold| fold.star).collect(),
        private: if matches!(role, Role::Map | Role::Update { .. }) {
            touched(&tape, physics, &outputs)
        } else {
            vec![]
        },
    })
}

/// Private reals that an update reads, other than to keep them, or changes.
fn touched(tape: &Tape, physics: &Physics, outputs: &[Id]) -> Vec<usize> {
    let shared = physics.shared.len();
    let is_kept = |at: usize, id: Id| {
        let Some(k) = at.checked_sub(shared) else { return tape.node(id) == Node::Input(Input::Shared, at) };
        tape.node(id) == Node::Input(Input::Private, k)
    };
    let changing: Vec<Id> =
        outputs.iter().enumerate().filter(|&(at, &id)| !is_kept(at, id)).map(|(_, &id)| id).collect();
    let is_touched = |&k: &usize| {
        let is_changed = outputs.get(shared + k).is_none_or(|&id| !is_kept(shared + k, id));
        is_changed || tape.reads(&changing, |node| node == Node::Input(Input::Private, k))
    };
    (0..physics.private.len()).filter(is_touched).collect()
}

/// What a kernel left on a tape, as WGSL.
fn body(tape: &Tape, physics: &Physics, role: Role, outputs: &[Id]) -> Result<Body, String> {
    let write = |result: &dyn Fn(&[String]) -> String| Writer::new(tape, physics, outputs).body(outputs, result);
    match role {
        Role::Map | Role::Update { .. } => update(tape, physics, outputs, write),
        Role::Project { star } => project(tape, physics, star, outputs),
        Role::Measure(how) => Ok(Body::measure(write(&|outputs| outputs[0].clone())?, how == Combine::Sum)),
        Role::Scalar => Ok(Body::scalar(write(&|reals| physics.globals.build(|k| reals[k].clone()))?)),
        Role::Test => Ok(Body::test(write(&|outputs| outputs[0].clone())?)),
    }
}

/// The projection of an element, as WGSL.
fn project(tape: &Tape, physics: &Physics, star: usize, outputs: &[Id]) -> Result<Body, String> {
    let (projection, len) = (physics.of_projection(star), physics.shared.len());
    let text = Writer::new(tape, &projection, outputs).body(outputs, |reals| physics.moved(star, reals))?;
    let is_kept = |k: usize| tape.node(outputs[k]) == Node::Input(Input::Shared, k);
    let moves = |corner: usize| (corner * len..(corner + 1) * len).any(|k| !is_kept(k));
    Ok(Body::project(text, star, (0..=physics.stars[star].others).map(moves).collect()))
}

/// The update of a vertex, as WGSL.
fn update(
    tape: &Tape,
    physics: &Physics,
    outputs: &[Id],
    write: impl Fn(&dyn Fn(&[String]) -> String) -> Result<String, String>,
) -> Result<Body, String> {
    let (shared, private) = outputs.split_at(physics.shared.len());
    let changes = |input, ids: &[Id]| -> Vec<bool> {
        ids.iter().enumerate().map(|(k, &id)| tape.node(id) != Node::Input(input, k)).collect()
    };
    let (shared_changes, private_changes) = (changes(Input::Shared, shared), changes(Input::Private, private));
    let text = write(&|outputs| {
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
    let work = |recorder: &Recorder| {
        along::<P, K, _>(recorder, |from, _| {
            // An offer that nothing is known of.
            let offer = K::Key::<Expr>::build(|_| put(Node::Input(Input::Draw, 0)));
            let (shared, private) = K::take(&given(), own::<P>(), offer, from).split();
            [ids(&shared), ids(&private)]
        })
    };
    let ([shared, private], _, tape) = record(Tape::new(shaders::Scalar::F32), stars, work);
    let knows = |ids: &[Id]| tape.reads(ids, |node| matches!(node, Node::Input(Input::Other { .. }, _)));
    match (knows(&shared), knows(&private)) {
        (true, _) => Maker::Shown,
        (_, true) => Maker::Kept,
        _ => Maker::Forgotten,
    }
}

/// Reals of the key of a relaxation, and whether a vertex holds an offer once it has taken it: otherwise it would take it again
/// and again.
fn takes<P: Kernels, K: Relax<P>>(recorder: &Recorder) -> (usize, bool) {
    let holds = along::<P, K, _>(recorder, |from, edge| {
        let offer = K::offer(&given::<P>(), from, edge);
        let (taken, _) = K::take(&given(), own::<P>(), offer, from).split();
        ids(&K::held(&taken)) == ids(&offer)
    });
    (<K::Key<Expr>>::LEN, holds)
}

/// Works on a neighbor along the star of a relaxation.
fn along<P: Kernels, K: Relax<P>, A>(
    recorder: &Recorder,
    work: impl Fn(SharedOf<P, Expr>, <K::Along as Star<1>>::Data<Expr>) -> A,
) -> A {
    let found = Cell::new(None);
    let _: Expr =
        Neighbors::<P, _>::fold(recorder, K::ALONG, put(Node::Literal(Type::Real, 0)), |zero, [from], edge| {
            found.set(Some(work(from, edge)));
            zero
        });
    found.into_inner().expect("a recorder calls the closure of a fold")
}

/// What a projection comes to: the shared state of all corners, then that of the element.
fn projected<P: Kernels, K: Project<P>>(recorder: &Recorder) -> Vec<Id> {
    /// The array of corners of an element of `E`, on symbols.
    type Symbols<P, E> = <E as Elements>::Corners<SharedOf<P, Expr>>;
    let corners = <Symbols<P, K::Along> as Corners<_>>::LEN;
    let (index, name) = (K::Along::INDEX, K::Along::NAME);
    let [shared, state, reals] = [
        <SharedOf<P, Expr>>::LEN,
        <<K::Along as Elements>::State<Expr>>::LEN,
        <<K::Along as Elements>::Data<Expr>>::LEN,
    ];
    recorder.look(Looked { index, name, others: corners - 1, reals });
    // As of a vertex: shared state is that of all corners, private state its own and then its data.
    let part = |of: Input, first: usize| move |k: usize| put(Node::Input(of, first + k));
    let corners = Corners::build(|corner| Record::build(part(Input::Shared, corner * shared)));
    let (own, data) = (Record::build(part(Input::Private, 0)), Record::build(part(Input::Private, state)));
    let (corners, own) = K::project(&given(), corners, own, data);
    corners.as_ref().iter().flat_map(ids).chain(ids(&own)).collect()
}

/// A vertex, shared reals first.
fn vertex<P: Kernels>(new: VertexOf<P, Expr>) -> Vec<Id> {
    let (shared, private) = new.split();
    [ids(&shared), ids(&private)].concat()
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
pub(crate) struct Recorder<'a> {
    stars: &'a [StarShape],
    /// Stars that were looked along.
    looked: RefCell<Vec<Looked>>,
    fault: RefCell<Option<String>>,
}

impl Recorder<'_> {
    /// Elements cut at another length would name vertices that are no neighbors.
    fn look(&self, looked: Looked) {
        let Looked { index, name, others, reals } = looked;
        let wanted = (others, reals);
        self.looked.borrow_mut().push(looked);
        let star = self.stars.get(index).filter(|star| star.name == name);
        let fault = match star.map(StarShape::lengths) {
            Some(given) if given == wanted => return,
            Some((others, reals)) => format!(
                "folds over star {name} with {} others and {} reals, but it was added with {others} others and {reals} reals",
                wanted.0, wanted.1
            ),
            None => format!("folds over star {name}, which was not added: `Program::stars` adds it"),
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
        let reals = <E::Data<Expr> as Record<Expr>>::LEN;
        self.look(Looked { index: E::INDEX, name: E::NAME, others: N, reals });
        let names = A::parts("").into_iter().flat_map(|Part { name, components, .. }| {
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
