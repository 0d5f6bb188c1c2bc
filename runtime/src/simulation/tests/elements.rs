//! Elements that move their corners, on random graphs: every engine has the bits of the definition, written out here once more.

#[cfg(feature = "cluster")]
use super::graphs::hosts;
use super::graphs::{engines, random, seeds};
#[cfg(feature = "gpu")]
use crate::conformance::gpu_or_skip;
use crate::number::{Int, Length, Number};
use crate::program::{Incidence, Stars};
use crate::{
    Backend, Error, Mesh, Program, Renewal, Result, Simd, Simulation, Stages, kernels, mesh::Graph, record, stars,
    vertex,
};
use meshweft_schedule::{Order, Schedule};
use nalgebra::Vector3;
use std::sync::Arc;

stars! {
    Knots[1]: R => Seen<R>;
    Braids[2];
}
vertex! { pub struct Cell<R> { shared word: R, shared most: R, count: R } }
record! { pub struct Seen<R> { hash: R, times: R } }

/// Hashes what it reads, so that any other order of reads and writes shows.
#[derive(Clone, Debug)]
struct Weaving {
    knots: Arc<Vec<[u32; 2]>>,
    braids: Arc<Vec<[u32; 3]>>,
    /// One vertex of so many keeps its state; none if it is 0.
    fixed: u32,
}

/// More rounds than hosts may be apart.
const TIMES: usize = 6;

kernels! {
    for Weaving: Cell;
    project Knot[salt](Knots) |p, [mut a, mut b], own, name| {
        let hash = a.word * R::lit(31.0) + b.word * R::lit(17.0) + own.hash * R::lit(7.0) + name + salt;
        let hash = hash + R::from_int(p.vertex());
        (a.word, b.word) = (a.word * R::lit(3.0) + hash, b.word - hash * R::lit(5.0));
        ([a, b], Seen { hash, times: own.times + R::lit(1.0) })
    };
    project Braid(Braids) |_, [mut a, mut b, mut c], (), ()| {
        let hash = a.word * R::lit(13.0) + b.most * R::lit(5.0) - c.word;
        (c.most, a.word) = (c.most + hash * R::lit(9.0) - a.word, a.word + hash);
        b.word = b.word * R::lit(3.0) + c.most;
        ([a, b, c], ())
    };
    update Stir |_, own, around| {
        let word = around.fold(Knots, own.word, |hash, [other], _| hash * R::lit(25.0) + other.word + other.most);
        Cell { word, count: own.count + R::lit(1.0), ..own }
    };
    /// The greatest of all around: changes less and less, until something is braided.
    quiet update Spread |_, own, around| {
        let most = around.fold(Knots, own.most, |most, [other], _| most.max(other.most));
        Cell { most, ..own }
    };
    max Top |_, own, _| own.word;
}

impl Program for Weaving {
    fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add_shared(Knots, self.knots.clone(), |i: Incidence<2>| name(i.element, i.corner).into());
        stars.add_shared(Braids, self.braids.clone(), |_| ());
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Cell<f64> {
        Cell { word: f64::from(v * 7919 % 1009), most: f64::from(v), count: 0.0 }
    }
    fn fixed(&self, _: &Mesh, v: u32) -> bool {
        is_fixed(self.fixed, v)
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.project(Knot { salt: 5.0 }, TIMES);
        stages.sweep(Stir, 1);
        stages.sweep(Spread, 2);
        stages.project(Braid, 1);
        stages.project(Knot { salt: 6.0 }, 1);
        stages.sweep_backward(Stir, 1);
        stages.sweep(Spread, 2);
    }
}

fn is_fixed(one_of: u32, v: u32) -> bool {
    one_of > 0 && v.is_multiple_of(one_of)
}

/// What an incidence of a knot has as data.
fn name(element: usize, corner: usize) -> i32 {
    element as i32 + 1000 * corner as i32
}

/// The state, by number, and by knot.
#[derive(Clone, Debug, PartialEq)]
struct Cells {
    word: Vec<i32>,
    most: Vec<i32>,
    count: Vec<i32>,
    hash: Vec<i32>,
    times: Vec<i32>,
}

/// Elements in the order in which they are projected, and the number of each: sorted by their corners, joined if they share one.
fn in_order<const K: usize>(elements: &[[u32; K]], order: Order) -> Vec<(u32, usize)> {
    let mut numbers: Vec<usize> = (0..elements.len()).collect();
    numbers.sort_by_key(|&e| {
        let mut corners = elements[e];
        corners.sort_unstable();
        (corners, e)
    });
    let mut pairs = Vec::new();
    for (i, &e) in numbers.iter().enumerate() {
        let meets = |&j: &usize| elements[numbers[j]].iter().any(|v| elements[e].contains(v));
        pairs.extend((0..i).filter(meets).map(|j| [j as u32, i as u32]));
    }
    let graph = Graph::from_edges(numbers.len(), &pairs).unwrap();
    let schedule = Schedule::new(&graph, order, 512).unwrap();
    schedule.permutation().order().iter().map(|&number| (number, numbers[number as usize])).collect()
}

/// A step by its definition. `order`: numbers in the order of the schedule; `elements`: knots and braids in theirs.
fn step(cells: &mut Cells, program: &Weaving, order: &[u32], elements: [&[(u32, usize)]; 2]) {
    let [knots, braids] = elements;
    let is_free = |v: u32| !is_fixed(program.fixed, v);
    let knot = |cells: &mut Cells, salt: i32| {
        for &(number, e) in knots {
            let [a, b] = program.knots[e].map(|v| cells.word[v as usize]);
            let hash = a.wrapping_mul(31).wrapping_add(b.wrapping_mul(17)).wrapping_add(cells.hash[e].wrapping_mul(7));
            let hash = hash.wrapping_add(name(e, 0)).wrapping_add(salt).wrapping_add(number as i32);
            (cells.hash[e], cells.times[e]) = (hash, cells.times[e] + 1);
            let new = [a.wrapping_mul(3).wrapping_add(hash), b.wrapping_sub(hash.wrapping_mul(5))];
            for (v, new) in program.knots[e].into_iter().zip(new).filter(|of| is_free(of.0)) {
                cells.word[v as usize] = new;
            }
        }
    };
    let around = |v: u32| {
        let mut rows: Vec<(u32, usize)> = Vec::new();
        for (e, knot) in program.knots.iter().enumerate() {
            rows.extend((0..2).filter(|&k| knot[k] == v).map(|k| (knot[1 - k], e)));
        }
        rows.sort_unstable();
        rows
    };
    let around: Vec<Vec<(u32, usize)>> = (0..order.len() as u32).map(around).collect();
    let stir = |cells: &mut Cells, v: u32| {
        let hash = around[v as usize].iter().fold(cells.word[v as usize], |hash, &(u, _)| {
            hash.wrapping_mul(25).wrapping_add(cells.word[u as usize]).wrapping_add(cells.most[u as usize])
        });
        (cells.word[v as usize], cells.count[v as usize]) = (hash, cells.count[v as usize] + 1);
    };
    let spread = |cells: &mut Cells| {
        for _ in 0..2 {
            for &v in order.iter().filter(|&&v| is_free(v)) {
                let others = around[v as usize].iter().map(|&(u, _)| cells.most[u as usize]);
                cells.most[v as usize] = others.fold(cells.most[v as usize], i32::max);
            }
        }
    };
    (0..TIMES).for_each(|_| knot(cells, 5));
    order.iter().filter(|&&v| is_free(v)).for_each(|&v| stir(cells, v));
    spread(cells);
    for &(_, e) in braids {
        let corners = program.braids[e].map(|v| v as usize);
        let [a, b, c] = corners.map(|v| (cells.word[v], cells.most[v]));
        let hash = a.0.wrapping_mul(13).wrapping_add(b.1.wrapping_mul(5)).wrapping_sub(c.0);
        let most = c.1.wrapping_add(hash.wrapping_mul(9)).wrapping_sub(a.0);
        let new = [(a.0.wrapping_add(hash), a.1), (b.0.wrapping_mul(3).wrapping_add(most), b.1), (c.0, most)];
        for (v, new) in corners.into_iter().zip(new).filter(|of| is_free(of.0 as u32)) {
            (cells.word[v], cells.most[v]) = new;
        }
    }
    knot(cells, 6);
    order.iter().rev().filter(|&&v| is_free(v)).for_each(|&v| stir(cells, v));
    spread(cells);
}

fn ints(values: Vec<f64>) -> Vec<i32> {
    values.iter().map(|&x| x as i32).collect()
}

fn cells(run: &Simulation<Weaving, Int>) -> Cells {
    let [word, most, count] = ["word", "most", "count"].map(|name| ints(run.field(name).unwrap().values));
    let [hash, times] = ["hash", "times"].map(|name| ints(run.element_field("Knots", name).unwrap().values));
    Cells { word, most, count, hash, times }
}

/// A program on a random graph of `n` vertices; some elements come twice, some with their corners turned.
fn weaving(n: u64, random: &mut impl FnMut(u64) -> u64) -> Weaving {
    let reach = 1 + random(n);
    let mut near = |v: u64| ((v + random(reach)) % n) as u32;
    let mut knots: Vec<[u32; 2]> = (0..2 * n).map(|i| [(i * 7 % n) as u32, near(i * 7 % n)]).collect();
    let mut braids: Vec<[u32; 3]> = (0..n).map(|i| [near(i), (i % n) as u32, near(i)]).collect();
    knots.retain(|[a, b]| a != b);
    braids.retain(|[a, b, c]| a != b && b != c && c != a);
    knots.truncate(random(2 * n + 1) as usize);
    Weaving { knots: Arc::new(knots), braids: Arc::new(braids), fixed: [0, 3, 7][random(3) as usize] }
}

#[test]
fn random_graphs_whose_elements_are_projected_have_the_bits_of_the_definition() {
    for seed in seeds(30) {
        let mut engines = engines().to_vec();
        #[cfg(feature = "cluster")]
        engines.extend([1 + seed % 3, 2 + seed % 4].map(|count| (hosts(count as u32), Simd::Auto)));
        #[cfg(feature = "gpu")]
        engines.extend((seed % 6 == 0).then(gpu_or_skip).flatten().map(|gpu| (gpu, Simd::Auto)));
        let mut random = random(seed + 1);
        let n = 1 + random(if seed % 4 == 0 { 600 } else { 100 });
        let program = weaving(n, &mut random);
        let block = [1, 8, 64, 512][random(4) as usize];
        for order in Order::ALL.map(|order| order.resolved(block)) {
            if order.key.is_double_buffered() {
                continue;
            }
            let [knots, braids] = [in_order(&program.knots, order), in_order(&program.braids, order)];
            for (backend, simd) in &engines {
                let mesh = Mesh::from_graph(n as usize, program.knots.to_vec()).unwrap();
                let builder = Simulation::builder(mesh, program.clone()).order(order).backend(backend.clone());
                let mut run = builder.simd(*simd).audit(true).precision::<Int>().build().unwrap();
                // The mesh has no points in space, so that numbers along the curve are those of the mesh.
                let vertices = run.schedule().permutation().order().to_vec();
                let mut expected = cells(&run);
                for i in 0..3 {
                    run.step().unwrap();
                    step(&mut expected, &program, &vertices, [&knots, &braids]);
                    let of = format!("step {i} of seed {seed} under {} on {backend:?} {simd:?}", run.order());
                    assert_eq!(cells(&run), expected, "{of}");
                }
                run.audit().unwrap();
            }
        }
    }
}

/// A run of about twice as many elements, which are projected.
#[cfg(any(feature = "gpu", feature = "cluster"))]
pub(crate) fn woven(vertices: u64, order: Order, backend: Backend) -> Result<Simulation<impl Program, Int>> {
    let program = weaving(vertices, &mut random(17));
    let mesh = Mesh::from_graph(vertices as usize, program.knots.to_vec())?;
    Simulation::builder(mesh, program).order(order).backend(backend).precision::<Int>().build()
}

/// What a run keeps is gone back to, and gone on from by another engine.
#[test]
fn the_state_of_elements_is_saved_and_written_and_counts_in_digests() {
    is_kept_by(&Backend::Cpu { threads: 2 });
}

#[test]
#[cfg(feature = "cluster")]
fn hosts_keep_the_state_of_elements() {
    is_kept_by(&hosts(3));
}

#[test]
#[cfg(feature = "gpu")]
fn a_gpu_keeps_the_state_of_elements() {
    gpu_or_skip().iter().for_each(is_kept_by);
}

fn is_kept_by(backend: &Backend) {
    let program = weaving(200, &mut random(9));
    let build = |backend: Backend| {
        let mesh = Mesh::from_graph(200, program.knots.to_vec()).unwrap();
        Simulation::builder(mesh, program.clone()).order(Order::blocked(64)).backend(backend).precision::<Int>()
    };
    let mut run = build(backend.clone()).build().unwrap();
    run.step().unwrap();
    let (saved, before, digest) = (run.save().unwrap(), cells(&run), run.digest().unwrap());
    let folder = tempfile::tempdir().unwrap();
    run.checkpoint(folder.path()).unwrap();
    run.step().unwrap();
    let after = cells(&run);
    run.restore(&saved).unwrap();
    assert_eq!((cells(&run), run.digest().unwrap()), (before, digest.clone()));
    run.step().unwrap();
    assert_eq!(cells(&run), after);
    let mut resumed = build(Backend::Serial).resume(folder.path()).unwrap();
    assert_eq!(resumed.digest().unwrap(), digest);
    resumed.step().unwrap();
    assert_eq!(cells(&resumed), after);
    // Vertices as they are, elements as they were.
    let words = resumed.field("word").unwrap().values;
    let digest = resumed.digest().unwrap();
    resumed.run(|stages| stages.project(Knot { salt: 0.0 }, 1)).unwrap();
    for (name, values) in [("word", words), ("most", resumed.field("most").unwrap().values)] {
        resumed.set_field(name, &values).unwrap();
    }
    assert_ne!(resumed.digest().unwrap(), digest);
    resumed.set_field("word", &run.field("word").unwrap().values).unwrap();
    resumed.set_field("most", &run.field("most").unwrap().values).unwrap();
    match run.compare(&resumed).unwrap_err() {
        Error::ElementMismatch { element: 0, step: 2, star, .. } => assert_eq!(star, "Knots"),
        other => panic!("{other}"),
    }
    assert!(resumed.element_field("Braids", "hash").unwrap_err().to_string().contains("hash"));
    assert!(resumed.element_field("Knot", "hash").unwrap_err().to_string().contains("no elements"));
}

#[test]
fn what_nothing_here_can_project_is_refused_with_a_way_out() {
    let program = weaving(50, &mut random(4));
    let refusal = |program: Weaving, order: Order, backend: Backend, tapes: bool| -> String {
        let mesh = Mesh::from_graph(50, program.knots.to_vec()).unwrap();
        let builder = Simulation::builder(mesh, program).order(order).backend(backend).tapes(tapes);
        builder.precision::<Int>().build().unwrap_err().to_string()
    };
    let cpu = Backend::Cpu { threads: 1 };
    let says = |said: String, part: &str| assert!(said.contains(part), "{said}");
    says(refusal(program.clone(), Order::JACOBI, cpu.clone(), false), "take another order");
    #[cfg(all(feature = "cluster", feature = "gpu"))]
    if gpu_or_skip().is_some() {
        let hybrid = Backend::Cluster(crate::Cluster::hybrid(0, 0.5).unwrap());
        says(
            refusal(program.clone(), Order::COLOR, hybrid, false),
            "take one without other hosts, or hosts without GPUs",
        );
    }
    says(refusal(program.clone(), Order::COLOR, cpu.clone(), true), "cannot run as a tape");
    let twice = Weaving { braids: Arc::new(vec![[0, 1, 2], [3, 4, 3]]), ..program.clone() };
    says(refusal(twice, Order::COLOR, cpu.clone(), false), "element 1 of star Braids repeats a vertex");
    // A hub is one thing, a hub that ten thousand times ten thousand elements meet at another.
    let hub = Weaving { braids: Arc::new(vec![[0, 1, 2]; 30_000]), ..program };
    says(refusal(hub, Order::COLOR, cpu, false), "one vertex has 30000");
}

stars! { Rods[1] => Pull<R>; }
record! { pub struct Pull<R> { pull: R } }
vertex! { pub struct Bead<R> { shared x: R } }
struct Rising;
kernels! {
    for Rising: Bead;
    project Raise(Rods) |_, corners, own, ()| (corners, Pull { pull: own.pull * R::lit(1e30) + R::lit(1.0) });
}
impl Program for Rising {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Rods, mesh.edges(), |_| ());
        Ok(())
    }
    fn initial(&self, _: &Mesh, _: u32) -> Bead<f64> {
        Bead { x: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.project(Raise, 1);
    }
}

#[test]
fn an_element_that_is_not_finite_stops_the_run() {
    let mut backends = vec![Backend::Serial, Backend::Cpu { threads: 2 }];
    #[cfg(feature = "gpu")]
    backends.extend(gpu_or_skip());
    #[cfg(feature = "cluster")]
    backends.push(hosts(2));
    for backend in backends {
        let mesh = Mesh::from_graph(3, vec![[0, 1], [1, 2]]).unwrap();
        let mut run = Simulation::builder(mesh, Rising).backend(backend).build().unwrap();
        // However late the host looks at a device.
        match (0..1000).find_map(|_| run.step().err()).expect("it grows beyond all bounds") {
            Error::Element { element: 0, step: 3, field, .. } => assert_eq!(field, "pull"),
            other => panic!("{other}"),
        }
    }
}

stars! {
    Ropes[1] => Pull<R>;
    changing Near[1];
}
vertex! { pub struct Knob<R> { shared word: R } }
/// Elements that are projected beside others that come and go.
struct Tangling(Vec<[u32; 2]>);
kernels! {
    for Tangling: Knob;
    project Tug(Ropes) |_, [mut a, mut b], own, ()| {
        (a.word, b.word) = (a.word * R::lit(3.0) + b.word + own.pull, b.word - a.word * R::lit(5.0));
        ([a, b], Pull { pull: own.pull + a.word })
    };
    update Lean |_, own, around| {
        Knob { word: around.fold(Near, own.word, |word, [other], ()| word * R::lit(7.0) + other.word) }
    };
}
impl Program for Tangling {
    fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Ropes, self.0.clone(), |_| ());
        stars.add_changing(Near);
        Ok(())
    }
    fn renew(&self, _: &Mesh, renewal: &mut Renewal<Self>) -> Result<()> {
        let n = renewal.vertices();
        let other = |v: u32| (v + 1 + (renewal.vertex(v).word as i32 as u32) % (n - 1)) % n;
        let pairs = (0..n).step_by(3).map(|v| [v, other(v)]).collect();
        renewal.set(Near, pairs, |_| ());
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Knob<f64> {
        Knob { word: f64::from(v * 7919 % 1009) }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.project(Tug, 5);
        stages.sweep(Lean, 2);
        stages.project(Tug, 1);
    }
}

/// A run in which some elements are projected and others come and go.
pub(crate) fn tangled(vertices: u64, order: Order, backend: Backend) -> Result<Simulation<impl Program, Int>> {
    let ropes = weaving(vertices, &mut random(5)).knots;
    let mesh = Mesh::from_graph(vertices as usize, ropes.to_vec())?;
    Simulation::builder(mesh, Tangling(ropes.to_vec())).order(order).backend(backend).precision::<Int>().build()
}

#[test]
fn elements_are_projected_beside_others_that_come_and_go() {
    let words = |order: Order, backend: Backend| {
        let mut run = tangled(300, order, backend).unwrap();
        (0..5).for_each(|_| run.step().unwrap());
        (run.field("word").unwrap().values, run.element_field("Ropes", "pull").unwrap().values)
    };
    let mut backends = vec![Backend::Cpu { threads: 2 }];
    #[cfg(feature = "cluster")]
    backends.extend([hosts(2), hosts(5)]);
    #[cfg(feature = "gpu")]
    backends.extend(gpu_or_skip());
    for order in [Order::COLOR, Order::blocked(16), Order::LEVEL_COLOR] {
        let expected = words(order, Backend::Serial);
        for backend in &backends {
            assert!(words(order, backend.clone()) == expected, "{order} {backend:?}");
        }
    }
}

stars! { Links[1]: R => Pull<R>; }
vertex! { pub struct Ball<R> { shared x: Vector3<R>, shared inverse_mass: R } }
struct Net(Vec<[u32; 2]>);
kernels! {
    for Net: Ball;
    project Stretch(Links) |_, [mut a, mut b], own, length| {
        let (d, soft) = (b.x - a.x, R::lit(0.25));
        let now = d.length();
        let more = (length - now - soft * own.pull) / (a.inverse_mass + b.inverse_mass + soft);
        let pull = d * (more / now);
        a.x -= pull * a.inverse_mass;
        b.x += pull * b.inverse_mass;
        ([a, b], Pull { pull: own.pull + more })
    };
}
impl Program for Net {
    fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Links, self.0.clone(), |i: Incidence<2>| 0.5 + 0.01 * (i.element % 7) as f64);
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Ball<f64> {
        let turn = |by: u32| f64::from(v * by % 1009) / 500.0;
        Ball { x: Vector3::new(turn(7), turn(31), turn(57)), inverse_mass: 1.0 + turn(3) }
    }
    fn fixed(&self, _: &Mesh, v: u32) -> bool {
        is_fixed(11, v)
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.project(Stretch, 3);
    }
}

/// Records of four reals go through registers another way than those of two.
fn check_reals<T: Number>() {
    let links = weaving(300, &mut random(21)).knots;
    let digest = |order: Order, backend: Backend, simd: Simd| {
        let mesh = Mesh::from_graph(300, links.to_vec()).unwrap();
        let builder = Simulation::builder(mesh, Net(links.to_vec())).order(order).backend(backend).simd(simd);
        let mut run = builder.precision::<T>().build().unwrap();
        (0..4).for_each(|_| run.step().unwrap());
        run.digest().unwrap()
    };
    for order in [Order::COLOR, Order::blocked(64), Order::PRIORITY_DAG] {
        let expected = digest(order, Backend::Serial, Simd::Off);
        for (threads, simd) in [(1, Simd::Off), (1, Simd::Bits256), (2, Simd::Bits512)] {
            assert_eq!(digest(order, Backend::Cpu { threads }, simd), expected, "{order} {threads} {simd:?}");
        }
        #[cfg(feature = "cluster")]
        assert_eq!(digest(order, hosts(3), Simd::Auto), expected, "{order} on hosts");
    }
}

#[test]
fn reals_of_every_width_have_the_bits_of_the_oracle() {
    check_reals::<f32>();
    check_reals::<f64>();
}
