//! Runs a task graph for several rounds without a barrier.
//!
//! Task `t` of round `r` waits for its neighbors of lower number in round `r` and for those of higher number in round
//! `r - 1`: one counter a task, set to its degree when the task ends and decremented by each neighbor that ends. All
//! decrements for the next round come after that reset, because each of them is made by a neighbor that itself waited
//! for this task. So no pass over the counters is needed between rounds, and tasks far apart may be rounds apart.
//!
//! Workers draw tasks from one sequence: round after round, in a round by how long a chain of predecessors a task has,
//! then by number. A task that is drawn waits for its own round before this one, which another worker may still be at,
//! and for its predecessors. All of them were drawn before it, so the one
//! drawn first among those unfinished never waits: there is no deadlock, whatever the graph and however few workers.
//! Drawing in order keeps each worker close to reading memory in order, which was measured to be worth more than taking
//! whatever became ready last (docs/perf/notes.md).

use crossbeam_utils::Backoff;
use meshweft_mesh::Graph;
use rayon::ThreadPool;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a worker yields its core while its task is not ready: some hundred microseconds, longer than most tasks.
/// Where threads outnumber cores it does not: a thread that yields still keeps the one it waits for from running.
pub(super) const YIELDS: u32 = 500;
/// How long it sleeps after that, and again.
const NAP: Duration = Duration::from_micros(50);

/// Runs `task(t)` for every vertex `t` of the graph and every round, respecting its orientation from lower to higher.
///
/// `yields`: [`YIELDS`], or 0 where threads outnumber cores.
pub(super) fn run(pool: &ThreadPool, yields: u32, graph: &Graph, rounds: usize, task: impl Fn(usize) + Sync) {
    let tasks = graph.len();
    if pool.current_num_threads() == 1 || tasks == 1 {
        return (0..rounds).for_each(|_| (0..tasks).for_each(&task));
    }
    let run = Run {
        graph,
        rounds,
        sequence: sequence(graph),
        drawn: AtomicUsize::new(0),
        done: (0..tasks).map(|_| AtomicUsize::new(0)).collect(),
        waiting: (0..tasks as u32).map(|t| AtomicU32::new(predecessors(graph, t).len() as u32)).collect(),
        stopped: AtomicBool::new(false),
        yields,
        task,
    };
    pool.broadcast(|_| run.work());
}

/// Neighbors of lower number.
fn predecessors(graph: &Graph, t: u32) -> &[u32] {
    let neighbors = graph.neighbors(t);
    &neighbors[..neighbors.partition_point(|&u| u < t)]
}

/// Tasks by the longest chain of predecessors, then by number.
fn sequence(graph: &Graph) -> Vec<u32> {
    let mut depth = vec![0u32; graph.len()];
    for t in 0..graph.len() as u32 {
        depth[t as usize] = predecessors(graph, t).iter().map(|&u| depth[u as usize] + 1).max().unwrap_or(0);
    }
    let mut sequence: Vec<u32> = (0..graph.len() as u32).collect();
    sequence.sort_by_key(|&t| depth[t as usize]);
    sequence
}

struct Run<'a, F> {
    graph: &'a Graph,
    rounds: usize,
    sequence: Vec<u32>,
    /// How many tasks were drawn, in all rounds.
    drawn: AtomicUsize,
    /// Rounds that each task has ended.
    done: Vec<AtomicUsize>,
    /// How many predecessors of each task have not ended.
    waiting: Vec<AtomicU32>,
    stopped: AtomicBool,
    yields: u32,
    task: F,
}

impl<F: Fn(usize) + Sync> Run<'_, F> {
    fn work(&self) {
        // A panic of a task must not leave the other workers waiting for it.
        let _stop = StopOnPanic(&self.stopped);
        loop {
            let place = self.drawn.fetch_add(1, Ordering::Relaxed);
            if place >= self.sequence.len() * self.rounds {
                return;
            }
            let (t, round) = (self.sequence[place % self.sequence.len()], place / self.sequence.len());
            // The order of the two matters: only what ended the last round sets the counter for this one.
            let ready = || {
                self.done[t as usize].load(Ordering::Acquire) == round
                    && self.waiting[t as usize].load(Ordering::Acquire) == 0
            };
            let (backoff, mut yields) = (Backoff::new(), 0);
            while !ready() {
                if self.stopped.load(Ordering::Relaxed) {
                    return;
                }
                if !backoff.is_completed() || yields < self.yields {
                    backoff.snooze();
                    yields += 1;
                } else {
                    // More threads than cores, or far too few tasks: leave the cores to those that have work.
                    std::thread::sleep(NAP);
                }
            }
            (self.task)(t as usize);
            let neighbors = self.graph.neighbors(t);
            self.waiting[t as usize].store(neighbors.len() as u32, Ordering::Relaxed);
            self.done[t as usize].store(round + 1, Ordering::Release);
            // From here on neighbors may run; the decrements publish all of the above.
            neighbors.iter().for_each(|&u| _ = self.waiting[u as usize].fetch_sub(1, Ordering::AcqRel));
        }
    }
}

struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
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
            let audit = crate::engine::Audit::new(graph.clone());
            run(&pool(threads), 0, &graph, 50, |t| {
                audit.before(std::iter::once(t));
                audit.after(std::iter::once(t));
            });
            assert_eq!((audit.breach(), audit.miscounted(50)), (None, None), "{threads} threads");
        }
    }

    #[test]
    fn a_task_never_runs_beside_itself_however_few_tasks_there_are() {
        for tasks in [1usize, 2, 3] {
            let edges: Vec<[u32; 2]> = (1..tasks as u32).map(|v| [v - 1, v]).collect();
            let graph = Graph::from_edges(tasks, &edges).unwrap();
            let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
            let running: Vec<AtomicBool> = (0..tasks).map(|_| AtomicBool::new(false)).collect();
            run(&pool(8), 0, &graph, 100, |t| {
                assert!(!running[t].swap(true, Ordering::AcqRel), "task {t} runs twice at a time");
                std::thread::sleep(NAP); // so that all others come by
                counts[t].fetch_add(1, Ordering::Relaxed);
                running[t].store(false, Ordering::Release);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 100));
        }
    }

    #[test]
    fn a_panic_in_a_task_ends_the_run() {
        let graph = Graph::from_edges(50, &(1..50).map(|v| [v - 1, v]).collect::<Vec<_>>()).unwrap();
        let outcome = std::panic::catch_unwind(|| run(&pool(3), YIELDS, &graph, 2, |t| assert!(t != 20, "planted")));
        assert!(outcome.is_err());
    }
}
