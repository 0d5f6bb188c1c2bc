//! Coarse levels of an equation between the nodes of a mesh, by smoothed aggregation.
//!
//! A sweep of Gauss–Seidel removes from an error what changes from node to node, and leaves what is smooth. That is solved for with fewer
//! unknowns: neighbors that depend on each other most are *aggregated*, and each aggregate is a vertex of the next level, and so on. So a
//! solution takes the same work an unknown at any size.
//!
//! Sources: Vaněk, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic problems", 1996;
//! weights: Baker, Falgout, Kolev and Yang, "Multigrid smoothers for ultraparallel computing", 2011. What was chosen, and why, is in
//! `docs/perf/decisions/multigrid.md`.

use crate::elements::Matrix;
use crate::order::Curve;
use crate::parallel;
use crate::sort::group;
use std::ops::Range;

/// A coarse level.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Where its vertices are: in the middle of what they stand for. Shape [vertices × 3].
    pub points: Vec<[f64; 3]>,
    /// Its equation, between its vertices: symmetric.
    pub matrix: Matrix<1>,
    /// A vertex of the level above, or a node of the mesh, and one of this level: shape [links × 2]. Nodes that are coupled to no other have none.
    pub links: Vec<[u32; 2]>,
    /// How much of the value of the second each link adds to that of the first. Shape `[links]`.
    pub shares: Vec<f64>,
}

/// Levels with fewer vertices are not made coarser.
const FEW: usize = 32;
/// The most levels.
const MOST: usize = 12;
/// Nodes that are aggregated by themselves, so that threads find work: no iteration more was seen.
const BLOCK: usize = 1 << 12;
/// How weak a coupling may be against the diagonals to count, on the mesh.
const WEAK: f64 = 0.06;
/// The same on the level below it, for a mesh of so many dimensions; on each further one it is half of that.
const WEAK_BELOW: [f64; 4] = [0.06, 0.06, 0.06, 0.02];
/// How far errors are smoothed that aggregates share.
const SMOOTHED: f64 = 1.6;

/// The coarse levels of an equation of one unknown a node, finest first; none for a small one. `points`: where nodes are; `dimension`: of the
/// mesh.
///
/// The matrix must be symmetric with a positive diagonal; rows should add up to zero or more, as those of what diffuses do. Depends on nothing
/// but the arguments. Cost O(pairs), in parallel; all levels together have a quarter more entries than the matrix.
///
/// # Panics
/// If the matrix has not a row for each point, or 2^31 pairs.
///
/// ```
/// use meshweft_mesh::{coarse_levels, generate::generate};
/// let mesh = generate("sheet:65", 1)?;
/// let elements = mesh.elements(1)?;
/// let matrix = elements.cells().stiffness(|_, a, b| [[a[0] * b[0] + a[1] * b[1]]]);
/// let levels = coarse_levels(&matrix, mesh.points(), 2);
/// let vertices: Vec<usize> = levels.iter().map(|level| level.points.len()).collect();
/// assert!(vertices.len() >= 2 && vertices[0] < 65 * 65 / 5);
/// // What is the same everywhere is there on the coarse level, too: shares add up to one.
/// let mut sums = vec![0.0; 65 * 65];
/// levels[0].links.iter().zip(&levels[0].shares).for_each(|([v, _], share)| sums[*v as usize] += share);
/// assert!(sums.iter().all(|sum: &f64| (sum - 1.0).abs() < 1e-12));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn coarse_levels(matrix: &Matrix<1>, points: &[[f64; 3]], dimension: usize) -> Vec<Level> {
    assert_eq!(matrix.diagonal.len(), points.len(), "a row for each point");
    assert!(matrix.pairs.len() < 1 << 31, "fewer than 2^31 pairs");
    // Along the curve: neighbors lie together, whatever their numbers are.
    let curve = Curve::Morton.order(points);
    let mut names = curve.order().to_vec();
    let mut points: Vec<[f64; 3]> = names.iter().map(|&v| points[v as usize]).collect();
    let mut rows = Rows::of(matrix, curve.rank());
    let (mut levels, mut weak) = (Vec::new(), WEAK);
    while points.len() > FEW && levels.len() < MOST {
        let strong = rows.strong(weak);
        let (aggregates, count) = strong.aggregates();
        if count == 0 || 5 * count > 4 * points.len() {
            break;
        }
        let down = strong.smoothed(&aggregates, count);
        rows = strong.coarse(&down, count);
        points = middles(&points, &aggregates, count);
        let shares = down.values.clone();
        levels.push(Level { points: points.clone(), matrix: rows.matrix(), links: down.links(&names), shares });
        names = (0..count as u32).collect();
        weak = if levels.len() == 1 { WEAK_BELOW[dimension.min(3)] } else { 0.5 * weak };
    }
    levels
}

/// The mean place of what each aggregate stands for.
fn middles(points: &[[f64; 3]], aggregates: &[u32], count: usize) -> Vec<[f64; 3]> {
    let mut sums = vec![([0.0; 3], 0.0); count];
    for (point, &of) in points.iter().zip(aggregates).filter(|(_, of)| **of != NONE) {
        let (sum, members) = &mut sums[of as usize];
        (0..3).for_each(|k| sum[k] += point[k]);
        *members += 1.0;
    }
    sums.into_iter().map(|(sum, members)| sum.map(|x| x / members)).collect()
}

/// No aggregate.
const NONE: u32 = u32::MAX;

/// A sparse matrix, row by row, columns ascending.
struct Rows {
    /// Where rows start, and the end.
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
    /// Of a square one, the diagonal, which rows do not repeat.
    diagonal: Vec<f64>,
}

/// Rows that follow each other, and their diagonal.
#[derive(Default)]
struct Piece {
    /// Where each ends.
    ends: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<f64>,
    diagonal: Vec<f64>,
}

impl Piece {
    fn push(&mut self, column: u32, value: f64) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Ends a row.
    fn end(&mut self, diagonal: f64) {
        self.ends.push(self.columns.len() as u32);
        self.diagonal.push(diagonal);
    }
}

impl Rows {
    /// So many rows, some by some in parallel. `scratch`: what each piece of work has for itself.
    fn collect<S>(
        count: usize,
        scratch: impl Fn() -> S + Sync,
        fill: impl Fn(&mut S, Range<usize>, &mut Piece) + Sync,
    ) -> Rows {
        let pieces = parallel::map(parallel::ranges(count, 1 << 10), |range| {
            let (mut piece, mut scratch) = (Piece::default(), scratch());
            fill(&mut scratch, range, &mut piece);
            piece
        });
        let mut starts = Vec::with_capacity(count + 1);
        starts.push(0);
        let (mut columns, mut values, mut diagonal) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = 0;
        for piece in pieces {
            starts.extend(piece.ends.iter().map(|end| before + end));
            before += piece.columns.len() as u32;
            columns.push(piece.columns);
            values.push(piece.values);
            diagonal.push(piece.diagonal);
        }
        let (columns, values) = (parallel::concat(columns), parallel::concat(values));
        Rows { starts, columns, values, diagonal: parallel::concat(diagonal) }
    }

    /// Those of a symmetric matrix, renumbered. `rank`: the row of each node.
    fn of(matrix: &Matrix<1>, rank: &[u32]) -> Rows {
        let Matrix { pairs, blocks, diagonal } = matrix;
        let (starts, ends) = group(rank.len(), pairs.len(), |pair| {
            let [a, b] = pairs[pair].map(|v| rank[v as usize]);
            [(a, 2 * pair as u32), (b, 2 * pair as u32 + 1)]
        });
        let mut own = vec![0.0; rank.len()];
        rank.iter().zip(diagonal).for_each(|(&place, block)| own[place as usize] = block[0][0]);
        // Of an end, the row of the other, and the entry.
        let entry = |&end: &u32| {
            let (pair, other) = (end as usize / 2, 1 - end as usize % 2);
            (rank[pairs[pair][other] as usize], blocks[pair][0][0])
        };
        let fill = |row: &mut Vec<(u32, f64)>, rows: Range<usize>, piece: &mut Piece| {
            for i in rows {
                row.clear();
                row.extend(ends[starts[i] as usize..starts[i + 1] as usize].iter().map(entry));
                row.sort_unstable_by_key(|entry| entry.0);
                row.iter().for_each(|&(column, x)| piece.push(column, x));
                piece.end(own[i]);
            }
        };
        Rows::collect(rank.len(), Vec::new, fill)
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, i: usize) -> impl Iterator<Item = (u32, f64)> + Clone {
        let row = self.starts[i] as usize..self.starts[i + 1] as usize;
        self.columns[row.clone()].iter().copied().zip(self.values[row].iter().copied())
    }

    /// The same as a symmetric matrix.
    fn matrix(&self) -> Matrix<1> {
        let upper =
            |i: usize| self.row(i).filter(move |&(j, _)| j as usize > i).map(move |(j, x)| ([i as u32, j], [[x]]));
        let (pairs, blocks) = (0..self.len()).flat_map(upper).unzip();
        Matrix { pairs, blocks, diagonal: self.diagonal.iter().map(|&x| [[x]]).collect() }
    }

    /// Pairs of a row, by its name, and a column.
    fn links(&self, names: &[u32]) -> Vec<[u32; 2]> {
        (0..self.len()).flat_map(|i| self.row(i).map(move |(j, _)| [names[i], j])).collect()
    }

    /// With the strong couplings alone: below zero, and not weak beside the diagonals. The others count as if both ends were the same.
    fn strong(&self, weak: f64) -> Rows {
        let fill = |(): &mut (), rows: Range<usize>, piece: &mut Piece| {
            for i in rows {
                let mut own = self.diagonal[i];
                for (j, x) in self.row(i) {
                    match x < 0.0 && x * x > weak * weak * self.diagonal[i] * self.diagonal[j as usize] {
                        true => piece.push(j, x),
                        false => own += x,
                    }
                }
                piece.end(own);
            }
        };
        Rows::collect(self.len(), || (), fill)
    }

    /// The aggregate of each row, and how many there are. Rows without couplings have none.
    fn aggregates(&self) -> (Vec<u32>, usize) {
        let blocks = (0..self.len()).step_by(BLOCK).map(|first| first..self.len().min(first + BLOCK));
        let of_blocks = parallel::map(blocks, |block| self.aggregates_in(block));
        let (mut aggregates, mut count) = (Vec::with_capacity(self.len()), 0);
        for (own, of_block) in of_blocks {
            aggregates.extend(own.into_iter().map(|of| if of == NONE { NONE } else { count + of }));
            count += of_block;
        }
        (aggregates, count as usize)
    }

    /// Three passes over some rows: whole neighborhoods, what is left to those that it depends on most, and the rest among itself.
    fn aggregates_in(&self, block: Range<usize>) -> (Vec<u32>, u32) {
        let mut of = vec![NONE; block.len()];
        let mut count = 0;
        let here = |i: usize| {
            let inside = block.clone();
            self.row(i)
                .filter(move |(j, _)| inside.contains(&(*j as usize)))
                .map(|(j, x)| (j as usize - block.start, x))
        };
        for i in block.clone() {
            let mut around = here(i).peekable();
            if around.peek().is_some() && of[i - block.start] == NONE && around.all(|(j, _)| of[j] == NONE) {
                of[i - block.start] = count;
                here(i).for_each(|(j, _)| of[j] = count);
                count += 1;
            }
        }
        let first = of.clone();
        for i in block.clone().filter(|i| first[i - block.start] == NONE) {
            let known = here(i).filter(|&(j, _)| first[j] != NONE);
            if let Some((j, _)) = known.min_by(|a, b| a.1.total_cmp(&b.1)) {
                of[i - block.start] = first[j];
            }
        }
        for i in block.clone() {
            if of[i - block.start] == NONE && self.starts[i] < self.starts[i + 1] {
                of[i - block.start] = count;
                here(i).for_each(|(j, _)| of[j] = if of[j] == NONE { count } else { of[j] });
                count += 1;
            }
        }
        (of, count)
    }

    /// What each row takes of aggregates: those as they are, smoothed by a step of Jacobi iteration in the l1 norm of rows.
    fn smoothed(&self, aggregates: &[u32], count: usize) -> Rows {
        let fill = |sums: &mut Sparse, rows: Range<usize>, piece: &mut Piece| {
            for i in rows {
                let weight = self.diagonal[i] + self.row(i).map(|(_, x)| x.abs()).sum::<f64>();
                let step = SMOOTHED / weight;
                if aggregates[i] != NONE {
                    sums.add(aggregates[i], 1.0 - step * self.diagonal[i]);
                }
                for (j, x) in self.row(i) {
                    if aggregates[j as usize] != NONE {
                        sums.add(aggregates[j as usize], -step * x);
                    }
                }
                sums.drain(|column, value| piece.push(column, value));
                piece.end(0.0);
            }
        };
        Rows::collect(self.len(), || Sparse::new(count), fill)
    }

    /// `Pᵀ F P`, where this is `F`, and `P` has `count` columns.
    fn coarse(&self, down: &Rows, count: usize) -> Rows {
        let product = |sums: &mut Sparse, rows: Range<usize>, piece: &mut Piece| {
            for i in rows {
                let own = std::iter::once((i as u32, self.diagonal[i]));
                for (j, x) in own.chain(self.row(i)) {
                    down.row(j as usize).for_each(|(column, share)| sums.add(column, x * share));
                }
                sums.drain(|column, value| piece.push(column, value));
                piece.end(0.0);
            }
        };
        let product = Rows::collect(self.len(), || Sparse::new(count), product);
        let up = down.transposed(count);
        let fill = |sums: &mut Sparse, rows: Range<usize>, piece: &mut Piece| {
            for i in rows {
                for (j, share) in up.row(i) {
                    product.row(j as usize).for_each(|(column, x)| sums.add(column, share * x));
                }
                let mut own = 0.0;
                sums.drain(|column, x| if column as usize == i { own = x } else { piece.push(column, x) });
                piece.end(own);
            }
        };
        let mut coarse = Rows::collect(count, || Sparse::new(count), fill);
        coarse.mirror();
        coarse
    }

    /// Makes it symmetric to the last bit: sums of both halves were added up in other orders.
    fn mirror(&mut self) {
        let values: Vec<f64> = parallel::map(parallel::ranges(self.len(), 1 << 10), |rows| {
            let value = |i: usize, j: u32, x: f64| match (j as usize) < i {
                false => x,
                true => {
                    let row = self.starts[j as usize] as usize..self.starts[j as usize + 1] as usize;
                    let place = self.columns[row.clone()].binary_search(&(i as u32)).expect("entries come in pairs");
                    self.values[row.start + place]
                }
            };
            rows.flat_map(|i| self.row(i).map(move |(j, x)| (i, j, x)))
                .map(|(i, j, x)| value(i, j, x))
                .collect::<Vec<_>>()
        })
        .concat();
        self.values = values;
    }

    /// Its columns as rows.
    fn transposed(&self, columns: usize) -> Rows {
        let row_of: Vec<u32> = (0..self.len()).flat_map(|i| self.row(i).map(move |_| i as u32)).collect();
        let (starts, entries) = group(columns, self.columns.len(), |e| [(self.columns[e], e as u32)]);
        let (rows, values) = entries.iter().map(|&e| (row_of[e as usize], self.values[e as usize])).unzip();
        Rows { starts, columns: rows, values, diagonal: Vec::new() }
    }
}

/// Sums by column, most of which are not there.
struct Sparse {
    sums: Vec<f64>,
    is_there: Vec<bool>,
    columns: Vec<u32>,
}

impl Sparse {
    fn new(columns: usize) -> Sparse {
        Sparse { sums: vec![0.0; columns], is_there: vec![false; columns], columns: Vec::new() }
    }

    fn add(&mut self, column: u32, x: f64) {
        if !std::mem::replace(&mut self.is_there[column as usize], true) {
            self.columns.push(column);
        }
        self.sums[column as usize] += x;
    }

    /// Tells all sums, columns ascending, and starts again.
    fn drain(&mut self, mut tell: impl FnMut(u32, f64)) {
        self.columns.sort_unstable();
        for column in self.columns.drain(..) {
            self.is_there[column as usize] = false;
            tell(column, std::mem::take(&mut self.sums[column as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    fn stiffness(spec: &str, held: impl Fn(&[f64; 3]) -> bool) -> (Matrix<1>, Vec<[f64; 3]>) {
        let mesh = generate(spec, 1).unwrap();
        let elements = mesh.elements(1).unwrap();
        let mut matrix = elements.cells().stiffness(|_, a, b| [[a.iter().zip(b).map(|(a, b)| a * b).sum()]]);
        let held: Vec<_> = mesh.points().iter().map(|p| [held(p).then_some(0.0)]).collect();
        matrix.hold(&held, &mut vec![[0.0]; held.len()]);
        (matrix, mesh.points().to_vec())
    }

    /// One V-cycle with a sweep before and one after: the plain loops.
    fn cycle(matrix: &Matrix<1>, levels: &[Level], load: &[f64]) -> Vec<f64> {
        let rows = Rows::of(matrix, &(0..load.len() as u32).collect::<Vec<_>>());
        let mut x = vec![0.0; load.len()];
        let sweep = |x: &mut Vec<f64>, i: usize| {
            let around: f64 = rows.row(i).map(|(j, a)| a * x[j as usize]).sum();
            x[i] = (load[i] - around) / rows.diagonal[i];
        };
        (0..load.len()).for_each(|i| sweep(&mut x, i));
        if let Some((level, below)) = levels.split_first() {
            let image = matrix.times(&x.iter().map(|&x| [x]).collect::<Vec<_>>());
            let mut coarse = vec![0.0; level.points.len()];
            let links = || level.links.iter().zip(&level.shares);
            links()
                .for_each(|([v, c], share)| coarse[*c as usize] += share * (load[*v as usize] - image[*v as usize][0]));
            let found = cycle(&level.matrix, below, &coarse);
            links().for_each(|([v, c], share)| x[*v as usize] += share * found[*c as usize]);
        }
        (0..load.len()).rev().for_each(|i| sweep(&mut x, i));
        x
    }

    /// Iterations of conjugate gradients to a residual of 1e-8.
    fn iterations(spec: &str, dimension: usize) -> usize {
        let (matrix, points) = stiffness(spec, |p| p[0] < 1e-9);
        let levels = coarse_levels(&matrix, &points, dimension);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut missing: Vec<f64> = points.iter().map(|p| if p[0] < 1e-9 { 0.0 } else { 1.0 }).collect();
        let first = dot(&missing, &missing);
        let (mut direction, mut before) = (vec![0.0; points.len()], f64::INFINITY);
        for iteration in 1..100 {
            let step = cycle(&matrix, &levels, &missing);
            let now = dot(&missing, &step);
            direction.iter_mut().zip(&step).for_each(|(d, s)| *d = s + now / before * *d);
            before = now;
            let image = matrix.times(&direction.iter().map(|&x| [x]).collect::<Vec<_>>()).concat();
            let stride = now / dot(&direction, &image);
            missing.iter_mut().zip(&image).for_each(|(r, q)| *r -= stride * q);
            if dot(&missing, &missing) < 1e-16 * first {
                return iteration;
            }
        }
        panic!("no end in sight");
    }

    #[test]
    fn iterations_hardly_grow_with_the_mesh() {
        for (coarse, fine, dimension, most) in [("sheet:33", "sheet:129", 2, 17), ("box:9", "box:33", 3, 15)] {
            let [before, after] = [iterations(coarse, dimension), iterations(fine, dimension)];
            assert!(after <= most && after <= before + 5, "{before} and {after} on {fine}");
        }
    }

    #[test]
    fn levels_are_symmetric_and_what_is_held_is_no_part_of_them() {
        let (matrix, points) = stiffness("box:9", |p| p[2] < 1e-9);
        let levels = coarse_levels(&matrix, &points, 3);
        assert!(!levels.is_empty());
        assert!(levels[0].links.iter().all(|[v, _]| points[*v as usize][2] > 1e-9));
        let mut finer = points.len();
        for Level { points, matrix, links, shares } in &levels {
            assert!(points.len() < finer && links.len() == shares.len());
            assert!(links.iter().all(|[v, c]| (*v as usize) < finer && (*c as usize) < points.len()));
            assert_eq!(matrix.diagonal.len(), points.len());
            assert!(matrix.pairs.is_sorted_by(|a, b| a < b) && matrix.diagonal.iter().all(|d| d[0][0] > 0.0));
            finer = points.len();
        }
    }

    #[test]
    fn what_is_small_or_falls_apart_has_no_levels() {
        let apart = Matrix { pairs: Vec::new(), blocks: Vec::new(), diagonal: vec![[[1.0]]; 100] };
        assert!(coarse_levels(&apart, &[[0.0; 3]; 100], 3).is_empty());
        let (matrix, points) = stiffness("sheet:3", |_| false);
        assert!(coarse_levels(&matrix, &points, 2).is_empty());
    }
}
