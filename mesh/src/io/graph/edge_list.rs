//! Lists of edges, `.el` and `.wel`, read only: a line `from to` for each edge, or `from to weight`.
//!
//! Ids are integers from 0 to 2^53, in any order and with any gaps. The vertices are those that some edge names, by ascending id;
//! if some are missing up to the largest, the point field `id` has the numbers of the file. Lines that start with `#` or
//! `%` are comments. So the files of the GAP benchmark suite, of SNAP and of networkx's `write_edgelist` are read alike.
//!
//! Source: Beamer, Asanović and Patterson, "The GAP benchmark suite", arXiv:1508.03619, and its reference code.

use rayon::prelude::*;
use std::path::Path;

use super::super::draft::Draft;
use super::super::text::{Text, shown};
use super::edges::{ID, add, weight};
use crate::error::Result;
use crate::parallel;

/// Larger ids would be rounded as numbers of a field.
const LARGEST: u64 = 1 << 53;
/// Bytes that a thread reads at a time.
const PIECE: usize = 1 << 20;

/// Edges in the numbers of the file, and their weights.
type Edges = (Vec<[u64; 2]>, Vec<f64>);

/// Reads a list; `weighted`: whether each line has a third number.
pub(in super::super) fn parse(name: &Path, bytes: &[u8], weighted: bool) -> Result<Draft> {
    let starts = starts(bytes);
    let pieces = parallel::map(starts.windows(2), |ends| piece(name, &bytes[..ends[1]], ends[0], weighted));
    let mut edges = Vec::new();
    let mut weights = Vec::new();
    for piece in pieces {
        let (more, their_weights) = piece?;
        edges.extend(more);
        weights.extend(their_weights);
    }
    let text = Text::new(name, bytes);
    let ids = Ids::of(&edges);
    let edges = parallel::collect(edges.len(), |e| edges[e].map(|id| ids.place(id)));
    let mut draft = Draft::new(bytes.len());
    add(&mut draft, &text, ids.count(), edges, weights)?;
    if let Some(numbers) = ids.numbers() {
        draft.point_field(ID, 1, numbers).map_err(|message| text.error(message))?;
    }
    Ok(draft)
}

/// Where pieces of whole lines start, and the end.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    let mut end = 0;
    while end < bytes.len() {
        let least = bytes.len().min(end + PIECE);
        end = bytes[least..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |k| least + k + 1);
        starts.push(end);
    }
    starts
}

/// Reads the lines from byte `start` to the end of `bytes`, which begin the file.
fn piece(name: &Path, bytes: &[u8], start: usize, weighted: bool) -> Result<Edges> {
    let mut text = Text::new(name, bytes);
    if start > 0 {
        text.seek(start);
    }
    let (mut edges, mut weights) = (Vec::new(), Vec::new());
    loop {
        if let Some(word) = text.word_in_line().filter(|word| !matches!(word[0], b'#' | b'%')) {
            let from = id(&text, word)?;
            let to = text.word_in_line().ok_or_else(|| text.error("an edge needs two ids, `from to`"))?;
            edges.push([from, id(&text, to)?]);
            if weighted {
                weights.push(weight(&mut text)?);
            }
            let what = if weighted { "`from to weight`" } else { "`from to`: a list with weights is named .wel" };
            text.end_line(what)?;
        }
        if !text.next_line() {
            return Ok((edges, weights));
        }
    }
}

fn id(text: &Text, word: &[u8]) -> Result<u64> {
    let digit = |id: u64, &b: &u8| match b {
        b'0'..=b'9' => id.checked_mul(10)?.checked_add(u64::from(b - b'0')),
        _ => None,
    };
    match word.iter().try_fold(0, digit) {
        Some(id) if id <= LARGEST => Ok(id),
        _ => Err(text.error(format!("{} is no id of a vertex: an integer from 0 to 2^53", shown(word)))),
    }
}

/// The ids that a file names, by the place that each has among them.
enum Ids {
    /// A bit for each number up to the largest, 64 to a word, and how many are set in all words before.
    Dense(Vec<u64>, Vec<u32>),
    /// The ids, ascending.
    Sparse(Vec<u64>),
}

impl Ids {
    /// Cost O(edges) where ids are dense: a bit for each number is no more memory than the edges; else that of sorting them.
    fn of(edges: &[[u64; 2]]) -> Ids {
        let ids = edges.as_flattened();
        let words = ids.iter().max().map_or(0, |&most| most / 64 + 1);
        if words > ids.len() as u64 {
            let mut sorted = ids.to_vec();
            sorted.par_sort_unstable();
            sorted.dedup();
            return Ids::Sparse(sorted);
        }
        let mut named = vec![0u64; words as usize];
        ids.iter().for_each(|&id| named[(id / 64) as usize] |= 1 << (id % 64));
        let mut before = 0;
        let counts = named.iter().map(|word| (before, before += word.count_ones()).0).collect();
        Ids::Dense(named, counts)
    }

    fn count(&self) -> usize {
        match self {
            Ids::Dense(named, before) => {
                before.last().map_or(0, |&b| b as usize) + named.last().map_or(0, |word| word.count_ones() as usize)
            }
            Ids::Sparse(ids) => ids.len(),
        }
    }

    /// The place of an id that is among them.
    fn place(&self, id: u64) -> u32 {
        match self {
            Ids::Dense(named, before) => {
                let (word, bit) = ((id / 64) as usize, id % 64);
                before[word] + (named[word] & ((1 << bit) - 1)).count_ones()
            }
            Ids::Sparse(ids) => ids.partition_point(|&other| other < id) as u32,
        }
    }

    /// The id at each place, unless they are the places themselves.
    fn numbers(&self) -> Option<Vec<f64>> {
        let ids: Vec<u64> = match self {
            Ids::Dense(named, _) => {
                (0..64 * named.len() as u64).filter(|id| named[(id / 64) as usize] >> (id % 64) & 1 == 1).collect()
            }
            Ids::Sparse(ids) => ids.clone(),
        };
        let has_gaps = ids.last().is_some_and(|&last| last + 1 != ids.len() as u64);
        has_gaps.then(|| ids.into_iter().map(|id| id as f64).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Format;
    use super::super::super::testing::{fails, fuzz, parsed};
    use super::*;

    #[test]
    fn edges_are_read_in_their_order_with_repeats_and_loops() {
        let mesh = parsed(Format::EdgeList, "# a comment\n0 1\n% another\n2\t1\r\n\n1 1\n0 1");
        assert_eq!(mesh.cells().all_corners(), [0, 1, 2, 1, 1, 1, 0, 1]);
        assert_eq!((mesh.points().len(), mesh.point_fields().len(), mesh.cell_fields().len()), (3, 0, 0));
        let mesh = parsed(Format::WeightedEdgeList, "0 1 2.5\n1 2 -3e-1\n");
        assert_eq!(mesh.cell_field("weight").unwrap().values, [2.5, -0.3]);
    }

    #[test]
    fn ids_may_have_gaps() {
        for (text, ids) in [
            ("7 3\n3 5\n", vec![3.0, 5.0, 7.0]),
            ("9007199254740992 0\n12 0\n", vec![0.0, 12.0, 9_007_199_254_740_992.0]),
            ("0 2\n", vec![0.0, 2.0]),
        ] {
            assert_eq!(parsed(Format::EdgeList, text).point_field("id").unwrap().values, ids, "{text}");
        }
        assert_eq!(parsed(Format::EdgeList, "7 3\n3 5\n").cells().all_corners(), [2, 0, 0, 1]);
    }

    #[test]
    fn dense_and_sparse_ids_have_the_same_places() {
        let edges: Vec<[u64; 2]> = (0..500u64).map(|i| [i * i % 911, 3 * i % 1000]).collect();
        let dense = Ids::of(&edges);
        let mut ids = edges.as_flattened().to_vec();
        ids.sort_unstable();
        ids.dedup();
        let sparse = Ids::Sparse(ids.clone());
        assert!(matches!(dense, Ids::Dense(..)));
        assert_eq!((dense.count(), dense.numbers()), (sparse.count(), sparse.numbers()));
        assert!(ids.iter().all(|&id| dense.place(id) == sparse.place(id)));
    }

    #[test]
    fn pieces_join_as_if_the_file_were_read_at_once() {
        let lines: Vec<String> = (0..300_000).map(|i: u64| format!("{} {}", i, i * 7 % 300_000)).collect();
        let text = lines.join("\n");
        assert!(text.len() > 3 * PIECE);
        let mesh = parsed(Format::EdgeList, &text);
        let ends = (0..300_000u32).flat_map(|i| [i, (u64::from(i) * 7 % 300_000) as u32]);
        assert!(mesh.cells().all_corners().iter().copied().eq(ends));
        let line = lines.len() - 5;
        let broken = text.replace(&lines[line], "1 x");
        fails(Format::EdgeList, broken, &format!("a:{}: \"x\" is no id of a vertex", line + 1));
    }

    #[test]
    fn faults_are_named() {
        fails(Format::EdgeList, "0 1\n2\n", "a:2: an edge needs two ids");
        fails(Format::EdgeList, "0 -1\n", "a:1: \"-1\" is no id of a vertex");
        fails(Format::EdgeList, "0 9007199254740993\n", "a:1: \"9007199254740993\" is no id");
        fails(Format::EdgeList, "0 99999999999999999999999\n", "a:1: \"99999999999999999999999\" is no id");
        fails(
            Format::EdgeList,
            "0 1 0.5\n",
            "a:1: \"0.5\" is too much for `from to`: a list with weights is named .wel",
        );
        fails(Format::WeightedEdgeList, "0 1\n", "a:1: the line ends where a weight should be");
        fails(Format::WeightedEdgeList, "0 1 inf\n", "a:1: weight inf is not finite");
        fails(Format::WeightedEdgeList, "0 1 1 1\n", "a:1: \"1\" is too much");
    }

    #[test]
    fn whatever_the_bytes_nothing_breaks() {
        fuzz(Format::EdgeList, b"# ids\n0 1\n10 20\n4294967296 3\n");
        fuzz(Format::WeightedEdgeList, b"0 1 2.5\n7 3 1e-3\n");
    }
}
