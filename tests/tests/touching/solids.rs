//! Scenes in which solids touch each other and themselves.

use super::{Random, Run};
use meshweft::mesh::contact::Surface;
use meshweft::{Backend, Order, Simulation};
use meshweft_command::Example;
use meshweft_examples::softbody::{Act, Obstructed, Softbody, SoftbodyOptions};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells, Mesh};
use nalgebra::{Rotation3, Vector3};

/// Solids, and how they move at first.
pub(super) struct Scene {
    pub(super) name: String,
    pub(super) mesh: Mesh,
    pub(super) velocities: Vec<[f64; 3]>,
    pub(super) options: SoftbodyOptions,
}

/// One of them: a generated mesh, its longest side, how it is turned, where its middle is, and how fast it is.
struct Piece {
    spec: &'static str,
    size: f64,
    turn: Rotation3<f64>,
    place: [f64; 3],
    velocity: [f64; 3],
}

fn piece(spec: &'static str, size: f64, place: [f64; 3]) -> Piece {
    Piece { spec, size, turn: Rotation3::identity(), place, velocity: [0.0; 3] }
}

fn options() -> SoftbodyOptions {
    SoftbodyOptions { touching: true, bodies: 1, obstacles: Obstructed::NoBall, ..SoftbodyOptions::default() }
}

fn scene(name: &str, pieces: &[Piece], options: SoftbodyOptions) -> Scene {
    let (mut points, mut tets, mut velocities) = (vec![], vec![], vec![]);
    for Piece { spec, size, turn, place, velocity } in pieces {
        let first = points.len() as u32;
        let mesh = generate(spec, 1).unwrap();
        let [low, high] = mesh.bounds().map(Vector3::from);
        let scale = size / (high - low).max();
        let to = |&p: &[f64; 3]| turn * ((Vector3::from(p) - (low + high) / 2.0) * scale) + Vector3::from(*place);
        points.extend(mesh.points().iter().map(|p| <[f64; 3]>::from(to(p))));
        tets.extend(mesh.tets().iter().map(|corners| corners.map(|v| first + v)));
        velocities.resize(points.len(), *velocity);
    }
    let mesh = Mesh::new(points, Cells::of(CellKind::Tet, tets.concat())).unwrap();
    Scene { name: name.into(), mesh, velocities, options }
}

impl Scene {
    pub(super) fn start(self, order: Order, threads: usize) -> Run<Softbody, f32> {
        self.try_start(order, threads).unwrap()
    }

    /// None if solids pass through each other already.
    pub(super) fn try_start(self, order: Order, threads: usize) -> Option<Run<Softbody, f32>> {
        let Scene { name, mut mesh, velocities, options } = self;
        let softbody = match Softbody::with(&mut mesh, &options, order) {
            Ok(softbody) => softbody,
            Err(error) => {
                assert!(error.to_string().contains("touch or cross triangles at rest"), "{name}: {error}");
                return None;
            }
        };
        let (look, rest) = (softbody.look(), mesh.points().to_vec());
        let once = super::once(rest.len(), options.tear.and(Some(options.spares)));
        let velocities: Vec<[f64; 3]> = match velocities.is_empty() {
            true => velocities,
            false => once.iter().map(|&v| velocities[v as usize]).collect(),
        };
        let skin = mesh.surface();
        let surface = move |simulation: &Simulation<Softbody, f32>| {
            let skin = match &look.cells {
                None => skin.clone(),
                Some(now) => {
                    let cells = (now.0)(&[simulation.field("holds").unwrap()]);
                    Mesh::new(rest.clone(), cells).unwrap().surface()
                }
            };
            Surface::new(&rest, &skin, &[], &[]).unwrap().with_once(once.clone())
        };
        let backend = Backend::Cpu { threads };
        let mut simulation = Simulation::builder(mesh, softbody).order(order).backend(backend).build().unwrap();
        // Of a pile there are more.
        if !velocities.is_empty() {
            simulation.set_field("velocity", velocities.as_flattened()).unwrap();
        }
        Some(Run { simulation, name, surface: Box::new(surface), steps: 0 })
    }
}

pub(super) fn crossed() -> Scene {
    let mut upper = piece("bar:13x4x4", 0.8, [0.05, 0.02, 0.3]);
    upper.turn = Rotation3::from_euler_angles(0.1, 0.05, 1.4);
    scene("crossed", &[piece("bar:13x4x4", 0.8, [0.0; 3]), upper], options())
}

pub(super) fn balls() -> Scene {
    let mut upper = piece("ball:7", 0.4, [0.03, 0.01, 0.5]);
    upper.velocity = [0.0, 0.0, -3.0];
    scene("balls", &[piece("ball:7", 0.4, [0.0; 3]), upper], options())
}

pub(super) fn pile() -> Scene {
    let options = SoftbodyOptions { act: Act::Pile, bodies: 6, size: Some(0.5), ..options() };
    Scene { name: "pile".into(), mesh: generate("bar:9x3x3", 1).unwrap(), velocities: vec![], options }
}

/// Thin enough to coil up.
pub(super) fn twisted() -> Scene {
    let options = SoftbodyOptions { act: Act::Twist, amount: Some(4.0), gravity: 0.0, period: 3.0, ..options() };
    scene("twisted", &[piece("bar:49x3x3", 1.0, [0.0; 3])], options)
}

pub(super) fn squeezed() -> Scene {
    let options = SoftbodyOptions { act: Act::Squeeze, amount: Some(0.95), period: 1.0, ..options() };
    let balls = [[0.0, 0.0, 0.0], [0.22, 0.0, 0.01], [0.11, 0.19, 0.0], [0.11, 0.063, 0.18]];
    scene("squeezed", &balls.map(|place| piece("ball:6", 0.2, place)), options)
}

pub(super) fn random(seed: u64, random: &mut Random) -> Scene {
    let count = 2 + random.below(3);
    let pieces: Vec<Piece> = (0..count)
        .map(|i| Piece {
            spec: ["bar:7x2x2", "ball:4", "box:3", "bar:5x3x3", "hexes:3x3x2"][random.below(5)],
            size: 0.2 + 0.1 * random.unit(),
            turn: Rotation3::from_euler_angles(random.unit() * 6.0, random.unit() * 6.0, random.unit() * 6.0),
            place: [random.unit() * 0.1, random.unit() * 0.1, 0.3 * i as f64],
            velocity: [random.unit() - 0.5, random.unit() - 0.5, if i % 2 == 0 { 8.0 } else { -8.0 } * random.unit()],
        })
        .collect();
    let options = SoftbodyOptions {
        act: [Act::Drop, Act::Drop, Act::Squeeze, Act::Twist][random.below(4)],
        amount: Some(0.9),
        period: 0.3,
        dt: [1.0 / 600.0, 1.0 / 120.0, 1.0 / 30.0][random.below(3)],
        rounds: 1 + random.below(10),
        young: 10f64.powi(2 + random.below(9) as i32),
        poisson: [0.0, 0.3, 0.49, 0.4999][random.below(4)],
        friction: random.unit(),
        ..options()
    };
    scene(&format!("random solids {seed}"), &pieces, options)
}
