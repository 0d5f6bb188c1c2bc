//! Numbers from a counter: the same for the same question, whoever asks first.

/// A hash of a seed and an index: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub fn hash(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A number from 0 to below 1.
pub fn unit(seed: u64, index: u64) -> f64 {
    (hash(seed, index) >> 11) as f64 / (1u64 << 53) as f64
}

/// A permutation of `0..n`.
pub fn shuffled(seed: u64, n: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&v| hash(seed, u64::from(v)));
    order
}
