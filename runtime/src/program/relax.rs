//! Relaxations: labels that spread and distances that shrink.

use super::{Given, Kernel, Kernels, Kind, Neighbors, Record, SharedOf, Star, Update, Vertex, VertexOf};
use crate::number::{Integer, Real};

/// An update by which a vertex takes the least that its neighbors offer, where that is less than what it holds (Bellman 1958): levels
/// of a breadth-first search, distances, labels of components. [`kernels!`](crate::kernels) writes it as `relax`.
///
/// It is gather, apply and scatter in three formulas: `offer` is what comes along an edge, the least of all is gathered, `take`
/// applies it, and a vertex that has taken something offers to its own neighbors next. So only those around vertices that have
/// changed are looked at, in either direction: where few have changed they push to their neighbors, where many have, those that are
/// left look for them.
///
/// It is an [`Update`] too, and quiet: it runs on every engine and in every order. A vertex that holds [nothing](Relax::nothing) offers
/// nothing. Of equal offers it is the one from the first neighbor along the curve that is taken.
/// The formulas may not ask for the number of the vertex: an offer is the same for all who hear it.
///
/// ```
/// use meshweft::{Mesh, Program, Simulation, Stages, Stars, kernels, stars, vertex};
/// vertex! { pub struct Town<R> { shared distance: R } }
/// stars! { pub Roads[1]: R; }
/// struct Ways(Vec<([u32; 2], f64)>);
/// kernels! {
///     for Ways: Town;
///     relax Drive(Roads: R) {
///         held |own| own.distance;
///         offer |_, from, length| from.distance + length;
///         take |_, _, distance, _| Town { distance };
///     }
/// }
/// impl Program for Ways {
///     fn stars(&self, _: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
///         let (roads, lengths): (Vec<_>, Vec<f64>) = self.0.iter().copied().unzip();
///         stars.add(Roads, roads, move |i| lengths[i.element]);
///         Ok(())
///     }
///     fn initial(&self, _: &Mesh, v: u32) -> Town<f64> {
///         Town { distance: if v == 0 { 0.0 } else { f64::from(f32::MAX) } } // the latter is nothing
///     }
///     fn step(&self, stages: &mut Stages<Self>) {
///         stages.fixpoint(Drive, 100);
///     }
/// }
/// let roads = vec![([0, 1], 7.0), ([0, 2], 2.0), ([2, 1], 3.0)];
/// let mesh = Mesh::from_graph(3, roads.iter().map(|road| road.0).collect())?;
/// let mut ways = Simulation::builder(mesh, Ways(roads)).build()?;
/// ways.step()?;
/// assert_eq!(ways.field("distance")?.values, [0.0, 5.0, 2.0]);
/// # Ok::<(), meshweft::Error>(())
/// ```
pub trait Relax<P: Kernels>: Kernel {
    /// Along which edges offers come.
    type Along: Star<1>;
    /// The same as a value.
    const ALONG: Self::Along;
    /// What is held and offered: `R` or `R::Int`.
    type Key<R: Real>: Record<R>;

    /// What a vertex holds.
    fn held<R: Real>(own: &SharedOf<P, R>) -> Self::Key<R>;

    /// What a neighbor offers along an edge.
    fn offer<R: Real>(
        given: &Given<P, R>,
        from: SharedOf<P, R>,
        edge: <Self::Along as Star<1>>::Data<R>,
    ) -> Self::Key<R>;

    /// The vertex after it has taken an offer; it must then hold that. `from`: the neighbor.
    fn take<R: Real>(
        given: &Given<P, R>,
        own: VertexOf<P, R>,
        offer: Self::Key<R>,
        from: SharedOf<P, R>,
    ) -> VertexOf<P, R>;

    /// What is held by a vertex that nothing has reached: the largest real of 32 bits, or the largest integer.
    fn nothing<R: Real>() -> Self::Key<R> {
        Record::build(|k| match <Self::Key<R>>::kind(k) {
            Kind::Real => R::lit(f64::from(f32::MAX)),
            Kind::Integer => R::hold_int(R::Int::lit(i32::MAX)),
        })
    }
}

/// Whether one key is less than another.
#[inline(always)]
pub(crate) fn less<R: Real, A: Record<R>>(a: A, b: A) -> R::Mask {
    let (a, b) = (key_real(a), key_real(b));
    match A::kind(0) {
        Kind::Real => a.less(b),
        Kind::Integer => a.held_int().less(b.held_int()),
    }
}

/// The number that a key is, in the place of a real.
#[inline(always)]
pub(crate) fn key_real<R: Real, A: Record<R>>(key: A) -> R {
    let mut slot = R::lit(0.0);
    key.each(|_, x| slot = x);
    slot
}

#[inline(always)]
fn select<R: Real, A: Record<R>>(mask: R::Mask, yes: A, no: A) -> A {
    yes.zip(no, &mut |yes, no| R::select(mask, yes, no))
}

impl<P: Kernels, K: Relax<P>> Update<P> for K {
    const QUIET: bool = true;

    #[inline(always)]
    fn update<R: Real>(given: &Given<P, R>, own: VertexOf<P, R>, around: &impl Neighbors<P, R>) -> VertexOf<P, R> {
        let (shared, private) = own.split();
        let nothing = K::nothing::<R>();
        let (offer, from) = around.fold(K::ALONG, (nothing, shared), |(least, of), [from], edge| {
            let reached = less(K::held(&from), nothing);
            let offer = select(reached, K::offer(given, from, edge), nothing);
            let is_less = less(offer, least);
            (select(is_less, offer, least), select(is_less, from, of))
        });
        let (taken, kept) = K::take(given, own, offer, from).split();
        let takes = less(offer, K::held(&shared));
        Vertex::join(select(takes, taken, shared), select(takes, kept, private))
    }
}
