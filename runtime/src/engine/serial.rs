//! The oracle: one thread, one loop, in order. It specifies what every other engine must compute, bit for bit [C1].

use super::{Engine, Job, all_finite, reduce};
use crate::layout::{Row, shared_stride};
use crate::program::{Kernel, Map, Number, PrivateOf, Program, Record, Reduce, SharedOf};

/// Runs every update by itself, in the order of the schedule.
pub(crate) struct Serial;

impl Engine for Serial {
    fn map<P: Program, T: Number, K: Map<P>>(&self, job: &mut Job<P, T>) {
        for v in 0..job.state.len {
            let (shared, private) = K::update(&job.parameters, job.state.shared(v), job.state.private(v));
            job.finite &= all_finite(&shared) && all_finite(&private);
            job.state.set_shared(v, shared);
            job.state.set_private(v, private);
        }
    }

    fn sweep<P: Program, T: Number, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize) {
        if job.layout.schedule.is_double_buffered() {
            return self.jacobi::<P, T, K>(job, rounds);
        }
        for _ in 0..rounds {
            for v in 0..job.state.len {
                let (shared, private) = update::<P, T, K>(job, v);
                job.state.set_shared(v, shared);
                job.state.set_private(v, private);
            }
        }
    }

    fn jacobi<P: Program, T: Number, K: Kernel<P>>(&self, job: &mut Job<P, T>, rounds: usize) {
        let stride = shared_stride(<SharedOf<P, T>>::LEN);
        for _ in 0..rounds {
            let mut next = job.state.shared.clone();
            for v in 0..job.state.len {
                let (shared, private) = update::<P, T, K>(job, v);
                shared.each(|k, x| next[v * stride + k] = x);
                job.state.set_private(v, private);
            }
            job.state.shared = next;
        }
    }

    fn measure<P: Program, T: Number, K: Reduce<P>>(&self, job: &Job<P, T>) -> f64 {
        let state = &*job.state;
        let value = |v: usize| {
            let row = Row { row: v, stars: &job.layout.rows, leaf: |i: usize| state.shared[i] };
            K::measure(&job.parameters, state.shared(v), state.private(v), &row).to_f64()
        };
        reduce::tree(K::COMBINE, job.layout, &value, &|leaves, leaf| (0..leaves).map(leaf).collect())
    }
}

/// The new state of one vertex, from the present state.
fn update<P: Program, T: Number, K: Kernel<P>>(job: &mut Job<P, T>, v: usize) -> (SharedOf<P, T>, PrivateOf<P, T>) {
    let row = Row { row: v, stars: &job.layout.rows, leaf: |i: usize| job.state.shared[i] };
    let (shared, private) = K::update(&job.parameters, job.state.shared(v), job.state.private(v), &row);
    job.finite &= all_finite(&shared) && all_finite(&private);
    (shared, private)
}
