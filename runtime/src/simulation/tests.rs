//! An order probe in exact integers, and programs that break the contract.

mod cells;
pub(crate) mod changing;
pub(crate) mod elements;
mod graphs;
mod parts;
mod time;
mod walls;

use super::*;
use crate::conformance::orders;
use crate::number::{Int, Real};
use crate::program::{Incidence, Star, Stars};
use crate::{Mesh, kernels, stars, vertex};
use meshweft_mesh::Graph;
use meshweft_mesh::generate::generate;
use meshweft_schedule::Order;

vertex! {
    /// How often the vertex has been updated; names of the neighbors that had been updated once more than the vertex, and of
    /// those as often, added up over all updates. Neighbors in any other state count a million.
    pub struct Seen<R> { shared count: R, before: R, after: R }
}

stars! {
    /// To every neighbor, with its name.
    pub Edges[1]: R;
}

fn named_edges(mesh: &Mesh, stars: &mut Stars) {
    stars.add(Edges, mesh.edges(), |i: Incidence<2>| f64::from(i.vertices[1]));
}

/// Records in exact integers whom each update saw in which state: forward, or backward.
struct Probe {
    forward: bool,
}

kernels! {
    for Probe: Seen;
    update Look |_, own, around| {
        let (zero, one, half) = (R::lit(0.0), R::lit(1.0), R::lit(0.5));
        let (before, after) = around.fold(Edges, (own.before, own.after), |(before, after), [other], name| {
            let ahead = other.count - own.count;
            let is = |x: R| (ahead - x).abs().less(half);
            let odd = R::select(is(zero) | is(one), zero, R::lit(1e6));
            (before + R::select(is(one), name, zero) + odd, after + R::select(is(zero), name, zero) + odd)
        });
        Seen { count: own.count + one, before, after }
    };
    sum Total("updates", "") |_, own, _| own.count;
}

impl Program for Probe {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        named_edges(mesh, stars);
        Ok(())
    }
    fn initial(&self, _: &Mesh, _: u32) -> Seen<f64> {
        Seen { count: 0.0, before: 0.0, after: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        match self.forward {
            true => stages.sweep(Look, 3),
            false => stages.sweep_backward(Look, 3),
        }
    }
}

#[test]
fn every_update_sees_its_predecessors_new_and_its_successors_old() {
    let mesh = generate("box:11", 2).unwrap();
    let by_name = Graph::from_cells(&mesh).unwrap();
    for (order, forward) in orders().into_iter().flat_map(|order| [(order, true), (order, false)]) {
        let serial = std::iter::once((Backend::Serial, Simd::Off));
        let cpus = [(1, Simd::Auto), (3, Simd::Off), (3, Simd::Bits256), (3, Simd::Bits512)];
        for (backend, simd) in serial.chain(cpus.map(|(threads, simd)| (Backend::Cpu { threads }, simd))) {
            let builder =
                Simulation::builder(mesh.clone(), Probe { forward }).order(order).backend(backend.clone()).simd(simd);
            let mut simulation = builder.precision::<f64>().build().unwrap();
            for _ in 0..4 {
                simulation.step().unwrap();
            }
            let core: &dyn std::any::Any = &*simulation;
            let core: &super::core::Core<f64> = core.downcast_ref().unwrap();
            let (order_of, rank) = (core.layout.places.order(), core.layout.places.rank());
            let graph = by_name.permuted(&core.layout.places);
            for v in 0..mesh.points().len() as u32 {
                let place = rank[v as usize];
                let names = |before: bool| -> f64 {
                    let neighbors = graph.neighbors(place).iter();
                    let in_place = !simulation.schedule().is_double_buffered();
                    let is_before = |u: u32| in_place && if forward { u < place } else { u > place };
                    let chosen = neighbors.filter(|&&u| is_before(u) == before);
                    chosen.map(|&u| f64::from(order_of[u as usize])).sum()
                };
                let expected = Seen { count: 12.0, before: 12.0 * names(true), after: 12.0 * names(false) };
                let seen = simulation.vertex(v).unwrap();
                assert_eq!(seen, expected, "vertex {v}, {order}, forward: {forward}, {backend:?}, {simd:?}");
            }
            assert_eq!(simulation.metrics().unwrap()[0].value, 12.0 * mesh.points().len() as f64);
        }
    }
}

/// Integers that tell any change of order: each update hashes its own number with those of its neighbors.
struct Hash;

kernels! {
    for Hash: Seen;
    update Stir |_, own, around| {
        let count = around.fold(Edges, own.count * R::lit(31.0) + R::lit(7.0), |hash, [other], name| {
            let turned = hash * R::lit(1_664_525.0) + other.count * name;
            R::select(turned.less(R::lit(0.0)), turned - other.count, turned / R::lit(3.0))
        });
        Seen { count, before: count.abs().sqrt(), after: own.before - count.min(own.after) }
    };
    sum Parity("sum", "") |_, own, _| own.count;
}

impl Program for Hash {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        named_edges(mesh, stars);
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Seen<f64> {
        Seen { count: f64::from(v) * 40_503.0, before: -3.0, after: 1e12 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Stir, 3);
        stages.jacobi(Stir, 1);
        stages.sweep_backward(Stir, 1);
    }
}

#[test]
fn integers_have_the_same_bits_on_every_engine() {
    let mesh = generate("box:9", 2).unwrap();
    let mut digests = Vec::new();
    for order in Order::ALL {
        let run = |backend, simd| {
            let builder = Simulation::builder(mesh.clone(), Hash).order(order.resolved(60)).backend(backend).simd(simd);
            let mut simulation = builder.precision::<Int>().build().unwrap();
            (0..3).for_each(|_| simulation.step().unwrap());
            simulation
        };
        let mut oracle = run(Backend::Serial, Simd::Off);
        let metrics = oracle.metrics().unwrap();
        for simd in [Simd::Off, Simd::Bits256, Simd::Bits512] {
            let mut simulation = run(Backend::Cpu { threads: 2 }, simd);
            simulation.compare(&oracle).unwrap_or_else(|e| panic!("{order}, {simd:?}: {e}"));
            assert_eq!(simulation.metrics().unwrap(), metrics, "{order}, {simd:?}");
        }
        digests.push(oracle.digest().unwrap());
    }
    digests.sort();
    digests.dedup();
    assert!(digests.len() >= 5, "the hash tells orders apart");
}

/// A program that counts, whatever its stars.
macro_rules! counting {
    ($name:ident$(($field:ty))?, |$own:pat_param, $around:pat_param| $kernel:expr, |$program:pat_param, $stars:pat_param| $add:expr) => {
        struct $name$(($field))?;
        kernels! { for $name: Count; update Fold |_, $own, $around| $kernel; }
        impl Program for $name {
            fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
                let ($program, $stars) = (self, stars);
                let () = $add;
                Ok(())
            }
            fn initial(&self, _: &Mesh, _: u32) -> Count<f64> {
                Count { count: 0.0 }
            }
            fn step(&self, stages: &mut Stages<Self>) {
                stages.sweep(Fold, 1);
            }
        }
    };
}

vertex! { pub struct Count<R> { shared count: R } }

/// What the simulation of a program on three vertices is refused with.
pub(super) fn refusal<P: Program>(program: P) -> String {
    let error = Simulation::builder(generate("chain:3", 1).unwrap(), program).build().err();
    error.expect("it is refused").to_string()
}

/// Asserts that a message has a part.
#[track_caller]
pub(super) fn says(message: &str, part: &str) {
    assert!(message.contains(part), "{message}\nlacks: {part}");
}

#[test]
fn a_star_that_names_a_vertex_beyond_the_mesh_is_refused() {
    counting!(Wild(u32), |own, _| own, |wild, stars| stars.add(Edges, vec![[0, wild.0]], |_| 0.0));
    says(&refusal(Wild(7)), "element 0 of star Edges names vertex 7, but the mesh has 3");
    assert!(Simulation::builder(generate("chain:3", 1).unwrap(), Wild(2)).build().is_ok());
}

#[test]
fn a_rank_without_a_star_is_refused() {
    stars! { First[1]; Second[1]; }
    counting!(Gap, |own, _| own, |_, stars| stars.add(Second, vec![[0, 1]], |_| ()));
    let _ = First;
    says(&refusal(Gap), "star Second has rank 1, but no star of rank 0 was added");
}

#[test]
fn two_stars_at_one_rank_are_refused() {
    stars! { Ropes[1]; }
    counting!(Twice, |own, _| own, |_, stars| (0..2).for_each(|_| stars.add(Ropes, vec![[0, 1]], |_| ())));
    says(&refusal(Twice), "star Ropes was added twice");
}

#[test]
fn stars_that_were_declared_apart_are_refused() {
    stars! { Ropes[1]; }
    counting!(Apart, |own, _| own, |_, stars| {
        stars.add(Ropes, vec![[0, 1]], |_| ());
        stars.add(Edges, vec![[0, 1]], |_| 0.0);
    });
    says(&refusal(Apart), "were declared apart: declare all stars of a program in one `stars!`");
}

#[test]
fn a_fold_over_a_star_that_was_not_added_is_refused() {
    counting!(
        Forgotten,
        |own, around| Count { count: around.fold(Edges, own.count, |sum, [other], _| sum + other.count) },
        |_, _| ()
    );
    says(&refusal(Forgotten), "kernel Fold folds over star Edges, which was not added: `Program::stars` adds it");
}

/// Edges without data need no word: the mesh has them.
#[test]
fn one_star_of_edges_without_data_is_that_of_the_mesh() {
    stars! { Sides[1]; Faces[2]; }
    counting!(
        Silent,
        |own, around| Count { count: around.fold(Sides, own.count, |sum, [other], ()| sum + other.count) },
        |_, _| ()
    );
    let mut silent = Simulation::builder(generate("chain:4", 1).unwrap(), Silent).order(Order::JACOBI).build().unwrap();
    silent.set_field("count", &[1.0, 10.0, 100.0, 1000.0]).unwrap();
    silent.step().unwrap();
    assert_eq!(silent.field("count").unwrap().values, [11.0, 111.0, 1110.0, 1100.0]);
    // With a second star the program must say which edges it means.
    {
        counting!(
            Two,
            |own, around| Count {
                count: around.fold(Sides, own.count, |sum, [other], ()| sum + other.count)
                    + around.fold(Faces, own.count, |sum, [other, _], ()| sum + other.count)
            },
            |_, _| ()
        );
        says(&refusal(Two), "kernel Fold folds over star Sides, which was not added: `Program::stars` adds it");
    }
}

#[test]
fn a_fold_over_a_star_of_another_name_at_its_rank_is_refused() {
    stars! { Triangles[2]: R; }
    counting!(
        Crooked,
        |own, around| Count { count: around.fold(Edges, own.count, |sum, [other], _| sum + other.count) },
        |_, stars| stars.add(Triangles, vec![[0, 1, 2]], |_| 1.0)
    );
    says(&refusal(Crooked), "kernel Fold folds over star Edges, which was not added");
}

/// The rows would be cut at the wrong places.
#[test]
fn a_fold_over_a_star_of_another_shape_is_refused() {
    struct Two;
    impl Star<1> for Two {
        const INDEX: usize = 0;
        const NAME: &'static str = "Two";
        type Data<R: Real> = R;
    }
    impl Star<2> for Two {
        const INDEX: usize = 0;
        const NAME: &'static str = "Two";
        type Data<R: Real> = R;
    }
    counting!(
        Crooked,
        |own, around| Count { count: around.fold::<1, Two, _>(Two, own.count, |sum, [other], _| sum + other.count) },
        |_, stars| stars.add::<2, 3, Two>(Two, vec![[0, 1, 2]], |_| 1.0)
    );
    says(&refusal(Crooked), "1 others and 1 reals, but it was added with 2 others");
}
