//! Vertices beside those of the mesh: every engine updates the part that a stage names, and no other.

use super::graphs::engines;
#[cfg(feature = "cluster")]
use super::graphs::hosts;
#[cfg(feature = "gpu")]
use crate::conformance::gpu_or_skip;
use crate::conformance::orders;
use crate::number::Int;
use crate::{Backend, Mesh, Program, Result, Simd, Simulation, Stages, Stars, kernels, stars, vertex};
use meshweft_mesh::generate::generate;
use meshweft_schedule::Order;
use std::sync::Arc;

vertex! { struct Node<R> { shared word: R, count: R } }
stars! {
    Before[1];
    After[1];
    Down[1]: R;
    Up[1]: R;
}

/// Hashes what it reads. Every fourth vertex of a part has one of the next part beside it.
struct Levels;

/// Vertices of the mesh, and of the parts behind it.
const LENGTHS: [u32; 3] = [289, 73, 19];

/// Where parts start, and the end.
fn starts() -> [u32; 4] {
    let [a, b, c] = LENGTHS;
    [0, a, a + b, a + b + c]
}

/// Pairs of a vertex and the coarser one that stands for it.
fn links() -> Vec<[u32; 2]> {
    let [first, second, third, _] = starts();
    let down = |start: u32, below: u32, len: u32| (0..len).map(move |v| [start + v, below + v / 4]);
    down(first, second, LENGTHS[0]).chain(down(second, third, LENGTHS[1])).collect()
}

kernels! {
    for Levels: Node;
    update Mix[salt] |_, own, around| {
        let word = own.word * R::lit(31.0) + salt;
        let word = around.fold(Before, word, |hash, [other], ()| hash * R::lit(25.0) + other.word);
        let word = around.fold(After, word, |hash, [other], ()| hash * R::lit(23.0) + other.word);
        Node { word, count: own.count + R::lit(1.0) }
    };
    update Gather |_, own, around| {
        let word = around.fold(Down, own.word, |hash, [other], name| hash * R::lit(7.0) + other.word + name);
        Node { word, count: own.count + R::lit(1.0) }
    };
    update Scatter |_, own, around| {
        let word = around.fold(Up, own.word, |hash, [other], name| hash * R::lit(5.0) + other.word - name);
        Node { word, count: own.count + R::lit(1.0) }
    };
    quiet update Rest |_, own, _| own;
    map Turn |_, own| Node { word: own.word * R::lit(3.0), count: own.count + R::lit(1.0) };
    sum Total |_, own, _| own.count;
}

impl Program for Levels {
    fn parts(&self, mesh: &Mesh) -> Vec<Vec<[f64; 3]>> {
        let coarse: Vec<[f64; 3]> = mesh.points().iter().step_by(4).copied().collect();
        let coarser = coarse.iter().step_by(4).copied().collect();
        vec![coarse, coarser]
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let [_, first, second, end] = starts();
        let chain = |start: u32, end: u32| (start + 1..end).map(|v| [v - 1, v]);
        let edges: Vec<[u32; 2]> =
            mesh.edges().into_iter().chain(chain(first, second)).chain(chain(second, end)).collect();
        let edges = Arc::new(edges);
        stars.add_earlier(Before, edges.clone(), |_| ());
        stars.add_later(After, edges, |_| ());
        stars.add_directed(Down, Arc::new(links()), |i| i.element as f64);
        stars.add_directed(Up, Arc::new(links().into_iter().map(|[a, b]| [b, a]).collect()), |i| i.element as f64);
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Node<f64> {
        Node { word: f64::from(v * 7919 % 1009), count: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Mix { salt: 5.0 }, 1);
        for part in 0..2 {
            stages.on(part, |stages| stages.sweep(Mix { salt: 7.0 }, 2));
            stages.on(part + 1, |stages| stages.sweep(Gather, 1));
        }
        stages.on(2, |stages| {
            stages.sweep_backward(Mix { salt: 9.0 }, 3);
            stages.map(Turn);
        });
        for part in [1, 0] {
            stages.on(part, |stages| {
                stages.sweep(Scatter, 1);
                stages.sweep_backward(Mix { salt: 11.0 }, 1);
            });
        }
        stages.map(Turn);
    }
}

/// How often a step updates each vertex of a part.
const TIMES: [i32; 3] = [6, 7, 7];

fn built(backend: Backend, simd: Simd, order: Order) -> Simulation<Levels, Int> {
    let mesh = generate("sheet:17", 1).unwrap();
    Simulation::builder(mesh, Levels).backend(backend).simd(simd).order(order).precision::<Int>().build().unwrap()
}

/// Digest, and what was measured, after two steps.
fn after(backend: Backend, simd: Simd, order: Order) -> (String, f64) {
    let mut run = built(backend, simd, order);
    (0..2).for_each(|_| run.step().unwrap());
    (run.digest().unwrap(), run.measure(Total).unwrap())
}

#[test]
fn every_engine_updates_the_part_that_a_stage_names_and_no_other() {
    for order in orders().into_iter().filter(|order| !order.key.is_double_buffered()) {
        let mut run = built(Backend::Serial, Simd::Off, order);
        (0..2).for_each(|_| run.step().unwrap());
        for (part, ends) in starts().windows(2).enumerate() {
            for v in ends[0]..ends[1] {
                assert_eq!(run.vertex(v).unwrap().count, Int(2 * TIMES[part]), "{order}: vertex {v}");
            }
        }
        let expected = after(Backend::Serial, Simd::Off, order);
        // Fields and measures are of the mesh.
        assert_eq!(expected.1, f64::from(2 * TIMES[0]) * f64::from(LENGTHS[0]), "{order}");
        assert_eq!(run.field("word").unwrap().values.len(), LENGTHS[0] as usize);
        for (backend, simd) in engines() {
            assert_eq!(after(backend, simd, order), expected, "{order}");
        }
        #[cfg(feature = "cluster")]
        for count in [2, 3] {
            assert_eq!(after(hosts(count), Simd::Bits256, order), expected, "{order}, {count} hosts");
        }
        #[cfg(feature = "gpu")]
        if let Some(backend) = gpu_or_skip() {
            assert_eq!(after(backend, Simd::Auto, order), expected, "{order}, GPU");
        }
    }
}

#[test]
fn a_part_that_is_not_there_or_updated_at_once_is_refused() {
    let refused = |order, tell: fn(&mut Stages<Levels>)| {
        built(Backend::Serial, Simd::Off, order).run(tell).unwrap_err().to_string()
    };
    let error = refused(Order::BLOCKED, |stages| stages.on(3, |stages| stages.map(Turn)));
    assert!(error.contains("part 3, but there are 3"), "{error}");
    let error = refused(Order::BLOCKED, |stages| stages.on(1, |stages| stages.jacobi(Gather, 1)));
    assert!(error.contains("kernel Gather") && error.contains("part 1"), "{error}");
    let error = refused(Order::BLOCKED, |stages| stages.on(1, |stages| stages.fixpoint(Rest, 1)));
    assert!(error.contains("fixpoint") && error.contains("part 1"), "{error}");
    let error = built(Backend::Serial, Simd::Off, Order::JACOBI).step().unwrap_err().to_string();
    assert!(error.contains("sweep in an order that is in place"), "{error}");
}
