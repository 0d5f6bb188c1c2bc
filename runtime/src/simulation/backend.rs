//! What updates vertices.

use crate::error::{Error, Result};
use crate::number::{Lanes, Number, Widest};
use meshweft_schedule::Order;

/// Where updates run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The oracle: one thread, one vertex after the other.
    Serial,
    /// The cores of this machine; 0 threads take one a core.
    Cpu {
        /// Number of threads.
        threads: usize,
    },
    /// A GPU, in 32 bits. Its results are those of the oracle within a bound, and the same on every run of one device
    /// and driver (claim C6).
    Gpu {
        /// Which of [`adapters`](crate::adapters).
        adapter: usize,
    },
    /// Several hosts: their cores, with the bits of one (claim C3), or GPUs of theirs.
    #[cfg(feature = "cluster")]
    Cluster(crate::Cluster),
}

impl Backend {
    /// The order that is taken where none is named: [`Order::BLOCKED`] for the caches of cores, [`Order::COLOR`] on a GPU, where
    /// it was 2 to 8 times as fast (docs/perf/gpu.md).
    ///
    /// ```
    /// use meshweft::{Backend, Order};
    /// assert_eq!(Backend::default().order(), Order::BLOCKED);
    /// assert_eq!(Backend::Gpu { adapter: 0 }.order(), Order::COLOR);
    /// ```
    pub fn order(&self) -> Order {
        if self.has_gpus() { Order::COLOR } else { Order::BLOCKED }
    }

    /// Whether some updates run on a GPU: results are then those of the oracle within a bound.
    ///
    /// ```
    /// use meshweft::Backend;
    /// assert!(Backend::Gpu { adapter: 0 }.has_gpus() && !Backend::default().has_gpus());
    /// ```
    pub fn has_gpus(&self) -> bool {
        match self {
            Backend::Gpu { .. } => true,
            #[cfg(feature = "cluster")]
            Backend::Cluster(cluster) => cluster.has_gpus(),
            _ => false,
        }
    }

    /// Whether it looks for what a relaxation changes, vertex by vertex.
    pub(super) fn searches(&self) -> bool {
        match self {
            Backend::Cpu { .. } => true,
            #[cfg(feature = "cluster")]
            Backend::Cluster(cluster) => cluster.is_grid(),
            _ => false,
        }
    }

    /// Vertices a block of [`Order::BLOCKED`], whose size is open: a power of two, about a 128th of the mesh, from 512 to
    /// 4096 on cores and from 64 to 512 on a GPU.
    ///
    /// It depends on nothing else, because another size is another order and so other bits. 4096 vertices with their edges are
    /// about the size of a core's second-level cache; small meshes take smaller blocks so that threads find work, but not so
    /// small that copies of neighbors and lanes left over cost more than a second thread brings. A GPU has a hundred processors,
    /// each of which wants several blocks at a time and holds them in a few kilobytes.
    ///
    /// ```
    /// use meshweft::Backend;
    /// let sizes = |backend: Backend| [1_000, 50_000, 2_000_000].map(|vertices| backend.grain(vertices));
    /// assert_eq!(sizes(Backend::Cpu { threads: 0 }), [512, 512, 4096]);
    /// assert_eq!(sizes(Backend::Gpu { adapter: 0 }), [64, 512, 512]);
    /// ```
    pub fn grain(&self, vertices: usize) -> u32 {
        let (least, most) = if self.has_gpus() { (64, 512) } else { (512, 4096) };
        (vertices / 128).next_power_of_two().clamp(least, most) as u32
    }
}

impl Default for Backend {
    fn default() -> Backend {
        Backend::Cpu { threads: 0 }
    }
}

/// How many vertices a core updates side by side. Results do not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Simd {
    /// The widest registers that the program was compiled for.
    #[default]
    Auto,
    /// One vertex after the other.
    Off,
    /// Eight vertices in 32 bits, four in 64.
    Bits256,
    /// Sixteen vertices in 32 bits, eight in 64.
    Bits512,
}

impl Simd {
    /// Those that kernels of this build are compiled for: the widest registers of the processor that it is for, and none; all with
    /// the feature `all-widths`.
    ///
    /// ```
    /// use meshweft::Simd;
    /// assert!(Simd::built().contains(&Simd::Auto) && Simd::built().contains(&Simd::Off));
    /// ```
    pub fn built() -> &'static [Simd] {
        match (cfg!(any(test, feature = "all-widths")), cfg!(target_feature = "avx512f")) {
            (true, _) => &[Simd::Auto, Simd::Off, Simd::Bits256, Simd::Bits512],
            (false, true) => &[Simd::Auto, Simd::Off, Simd::Bits512],
            (false, false) => &[Simd::Auto, Simd::Off, Simd::Bits256],
        }
    }

    /// What this build loses on the processor at hand, and the way out; none if it uses the widest registers that there are.
    ///
    /// ```
    /// // Of a binary that was built with `-C target-cpu=native` where it runs there is nothing to say.
    /// assert!(meshweft::Simd::advice().is_none_or(|advice| advice.contains("target-cpu=native")));
    /// ```
    pub fn advice() -> Option<String> {
        #[cfg(target_arch = "x86_64")]
        let has = match (std::is_x86_feature_detected!("avx512f"), std::is_x86_feature_detected!("avx2")) {
            (true, _) => 512,
            (false, true) => 256,
            _ => 128,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let has = 128;
        let built = match (cfg!(target_feature = "avx512f"), cfg!(target_feature = "avx2")) {
            (true, _) => 512,
            (false, true) => 256,
            _ => 128,
        };
        (built < has).then(|| {
            format!(
                "built for registers of {built} bits, but this processor has {has}: kernels take up to three times as long as with \
                 `-C target-cpu=native` in RUSTFLAGS or .cargo/config.toml"
            )
        })
    }

    /// Vertices side by side.
    ///
    /// # Errors
    /// Kernels of this build are compiled for another number.
    pub(super) fn width<T: Number>(self) -> Result<usize> {
        if !Simd::built().contains(&self) {
            return Err(Error::Invalid(format!(
                "this build has kernels for registers of {} bits alone: build it with the feature `all-widths`",
                if cfg!(target_feature = "avx512f") { 512 } else { 256 }
            )));
        }
        Ok(match self {
            Simd::Off => 1,
            Simd::Bits256 => T::Half::WIDTH,
            Simd::Bits512 => T::Full::WIDTH,
            Simd::Auto => Widest::<T>::WIDTH,
        })
    }
}
