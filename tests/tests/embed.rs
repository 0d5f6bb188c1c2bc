//! A host program with its own loop.

use meshweft::nalgebra::Vector3;
use meshweft::{Backend, Order, Simulation};
use meshweft_examples::cloth::{Cloth, ClothOptions};
use meshweft_mesh::generate::generate;

fn cloth(threads: usize) -> Simulation<Cloth> {
    let mut mesh = generate("sheet:16", 1).unwrap();
    let options = ClothOptions { obstacles: false, ..ClothOptions::default() };
    let program = Cloth::with(&mut mesh, &options, Order::default()).unwrap();
    Simulation::builder(mesh, program).backend(Backend::Cpu { threads }).build().unwrap()
}

/// Pushes every vertex sideways each frame, through the fields by name.
fn push(simulation: &mut Simulation<Cloth>, frames: usize) {
    for _ in 0..frames {
        let mut velocity = simulation.field("velocity").unwrap().values;
        velocity.chunks_exact_mut(3).for_each(|v| v[0] += 0.02);
        simulation.set_field("velocity", &velocity).unwrap();
        simulation.step().unwrap();
    }
}

#[test]
fn a_host_pushes_the_cloth_each_frame_and_gets_the_same_bits_on_any_threads() {
    let (mut one, mut three, mut left_alone) = (cloth(1), cloth(3), cloth(2));
    push(&mut one, 40);
    push(&mut three, 40);
    (0..40).for_each(|_| left_alone.step().unwrap());
    one.compare(&three).unwrap();
    let mean_x = |s: &Simulation<Cloth>| s.field("position").unwrap().values.chunks_exact(3).map(|p| p[0]).sum::<f64>();
    assert!(mean_x(&one) > mean_x(&left_alone) + 1.0);
    assert!(one.compare(&left_alone).is_err());
}

#[test]
fn two_simulations_live_side_by_side() {
    let (mut a, mut b) = (cloth(2), cloth(2));
    for _ in 0..5 {
        a.step().unwrap();
        b.step().unwrap();
    }
    a.compare(&b).unwrap();
}

#[test]
fn wrong_fields_and_values_are_refused() {
    let mut simulation = cloth(1);
    let before = simulation.digest().unwrap();
    let says = |error: meshweft::Error, part: &str| assert!(error.to_string().contains(part), "{error}");
    says(simulation.field("speed").unwrap_err(), "position");
    says(simulation.set_field("mass", &[1.0]).unwrap_err(), "256 × 1 values, 1 were given");
    let mut values = vec![1.0; 256];
    values[7] = f64::NAN;
    says(simulation.set_field("mass", &values).unwrap_err(), "vertex 7");
    assert_eq!(simulation.digest().unwrap(), before, "a refused write changes nothing");
}

#[test]
fn a_vertex_can_be_moved_by_hand() {
    let mut simulation = cloth(1);
    let mut node = simulation.vertex(9).unwrap();
    node.position += Vector3::new(0.0, 0.0, 0.5);
    simulation.set_vertex(9, node).unwrap();
    assert_eq!(simulation.vertex(9).unwrap().position, node.position);
    let z = simulation.field("position").unwrap().values[9 * 3 + 2];
    assert_eq!(z as f32, node.position.z);
}
