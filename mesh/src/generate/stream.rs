//! Random numbers that are a function of seed and index.

/// Numbers of SplitMix64, reached by index instead of one after the other.
///
/// The generator adds a constant to its state and mixes the state, so its output number `i` is a hash of `i`: it
/// does not depend on the order of calls or on the thread. Source: G. L. Steele, D. Lea and C. H. Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014.
#[derive(Clone, Copy)]
pub(super) struct Stream(u64);

/// 2^64 divided by the golden ratio, made odd: the step of the state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream of a seed. The seed is mixed, so that neighboring seeds start far apart.
    pub(super) fn new(seed: u64) -> Stream {
        Stream(mix(seed.wrapping_add(STEP)))
    }

    /// Number `index`, 64 bits.
    pub(super) fn bits(self, index: u64) -> u64 {
        mix(self.0.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// Number `index`, uniform in [0, 1): the upper 53 bits, since a double holds no more.
    pub(super) fn unit(self, index: u64) -> f64 {
        (self.bits(index) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A point uniform in the unit cube.
    pub(super) fn in_cube(self, index: u64) -> [f64; 3] {
        [0, 1, 2].map(|axis| self.unit(3 * index + axis))
    }

    /// A point uniform in the ball of radius 1: the first point of a row in the cube around it that is inside. `index`
    /// is below 2^32.
    pub(super) fn in_ball(self, index: u64) -> [f64; 3] {
        let mut trial = index;
        loop {
            let p = self.in_cube(trial).map(|x| 2.0 * x - 1.0);
            if p[0] * p[0] + p[1] * p[1] + p[2] * p[2] <= 1.0 {
                return p;
            }
            trial += 1 << 32; // a point that no other index tries
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_as_published() {
        // First outputs of SplitMix64 for the state 1234567, as the reference C code by S. Vigna prints them.
        let state = |i: u64| 1_234_567u64.wrapping_add(STEP.wrapping_mul(i));
        assert_eq!(
            [1, 2, 3].map(|i| mix(state(i))),
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn is_uniform() {
        let n = 100_000;
        let stream = Stream::new(3);
        let mean = (0..n).map(|i| stream.unit(i)).sum::<f64>() / n as f64;
        // The standard error is 1 / sqrt(12 n) = 0.0009; the stream is fixed, so this never fails by chance.
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        let square = (0..n).map(|i| stream.in_ball(i).iter().map(|x| x * x).sum::<f64>()).sum::<f64>() / n as f64;
        assert!((square - 0.6).abs() < 0.004, "{square}"); // 3/5 of the squared radius
    }
}
