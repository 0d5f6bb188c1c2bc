//! What this machine can do: bandwidth and random reads, on as many threads as a run has.
//!
//! - **Triad**, `a = b + s c` on 64-bit reals: STREAM (McCalpin 1995), counted as there at 24 bytes an element; a cache
//!   that fetches a line before it is overwritten moves a third more.
//! - **Read**: sums over one to eight streams side by side, the best of them. The roof of a sweep, which mostly reads.
//! - **Gather**: 32-bit reals read at random places of a table, as a sweep reads neighbors without any numbering.
//!
//! Every figure is the best of several passes, so that what else the machine does counts as little as it can. Arrays are
//! on huge pages where the system grants them.

use crate::cli::system::free_memory;
use anyhow::{Context, Result};
use bytemuck::Pod;
use memmap2::MmapMut;
use rayon::ThreadPool;
use rayon::prelude::*;
use serde::Serialize;
use std::hint::black_box;
use std::time::Instant;

/// What the probe found.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Threads that all figures are of together.
    pub threads: usize,
    /// What the triad moves, GB/s.
    pub triad_gb_per_s: f64,
    /// What the best read does, GB/s.
    pub read_gb_per_s: f64,
    /// Streams side by side of the best read.
    pub(super) read_streams: usize,
    /// Random reads, from a small table and from a large one.
    pub gathers: Vec<Gather>,
    /// Bytes of each of the three arrays of the triad.
    pub array_bytes: usize,
    /// Bytes of the last-level cache, if the system says.
    pub cache_bytes: Option<usize>,
    pub(super) probe_s: f64,
}

/// Random reads from a table of one size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Gather {
    /// Bytes of the table.
    pub table_bytes: usize,
    /// Reads of 32 bits a second.
    pub reads_per_s: f64,
}

/// How much the probe does.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of each of the three arrays of the triad.
    array: usize,
    /// Bytes of the tables of the gather.
    tables: [usize; 2],
    /// Random reads in a pass.
    reads: usize,
}

const MIB: usize = 1 << 20;
/// Passes, of which the best counts.
const PASSES: usize = 4;
/// Bytes that one pass of the read goes through at most: the whole probe is to take less than two seconds.
const READ: usize = 768 * MIB;

impl Sizes {
    /// Arrays of four times the last-level cache, which STREAM asks for, between 128 and 512 MiB: above, filling them
    /// would take longer than all measurements. All three together take at most a quarter of the free memory.
    pub fn of_this_machine() -> Sizes {
        let wanted = last_level_cache().map_or(128 * MIB, |bytes| 4 * bytes).clamp(128 * MIB, 512 * MIB);
        let allowed = free_memory().map_or(usize::MAX, |free| free.bytes / 4 / 3);
        // Full megabytes, so that arrays can be cut into anything.
        let array = (wanted.min(allowed) / MIB).max(1) * MIB;
        Sizes { array, tables: [16 * MIB, 256 * MIB], reads: 4 << 20 }
    }

    /// Arrays that say nothing of the machine, for tests.
    pub fn tiny() -> Sizes {
        Sizes { array: MIB, tables: [MIB / 16, MIB], reads: 1 << 14 }
    }
}

/// Measures this machine on `threads` threads. Takes one or two seconds.
///
/// # Errors
/// Threads or memory that the system does not grant.
pub fn probe(threads: usize, sizes: Sizes) -> Result<Machine> {
    let clock = Instant::now();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start the probe")?;
    let mut region = Region::new(3 * sizes.array)?;
    let triad_s = pool.install(|| triad(region.view(), threads));
    let lines: &[Line] = region.view();
    let lines = &lines[..lines.len().min(READ / size_of::<Line>())];
    let reads =
        pool.install(|| [(1, read::<1>(lines)), (2, read::<2>(lines)), (4, read::<4>(lines)), (8, read::<8>(lines))]);
    let (streams, read_s) = reads.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are four");
    let read_bytes = size_of_val(lines);
    let table: &[f32] = region.view();
    let gathers = sizes.tables.map(|bytes| {
        // A power of two, so that places are bits of a random number.
        let len = 1 << (bytes / 4).min(table.len()).ilog2();
        let s = gather(&pool, &table[..len], sizes.reads);
        Gather { table_bytes: 4 * len, reads_per_s: sizes.reads as f64 / s }
    });
    Ok(Machine {
        threads,
        triad_gb_per_s: 1e-9 * 3.0 * sizes.array as f64 / triad_s,
        read_gb_per_s: 1e-9 * read_bytes as f64 / read_s,
        read_streams: streams,
        gathers: gathers.to_vec(),
        array_bytes: sizes.array,
        cache_bytes: last_level_cache(),
        probe_s: clock.elapsed().as_secs_f64(),
    })
}

impl Machine {
    /// The better figure of each kind, of two probes on as many threads.
    pub fn or_better(mut self, other: &Machine) -> Machine {
        self.triad_gb_per_s = self.triad_gb_per_s.max(other.triad_gb_per_s);
        if other.read_gb_per_s > self.read_gb_per_s {
            (self.read_gb_per_s, self.read_streams) = (other.read_gb_per_s, other.read_streams);
        }
        for (gather, other) in self.gathers.iter_mut().zip(&other.gathers) {
            gather.reads_per_s = gather.reads_per_s.max(other.reads_per_s);
        }
        self
    }

    /// All figures in one line.
    pub(super) fn line(&self) -> String {
        let gather = |g: &Gather| format!("{:.0} M/s from {}", 1e-6 * g.reads_per_s, bytes(g.table_bytes));
        let gathers = self.gathers.iter().map(gather).collect::<Vec<_>>().join(", ");
        format!("triad {:.1} GB/s, read {:.1} GB/s, gather {gathers}", self.triad_gb_per_s, self.read_gb_per_s)
    }
}

/// Bytes a second, read in order by so many threads that each go through their part of some bytes again and again. Each size takes
/// some 20 ms. The best of one and four streams side by side.
///
/// # Errors
/// Threads or memory that the system does not grant.
pub(super) fn read_rates(threads: usize, sizes: &[usize]) -> Result<Vec<f64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("cannot start the probe")?;
    let mut region = Region::new(*sizes.iter().max().context("no size to read")?)?;
    region.view::<f64>().fill(1.0);
    let lines: &[Line] = region.view();
    let rate = |&bytes: &usize| {
        let lines = &lines[..bytes / size_of::<Line>()];
        let share = lines.len().div_ceil(threads);
        // As often as 2 ms hold at 30 GB/s, so that starting threads does not count; a debug build takes a hundred times as long.
        let work = if cfg!(debug_assertions) { MIB } else { 60 * MIB };
        let times = (work * threads / bytes).max(1);
        let pass = |sum: fn(&[Line]) -> f32| {
            let part = |part: &[Line]| (0..times).map(|_| sum(black_box(part))).sum::<f32>();
            pool.install(|| best(|| lines.par_chunks(share).map(part).sum::<f32>()))
        };
        (bytes * times) as f64 / f64::min(pass(sum::<1>), pass(sum::<4>))
    };
    Ok(sizes.iter().map(rate).collect())
}

/// Reals a second that one thread reads at random places of tables of some sizes, each a power of two.
///
/// # Errors
/// As [`read_rates`].
pub(super) fn gather_rates(sizes: &[usize]) -> Result<Vec<f64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().context("cannot start the probe")?;
    let mut region = Region::new(*sizes.iter().max().context("no size to read")?)?;
    region.view::<f32>().fill(1.0);
    let table: &[f32] = region.view();
    const READS: usize = 1 << 19;
    let rate = |&bytes: &usize| READS as f64 / gather(&pool, &table[..bytes / 4], READS);
    Ok(sizes.iter().map(rate).collect())
}

/// Reads so many bytes, so that caches hold nothing else.
pub(super) struct Flush(Region);

impl Flush {
    /// # Errors
    /// Memory that the system does not grant.
    pub(super) fn new() -> Result<Flush> {
        let cache = last_level_cache().unwrap_or(32 * MIB).clamp(16 * MIB, 256 * MIB);
        // A debug build is not judged by what it measures, and would take a second for each.
        let mut region = Region::new(if cfg!(debug_assertions) { MIB } else { 2 * cache })?;
        region.view::<f64>().fill(1.0);
        Ok(Flush(region))
    }

    pub(super) fn caches(&mut self) {
        black_box(sum::<4>(self.0.view()));
    }
}

/// Bytes in the unit that suits them: `16 MiB`.
pub fn bytes(n: usize) -> String {
    match n {
        n if n >= 1 << 30 => format!("{:.1} GiB", n as f64 / (1u64 << 30) as f64),
        n if n >= MIB => format!("{} MiB", n / MIB),
        n => format!("{} KiB", n / 1024),
    }
}

/// Zeroed memory that any plain numbers can be read from.
struct Region(MmapMut);

impl Region {
    fn new(bytes: usize) -> Result<Region> {
        let map = MmapMut::map_anon(bytes).with_context(|| format!("no {bytes} bytes of memory for the probe"))?;
        // A wish: without huge pages random reads are slower, and so are those of the run.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Region(map))
    }

    /// All of it. Maps begin at a page, so that every number is aligned.
    fn view<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Seconds of the best of several passes.
fn best<A>(mut pass: impl FnMut() -> A) -> f64 {
    let time = |_| {
        let clock = Instant::now();
        black_box(pass());
        clock.elapsed().as_secs_f64()
    };
    (0..PASSES).map(time).fold(f64::INFINITY, f64::min)
}

/// Fills the three thirds of `region`, then times `a = b + s c`.
fn triad(region: &mut [f64], threads: usize) -> f64 {
    let n = region.len() / 3;
    let share = n.div_ceil(threads);
    let (a, rest) = region.split_at_mut(n);
    let (b, c) = rest.split_at_mut(n);
    // Every thread touches first what it will read: there may be several memories. As 32-bit reals these numbers are
    // ordinary too; others could be subnormal, which some processors add slowly.
    for (array, value) in [(&mut *a, 1.0), (&mut *b, 2.0), (&mut *c, 0.5)] {
        array.par_chunks_mut(share).for_each(|part| part.fill(value));
    }
    let s = black_box(3.0);
    best(|| {
        let parts = a.par_chunks_mut(share).zip(b.par_chunks(share)).zip(c.par_chunks(share));
        parts.for_each(|((a, b), c)| {
            let (b, c) = (&b[..a.len()], &c[..a.len()]);
            for i in 0..a.len() {
                a[i] = b[i] + s * c[i];
            }
        });
    })
}

/// As many reals as the widest vector holds: a line of most caches.
type Line = [f32; 16];

/// Times the sum of all lines, read in `S` streams by each thread.
fn read<const S: usize>(lines: &[Line]) -> f64 {
    let share = lines.len().div_ceil(rayon::current_num_threads());
    best(|| lines.par_chunks(share).map(sum::<S>).sum::<f32>())
}

/// Plain loops: what an iterator calls may stand in another unit of the build, and would then be timed too.
fn sum<const S: usize>(lines: &[Line]) -> f32 {
    let len = lines.len() / S;
    let mut sums = [[0.0; 16]; S];
    for i in 0..len {
        for s in 0..S {
            // Copies, so that they are known not to overlap.
            let (mut sum, line) = (sums[s], lines[s * len + i]);
            for lane in 0..16 {
                sum[lane] += line[lane];
            }
            sums[s] = sum;
        }
    }
    sums.as_flattened().iter().sum()
}

/// Times `reads` random reads from `table`, whose length is a power of two. Places are read from a list, as those of
/// neighbors are.
fn gather(pool: &ThreadPool, table: &[f32], reads: usize) -> f64 {
    let mask = table.len() as u64 - 1;
    pool.install(|| {
        let places: Vec<u32> = (0..reads as u64).into_par_iter().map(|i| (scramble(i) & mask) as u32).collect();
        let share = reads.div_ceil(rayon::current_num_threads());
        best(|| places.par_chunks(share).map(|places| sum_at(table, places)).sum::<f32>())
    })
}

fn sum_at(table: &[f32], places: &[u32]) -> f32 {
    // Eight sums, so that no addition waits for the one before.
    let mut sums = [0.0; 8];
    let (eights, _) = places.as_chunks::<8>();
    for eight in eights {
        for lane in 0..8 {
            sums[lane] += table[eight[lane] as usize];
        }
    }
    sums.iter().sum()
}

/// A number without pattern for each `i`, the same on every machine: the finalizer of SplitMix64.
fn scramble(i: u64) -> u64 {
    let z = (i ^ i >> 30).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Bytes of the largest cache that Linux tells of.
pub(super) fn last_level_cache() -> Option<usize> {
    let folder = std::fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    folder.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("size")).ok().and_then(kibibytes)).max()
}

/// `32768K` in bytes.
fn kibibytes(text: String) -> Option<usize> {
    Some(text.trim().strip_suffix('K')?.parse::<usize>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_measures_what_it_says() {
        for threads in [1, 3] {
            let machine = probe(threads, Sizes::tiny()).unwrap();
            assert_eq!((machine.threads, machine.gathers.len()), (threads, 2));
            assert_eq!(machine.gathers[1].table_bytes, MIB);
            let rates = [machine.triad_gb_per_s, machine.read_gb_per_s, machine.gathers[0].reads_per_s];
            assert!(rates.iter().all(|&rate| rate.is_finite() && rate > 0.0), "{machine:?}");
        }
    }

    #[test]
    fn any_number_of_streams_reads_every_line_once() {
        let lines: Vec<Line> = (0..64).map(|i| [i as f32; 16]).collect();
        let all = 16.0 * (0..64).sum::<i32>() as f32;
        assert_eq!([sum::<1>(&lines), sum::<2>(&lines), sum::<4>(&lines), sum::<8>(&lines)], [all; 4]);
        assert_eq!(sum_at(&[1.0, 2.0], &[0, 1, 1, 0, 1, 1, 1, 1]), 14.0);
    }

    #[test]
    fn random_places_fill_the_table_evenly() {
        let mut counts = [0; 16];
        (0..16_000).for_each(|i| counts[(scramble(i) & 15) as usize] += 1);
        assert!(counts.iter().all(|&count| (900..1100).contains(&count)), "{counts:?}");
    }
}
