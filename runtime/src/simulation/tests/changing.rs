//! Elements that come and go, on random graphs: every engine has the bits of the definition, written out here once more.

#[cfg(feature = "cluster")]
use super::graphs::hosts;
use super::graphs::{engines, random, seeds};
#[cfg(feature = "gpu")]
use crate::conformance::gpu_or_skip;
use crate::number::Int;
use crate::program::{Incidence, Stars};
use crate::{Backend, Mesh, Program, Renewal, Result, Simd, Simulation, Stages, kernels, record, stars, vertex};
use meshweft_schedule::{Order, Rule};
use std::sync::{Arc, Mutex};

stars! {
    Edges[1];
    changing Pairs[1]: R;
    changing Triples[2]: R;
}
vertex! { pub struct Cell<R> { shared word: R, shared most: R, count: R, start: R } }
record! { pub struct Sum<R> { top: R } }

/// Hashes what it reads, so that any other order of reads and writes shows, and joins vertices by what that gives.
#[derive(Clone, Debug)]
struct Joining {
    edges: Vec<[u32; 2]>,
    /// One vertex of so many begins an element.
    rare: u32,
    rules: [Rule; 2],
    /// The pairs that are there at the moment.
    pairs: Arc<Mutex<Arc<Vec<[u32; 2]>>>>,
}

impl Joining {
    fn new(edges: Vec<[u32; 2]>, rare: u32, rules: [Rule; 2]) -> Joining {
        Joining { edges, rare, rules, pairs: Arc::default() }
    }
}

kernels! {
    for Joining: Cell, (), Sum;
    update Stir |p, own, around| {
        let start = own.word * R::lit(31.0) + own.start + p.globals.top;
        let word = around.fold(Edges, start, |hash, [other], ()| hash * R::lit(25.0) + other.word);
        let word = around.fold(Pairs, word, |hash, [other], name| hash * R::lit(29.0) + other.word * name);
        let word = around.fold(Triples, word, |hash, [a, b], name| hash * R::lit(37.0) + a.word * name - b.word);
        let count = around.sum(Triples, |_, _| R::lit(1.0));
        Cell { word, count: own.count + count, ..own }
    };
    /// The greatest of all around: soon nothing changes, until elements come.
    quiet update Spread |_, own, around| {
        let most = around.fold(Edges, own.most, |most, [other], ()| most.max(other.most));
        let most = around.fold(Triples, most, |most, [a, b], _| most.max(a.most).max(b.most));
        Cell { most, ..own }
    };
    max Top |_, own, around| around.fold(Pairs, own.word, |sum, [other], name| sum + other.word * name);
}

/// The elements of a state at a time: pairs and triples of numbers. The same pairs are there for two steps.
fn joined(words: &[i32], time: f64, rare: u32) -> (Vec<[u32; 2]>, Vec<[u32; 3]>) {
    let n = words.len() as u32;
    fn hash(x: u32, salt: u32) -> u32 {
        let x = (x ^ salt).wrapping_mul(2_654_435_761);
        (x ^ x >> 15).wrapping_mul(2_246_822_519) >> 7
    }
    let lasting = |v: u32, salt: u32| hash(v, salt + 16 * (time as u32 / 2));
    let passing = |v: u32, salt: u32| hash(words[v as usize] as u32, salt);
    // Some repeat a vertex, some come twice.
    let pairs = (0..n).filter(|&v| lasting(v, 1).is_multiple_of(rare)).map(|v| [v, lasting(v, 2) % n]).collect();
    let triples = (0..n).filter(|&v| passing(v, 3).is_multiple_of(rare));
    let triples = triples.map(|v| [passing(v, 4) % n, v, (v + 1 + passing(v, 5) % 3) % n]).collect();
    (pairs, triples)
}

/// What an incidence has as data.
fn name(element: usize, corner: usize, others: &[u32]) -> i32 {
    element as i32 + 2 * corner as i32 + others[others.len() - 1] as i32
}

impl Program for Joining {
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        let n = mesh.points().len() as u32;
        stars.add(Edges, self.edges.clone(), |_| ());
        stars.add_changing(Pairs);
        // Some of these come, and others.
        stars.add_changing_near(Triples, self.edges.iter().step_by(3).map(|&[a, b]| [a, (b + 1) % n]).collect());
        Ok(())
    }
    fn renew(&self, _: &Mesh, renewal: &mut Renewal<Self>) -> Result<()> {
        let words: Vec<i32> = (0..renewal.vertices()).map(|v| renewal.vertex(v).word as i32).collect();
        let (pairs, triples) = joined(&words, renewal.time(), self.rare);
        let first = renewal.vertex(0);
        // That it starts with is not what counts.
        renewal.set_vertex(0, Cell { most: first.most + 1.0, start: 77.0, ..first });
        let mut kept = self.pairs.lock().unwrap();
        if **kept != pairs {
            *kept = Arc::new(pairs);
        }
        renewal
            .set_shared(Pairs, kept.clone(), |i: Incidence<2>| f64::from(name(i.element, i.corner, &i.vertices[1..])));
        renewal.set(Triples, triples, |i: Incidence<3>| f64::from(name(i.element, i.corner, &i.vertices[1..])));
        renewal.set_field("start", words.iter().map(|&word| f64::from(word / 2)).collect());
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Cell<f64> {
        Cell { word: f64::from(v * 7919 % 1009), most: f64::from(v), count: 0.0, start: 0.0 }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        for rule in self.rules {
            match rule {
                Rule::Alone | Rule::InOrder => {
                    stages.sweep(Stir, 2);
                    stages.sweep(Spread, 2);
                }
                Rule::Backward => {
                    stages.sweep_backward(Stir, 1);
                    stages.sweep_backward(Spread, 3);
                }
                Rule::AtOnce => {
                    stages.jacobi(Stir, 2);
                    stages.jacobi(Spread, 1);
                }
            }
        }
        stages.reduce(Top, |g| &mut g.top);
    }
}

/// The state, by number.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cells {
    word: Vec<i32>,
    most: Vec<i32>,
    count: Vec<i32>,
    top: i32,
}

/// A step by its definition. `order`: numbers in the order of the schedule.
fn step(cells: &mut Cells, order: &[u32], program: &Joining, time: f64, double_buffered: bool) {
    let Joining { edges, rare, rules, .. } = program;
    let (pairs, triples) = joined(&cells.word, time, *rare);
    cells.most[0] += 1;
    let start: Vec<i32> = cells.word.iter().map(|word| word / 2).collect();
    /// Other vertices and names around a vertex, sorted by numbers, then by element.
    fn around<const K: usize>(elements: &[[u32; K]], v: u32) -> Vec<(Vec<u32>, i32)> {
        let mut rows = Vec::new();
        for (element, corners) in elements.iter().enumerate() {
            let is_proper = (1..K).all(|i| !corners[..i].contains(&corners[i]));
            let Some(corner) = corners.iter().position(|&u| u == v).filter(|_| is_proper) else { continue };
            let others: Vec<u32> = (1..K).map(|k| corners[(corner + k) % K]).collect();
            rows.push((others.clone(), element, name(element, corner, &others)));
        }
        rows.sort();
        rows.into_iter().map(|(others, _, name)| (others, name)).collect()
    }
    let top = cells.top;
    let mut rounds = |rule: Rule, count: usize, update: &dyn Fn(&Cells, u32) -> (i32, i32, i32)| {
        for _ in 0..count {
            let old = cells.clone();
            let n = order.len();
            for i in 0..n {
                let v = order[if rule == Rule::Backward && !double_buffered { n - 1 - i } else { i }];
                let at_once = double_buffered || rule == Rule::AtOnce;
                let (word, most, count) = update(if at_once { &old } else { cells }, v);
                (cells.word[v as usize], cells.most[v as usize], cells.count[v as usize]) = (word, most, count);
            }
        }
    };
    let stir = |cells: &Cells, v: u32| {
        let word = |u: u32| cells.word[u as usize];
        let mut hash = word(v).wrapping_mul(31).wrapping_add(start[v as usize]).wrapping_add(top);
        for (others, _) in around(edges, v) {
            hash = hash.wrapping_mul(25).wrapping_add(word(others[0]));
        }
        for (others, name) in around(&pairs, v) {
            hash = hash.wrapping_mul(29).wrapping_add(word(others[0]).wrapping_mul(name));
        }
        let rows = around(&triples, v);
        for (others, name) in &rows {
            hash =
                hash.wrapping_mul(37).wrapping_add(word(others[0]).wrapping_mul(*name)).wrapping_sub(word(others[1]));
        }
        (hash, cells.most[v as usize], cells.count[v as usize] + rows.len() as i32)
    };
    let spread = |cells: &Cells, v: u32| {
        let others = around(edges, v).into_iter().chain(around(&triples, v)).flat_map(|(others, _)| others);
        let most = others.map(|u| cells.most[u as usize]).max().unwrap_or(i32::MIN).max(cells.most[v as usize]);
        (cells.word[v as usize], most, cells.count[v as usize])
    };
    for &rule in rules {
        let (stirs, spreads) = match rule {
            Rule::Alone | Rule::InOrder => (2, 2),
            Rule::Backward => (1, 3),
            Rule::AtOnce => (2, 1),
        };
        rounds(rule, stirs, &stir);
        rounds(rule, spreads, &spread);
    }
    let values = (0..order.len() as u32).map(|v| {
        around(&pairs, v).iter().fold(cells.word[v as usize], |sum, (others, name)| {
            sum.wrapping_add(cells.word[others[0] as usize].wrapping_mul(*name))
        })
    });
    cells.top = values.max().unwrap_or(0);
}

/// Runs some steps on an engine, and checks them against the definition.
fn check(program: &Joining, n: usize, order: Order, backend: &Backend, simd: Simd, seed: u64) {
    let mesh = Mesh::from_graph(n, program.edges.clone()).unwrap();
    let builder = Simulation::builder(mesh, program.clone()).order(order).backend(backend.clone()).simd(simd);
    let mut run = builder.audit(true).precision::<Int>().build().unwrap();
    // The mesh has no points in space, so that numbers along the curve are those of the mesh.
    let order: Vec<u32> = run.schedule().permutation().order().to_vec();
    let double_buffered = run.schedule().is_double_buffered();
    let ints = |run: &Simulation<Joining, Int>, name: &str| -> Vec<i32> {
        run.field(name).unwrap().values.iter().map(|&x| x as i32).collect()
    };
    let mut cells = Cells { word: ints(&run, "word"), most: ints(&run, "most"), count: vec![0; n], top: 0 };
    for i in 0..4 {
        if i == 1 {
            // What is measured in between sees the elements of the state, and changes nothing.
            run.measure(Top).unwrap();
        }
        run.step().unwrap();
        step(&mut cells, &order, program, f64::from(i), double_buffered);
        let top = run.globals().unwrap().top as i32;
        let got = Cells { word: ints(&run, "word"), most: ints(&run, "most"), count: ints(&run, "count"), top };
        // Both are long.
        assert!(got == cells, "seed {seed}, step {i}, {} on {backend:?} {simd:?}", run.order());
    }
    run.audit().unwrap();
}

#[test]
fn random_graphs_with_elements_that_come_and_go_have_the_bits_of_the_definition() {
    let rules = [Rule::InOrder, Rule::Backward, Rule::AtOnce];
    let engines = engines();
    for seed in seeds(60) {
        let mut random = random(seed + 1);
        let n = 1 + random(if seed % 4 == 0 { 700 } else { 120 }) as usize;
        let reach = 1 + random(n as u64);
        let edges = (0..random(3 * n as u64)).map(|_| {
            let v = random(n as u64);
            [v as u32, ((v + random(reach)) % n as u64) as u32]
        });
        let edges: Vec<[u32; 2]> = edges.collect();
        let edges: Vec<[u32; 2]> = Mesh::from_graph(n, edges).unwrap().edges();
        let rules = [rules[random(3) as usize], rules[random(3) as usize]];
        let program = Joining::new(edges, 1 + random(12) as u32, rules);
        let block = [1, 8, 64, 512][random(4) as usize];
        for order in Order::ALL.map(|order| order.resolved(block)) {
            for (backend, simd) in &engines {
                check(&program, n, order, backend, *simd, seed);
            }
            #[cfg(feature = "gpu")]
            if let Some(gpu) = (seed % 12 == 0).then(gpu_or_skip).flatten() {
                check(&program, n, order, &gpu, Simd::Auto, seed);
            }
            #[cfg(all(feature = "cluster", feature = "gpu"))]
            if seed % 12 == 6 && gpu_or_skip().is_some() {
                let hosts = crate::Cluster::hybrid(0, 0.5).unwrap().threads(1);
                check(&program, n, order, &Backend::Cluster(hosts), Simd::Auto, seed);
            }
            #[cfg(feature = "cluster")]
            check(&program, n, order, &hosts(1 + random(5) as u32), Simd::Bits256, seed);
        }
    }
}

/// A small run whose elements are others at every step.
#[cfg(feature = "cluster")]
pub(crate) fn restless(backend: Backend) -> Result<Simulation<impl Program, Int>> {
    let edges = (1..60).map(|v| [v - 1, v]).collect::<Vec<_>>();
    let program = Joining::new(edges.clone(), 4, [Rule::InOrder, Rule::AtOnce]);
    let builder = Simulation::builder(Mesh::from_graph(60, edges)?, program).order(Order::blocked(8));
    builder.backend(backend).precision::<Int>().build()
}

#[test]
fn a_measure_before_a_change_of_the_program_changes_nothing() {
    let edges = (1..40).map(|v| [v - 1, v]).collect::<Vec<_>>();
    let digest = |is_measured: bool| {
        let program = Joining::new(edges.clone(), 5, [Rule::InOrder; 2]);
        let mesh = Mesh::from_graph(40, edges.clone()).unwrap();
        let mut run = Simulation::builder(mesh, program).precision::<Int>().build().unwrap();
        run.step().unwrap();
        if is_measured {
            run.measure(Top).unwrap();
        }
        run.program_mut().rare = 2;
        run.step().unwrap();
        run.digest().unwrap()
    };
    assert_eq!(digest(true), digest(false));
}

vertex! { pub struct Lamp<R> { shared most: R, ticks: R } }
stars! { changing Wire[1]; }

/// The first vertex counts; by the count two others are joined for a step, around which nothing has changed.
#[derive(Clone)]
struct Switching;

kernels! {
    for Switching: Lamp;
    map Tick |_, own| Lamp { ticks: R::select(R::lit(0.0).less(own.ticks), own.ticks + R::lit(1.0), own.ticks), ..own };
    quiet update Brighten |_, own, around| Lamp {
        most: around.fold(Wire, own.most, |most, [other], ()| most.max(other.most)),
        ..own
    };
    sum Wires |_, _, around| around.sum(Wire, |_, ()| R::lit(1.0));
}

impl Program for Switching {
    fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add_changing(Wire);
        Ok(())
    }
    fn renew(&self, _: &Mesh, renewal: &mut Renewal<Self>) -> Result<()> {
        let (count, n) = (renewal.vertex(0).ticks as u32, renewal.vertices());
        if renewal.begins_step() {
            renewal.set(Wire, vec![[7 * count % n, (7 * count + 13) % n]], |_| ());
        }
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Lamp<f64> {
        Lamp { most: f64::from(v * 37 % 101), ticks: if v == 0 { 1.0 } else { 0.0 } }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.map(Tick);
        stages.sweep(Brighten, 3);
    }
}

#[test]
fn what_is_measured_may_see_other_elements_than_the_step_that_begins() {
    let digest = |is_measured: bool| {
        let mesh = Mesh::from_graph(101, Vec::new()).unwrap();
        let mut run = Simulation::builder(mesh, Switching).precision::<Int>().build().unwrap();
        for _ in 0..20 {
            if is_measured {
                assert_eq!(run.measure(Wires).unwrap(), 0.0);
            }
            run.step().unwrap();
        }
        run.digest().unwrap()
    };
    assert_eq!(digest(true), digest(false));
}

#[test]
fn a_quiet_update_is_made_where_an_element_has_come() {
    let run = |backend: Backend| {
        let mesh = Mesh::from_graph(101, Vec::new()).unwrap();
        let builder = Simulation::builder(mesh, Switching).order(Order::blocked(4)).backend(backend);
        let mut run = builder.precision::<Int>().build().unwrap();
        (0..60).for_each(|_| run.step().unwrap());
        run
    };
    let expected = run(Backend::Serial).digest().unwrap();
    let backends = [Backend::Cpu { threads: 1 }, Backend::Cpu { threads: 2 }];
    #[cfg(feature = "cluster")]
    let backends = backends.into_iter().chain([hosts(3)]);
    for backend in backends {
        let run = run(backend);
        assert_eq!(run.digest().unwrap(), expected);
        assert!(run.updates_left_out() > 1000, "{}", run.updates_left_out());
    }
}
