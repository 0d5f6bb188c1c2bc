//! A body that cloth falls on in place of the ball: a surface that is held, which the cloth touches as it touches itself.

use super::THICKNESS;
use crate::softbody::options::turn_up;
use anyhow::{Context, Result, bail};
use meshweft_command::cli;
use meshweft_mesh::contact::{Surface, crossings};
use meshweft_mesh::{CellKind, Cells, Field, Mesh};

/// A surface that stands on the ground, so far above it that they do not touch.
pub(super) struct Body {
    points: Vec<[f64; 3]>,
    triangles: Vec<[u32; 3]>,
}

impl Body {
    /// The surface of a mesh, a file or a shape, with this as its largest side, m. `y_is_up`: whether y points up in it, not z.
    ///
    /// # Errors
    /// A mesh that cannot be had, has no surface, or one that passes through itself.
    pub(super) fn of(name: &str, side: f64, y_is_up: bool) -> Result<Body> {
        let mesh = cli::mesh(name).map_err(|e| e.context(format!("over={name}")))?;
        // The skin of a solid has them in another order, which files would show.
        let cells = Cells::of(CellKind::Triangle, mesh.surface().into_flattened());
        let mut surface = Mesh::new(mesh.points().to_vec(), cells)?.skin();
        if surface.triangles().is_empty() {
            bail!("over={name}: it has no surface to fall on");
        }
        if y_is_up {
            turn_up(&mut surface)?;
        }
        let [low, high] = surface.bounds();
        let sides = [0, 1, 2].map(|k| high[k] - low[k]);
        let largest = sides.into_iter().fold(0.0, f64::max);
        if !(largest > 0.0 && largest.is_finite()) {
            bail!("over={name}: its points are all in one place");
        }
        let scale = side / largest;
        let middle = [low[0] + sides[0] / 2.0, low[1] + sides[1] / 2.0, low[2]];
        let place = |p: &[f64; 3]| [0, 1, 2].map(|k| (p[k] - middle[k]) * scale + if k == 2 { THICKNESS } else { 0.0 });
        let body = Body { points: surface.points().iter().map(place).collect(), triangles: surface.triangles() };
        body.check().with_context(|| format!("over={name}"))?;
        Ok(body)
    }

    /// # Errors
    /// It passes through itself.
    fn check(&self) -> Result<()> {
        let sides = |&&[a, b, c]: &&[u32; 3]| a != b && b != c && c != a;
        let triangles: Vec<[u32; 3]> = self.triangles.iter().filter(sides).copied().collect();
        let found = crossings(&Surface::new(&self.points, &triangles, &[], &[])?, &self.points)?;
        let place = |v: u32| self.points[v as usize].map(|x| (x * 1e3).round() / 1e3);
        match found.first() {
            None => Ok(()),
            Some((edge, _)) => bail!(
                "{} of its edges touch or cross its triangles, the first near {:?} m of where it stands: mend it",
                found.len(),
                place(edge[0])
            ),
        }
    }

    /// How far it reaches up, m.
    pub(super) fn height(&self) -> f64 {
        self.points.iter().fold(0.0, |most: f64, p| most.max(p[2]))
    }

    pub(super) fn points(&self) -> &[[f64; 3]] {
        &self.points
    }

    /// Its triangles, behind so many other vertices.
    pub(super) fn triangles(&self, behind: usize) -> impl Iterator<Item = [u32; 3]> {
        self.triangles.iter().map(move |corners| corners.map(|v| v + behind as u32))
    }

    /// Adds it to a mesh, behind all points; fields are zero there.
    pub(super) fn join(&self, mesh: &mut Mesh) -> Result<()> {
        let (n, fields) = (mesh.points().len(), mesh.point_fields().to_vec());
        let mut cells = Cells::of(CellKind::Triangle, mesh.triangles().into_flattened());
        cells.extend(CellKind::Triangle, self.triangles(n).flatten().collect());
        *mesh = Mesh::new(mesh.points().iter().chain(&self.points).copied().collect(), cells)?;
        for Field { name, components, mut values } in fields {
            values.resize(components * mesh.points().len(), 0.0);
            mesh.set_point_field(Field { name, components, values })?;
        }
        Ok(())
    }
}
