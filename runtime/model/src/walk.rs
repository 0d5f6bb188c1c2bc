//! A walk of tasks in virtual time.
//!
//! Tasks run on so many threads of so many hosts by the rule that engines go by ([`Rule`]): a thread that is free takes, of the
//! tasks of its host that are ready, the first by round, length of chain and number. What comes from another host arrives later.

use meshweft_mesh::Graph;
use meshweft_schedule::Rule;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Who walks what.
pub(super) struct Crew<'a> {
    /// Which tasks are joined by an edge.
    pub(super) graph: &'a Graph,
    /// How many predecessors each has in a row.
    pub(super) depths: &'a [u32],
    /// What each takes, in seconds.
    pub(super) times: &'a [f64],
    /// The host of each; empty for one host.
    pub(super) owners: &'a [u32],
    pub(super) hosts: usize,
    /// Of each host.
    pub(super) threads: usize,
    /// Seconds until another host knows what a task came to.
    pub(super) delay_s: f64,
}

/// A time that is a number, so that it can be compared.
#[derive(Clone, Copy, PartialEq)]
struct At(f64);

impl Eq for At {}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &At) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for At {
    fn cmp(&self, other: &At) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Crew<'_> {
    /// Seconds that so many rounds take. Cost O(rounds × (tasks and their neighbors)).
    pub(super) fn rounds_s(&self, rule: Rule, rounds: u32) -> f64 {
        let mut walk = Walk::new(self, rule, rounds);
        walk.run();
        walk.end
    }

    /// Seconds that a round takes wave after wave, on one host.
    pub(super) fn waves_s(&self, waves: &[u32]) -> f64 {
        let wave = |range: &[u32]| {
            let mut free = vec![0.0; self.threads];
            for &time in &self.times[range[0] as usize..range[1] as usize] {
                let next = (0..free.len()).min_by(|&i, &j| f64::total_cmp(&free[i], &free[j]));
                free[next.expect("there is a thread")] += time;
            }
            free.into_iter().fold(0.0, f64::max)
        };
        waves.windows(2).map(wave).sum()
    }

    fn owner(&self, t: u32) -> usize {
        self.owners.get(t as usize).map_or(0, |&owner| owner as usize)
    }
}

/// What happens at a time, to a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Other hosts know of its round.
    Arrives,
    /// Its round is done.
    Ends,
}

struct Walk<'a> {
    crew: &'a Crew<'a>,
    rule: Rule,
    rounds: u32,
    /// Rounds that each task has done, here and as far as other hosts know.
    done: Vec<u32>,
    known: Vec<u32>,
    /// Neighbors that the next round of each task waits for.
    missing: Vec<u32>,
    /// Of each host, what is ready.
    ready: Vec<BTreeSet<(u32, u32, u32)>>,
    free: Vec<usize>,
    events: BinaryHeap<Reverse<(At, What, u32)>>,
    end: f64,
}

impl<'a> Walk<'a> {
    fn new(crew: &'a Crew<'a>, rule: Rule, rounds: u32) -> Walk<'a> {
        let tasks = crew.graph.len();
        let (done, missing) = (vec![0; tasks], vec![0; tasks]);
        let ready = vec![BTreeSet::new(); crew.hosts];
        let (known, free, events) = (done.clone(), vec![crew.threads; crew.hosts], BinaryHeap::new());
        Walk { crew, rule, rounds, done, known, missing, ready, free, events, end: 0.0 }
    }

    fn run(&mut self) {
        (0..self.crew.graph.len() as u32).for_each(|t| self.look(t));
        (0..self.crew.hosts).for_each(|host| self.start(host, 0.0));
        while let Some(Reverse((At(now), what, t))) = self.events.pop() {
            let own = self.crew.owner(t);
            match what {
                What::Ends => {
                    self.end = now;
                    self.done[t as usize] += 1;
                    self.free[own] += 1;
                    self.look(t);
                    self.tell(t, self.done[t as usize], |host| host == own);
                    if self.crew.hosts > 1 {
                        self.events.push(Reverse((At(now + self.crew.delay_s), What::Arrives, t)));
                    }
                    self.start(own, now);
                }
                What::Arrives => {
                    self.known[t as usize] += 1;
                    self.tell(t, self.known[t as usize], |host| host != own);
                    (0..self.crew.hosts).for_each(|host| self.start(host, now));
                }
            }
        }
    }

    /// What the next round of a task still waits for.
    fn look(&mut self, t: u32) {
        let round = self.done[t as usize];
        let lags = |&&u: &&u32| {
            let epoch = if self.crew.owner(u) == self.crew.owner(t) { &self.done } else { &self.known };
            epoch[u as usize] < round + u32::from(self.rule.puts_first(u, t))
        };
        let reads = if self.rule == Rule::Alone { &[][..] } else { self.crew.graph.neighbors(t) };
        self.missing[t as usize] = reads.iter().filter(lags).count() as u32;
        self.offer(t);
    }

    /// Tells neighbors on some hosts that a task has come to an epoch.
    fn tell(&mut self, t: u32, epoch: u32, is_told: impl Fn(usize) -> bool) {
        let crew = self.crew;
        let reads = if self.rule == Rule::Alone { &[][..] } else { crew.graph.neighbors(t) };
        for &u in reads.iter().filter(|&&u| is_told(crew.owner(u))) {
            if epoch == self.done[u as usize] + u32::from(self.rule.puts_first(t, u)) && self.missing[u as usize] > 0 {
                self.missing[u as usize] -= 1;
                self.offer(u);
            }
        }
    }

    fn offer(&mut self, t: u32) {
        let round = self.done[t as usize];
        if self.missing[t as usize] == 0 && round < self.rounds {
            self.ready[self.crew.owner(t)].insert((round, self.crew.depths[t as usize], t));
        }
    }

    fn start(&mut self, host: usize, now: f64) {
        while self.free[host] > 0
            && let Some((_, _, t)) = self.ready[host].pop_first()
        {
            self.free[host] -= 1;
            self.events.push(Reverse((At(now + self.crew.times[t as usize]), What::Ends, t)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(n: u32) -> Graph {
        Graph::from_edges(n as usize, &(1..n).map(|v| [v - 1, v]).collect::<Vec<_>>()).unwrap()
    }

    fn crew<'a>(graph: &'a Graph, depths: &'a [u32], times: &'a [f64], threads: usize) -> Crew<'a> {
        Crew { graph, depths, times, owners: &[], hosts: 1, threads, delay_s: 0.0 }
    }

    #[test]
    fn one_thread_takes_the_sum_under_every_rule() {
        let graph = path(5);
        let times = [1.0, 2.0, 3.0, 4.0, 5.0];
        let crew = crew(&graph, &[0, 1, 2, 3, 4], &times, 1);
        for rule in [Rule::Alone, Rule::InOrder, Rule::Backward, Rule::AtOnce] {
            assert_eq!(crew.rounds_s(rule, 3), 45.0, "{rule:?}");
        }
    }

    #[test]
    fn a_chain_lets_the_next_round_begin_behind_the_first_task() {
        let (graph, times) = (path(4), [1.0; 4]);
        // A task waits for the one before it and, in later rounds, for the one after it: two apart run at the same time.
        for (threads, seconds) in [(1, 12.0), (2, 8.0), (8, 8.0)] {
            assert_eq!(crew(&graph, &[0, 1, 2, 3], &times, threads).rounds_s(Rule::InOrder, 3), seconds);
            assert_eq!(crew(&graph, &[0, 1, 2, 3], &times, threads).rounds_s(Rule::Backward, 3), seconds);
        }
        assert_eq!(crew(&graph, &[0; 4], &times, 4).rounds_s(Rule::AtOnce, 3), 3.0);
        assert_eq!(crew(&graph, &[0; 4], &times, 3).rounds_s(Rule::Alone, 3), 4.0);
    }

    #[test]
    fn what_another_host_computes_comes_late_each_time() {
        let (graph, times) = (path(2), [1.0; 2]);
        let alone = crew(&graph, &[0, 1], &times, 1);
        let apart = Crew { owners: &[0, 1], hosts: 2, delay_s: 10.0, ..alone };
        // Three rounds: six updates, one after the other, with a message between each and the next.
        assert_eq!(apart.rounds_s(Rule::InOrder, 3), 6.0 + 5.0 * 10.0);
        assert_eq!(apart.rounds_s(Rule::AtOnce, 3), 3.0 + 2.0 * 10.0);
        assert_eq!(apart.rounds_s(Rule::Alone, 3), 3.0);
    }

    #[test]
    fn waves_wait_for_their_longest_thread() {
        let (graph, times) = (path(4), [1.0, 1.0, 1.0, 5.0]);
        assert_eq!(crew(&graph, &[0; 4], &times, 2).waves_s(&[0, 3, 4]), 2.0 + 5.0);
    }
}
