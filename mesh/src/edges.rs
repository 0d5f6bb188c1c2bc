//! The unique edges of cells and of other groups of vertices.

use crate::cell::{CellKind, Cells};
use crate::incidence::{Incidence, concat};
use crate::sort::{sort_bucket, sort_row};

/// Neighbors of higher id that a row has room for; more spill over. Inner vertices of tet meshes have about 7.
const ROOM: usize = 16;

/// Elements that join some of their vertices in pairs.
trait Pairs: Sync {
    /// Hands each pair of element `e` to `add`. Generic and not `dyn`: `add` runs for every edge of every cell.
    fn visit(&self, e: usize, add: impl FnMut(u32, u32));
}

/// The edges of all cells, the smaller id first, ascending, each once, without self edges. Vertices are `0..vertices`.
///
/// Memory: 4 bytes for each range of vertices that a cell touches, about two, and the result twice.
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
    #[inline(always)]
    fn visit(&self, c: usize, mut add: impl FnMut(u32, u32)) {
        match (self.0.kind(c), self.0.corners(c)) {
            // What the other arm does too, but without a loop.
            (CellKind::Tet, &[a, b, c, d]) => {
                [[a, b], [a, c], [a, d], [b, c], [b, d], [c, d]].into_iter().for_each(|[a, b]| add(a, b));
            }
            (kind, corners) => kind.edges().iter().for_each(|&[a, b]| add(corners[a as usize], corners[b as usize])),
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
    fn visit(&self, g: usize, mut add: impl FnMut(u32, u32)) {
        let group = self.group(g);
        (0..group.len()).for_each(|i| (0..i).for_each(|j| add(group[i], group[j])));
    }
}

/// Rows of the vertices of one range: their neighbors of higher id.
#[derive(Default)]
struct Rows {
    /// In no order, filled up with `u32::MAX`, which is no vertex.
    rows: Vec<[u32; ROOM]>,
    lengths: Vec<u8>,
    /// Pairs for which there was no room, perhaps several times.
    spill: Vec<[u32; 2]>,
}

fn unique(incidence: &Incidence, elements: &impl Pairs) -> Vec<[u32; 2]> {
    let parts = incidence.by_range(Rows::default, |Rows { rows, lengths, spill }, vertices, parts| {
        rows.clear();
        rows.resize(vertices.len(), [u32::MAX; ROOM]);
        lengths.clear();
        lengths.resize(vertices.len(), 0);
        spill.clear();
        for &e in parts.iter().copied().flatten() {
            elements.visit(e as usize, |a, b| {
                let (low, high) = (a.min(b), a.max(b));
                let v = low.wrapping_sub(vertices.start) as usize;
                if v >= rows.len() || low == high {
                    return;
                }
                // No early exit: the compiler compares the whole row at once.
                let known = rows[v].iter().fold(false, |known, &u| known | (u == high));
                if !known {
                    match rows[v].get_mut(lengths[v] as usize) {
                        Some(slot) => {
                            *slot = high;
                            lengths[v] += 1;
                        }
                        None => spill.push([low, high]),
                    }
                }
            });
        }
        sort_bucket(spill);
        spill.dedup();
        let mut edges = Vec::with_capacity(lengths.iter().map(|&n| n as usize).sum::<usize>() + spill.len());
        let mut spilled = &spill[..];
        for ((v, row), &length) in vertices.zip(rows).zip(&*lengths) {
            let own = spilled.iter().take_while(|e| e[0] == v).count();
            let start = edges.len();
            sort_row(&mut row[..length as usize]);
            edges.extend(row[..length as usize].iter().map(|&u| [v, u]));
            if own > 0 {
                edges.extend_from_slice(&spilled[..own]);
                spilled = &spilled[own..];
                sort_bucket(&mut edges[start..]);
            }
        }
        edges
    });
    concat(&parts)
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
