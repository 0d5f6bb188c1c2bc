//! Matrix Market, `.mtx`, read only: entry (i, j) is an edge from vertex i to vertex j.
//!
//! Square coordinate matrices of real or integer numbers, which become weights, or of a pattern alone. Of symmetric and skew-symmetric ones
//! the file holds one half; the other is added behind it, so that the edges are those of the matrix. Complex and dense ones
//! are refused.
//!
//! Source: Boisvert, Pozo and Remington, "The Matrix Market exchange formats: initial design", NISTIR 5935, 1996.

use std::path::Path;

use super::super::bounds::VERTICES;
use super::super::draft::Draft;
use super::super::text::{Text, shown};
use super::edges::{add, count_from_one, weight};
use crate::error::Result;

pub(in super::super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut text = Text::new(name, bytes);
    let (has_values, mirror) = header(&mut text)?;
    let mut text = text.with_comments(b'%');
    let (rows, columns): (u64, u64) =
        (text.number("the number of rows")?, text.number_in_line("the number of columns")?);
    if rows != columns {
        return Err(text.error(format!("{rows} rows and {columns} columns: the matrix of a graph is square")));
    }
    let count: u64 = text.number_in_line("the number of entries")?;
    text.end_line("the line with the sizes")?;
    // A vertex without an edge takes no byte of the file.
    let room =
        VERTICES.of(bytes.len()).take(rows, "vertices", "the count is wrong, or leave out those without an edge");
    room.map_err(|message| text.error(message))?;
    let (n, count) = (rows as usize, text.check_count(count, "entries", 4)?);
    let (mut edges, mut weights) = (Vec::with_capacity(count), Vec::new());
    for _ in 0..count {
        let edge = [vertex(&mut text, n, "the row of an entry")?, vertex(&mut text, n, "the column of an entry")?];
        edges.push(edge);
        if has_values {
            weights.push(weight(&mut text)?);
        }
        text.end_line("an entry")?;
    }
    text.end(&format!("the {count} entries that the sizes count"))?;
    if let Some(sign) = mirror {
        for e in 0..count {
            let [row, column] = edges[e];
            if row == column {
                continue;
            }
            edges.push([column, row]);
            if has_values {
                weights.push(sign * weights[e]);
            }
        }
    }
    let mut draft = Draft::new(bytes.len());
    add(&mut draft, &text, n, edges, weights)?;
    count_from_one(&mut draft, &text, n)?;
    Ok(draft)
}

/// Whether entries have values, and the factor of the half that the file leaves out, if it does.
fn header(text: &mut Text) -> Result<(bool, Option<f64>)> {
    let mut word = |what: &str| {
        let word = text.word_in_line().map(<[u8]>::to_ascii_lowercase);
        word.ok_or_else(|| text.error(format!("the first line ends where {what} should be")))
    };
    if word("%%MatrixMarket")? != b"%%matrixmarket" {
        return Err(text.error("a Matrix Market file starts with %%MatrixMarket"));
    }
    let [object, format, field, symmetry] =
        [word("`matrix`")?, word("`coordinate`")?, word("the type of entries")?, word("the symmetry")?];
    let refuse = |word: &[u8], wanted: &str| Err(text.error(format!("{} is not supported: {wanted} is", shown(word))));
    if object != b"matrix" {
        return refuse(&object, "matrix");
    }
    if format != b"coordinate" {
        return refuse(&format, "coordinate");
    }
    let has_values = match &field[..] {
        b"real" | b"integer" | b"double" => true,
        b"pattern" => false,
        other => return refuse(other, "real, integer or pattern"),
    };
    let mirror = match &symmetry[..] {
        b"general" => None,
        b"symmetric" => Some(1.0),
        b"skew-symmetric" => Some(-1.0),
        other => return refuse(other, "general, symmetric or skew-symmetric"),
    };
    text.end_line("the first line")?;
    text.next_line();
    Ok((has_values, mirror))
}

/// The next word as a vertex; the file counts from 1.
fn vertex(text: &mut Text, n: usize, what: &str) -> Result<u32> {
    let v: u64 = text.number(what)?;
    match v {
        v if 1 <= v && v <= n as u64 => Ok((v - 1) as u32),
        v => Err(text.error(format!("{what} is {v}: they go from 1 to {n}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Format;
    use super::super::super::testing::{fails, fuzz, parsed};

    const HEAD: &str = "%%MatrixMarket matrix coordinate";

    #[test]
    fn entries_are_edges() {
        let mesh =
            parsed(Format::MatrixMarket, format!("{HEAD} real general\n% by hand\n\n4 4 3\n1 2 0.5\n2 1 1\n3 3 -2\n"));
        assert_eq!((mesh.points().len(), mesh.cells().all_corners()), (4, &[0, 1, 1, 0, 2, 2][..]));
        assert_eq!(mesh.cell_field("weight").unwrap().values, [0.5, 1.0, -2.0]);
        assert_eq!(mesh.point_field("id").unwrap().values, [1.0, 2.0, 3.0, 4.0]);
        let mesh = parsed(Format::MatrixMarket, format!("{HEAD} pattern general\n2 2 1\n2 1"));
        assert_eq!((mesh.cells().all_corners(), mesh.cell_fields().len()), (&[1, 0][..], 0));
    }

    #[test]
    fn the_other_half_of_a_symmetric_matrix_is_added() {
        let of = |symmetry: &str| {
            let mesh = parsed(Format::MatrixMarket, format!("{HEAD} Integer {symmetry}\n3 3 3\n2 1 5\n3 3 6\n3 2 7\n"));
            assert_eq!(mesh.cells().all_corners(), [1, 0, 2, 2, 2, 1, 0, 1, 1, 2]);
            mesh.cell_field("weight").unwrap().values.clone()
        };
        assert_eq!(of("symmetric"), [5.0, 6.0, 7.0, 5.0, 7.0]);
        assert_eq!(of("skew-symmetric"), [5.0, 6.0, 7.0, -5.0, -7.0]);
    }

    #[test]
    fn faults_are_named() {
        let f = Format::MatrixMarket;
        fails(f, "3 3 1\n1 1 1\n", "a:1: a Matrix Market file starts with %%MatrixMarket");
        fails(f, "", "a:1: the first line ends where %%MatrixMarket should be");
        fails(f, "%%MatrixMarket matrix array real general\n", "a:1: \"array\" is not supported: coordinate is");
        fails(f, format!("{HEAD} complex general\n"), "a:1: \"complex\" is not supported: real");
        fails(f, format!("{HEAD} real hermitian\n"), "a:1: \"hermitian\" is not supported");
        fails(f, format!("{HEAD} real general\n3 4 0\n"), "a:2: 3 rows and 4 columns");
        fails(f, format!("{HEAD} real general\n3 3 1\n0 1 1\n"), "a:3: the row of an entry is 0: they go from 1 to 3");
        fails(f, format!("{HEAD} real general\n3 3 1\n1 4 1\n"), "a:3: the column of an entry is 4");
        fails(f, format!("{HEAD} real general\n3 3 2\n1 1 1\n"), "a:4: the file ends where the row of an entry");
        fails(f, format!("{HEAD} real general\n3 3 1\n1 1 1\n2 2 2\n"), "a:4: \"2\" found behind the 1 entries");
        fails(f, format!("{HEAD} real general\n3 3 2147483648\n1 1 1\n"), "a:2: 2147483648 entries do not fit");
        fails(
            f,
            format!("{HEAD} pattern general\n2147483648 2147483648 1\n1 1\n"),
            "a:2: 2147483648 vertices are more than a file of this size can plausibly hold, at most 1048884: the count is wrong",
        );
    }

    #[test]
    fn whatever_the_bytes_nothing_breaks() {
        fuzz(Format::MatrixMarket, format!("{HEAD} real symmetric\n% c\n3 3 2\n2 1 5e-1\n3 3 6\n").as_bytes());
        fuzz(Format::MatrixMarket, format!("{HEAD} pattern general\n3 3 2\n2 1\n3 3\n").as_bytes());
    }
}
