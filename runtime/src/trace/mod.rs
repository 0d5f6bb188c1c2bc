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
use crate::program::{Kernel, Map, Neighbors, Program, Record, Reduce, Star, StarPlan, short_name};
use expr::{Expr, put, with_tape};
use meshweft_shaders as shaders;
use shaders::{Body, Physics, Scalar};
use tape::{Fold, Id, Input, Node, Tape};
use write::Writer;

/// Names of the records of a program, for its shaders. `plans`: its stars, in order.
pub(crate) fn physics<P: Program>(plans: &[StarPlan], scalar: Scalar) -> Physics {
    let star = |plan: &StarPlan| shaders::Star {
        name: plan.name.into(),
        others: plan.corners - 1,
        data: shaders::Record::new(&format!("Data{}", plan.index), &plan.parts, scalar),
    };
    Physics {
        scalar,
        parameters: record::<P::Parameters<Expr>>("Parameters", scalar),
        shared: record::<P::Shared<Expr>>("Shared", scalar),
        private: record::<P::Private<Expr>>("Private", scalar),
        stars: plans.iter().map(star).collect(),
    }
}

fn record<A: Record<Expr>>(name: &str, scalar: Scalar) -> shaders::Record {
    shaders::Record::new(name, &parts::<A>(), scalar)
}

fn parts<A: Record<Expr>>() -> Vec<(String, usize)> {
    A::parts("").into_iter().map(|part| (part.name, part.components)).collect()
}

/// The update of a kernel, as WGSL.
///
/// # Errors
/// [`Error::Contract`] names the kernel and what cannot be written.
pub(crate) fn kernel<P: Program, K: Kernel<P>>(physics: &Physics) -> Result<Body> {
    update(physics, K::NAME, |neighbors| K::update(&input(Input::Parameters), own(), private(), neighbors))
}

/// The update of a map, as WGSL.
///
/// # Errors
/// As [`kernel`].
pub(crate) fn map<P: Program, K: Map<P>>(physics: &Physics) -> Result<Body> {
    update(physics, K::NAME, |_| K::update(&input(Input::Parameters), own(), private()))
}

/// The measure of a reduction, as WGSL.
///
/// # Errors
/// As [`kernel`].
pub(crate) fn measure<P: Program, K: Reduce<P>>(physics: &Physics) -> Result<Body> {
    start(physics.scalar);
    let output = K::measure::<Expr>(&input(Input::Parameters), own(), private(), &Recorder).0;
    let text = write(physics, K::NAME, &[output], |outputs| outputs[0].clone())?;
    Ok(Body::measure(text))
}

fn update<S: Record<Expr>, Q: Record<Expr>>(
    physics: &Physics,
    name: &str,
    run: impl FnOnce(&Recorder) -> (S, Q),
) -> Result<Body> {
    start(physics.scalar);
    let (shared, private) = run(&Recorder);
    let (shared, private) = (ids(&shared), ids(&private));
    let outputs: Vec<Id> = shared.iter().chain(&private).copied().collect();
    let changes = |input, ids: &[Id]| -> Vec<bool> {
        let is_changed = |(k, &id): (usize, &Id)| with_tape(|tape| tape.node(id)) != Node::Input(input, k);
        ids.iter().enumerate().map(is_changed).collect()
    };
    let (shared_changes, private_changes) = (changes(Input::Shared, &shared), changes(Input::Private, &private));
    let text = write(physics, name, &outputs, |outputs| {
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

fn start(scalar: Scalar) {
    with_tape(|tape| *tape = Tape::new(scalar));
}

fn write(physics: &Physics, name: &str, outputs: &[Id], result: impl FnOnce(&[String]) -> String) -> Result<String> {
    with_tape(|tape| Writer::new(tape, physics, outputs).body(outputs, result))
        .map_err(|fault| Error::Contract(format!("kernel {name} cannot run on a GPU: {fault}")))
}

fn ids<A: Record<Expr>>(record: &A) -> Vec<Id> {
    let mut ids = Vec::with_capacity(A::LEN);
    record.each(|_, x| ids.push(x.0));
    ids
}

fn input<A: Record<Expr>>(input: Input) -> A {
    A::build(|k| put(Node::Input(input, k)))
}

fn own<A: Record<Expr>>() -> A {
    input(Input::Shared)
}

fn private<A: Record<Expr>>() -> A {
    input(Input::Private)
}

/// Records each fold once.
struct Recorder;

impl<S: Record<Expr>> Neighbors<Expr, S> for Recorder {
    fn fold<const N: usize, E: Star<N>, A: Record<Expr>>(
        &self,
        _: E,
        init: A,
        f: impl Fn(A, [S; N], E::Data<Expr>) -> A,
    ) -> A {
        let names = parts::<A>().into_iter().flat_map(|(name, components)| {
            (0..components).map(move |k| match components {
                1 => name.clone(),
                2..=4 => format!("{name}_{}", ["x", "y", "z", "w"][k]),
                _ => format!("{name}_{k}"),
            })
        });
        let fold = Fold {
            star: E::INDEX,
            name: short_name::<E>().into(),
            others: N,
            names: names.collect(),
            init: ids(&init),
            next: Vec::new(),
            parent: None,
            end: 0,
        };
        let fold = with_tape(|tape| tape.open(fold));
        let gathered = A::build(|k| put(Node::Gathered { fold, k }));
        let others = std::array::from_fn(|other| input(Input::Other { fold, other }));
        let next = f(gathered, others, input(Input::Data { fold }));
        with_tape(|tape| tape.close(ids(&next)));
        A::build(|k| put(Node::Result { fold, k }))
    }
}
