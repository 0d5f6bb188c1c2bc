//! Nothing passes through anything: an exact test of every state.

mod scenes;

use meshweft::mesh::contact::{Surface, crossings};
use meshweft::{Backend, Mesh, Number, Order, Simulation};
use meshweft_examples::cloth::{Cloth, ClothOptions};
use meshweft_mesh::{CellKind, Cells};
use scenes::{Random, Scene};

/// A scene, ready to run.
struct Run<T: Number> {
    simulation: Simulation<Cloth, T>,
    scene: Scene,
    surface: Surface,
    steps: usize,
}

impl<T: Number> Run<T> {
    fn new(scene: Scene, order: Order, backend: Backend) -> Run<T> {
        let cells = Cells::of(CellKind::Triangle, scene.triangles.concat());
        let mut mesh = Mesh::new(scene.rest.clone(), cells).unwrap();
        let options = ClothOptions { size: None, ..scene.options.clone() };
        let cloth = Cloth::with(&mut mesh, &options, order).unwrap();
        let surface = Surface::new(&scene.places, &scene.triangles, &[], &[]).unwrap();
        let mut simulation =
            Simulation::builder(mesh, cloth).order(order).backend(backend).precision::<T>().build().unwrap();
        simulation.set_field("position", scene.places.as_flattened()).unwrap();
        simulation.set_field("velocity", scene.velocities.as_flattened()).unwrap();
        let free: Vec<f64> = scene.held.iter().map(|&held| if held { 0.0 } else { 1.0 }).collect();
        simulation.set_field("free", &free).unwrap();
        simulation.set_field("falling", &free).unwrap();
        Run { simulation, scene, surface, steps: 0 }
    }

    fn places(&self) -> Vec<[f64; 3]> {
        self.simulation.field("position").unwrap().values.as_chunks::<3>().0.to_vec()
    }

    /// Takes a step, and looks whether anything has passed through anything.
    fn step(&mut self) {
        if let Some(drive) = self.scene.drive {
            let (mut places, time) = (self.places(), self.simulation.time());
            let mut velocities = self.simulation.field("velocity").unwrap().values;
            for (v, place) in places.iter_mut().enumerate().filter(|(v, _)| self.scene.held[*v]) {
                velocities[3 * v..3 * v + 3].copy_from_slice(&drive(self.scene.places[v], *place, time));
            }
            self.simulation.set_field("velocity", &velocities).unwrap();
        }
        self.simulation.step().unwrap();
        self.steps += 1;
        self.check();
    }

    fn check(&self) {
        let found = crossings(&self.surface, &self.places()).unwrap();
        let name = &self.scene.name;
        assert!(found.is_empty(), "{name}: after step {} {} edges pass, first {:?}", self.steps, found.len(), found[0]);
    }

    fn energy(&mut self) -> f64 {
        self.simulation.metrics().unwrap().iter().map(|metric| metric.value).sum()
    }
}

/// Runs a scene, and tells the most that energy grew by in a step, as a share of the most kinetic energy that there was.
fn run(scene: Scene, steps: usize) -> f64 {
    let mut run = Run::<f32>::new(scene, Order::BLOCKED, Backend::Cpu { threads: 2 });
    run.check();
    let (mut before, mut worst, mut scale) = (run.energy(), 0.0f64, 0.0f64);
    for _ in 0..steps {
        run.step();
        let now = run.energy();
        worst = worst.max(now - before);
        scale = scale.max(run.simulation.metrics().unwrap()[0].value);
        before = now;
    }
    worst / scale
}

#[test]
fn a_strip_that_falls_in_folds_on_the_ground() {
    let grown = run(scenes::strip(), 900);
    assert!(grown < 1e-2, "{grown}");
}

#[test]
fn sheets_dropped_on_each_other() {
    let grown = run(scenes::stack(), 600);
    assert!(grown < 1e-2, "{grown}");
}

#[test]
fn a_ball_thrown_at_a_curtain() {
    let grown = run(scenes::thrown(), 300);
    assert!(grown < 1e-2, "{grown}");
}

#[test]
fn a_towel_that_is_twisted() {
    run(scenes::towel(), 1200);
}

#[test]
fn a_knot_that_is_pulled_tight() {
    run(scenes::knot(), 900);
}

/// `SEED` replays one, `MESHWEFT_SCENES` says how many.
#[test]
fn random_scenes() {
    let of_environment = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match of_environment("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..of_environment("MESHWEFT_SCENES").unwrap_or(100),
    };
    let (mut tried, all) = (0, seeds.end - seeds.start);
    for seed in seeds {
        let mut random = Random::new(seed);
        let scene = scenes::random(seed, &mut random);
        let orders = Order::ALL;
        let order = orders[random.below(orders.len())];
        let mut run = Run::<f32>::new(scene, order, Backend::Cpu { threads: 1 });
        // Pieces are put down at random: what crosses already is no scene.
        if !crossings(&run.surface, &run.places()).unwrap().is_empty() {
            continue;
        }
        tried += 1;
        (0..12).for_each(|_| run.step());
    }
    assert!(2 * tried >= all, "only {tried} of {all} begin apart");
}
