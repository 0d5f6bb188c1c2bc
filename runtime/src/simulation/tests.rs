//! An order probe in exact integers, and programs that break the contract.

use super::*;
use crate::program::{Combine, Incidence, Int, Neighbors, Real, Star, Stars, contract};
use crate::record;
use crate::schedule::Order;
use crate::trace;
use meshweft_mesh::Graph;
use meshweft_mesh::generate::generate;
use meshweft_shaders::Scalar;

record! {
    /// How often the vertex has been updated.
    struct Count<R> { count: R }
}
record! {
    /// Names of the neighbors that had been updated once more than the vertex, and of those as often, added up over
    /// all updates; neighbors in any other state count a million.
    struct Seen<R> { before: R, after: R }
}

/// The adapter to test with. A machine without one skips the test and says so, unless `REQUIRE_GPU` is set.
pub(crate) fn gpu_or_skip() -> Option<usize> {
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering};
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    if crate::adapters().is_empty() {
        assert!(std::env::var_os("REQUIRE_GPU").is_none(), "REQUIRE_GPU is set, and this machine has no adapter");
        let test = std::thread::current().name().unwrap_or("a test").to_string();
        let count = 1 + SKIPPED.fetch_add(1, Ordering::Relaxed);
        let why = "needs a GPU, and this machine has no driver of one";
        // One write, or lines of tests that run side by side mix.
        let _ = std::io::stderr().write_all(format!("skipped, {count} so far: {test} {why}\n").as_bytes());
        return None;
    }
    Some(0)
}

/// Records in exact integers whom each update saw in which state.
struct Probe;
struct Edges;
struct Look;
struct Total;

impl Star<1> for Edges {
    const INDEX: usize = 0;
    type Data<R: Real> = R;
}

impl Kernel<Probe> for Look {
    const NAME: &'static str = "look";
    fn update<R: Real>(
        _: &(),
        own: Count<R>,
        seen: Seen<R>,
        neighbors: &impl Neighbors<R, Count<R>>,
    ) -> (Count<R>, Seen<R>) {
        let (one, half) = (R::lit(1.0), R::lit(0.5));
        let seen = neighbors.fold(Edges, seen, |seen, [other], name| {
            let ahead = other.count - own.count;
            let is = |x: R| (ahead - x).abs().less(half);
            let odd = R::select(is(R::lit(0.0)) | is(one), R::lit(0.0), R::lit(1e6));
            Seen {
                before: seen.before + R::select(is(one), name, R::lit(0.0)) + odd,
                after: seen.after + R::select(is(R::lit(0.0)), name, R::lit(0.0)) + odd,
            }
        });
        (Count { count: own.count + one }, seen)
    }
}

impl Reduce<Probe> for Total {
    const NAME: &'static str = "updates";
    const UNIT: &'static str = "";
    const COMBINE: Combine = Combine::Sum;
    fn measure<R: Real>(_: &(), own: Count<R>, _: Seen<R>, _: &impl Neighbors<R, Count<R>>) -> R {
        own.count
    }
}

impl Program for Probe {
    type Parameters<R: Real> = ();
    type Shared<R: Real> = Count<R>;
    type Private<R: Real> = Seen<R>;
    fn time_step(&self) -> f64 {
        1.0
    }
    fn parameters(&self, _: f64) {}
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Edges, mesh.edges(), |i: Incidence<2>| f64::from(i.vertices[1]));
        Ok(())
    }
    fn initial(&self, _: &Mesh, _: u32) -> (Count<f64>, Seen<f64>) {
        (Count { count: 0.0 }, Seen { before: 0.0, after: 0.0 })
    }
    fn step(&self, stages: &mut impl Stages<Self>) {
        stages.sweep(Look, 3);
    }
    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        metrics.measure(Total);
    }
}

#[test]
fn every_update_sees_its_predecessors_new_and_its_successors_old() {
    let mesh = generate("box:11", 2).unwrap();
    let by_name = Graph::from_cells(&mesh).unwrap();
    for order in Order::ALL {
        let serial = std::iter::once((Backend::Serial, Simd::Off));
        let cpus = [(1, Simd::Auto), (3, Simd::Off), (3, Simd::Bits256), (3, Simd::Bits512)];
        for (backend, simd) in serial.chain(cpus.map(|(threads, simd)| (Backend::Cpu { threads }, simd))) {
            let builder = Simulation::builder(mesh.clone(), Probe).order(order).backend(backend).simd(simd);
            let mut simulation = builder.precision::<f64>().build().unwrap();
            for _ in 0..4 {
                simulation.step().unwrap();
            }
            let (order_of, rank) = (simulation.layout.places.order(), simulation.layout.places.rank());
            let graph = by_name.permuted(&simulation.layout.places);
            for v in 0..mesh.points().len() as u32 {
                let place = rank[v as usize];
                let names = |before: bool| -> f64 {
                    let neighbors = graph.neighbors(place).iter();
                    let in_place = !simulation.schedule().is_double_buffered();
                    let chosen = neighbors.filter(|&&u| (in_place && u < place) == before);
                    chosen.map(|&u| f64::from(order_of[u as usize])).sum()
                };
                let (count, seen) = simulation.vertex(v).unwrap();
                let expected = (12.0, 12.0 * names(true), 12.0 * names(false));
                assert_eq!(
                    (count.count, seen.before, seen.after),
                    expected,
                    "vertex {v}, {order}, {backend:?}, {simd:?}"
                );
            }
            assert_eq!(simulation.metrics().unwrap()[0].value, 12.0 * mesh.points().len() as f64);
        }
    }
}

impl<P: Program> Simulation<P> {
    /// Goes on with a device that can do less: bytes that a kernel sees, and workgroups in one dimension; it is asked for a
    /// dispatch at a time.
    pub(crate) fn limit_gpu(&mut self, adapter: usize, binding_bytes: u64, workgroups: u32) -> Result<()> {
        let stars = contract::stars(&self.program, &self.mesh)?;
        let physics = trace::physics::<P>(&stars, Scalar::F32);
        let gpu = Gpu::limited::<f32>(adapter, &self.layout, physics, (binding_bytes, workgroups))?;
        self.engine = AnyEngine::Gpu(Box::new(Mutex::new(OnGpu { gpu, is_changed: true, since: 0 })));
        Ok(())
    }
}

#[test]
fn a_gpu_sees_predecessors_new_and_successors_old_too() {
    let Some(adapter) = gpu_or_skip() else { return };
    let mesh = generate("box:11", 2).unwrap();
    for order in Order::ALL {
        for block_size in [5, 40, 100_000] {
            let run = |backend| {
                let builder = Simulation::builder(mesh.clone(), Probe).order(order).block_size(block_size);
                let mut simulation = builder.backend(backend).build().unwrap();
                (0..4).for_each(|_| simulation.step().unwrap());
                simulation
            };
            // Counts and sums of names: whole numbers, which floats hold exactly, so all bits are equal.
            let mut gpu = run(Backend::Gpu { adapter });
            gpu.compare(&run(Backend::Serial)).unwrap_or_else(|e| panic!("{order}, {block_size}: {e}"));
            assert_eq!(gpu.metrics().unwrap()[0].value, 12.0 * mesh.points().len() as f64, "{order}");
        }
    }
}

/// Whole numbers that tell any change of order: each update hashes its own number with those of its neighbors.
struct Hash;
struct Stir;
struct Parity;

impl Kernel<Hash> for Stir {
    const NAME: &'static str = "stir";
    fn update<R: Real>(
        _: &(),
        own: Count<R>,
        seen: Seen<R>,
        neighbors: &impl Neighbors<R, Count<R>>,
    ) -> (Count<R>, Seen<R>) {
        let count = neighbors.fold(Edges, own.count * R::lit(31.0) + R::lit(7.0), |hash, [other], name| {
            let turned = hash * R::lit(1_664_525.0) + other.count * name;
            R::select(turned.less(R::lit(0.0)), turned - other.count, turned / R::lit(3.0))
        });
        (Count { count }, Seen { before: count.abs().sqrt(), after: seen.before - count.min(seen.after) })
    }
}

impl Reduce<Hash> for Parity {
    const NAME: &'static str = "sum";
    const UNIT: &'static str = "";
    const COMBINE: Combine = Combine::Sum;
    fn measure<R: Real>(_: &(), own: Count<R>, _: Seen<R>, _: &impl Neighbors<R, Count<R>>) -> R {
        own.count
    }
}

impl Program for Hash {
    type Parameters<R: Real> = ();
    type Shared<R: Real> = Count<R>;
    type Private<R: Real> = Seen<R>;
    fn time_step(&self) -> f64 {
        1.0
    }
    fn parameters(&self, _: f64) {}
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        Probe.stars(mesh, stars)
    }
    fn initial(&self, _: &Mesh, v: u32) -> (Count<f64>, Seen<f64>) {
        (Count { count: f64::from(v) * 40_503.0 }, Seen { before: -3.0, after: 1e12 })
    }
    fn step(&self, stages: &mut impl Stages<Self>) {
        stages.sweep(Stir, 3);
        stages.jacobi(Stir, 1);
    }
    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        metrics.measure(Parity);
    }
}

#[test]
fn whole_numbers_have_the_same_bits_on_every_engine() {
    let mesh = generate("box:9", 2).unwrap();
    let gpu = gpu_or_skip();
    let mut digests = Vec::new();
    for order in Order::ALL {
        let run = |backend, simd| {
            let builder =
                Simulation::builder(mesh.clone(), Hash).order(order).block_size(60).backend(backend).simd(simd);
            let mut simulation = builder.precision::<Int>().build().unwrap();
            (0..3).for_each(|_| simulation.step().unwrap());
            simulation
        };
        let mut oracle = run(Backend::Serial, Simd::Off);
        let metrics = oracle.metrics().unwrap();
        let cpus = [Simd::Off, Simd::Bits256, Simd::Bits512].map(|simd| (Backend::Cpu { threads: 2 }, simd));
        for (backend, simd) in cpus.into_iter().chain(gpu.map(|adapter| (Backend::Gpu { adapter }, Simd::Auto))) {
            let mut simulation = run(backend, simd);
            simulation.compare(&oracle).unwrap_or_else(|e| panic!("{order}, {backend:?}, {simd:?}: {e}"));
            assert_eq!(simulation.metrics().unwrap(), metrics, "{order}, {backend:?}, {simd:?}");
        }
        digests.push(oracle.digest().unwrap());
    }
    digests.sort();
    digests.dedup();
    assert!(digests.len() >= 5, "the hash tells orders apart");
}

#[test]
fn a_lost_gpu_is_an_error_wherever_it_happens_and_never_an_old_state() {
    let Some(adapter) = gpu_or_skip() else { return };
    let mesh = generate("sheet:12", 1).unwrap();
    for lost_after in 0..8 {
        for order in [Order::Blocked, Order::PriorityDag, Order::Color] {
            let builder = Simulation::builder(mesh.clone(), Probe).order(order).backend(Backend::Gpu { adapter });
            let mut simulation = builder.build().unwrap();
            (0..lost_after).for_each(|_| simulation.step().unwrap());
            // A copy of the state is here when the device goes, or none.
            (0..lost_after % 2).for_each(|_| drop(simulation.field("count").unwrap()));
            let AnyEngine::Gpu(on_gpu) = &simulation.engine else { unreachable!() };
            on_gpu.lock().unwrap().gpu.destroy();
            // Some steps may be recorded before it is known.
            let error = (0..1000).find_map(|_| simulation.step().err()).expect("the device is gone");
            assert!(matches!(error, Error::Gpu(_)), "{error}");
            assert!(simulation.step().is_err() && simulation.metrics().is_err());
            assert!(simulation.digest().is_err() && simulation.field("count").is_err());
        }
    }
}

#[test]
fn stars_that_break_the_contract_are_refused() {
    struct Wild(u32);
    struct Second;
    impl Star<1> for Second {
        const INDEX: usize = 1;
        type Data<R: Real> = ();
    }
    impl Program for Wild {
        type Parameters<R: Real> = ();
        type Shared<R: Real> = Count<R>;
        type Private<R: Real> = ();
        fn time_step(&self) -> f64 {
            1.0
        }
        fn parameters(&self, _: f64) {}
        fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Second, vec![[0, self.0]], |_| ());
            Ok(())
        }
        fn initial(&self, _: &Mesh, _: u32) -> (Count<f64>, ()) {
            (Count { count: f64::from(self.0) }, ())
        }
        fn step(&self, _: &mut impl Stages<Self>) {}
    }
    /// Folds over pairs where triangles were added: the rows would be cut at the wrong places.
    struct Crooked;
    struct Triangles;
    struct Fold;
    impl Star<2> for Triangles {
        const INDEX: usize = 0;
        type Data<R: Real> = R;
    }
    impl Kernel<Crooked> for Fold {
        const NAME: &'static str = "crooked";
        fn update<R: Real>(_: &(), own: Count<R>, _: (), neighbors: &impl Neighbors<R, Count<R>>) -> (Count<R>, ()) {
            (neighbors.fold(Edges, own, |sum, [other], _| Count { count: sum.count + other.count }), ())
        }
    }
    impl Program for Crooked {
        type Parameters<R: Real> = ();
        type Shared<R: Real> = Count<R>;
        type Private<R: Real> = ();
        fn time_step(&self) -> f64 {
            1.0
        }
        fn parameters(&self, _: f64) {}
        fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Triangles, vec![[0, 1, 2]], |_| 1.0);
            Ok(())
        }
        fn initial(&self, _: &Mesh, _: u32) -> (Count<f64>, ()) {
            (Count { count: 0.0 }, ())
        }
        fn step(&self, stages: &mut impl Stages<Self>) {
            stages.sweep(Fold, 1);
        }
    }
    let crooked = Simulation::builder(generate("chain:3", 1).unwrap(), Crooked).build().err().expect("refused");
    assert!(crooked.to_string().contains("1 others and 1 reals, but it was added with 2 others"), "{crooked}");
    let says = |program, part: &str| {
        let error = Simulation::builder(generate("chain:3", 1).unwrap(), program).build().err().expect("refused");
        assert!(error.to_string().contains(part), "{error}");
    };
    says(Wild(7), "names vertex 7, but the mesh has 3");
    says(Wild(1), "star 0 is missing");
}
