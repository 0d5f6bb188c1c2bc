//! Cloth that tears: what has come apart passes through nothing, and nothing is lost.

use super::scenes::{self, Random};
use super::{Run, cloth, each, seeds};
use meshweft::Order;
use meshweft_examples::cloth::{Cloth, ClothOptions};

/// Spare places that hold something.
fn split(run: &Run<Cloth, f32>) -> usize {
    run.simulation.field("holds").unwrap().values.iter().filter(|&&held| held != 0.0).count()
}

fn mass(run: &Run<Cloth, f32>) -> f64 {
    let [holds, mass] = ["holds", "mass"].map(|name| run.simulation.field(name).unwrap().values);
    let vertices = holds.len() / (1 + SPARES as usize);
    let counts = |v: usize| v < vertices || holds[v] != 0.0;
    (0..holds.len()).filter(|&v| counts(v)).map(|v| mass[v]).sum()
}

/// How often vertices may split here.
const SPARES: u32 = 2;

#[test]
fn random_tears() {
    let (seeds, mut torn, mut weighed) = (seeds(60), 0, 0.0);
    let all = seeds.end - seeds.start;
    let start = |seed: u64, random: &mut Random, order: Order| {
        let mut scene = scenes::random(seed, random);
        let tear = Some(0.01 + 0.1 * random.unit() * random.unit());
        scene.options = ClothOptions { tear, spares: SPARES, ..scene.options };
        // What is pulled apart tears.
        scene.velocities.iter_mut().zip(&scene.places).for_each(|(velocity, place)| velocity[0] += 20.0 * place[0]);
        Some(cloth(&scene, order, 1))
    };
    each(seeds, start, |run| match run.steps {
        0 => weighed = mass(run),
        steps => {
            let now = mass(run);
            assert!((now / weighed - 1.0).abs() < 1e-5, "{}: {weighed} kg have become {now}", run.name);
            torn += u64::from(steps == 12 && split(run) > 0);
        }
    });
    assert!(4 * torn >= all, "only {torn} of {all} tear");
}
