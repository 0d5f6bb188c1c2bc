//! Runs a task graph for several rounds without a barrier.
//!
//! Task `t` of round `r` waits for its neighbors of lower number in round `r` and for those of higher number in round
//! `r - 1`: one counter a task, set to its degree when the task ends and decremented by each neighbor that ends. All
//! decrements for the next round come after that reset, because each of them is made by a neighbor that itself waited
//! for this task. So no pass over the counters is needed between rounds, and tasks far apart may be rounds apart.
//!
//! A worker takes from its own deque what it made ready last, lowest number first, so it stays where its cache is warm;
//! an idle worker steals the oldest of another's. There is no recursion, whatever the graph.

use crossbeam_deque::{Steal, Stealer, Worker};
use crossbeam_utils::Backoff;
use meshweft_mesh::Graph;
use rayon::ThreadPool;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a worker sleeps that has found nothing for a while.
const NAP: Duration = Duration::from_micros(50);

/// Runs `task(t)` for every vertex `t` of the graph and every round, respecting its orientation from lower to higher.
pub(crate) fn run(pool: &ThreadPool, graph: &Graph, rounds: usize, task: impl Fn(usize) + Sync) {
    let tasks = graph.len();
    if tasks == 0 || rounds == 0 {
        return;
    }
    let workers = pool.current_num_threads();
    if workers == 1 {
        return (0..rounds).for_each(|_| (0..tasks).for_each(&task));
    }
    let run = Run {
        graph,
        rounds: u32::try_from(rounds).expect("fewer than 2^32 rounds: more would take years"),
        waiting: (0..tasks as u32).map(|t| AtomicU32::new(predecessors(graph, t) as u32)).collect(),
        done: (0..tasks).map(|_| AtomicU32::new(0)).collect(),
        left: AtomicUsize::new(tasks),
        stopped: AtomicBool::new(false),
        task,
    };
    let deques: Vec<Worker<u32>> = (0..workers).map(|_| Worker::new_lifo()).collect();
    let stealers: Vec<Stealer<u32>> = deques.iter().map(Worker::stealer).collect();
    // Roots in order: each worker starts in its own stretch, and pops its lowest first.
    let roots: Vec<u32> = (0..tasks as u32).filter(|&t| predecessors(graph, t) == 0).collect();
    for (deque, stretch) in deques.iter().zip(roots.chunks(roots.len().div_ceil(workers))) {
        stretch.iter().rev().for_each(|&t| deque.push(t));
    }
    let deques: Vec<Mutex<Option<Worker<u32>>>> = deques.into_iter().map(|d| Mutex::new(Some(d))).collect();
    pool.broadcast(|context| {
        let own = deques[context.index()].lock().ok().and_then(|mut slot| slot.take());
        run.work(&own.expect("each worker takes its own deque once"), &stealers, context.index());
    });
}

/// Neighbors of lower number.
fn predecessors(graph: &Graph, t: u32) -> usize {
    graph.neighbors(t).partition_point(|&u| u < t)
}

struct Run<'a, F> {
    graph: &'a Graph,
    rounds: u32,
    waiting: Vec<AtomicU32>,
    done: Vec<AtomicU32>,
    /// Tasks that have rounds left.
    left: AtomicUsize,
    stopped: AtomicBool,
    task: F,
}

impl<F: Fn(usize) + Sync> Run<'_, F> {
    fn work(&self, own: &Worker<u32>, stealers: &[Stealer<u32>], index: usize) {
        // A panic of a task must not leave the other workers waiting for it.
        let _stop = StopOnPanic(&self.stopped);
        let backoff = Backoff::new();
        loop {
            let Some(t) = own.pop().or_else(|| steal(stealers, index)) else {
                if self.left.load(Ordering::Acquire) == 0 || self.stopped.load(Ordering::Acquire) {
                    return;
                }
                if backoff.is_completed() {
                    // Long idle, or more threads than cores: leave the cores to those that have work.
                    std::thread::sleep(NAP);
                } else {
                    backoff.snooze();
                }
                continue;
            };
            backoff.reset();
            self.finish(own, t);
        }
    }

    fn finish(&self, own: &Worker<u32>, t: u32) {
        let neighbors = self.graph.neighbors(t);
        if neighbors.is_empty() {
            (0..self.rounds).for_each(|_| (self.task)(t as usize));
            self.left.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        (self.task)(t as usize);
        let done = self.done[t as usize].load(Ordering::Relaxed) + 1;
        self.done[t as usize].store(done, Ordering::Relaxed);
        self.waiting[t as usize].store(neighbors.len() as u32, Ordering::Relaxed);
        // From here on neighbors may run; the decrements publish all of the above.
        for &u in neighbors.iter().rev() {
            if self.waiting[u as usize].fetch_sub(1, Ordering::AcqRel) == 1
                && self.done[u as usize].load(Ordering::Relaxed) < self.rounds
            {
                own.push(u);
            }
        }
        if done == self.rounds {
            self.left.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn steal(stealers: &[Stealer<u32>], index: usize) -> Option<u32> {
    let others = (1..stealers.len()).map(|k| &stealers[(index + k) % stealers.len()]);
    others.map(|s| std::iter::repeat_with(|| s.steal()).find(|s| !s.is_retry())).find_map(|s| match s {
        Some(Steal::Success(t)) => Some(t),
        _ => None,
    })
}

struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(threads: usize) -> ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn neighbors_take_turns_in_every_round() {
        let n = 200u32;
        let edges: Vec<[u32; 2]> =
            (0..n).flat_map(|v| [1, 7, 31].map(|d| [v, v + d])).filter(|e| e[1] < n && e[0] % 5 != 0).collect();
        let graph = Graph::from_edges(n as usize, &edges).unwrap();
        for threads in [1, 2, 3, 8] {
            let audit = crate::engine::Audit::new(n as usize);
            run(&pool(threads), &graph, 50, |t| {
                audit.before(&graph, std::iter::once(t));
                audit.after(&graph, std::iter::once(t));
            });
            assert_eq!((audit.breach(), audit.miscounted(50)), (None, None), "{threads} threads");
        }
    }

    #[test]
    fn a_panic_in_a_task_ends_the_run() {
        let graph = Graph::from_edges(50, &(1..50).map(|v| [v - 1, v]).collect::<Vec<_>>()).unwrap();
        let outcome = std::panic::catch_unwind(|| run(&pool(3), &graph, 2, |t| assert!(t != 20, "planted")));
        assert!(outcome.is_err());
    }
}
