//! The scene: where the mesh hangs, what holds it, what it falls on, and its shape at rest.

use super::over::Body;
use super::{ClothOptions, Pins, THICKNESS};
use crate::softbody::options::turn_up;
use anyhow::{Result, anyhow, bail};
use meshweft::nalgebra::Vector3;
use meshweft_mesh::{CellKind, Cells, Laplacian, Mesh};
use meshweft_physics::Touching;
use meshweft_physics::bending::{Hinge, hinges};
use rayon::prelude::*;

/// What does not change during a run.
pub(crate) struct Scene {
    /// Positions at rest, shape [n × 3], m.
    pub(crate) rest: Vec<[f64; 3]>,
    /// Each vertex's share of the area, m².
    pub(crate) areas: Vec<f64>,
    /// Whether each vertex is held.
    pub(crate) pinned: Vec<bool>,
    /// Center and radius of the ball, m; none where there is a body in its place.
    pub(crate) ball: Option<([f64; 3], f64)>,
    /// What stands there.
    body: Option<Body>,
    /// The number of its first vertex, once it has joined the mesh.
    first: usize,
    /// Points of the mesh that are in no triangle, and so no part of the cloth.
    pub(super) left_out: usize,
    /// 1 if the triangles of a closed surface are all seen from outside, -1 if from inside, 0 for any other surface.
    pub(super) outward: f64,
}

impl Scene {
    /// Scales the mesh to the size asked for, centers it above the ball and picks the pins.
    pub(crate) fn set(mesh: &mut Mesh, options: &ClothOptions) -> Result<Scene> {
        let has_triangles = !mesh.triangles().is_empty();
        if !has_triangles && mesh.dimension() > 0 {
            let counts = mesh.cells().counts();
            let counts: Vec<String> = counts.iter().map(|(kind, n)| format!("{n} of kind {}", kind.name())).collect();
            bail!(
                "cloth needs triangles or quads, but the cells of the mesh are {}: give a surface",
                counts.join(", ")
            );
        }
        let left_out = if has_triangles { keep_surface(mesh)? } else { 0 };
        if options.y_is_up {
            turn_up(mesh)?;
        }
        let [low, high] = mesh.bounds();
        let extent = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let scale = match options.size {
            None if extent == 0.0 || (0.2..=5.0).contains(&extent) => 1.0,
            None => 1.0 / extent,
            Some(size) if extent > 0.0 => size / extent,
            _ => 1.0,
        };
        let size = if extent > 0.0 { extent * scale } else { 1.0 };
        // The ball stands on the ground, or something else does; the mesh hangs above it.
        let radius = 0.24 * size;
        let body = options.over.as_deref().map(|name| Body::of(name, 2.0 * radius, options.y_is_up)).transpose()?;
        let ball = ([0.0, 0.0, 1.3 * radius], radius);
        let bottom = body.as_ref().map_or(ball.0[2] + radius, Body::height) + 0.08 * size;
        let ball = Some(ball).filter(|_| body.is_none());
        let middle = [(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0];
        let place =
            |p: &[f64; 3]| [(p[0] - middle[0]) * scale, (p[1] - middle[1]) * scale, (p[2] - low[2]) * scale + bottom];
        mesh.set_points(mesh.points().iter().map(place).collect())?;
        let areas = match has_triangles {
            true => Laplacian::of(&triangles_only(mesh)?)?.masses,
            false => vec![0.0; mesh.points().len()],
        };
        let pinned = pins(mesh, options.pins);
        let outward = if is_closed(mesh) { volume(mesh).signum() } else { 0.0 };
        let first = usize::MAX;
        Ok(Scene { rest: mesh.points().to_vec(), areas, pinned, ball, body, first, left_out, outward })
    }
}

impl Scene {
    /// The area of which a vertex has the weight, m²: a square centimeter if its triangles have none.
    pub(super) fn area(&self, v: u32) -> f64 {
        Some(self.areas[v as usize]).filter(|&area| area > 0.0).unwrap_or(1e-4)
    }

    /// Adds what the cloth falls on to the mesh, as vertices that are held.
    pub(super) fn join_body(&mut self, mesh: &mut Mesh) -> Result<()> {
        let Some(body) = &self.body else { return Ok(()) };
        self.first = mesh.points().len();
        body.join(mesh)?;
        self.rest.extend(body.points());
        self.areas.resize(self.rest.len(), 0.0);
        self.pinned.resize(self.rest.len(), true);
        Ok(())
    }

    /// Whether it falls on something other than the ball.
    pub(super) fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// Whether a vertex belongs to that.
    pub(super) fn is_body(&self, v: u32) -> bool {
        v as usize >= self.first
    }

    /// The triangles of the cloth.
    pub(super) fn triangles(&self, mesh: &Mesh) -> Vec<[u32; 3]> {
        let mut triangles = mesh.triangles();
        triangles.retain(|corners| !self.is_body(corners[0]));
        triangles
    }

    /// Those of what it falls on.
    pub(super) fn triangles_of_body(&self) -> impl Iterator<Item = [u32; 3]> {
        self.body.iter().flat_map(|body| body.triangles(self.first))
    }

    /// What was left out.
    pub(crate) fn note(&self) -> Option<String> {
        let all = self.left_out + self.rest.len().min(self.first);
        (self.left_out > 0)
            .then(|| format!("{} of {all} points are in no triangle or quad: the cloth is the others", self.left_out))
    }

    /// What keeps the cloth from passing through itself.
    ///
    /// # Errors
    /// A mesh that cannot be a surface, or passes through itself already.
    pub(super) fn touching(&self, mesh: &Mesh) -> Result<Touching> {
        let way_out = if self.body.is_some() { "" } else { ", or set touching=off" };
        Touching::new(self.rest.clone(), mesh.triangles(), THICKNESS).map_err(|e| anyhow!("{e}{way_out}"))
    }
}

/// Whether the triangles form a closed surface with one orientation: each edge is used just once either way.
fn is_closed(mesh: &Mesh) -> bool {
    let sides = mesh.triangles().into_iter().flat_map(|[a, b, c]| [[a, b], [b, c], [c, a]]);
    let mut sides: Vec<[u32; 2]> = sides.collect();
    sides.sort_unstable();
    let twins = |[a, b]: &[u32; 2]| sides.binary_search(&[*b, *a]).is_ok();
    !sides.is_empty() && sides.windows(2).all(|w| w[0] != w[1]) && sides.iter().all(twins)
}

/// The volume inside a closed surface of triangles, negative if they are seen from inside, m³.
fn volume(mesh: &Mesh) -> f64 {
    let corner = |v: u32| Vector3::from(mesh.points()[v as usize]);
    mesh.triangles().iter().map(|t| corner(t[0]).dot(&corner(t[1]).cross(&corner(t[2]))) / 6.0).sum()
}

/// Takes the points out of a mesh that are in no triangle or quad, such as those inside a solid, and with them all cells that are none
/// and their groups and fields. Without such points the mesh stays as it is. Returns how many there were.
fn keep_surface(mesh: &mut Mesh) -> Result<usize> {
    let mut flat = Cells::new();
    for (kind, corners) in mesh.cells().iter().filter(|(kind, _)| kind.dimension() == 2) {
        flat.push(kind, corners);
    }
    let mut surface = Mesh::new(mesh.points().to_vec(), flat)?;
    mesh.point_fields().iter().try_for_each(|field| surface.set_point_field(field.clone()))?;
    let surface = surface.skin();
    let left_out = mesh.points().len() - surface.points().len();
    if left_out > 0 {
        *mesh = surface;
    }
    Ok(left_out)
}

/// The triangles of a mesh that may also hold solids.
fn triangles_only(mesh: &Mesh) -> Result<Mesh> {
    let cells = Cells::of(CellKind::Triangle, mesh.triangles().into_flattened());
    Ok(Mesh::new(mesh.points().to_vec(), cells)?)
}

/// Two corners or one side of a flat sheet, at its far end in y. Nothing of a mesh that is not flat.
fn pins(mesh: &Mesh, choice: Pins) -> Vec<bool> {
    let [low, high] = mesh.bounds();
    let points = mesh.points();
    let flat = high[2] - low[2] <= 1e-6 * (high[0] - low[0]);
    let mut pinned = vec![false; points.len()];
    if !flat || choice == Pins::None {
        return pinned;
    }
    let near = 1e-6 * (high[1] - low[1]);
    if choice == Pins::Side {
        pinned.iter_mut().zip(points).for_each(|(pin, p)| *pin = high[1] - p[1] <= near);
        return pinned;
    }
    for (x, outward) in [(low[0], -1.0), (high[0], 1.0)] {
        // Ties go to the outermost, so that the two pins differ and names do not matter.
        let key = |v: usize| {
            let p = points[v];
            ((p[0] - x).powi(2) + (p[1] - high[1]).powi(2), -outward * p[0], -p[1])
        };
        let nearer = |a: &usize, b: &usize| key(*a).partial_cmp(&key(*b)).expect("coordinates are finite");
        if let Some(v) = (0..points.len()).min_by(nearer) {
            pinned[v] = true;
        }
    }
    pinned
}

/// What bends.
#[derive(Default)]
pub(super) struct Bending {
    /// Pairs of vertices that flat hinges join, but slender ones, and the sum of the products of their weights over these hinges: entries of the
    /// matrix of the quadratic energy. Its rows sum to zero.
    pub(super) flat: Vec<([u32; 2], f64)>,
    /// Hinges that are bent at rest, and slender ones.
    pub(super) curved: Vec<Hinge>,
}

impl Bending {
    /// The hinges of triangles at rest. Cost: a sort of the pairs, in parallel.
    pub(super) fn of(triangles: &[[u32; 3]], rest: &[[f64; 3]]) -> Bending {
        let (flat, curved): (Vec<Hinge>, Vec<Hinge>) =
            hinges(triangles, rest).into_iter().partition(|hinge| hinge.rest == 0.0 && !hinge.is_slender);
        let mut products = Vec::with_capacity(6 * flat.len());
        for Hinge { vertices: v, weights: k, .. } in &flat {
            for (i, j) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                products.push(([v[i].min(v[j]), v[i].max(v[j])], k[i] * k[j]));
            }
        }
        // By value, so that names do not decide the order of a sum.
        products.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let same = products.chunk_by(|a, b| a.0 == b.0);
        let flat = same.map(|products| (products[0].0, products.iter().map(|product| product.1).sum())).collect();
        Bending { flat, curved }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cloth;
    use super::*;
    use meshweft::{Order, Simulation};
    use meshweft_mesh::generate::generate;

    #[test]
    fn flat_hinges_added_up_have_the_energy_and_the_stiffness_of_all_of_them() {
        let mesh = generate("sheet:9x7", 3).unwrap();
        let rest = mesh.points().to_vec();
        let bent = |v: u32| {
            let [x, y, _] = rest[v as usize];
            Vector3::new(x, y + 0.1 * x * y, 0.3 * x * x - 0.2 * y + 0.5 * x * y * y)
        };
        let (mut energy, mut stiffness) = (0.0, vec![0.0; rest.len()]);
        for Hinge { vertices, weights, rest, .. } in hinges(&mesh.triangles(), &rest) {
            assert_eq!(rest, 0.0);
            energy += (0..4).map(|i| bent(vertices[i]) * weights[i]).sum::<Vector3<f64>>().norm_squared();
            (0..4).for_each(|i| stiffness[vertices[i] as usize] += weights[i] * weights[i]);
        }
        let Bending { flat, curved } = Bending::of(&mesh.triangles(), &rest);
        assert!(curved.is_empty() && flat.is_sorted_by(|a, b| a.0 < b.0));
        let apart = |&([a, b], weight): &([u32; 2], f64)| -weight * (bent(a) - bent(b)).norm_squared();
        let added: f64 = flat.iter().map(apart).sum();
        assert!((added / energy - 1.0).abs() < 1e-12, "{added} and {energy}");
        for (v, stiffness) in stiffness.iter().enumerate() {
            let around = flat.iter().filter(|(pair, _)| pair.contains(&(v as u32)));
            let added: f64 = around.map(|(_, weight)| -weight).sum();
            assert!((added - stiffness).abs() <= 1e-12 * stiffness, "vertex {v}: {added} and {stiffness}");
        }
    }

    #[test]
    fn a_sliver_spoils_no_other_hinge() {
        // Two squares, one of them with a triangle of hardly any height along its diagonal.
        let points = vec![
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [0.0, 1.0, 0.0],
            [1.0, 1.0, 0.0],
            [0.5, 0.5 + 1e-4, 0.0],
            [-1.0, 0.0, 0.0],
            [-1.0, 1.0, 0.0],
        ];
        let triangles = [[0, 1, 4], [0, 4, 2], [1, 2, 4], [1, 3, 2], [5, 0, 2], [5, 2, 6]];
        let mesh = Mesh::new(points, Cells::of(CellKind::Triangle, triangles.as_flattened().to_vec())).unwrap();
        let Bending { flat, curved } = Bending::of(&mesh.triangles(), mesh.points());
        assert!(!flat.is_empty() && flat.iter().all(|(_, weight)| weight.abs() < 1e5), "{flat:?}");
        assert!(!curved.is_empty());
        let mut mesh = mesh;
        // The sliver lies on its neighbor.
        let options = ClothOptions { touching: false, ..ClothOptions::default() };
        let cloth = Cloth::with(&mut mesh, &options, Order::BLOCKED).unwrap();
        let mut run = Simulation::builder(mesh, cloth).build().unwrap();
        (0..20).for_each(|_| run.step().unwrap());
    }
}
