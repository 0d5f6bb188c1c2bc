//! Sums whose terms are added by size, so that the order in which they come does not matter.
//!
//! Sorting a dozen terms branches at every comparison, and a processor guesses half of those wrong. Here the terms of eight sums
//! lie side by side, and a network sorts all eight at once without a branch, in wide registers.

/// Sums added up side by side.
const LANES: usize = 8;
/// Terms of a sum that the networks sort: sums of more are sorted one by one.
const MOST: usize = 32;

/// The sums of few numbers, in the order in which they are asked for.
pub(crate) struct Adder {
    /// Term `k` of the sums that wait, as [`ordered`] numbers.
    terms: [[u64; LANES]; MOST],
    lengths: [u64; LANES],
    waiting: usize,
    long: Vec<u64>,
    sums: Vec<f64>,
}

impl Adder {
    pub(crate) fn new() -> Adder {
        Adder { terms: [[0; LANES]; MOST], lengths: [0; LANES], waiting: 0, long: Vec::new(), sums: Vec::new() }
    }

    /// Asks for the sum of the first `len` of [`ordered`] terms, in the order of [`f64::total_cmp`]; -0.0 for none.
    #[inline(always)]
    pub(crate) fn add(&mut self, terms: &[u64], len: usize) {
        if len > MOST {
            self.finish();
            self.long.clear();
            self.long.extend_from_slice(&terms[..len]);
            self.long.sort_unstable();
            return self.sums.push(self.long.iter().fold(-0.0, |sum, &term| sum + unordered(term)));
        }
        // Of a short list with room behind its end all are copied: a copy without a loop is quicker.
        terms.iter().zip(&mut self.terms).for_each(|(&term, row)| row[self.waiting] = term);
        self.lengths[self.waiting] = len as u64;
        self.waiting += 1;
        if self.waiting == LANES {
            self.finish();
        }
    }

    /// The sums since the last call.
    pub(crate) fn take(&mut self) -> Vec<f64> {
        self.finish();
        self.sums.drain(..).collect() // with no room to spare: callers keep it
    }

    /// Adds up those that wait.
    fn finish(&mut self) {
        let lengths = self.lengths;
        let longest = lengths[..self.waiting].iter().copied().max().unwrap_or(0);
        match longest {
            0..=8 => self.add_up(&NETWORK_8, longest),
            9..=16 => self.add_up(&NETWORK_16, longest),
            _ => self.add_up(&NETWORK_32, longest),
        }
        self.waiting = 0;
    }

    /// The same with a network for as many terms as the longest of them has, or more.
    fn add_up<const M: usize>(&mut self, network: &Network<M>, longest: u64) {
        let lengths = self.lengths;
        for (k, row) in (0..network.size as u64).zip(&mut self.terms) {
            *row = std::array::from_fn(|lane| row[lane] | all_ones_if(k >= lengths[lane]));
        }
        for pair in &network.pairs {
            let [a, b] = pair.map(|row| row as usize % MOST);
            let (low, high) = (self.terms[a], self.terms[b]);
            // What differs, where the two are to be exchanged: of `min` and `max` the compiler makes no wide registers.
            let change: [u64; LANES] =
                std::array::from_fn(|lane| (low[lane] ^ high[lane]) & all_ones_if(high[lane] < low[lane]));
            self.terms[a] = std::array::from_fn(|lane| low[lane] ^ change[lane]);
            self.terms[b] = std::array::from_fn(|lane| high[lane] ^ change[lane]);
        }
        let mut sums = [-0.0; LANES];
        for (k, row) in (0..longest).zip(&self.terms) {
            // A negative zero changes no sum.
            let term = |lane: usize| if k < lengths[lane] { unordered(row[lane]) } else { -0.0 };
            sums = std::array::from_fn(|lane| sums[lane] + term(lane));
        }
        self.sums.extend_from_slice(&sums[..self.waiting]);
    }
}

#[inline(always)]
fn all_ones_if(condition: bool) -> u64 {
    0u64.wrapping_sub(u64::from(condition))
}

/// Which pairs of rows to put into order, one after the other, so that all are.
struct Network<const M: usize> {
    size: usize,
    pairs: [[u8; 2]; M],
}

static NETWORK_8: Network<19> = Network::of(8);
static NETWORK_16: Network<63> = Network::of(16);
static NETWORK_32: Network<191> = Network::of(32);

impl<const M: usize> Network<M> {
    /// Batcher's odd-even merge sort of `size` rows, a power of two: K. Batcher, "Sorting networks and their applications", 1968.
    const fn of(size: usize) -> Network<M> {
        let (mut pairs, mut count) = ([[0; 2]; M], 0);
        let mut sorted = 1; // runs of so many are
        while sorted < size {
            let mut reach = sorted;
            while reach > 0 {
                let mut low = 0;
                while low + reach < size {
                    // Stretches of `reach` rows are compared with the next, in one pair of runs.
                    let is_first = low >= reach % sorted && (low - reach % sorted) % (2 * reach) < reach;
                    if is_first && low / (2 * sorted) == (low + reach) / (2 * sorted) {
                        pairs[count] = [low as u8, (low + reach) as u8];
                        count += 1;
                    }
                    low += 1;
                }
                reach /= 2;
            }
            sorted *= 2;
        }
        assert!(count == M, "a network has all its pairs");
        Network { size, pairs }
    }
}

/// An integer for a float, in the order of [`f64::total_cmp`]: integers are sorted without branches.
#[inline(always)]
pub(crate) fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    bits ^ ((bits as i64 >> 63) as u64 | 1 << 63)
}

/// The float of [`ordered`].
#[inline(always)]
pub(crate) fn unordered(bits: u64) -> f64 {
    f64::from_bits(bits ^ (!(bits as i64 >> 63) as u64 | 1 << 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_in_the_order_of_their_floats() {
        let floats = [-f64::INFINITY, -2.0, -1e-310, -0.0, 0.0, 5e-324, 1.0, f64::MAX, f64::INFINITY];
        assert!(floats.map(ordered).is_sorted());
        assert_eq!(floats.map(|x| unordered(ordered(x)).to_bits()), floats.map(f64::to_bits));
    }

    /// The largest of all [`ordered`] numbers, which stands for no term elsewhere.
    const LAST: f64 = f64::from_bits(u64::MAX >> 1);

    #[test]
    fn sums_of_any_lengths_equal_their_definition() {
        let mixed = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let number = |i: usize| match mixed(i) >> 58 {
            0 => 0.0,
            1 => -0.0,
            _ => (mixed(i) as i64 >> 11) as f64 * 0.5f64.powi((mixed(i + 7) >> 58) as i32),
        };
        let mut adder = Adder::new();
        let (mut expected, mut at) = (Vec::new(), 0);
        // All lengths, alone and in turn with others.
        for len in (0..70).chain((0..300).map(|i| (mixed(i) >> 59) as usize)).chain([1, 33, 2]) {
            let mut terms: Vec<f64> = (at..at + len).map(number).collect();
            at += len;
            if len == 5 {
                terms[2] = LAST;
            }
            let mut keys: Vec<u64> = terms.iter().copied().map(ordered).collect();
            keys.extend([7; 3]); // what lies behind the end is nothing
            adder.add(&keys, len);
            terms.sort_by(f64::total_cmp);
            expected.push(terms.iter().fold(-0.0, |sum, term| sum + term));
        }
        let sums = adder.take();
        assert_eq!(sums.len(), expected.len());
        for (sum, expected) in sums.iter().zip(expected) {
            assert!(sum.to_bits() == expected.to_bits() || sum.is_nan() && expected.is_nan(), "{sum} and {expected}");
        }
        assert!(adder.take().is_empty());
    }
}
