//! Cloth that falls over a body: a surface that is held.

use super::{Run, once};
use meshweft::mesh::contact::Surface;
use meshweft::{Backend, Order, Simulation};
use meshweft_command::Example;
use meshweft_examples::cloth::{Cloth, ClothOptions, Pins};
use meshweft_mesh::generate::generate;

/// Lets a sheet fall over a body of so many vertices, looks at every state, and tells where it comes to rest.
fn fall(over: &str, body: usize, options: ClothOptions, steps: usize) -> Vec<[f64; 3]> {
    let mut mesh = generate("sheet:22x22", 1).unwrap();
    let options = ClothOptions { over: Some(over.into()), pins: Pins::None, ..options };
    let cloth = Cloth::with(&mut mesh, &options, Order::BLOCKED).unwrap();
    let places = mesh.points().len() - body;
    let mut once = once(places, options.tear.and(Some(options.spares)));
    once.extend(places as u32..mesh.points().len() as u32);
    let (rest, triangles, look) = (mesh.points().to_vec(), mesh.triangles(), cloth.look());
    let simulation = Simulation::builder(mesh, cloth).backend(Backend::Cpu { threads: 2 }).build().unwrap();
    let surface = move |simulation: &Simulation<Cloth, f32>| {
        let cells = look.cells.as_ref().map(|now| (now.0)(&[simulation.field("holds").unwrap()]));
        let corners = cells.map_or(triangles.clone(), |cells| cells.all_corners().as_chunks::<3>().0.to_vec());
        Surface::new(&rest, &corners, &[], &[]).unwrap().with_once(once.clone())
    };
    let mut run = Run { simulation, name: over.into(), surface: Box::new(surface), steps: 0 };
    let before = run.places()[places..].to_vec();
    run.check();
    (0..steps).for_each(|_| run.step());
    let after = run.places();
    assert_eq!(after[places..], before, "{over}: it moves");
    after[..places].to_vec()
}

#[test]
fn a_sheet_over_a_ring_and_over_the_surface_of_a_solid() {
    for (over, body) in [("torus:30x16", 480), ("box:5", 98)] {
        let places = fall(over, body, ClothOptions::default(), 500);
        let top = places.iter().fold(0.0, |most: f64, p| most.max(p[2]));
        // A ring of 0.48 m across is lower than a cube.
        let least = if over.starts_with("torus") { 0.1 } else { 0.47 };
        assert!((least..0.6).contains(&top), "{over}: {top} m");
        assert!(places.iter().all(|p| p[2] > -0.01), "{over}: below the ground");
    }
}

#[test]
fn a_sheet_that_tears_over_a_ring() {
    let options = ClothOptions { tear: Some(0.01), stretch: 20.0, ..ClothOptions::default() };
    fall("torus:30x16", 480, options, 200);
}

#[test]
fn what_is_no_body_is_refused_with_a_way_out() {
    let refusal = |over: &str, touching: bool| {
        let options = ClothOptions { over: Some(over.into()), touching, ..ClothOptions::default() };
        let mut mesh = generate("sheet:5", 1).unwrap();
        format!("{:#}", Cloth::with(&mut mesh, &options, Order::BLOCKED).err().unwrap())
    };
    for (over, touching, says) in [
        ("torus:30x16", false, "leave out one of them"),
        ("chain:5", true, "no surface to fall on"),
        ("missing.obj", true, "no mesh file missing.obj"),
        ("toros:30x16", true, "over=toros:30x16"),
    ] {
        let why = refusal(over, touching);
        assert!(why.contains(says), "{over}: {why}");
    }
    // A triangle through another.
    let folder = tempfile::tempdir().unwrap();
    let crossed = folder.path().join("crossed.obj");
    let points = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0.2 0.2 -1\nv 0.2 0.2 1\nv 0.9 0.9 1\n";
    std::fs::write(&crossed, format!("{points}f 1 2 3\nf 4 5 6\n")).unwrap();
    let why = refusal(crossed.to_str().unwrap(), true);
    assert!(why.contains("2 of its edges") && why.contains("mend it") && !why.contains("touching"), "{why}");
}
