//! Projections: elements that move their corners.

use super::{Elements, Given, Kernel, Kernels, SharedOf};
use crate::number::Real;

/// The shared state of the corners of an element of the star `E`: an array.
pub type CornersOf<P, E, R> = <E as Elements>::Corners<SharedOf<P, R>>;
/// The state of an element of the star `E`.
pub type StateOf<E, R> = <E as Elements>::State<R>;
/// Both.
pub type Projected<P, E, R> = (CornersOf<P, E, R>, StateOf<E, R>);

/// What an element does with its own corners, in place: constraints that are satisfied one after the other.
/// [`kernels!`](crate::kernels) writes it as `project`.
///
/// It reads and writes the shared state of all corners, in the order in which the element was added, and the state of the
/// element, which [`stars!`](crate::stars) declares behind `=>` and which is zero at the start. Vertices that are
/// [fixed](crate::Program::fixed) keep their state.
///
/// The order of a sweep is the simulation's, on another graph: elements are numbered by the numbers of their corners along the curve, the
/// least first, and joined if they share a corner. Of two that are joined the later one reads what the earlier one has left. As for
/// vertices, the loop over all elements in that order specifies the result, bit for bit, whatever the threads and lanes. `p.vertex()`
/// is the number of the element. `Order::JACOBI` has no such order: it is refused, as are hosts with GPUs and kernels as tapes.
///
/// A chain of links without give hangs from its first vertex. The multiplier of a link adds up what has pulled at it: the
/// weight of all that hangs below.
/// Source: extended position-based dynamics, Macklin, Müller, Chentanez 2016, equations 17 and 18.
///
/// ```
/// use meshweft::mesh::generate::generate;
/// use meshweft::{Length, Mesh, Program, Real, Simulation, Stages, Stars, kernels, record, stars, vertex};
/// use meshweft::nalgebra::Vector3;
/// vertex! { pub struct Bead<R> { shared x: Vector3<R>, shared inverse_mass: R, before: Vector3<R> } }
/// record! { pub struct Pull<R> { multiplier: R } }
/// stars! { pub Links[1]: R => Pull<R>; }
/// const DT: f64 = 0.01;
/// struct Chain;
/// kernels! {
///     for Chain: Bead;
///     map Fall |_, own| {
///         let v = (own.x - own.before) * R::lit(0.9) - Vector3::y() * R::lit(9.81 * DT * DT);
///         Bead { x: own.x + v, before: own.x, ..own }
///     };
///     project Reset(Links) |_, corners, _, _| (corners, Pull { multiplier: R::lit(0.0) });
///     project Stretch[compliance](Links) |_, [mut a, mut b], own, length| {
///         let (d, soft) = (b.x - a.x, compliance / R::lit(DT * DT));
///         let now = d.length();
///         let more = (length - now - soft * own.multiplier) / (a.inverse_mass + b.inverse_mass + soft);
///         let pull = d * (more / now);
///         a.x -= pull * a.inverse_mass;
///         b.x += pull * b.inverse_mass;
///         ([a, b], Pull { multiplier: own.multiplier + more })
///     };
/// }
/// impl Program for Chain {
///     fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
///         stars.add(Links, mesh.edges(), |_| 0.125);
///         Ok(())
///     }
///     fn initial(&self, _: &Mesh, v: u32) -> Bead<f64> {
///         let x = Vector3::y() * -0.125 * f64::from(v);
///         Bead { x, inverse_mass: if v == 0 { 0.0 } else { 2.0 }, before: x }
///     }
///     fn fixed(&self, _: &Mesh, v: u32) -> bool {
///         v == 0
///     }
///     fn step(&self, stages: &mut Stages<Self>) {
///         stages.map(Fall);
///         stages.project(Reset, 1);
///         stages.project(Stretch { compliance: 0.001 }, 60);
///     }
/// }
/// let mut chain = Simulation::builder(generate("chain:9", 1)?, Chain).precision::<f64>().build()?;
/// for _ in 0..300 {
///     chain.step()?;
/// }
/// let y = chain.field("x")?.values;
/// let force = chain.element_field("Links", "multiplier")?.values;
/// for link in 0..8 {
///     // Half a kilogram a bead: what hangs at a link, and how long that makes it.
///     let weight = 0.5 * 9.81 * f64::from(8 - link as u32);
///     assert!((y[3 * link + 1] - y[3 * link + 4] - 0.125 - 0.001 * weight).abs() < 1e-6);
///     assert!((force[link] / (DT * DT) + weight).abs() < 1e-3);
/// }
/// # Ok::<(), meshweft::Error>(())
/// ```
pub trait Project<P: Kernels>: Kernel {
    /// The star whose elements are projected.
    type Along: Elements;

    /// The new shared state of the corners, and the new state of the element.
    fn project<R: Real>(
        given: &Given<P, R>,
        corners: CornersOf<P, Self::Along, R>,
        own: StateOf<Self::Along, R>,
        data: <Self::Along as Elements>::Data<R>,
    ) -> Projected<P, Self::Along, R>;
}
