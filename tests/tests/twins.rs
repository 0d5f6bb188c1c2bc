//! The programs of `runtime/python/tests/programs`, in Rust: compiled kernels give the digests that are on record there, and so must the formulas
//! that Python writes.
//!
//! `runtime/python/tests/digests.json` says on which mesh, and after how many steps. `MESHWEFT_RECORD=1` writes those of this build.

use meshweft::mesh::generate::generate;
use meshweft::nalgebra::{Matrix2, Matrix3, Vector2, Vector3};
use meshweft::{
    AnySimulation, Backend, Incidence, Int, Integer, Length, Mesh, Number, Order, Program, Real, Result, Simulation,
    Stages, Stars, kernels, record, stars, vertex,
};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

fn file() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../runtime/python/tests/digests.json"))
}

/// Tests of other programs read the file and write to it, too.
static FILE: Mutex<()> = Mutex::new(());

fn read(_: &MutexGuard<'_, ()>) -> Map<String, Value> {
    serde_json::from_str(&std::fs::read_to_string(file()).unwrap()).unwrap()
}

/// Compares all digests of a program with those on record. `prepare`: mesh and program, from the mesh on record; `before`: what is done before
/// each step.
fn check_all<P: Program>(
    name: &str,
    prepare: impl Fn(Mesh) -> (Mesh, P),
    before: impl Fn(&mut dyn AnySimulation) -> Result<()>,
) {
    let record = &read(&FILE.lock().unwrap())[name];
    let (spec, steps) = (record["mesh"].as_str().unwrap(), record["steps"].as_u64().unwrap());
    let mut found = Map::new();
    for (case, recorded) in record["digests"].as_object().unwrap() {
        let (order, precision) = case.split_once(' ').unwrap();
        let order: Order = order.parse().unwrap();
        let run = |backend| -> Result<String> {
            let (mesh, program) = prepare(generate(spec, 1)?);
            let builder = Simulation::builder(mesh, program).order(order).backend(backend);
            match precision {
                "f32" => after(steps, builder.build()?, &before),
                _ => after(steps, builder.precision::<f64>().build()?, &before),
            }
        };
        let digest = run(Backend::Serial).unwrap();
        assert_eq!(run(Backend::Cpu { threads: 2 }).unwrap(), digest, "{name}, {case}: two threads");
        if std::env::var_os("MESHWEFT_RECORD").is_none() {
            assert_eq!(recorded, &digest, "{name}, {case}: the digest on record, and that of this build");
        }
        found.insert(case.clone(), digest.into());
    }
    if std::env::var_os("MESHWEFT_RECORD").is_some() {
        let writing = FILE.lock().unwrap();
        let mut all = read(&writing);
        all[name]["digests"] = found.into();
        std::fs::write(file(), serde_json::to_string_pretty(&all).unwrap() + "\n").unwrap();
    }
}

fn after<P: Program, T: Number>(
    steps: u64,
    simulation: Simulation<P, T>,
    before: impl Fn(&mut dyn AnySimulation) -> Result<()>,
) -> Result<String> {
    let mut simulation = simulation.into_any();
    for _ in 0..steps {
        before(&mut *simulation)?;
        simulation.step()?;
    }
    simulation.digest()
}

fn check<P: Program>(name: &str, program: impl Fn() -> P) {
    check_all(name, |mesh| (mesh, program()), |_| Ok(()));
}

fn edges(mesh: &Mesh, stars: &mut Stars) -> Result<()> {
    stars.add(Edges, mesh.edges(), |_| ());
    Ok(())
}

fn lengths(mesh: &Mesh, stars: &mut Stars) -> Result<()> {
    let points = mesh.points().to_vec();
    stars.add(Springs, mesh.edges(), move |i| {
        let [p, q] = mesh_edge(&i).map(|v| Vector3::from(points[v]));
        let d = p - q;
        (d.x * d.x + d.y * d.y + d.z * d.z).sqrt()
    });
    Ok(())
}

/// The ends of an edge in the order of the mesh, whichever it is seen from.
fn mesh_edge(i: &Incidence<2>) -> [usize; 2] {
    let [a, b] = i.vertices.map(|v| v as usize);
    if i.corner == 0 { [a, b] } else { [b, a] }
}

stars! { Edges[1]; }

mod readme_rod {
    use super::*;

    vertex! { struct Point<R> { shared temperature: R } }
    struct Rod;

    kernels! {
        for Rod: Point;
        update Relax |_, own, around| {
            let flow = around.sum(Edges, |[other], ()| other.temperature - own.temperature);
            Point { temperature: own.temperature + R::lit(0.1) * flow }
        };
    }

    impl Program for Rod {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
            Point { temperature: mesh.points()[v as usize][0] }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Relax, 4);
        }
    }

    #[test]
    fn readme_rod() {
        check("readme_rod", || Rod);
    }
}

mod heated_rod {
    use super::*;

    vertex! { struct Point<R> { shared temperature: R, change: R } }
    stars! { Weights[1]: R; }
    record! { struct Parameters<R> { source: R, length: R } }
    struct Rod;

    kernels! {
        for Rod: Point, Parameters;
        update Relax |p, own, around| {
            let (flow, weight) = around.sum(Weights, |[other], w| (w * other.temperature, w));
            let temperature = (p.source * p.length + flow) / weight;
            Point { temperature, change: (temperature - own.temperature).abs() }
        };
    }

    impl Program for Rod {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { source: 8.0, length: 1.0 / 20.0 }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            let x: Vec<f64> = mesh.points().iter().map(|p| p[0]).collect();
            let over = move |i: Incidence<2>| 1.0 / (x[i.vertices[0] as usize] - x[i.vertices[1] as usize]).abs();
            stars.add(Weights, mesh.edges(), over);
            Ok(())
        }
        fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
            Point { temperature: 0.0, change: 0.0 }
        }
        fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
            let x = mesh.points()[v as usize][0];
            x <= 0.0 || x >= 1.0
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Relax, 20);
        }
    }

    #[test]
    fn heated_rod() {
        check("heated_rod", || Rod);
    }
}

mod conjugate_gradients {
    use super::*;

    vertex! { struct Unknown<R> { shared p: R, shared x: R, shared r: R, shared q: R } }
    record! { struct Globals<R> { rr: R, pq: R, old: R, alpha: R, beta: R } }
    struct Poisson;

    kernels! {
        for Poisson: Unknown, (), Globals;
        update Multiply |_, own, around| {
            Unknown { q: own.p + around.sum(Edges, |[other], ()| own.p - other.p), ..own }
        };
        sum Rr |_, own, _| own.r * own.r;
        sum Pq |_, own, _| own.p * own.q;
        scalar Step |p| Globals { alpha: p.globals.rr / p.globals.pq, old: p.globals.rr, ..p.globals };
        map Descend |p, own| Unknown { x: own.x + own.p * p.globals.alpha, r: own.r - own.q * p.globals.alpha, ..own };
        scalar Turn |p| Globals { beta: p.globals.rr / p.globals.old, ..p.globals };
        map Direct |p, own| Unknown { p: own.r + own.p * p.globals.beta, ..own };
        test Arrived |p| p.globals.rr.less(R::lit(1e-8));
    }

    impl Program for Poisson {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, v: u32) -> Unknown<f64> {
            let b = f64::from(v % 7) - 3.0;
            Unknown { x: 0.0, r: b, p: b, q: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.reduce(Rr, |g| &mut g.rr);
            stages.until(Arrived, 200, |stages| {
                stages.jacobi(Multiply, 1);
                stages.reduce(Pq, |g| &mut g.pq);
                stages.scalar(Step);
                stages.map(Descend);
                stages.reduce(Rr, |g| &mut g.rr);
                stages.scalar(Turn);
                stages.map(Direct);
            });
        }
    }

    #[test]
    fn conjugate_gradients() {
        check("conjugate_gradients", || Poisson);
    }
}

mod adaptive_step {
    use super::*;

    vertex! { struct Falling<R> { height: R, speed: R } }
    record! { struct Parameters<R> { dt: R } }
    struct Fall {
        dt: f64,
    }

    kernels! {
        for Fall: Falling, Parameters;
        map Move |p, own| {
            let speed = own.speed + p.dt;
            Falling { speed, height: own.height - speed * p.dt }
        };
        max Fastest("fastest", "m/s") |_, own, _| own.speed;
    }

    impl Program for Fall {
        fn time_step(&self) -> f64 {
            self.dt
        }
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { dt: self.dt }
        }
        fn initial(&self, _: &Mesh, _: u32) -> Falling<f64> {
            Falling { height: 100.0, speed: 1.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Move);
        }
    }

    #[test]
    fn adaptive_step() {
        let adapt = |fall: &mut dyn AnySimulation| {
            let fastest = fall.metrics()?[0].value;
            fall.program_mut().downcast_mut::<Fall>().unwrap().dt = 0.05 / fastest;
            Ok(())
        };
        check_all("adaptive_step", |mesh| (mesh, Fall { dt: 0.1 }), adapt);
    }
}

mod heat_wave {
    use super::*;

    vertex! { struct Point<R> { shared temperature: R, shared conductivity: R, predicted: R } }
    record! { struct Globals<R> { rate: R, dt: R, time: R } }
    struct Rod;

    const WEIGHT: f64 = 0.5 * 100.0 * 100.0;

    kernels! {
        for Rod: Point, (), Globals;
        map Conduct |_, own| Point { conductivity: own.temperature, ..own };
        max Rate |_, own, around| {
            R::lit(WEIGHT) * around.sum(Edges, |[other], ()| own.conductivity + other.conductivity)
        };
        scalar Choose[share] |p| {
            let dt = share / p.globals.rate;
            Globals { dt, time: p.globals.time + dt, ..p.globals }
        };
        update Predict |p, own, around| {
            let flow = around.sum(Edges, |[other], ()| {
                (own.conductivity + other.conductivity) * (other.temperature - own.temperature)
            });
            let temperature = own.temperature + R::lit(0.5 * WEIGHT) * p.globals.dt * flow;
            Point { temperature, predicted: temperature, ..own }
        };
        update Relax |p, own, around| {
            let (flow, weight) = around.sum(Edges, |[other], ()| {
                let conductivity = own.conductivity + other.conductivity;
                (conductivity * other.temperature, conductivity)
            });
            let half = R::lit(0.5 * WEIGHT) * p.globals.dt;
            Point { temperature: (own.predicted + half * flow) / (R::lit(1.0) + half * weight), ..own }
        };
    }

    impl Program for Rod {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
            let d = mesh.points()[v as usize][0] - 0.5;
            Point { temperature: (1.0 - 25.0 * (d * d)).max(0.0), conductivity: 0.0, predicted: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Conduct);
            stages.reduce(Rate, |g| &mut g.rate);
            stages.scalar(Choose { share: 4.0 });
            stages.jacobi(Predict, 1);
            stages.sweep(Relax, 10);
            stages.sweep_backward(Relax, 10);
        }
    }

    #[test]
    fn heat_wave() {
        check("heat_wave", || Rod);
    }
}

mod plate {
    use super::*;

    vertex! { struct Point<R> { shared temperature: R } }
    struct Plate {
        held: Vec<bool>,
    }

    kernels! {
        for Plate: Point;
        update Relax |_, _, around| {
            let (sum, count) = around.sum(Edges, |[other], ()| (other.temperature, R::lit(1.0)));
            Point { temperature: sum / count }
        };
    }

    impl Program for Plate {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
            let [x, y, _] = mesh.points()[v as usize];
            Point { temperature: x * y }
        }
        fn fixed(&self, _: &Mesh, v: u32) -> bool {
            self.held[v as usize]
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Relax, 5);
        }
    }

    #[test]
    fn plate() {
        let prepare = |mesh: Mesh| {
            let held = mesh.boundary();
            (mesh, Plate { held })
        };
        check_all("plate", prepare, |_| Ok(()));
    }
}

mod random_walk {
    use super::*;

    vertex! { struct Walker<R> { position: R, heads: R } }
    struct Walk;

    kernels! {
        for Walk: Walker;
        map Wander |p, own| {
            let is_head = p.uniform(1).less(R::lit(0.5));
            Walker { position: own.position + p.normal(2), heads: own.heads + R::select(is_head, R::lit(1.0), R::lit(0.0)) }
        };
    }

    impl Program for Walk {
        fn initial(&self, _: &Mesh, _: u32) -> Walker<f64> {
            Walker { position: 0.0, heads: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Wander);
        }
    }

    #[test]
    fn random_walk() {
        check("random_walk", || Walk);
    }
}

mod finite_volumes {
    use super::*;

    vertex! { struct Cell<R> { shared density: R, volume: R } }
    record! { struct Parameters<R> { dt: R } }
    stars! { Faces[1]: R; }
    struct Advection {
        flow: Vec<f64>,
        volumes: Vec<f64>,
        edges: Vec<[u32; 2]>,
    }

    kernels! {
        for Advection: Cell, Parameters;
        update Transport |p, own, around| {
            let out = around.sum(Faces, |[other], flow| {
                flow * R::select(flow.greater(R::lit(0.0)), own.density, other.density)
            });
            Cell { density: own.density - p.dt * out / own.volume, ..own }
        };
    }

    impl Program for Advection {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { dt: 0.002 }
        }
        fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
            let flow = self.flow.clone();
            let out = move |i: Incidence<2>| if i.corner == 0 { flow[i.element] } else { -flow[i.element] };
            stars.add(Faces, self.edges.clone(), out);
            Ok(())
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Cell<f64> {
            let density = if mesh.points()[v as usize][0] < 0.5 { 1.0 } else { 0.0 };
            Cell { density, volume: self.volumes[v as usize] }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(Transport, 1);
        }
    }

    #[test]
    fn finite_volumes() {
        let prepare = |mesh: Mesh| {
            let dual = mesh.dual().unwrap();
            let flow = dual.faces.iter().map(|face| face.area * face.normal[0]).collect();
            let edges = dual.faces.iter().map(|face| face.cells).collect();
            (dual.mesh, Advection { flow, volumes: dual.volumes, edges })
        };
        check_all("finite_volumes", prepare, |_| Ok(()));
    }
}

mod page_rank {
    use super::*;

    vertex! { struct Page<R> { shared share: R, rank: R, change: R, degree: R } }
    record! { struct Globals<R> { change: R } }
    stars! { Links[1]; }
    struct PageRank {
        links: Arc<Vec<[u32; 2]>>,
    }

    kernels! {
        for PageRank: Page, (), Globals;
        map Divide |_, own| Page { share: own.rank / own.degree, ..own };
        update Gather[jump] |_, own, around| {
            let rank = jump + R::lit(0.85) * around.sum(Links, |[other], ()| other.share);
            Page { rank, change: (rank - own.rank).abs(), ..own }
        };
        sum Change |_, own, _| own.change;
        test Settled |p| p.globals.change.less(R::lit(1e-6));
    }

    impl Program for PageRank {
        fn stars(&self, _: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add_directed(Links, self.links.clone(), |_| ());
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Page<f64> {
            let degree = self.links.iter().filter(|link| link[0] == v).count().max(1);
            Page { share: 0.0, rank: 1.0 / 50.0, change: 1.0, degree: degree as f64 }
        }
        fn globals(&self) -> Globals<f64> {
            Globals { change: 1.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.until(Settled, 200, |stages| {
                stages.map(Divide);
                stages.jacobi(Gather { jump: 0.15 / 50.0 }, 1);
                stages.reduce(Change, |g| &mut g.change);
            });
        }
    }

    #[test]
    fn page_rank() {
        let links = (0..50).flat_map(|v: u32| (0..1 + v % 3).map(move |k| [v, (v * v + 3 * k + 1) % 50]));
        let links: Arc<Vec<[u32; 2]>> = Arc::new(links.filter(|[a, b]| a != b).collect());
        let prepare = |_| (Mesh::from_graph(50, links.to_vec()).unwrap(), PageRank { links: links.clone() });
        check_all("page_rank", prepare, |_| Ok(()));
    }
}

mod rumor {
    use super::*;

    vertex! { struct Person<R> { shared steps: R::Int } }
    struct Rumor;

    kernels! {
        for Rumor: Person;
        quiet update Tell |_, own, around| {
            let steps: R::Int = around.fold(Edges, own.steps, |least: R::Int, [other], ()| {
                let steps = other.steps + R::Int::lit(1);
                R::Int::select(steps.less(least), steps, least)
            });
            Person { steps }
        };
    }

    impl Program for Rumor {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, v: u32) -> Person<f64> {
            Person { steps: Int(if v == 0 { 0 } else { 1 << 30 }) }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.fixpoint(Tell, 1000);
        }
    }

    #[test]
    fn rumor() {
        check("rumor", || Rumor);
    }
}

stars! { Springs[1]: R; }

mod distance {
    use super::*;

    vertex! { struct Node<R> { shared distance: R } }
    struct Distance;

    kernels! {
        for Distance: Node;
        quiet update Reach |_, own, around| {
            let distance = around.fold(Springs, own.distance, |least, [other], length| {
                least.min(other.distance + length)
            });
            Node { distance }
        };
    }

    impl Program for Distance {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            lengths(mesh, stars)
        }
        fn initial(&self, _: &Mesh, v: u32) -> Node<f64> {
            Node { distance: if v == 0 { 0.0 } else { 1000.0 } }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Reach, 1);
        }
    }

    #[test]
    fn distance() {
        check("distance", || Distance);
    }
}

mod explicit_heat {
    use super::*;

    vertex! { struct Point<R> { shared temperature: R } }
    stars! { Triangles[2]: (R, R, R); }
    record! { struct Parameters<R> { diffusivity: R, dt: R } }
    struct Heat;

    kernels! {
        for Heat: Point, Parameters;
        update Conduct |p, own, around| {
            let (flow, area) = around.sum(Triangles, |[b, c], (area, next, last)| {
                (next * (b.temperature - own.temperature) + last * (c.temperature - own.temperature), area)
            });
            Point { temperature: own.temperature + p.dt * p.diffusivity * flow / area }
        };
    }

    impl Program for Heat {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { diffusivity: 1.0, dt: 1e-3 }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            let points = mesh.points().to_vec();
            stars.add(Triangles, mesh.triangles(), move |i| {
                let [a, b, c] = i.vertices.map(|v| Vector3::from(points[v as usize]));
                let dot = |u: Vector3<f64>, v: Vector3<f64>| u.x * v.x + u.y * v.y + u.z * v.z;
                let normal = (b - a).cross(&(c - a));
                let twice = dot(normal, normal).sqrt();
                let half_cotangent = |at, u, v| 0.5 * dot(u - at, v - at) / twice;
                (twice / 6.0, half_cotangent(c, a, b), half_cotangent(b, a, c))
            });
            Ok(())
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
            Point { temperature: if mesh.points()[v as usize][0] > 0.0 { 1.0 } else { 0.0 } }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(Conduct, 1);
        }
    }

    #[test]
    fn explicit_heat() {
        check("explicit_heat", || Heat);
    }
}

mod wave {
    use super::*;

    vertex! { struct Point<R> { shared height: R, speed: R } }
    record! { struct Parameters<R> { stiffness: R } }
    struct Wave {
        held: Vec<bool>,
    }

    kernels! {
        for Wave: Point, Parameters;
        update Kick[dt] |p, own, around| {
            let pull = around.sum(Edges, |[other], ()| other.height - own.height);
            Point { speed: own.speed + dt * p.stiffness * pull, ..own }
        };
        map Drift[dt] |_, own| Point { height: own.height + dt * own.speed, ..own };
    }

    impl Program for Wave {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { stiffness: 0.2 }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
            let [x, y, _] = mesh.points()[v as usize].map(|x| x - 0.5);
            Point { height: (0.1 - x * x - y * y).max(0.0), speed: 0.0 }
        }
        fn fixed(&self, _: &Mesh, v: u32) -> bool {
            self.held[v as usize]
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(Kick { dt: 0.5 }, 1);
            stages.map(Drift { dt: 0.5 });
        }
    }

    #[test]
    fn wave() {
        let prepare = |mesh: Mesh| {
            let held = mesh.boundary();
            (mesh, Wave { held })
        };
        check_all("wave", prepare, |_| Ok(()));
    }
}

mod spring_sheet {
    use super::*;

    vertex! { struct Point<R> { shared position: Vector3<R>, shared velocity: Vector3<R> } }
    record! { struct Parameters<R> { stiffness: R, damping: R, gravity: Vector3<R>, dt: R } }
    struct Sheet {
        held: Vec<bool>,
    }

    kernels! {
        for Sheet: Point, Parameters;
        update Move |p, own, around| {
            let force = around.sum(Springs, |[other], rest| {
                let along = other.position - own.position;
                let length = along.length();
                along * (p.stiffness * (length - rest) / length) + (other.velocity - own.velocity) * p.damping
            });
            let velocity = own.velocity + (force + p.gravity) * p.dt;
            Point { velocity, position: own.position + velocity * p.dt }
        };
    }

    impl Program for Sheet {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { stiffness: 500.0, damping: 0.5, gravity: Vector3::new(0.0, 0.0, -9.81), dt: 0.01 }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            lengths(mesh, stars)
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
            Point { position: mesh.points()[v as usize].into(), velocity: Vector3::zeros() }
        }
        fn fixed(&self, _: &Mesh, v: u32) -> bool {
            self.held[v as usize]
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Move, 1);
        }
    }

    #[test]
    fn spring_sheet() {
        let prepare = |mesh: Mesh| {
            let held = mesh.boundary();
            (mesh, Sheet { held })
        };
        check_all("spring_sheet", prepare, |_| Ok(()));
    }
}

mod descent_cloth {
    use super::*;

    vertex! {
        struct Point<R> {
            shared position: Vector3<R>,
            velocity: Vector3<R>,
            before: Vector3<R>,
            target: Vector3<R>,
        }
    }
    record! { struct Parameters<R> { mass: R, stiffness: R, gravity: Vector3<R>, dt: R } }
    struct Cloth {
        held: Vec<bool>,
    }

    fn solve<R: Real>(m: Matrix3<R>, v: Vector3<R>) -> Vector3<R> {
        let [a, b, c] = [0, 1, 2].map(|j| m.column(j).into_owned());
        let bc = b.cross(&c);
        Vector3::new(v.dot(&bc), v.dot(&c.cross(&a)), v.dot(&a.cross(&b))) / a.dot(&bc)
    }

    kernels! {
        for Cloth: Point, Parameters;
        map Predict |p, own| {
            let target = own.position + own.velocity * p.dt + p.gravity * (p.dt * p.dt);
            Point { before: own.position, target, position: target, ..own }
        };
        update Descend |p, own, around| {
            let identity = Matrix3::<R>::identity();
            let inertia = p.mass / (p.dt * p.dt);
            let (force, hessian) = around.sum(Springs, |[other], rest| {
                let along = own.position - other.position;
                let length = along.length();
                let unit = along / length;
                let squeezed = (rest / length).min(R::lit(1.0));
                let nn = Matrix3::from_fn(|i, j| unit[i] * unit[j]);
                let hessian = (nn + (identity - nn) * (R::lit(1.0) - squeezed)) * p.stiffness;
                (unit * (p.stiffness * (rest - length)), hessian)
            });
            let force = force - (own.position - own.target) * inertia;
            Point { position: own.position + solve(hessian + identity * inertia, force), ..own }
        };
        map Finish |p, own| Point { velocity: (own.position - own.before) / p.dt, ..own };
    }

    impl Program for Cloth {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { mass: 0.01, stiffness: 200.0, gravity: Vector3::new(0.0, 0.0, -9.81), dt: 1.0 / 60.0 }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            lengths(mesh, stars)
        }
        fn initial(&self, mesh: &Mesh, v: u32) -> Point<f64> {
            let zero = Vector3::zeros();
            Point { position: mesh.points()[v as usize].into(), velocity: zero, before: zero, target: zero }
        }
        fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
            self.held[v as usize] && mesh.points()[v as usize][1] > 0.5
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Predict);
            stages.sweep(Descend, 5);
            stages.map(Finish);
        }
    }

    #[test]
    fn descent_cloth() {
        let prepare = |mesh: Mesh| {
            let held = mesh.boundary();
            (mesh, Cloth { held })
        };
        check_all("descent_cloth", prepare, |_| Ok(()));
    }
}

mod gray_scott {
    use super::*;

    vertex! { struct Reagents<R> { shared u: R, shared v: R } }
    struct GrayScott;

    const F: f64 = 0.037;
    const K: f64 = 0.06;

    kernels! {
        for GrayScott: Reagents;
        update React[noise] |p, own, around| {
            let (lu, lv) = around.sum(Edges, |[other], ()| (other.u - own.u, other.v - own.v));
            let reaction = own.u * own.v * own.v;
            Reagents {
                u: own.u + R::lit(0.08) * lu - reaction + R::lit(F) * (R::lit(1.0) - own.u) + noise * p.normal(1),
                v: own.v + R::lit(0.04) * lv + reaction - R::lit(F + K) * own.v + noise * p.normal(2),
            }
        };
    }

    impl Program for GrayScott {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, v: u32) -> Reagents<f64> {
            if v.is_multiple_of(9) { Reagents { u: 0.5, v: 0.25 } } else { Reagents { u: 1.0, v: 0.0 } }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(React { noise: 1e-3 }, 1);
        }
    }

    #[test]
    fn gray_scott() {
        check("gray_scott", || GrayScott);
    }
}

mod ising {
    use super::*;

    vertex! { struct Site<R> { shared spin: R::Int } }
    record! { struct Sums<R> { energy: R, total: R } }
    struct Ising;

    kernels! {
        for Ising: Site, (), Sums;
        update Metropolis[beta] |p, own, around| {
            let field: R::Int = around.sum(Edges, |[other], ()| other.spin);
            let cost = R::lit(2.0) * R::from_int(own.spin * field);
            let flips = p.uniform(1).less((-beta * cost).exp());
            Site { spin: R::Int::select(flips, -own.spin, own.spin) }
        };
        sum Energy |_, own, around| {
            let field: R::Int = around.sum(Edges, |[other], ()| other.spin);
            R::from_int(own.spin * field) * R::lit(-0.5)
        };
        scalar Gather |p| Sums { total: p.globals.total + p.globals.energy, ..p.globals };
    }

    impl Program for Ising {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, _: u32) -> Site<f64> {
            Site { spin: Int(1) }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Metropolis { beta: 0.4 }, 1);
            stages.reduce(Energy, |g| &mut g.energy);
            stages.scalar(Gather);
        }
    }

    #[test]
    fn ising() {
        check("ising", || Ising);
    }
}

mod percolation {
    use super::*;

    vertex! { struct Site<R> { shared label: R::Int } }
    record! { struct Parameters<R> { chance: R } }
    struct Percolation;

    kernels! {
        for Percolation: Site, Parameters;
        map Open |p, _| Site { label: R::Int::select(p.uniform(7).less(p.chance), p.vertex(), R::Int::lit(-1)) };
        quiet update Join |_, own, around| {
            let label: R::Int = around.fold(Edges, own.label, |label: R::Int, [other], ()| {
                let joins = R::Int::lit(0).at_most(other.label) & other.label.less(label);
                R::Int::select(joins, other.label, label)
            });
            Site { label }
        };
    }

    impl Program for Percolation {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { chance: 0.6 }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            edges(mesh, stars)
        }
        fn initial(&self, _: &Mesh, _: u32) -> Site<f64> {
            Site { label: Int(0) }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Open);
            stages.fixpoint(Join, 10_000);
        }
    }

    #[test]
    fn percolation() {
        check("percolation", || Percolation);
    }
}

mod elastic {
    use super::*;

    vertex! { struct Point<R> { shared displacement: Vector2<R>, velocity: Vector2<R> } }
    stars! { Triangles[2]: (R, Matrix2<R>, Matrix2<R>, Matrix2<R>); }
    record! { struct Parameters<R> { dt: R, pull: Vector2<R> } }
    struct Plate;

    /// Lamé's parameters, N/m.
    const FIRST: f64 = 1.0;
    const SECOND: f64 = 0.5;

    kernels! {
        for Plate: Point, Parameters;
        update Kick |p, own, around| {
            let (force, mass) = around.sum(Triangles, |[b, c], (area, at, next, last)| {
                (at * own.displacement + next * b.displacement + last * c.displacement, area)
            });
            Point { velocity: (own.velocity + (p.pull - force / mass) * p.dt) * R::lit(0.99), ..own }
        };
        map Drift |p, own| Point { displacement: own.displacement + own.velocity * p.dt, ..own };
    }

    impl Program for Plate {
        fn parameters(&self, _: f64) -> Parameters<f64> {
            Parameters { dt: 0.02, pull: Vector2::new(0.1, 0.0) }
        }
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            let points = mesh.points().to_vec();
            stars.add(Triangles, mesh.triangles(), move |i| {
                let [a, b, c] = i.vertices.map(|v| Vector2::new(points[v as usize][0], points[v as usize][1]));
                let (u, v) = (b - a, c - a);
                let twice = u.x * v.y - u.y * v.x;
                let gradient = |u: Vector2<f64>, v: Vector2<f64>| Vector2::new(u.y - v.y, v.x - u.x) / twice;
                let stiffness = |g: Vector2<f64>, h: Vector2<f64>| {
                    Matrix2::from_fn(|i, j| {
                        let ones = if i == j { g.x * h.x + g.y * h.y } else { 0.0 };
                        (FIRST * (g[i] * h[j]) + SECOND * (h[i] * g[j] + ones)) * (0.5 * twice)
                    })
                };
                let [at_a, at_b, at_c] = [gradient(b, c), gradient(c, a), gradient(a, b)];
                (twice / 6.0, stiffness(at_a, at_a), stiffness(at_a, at_b), stiffness(at_a, at_c))
            });
            Ok(())
        }
        fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
            Point { displacement: Vector2::zeros(), velocity: Vector2::zeros() }
        }
        fn fixed(&self, mesh: &Mesh, v: u32) -> bool {
            mesh.points()[v as usize][0] <= 0.0
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.jacobi(Kick, 1);
            stages.map(Drift);
        }
    }

    #[test]
    fn elastic() {
        check("elastic", || Plate);
    }
}

mod elements {
    use super::*;
    use meshweft::mesh::CellKind;

    vertex! { struct Sum<R> { shared x: R, of: [R; 4] } }
    stars! {
        Quads[3]: R;
        Pyramids[4]: R;
        Wedges[5]: R;
        Hexes[7]: R;
    }
    struct Corners;

    kernels! {
        for Corners: Sum;
        update Add |_, own, around| {
            let quads = around.sum(Quads, |o, w| w * (o[0].x + R::lit(10.0) * o[1].x + R::lit(100.0) * o[2].x));
            let pyramids = around.sum(Pyramids, |o, w| w * weigh(o.map(|other| other.x)));
            let wedges = around.sum(Wedges, |o, w| w * weigh(o.map(|other| other.x)));
            let hexes = around.sum(Hexes, |o, w| w * weigh(o.map(|other| other.x)));
            Sum { x: own.x * R::lit(0.5) + quads / R::lit(4096.0), of: [quads, pyramids, wedges, hexes] }
        };
    }

    fn weigh<R: Real, const N: usize>(values: [R; N]) -> R {
        values.into_iter().rev().fold(R::lit(0.0), |sum, x| sum * R::lit(3.0) + x)
    }

    /// The first corners of each hex, whatever shape they have.
    fn some<const K: usize>(mesh: &Mesh) -> Vec<[u32; K]> {
        let hexes = mesh.cells().corners_of(CellKind::Hex);
        hexes.as_chunks::<8>().0.iter().map(|hex| std::array::from_fn(|k| hex[k])).collect()
    }

    fn weight<const K: usize>(i: &Incidence<K>) -> f64 {
        f64::from(i.vertices[0] % 5) + i.corner as f64
    }

    impl Program for Corners {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add_cells(Quads, CellKind::Quad, some::<4>(mesh), |i| weight(&i));
            stars.add(Pyramids, some::<5>(mesh), |i| weight(&i));
            stars.add(Wedges, some::<6>(mesh), |i| weight(&i));
            stars.add(Hexes, some::<8>(mesh), |i| weight(&i));
            Ok(())
        }
        fn initial(&self, _: &Mesh, v: u32) -> Sum<f64> {
            Sum { x: f64::from(v % 11), of: [0.0; 4] }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Add, 1);
        }
    }

    #[test]
    fn elements() {
        check("elements", || Corners);
    }
}

mod functions {
    use super::*;

    vertex! {
        struct Numbers<R> {
            x: R,
            y: R,
            n: R::Int,
            bits: R::Int,
            a: [R; 4],
            b: [R; 4],
            c: [R; 4],
            d: [R; 4],
            e: [R; 4],
        }
    }
    struct Functions;

    kernels! {
        for Functions: Numbers;
        map Compute |p, own| {
            let (x, y, n) = (own.x, own.y, own.n);
            let [one, half] = [1.0, 0.5].map(R::lit);
            let int = |of| R::Int::lit(of);
            let size = x.abs() + half;
            let is_low = n.less(int(7)) | n.equals(int(7));
            let mixed = (n.shift_left(3) ^ n.shift_right(1)) | (n & int(5));
            let tenths: R::Int = (x * R::lit(10.0)).to_int();
            let bits = mixed * int(0x0123_4567) + tenths - R::Int::select(!n.equals(int(3)) & is_low, n, int(1));
            Numbers {
                x: one - x * half,
                y: y - R::lit(0.25),
                n: R::Int::select((-n).less(n - int(7)), n - int(7), -n),
                bits,
                a: [x.exp(), size.ln(), x.sin(), y.cos()],
                b: [x.tanh(), y.max(-one).min(one).acos(), y.atan2(x), size.sqrt()],
                c: [size.pow(y), x.powi(5), size.powi(-2), R::lit(2.0).pow(x)],
                d: [x.floor(), x.rem(size), (y / size).floor(), x.sign()],
                e: [
                    x.min(y),
                    x.max(R::lit(0.25)),
                    R::from_int(n * p.step()),
                    R::select(!x.less(y) | x.equals(y), R::lit(3.0), -x),
                ],
            }
        };
    }

    impl Program for Functions {
        fn initial(&self, _: &Mesh, v: u32) -> Numbers<f64> {
            let [x, y] = [f64::from(v % 13) / 4.0 - 1.5, f64::from(v % 7) / 3.0 - 1.0];
            let zeros = [0.0; 4];
            let n = Int((v % 17) as i32 - 8);
            Numbers { x, y, n, bits: Int(0), a: zeros, b: zeros, c: zeros, d: zeros, e: zeros }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Compute);
        }
    }

    #[test]
    fn functions() {
        check("functions", || Functions);
    }
}
