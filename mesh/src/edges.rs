//! The unique edges of cells and of other groups of vertices.

use crate::cell::{CellKind, Cells};
use crate::incidence::Incidence;
use crate::parallel;
use crate::sort::{NONE, sort_bucket, sort_row};
use std::ops::Range;

/// Neighbors of higher id that a row has room for; more spill over. Inner vertices of tet meshes have about 7.
const ROOM: usize = 16;

/// Elements that join some of their vertices in pairs.
trait Pairs: Sync {
    /// Adds the pairs of element `e` to the rows of a range.
    fn add(&self, e: usize, rows: &mut Rows);
}

/// The edges of all cells, the smaller id first, ascending, each once, without self edges. Vertices are `0..vertices`.
///
/// Memory: that of [`Incidence`] and the result twice.
pub(crate) fn of_cells(vertices: usize, cells: &Cells) -> Vec<[u32; 2]> {
    let incidence = Incidence::new(vertices, cells.len(), |c| cells.corners(c));
    unique(&incidence, &CellEdges(cells))
}

/// The pairs within groups of `size` vertices, in the form and for the memory of [`of_cells`].
pub(crate) fn of_groups(vertices: usize, size: usize, groups: &[u32]) -> Vec<[u32; 2]> {
    let groups = Groups { size, corners: groups };
    let incidence = Incidence::new(vertices, groups.corners.len() / size, |g| groups.group(g));
    unique(&incidence, &groups)
}

struct CellEdges<'a>(&'a Cells);

impl Pairs for CellEdges<'_> {
    fn add(&self, c: usize, rows: &mut Rows) {
        match (self.0.kind(c), self.0.corners(c)) {
            // What the other arm does too, but sorted first and without a loop.
            (CellKind::Tet, &[a, b, c, d]) => {
                let [[a, b], [c, d]] = [[a.min(b), a.max(b)], [c.min(d), c.max(d)]];
                let [[a, c], [b, d]] = [[a.min(c), a.max(c)], [b.min(d), b.max(d)]];
                let [b, c] = [b.min(c), b.max(c)];
                rows.add(a, [b, c, d]);
                rows.add(b, [c, d]);
                rows.add(c, [d]);
            }
            (kind, corners) => kind.edges().iter().for_each(|&[a, b]| {
                let [a, b] = [corners[a as usize], corners[b as usize]];
                rows.add(a.min(b), [a.max(b)]);
            }),
        }
    }
}

struct Groups<'a> {
    size: usize,
    corners: &'a [u32],
}

impl Groups<'_> {
    fn group(&self, g: usize) -> &[u32] {
        &self.corners[g * self.size..(g + 1) * self.size]
    }
}

impl Pairs for Groups<'_> {
    fn add(&self, g: usize, rows: &mut Rows) {
        let group = self.group(g);
        for (i, &a) in group.iter().enumerate() {
            group[..i].iter().for_each(|&b| rows.add(a.min(b), [a.max(b)]));
        }
    }
}

/// Rows of the vertices of one range: their neighbors of higher id.
#[derive(Default)]
struct Rows {
    first: u32,
    /// In no order, filled up with [`NONE`].
    rows: Vec<[u32; ROOM]>,
    lengths: Vec<u8>,
    /// Pairs for which there was no room, perhaps several times.
    spill: Vec<[u32; 2]>,
}

impl Rows {
    fn start(&mut self, vertices: &Range<u32>) {
        self.first = vertices.start;
        self.rows.clear();
        self.rows.resize(vertices.len(), [NONE; ROOM]);
        self.lengths.clear();
        self.lengths.resize(vertices.len(), 0);
        self.spill.clear();
    }

    /// Adds neighbors, all at least `low`, to the row of `low` unless that is in another range.
    #[inline(always)]
    fn add<const K: usize>(&mut self, low: u32, higher: [u32; K]) {
        let v = low.wrapping_sub(self.first) as usize;
        let Some(row) = self.rows.get_mut(v) else { return };
        for high in higher {
            // No early exit: the compiler compares the whole row at once.
            let known = row.iter().fold(false, |known, &u| known | (u == high));
            if !known && high != low {
                match row.get_mut(self.lengths[v] as usize) {
                    Some(slot) => {
                        *slot = high;
                        self.lengths[v] += 1;
                    }
                    None => self.spill.push([low, high]),
                }
            }
        }
    }

    /// The edges of the range in order.
    fn finish(&mut self) -> Vec<[u32; 2]> {
        sort_bucket(&mut self.spill);
        self.spill.dedup();
        let count = self.lengths.iter().map(|&n| n as usize).sum::<usize>() + self.spill.len();
        let mut edges = Vec::with_capacity(count);
        let mut spilled = &self.spill[..];
        for ((v, row), &length) in (self.first..).zip(&mut self.rows).zip(&self.lengths) {
            let row = &mut row[..length as usize];
            sort_row(row);
            let start = edges.len();
            edges.extend(row.iter().map(|&u| [v, u]));
            let own = spilled.iter().take_while(|e| e[0] == v).count();
            if own > 0 {
                edges.extend_from_slice(&spilled[..own]);
                spilled = &spilled[own..];
                sort_bucket(&mut edges[start..]);
            }
        }
        edges
    }
}

fn unique(incidence: &Incidence, elements: &impl Pairs) -> Vec<[u32; 2]> {
    let parts = incidence.by_range(Rows::default, |rows, vertices, touching| {
        rows.start(&vertices);
        touching.for_each(|e| elements.add(e, rows));
        rows.finish()
    });
    parallel::concat(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    /// The definition.
    fn sorted(pairs: impl Iterator<Item = [u32; 2]>) -> Vec<[u32; 2]> {
        let mut edges: Vec<_> = pairs.filter(|[a, b]| a != b).map(|[a, b]| [a.min(b), a.max(b)]).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    #[test]
    fn edges_of_cells_equal_the_sorted_list() {
        for spec in ["box:20", "box:2", "sheet:90", "hexes:12", "ball:9", "chain:5000", "random:3000", "bar:5"] {
            let mesh = generate(spec, 3).unwrap();
            let pairs = mesh.cells().iter().flat_map(|(kind, corners)| {
                kind.edges().iter().map(|&[a, b]| [corners[a as usize], corners[b as usize]])
            });
            assert_eq!(of_cells(mesh.points().len(), mesh.cells()), sorted(pairs), "{spec}");
        }
        assert!(of_cells(0, &Cells::new()).is_empty());
    }

    #[test]
    fn pairs_of_groups_equal_the_sorted_list() {
        let mixed = |i: u32| (i.wrapping_mul(2_654_435_761) >> 7) % 5000;
        for size in 1..5 {
            // Vertex 7 is a hub, and some groups repeat a vertex.
            let groups: Vec<u32> = (0..size * 20_000).map(|i| if i % 11 == 0 { 7 } else { mixed(i) }).collect();
            let pairs =
                groups.chunks(size as usize).flat_map(|g| g.iter().flat_map(|&a| g.iter().map(move |&b| [a, b])));
            assert_eq!(of_groups(5000, size as usize, &groups), sorted(pairs));
        }
    }
}
