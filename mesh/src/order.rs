//! Permutations, and the space-filling curves that number vertices by place.

use crate::error::{Error, Result};
use crate::parallel;
use crate::sort::{scatter, sort_bucket, sort_into};
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::Ordering;

/// A permutation of `n` elements, kept in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    order: Vec<u32>,
    rank: Vec<u32>,
}

impl Permutation {
    /// The permutation that puts `order[i]` at place `i`.
    ///
    /// # Errors
    /// If `order` does not hold each of `0..n` once.
    pub fn from_order(order: Vec<u32>) -> Result<Permutation> {
        let mut rank = vec![u32::MAX; order.len()];
        for (place, &v) in order.iter().enumerate() {
            match rank.get_mut(v as usize) {
                Some(slot) if *slot == u32::MAX => *slot = place as u32,
                _ => return Err(Error::Invalid(format!("place {place} holds {v}, which is repeated or out of range"))),
            }
        }
        Ok(Permutation { order, rank })
    }

    /// The permutation that changes nothing.
    pub fn identity(n: usize) -> Permutation {
        let order: Vec<u32> = (0..n as u32).collect();
        Permutation { rank: order.clone(), order }
    }

    /// Sorts `0..n` by `key`, ties by id.
    pub fn sorted_by_key<K: Ord + Send>(n: usize, key: impl Fn(u32) -> K + Sync) -> Permutation {
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.par_sort_unstable_by_key(|&v| (key(v), v));
        Permutation { rank: inverse(&order), order }
    }

    /// Sorts `0..n` by a number, ties by id: the same as [`Permutation::sorted_by_key`], but several times as fast.
    ///
    /// `number` is called three times for each id. Cost O(n) where the numbers are spread evenly between the least and
    /// the greatest, O(n log n) otherwise; in parallel. Memory: 16 bytes an id beside the result.
    ///
    /// ```
    /// use meshweft_mesh::Permutation;
    /// let by_color = Permutation::sorted_by_number(4, |v| u64::from(v % 2));
    /// assert_eq!(by_color.order(), [0, 2, 1, 3]);
    /// ```
    pub fn sorted_by_number(n: usize, number: impl Fn(u32) -> u64 + Sync) -> Permutation {
        let item = |v: usize| (number(v as u32), v as u32);
        let order = sort_into(
            n,
            item,
            |item| item.0,
            |bucket, order| {
                sort_bucket(bucket);
                order.iter_mut().zip(bucket).for_each(|(slot, item)| *slot = item.1);
            },
        );
        Permutation { rank: inverse(&order), order }
    }

    /// Sorts vertices by how many edges they have, most first, ties by id. `degrees`: shape `[n]`.
    ///
    /// Cost that of [`Permutation::sorted_by_number`].
    ///
    /// ```
    /// use meshweft_mesh::Permutation;
    /// assert_eq!(Permutation::by_degree(&[1, 3, 0, 3]).order(), [1, 3, 0, 2]);
    /// ```
    pub fn by_degree(degrees: &[u32]) -> Permutation {
        let most = u64::from(degrees.iter().copied().max().unwrap_or(0));
        Permutation::sorted_by_number(degrees.len(), |v| most - u64::from(degrees[v as usize]))
    }

    /// First `self`, then `next`: place `i` of the result holds `self.order()[next.order()[i]]`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn then(&self, next: &Permutation) -> Permutation {
        assert_eq!(self.len(), next.len(), "permutations of the same length");
        let order = parallel::collect(next.len(), |i| self.order[next.order[i] as usize]);
        let rank = parallel::collect(self.len(), |v| next.rank[self.rank[v] as usize]);
        Permutation { order, rank }
    }

    /// Old ids by new place, shape `[n]`.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// New places by old id, shape `[n]`.
    pub fn rank(&self) -> &[u32] {
        &self.rank
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether nothing is renamed.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

/// A space-filling curve through the bounding box of the points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Curve {
    /// Z-order: the bits of the coordinates interleaved (Morton 1966).
    #[default]
    Morton,
    /// Hilbert's curve: no long jumps, so consecutive runs are more compact (Skilling 2004).
    Hilbert,
    /// No curve at all: sorted by a hash of the coordinates. The control experiment, which shows what a curve is worth.
    Random,
    /// No curve either: vertices with the most edges first ([`Permutation::by_degree`]). For graphs that have no place in space,
    /// a few of whose vertices have most of the edges: what is read most often then lies together.
    Degree,
}

impl Curve {
    /// All curves.
    pub const ALL: [Curve; 4] = [Curve::Morton, Curve::Hilbert, Curve::Random, Curve::Degree];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Curve::Morton => "morton",
            Curve::Hilbert => "hilbert",
            Curve::Random => "random",
            Curve::Degree => "degree",
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Curve {
    type Err = Error;
    fn from_str(name: &str) -> Result<Curve> {
        match name.to_ascii_lowercase().as_str() {
            "morton" | "z" => Ok(Curve::Morton),
            "hilbert" => Ok(Curve::Hilbert),
            "random" => Ok(Curve::Random),
            "degree" => Ok(Curve::Degree),
            _ => {
                let names = Curve::ALL.map(Curve::name).join(", ");
                Err(Error::Invalid(format!("unknown curve {name:?}: one of {names}")))
            }
        }
    }
}

/// Bits of a curve number per axis: 3 × 21 fit in 64.
const BITS: u32 = 21;

impl Curve {
    /// Numbers the points along the curve: sorted by curve number, then by coordinates, then by id. [`Curve::Degree`] has nothing to do
    /// with places: it keeps the order of ids here.
    ///
    /// `points`: shape `[n × 3]`, finite. The curve fills the cube over the largest side of the bounding box, 2^21 cells a
    /// side. Because ties are broken by coordinates first, renaming distinct points never changes their places.
    /// Cost that of [`Permutation::sorted_by_number`].
    ///
    /// ```
    /// use meshweft_mesh::Curve;
    /// let square = [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]];
    /// assert_eq!(Curve::Morton.order(&square).order(), [1, 3, 2, 0]);
    /// assert_eq!(Curve::Hilbert.order(&square).len(), 4);
    /// ```
    pub fn order(self, points: &[[f64; 3]]) -> Permutation {
        if self == Curve::Degree {
            return Permutation::identity(points.len());
        }
        let numbers = self.numbers(points);
        // Adding zero turns -0.0 into 0.0, so that equal coordinates compare equal.
        let place = |v: u32| points[v as usize].map(|x| OrderedF64(x + 0.0));
        let item = |v: usize| (numbers[v], v as u32);
        let order = sort_into(
            points.len(),
            item,
            |item| item.0,
            |bucket, order| {
                sort_bucket(bucket);
                for ties in bucket.chunk_by_mut(|a, b| a.0 == b.0).filter(|ties| ties.len() > 1) {
                    ties.par_sort_unstable_by(|&(_, a), &(_, b)| place(a).cmp(&place(b)).then(a.cmp(&b)));
                }
                order.iter_mut().zip(bucket).for_each(|(slot, item)| *slot = item.1);
            },
        );
        Permutation { rank: inverse(&order), order }
    }

    /// The curve number of each point, shape `[n]`.
    pub fn numbers(self, points: &[[f64; 3]]) -> Vec<u64> {
        // Halved before subtracting: the extent of finite points can exceed the largest float.
        let wider = |(low, high): ([f64; 3], [f64; 3]), (a, b): ([f64; 3], [f64; 3])| {
            (std::array::from_fn(|k| low[k].min(a[k])), std::array::from_fn(|k| high[k].max(b[k])))
        };
        let none = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        let parts = parallel::map(points.chunks(PIECE), |points| points.iter().map(|p| (*p, *p)).fold(none, wider));
        let (low, high) = parts.into_iter().fold(none, wider);
        let extent = (0..3).map(|k| high[k] * 0.5 - low[k] * 0.5).fold(0.0, f64::max);
        let cells = f64::from((1u32 << BITS) - 1);
        let quantize = |x: f64, low: f64| {
            let t = (x * 0.5 - low * 0.5) / extent; // NaN when all points coincide: cast to 0
            (t * cells) as u32
        };
        parallel::collect(points.len(), |v| {
            let p = &points[v];
            let cell = || std::array::from_fn(|k| quantize(p[k], low[k]));
            match self {
                Curve::Morton => interleave(cell()),
                Curve::Hilbert => interleave_transposed(hilbert_transpose(cell())),
                // Both zeros are one place, as in `order`.
                Curve::Degree => 0,
                Curve::Random => p.iter().fold(0, |hash, x| mix(hash ^ (x + 0.0).to_bits())),
            }
        })
    }
}

/// Vertices that are worth a task.
const PIECE: usize = 1 << 14;

/// The place of each id in an order that holds each once.
fn inverse(order: &[u32]) -> Vec<u32> {
    scatter(order.len(), |rank| {
        parallel::each((0..).step_by(PIECE).zip(order.chunks(PIECE)), |(first, order)| {
            (first..).zip(order).for_each(|(place, &v)| rank[v as usize].store(place, Ordering::Relaxed));
        });
    })
}

#[derive(PartialEq)]
struct OrderedF64(f64);
impl Eq for OrderedF64 {}
impl PartialOrd for OrderedF64 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for OrderedF64 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Bit `b` of axis `k` goes to bit `3 b + k`.
fn interleave([x, y, z]: [u32; 3]) -> u64 {
    spread(x) | spread(y) << 1 | spread(z) << 2
}

/// Spreads the lower 21 bits three apart, halving the group size in each line.
fn spread(x: u32) -> u64 {
    let mut x = u64::from(x) & 0x1f_ffff;
    x = (x | x << 32) & 0x1f_0000_0000_ffff;
    x = (x | x << 16) & 0x1f_0000_ff00_00ff;
    x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}

/// In the transposed form of a Hilbert number the first axis holds the highest bit of each triple.
fn interleave_transposed([x, y, z]: [u32; 3]) -> u64 {
    interleave([z, y, x])
}

/// Cell coordinates to the transposed Hilbert number: J. Skilling, "Programming the Hilbert curve", 2004.
fn hilbert_transpose(mut x: [u32; 3]) -> [u32; 3] {
    let highest = 1u32 << (BITS - 1);
    let mut q = highest;
    while q > 1 {
        let low = q - 1;
        for i in 0..3 {
            if x[i] & q != 0 {
                x[0] ^= low;
            } else {
                let t = (x[0] ^ x[i]) & low;
                x[0] ^= t;
                x[i] ^= t;
            }
        }
        q >>= 1;
    }
    x[1] ^= x[0];
    x[2] ^= x[1];
    let mut t = 0;
    let mut q = highest;
    while q > 1 {
        if x[2] & q != 0 {
            t ^= q - 1;
        }
        q >>= 1;
    }
    x.map(|a| a ^ t)
}

/// SplitMix64's step and finalizer: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
fn mix(x: u64) -> u64 {
    let z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(n: u32) -> Vec<[f64; 3]> {
        (0..n * n * n).map(|i| [i % n, i / n % n, i / n / n].map(f64::from)).collect()
    }

    /// The definition of [`Curve::order`].
    fn sorted(curve: Curve, points: &[[f64; 3]]) -> Vec<u32> {
        let numbers = curve.numbers(points);
        let place = |v: u32| points[v as usize].map(|x| OrderedF64(x + 0.0));
        let mut order: Vec<u32> = (0..points.len() as u32).collect();
        order.sort_by(|&a, &b| {
            numbers[a as usize].cmp(&numbers[b as usize]).then_with(|| place(a).cmp(&place(b))).then(a.cmp(&b))
        });
        order
    }

    #[test]
    fn orders_equal_the_plain_sort() {
        let random = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 8);
        let scattered = |n: u32, scale: f64| -> Vec<[f64; 3]> {
            (0..n).map(|i| [3 * i, 3 * i + 1, 3 * i + 2].map(|k| (random(k) * scale).floor())).collect()
        };
        // Integers of few values make coincident points; a far point puts all others into few cells.
        let mut far = scattered(5000, 1e-3);
        far.push([1e12, -1e12, 0.0]);
        for points in [grid(20), scattered(40_000, 1.0), scattered(40_000, 1e-6), far] {
            for curve in [Curve::Morton, Curve::Hilbert] {
                let order = curve.order(&points);
                assert_eq!(order.order(), sorted(curve, &points));
                assert_eq!(Permutation::from_order(order.order().to_vec()).unwrap(), order);
            }
        }
    }

    #[test]
    fn sorting_by_numbers_equals_sorting_by_keys() {
        for n in [0, 1, 10, 70_000] {
            let numbers: [fn(u32) -> u64; 3] =
                [|v| u64::from(v % 13), |v| u64::from(v.wrapping_mul(2_654_435_761)) << 31, |_| u64::MAX];
            for number in numbers {
                assert_eq!(Permutation::sorted_by_number(n, number), Permutation::sorted_by_key(n, number));
            }
        }
    }

    #[test]
    fn spread_equals_the_bit_loop() {
        for x in [0, 1, 2, 0x15_5555, 0x1f_ffff, 0x12_3456] {
            let slow = (0..21).fold(0u64, |m, bit| m | u64::from(x >> bit & 1) << (3 * bit));
            assert_eq!(spread(x), slow);
        }
    }

    #[test]
    fn hilbert_steps_to_a_touching_cell_every_time() {
        let points = grid(8);
        let order = Curve::Hilbert.order(&points);
        for pair in order.order().windows(2) {
            let [a, b] = [points[pair[0] as usize], points[pair[1] as usize]];
            let step: f64 = (0..3).map(|k| (a[k] - b[k]).abs()).sum();
            assert_eq!(step, 1.0, "{a:?} to {b:?}");
        }
    }

    #[test]
    fn a_random_numbering_scatters_neighbors_over_all_places() {
        let points = grid(8);
        let order = Curve::Random.order(&points);
        // Of two places drawn at random from n, the distance is n / 3 in the mean; 511 pairs come close.
        let reach: usize = order.rank().windows(2).map(|pair| pair[0].abs_diff(pair[1]) as usize).sum();
        let mean = reach as f64 / 511.0;
        assert!((512.0 / 3.0 - mean).abs() < 20.0, "{mean}");
    }

    #[test]
    fn names_of_curves_read_back() {
        for curve in Curve::ALL {
            assert_eq!(curve.to_string().parse::<Curve>().unwrap(), curve);
        }
        let error = "peano".parse::<Curve>().unwrap_err().to_string();
        assert!(error.contains("one of morton, hilbert, random"), "{error}");
    }

    #[test]
    fn coincident_flat_single_and_no_points_have_an_order() {
        for points in [vec![], vec![[3.0; 3]], vec![[1.0; 3]; 9], (0..9).map(|i| [f64::from(i), 0.0, 0.0]).collect()] {
            for curve in Curve::ALL {
                let order = curve.order(&points);
                assert_eq!(Permutation::from_order(order.order().to_vec()).unwrap(), order);
            }
        }
    }

    #[test]
    fn extremes_of_the_float_range_do_not_overflow() {
        let points = [[f64::MAX, 0.0, 0.0], [f64::MIN, 0.0, 0.0], [0.0; 3]];
        assert_eq!(Curve::Morton.order(&points).order(), [1, 2, 0]);
    }

    #[test]
    fn renaming_points_keeps_their_places() {
        let mut points = grid(4);
        points.push([-0.0, 0.5, 0.0]);
        points.push([0.0, 0.25, 0.0]);
        for curve in [Curve::Morton, Curve::Hilbert, Curve::Random] {
            let places: Vec<_> = curve.order(&points).order().iter().map(|&v| points[v as usize]).collect();
            let mut renamed = points.clone();
            renamed.reverse();
            let again: Vec<_> = curve.order(&renamed).order().iter().map(|&v| renamed[v as usize]).collect();
            assert_eq!(places, again);
        }
    }

    #[test]
    fn orders_that_repeat_or_skip_are_refused() {
        assert!(Permutation::from_order(vec![0, 2]).is_err());
        assert!(Permutation::from_order(vec![1, 1]).is_err());
    }
}
