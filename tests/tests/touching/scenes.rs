//! Scenes in which cloth touches itself.

use meshweft_examples::cloth::{ClothOptions, Pins};
use meshweft_mesh::generate::generate;
use nalgebra::{Rotation3, Vector3};

/// Where something held goes: its velocity, from where it was at first, where it is, and the time.
type Drive = fn([f64; 3], [f64; 3], f64) -> [f64; 3];

/// Pieces of cloth, and how they move at first.
pub(super) struct Scene {
    pub(super) name: String,
    pub(super) rest: Vec<[f64; 3]>,
    pub(super) triangles: Vec<[u32; 3]>,
    pub(super) places: Vec<[f64; 3]>,
    pub(super) velocities: Vec<[f64; 3]>,
    pub(super) held: Vec<bool>,
    pub(super) drive: Option<Drive>,
    pub(super) options: ClothOptions,
}

/// A piece of a scene: points and triangles at rest, and where they are.
struct Piece {
    rest: Vec<[f64; 3]>,
    triangles: Vec<[u32; 3]>,
    places: Vec<[f64; 3]>,
    velocity: [f64; 3],
}

fn options() -> ClothOptions {
    ClothOptions { obstacles: false, touching: true, pins: Pins::None, drag: 0.5, ..ClothOptions::default() }
}

/// A grid of `n` × `m` vertices, `h` apart.
fn grid(n: usize, m: usize, h: f64) -> (Vec<[f64; 3]>, Vec<[u32; 3]>) {
    let points = (0..n * m).map(|i| [(i / m) as f64 * h, (i % m) as f64 * h, 0.0]).collect();
    let at = |i: usize, j: usize| (i * m + j) as u32;
    let squares = (0..n - 1).flat_map(|i| (0..m - 1).map(move |j| (i, j)));
    let triangles = squares.flat_map(|(i, j)| {
        let [a, b, c, d] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
        if (i + j) % 2 == 0 { [[a, b, c], [a, c, d]] } else { [[a, b, d], [b, c, d]] }
    });
    (points, triangles.collect())
}

fn scene(name: &str, pieces: Vec<Piece>, options: ClothOptions) -> Scene {
    let (mut rest, mut triangles, mut places, mut velocities) = (vec![], vec![], vec![], vec![]);
    for (i, piece) in pieces.into_iter().enumerate() {
        let first = rest.len() as u32;
        triangles.extend(piece.triangles.iter().map(|corners| corners.map(|v| first + v)));
        // At rest pieces lie far from each other.
        rest.extend(piece.rest.iter().map(|&[x, y, z]| [x, y, z + 0.4 * i as f64]));
        velocities.extend(piece.rest.iter().map(|_| piece.velocity));
        places.extend(piece.places);
    }
    let held = vec![false; rest.len()];
    Scene { name: name.into(), rest, triangles, places, velocities, held, drive: None, options }
}

fn piece((rest, triangles): (Vec<[f64; 3]>, Vec<[u32; 3]>), place: impl Fn([f64; 3]) -> [f64; 3]) -> Piece {
    let places = rest.iter().map(|&p| place(p)).collect();
    Piece { rest, triangles, places, velocity: [0.0; 3] }
}

pub(super) fn strip() -> Scene {
    let grid = grid(60, 6, 0.02);
    // Upright, and a little wavy, beside the ball.
    let place = |[x, y, _]: [f64; 3]| [1.5 + 0.01 * (9.0 * x).sin(), y, 0.1 + x];
    let options = ClothOptions { obstacles: true, ..options() };
    scene("strip", vec![piece(grid, place)], options)
}

pub(super) fn stack() -> Scene {
    let sheets = (0..4).map(|i| {
        let turn = Rotation3::from_euler_angles(0.1 * f64::from(i), 0.07, 0.7 * f64::from(i));
        piece(grid(16, 16, 0.02), |[x, y, z]| {
            let p = turn * Vector3::new(x - 0.15, y - 0.15, z);
            [p.x + 1.5, p.y, p.z + 0.15 + 0.12 * f64::from(i)]
        })
    });
    scene("stack", sheets.collect(), ClothOptions { obstacles: true, ..options() })
}

pub(super) fn thrown() -> Scene {
    let curtain = piece(grid(30, 30, 0.025), |[x, y, _]| [0.0, x - 0.36, 1.0 - y]);
    let ball = generate("ball:9", 1).unwrap().skin();
    let points: Vec<[f64; 3]> = ball.points().iter().map(|p| p.map(|x| 0.12 * x)).collect();
    let mut ball = piece((points, ball.triangles()), |[x, y, z]| [x - 0.3, y, z + 0.6]);
    ball.velocity = [8.0, 0.0, 0.0];
    let mut scene = scene("thrown", vec![curtain, ball], options());
    scene.held.iter_mut().zip(&scene.places).for_each(|(held, p)| *held = p[2] > 1.0 - 1e-9 && p[0] == 0.0);
    scene
}

pub(super) fn towel() -> Scene {
    let towel = piece(grid(50, 12, 0.015), |[x, y, _]| [x, y - 0.0825, 1.0]);
    let mut scene = scene("towel", vec![towel], options());
    let end = 49.0 * 0.015;
    scene.held.iter_mut().zip(&scene.rest).for_each(|(held, p)| *held = p[0] < 1e-9 || p[0] > end - 1e-9);
    scene.drive = Some(|first, now, time| {
        let sign = if first[0] < 0.1 { 1.0 } else { -1.0 };
        // The ends come nearer as the towel winds up.
        let turn = sign * 2.0 * std::f64::consts::PI * if time < 1.8 { 0.8 } else { 0.0 };
        [sign * 0.05, -turn * (now[2] - 1.0), turn * now[1]]
    });
    scene
}

/// A ribbon along an overhand knot: Shastri, "Polynomial representations of knots", 1992.
pub(super) fn knot() -> Scene {
    let (n, m) = (240, 3);
    let curve = |t: f64| Vector3::new(t.powi(3) - 3.0 * t, t.powi(4) - 4.0 * t * t, t.powi(5) / 5.0 - 2.0 * t) * 0.12;
    // Places along the curve as far from each other as at rest.
    let fine: Vec<f64> = (0..=20_000).map(|i| -2.25 + 4.5 * f64::from(i) / 20_000.0).collect();
    let mut lengths = vec![0.0];
    for w in fine.windows(2) {
        lengths.push(lengths[lengths.len() - 1] + (curve(w[1]) - curve(w[0])).norm());
    }
    let length = lengths[lengths.len() - 1];
    let h = length / (n - 1) as f64;
    let place = |[x, y, _]: [f64; 3]| {
        let t = fine[lengths.partition_point(|&l| l < x * 0.999_999).min(20_000)];
        let tangent = (curve(t + 1e-4) - curve(t - 1e-4)).normalize();
        let across = tangent.cross(&Vector3::new(0.3, 0.2, 1.0)).normalize();
        let p = curve(t) + across * (y - h);
        [p.x, p.y, p.z + 1.0]
    };
    let mut scene = scene("knot", vec![piece(grid(n, m, h), place)], ClothOptions { gravity: 0.0, ..options() });
    let ends: Vec<bool> = (0..n * m).map(|i| i / m < 2 || i / m >= n - 2).collect();
    scene.held = ends;
    scene.drive = Some(|first, _, time| {
        // Outward along the curve at its ends.
        let out = if first[0] > 0.0 { 1.0 } else { -1.0 };
        let speed = if time < 1.2 { 0.6 } else { 0.0 };
        [out * speed * 0.57, speed * 0.35, out * speed * 0.74]
    });
    scene
}

pub(super) fn random(seed: u64, random: &mut Random) -> Scene {
    let count = 2 + random.below(3);
    let pieces = (0..count).map(|i| {
        let (n, m) = (3 + random.below(5), 3 + random.below(5));
        let turn = Rotation3::from_euler_angles(random.unit() * 6.0, random.unit() * 6.0, random.unit() * 6.0);
        let center = Vector3::new(random.unit() * 0.05, random.unit() * 0.05, 0.13 * i as f64);
        let mut piece = piece(grid(n, m, 0.012 + 0.01 * random.unit()), |[x, y, z]| {
            let p = turn * (Vector3::new(x, y, z) * 0.8) + center;
            [p.x, p.y, p.z]
        });
        piece.velocity =
            [random.unit() - 0.5, random.unit() - 0.5, if i % 2 == 0 { 8.0 } else { -8.0 } * random.unit()];
        piece
    });
    let pieces: Vec<Piece> = pieces.collect();
    let options = ClothOptions {
        dt: [1.0 / 600.0, 1.0 / 120.0, 1.0 / 30.0][random.below(3)],
        rounds: 1 + random.below(10),
        bend: if random.below(2) == 0 { 0.0 } else { 2e-5 },
        friction: random.unit(),
        stretch: 10f64.powi(1 + random.below(4) as i32),
        ..options()
    };
    let mut scene = scene(&format!("random {seed}"), pieces, options);
    (0..scene.held.len()).for_each(|v| scene.held[v] = random.below(40) == 0);
    scene
}

/// Numbers that follow from a seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % end as u64) as usize
    }

    pub(super) fn unit(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }
}
