//! Multigrid: an equation between the nodes of a mesh, and coarser ones below it, by smoothed aggregation.
//!
//! A sweep of Gauss–Seidel removes from an error what changes from node to node, and leaves what is smooth. That is solved for with fewer
//! unknowns: neighbors that depend on each other most are *aggregated*, and each aggregate becomes vertices of the next level, and so on. So a
//! solution takes the same work an unknown at any size.
//!
//! Sources: Vaněk, Mandel and Brezina, "Algebraic multigrid by smoothed aggregation for second and fourth order elliptic problems", 1996;
//! weights: Baker, Falgout, Kolev and Yang, "Multigrid smoothers for ultraparallel computing", 2011. What was chosen, and why, is in
//! `docs/perf/decisions/multigrid.md`.

mod dense;
mod rows;

use crate::block::{self, Block};
use crate::elements::Matrix;
use crate::order::Curve;
use dense::Dense;
use rows::{NONE, Rows};
use std::sync::Arc;

/// Equations of all levels, each scaled so that what is on its diagonal becomes one: `Wᵀ x` solves that of the nodes, if `x` solves the scaled one.
///
/// Vertices of all levels are numbered one after the other: the nodes, those of the next level, and so on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Multigrid<const N: usize> {
    /// Where the vertices of each coarse level are: in the middle of what they stand for; and those of the last once more, if it is small enough
    /// to be solved at once, for its solution. Shape [vertices × 3] each.
    pub points: Vec<Vec<[f64; 3]>>,
    /// By what scaled unknowns are multiplied: `Wᵀ`, an upper triangle. Shape [vertices of all levels × N × N].
    pub scales: Vec<[[f64; N]; N]>,
    /// The inverse of that; zero where a coarse unknown depends on others, and is none. Shape as `scales`.
    pub roots: Vec<[[f64; N]; N]>,
    /// Vertices of a level that are coupled, the smaller first: shape [pairs × 2].
    pub pairs: Arc<Vec<[u32; 2]>>,
    /// Minus the scaled block in the row of the first of a pair; across the diagonal it is transposed. Shape [pairs × N × N].
    pub blocks: Vec<[[f64; N]; N]>,
    /// A vertex of a level, and one of the next. Nodes that are coupled to no other have none. Shape [links × 2].
    pub down: Arc<Vec<[u32; 2]>>,
    /// The same the other way, from a vertex that has a solution. Shape [links × 2].
    pub up: Arc<Vec<[u32; 2]>>,
    /// How much of the scaled unknowns of the coarse vertex each link adds to those of the fine one. Shape [links × N × N].
    pub shares: Vec<[[f64; N]; N]>,
    /// From each vertex of the last level to each that has its solution, if it is solved at once. Shape [vertices² × 2].
    pub across: Arc<Vec<[u32; 2]>>,
    /// How much each adds: the inverse of the scaled equation there. Shape [vertices² × N × N].
    pub inverse: Vec<[[f64; N]; N]>,
}

/// Levels with fewer aggregates are not made coarser.
const FEW: usize = 32;
/// The most coarse levels.
const MOST: usize = 12;
/// How weak a coupling may be against the diagonals to count, on the mesh.
const WEAK: f64 = 0.06;
/// The same on the level below it; on each further one it is half of that.
const WEAK_BELOW: f64 = 0.06;
/// The same for what diffuses in space.
const WEAK_BELOW_SPACE: f64 = 0.02;
/// The most aggregates of a last level whose inverse is made.
const SMALL: usize = 64;
/// Scaled entries that are but rounding.
const ROUNDING: f64 = 1e-15;

impl Multigrid<1> {
    /// Of an equation of what diffuses. `points`: where nodes are; `dimension`: of the mesh.
    ///
    /// The matrix must be symmetric with a positive diagonal; rows should add up to zero or more. Depends on nothing but the arguments. Cost
    /// O(pairs), in parallel; all coarse levels together have a quarter of the entries of the matrix.
    ///
    /// # Panics
    /// If the matrix has not a row for each point, or 2^31 pairs.
    ///
    /// ```
    /// use meshweft_mesh::{Multigrid, generate::generate};
    /// let mesh = generate("sheet:65", 1)?;
    /// let elements = mesh.elements(1)?;
    /// let matrix = elements.cells().stiffness(|_, a, b| [[a[0] * b[0] + a[1] * b[1]]]);
    /// let levels = Multigrid::scalar(&matrix, mesh.points(), 2);
    /// assert!(levels.points.len() >= 2 && levels.points[0].len() < 65 * 65 / 5);
    /// // What is the same everywhere is there on the coarse level, too.
    /// let mut sums = vec![0.0; 65 * 65];
    /// for (&[fine, coarse], share) in levels.down.iter().zip(&levels.shares).filter(|([fine, _], _)| *fine < 65 * 65) {
    ///     sums[fine as usize] += levels.scales[fine as usize][0][0] * share[0][0] * levels.roots[coarse as usize][0][0];
    /// }
    /// assert!(sums.iter().all(|sum: &f64| (sum - 1.0).abs() < 1e-12));
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn scalar(matrix: &Matrix<1>, points: &[[f64; 3]], dimension: usize) -> Multigrid<1> {
        Multigrid::of(matrix, points, if dimension < 3 { WEAK_BELOW } else { WEAK_BELOW_SPACE }, |_| [[1.0]])
    }
}

impl Multigrid<3> {
    /// Of the displacements of an elastic solid, three unknowns a node; the same as [`scalar`](Multigrid::scalar) otherwise. In a mesh of two
    /// dimensions the third is coupled to no other.
    ///
    /// A coarse vertex in a plane moves along both axes and turns; in space there are two at each place, one that moves and one that turns.
    ///
    /// ```
    /// use meshweft_mesh::{Multigrid, generate::generate};
    /// let mesh = generate("box:9", 1)?;
    /// let elements = mesh.elements(1)?;
    /// // Solids whose Poisson's ratio is zero.
    /// let matrix = elements.cells().stiffness(|_, a, b| {
    ///     let dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    ///     std::array::from_fn(|i| std::array::from_fn(|j| a[j] * b[i] + if i == j { dot } else { 0.0 }))
    /// });
    /// let levels = Multigrid::elastic(&matrix, mesh.points(), 3);
    /// let coarse = &levels.points[0];
    /// assert!(coarse.len() % 2 == 0 && coarse[0] == coarse[1] && coarse.len() < 9 * 9 * 9 / 5);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn elastic(matrix: &Matrix<3>, points: &[[f64; 3]], dimension: usize) -> Multigrid<3> {
        if dimension < 3 {
            return Multigrid::of(matrix, points, WEAK_BELOW, |[x, y, _]| {
                [[1.0, 0.0, -y], [0.0, 1.0, x], [0.0, 0.0, 1.0]]
            });
        }
        Multigrid::of(matrix, points, WEAK_BELOW, |[x, y, z]| {
            [
                [1.0, 0.0, 0.0, 0.0, z, -y],
                [0.0, 1.0, 0.0, -z, 0.0, x],
                [0.0, 0.0, 1.0, y, -x, 0.0],
                [0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
                [0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            ]
        })
    }
}

impl<const N: usize> Multigrid<N> {
    /// `moves`: how the `M` unknowns of what lies so far away follow those of an aggregate, without an error of the equation; a node has the
    /// first `N` of them.
    fn of<const M: usize>(
        matrix: &Matrix<N>,
        points: &[[f64; 3]],
        weak_below: f64,
        moves: impl Fn([f64; 3]) -> Block<M, M> + Sync,
    ) -> Multigrid<N> {
        assert_eq!(matrix.diagonal.len(), points.len(), "a row for each point");
        assert!(matrix.pairs.len() < 1 << 31, "fewer than 2^31 pairs");
        // Along the curve: neighbors lie together, whatever their numbers are.
        let curve = Curve::Morton.order(points);
        let names = curve.order().to_vec();
        let along: Vec<[f64; 3]> = names.iter().map(|&v| points[v as usize]).collect();
        let mut made = Multigrid::default();
        made.add(matrix);
        let rows = Rows::<N, N>::of(matrix, curve.rank());
        let Some((mut rows, mut points)) = made.coarsen(&rows, &along, &names, WEAK, &moves) else { return made };
        let mut weak = weak_below;
        while made.points.len() < MOST {
            let names: Vec<u32> = (0..points.len() as u32).collect();
            match made.coarsen(&rows, &points, &names, weak, &moves) {
                Some(coarser) => (rows, points) = coarser,
                None => break,
            }
            weak *= 0.5;
        }
        made.finish(points.len() <= SMALL);
        made
    }

    /// Ends with the last level, and its inverse.
    fn finish(&mut self, is_small: bool) {
        // As much again has been set aside for more, which a large mesh has no memory for.
        self.blocks.shrink_to_fit();
        self.shares.shrink_to_fit();
        [&mut self.pairs, &mut self.down].into_iter().for_each(|list| Arc::make_mut(list).shrink_to_fit());
        let Some(last) = self.points.last().cloned() else { return };
        let (count, end) = (last.len(), self.scales.len());
        let first = end - count;
        if is_small {
            let inverse = self.inverse_from(first);
            self.across =
                Arc::new((0..count * count).map(|e| [first + e % count, end + e / count].map(|v| v as u32)).collect());
            self.inverse = (0..count * count)
                .map(|e| {
                    let [row, column] = [e / count * N, e % count * N];
                    std::array::from_fn(|k| std::array::from_fn(|l| inverse.get(row + k, column + l)))
                })
                .collect();
            self.points.push(last);
        }
        let solved = |c: u32| if is_small && c as usize >= first { c + count as u32 } else { c };
        self.up = Arc::new(self.down.iter().map(|&[fine, coarse]| [solved(coarse), fine]).collect());
    }

    /// The inverse of the scaled equation of the level that starts there.
    fn inverse_from(&self, first: usize) -> Dense {
        let size = N * (self.scales.len() - first);
        let mut dense = Dense::new(size);
        // An unknown that depends on others is none: it has no entries.
        (0..size).for_each(|k| *dense.at(k, k) = 1.0);
        let start = self.pairs.partition_point(|pair| (pair[0] as usize) < first);
        for (pair, block) in self.pairs.iter().zip(&self.blocks).skip(start) {
            let [a, b] = pair.map(|v| N * (v as usize - first));
            (0..N).for_each(|k| (0..N).for_each(|l| *dense.at(b + l, a + k) = -block[k][l]));
        }
        dense.inverse()
    }

    /// Adds the level below one, if it is worth it: its rows, and where they are. `A`: unknowns of a row; `names`: of the rows.
    fn coarsen<const A: usize, const M: usize>(
        &mut self,
        rows: &Rows<A, A>,
        points: &[[f64; 3]],
        names: &[u32],
        weak: f64,
        moves: impl Fn([f64; 3]) -> Block<M, M> + Sync,
    ) -> Option<(Rows<M, M>, Vec<[f64; 3]>)> {
        if points.len() <= FEW {
            return None;
        }
        let couplings = rows.couplings(weak);
        let (aggregates, count) = couplings.aggregates();
        if count == 0 || 5 * count > 4 * points.len() {
            return None;
        }
        let middles = middles(points, &aggregates, count);
        let moved = |i: usize| {
            let of = Some(aggregates[i]).filter(|&of| of != NONE)?;
            let (place, middle) = (points[i], middles[of as usize]);
            let whole = moves(std::array::from_fn(|k| place[k] - middle[k]));
            Some((of, std::array::from_fn(|k| whole[k])))
        };
        // What turns does not stay as it is where both ends count as the same.
        let lumped = (M == 1).then(|| rows.lumped(&couplings));
        let rows = lumped.as_ref().unwrap_or(rows);
        let down = rows.smoothed(count, moved);
        let coarse = rows.coarse(&down, count);
        let (links, shares) = down.links(names);
        self.link(&links, &shares, &coarse.matrix());
        self.points.push(middles.iter().flat_map(|&middle| std::iter::repeat_n(middle, M / N)).collect());
        Some((coarse, middles))
    }

    /// Adds a level and what leads to it.
    fn link(&mut self, links: &[[u32; 2]], shares: &[Block<N, N>], matrix: &Matrix<N>) {
        let above = self.scales.len() - self.points.last().map_or(self.scales.len(), Vec::len);
        let below = self.scales.len();
        self.add(matrix);
        let down = Arc::make_mut(&mut self.down);
        for (&[fine, coarse], share) in links.iter().zip(shares) {
            let [fine, coarse] = [above + fine as usize, below + coarse as usize];
            self.shares.push(block::product(&self.roots[fine], &block::product(share, &self.scales[coarse])));
            down.push([fine as u32, coarse as u32]);
        }
    }

    fn add(&mut self, matrix: &Matrix<N>) {
        let first = self.scales.len();
        for block in &matrix.diagonal {
            let [lower, inverse] = block::roots(block);
            self.scales.push(block::transposed(&inverse));
            self.roots.push(block::transposed(&lower));
        }
        let pairs = Arc::make_mut(&mut self.pairs);
        for (pair, block) in matrix.pairs.iter().zip(&matrix.blocks) {
            let [a, b] = pair.map(|v| first + v as usize);
            let (left, right) = (block::transposed(&self.scales[a]), &self.scales[b]);
            // Both ways, so that it does not matter which of the two is named first.
            let once: Block<N, N> = block::product(&block::product(&left, block), right);
            let again = block::product(&left, &block::product(block, right));
            let scaled: Block<N, N> =
                std::array::from_fn(|i| std::array::from_fn(|j| 0.5 * (once[i][j] + again[i][j])));
            if scaled.as_flattened().iter().any(|x| x.abs() > ROUNDING) {
                pairs.push([a as u32, b as u32]);
                self.blocks.push(scaled.map(|row| row.map(|x| -x)));
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::generate;

    type Equation<const N: usize> = (Vec<[f64; 3]>, Multigrid<N>);

    fn heat(spec: &str, degree: usize, held: impl Fn(&[f64; 3], &[f64; 3]) -> bool) -> Equation<1> {
        let elements = generate(spec, 1).unwrap().elements(degree).unwrap();
        let mut matrix = elements.cells().stiffness(|_, a, b| [[a.iter().zip(b).map(|(a, b)| a * b).sum()]]);
        let mesh = elements.mesh();
        let low = mesh.bounds()[0];
        let held: Vec<_> = mesh.points().iter().map(|p| [held(p, &low).then_some(0.0)]).collect();
        matrix.hold(&held, &mut vec![[0.0]; held.len()]);
        let levels = Multigrid::scalar(&matrix, mesh.points(), mesh.dimension());
        (mesh.points().to_vec(), levels)
    }

    /// A solid with a Poisson's ratio of 0.3.
    fn solid(spec: &str, degree: usize, held: impl Fn(&[f64; 3], &[f64; 3]) -> bool) -> Equation<3> {
        let elements = generate(spec, 1).unwrap().elements(degree).unwrap();
        let mesh = elements.mesh();
        let mut matrix = elements.cells().stiffness(|_, a, b| {
            let dot = a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let entry = |i: usize, j: usize| 1.5 * a[i] * b[j] + a[j] * b[i] + if i == j { dot } else { 0.0 };
            std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
        });
        let is_flat = mesh.dimension() < 3;
        matrix.diagonal.iter_mut().filter(|_| is_flat).for_each(|block| block[2][2] = block[0][0]);
        let low = mesh.bounds()[0];
        let hold = |p| [false, false, is_flat].map(|is_held| (is_held || held(p, &low)).then_some(0.0));
        let held: Vec<_> = mesh.points().iter().map(hold).collect();
        matrix.hold(&held, &mut vec![[0.0; 3]; held.len()]);
        let levels = Multigrid::elastic(&matrix, mesh.points(), mesh.dimension());
        (mesh.points().to_vec(), levels)
    }

    /// Plain loops over one level, whose vertices start at `first`.
    struct Loops<'a, const N: usize> {
        levels: &'a Multigrid<N>,
        rows: Vec<Vec<(usize, Block<N, N>)>>,
    }

    impl<const N: usize> Loops<'_, N> {
        fn new(levels: &Multigrid<N>) -> Loops<'_, N> {
            let mut rows = vec![Vec::new(); levels.scales.len()];
            for (&[a, b], block) in levels.pairs.iter().zip(&levels.blocks) {
                rows[a as usize].push((b as usize, *block));
                rows[b as usize].push((a as usize, block::transposed(block)));
            }
            Loops { levels, rows }
        }

        fn around(&self, x: &[[f64; N]], i: usize) -> [f64; N] {
            let mut sum = [[0.0]; N];
            for (j, block) in &self.rows[i] {
                block::add_product(&mut sum, block, &x[*j].map(|x| [x]));
            }
            sum.map(|[x]| x)
        }

        /// A V-cycle with a sweep before and one after, on the level whose vertices start there, and those below. `x`: of all levels.
        fn cycle(&self, level: usize, first: usize, loads: &[[f64; N]], x: &mut [[f64; N]]) {
            let Multigrid { points, down, up, shares, across, inverse, .. } = self.levels;
            let coarse: usize = points.iter().skip(level).map(Vec::len).sum();
            let end = x.len() - coarse;
            let of = |block: &Block<N, N>, x: &[f64; N]| block::product(block, &x.map(|x| [x])).map(|[x]| x);
            let add = |sum: &mut [f64; N], x: [f64; N]| sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            x[first..end].fill([0.0; N]);
            if level + 1 == points.len() {
                x[end..].fill([0.0; N]);
                across
                    .iter()
                    .zip(inverse)
                    .for_each(|(&[v, w], block)| add(&mut x[w as usize], of(block, &loads[v as usize])));
                return;
            }
            let sweep = |x: &mut [[f64; N]], i: usize| {
                x[i] = loads[i];
                let around = self.around(x, i);
                add(&mut x[i], around);
            };
            (first..end).for_each(|i| sweep(x, i));
            let here = || (0..shares.len()).filter(|&link| (first..end).contains(&(down[link][0] as usize)));
            let mut below = loads.to_vec();
            for link in here() {
                let [v, c] = down[link].map(|v| v as usize);
                let around = self.around(x, v);
                let missing = std::array::from_fn(|k| loads[v][k] + around[k] - x[v][k]);
                add(&mut below[c], of(&block::transposed(&shares[link]), &missing));
            }
            if level < points.len() {
                self.cycle(level + 1, end, &below, x);
            }
            for link in here() {
                let [c, v] = up[link].map(|v| v as usize);
                let added = of(&shares[link], &x[c]);
                add(&mut x[v], added);
            }
            (first..end).rev().for_each(|i| sweep(x, i));
        }
    }

    /// Iterations of conjugate gradients to a residual of 1e-8, for a load that is the same everywhere.
    fn iterations<const N: usize>((points, levels): Equation<N>) -> usize {
        let (loops, count) = (Loops::new(&levels), points.len());
        let dot = |a: &[[f64; N]], b: &[[f64; N]]| {
            a.as_flattened().iter().zip(b.as_flattened()).map(|(a, b)| a * b).sum::<f64>()
        };
        let add = |a: &mut [[f64; N]], times: f64, b: &[[f64; N]]| {
            a.as_flattened_mut().iter_mut().zip(b.as_flattened()).for_each(|(a, b)| *a += times * b);
        };
        let is_alone = |v: usize| loops.rows[v].is_empty();
        let mut missing: Vec<[f64; N]> = (0..count)
            .map(|v| if is_alone(v) { [0.0; N] } else { std::array::from_fn(|k| f64::from(k < 2)) })
            .collect();
        let first = dot(&missing, &missing);
        let (mut direction, mut before) = (vec![[0.0; N]; count], f64::INFINITY);
        let mut step = vec![[0.0; N]; count + levels.points.iter().map(Vec::len).sum::<usize>()];
        for iteration in 1..200 {
            let mut loads = missing.clone();
            loads.resize(step.len(), [0.0; N]);
            loops.cycle(0, 0, &loads, &mut step);
            let now = dot(&missing, &step[..count]);
            let mut turned = step[..count].to_vec();
            add(&mut turned, now / before, &direction);
            direction = turned;
            before = now;
            let image: Vec<[f64; N]> = (0..count)
                .map(|v| {
                    let around = loops.around(&direction, v);
                    std::array::from_fn(|k| direction[v][k] - around[k])
                })
                .collect();
            let stride = now / dot(&direction, &image);
            add(&mut missing, -stride, &image);
            if dot(&missing, &missing) < 1e-16 * first {
                return iteration;
            }
        }
        panic!("no end in sight");
    }

    #[test]
    fn iterations_hardly_grow_with_the_mesh() {
        // At the left.
        let held = |p: &[f64; 3], low: &[f64; 3]| p[0] < low[0] + 1e-9;
        for (coarse, fine, most) in [("sheet:33", "sheet:129", 17), ("box:9", "box:33", 15)] {
            let [before, after] = [coarse, fine].map(|spec| iterations(heat(spec, 1, held)));
            assert!(after <= most && after <= before + 5, "{before} and {after} on {fine}");
        }
        // The bar bends, and what turns is on every level.
        let elastic =
            [("sheet:33", "sheet:129", 2, 30), ("box:9", "box:17", 1, 24), ("bar:65x9x9", "bar:129x9x9", 1, 48)];
        for (coarse, fine, degree, most) in elastic {
            let [before, after] = [coarse, fine].map(|spec| iterations(solid(spec, degree, held)));
            assert!(after <= most && after <= before + 8, "{before} and {after} on {fine}");
        }
    }

    #[test]
    fn levels_are_symmetric_and_what_is_held_is_no_part_of_them() {
        let (points, levels) = heat("box:9", 1, |p, _| p[2] < 1e-9);
        let Multigrid { points: coarse, pairs, down, up, across, inverse, .. } = &levels;
        let mut starts = vec![0, points.len()];
        coarse.iter().for_each(|level| starts.push(starts[starts.len() - 1] + level.len()));
        let last = coarse.len() - 1;
        assert!(last > 1 && coarse[last] == coarse[last - 1] && inverse.len() == coarse[last].len().pow(2));
        assert_eq!(starts[last + 1], levels.scales.len());
        let level_of = |v: u32| starts.partition_point(|&start| start <= v as usize);
        assert!(down.iter().all(|[v, c]| level_of(*v) + 1 == level_of(*c)));
        assert!(across.iter().all(|[v, w]| level_of(*v) == last + 1 && level_of(*w) == last + 2));
        let solved = |c: u32| if level_of(c) == last + 1 { c + coarse[last].len() as u32 } else { c };
        assert!(down.iter().zip(&**up).all(|([v, c], up)| *up == [solved(*c), *v]));
        let on_mesh = || down.iter().filter(|[v, _]| (*v as usize) < points.len());
        assert!(on_mesh().count() > 0 && on_mesh().all(|[v, _]| points[*v as usize][2] > 1e-9));
        assert!(pairs.is_sorted_by(|a, b| a < b) && pairs.iter().all(|[a, b]| a < b && level_of(*a) == level_of(*b)));
    }

    #[test]
    fn a_vertex_of_a_high_degree_does_not_couple_all_that_it_touches() {
        let rim = 4000;
        let matrix = Matrix {
            pairs: (1..=rim).map(|v| [0, v]).chain((1..rim).map(|v| [v, v + 1])).collect(),
            blocks: vec![[[-1.0]]; 2 * rim as usize - 1],
            diagonal: std::iter::once([[f64::from(rim)]]).chain((0..rim).map(|_| [[3.0]])).collect(),
        };
        let points: Vec<_> = (0..=rim).map(|v| [f64::from(v), 0.0, 0.0]).collect();
        let levels = Multigrid::scalar(&matrix, &points, 2);
        assert!(levels.points.len() > 2 && levels.pairs.len() < 2 * matrix.pairs.len());
    }

    #[test]
    fn what_is_small_or_falls_apart_has_no_levels() {
        let apart = Matrix { pairs: Vec::new(), blocks: Vec::new(), diagonal: vec![[[4.0]]; 100] };
        let levels = Multigrid::scalar(&apart, &[[0.0; 3]; 100], 3);
        assert_eq!((levels.points.len(), levels.scales[99], levels.roots[99]), (0, [[0.5]], [[2.0]]));
        assert!(heat("sheet:3", 1, |_, _| false).1.points.is_empty());
    }
}
