//! What tests of random graphs have in common.

use crate::{Backend, Simd};
use std::ops::Range;

/// The seeds of random graphs: `SEED` replays one, `MESHWEFT_GRAPHS` says how many.
pub(super) fn seeds(few: u64) -> Range<u64> {
    let of_environment = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match of_environment("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..of_environment("MESHWEFT_GRAPHS").unwrap_or(few),
    }
}

/// The oracle, and cores with several widths.
pub(super) fn engines() -> [(Backend, Simd); 5] {
    [
        (Backend::Serial, Simd::Off),
        (Backend::Cpu { threads: 1 }, Simd::Bits512),
        (Backend::Cpu { threads: 2 }, Simd::Bits256),
        (Backend::Cpu { threads: 3 }, Simd::Off),
        (Backend::Cpu { threads: 4 }, Simd::Bits512),
    ]
}

/// So many hosts that share a mesh.
#[cfg(feature = "cluster")]
pub(super) fn hosts(count: u32) -> Backend {
    Backend::Cluster(crate::Cluster::inside(count).unwrap().threads(1 + count as usize % 2))
}

/// Numbers that follow from a seed.
pub(super) fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    }
}
