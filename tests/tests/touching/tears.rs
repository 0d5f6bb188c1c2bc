//! Cloth that tears: what has come apart passes through nothing, and nothing is lost.

use super::scenes::{self, Random};
use super::{Run, cloth, each, seeds, solids};
use meshweft::{Order, Program};
use meshweft_examples::cloth::ClothOptions;
use meshweft_examples::softbody::SoftbodyOptions;

/// Whether each place holds what its vertex no longer does.
fn holds<P: Program>(run: &Run<P, f32>) -> Vec<bool> {
    let holds = run.simulation.field("holds").unwrap().values;
    holds.as_chunks::<2>().0.iter().map(|words| *words != [0.0; 2]).collect()
}

fn mass<P: Program>(run: &Run<P, f32>) -> f64 {
    let (holds, mass) = (holds(run), run.simulation.field("mass").unwrap().values);
    let vertices = holds.len() / (1 + SPARES as usize);
    (0..holds.len()).filter(|&v| v < vertices || holds[v]).map(|v| mass[v]).sum()
}

/// How often vertices may split here.
const SPARES: u32 = 2;

/// Runs random scenes of which at least one in so many tears.
fn tear<P: Program>(
    of: u64,
    seeds: std::ops::Range<u64>,
    start: impl Fn(u64, &mut Random, Order) -> Option<Run<P, f32>>,
) {
    let (all, mut torn, mut weighed) = (seeds.end - seeds.start, 0, 0.0);
    each(seeds, start, |run| match run.steps {
        0 => weighed = mass(run),
        steps => {
            let now = mass(run);
            assert!((now / weighed - 1.0).abs() < 1e-5, "{}: {weighed} kg have become {now}", run.name);
            torn += u64::from(steps == 12 && holds(run).contains(&true));
        }
    });
    assert!(of * torn >= all, "only {torn} of {all} tear");
}

#[test]
fn random_tears() {
    tear(4, seeds(60), |seed, random, order| {
        let mut scene = scenes::random(seed, random);
        let tear = Some(0.01 + 0.1 * random.unit() * random.unit());
        scene.options = ClothOptions { tear, spares: SPARES, ..scene.options };
        // What is pulled apart tears.
        scene.velocities.iter_mut().zip(&scene.places).for_each(|(velocity, place)| velocity[0] += 20.0 * place[0]);
        Some(cloth(&scene, order, 1))
    });
}

#[test]
fn random_breaks() {
    tear(4, seeds(30), |seed, random, order| {
        let mut scene = solids::random(seed, random);
        let tear = Some(0.01 + 0.1 * random.unit() * random.unit());
        scene.options = SoftbodyOptions { tear, spares: SPARES, ..scene.options };
        let places = scene.mesh.points().to_vec();
        scene.velocities.iter_mut().zip(places).for_each(|(velocity, place)| velocity[0] += 20.0 * place[0]);
        scene.try_start(order, 1)
    });
}
