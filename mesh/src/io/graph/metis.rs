//! METIS's file of a graph, `.graph`, read only: line by line the neighbors of each vertex.
//!
//! Each undirected edge is there twice, once in the line of each end, and becomes two edges, one in each direction. Weights of
//! edges become the cell field `weight`, those of vertices the point fields `weight_0`, `weight_1` and so on, sizes of vertices the point field `size`.
//!
//! Source: Karypis, "METIS, a software package for partitioning unstructured graphs, version 5.1.0", section 4.1.1.

use std::path::Path;

use super::super::draft::Draft;
use super::super::text::{Text, number, shown};
use super::edges::{add, count_from_one, weight};
use crate::error::Result;

/// More weights than any real file balances.
const MOST_CONSTRAINTS: usize = 64;

pub(in super::super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut text = Text::new(name, bytes);
    skip_comments(&mut text);
    let n: u64 = text.number_in_line("the number of vertices")?;
    let count: u64 = text.number_in_line("the number of edges")?;
    let [has_sizes, has_vertex_weights, has_weights] = marks(&mut text)?;
    let constraints: usize = match has_vertex_weights {
        true if has_more(&text) => text.number_in_line("the number of weights a vertex")?,
        true => 1,
        false => 0,
    };
    if has_vertex_weights && !(1..=MOST_CONSTRAINTS).contains(&constraints) {
        return Err(text.error(format!("{constraints} weights a vertex: 1 to {MOST_CONSTRAINTS} are supported")));
    }
    text.end_line("the first line")?;
    // Each vertex has a line, if an empty one.
    let n = text.check_count(n, "vertices", 1)?;
    let ends = text.check_count(count.saturating_mul(2), "ends of edges", if has_weights { 4 } else { 2 })?;
    let mut draft = Draft::new(bytes.len());
    let (mut edges, mut weights) = (Vec::with_capacity(ends), Vec::new());
    let mut columns = vec![Vec::new(); usize::from(has_sizes) + constraints];
    for v in 0..n {
        // The last line of the file may lack its end.
        if !text.next_line() && (v + 1 < n || ends > edges.len()) {
            return Err(
                text.error(format!("the file ends where the line of vertex {} should be: it was cut short", v + 1))
            );
        }
        skip_comments(&mut text);
        for column in &mut columns {
            column.push(weight(&mut text)?);
        }
        while let Some(word) = text.word_in_line() {
            let neighbor = number::<u64>(word).filter(|&u| 1 <= u && u <= n as u64);
            let neighbor = neighbor.ok_or_else(|| {
                text.error(format!("{} is no neighbor of vertex {}: they go from 1 to {n}", shown(word), v + 1))
            })?;
            edges.push([v as u32, (neighbor - 1) as u32]);
            if has_weights {
                weights.push(weight(&mut text)?);
            }
        }
    }
    text.next_line();
    while text.left() > 0 {
        skip_comments(&mut text);
        text.end_line(&format!("the {n} vertices that the first line counts"))?;
        text.next_line();
    }
    if edges.len() != ends {
        let found = edges.len();
        return Err(text.error(format!(
            "{found} neighbors in all lines, but the first line counts {count} edges, which have {ends} ends"
        )));
    }
    add(&mut draft, &text, n, edges, weights)?;
    count_from_one(&mut draft, &text, n)?;
    let names = std::iter::repeat_n("size".to_owned(), usize::from(has_sizes));
    let names = names.chain((0..constraints).map(|k| format!("weight_{k}")));
    for (name, column) in names.zip(columns) {
        draft.point_field(&name, 1, column).map_err(|message| text.error(message))?;
    }
    Ok(draft)
}

/// Moves to the next line that is no comment, if this one is.
fn skip_comments(text: &mut Text) {
    while text.clone().word_in_line().is_some_and(|word| word[0] == b'%') && text.next_line() {}
}

fn has_more(text: &Text) -> bool {
    text.clone().word_in_line().is_some()
}

/// Whether vertices have sizes, vertices have weights and edges have weights.
fn marks(text: &mut Text) -> Result<[bool; 3]> {
    if !has_more(text) {
        return Ok([false; 3]);
    }
    let word = text.word_in_line().unwrap_or_default();
    if word.len() > 3 || !word.iter().all(|b| matches!(b, b'0' | b'1')) {
        return Err(text.error(format!("{} is no format: up to three digits 0 or 1", shown(word))));
    }
    // Leading zeros may be left out.
    Ok([3, 2, 1].map(|k| word.len() >= k && word[word.len() - k] == b'1'))
}

#[cfg(test)]
mod tests {
    use super::super::super::Format;
    use super::super::super::testing::{fails, fuzz, parsed};

    #[test]
    fn neighbors_line_by_line() {
        let mesh = parsed(Format::Metis, "% a path and a vertex alone\n4 2\n2\n% inside\n1 3\n2\n\n");
        assert_eq!((mesh.points().len(), mesh.cells().all_corners()), (4, &[0, 1, 1, 0, 1, 2, 2, 1][..]));
        assert!(mesh.cell_fields().is_empty());
        assert_eq!(
            (mesh.point_fields().len(), &mesh.point_field("id").unwrap().values[..]),
            (1, &[1.0, 2.0, 3.0, 4.0][..])
        );
        let mesh = parsed(Format::Metis, "2 1 1\n2 7\n1 7");
        assert_eq!(mesh.cell_field("weight").unwrap().values, [7.0, 7.0]);
        let mesh = parsed(Format::Metis, "2 1 111 2\n9 1 2 2 5\n8 3 4 1 5\n");
        let field = |name: &str| mesh.point_field(name).unwrap().values.clone();
        assert_eq!([field("size"), field("weight_0"), field("weight_1")], [[9.0, 8.0], [1.0, 3.0], [2.0, 4.0]]);
        assert_eq!(parsed(Format::Metis, "1 0 010\n5\n").point_field("weight_0").unwrap().values, [5.0]);
    }

    #[test]
    fn faults_are_named() {
        let f = Format::Metis;
        fails(f, "", "a:1: the line ends where the number of vertices should be");
        fails(f, "2 1\n2\n", "a:3: 1 neighbors in all lines, but the first line counts 1 edges, which have 2 ends");
        fails(f, "4 1\n2\n1", "a:3: the file ends where the line of vertex 3 should be");
        fails(f, "2 1\n3\n1\n", "a:2: \"3\" is no neighbor of vertex 1: they go from 1 to 2");
        fails(f, "2 1\n0\n1\n", "a:2: \"0\" is no neighbor");
        fails(f, "2 1\n2\n1\n1\n", "a:4: \"1\" is too much for the 2 vertices");
        fails(f, "3 2\n   2\n   1\n\n", "a:5: 2 neighbors in all lines, but the first line counts 2 edges");
        fails(f, "2 1 12\n2\n1\n", "a:1: \"12\" is no format");
        fails(f, "2 1 10 65\n2\n1\n", "a:1: 65 weights a vertex");
        fails(f, "2147483648 1\n2\n1\n", "a:1: 2147483648 vertices do not fit");
        fails(f, "2 2147483648\n2\n1\n", "a:1: 4294967296 ends of edges do not fit");
        fails(f, "2 1 1\n2\n1 3\n", "a:2: the line ends where a weight should be");
    }

    #[test]
    fn whatever_the_bytes_nothing_breaks() {
        fuzz(Format::Metis, b"% c\n3 2 011\n1 2 0.5\n2 1 3 3 2\n4 2 2\n");
        fuzz(Format::Metis, b"4 2\n2\n1 3\n2\n\n");
    }
}
