//! What came out for each vertex, as a CSV file.

use crate::example::{Column, find};
use anyhow::{Context, Result};
use meshweft_mesh::{Field, Mesh, io};
use rayon::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// Vertices whose lines are made as one piece of work.
const PIECE: usize = 1 << 14;

/// Writes a line for each vertex, in the order and the numbers of the file that the mesh came from.
pub(super) fn write(path: &Path, mesh: &Mesh, columns: &[Column], fields: &[Field]) -> Result<()> {
    let ids = mesh.point_field("id").map(|field| &field.values);
    let name = |v: f64| match ids {
        // A field that says otherwise is not ours to judge: what is no vertex keeps its number.
        Some(ids) => ids.get(v as usize).copied().filter(|_| v >= 0.0).unwrap_or(v),
        None => v,
    };
    let fields = columns.iter().map(|column| Ok((column, &find(fields, column.field)?.values)));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let lines = |first: usize, end: usize| {
        let mut text = String::new();
        for v in first..end {
            let _ = write!(text, "{}", name(v as f64));
            for (column, values) in &fields {
                let value = values[v];
                let _ = match column.nothing {
                    Some((nothing, word)) if value == nothing => write!(text, ",{word}"),
                    _ if column.is_vertex => write!(text, ",{}", name(value)),
                    _ => write!(text, ",{value}"),
                };
            }
            text.push('\n');
        }
        text
    };
    let n = mesh.points().len();
    let starts: Vec<usize> = (0..n).step_by(PIECE).collect();
    io::replace(path, |out| {
        let names: Vec<&str> = columns.iter().map(|column| column.field).collect();
        writeln!(out, "vertex,{}", names.join(","))?;
        for some in starts.chunks(64) {
            let texts: Vec<String> = some.par_iter().map(|&first| lines(first, n.min(first + PIECE))).collect();
            texts.iter().try_for_each(|text| out.write_all(text.as_bytes()))?;
        }
        Ok(())
    })
    .map(drop)
    .with_context(|| format!("cannot write the table of vertices to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_have_the_numbers_of_the_file_and_nothing_has_its_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let mut mesh = Mesh::from_graph(3, vec![[0, 1]]).unwrap();
        let field = |name: &str, values: &[f64]| Field { name: name.into(), components: 1, values: values.to_vec() };
        let fields = [field("far", &[0.0, 0.5, 9.0]), field("from", &[0.0, 0.0, -1.0])];
        let columns = [
            Column { field: "far", is_vertex: false, nothing: Some((9.0, "inf")) },
            Column { field: "from", is_vertex: true, nothing: Some((-1.0, "-1")) },
        ];
        let text = |mesh: &Mesh| {
            write(&path, mesh, &columns, &fields).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        assert_eq!(text(&mesh), "vertex,far,from\n0,0,0\n1,0.5,0\n2,inf,-1\n");
        mesh.set_point_field(field("id", &[4.0, 17.0, 23.0])).unwrap();
        assert_eq!(text(&mesh), "vertex,far,from\n4,0,4\n17,0.5,4\n23,inf,-1\n");
    }
}
