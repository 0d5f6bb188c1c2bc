//! The scene: where the solids are, what holds them, what they touch, and their shape at rest.

use super::Edge;
use super::options::{Act, Obstructed, SoftbodyOptions, turn_up};
use super::shape::Shape;
use super::tear::Tear;
use anyhow::{Result, anyhow, bail, ensure};
use meshweft::nalgebra::{Rotation3, Vector3};
use meshweft_mesh::{Cells, Field, Mesh};
use meshweft_physics::{Touching, determinant};
use std::sync::Arc;

/// What does not change during a run.
pub(crate) struct Scene {
    /// Positions at rest, shape [n × 3], m.
    pub(crate) rest: Vec<[f64; 3]>,
    /// Edges that carry a weight, and those weights, m.
    pub(crate) edges: Arc<Vec<[u32; 2]>>,
    weights: Vec<f64>,
    /// Tets of positive volume.
    pub(crate) tets: Arc<Vec<[u32; 4]>>,
    /// Each vertex's share of the volume, m³.
    pub(crate) volumes: Vec<f64>,
    /// Whether each vertex is held.
    pub(crate) held: Vec<bool>,
    /// Center and radius of the ball, m.
    pub(crate) ball: ([f64; 3], f64),
    /// Middle of the mesh, length along x and height, m.
    pub(crate) center: [f64; 3],
    pub(crate) length: f64,
    pub(crate) height: f64,
    /// What keeps solids from passing through each other and themselves, if something does.
    pub(super) touching: Option<Touching>,
    /// What tears, if something does.
    pub(super) tear: Option<Arc<Tear>>,
    /// Tets of hardly any volume, which are no part of the solid.
    flat: usize,
    /// Points that are in no tet of the solid, which stay where they are.
    stray: usize,
}

/// Share of the length at either end that is held.
const END: f64 = 0.02;
/// Share of the length that is between two solids that fall.
const GAP: f64 = 0.06;
/// Distance that solids keep from each other and themselves, as a share of the length of one.
const THICKNESS: f64 = 0.005;
/// By how much solids of a pile are tilted, and how far they are beside its middle, as a share of the length of one.
const TILT: f64 = 0.15;
const ASIDE: f64 = 0.1;

impl Scene {
    /// Scales the mesh to the size asked for, places it, and picks what is held.
    pub(crate) fn set(mesh: &mut Mesh, options: &SoftbodyOptions) -> Result<Scene> {
        if matches!(mesh.dimension(), 1 | 2) {
            let counts = mesh.cells().counts();
            let counts: Vec<String> = counts.iter().map(|(kind, n)| format!("{n} of kind {}", kind.name())).collect();
            bail!(
                "softbody needs tets or other solid cells, but the cells of the mesh are {}: give a solid, such as bar:41x11x11",
                counts.join(", ")
            );
        }
        if options.y_is_up {
            turn_up(mesh)?;
        }
        scale(mesh, options.size)?;
        let [size, ball] = place(mesh, options)?;
        let Shape { edges, weights, tets, mut volumes, skin, flat } = Shape::of(mesh)?;
        let stray = volumes.iter().filter(|&&volume| volume <= 0.0).count();
        let tear = options
            .tear
            .map(|limit| Tear::of(mesh, tets.clone(), (limit, options.spares), options.touching))
            .transpose()?;
        if let Some(tear) = &tear {
            volumes = tear.tearing().once().iter().map(|&v| volumes[v as usize]).collect();
        }
        let touching = match options.touching {
            true => {
                let touching = Touching::new(mesh.points().to_vec(), skin, THICKNESS * size);
                let touching = touching.map_err(|e| anyhow!("{e}, or set touching=off"))?;
                Some(match &tear {
                    Some(tear) => touching.with_once(tear.tearing().once().to_vec()),
                    None => touching,
                })
            }
            false => None,
        };
        let [low, high] = mesh.bounds();
        let pulled = matches!(options.act, Act::Twist | Act::Stretch);
        let near = END * (high[0] - low[0]);
        let is_end = |x: f64| pulled && (x - low[0] <= near || high[0] - x <= near);
        let held = mesh.points().iter().zip(&volumes).map(|(p, &volume)| volume <= 0.0 || is_end(p[0])).collect();
        let has_ball = options.act == Act::Drop && options.obstacles == Obstructed::All;
        let radius = if has_ball { ball } else { 0.0 };
        Ok(Scene {
            rest: mesh.points().to_vec(),
            edges: Arc::new(edges),
            weights,
            tets: Arc::new(tets),
            volumes,
            held,
            // One that is not there is far below.
            ball: ([0.0, 0.0, if has_ball { radius } else { -1e6 * size }], radius),
            center: [0, 1, 2].map(|k| (low[k] + high[k]) / 2.0),
            length: high[0] - low[0],
            height: high[2] - low[2],
            touching,
            tear: tear.map(Arc::new),
            flat,
            stray,
        })
    }

    /// The data of an edge.
    pub(crate) fn edge(&self, edge: usize) -> Edge<f64> {
        Edge::at_rest(self.edges[edge], self.weights[edge], &self.rest)
    }

    /// One over six times the volume of a tet, 1/m³.
    pub(crate) fn inverse(&self, tet: usize) -> f64 {
        1.0 / determinant(self.tets[tet].map(|v| self.rest[v as usize]))
    }

    /// What was left out.
    pub(crate) fn note(&self) -> Option<String> {
        let all = self.tets.len() + self.flat;
        let flat =
            (self.flat > 0).then(|| format!("{} of {all} tets have hardly any volume and are left out", self.flat));
        let all = self.rest.len();
        let stray =
            (self.stray > 0).then(|| format!("{} of {all} points are in no tet and stay where they are", self.stray));
        let both: Vec<String> = flat.into_iter().chain(stray).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

/// The extents of a mesh along the axes, m.
fn extents(mesh: &Mesh) -> [f64; 3] {
    let [low, high] = mesh.bounds();
    [0, 1, 2].map(|k| high[k] - low[k])
}

/// Scales the mesh: its longest side is then `size`, if one is asked for, or what it was if that is of the order of a meter.
fn scale(mesh: &mut Mesh, size: Option<f64>) -> Result<()> {
    let longest = extents(mesh).into_iter().fold(0.0, f64::max);
    let wanted = size.unwrap_or(if (0.2..=5.0).contains(&longest) { longest } else { 1.0 });
    if longest > 0.0 && longest != wanted {
        let scale = wanted / longest;
        mesh.set_points(mesh.points().iter().map(|p| p.map(|x| x * scale)).collect())?;
    }
    Ok(())
}

/// Puts the middle of the mesh above the origin, with its lowest point at a height.
fn settle(mesh: &mut Mesh, height: f64) -> Result<()> {
    let [low, high] = mesh.bounds();
    let shift = [-(low[0] + high[0]) / 2.0, -(low[1] + high[1]) / 2.0, height - low[2]];
    mesh.set_points(mesh.points().iter().map(|p| [0, 1, 2].map(|k| p[k] + shift[k])).collect())?;
    Ok(())
}

/// Places the mesh in its scene. Returns the longest side of one solid, and the radius of a ball that suits it.
fn place(mesh: &mut Mesh, options: &SoftbodyOptions) -> Result<[f64; 2]> {
    let extents = extents(mesh);
    let size = Some(extents.into_iter().fold(0.0, f64::max)).filter(|&size| size > 0.0).unwrap_or(1.0);
    let radius = 0.2 * size;
    match options.act {
        Act::Drop if options.slope == 0.0 => drop(mesh, options.bodies, size, 2.5 * radius)?,
        Act::Pile => pile(mesh, options.bodies, size)?,
        // On a slope it starts at rest.
        Act::Drop | Act::Squeeze => settle(mesh, 0.0)?,
        Act::Twist | Act::Stretch => {
            // The longest side along x. Axes take turns: a swap would turn the solid inside out.
            let long = (0..3).find(|&k| extents[k] == size).unwrap_or(0);
            mesh.set_points(mesh.points().iter().map(|p| [0, 1, 2].map(|k| p[(k + long) % 3])).collect())?;
            settle(mesh, 0.3 * size)?;
        }
    }
    Ok([size, radius])
}

/// Hangs copies of the mesh side by side along y, each tilted another way, the lowest at a height and the others higher.
fn drop(mesh: &mut Mesh, bodies: usize, size: f64, height: f64) -> Result<()> {
    // The middle one lies level above the ball.
    let place = |body: usize| body as f64 - (bodies / 2) as f64;
    let turn = |body: usize| {
        Rotation3::from_axis_angle(&Vector3::y_axis(), 0.4 * place(body))
            * Rotation3::from_axis_angle(&Vector3::x_axis(), 0.5 * place(body))
    };
    let mut next = 0.0;
    let shift = |body: usize, [x, y, z]: [[f64; 2]; 3]| {
        let up = height + 0.05 * size * (place(body).abs() % 3.0);
        let shift = Vector3::new(-(x[0] + x[1]) / 2.0, next - y[0], up - z[0]);
        next += y[1] - y[0] + GAP * size;
        shift
    };
    copy(mesh, bodies, turn, shift)?;
    let middle = (next - GAP * size) / 2.0;
    mesh.set_points(mesh.points().iter().map(|&[x, y, z]| [x, y - middle, z]).collect())?;
    Ok(())
}

/// Hangs copies of the mesh above each other, each turned and tilted another way, and beside the middle, so that they fall to a pile.
fn pile(mesh: &mut Mesh, bodies: usize, size: f64) -> Result<()> {
    /// The golden angle, so that no two are turned alike.
    const GOLDEN: f64 = 2.399_963_229_728_653;
    let around = |body: usize| Rotation3::from_axis_angle(&Vector3::z_axis(), GOLDEN * body as f64);
    let turn = |body: usize| around(body) * Rotation3::from_axis_angle(&Vector3::y_axis(), TILT);
    let mut next = GAP * size;
    let shift = |body: usize, [x, y, z]: [[f64; 2]; 3]| {
        let aside = around(body) * Vector3::y() * (ASIDE * size);
        let shift = Vector3::new(-(x[0] + x[1]) / 2.0, -(y[0] + y[1]) / 2.0, next - z[0]) + aside;
        next += z[1] - z[0] + GAP * size;
        shift
    };
    copy(mesh, bodies, turn, shift)
}

/// Makes copies of the mesh, each `turn`ed and then `shift`ed by what is said for its bounds along the axes; the field `body` of the points
/// tells them apart.
fn copy(
    mesh: &mut Mesh,
    bodies: usize,
    turn: impl Fn(usize) -> Rotation3<f64>,
    mut shift: impl FnMut(usize, [[f64; 2]; 3]) -> Vector3<f64>,
) -> Result<()> {
    let n = mesh.points().len();
    let most = u32::MAX as usize / 4;
    ensure!(
        bodies.saturating_mul(n.max(mesh.cells().all_corners().len())) <= most,
        "{bodies} bodies of {n} vertices are too many: at most {most} corners of cells in all"
    );
    let (mut points, mut cells) = (Vec::with_capacity(bodies * n), Cells::new());
    for body in 0..bodies {
        let turn = turn(body);
        let turned: Vec<Vector3<f64>> = mesh.points().iter().map(|p| turn * Vector3::from(*p)).collect();
        let bound =
            |k: usize| turned.iter().fold([f64::MAX, f64::MIN], |[low, high], p| [low.min(p[k]), high.max(p[k])]);
        let shift = shift(body, [0, 1, 2].map(bound));
        points.extend(turned.iter().map(|p| <[f64; 3]>::from(p + shift)));
        for (kind, corners) in mesh.cells().iter() {
            let corners: Vec<u32> = corners.iter().map(|&v| v + (body * n) as u32).collect();
            cells.push(kind, &corners);
        }
    }
    if bodies == 1 {
        mesh.set_points(points)?;
    } else {
        *mesh = Mesh::new(points, cells)?;
    }
    let values = (0..bodies * n).map(|v| (v / n) as f64).collect();
    mesh.set_point_field(Field { name: "body".into(), components: 1, values })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Softbody, SoftbodyOptions};
    use super::*;
    use meshweft::{Order, Simulation};
    use meshweft_mesh::generate::generate;

    #[test]
    fn a_solid_that_nothing_pulls_at_stays_as_it_is() {
        for spec in ["bar:9x3x3", "ball:9", "box:5", "hexes:4"] {
            let options =
                SoftbodyOptions { gravity: 0.0, bodies: 2, obstacles: Obstructed::Nothing, ..Default::default() };
            let mut mesh = generate(spec, 1).unwrap();
            let softbody = Softbody::with(&mut mesh, &options, Order::default()).unwrap();
            let mut run = Simulation::builder(mesh, softbody).precision::<f64>().build().unwrap();
            let before = run.field("position").unwrap().values.to_vec();
            (0..20).for_each(|_| run.step().unwrap());
            let after = run.field("position").unwrap().values;
            let most = before.iter().zip(&after[..]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(most < 1e-13, "{spec}: {most}");
        }
    }
}
