//! The threads of this machine.

use super::cells::Cells;
use super::{Engine, Job, all_finite, reduce, tasks};
use crate::error::{Error, Result};
use crate::layout::{Row, shared_stride};
use crate::program::{Float, Kernel, Map, Program, Record, Reduce, SharedOf};
use crate::schedule::Plan;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Vertices that a thread takes at a time from a phase. Results do not depend on it.
const CHUNK: usize = 1024;

/// Walks schedules on a pool of threads of its own.
pub(crate) struct Cpu {
    pool: ThreadPool,
}

impl Cpu {
    /// A pool of `threads`; 0 takes one for each core.
    pub(crate) fn new(threads: usize) -> Result<Cpu> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("meshweft-{i}"))
            .build()
            .map_err(|e| Error::Invalid(format!("cannot start {threads} threads: {e}")))?;
        Ok(Cpu { pool })
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` on `range` cut into chunks; a short range stays on the calling thread.
    fn chunks(&self, range: Range<usize>, work: impl Fn(Range<usize>) + Sync) {
        if range.len() <= CHUNK || self.threads() == 1 {
            return work(range);
        }
        let starts = range.clone().into_par_iter().step_by(CHUNK);
        starts.for_each(|start| work(start..range.end.min(start + CHUNK)));
    }
}

impl Engine for Cpu {
    fn map<P: Program, T: Float, K: Map<P>>(&self, job: &mut Job<P, T>) {
        let finite = AtomicBool::new(true);
        let (len, parameters) = (job.state.len, job.parameters);
        let cells = Cells::in_place(job.state);
        let work = |range: Range<usize>| {
            let mut all = true;
            for v in range {
                let (shared, private) = cells.load(v);
                let (shared, private) = K::update(&parameters, shared, private);
                all &= all_finite(&shared) & all_finite(&private);
                cells.store(v, shared, private);
            }
            if !all {
                finite.store(false, Ordering::Relaxed);
            }
        };
        self.pool.install(|| self.chunks(0..len, work));
        job.finite &= finite.into_inner();
    }

    fn sweep<P: Program, T: Float, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize) {
        let layout = job.layout;
        if layout.schedule.is_double_buffered() {
            return self.jacobi::<P, T, K>(job, rounds);
        }
        let finite = AtomicBool::new(true);
        let (parameters, audit) = (job.parameters, job.audit);
        let cells = Cells::in_place(job.state);
        let stride = shared_stride(<SharedOf<P, T>>::LEN);
        let work = |range: Range<usize>| {
            let mut all = true;
            for v in range {
                let mut update = || {
                    let (shared, private) = cells.load(v);
                    let row = Row { v, stars: &layout.stars, leaf: |i| cells.leaf(i, stride) };
                    let (shared, private) = K::update(&parameters, shared, private, &row);
                    all &= all_finite(&shared) & all_finite(&private);
                    cells.store(v, shared, private);
                };
                match audit {
                    None => update(),
                    Some(audit) => audit.around(layout.schedule.graph(), v, update),
                }
            }
            if !all {
                finite.store(false, Ordering::Relaxed);
            }
        };
        match layout.schedule.plan() {
            Plan::Phases { offsets } => self.pool.install(|| {
                for _ in 0..rounds {
                    offsets.windows(2).for_each(|w| self.chunks(w[0] as usize..w[1] as usize, work));
                }
            }),
            Plan::Tasks { offsets, graph } => {
                tasks::run(&self.pool, graph, rounds, |t| work(offsets[t] as usize..offsets[t + 1] as usize));
            }
        }
        job.finite &= finite.into_inner();
    }

    fn jacobi<P: Program, T: Float, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize) {
        let (len, layout, parameters, audit) = (job.state.len, job.layout, job.parameters, job.audit);
        let stride = shared_stride(<SharedOf<P, T>>::LEN);
        job.state.next.resize(job.state.shared.len(), T::from_f64(0.0));
        for _ in 0..rounds {
            let finite = AtomicBool::new(true);
            let cells = Cells::double_buffered(job.state);
            let work = |range: Range<usize>| {
                let mut all = true;
                for v in range {
                    let (shared, private) = cells.load(v);
                    let row = Row { v, stars: &layout.stars, leaf: |i| cells.leaf(i, stride) };
                    let (shared, private) = K::update(&parameters, shared, private, &row);
                    all &= all_finite(&shared) & all_finite(&private);
                    cells.store(v, shared, private);
                    audit.inspect(|audit| audit.count(v));
                }
                if !all {
                    finite.store(false, Ordering::Relaxed);
                }
            };
            self.pool.install(|| self.chunks(0..len, work));
            let state = &mut *job.state;
            std::mem::swap(&mut state.shared, &mut state.next);
            job.finite &= finite.into_inner();
        }
    }

    fn measure<P: Program, T: Float, K: Reduce<P>>(&self, job: &Job<P, T>) -> f64 {
        reduce::tree::<P, T, K>(job, |blocks, leaf| {
            self.pool.install(|| (0..blocks).into_par_iter().map(leaf).collect())
        })
    }
}
