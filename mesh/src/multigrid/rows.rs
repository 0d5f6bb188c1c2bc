//! Sparse matrices of blocks, and what makes them coarser.

use crate::block::{self, Block};
use crate::elements::Matrix;
use crate::parallel;
use crate::sort::group;
use std::ops::Range;

/// Nodes that are aggregated by themselves, so that threads find work: no iteration more was seen.
const BLOCK: usize = 1 << 12;
/// How far errors are smoothed that aggregates share.
const SMOOTHED: f64 = 1.6;
/// A row that is coupled to more is not smoothed: it would couple the aggregates of all of them with each other.
const CROWDED: usize = 1 << 10;

/// No aggregate.
pub(super) const NONE: u32 = u32::MAX;

/// A sparse matrix of blocks of `A` by `B` numbers, row by row, columns ascending.
pub(super) struct Rows<const A: usize, const B: usize> {
    /// Where rows start, and the end.
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<Block<A, B>>,
    /// Of a square one, the diagonal, which rows do not repeat.
    diagonal: Vec<Block<A, A>>,
}

/// Rows that follow each other, and their diagonal.
struct Piece<const A: usize, const B: usize> {
    /// Where each ends.
    ends: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<Block<A, B>>,
    diagonal: Vec<Block<A, A>>,
}

impl<const A: usize, const B: usize> Piece<A, B> {
    fn new() -> Piece<A, B> {
        Piece { ends: Vec::new(), columns: Vec::new(), values: Vec::new(), diagonal: Vec::new() }
    }

    fn push(&mut self, column: u32, value: Block<A, B>) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Ends a row.
    fn end(&mut self) {
        self.ends.push(self.columns.len() as u32);
    }

    /// Ends a row of a square one.
    fn end_square(&mut self, diagonal: Block<A, A>) {
        self.end();
        self.diagonal.push(diagonal);
    }
}

impl<const A: usize, const B: usize> Rows<A, B> {
    /// So many rows, some by some in parallel. `scratch`: what each piece of work has for itself.
    fn collect<S>(
        count: usize,
        scratch: impl Fn() -> S + Sync,
        fill: impl Fn(&mut S, Range<usize>, &mut Piece<A, B>) + Sync,
    ) -> Rows<A, B> {
        let pieces = parallel::map(parallel::ranges(count, 1 << 10), |range| {
            let (mut piece, mut scratch) = (Piece::new(), scratch());
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
        Rows { starts, columns: parallel::concat(columns), values: values.concat(), diagonal: diagonal.concat() }
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn row(&self, i: usize) -> impl Iterator<Item = (u32, Block<A, B>)> + Clone {
        let row = self.starts[i] as usize..self.starts[i + 1] as usize;
        self.columns[row.clone()].iter().copied().zip(self.values[row].iter().copied())
    }

    /// As blocks of `N` by `N`: where they are, and what is in them, without those that are zero. `names`: of the rows.
    pub(super) fn links<const N: usize>(&self, names: &[u32]) -> (Vec<[u32; 2]>, Vec<Block<N, N>>) {
        let (mut pairs, mut blocks) = (Vec::new(), Vec::new());
        for (i, &name) in names.iter().enumerate() {
            for a in 0..A / N {
                for (j, block) in self.row(i) {
                    for b in 0..B / N {
                        push([[name, j], [a as u32, b as u32]], [A / N, B / N], &block, &mut pairs, &mut blocks);
                    }
                }
            }
        }
        (pairs, blocks)
    }

    /// Its columns as rows.
    fn transposed(&self, columns: usize) -> Rows<B, A> {
        let row_of: Vec<u32> = (0..self.len()).flat_map(|i| self.row(i).map(move |_| i as u32)).collect();
        let (starts, entries) = group(columns, self.columns.len(), |e| [(self.columns[e], e as u32)]);
        let entry = |&e: &u32| (row_of[e as usize], block::transposed(&self.values[e as usize]));
        let (rows, values) = entries.iter().map(entry).unzip();
        Rows { starts, columns: rows, values, diagonal: Vec::new() }
    }
}

/// Block `[a, b]` of `N` by `N` in one, of a row and a column that have so many of them.
fn push<const A: usize, const B: usize, const N: usize>(
    [[row, column], [a, b]]: [[u32; 2]; 2],
    [rows, columns]: [usize; 2],
    block: &Block<A, B>,
    pairs: &mut Vec<[u32; 2]>,
    blocks: &mut Vec<Block<N, N>>,
) {
    let part: Block<N, N> =
        std::array::from_fn(|i| std::array::from_fn(|j| block[a as usize * N + i][b as usize * N + j]));
    if !block::is_zero(&part) {
        pairs.push([row * rows as u32 + a, column * columns as u32 + b]);
        blocks.push(part);
    }
}

impl<const A: usize> Rows<A, A> {
    /// Those of a symmetric matrix, renumbered. `rank`: the row of each node.
    pub(super) fn of(matrix: &Matrix<A>, rank: &[u32]) -> Rows<A, A> {
        let Matrix { pairs, blocks, diagonal } = matrix;
        let (starts, ends) = group(rank.len(), pairs.len(), |pair| {
            let [a, b] = pairs[pair].map(|v| rank[v as usize]);
            [(a, 2 * pair as u32), (b, 2 * pair as u32 + 1)]
        });
        let mut own = vec![block::zero(); rank.len()];
        rank.iter().zip(diagonal).for_each(|(&place, block)| own[place as usize] = *block);
        // Of an end, the row of the other, and the entry.
        let entry = |&end: &u32| {
            let (pair, other) = (end as usize / 2, 1 - end as usize % 2);
            let block = if other == 1 { blocks[pair] } else { block::transposed(&blocks[pair]) };
            (rank[pairs[pair][other] as usize], block)
        };
        let fill = |row: &mut Vec<(u32, Block<A, A>)>, rows: Range<usize>, piece: &mut Piece<A, A>| {
            for i in rows {
                row.clear();
                row.extend(ends[starts[i] as usize..starts[i + 1] as usize].iter().map(entry));
                row.sort_unstable_by_key(|entry| entry.0);
                row.iter().for_each(|&(column, x)| piece.push(column, x));
                piece.end_square(own[i]);
            }
        };
        Rows::collect(rank.len(), Vec::new, fill)
    }

    /// As a symmetric matrix of blocks of `N` by `N`.
    pub(super) fn matrix<const N: usize>(&self) -> Matrix<N> {
        let count = A / N;
        let (mut pairs, mut blocks, mut diagonal) = (Vec::new(), Vec::new(), Vec::new());
        for (i, own) in self.diagonal.iter().enumerate() {
            let row = i as u32;
            for a in 0..count {
                diagonal.push(std::array::from_fn(|k| std::array::from_fn(|l| own[a * N + k][a * N + l])));
                let mut add = |j: u32, b: usize, block: &Block<A, A>| {
                    push([[row, j], [a as u32, b as u32]], [count; 2], block, &mut pairs, &mut blocks);
                };
                (a + 1..count).for_each(|b| add(row, b, own));
                let later = self.row(i).filter(|&(j, _)| j > row);
                later.for_each(|(j, block)| (0..count).for_each(|b| add(j, b, &block)));
            }
        }
        Matrix { pairs, blocks, diagonal }
    }

    /// How strongly rows are coupled: the trace of each entry over the roots of the diagonals, where it is below zero and the entry not `weak`.
    pub(super) fn couplings(&self, weak: f64) -> Rows<1, 1> {
        let one_over = |x: f64| if x > 0.0 { 1.0 / x } else { 0.0 };
        let fill = |(): &mut (), rows: Range<usize>, piece: &mut Piece<1, 1>| {
            for i in rows {
                let own: [f64; A] = std::array::from_fn(|k| one_over(self.diagonal[i][k][k]));
                for (j, block) in self.row(i) {
                    let other: [f64; A] = std::array::from_fn(|k| one_over(self.diagonal[j as usize][k][k]));
                    let trace: f64 = (0..A).map(|k| block[k][k] * (own[k] * other[k]).sqrt()).sum();
                    let columns = |k: usize| (0..A).map(move |l| block[k][l] * block[k][l] * other[l]).sum::<f64>();
                    if trace < 0.0 && (0..A).map(|k| own[k] * columns(k)).sum::<f64>() > weak * weak {
                        piece.push(j, [[trace]]);
                    }
                }
                piece.end();
            }
        };
        Rows::collect(self.len(), || (), fill)
    }

    /// Without entries that are not among the `couplings`, which count as if both ends were the same.
    pub(super) fn lumped(&self, couplings: &Rows<1, 1>) -> Rows<A, A> {
        let fill = |(): &mut (), rows: Range<usize>, piece: &mut Piece<A, A>| {
            for i in rows {
                let mut own = self.diagonal[i];
                let mut strong = couplings.row(i).map(|(j, _)| j).peekable();
                for (j, block) in self.row(i) {
                    match strong.next_if_eq(&j) {
                        Some(_) => piece.push(j, block),
                        None => own.as_flattened_mut().iter_mut().zip(block.as_flattened()).for_each(|(d, x)| *d += x),
                    }
                }
                piece.end_square(own);
            }
        };
        Rows::collect(self.len(), || (), fill)
    }

    /// What each row takes of `count` aggregates: as they `move` it, smoothed by a step of Jacobi iteration in the l1 norm of rows.
    /// `moved`: the aggregate of a row, and how much it takes of that. An unknown that is coupled to no other takes nothing; a row that is
    /// crowded stays as it is moved.
    pub(super) fn smoothed<const B: usize>(
        &self,
        count: usize,
        moved: impl Fn(usize) -> Option<(u32, Block<A, B>)> + Sync,
    ) -> Rows<A, B> {
        let fill = |sums: &mut Sparse<A, B>, rows: Range<usize>, piece: &mut Piece<A, B>| {
            for i in rows {
                let mut norms = self.diagonal[i].map(|row| row.iter().map(|x| x.abs()).sum::<f64>());
                for (_, block) in self.row(i) {
                    norms
                        .iter_mut()
                        .zip(&block)
                        .for_each(|(norm, row)| *norm += row.iter().map(|x| x.abs()).sum::<f64>());
                }
                let is_alone: [bool; A] = std::array::from_fn(|k| norms[k] == self.diagonal[i][k][k]);
                let is_crowded = (self.starts[i + 1] - self.starts[i]) as usize > CROWDED;
                let smoothed = if is_crowded { 0.0 } else { SMOOTHED };
                let mut add = |(of, share): (u32, Block<A, B>), block: &Block<A, A>, is_own: bool| {
                    let image = block::product(block, &share);
                    let smooth = |k: usize, l: usize| {
                        if is_own {
                            share[k][l] - smoothed / norms[k] * image[k][l]
                        } else {
                            -(smoothed / norms[k]) * image[k][l]
                        }
                    };
                    let row = |k: usize| std::array::from_fn(|l| if is_alone[k] { 0.0 } else { smooth(k, l) });
                    sums.add(of, &std::array::from_fn(row));
                };
                moved(i).into_iter().for_each(|own| add(own, &self.diagonal[i], true));
                for (j, block) in self.row(i).filter(|_| !is_crowded) {
                    moved(j as usize).into_iter().for_each(|other| add(other, &block, false));
                }
                sums.drain(|column, value| piece.push(column, value));
                piece.end();
            }
        };
        Rows::collect(self.len(), || Sparse::new(count), fill)
    }

    /// `Pᵀ F P`, where this is `F`, and `P` has `count` columns.
    pub(super) fn coarse<const B: usize>(&self, down: &Rows<A, B>, count: usize) -> Rows<B, B> {
        let product = |sums: &mut Sparse<A, B>, rows: Range<usize>, piece: &mut Piece<A, B>| {
            for i in rows {
                let own = std::iter::once((i as u32, self.diagonal[i]));
                for (j, x) in own.chain(self.row(i)) {
                    down.row(j as usize).for_each(|(column, share)| sums.add_product(column, &x, &share));
                }
                sums.drain(|column, value| piece.push(column, value));
                piece.end();
            }
        };
        let product = Rows::<A, B>::collect(self.len(), || Sparse::new(count), product);
        let up = down.transposed(count);
        let fill = |sums: &mut Sparse<B, B>, rows: Range<usize>, piece: &mut Piece<B, B>| {
            for i in rows {
                for (j, share) in up.row(i) {
                    product.row(j as usize).for_each(|(column, x)| sums.add_product(column, &share, &x));
                }
                let mut own = block::zero();
                sums.drain(|column, x| if column as usize == i { own = x } else { piece.push(column, x) });
                piece.end_square(own);
            }
        };
        let mut coarse = Rows::collect(count, || Sparse::new(count), fill);
        coarse.mirror();
        coarse
    }

    /// Makes it symmetric to the last bit: sums of both halves were added up in other orders.
    fn mirror(&mut self) {
        let values: Vec<Block<A, A>> = parallel::map(parallel::ranges(self.len(), 1 << 10), |rows| {
            let value = |i: usize, j: u32, x: Block<A, A>| match (j as usize) < i {
                false => x,
                true => {
                    let row = self.starts[j as usize] as usize..self.starts[j as usize + 1] as usize;
                    let place = self.columns[row.clone()].binary_search(&(i as u32)).expect("entries come in pairs");
                    block::transposed(&self.values[row.start + place])
                }
            };
            rows.flat_map(|i| self.row(i).map(move |(j, x)| (i, j, x)))
                .map(|(i, j, x)| value(i, j, x))
                .collect::<Vec<_>>()
        })
        .concat();
        self.values = values;
        for own in &mut self.diagonal {
            (0..A).for_each(|i| (0..i).for_each(|j| own[i][j] = own[j][i]));
        }
    }
}

impl Rows<1, 1> {
    /// The aggregate of each row, and how many there are. Rows without couplings have none.
    pub(super) fn aggregates(&self) -> (Vec<u32>, usize) {
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
            if let Some((j, _)) = known.min_by(|a, b| a.1[0][0].total_cmp(&b.1[0][0])) {
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
}

/// Sums by column, most of which are not there.
struct Sparse<const A: usize, const B: usize> {
    sums: Vec<Block<A, B>>,
    is_there: Vec<bool>,
    columns: Vec<u32>,
}

impl<const A: usize, const B: usize> Sparse<A, B> {
    fn new(columns: usize) -> Sparse<A, B> {
        Sparse { sums: vec![block::zero(); columns], is_there: vec![false; columns], columns: Vec::new() }
    }

    fn at(&mut self, column: u32) -> &mut Block<A, B> {
        if !std::mem::replace(&mut self.is_there[column as usize], true) {
            self.columns.push(column);
        }
        &mut self.sums[column as usize]
    }

    fn add(&mut self, column: u32, x: &Block<A, B>) {
        self.at(column).as_flattened_mut().iter_mut().zip(x.as_flattened()).for_each(|(sum, x)| *sum += x);
    }

    fn add_product<const C: usize>(&mut self, column: u32, left: &Block<A, C>, right: &Block<C, B>) {
        block::add_product(self.at(column), left, right);
    }

    /// Tells all sums, columns ascending, and starts again.
    fn drain(&mut self, mut tell: impl FnMut(u32, Block<A, B>)) {
        self.columns.sort_unstable();
        for column in self.columns.drain(..) {
            self.is_there[column as usize] = false;
            tell(column, std::mem::replace(&mut self.sums[column as usize], block::zero()));
        }
    }
}
