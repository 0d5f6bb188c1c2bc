//! Runs a task graph for several rounds without a barrier.
//!
//! Task `t` of round `r` waits for its neighbors of lower number in round `r` and for those of higher number in round
//! `r - 1`: one counter a task, set to its degree when the task ends and decremented by each neighbor that ends. All
//! decrements for the next round come after that reset, because each of them is made by a neighbor that itself waited
//! for this task. So no pass over the counters is needed between rounds, and tasks far apart may be rounds apart.
//!
//! Each worker has a sequence of tasks of its own, the same in every round: by how long a chain of predecessors a task
//! has, then by number. It draws them in that order once they are ready, and helps others when its own next one is not
//! ready for a while. So memory is read in order, and what a task wrote in the last round is still in the caches of the
//! core that did: both were measured to be worth more than taking whatever became ready last (docs/perf/notes.md).
//! Nothing waits with a task in its hands, so there is no deadlock, whatever the graph and however few workers.

use crossbeam_utils::{Backoff, CachePadded};
use meshweft_mesh::Graph;
use rayon::ThreadPool;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a worker yields its core while its task is not ready: some hundred microseconds, longer than most tasks.
/// Where threads outnumber cores it does not: a thread that yields still keeps the one it waits for from running.
pub(super) const YIELDS: u32 = 500;
/// How often a worker looks for its own next task before it helps another: a few microseconds. What it takes from
/// another is not in its caches, and what it leaves may soon be ready.
const PATIENCE: u32 = 10;
/// How long it sleeps after that, and again.
const NAP: Duration = Duration::from_micros(50);

/// Runs `task(t)` for every vertex `t` of the graph and every round, respecting its orientation from lower to higher.
///
/// `yields`: [`YIELDS`], or 0 where threads outnumber cores.
pub(super) fn run(pool: &ThreadPool, yields: u32, graph: &Graph, rounds: usize, task: &(dyn Fn(usize) + Sync)) {
    let tasks = graph.len();
    if pool.current_num_threads() == 1 || tasks == 1 {
        return (0..rounds).for_each(|_| (0..tasks).for_each(task));
    }
    let run = Run {
        graph,
        rounds,
        sequences: sequences(graph, pool.current_num_threads()),
        done: (0..tasks).map(|_| AtomicUsize::new(0)).collect(),
        waiting: (0..tasks as u32).map(|t| AtomicU32::new(graph.predecessors(t).len() as u32)).collect(),
        stopped: AtomicBool::new(false),
        yields,
        task,
    };
    pool.broadcast(|context| run.work(context.index()));
}

/// A sequence of tasks for each thread. All are sorted by the longest chain of predecessors, then by number, and share
/// the tasks of each length of chain in equal runs.
///
/// So every thread has the same tasks in every round, whose state its caches may still hold, and, where numbers follow a
/// curve, has them in one region.
fn sequences(graph: &Graph, threads: usize) -> Vec<Sequence> {
    let mut depth = vec![0u32; graph.len()];
    for t in 0..graph.len() as u32 {
        depth[t as usize] = graph.predecessors(t).iter().map(|&u| depth[u as usize] + 1).max().unwrap_or(0);
    }
    let mut tasks: Vec<u32> = (0..graph.len() as u32).collect();
    tasks.sort_by_key(|&t| depth[t as usize]);
    let of_thread = |i: usize| {
        let shares = tasks.chunk_by(|&t, &u| depth[t as usize] == depth[u as usize]);
        let share = |class: &[u32]| class[class.len() * i / threads..class.len() * (i + 1) / threads].to_vec();
        Sequence { tasks: shares.flat_map(share).collect(), drawn: CachePadded::new(AtomicUsize::new(0)) }
    };
    (0..threads).map(of_thread).collect()
}

/// Tasks in the order in which they are drawn, the same in every round.
struct Sequence {
    tasks: Vec<u32>,
    /// How many were drawn, in all rounds.
    drawn: CachePadded<AtomicUsize>,
}

struct Run<'a> {
    graph: &'a Graph,
    rounds: usize,
    sequences: Vec<Sequence>,
    /// Rounds that each task has ended.
    done: Vec<AtomicUsize>,
    /// How many predecessors of each task have not ended.
    waiting: Vec<AtomicU32>,
    stopped: AtomicBool,
    yields: u32,
    task: &'a (dyn Fn(usize) + Sync),
}

/// What a sequence has to give.
enum Draw {
    /// A task that is ready, and its round.
    Task(u32, usize),
    /// The next task is not ready.
    Wait,
    End,
}

impl Run<'_> {
    fn work(&self, own: usize) {
        // A panic of a task must not leave the other workers waiting for it.
        let _stop = StopOnPanic(&self.stopped);
        while let Some((t, round)) = self.next(own) {
            (self.task)(t as usize);
            let neighbors = self.graph.neighbors(t);
            self.waiting[t as usize].store(neighbors.len() as u32, Ordering::Relaxed);
            self.done[t as usize].store(round + 1, Ordering::Release);
            // From here on neighbors may run; the decrements publish all of the above.
            neighbors.iter().for_each(|&u| _ = self.waiting[u as usize].fetch_sub(1, Ordering::AcqRel));
        }
    }

    /// A task of the own sequence, or of another one if that does not come soon; none after the last.
    ///
    /// No task is drawn before it is ready. Of all tasks that are left, the first by round, chain and number is always
    /// ready or running, and the next of its sequence: some thread finds it.
    fn next(&self, own: usize) -> Option<(u32, usize)> {
        let (backoff, mut waits) = (Backoff::new(), 0);
        while !self.stopped.load(Ordering::Relaxed) {
            let mut ended = true;
            for k in 0..self.sequences.len() {
                match self.draw(&self.sequences[(own + k) % self.sequences.len()]) {
                    Draw::Task(t, round) => return Some((t, round)),
                    Draw::Wait => ended = false,
                    Draw::End => {}
                }
                if k == 0 && !ended && waits < PATIENCE {
                    break;
                }
            }
            if ended {
                return None;
            }
            waits += 1;
            if !backoff.is_completed() || waits < self.yields {
                backoff.snooze();
            } else {
                // More threads than cores, or far too few tasks: leave the cores to those that have work.
                std::thread::sleep(NAP);
            }
        }
        None
    }

    fn draw(&self, sequence: &Sequence) -> Draw {
        loop {
            let place = sequence.drawn.load(Ordering::Relaxed);
            if place == sequence.tasks.len() * self.rounds {
                return Draw::End;
            }
            let (t, round) = (sequence.tasks[place % sequence.tasks.len()], place / sequence.tasks.len());
            // The order of the two matters: only what ended the last round sets the counter for this one.
            let ready = self.done[t as usize].load(Ordering::Acquire) == round
                && self.waiting[t as usize].load(Ordering::Acquire) == 0;
            let drawn = &sequence.drawn;
            if !ready {
                if drawn.load(Ordering::Relaxed) == place {
                    return Draw::Wait;
                }
            } else if drawn.compare_exchange(place, place + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return Draw::Task(t, round);
            }
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
            run(&pool(threads), 0, &graph, 50, &|t| {
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
            run(&pool(8), 0, &graph, 100, &|t| {
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
        let outcome = std::panic::catch_unwind(|| run(&pool(3), YIELDS, &graph, 2, &|t| assert!(t != 20, "planted")));
        assert!(outcome.is_err());
    }
}
