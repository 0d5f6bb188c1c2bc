//! A piece of a mesh with its state, as a file.
//!
//! A piece has some cells and all their corners, so that pieces meet without cracks, and says by a field which vertex of the mesh
//! each of its points is.

use crate::error::{Error, Result};
use crate::number::Number;
use crate::program::Part;
use meshweft_mesh::io::{Format, encode, replace};
use meshweft_mesh::{Cells, Field, Group, Mesh};
use std::io::Write;
use std::path::{Component, Path};

/// The field that says which vertex of the mesh a point of a piece is.
pub(crate) const VERTEX: &str = "vertex";

/// Where the points of the files of [`AnySimulation::write_pieces`](crate::AnySimulation::write_pieces) are: by default where the mesh has
/// them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// A part of the state, of three components, that holds positions.
    pub positions: Option<String>,
    /// A part of the state by which points are raised along z, and by how many meters where it is 1. Of a vector its length counts.
    pub raised: Option<(String, f64)>,
}

/// What is to be written, and where.
#[derive(Clone, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) folder: &'a Path,
    /// The name that files begin with, as [`check_name`] wants it.
    pub(crate) name: &'a str,
    pub(crate) placement: &'a Placement,
    /// Numbers of pieces that earlier workers of the run may write: none of these has one that is written now.
    pub(crate) before: u32,
}

/// The name of a piece, without its folder. Those of the first workers have their numbers.
pub(crate) fn file_name(name: &str, piece: u32) -> String {
    format!("{name}.{piece}.vtu")
}

/// Refuses what is more than the name of a file in a folder: another host may have said it.
///
/// # Errors
/// A name with folders, or one that a file cannot have.
pub(crate) fn check_name(name: &str) -> Result<()> {
    /// Most systems take 255 bytes, of which the number of the host takes some.
    const LONGEST: usize = 200;
    let mut parts = Path::new(name).components();
    let is_plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(only)), None) if only == name);
    if is_plain && name.len() <= LONGEST && !name.contains(|c: char| c.is_control() || "/\\:".contains(c)) {
        return Ok(());
    }
    Err(Error::Invalid(format!("{name:?} is no name for files of a state: a word without folders, as in heat_000100")))
}

impl Placement {
    /// Refuses parts that the state does not have.
    ///
    /// # Errors
    /// It names the part.
    pub(crate) fn check(&self, parts: &[Part]) -> Result<()> {
        let find = |name: &str| {
            let known = || parts.iter().map(|part| &part.name[..]).collect::<Vec<_>>().join(", ");
            let part = parts.iter().find(|part| part.name == name);
            part.ok_or_else(|| Error::Invalid(format!("unknown field {name:?}: one of {}", known())))
        };
        if let Some(name) = &self.positions
            && find(name)?.components != 3
        {
            return Err(Error::Invalid(format!("{name} has {} components: positions have 3", find(name)?.components)));
        }
        self.raised.as_ref().map_or(Ok(()), |(name, _)| find(name).map(|_| ()))
    }
}

/// Some cells of a mesh with their corners.
pub(crate) struct Piece {
    mesh: Mesh,
    /// Where the mesh has its points.
    rest: Vec<[f64; 3]>,
}

impl Piece {
    /// Those vertices and cells of a mesh, both ascending. All corners must be among the vertices.
    pub(crate) fn of(mesh: &Mesh, vertices: &[u32], cells: &[u32]) -> Result<Piece> {
        let points = vertices.iter().map(|&v| mesh.points()[v as usize]).collect();
        let mut own = Cells::new();
        for &c in cells {
            let corners = mesh.cells().corners(c as usize).iter();
            let corners: Vec<u32> =
                corners.map(|v| vertices.binary_search(v).expect("all corners are there") as u32).collect();
            own.push(mesh.cells().kind(c as usize), &corners);
        }
        let mut piece = Mesh::new(points, own)?;
        let numbers = vertices.iter().map(|&v| f64::from(v)).collect();
        piece.set_point_field(Field { name: VERTEX.into(), components: 1, values: numbers })?;
        mesh.point_fields().iter().try_for_each(|field| piece.set_point_field(field.of(vertices)))?;
        mesh.cell_fields().iter().try_for_each(|field| piece.set_cell_field(field.of(cells)))?;
        for Group { name, dimension, cells: members } in mesh.groups() {
            let local = members.iter().filter_map(|c| cells.binary_search(c).ok().map(|c| c as u32));
            piece.add_group(Group { name: name.clone(), dimension: *dimension, cells: local.collect() })?;
        }
        Ok(Piece::from(piece))
    }

    /// The mesh of the piece, as it was made or last [filled](Piece::fill).
    pub(crate) fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Takes the state of its points. `real`: what state stores for a point and the number of a real, shared ones first.
    ///
    /// # Errors
    /// A placement that does not fit, or points that are not finite.
    pub(crate) fn fill<T: Number>(
        &mut self,
        parts: &[Part],
        placement: &Placement,
        real: impl Fn(usize, usize) -> T,
    ) -> Result<()> {
        placement.check(parts)?;
        let (mut points, mut first) = (self.rest.clone(), 0);
        let mut heights = Vec::new();
        for part in parts {
            let reals = first..first + part.components;
            first = reals.end;
            let all = (0..points.len()).flat_map(|i| reals.clone().map(move |k| (i, k)));
            let values: Vec<f64> = all.map(|(i, k)| part.kind.decode(real(i, k))).collect();
            if placement.positions.as_ref() == Some(&part.name) {
                points = values.as_chunks().0.to_vec();
            }
            if placement.raised.as_ref().is_some_and(|(name, _)| *name == part.name) {
                heights = lengths(&values, part.components);
            }
            self.mesh.set_point_field(Field { name: part.name.clone(), components: part.components, values })?;
        }
        if let Some((_, by)) = placement.raised {
            points.iter_mut().zip(heights).for_each(|(point, height)| point[2] += by * height);
        }
        Ok(self.mesh.set_points(points)?)
    }

    /// Writes it to a file, whole or not at all, in a folder that is made if need be. `moved` is called as it goes on.
    ///
    /// # Errors
    /// Those of the disk, with the path.
    pub(crate) fn write(&self, path: &Path, moved: &dyn Fn()) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder).map_err(|error| meshweft_mesh::Error::io(folder, error))?;
        replace(path, |out| encode(Format::Vtu, &self.mesh, &mut Watched { out, moved }))?;
        Ok(())
    }
}

impl From<Mesh> for Piece {
    fn from(mesh: Mesh) -> Piece {
        Piece { rest: mesh.points().to_vec(), mesh }
    }
}

/// Scalars as they are, vectors by their length.
fn lengths(values: &[f64], components: usize) -> Vec<f64> {
    match components {
        1 => values.to_vec(),
        n => values.chunks_exact(n).map(|v| v.iter().map(|x| x * x).sum::<f64>().sqrt()).collect(),
    }
}

/// Tells that writing goes on: a large file takes longer than anybody waits for a sign of life.
struct Watched<'a> {
    out: &'a mut dyn Write,
    moved: &'a dyn Fn(),
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (self.moved)();
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_words_without_folders() {
        for name in ["heat_000100", "a", "a b", "ä..b", ".hidden"] {
            check_name(name).unwrap();
        }
        let long = "a".repeat(201);
        for name in ["", ".", "..", "../a", "a/b", "/a", "a/", "./a", "a\\b", "C:a", "a\0b", "a\nb", &long] {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.contains("is no name for files"), "{name:?}: {error}");
        }
    }

    #[test]
    fn a_piece_has_what_the_mesh_has_there() {
        let mut mesh = meshweft_mesh::generate::sheet(3, 2).unwrap();
        let (points, cells) = (mesh.points().len(), mesh.cells().len());
        let counted = |name: &str, components: usize, count: usize| Field {
            name: name.into(),
            components,
            values: (0..count * components).map(|i| i as f64).collect(),
        };
        mesh.set_point_field(counted("p", 2, points)).unwrap();
        mesh.set_cell_field(counted("c", 1, cells)).unwrap();
        mesh.add_group(Group { name: "g".into(), dimension: 2, cells: vec![0, 3] }).unwrap();
        let own = [1, 3];
        let mut corners: Vec<u32> = own.iter().flat_map(|&c| mesh.cells().corners(c)).copied().collect();
        corners.sort_unstable();
        corners.dedup();
        let piece = Piece::of(&mesh, &corners, &own.iter().map(|&c| c as u32).collect::<Vec<_>>()).unwrap();
        let piece = piece.mesh();
        for (i, &v) in corners.iter().enumerate() {
            let at = 2.0 * f64::from(v);
            assert_eq!(piece.points()[i], mesh.points()[v as usize]);
            assert_eq!(piece.point_field("p").unwrap().values[2 * i..2 * i + 2], [at, at + 1.0]);
            assert_eq!(piece.point_field(VERTEX).unwrap().values[i], f64::from(v));
        }
        for (i, &c) in own.iter().enumerate() {
            let global: Vec<u32> = piece.cells().corners(i).iter().map(|&v| corners[v as usize]).collect();
            assert_eq!((piece.cells().kind(i), &global[..]), (mesh.cells().kind(c), mesh.cells().corners(c)));
        }
        assert_eq!(piece.cell_fields()[0].values, [1.0, 3.0]);
        assert_eq!(piece.groups()[0].cells, [1]);
    }

    #[test]
    fn points_are_placed_by_the_state() {
        let mesh = meshweft_mesh::generate::sheet(2, 2).unwrap();
        let part = |name: &str, components| Part { name: name.into(), components, kind: crate::Kind::Real };
        let parts = [part("height", 1), part("place", 3)];
        let all: Vec<u32> = (0..mesh.points().len() as u32).collect();
        let mut piece = Piece::of(&mesh, &all, &[]).unwrap();
        let mut points = |placement: &Placement| -> Result<Vec<[f64; 3]>> {
            piece.fill(&parts, placement, |i, k| (10 * i + k) as f32)?;
            Ok(piece.mesh().points().to_vec())
        };
        assert_eq!(points(&Placement::default()).unwrap(), mesh.points());
        let placed = Placement { positions: Some("place".into()), raised: None };
        assert_eq!(points(&placed).unwrap()[2], [21.0, 22.0, 23.0]);
        let raised = Placement { positions: None, raised: Some(("height".into(), 0.5)) };
        let rest = mesh.points()[2];
        // Again and again from where the mesh has them.
        for _ in 0..2 {
            assert_eq!(points(&raised).unwrap()[2], [rest[0], rest[1], rest[2] + 10.0]);
        }
        let both = Placement { positions: Some("place".into()), raised: Some(("place".into(), 1.0)) };
        let length = (21.0f64 * 21.0 + 22.0 * 22.0 + 23.0 * 23.0).sqrt();
        assert_eq!(points(&both).unwrap()[2], [21.0, 22.0, 23.0 + length]);
        for (name, said) in [("height", "positions have 3"), ("depth", "one of height, place")] {
            let wrong = Placement { positions: Some(name.into()), raised: None };
            assert!(points(&wrong).unwrap_err().to_string().contains(said));
        }
    }
}
