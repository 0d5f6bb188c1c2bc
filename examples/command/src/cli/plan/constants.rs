//! The machine's constants.

use crate::cli::probe::{gather_rates, read_rates};
use crate::cli::system::free_memory;
use anyhow::Result;
use meshweft::model::{Machine, Rate};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Bytes that are read in order, from what a core's second-level cache holds to what no cache holds.
const READS: [usize; 8] = [512 * KIB, 2 * MIB, 8 * MIB, 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 256 * MIB];
/// Bytes of tables that are read at random.
const GATHERS: [usize; 7] = [16 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB];

/// Measures this machine on one thread and on `threads`. Takes about a second.
///
/// # Errors
/// Threads or memory that the system does not grant.
pub(super) fn measure(threads: usize) -> Result<Machine> {
    let free = free_memory().map_or(usize::MAX, |free| free.bytes);
    // A debug build would take a minute, and what it found would say nothing of the machine.
    let most = if cfg!(debug_assertions) { 2 * MIB } else { free / 4 };
    let fits = |sizes: &[usize]| -> Vec<usize> {
        // The smallest in any case: without one nothing can be said.
        sizes.iter().enumerate().filter(|&(i, &bytes)| i == 0 || bytes <= most).map(|(_, &bytes)| bytes).collect()
    };
    let (sizes, tables) = (fits(&READS), fits(&GATHERS));
    let counts = if threads > 1 { vec![1, threads] } else { vec![1] };
    let mut reads = Vec::new();
    for threads in counts {
        let rates = read_rates(threads, &sizes)?;
        reads.extend(sizes.iter().zip(rates).map(|(&bytes, per_s)| Rate { threads, bytes: bytes as f64, per_s }));
    }
    let rates = gather_rates(&tables)?;
    let gathers = tables.iter().zip(rates).map(|(&bytes, per_s)| Rate { threads: 1, bytes: bytes as f64, per_s });
    Ok(Machine { threads, reads, gathers: gathers.collect() })
}
