//! How long a step takes: one term for each cost.

use super::walk::Crew;
use super::{Costs, HostLoad, Link, Machine, Workload};
use meshweft_schedule::Rule;

/// Where a step runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Hosts that share the mesh.
    pub hosts: usize,
    /// Threads of each.
    pub threads: usize,
    /// What joins them.
    pub link: Option<Link>,
    /// Whether hosts are processes of one machine, which share its memory.
    pub is_one_machine: bool,
}

/// One cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// Updates, in a cache.
    Compute,
    /// Lines of the state at random places.
    Gather,
    /// Bytes that come from memory.
    Memory,
    /// Tasks that are handed from thread to thread.
    Tasks,
    /// Threads that find nothing to do.
    Wait,
    /// Messages that are written and read.
    Messages,
    /// Values on their way between hosts.
    Latency,
    /// Bytes that a link carries.
    Network,
    /// Commands to a GPU.
    Dispatch,
}

impl Cost {
    /// All of them.
    pub const ALL: [Cost; 9] = [
        Cost::Compute,
        Cost::Gather,
        Cost::Memory,
        Cost::Tasks,
        Cost::Wait,
        Cost::Messages,
        Cost::Latency,
        Cost::Network,
        Cost::Dispatch,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Cost::Compute => "compute",
            Cost::Gather => "gather",
            Cost::Memory => "memory",
            Cost::Tasks => "tasks",
            Cost::Wait => "wait",
            Cost::Messages => "messages",
            Cost::Latency => "latency",
            Cost::Network => "network",
            Cost::Dispatch => "dispatch",
        }
    }

    /// How it is worked out, in words.
    pub fn formula(self) -> &'static str {
        match self {
            Cost::Compute => {
                "(reads of a round × seconds a read in a cache + updates × seconds an update, on graphs) ÷ threads of all hosts"
            }
            Cost::Gather => {
                "lines of the state that tiles without tables touch × seconds a read of a table of that size ÷ threads"
            }
            Cost::Memory => {
                "the larger of: bytes of a round × (seconds a byte at this size − in a cache) × exposed ÷ threads; what bytes ÷ the bandwidth of all threads exceeds compute by"
            }
            Cost::Tasks => "tasks of a round × seconds to hand one over ÷ threads",
            Cost::Wait => "the walk of all tasks in virtual time − the even share of each thread",
            Cost::Messages => {
                "the most messages that a host sends × seconds of a processor for both ends of one ÷ its threads; results that follow each other within a 64th of a round share one"
            }
            Cost::Latency => {
                "the walk in virtual time with values of other hosts late by the latency of the link − the walk without; beside a GPU: levels of a round × seconds of a trip to the device and back"
            }
            Cost::Network => {
                "the larger of: the walk with values late by their bytes ÷ the rate of the link, too; the most bytes that a host sends ÷ that rate; − the walk before; a byte that is packed is its share of that and packing and unpacking; beside a GPU: those bytes ÷ the rates of both memories"
            }
            Cost::Dispatch => "what a round on a GPU takes however few vertices there are",
        }
    }

    /// Where the formula comes from.
    pub fn source(self) -> &'static str {
        match self {
            Cost::Compute => {
                "TOTEM's |E| / r (Gharaibeh et al. 2012); the limit of processing elements of the multi-FPGA model"
            }
            Cost::Gather => "TOTEM's r as a function of the partition, which it leaves to later work",
            Cost::Memory => "the memory limit of the multi-FPGA model; roofline (Williams et al. 2009)",
            Cost::Tasks => "ours",
            Cost::Wait => "TOTEM's max over partitions; work and span (Blumofe and Leiserson 1999)",
            Cost::Messages => "LogP's o (Culler et al. 1993)",
            Cost::Latency => "LogP's L (Culler et al. 1993); docs/perf/scaling.md",
            Cost::Network => {
                "TOTEM's β|E| / c; the interface and network limits of the multi-FPGA model, with the real cut for (n − 1) / n"
            }
            Cost::Dispatch => "ours",
        }
    }
}

/// How long something takes, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Seconds of each cost in a step; those that are not there cost nothing.
    pub terms: Vec<(Cost, f64)>,
    /// Rounds of a step.
    pub rounds: u32,
    /// Threads that the engine will find to be quickest, of those it has; 0 on a GPU.
    pub threads: usize,
}

impl Prediction {
    /// Seconds of a step: the sum of all terms.
    pub fn step_s(&self) -> f64 {
        self.terms.iter().map(|term| term.1).sum()
    }

    /// Seconds of a round.
    pub fn round_s(&self) -> f64 {
        self.step_s() / f64::from(self.rounds.max(1))
    }

    /// The largest term: what to improve first.
    pub fn limit(&self) -> Cost {
        let largest = self.terms.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        largest.map_or(Cost::Compute, |term| term.0)
    }

    /// The seconds of one cost in a step.
    pub fn of(&self, cost: Cost) -> f64 {
        self.terms.iter().filter(|term| term.0 == cost).map(|term| term.1).sum()
    }
}

/// Work of an engine that lasts no longer is done alone where that is quicker.
const SHORT_S: f64 = 0.02;

impl Machine {
    /// Predicts a step of the program that `costs` are of, on a mesh.
    pub fn predict(&self, costs: &Costs, work: &Workload, place: Place) -> Prediction {
        let shared = self.walked(costs, work, place);
        if place.hosts > 1 || place.threads <= 1 || shared.step_s() / work.walks.len().max(1) as f64 > SHORT_S {
            return shared;
        }
        let alone = self.walked(costs, work, Place { threads: 1, ..place });
        if alone.step_s() < shared.step_s() { alone } else { shared }
    }

    fn walked(&self, costs: &Costs, work: &Workload, place: Place) -> Prediction {
        let Place { hosts, threads, link, is_one_machine } = place;
        let all = (hosts * threads) as f64;
        // A part of the caches, or caches of its own.
        let resident = work.resident_bytes as f64 / if is_one_machine { 1.0 } else { hosts as f64 };
        let readers = if is_one_machine { hosts * threads } else { threads };
        let load = work.load();
        let (slow_s, far_s) = (costs.exposed * self.slow_s(resident, costs.bytes), self.far_s(work));
        let in_cache = |load: &super::Load| load.reads * costs.read_s + load.updates * costs.update_s;
        let compute_s = in_cache(&load) / all;
        let gather_s = far_s / all;
        let machines = if is_one_machine { 1.0 } else { hosts as f64 };
        let floor_s = load.bytes / machines * self.byte_s(readers, resident);
        let memory_s = (load.bytes * slow_s / all).max(floor_s - compute_s - gather_s);
        let is_shared = hosts * threads > 1;
        let task_s = if is_shared { costs.task_s } else { 0.0 };
        let tasks_s = work.loads.len() as f64 * task_s / all;
        // Each task its share of all of that.
        let share = |of: f64, all: f64| if all > 0.0 { of / all } else { 0.0 };
        let times: Vec<f64> = work
            .loads
            .iter()
            .map(|task| {
                let reads = share(task.reads, load.reads) * gather_s;
                in_cache(task) + all * (reads + share(task.bytes, load.bytes) * memory_s) + task_s
            })
            .collect();
        let even_s = compute_s + gather_s + memory_s + tasks_s;
        let mut crew = Crew {
            graph: &work.graph,
            depths: &work.depths,
            times: &times,
            owners: if hosts > 1 { &work.owners } else { &[] },
            hosts,
            threads,
            delay_s: 0.0,
        };
        let rounds = f64::from(work.rounds);
        let mut terms = vec![
            (Cost::Compute, rounds * compute_s),
            (Cost::Gather, rounds * gather_s),
            (Cost::Memory, rounds * memory_s),
            (Cost::Tasks, rounds * tasks_s),
        ];
        if is_shared {
            let walked_s = walks_s(&crew, work);
            terms.push((Cost::Wait, (walked_s - rounds * even_s).max(0.0)));
            if let Some(link) = link.filter(|_| hosts > 1) {
                let messages = work.hosts.iter().map(|host| host.messages).max().unwrap_or(0).max(1) as f64;
                let sent = sent_messages(work, walked_s / rounds.max(1.0));
                terms.push((Cost::Messages, rounds * sent * link.message_s / threads as f64));
                crew.delay_s = link.latency_s;
                let late_s = walks_s(&crew, work);
                terms.push((Cost::Latency, (late_s - walked_s).max(0.0)));
                crew.delay_s += work.sent_bytes() / messages / link.bytes_per_s;
                let sent_s = rounds * work.sent_bytes() / link.bytes_per_s;
                terms.push((Cost::Network, (walks_s(&crew, work).max(sent_s) - late_s).max(0.0)));
            }
        }
        terms.retain(|term| term.1 > 0.0);
        Prediction { terms, rounds: work.rounds, threads }
    }
}

/// The most messages that a host sends in a round that takes so long: results that follow each other share them.
fn sent_messages(work: &Workload, round_s: f64) -> f64 {
    let most = round_s / Link::sharing_s(round_s) + 1.0;
    let of = |host: &HostLoad| (host.messages as f64).min(host.neighbors as f64 * most);
    work.hosts.iter().map(of).fold(0.0, f64::max)
}

/// Seconds of so many rounds. From the `most`-th on each takes as long as the ones before it did.
fn rounds_s(crew: &Crew, rule: Rule, rounds: u32, most: u32) -> f64 {
    if rounds <= most {
        return crew.rounds_s(rule, rounds);
    }
    let [half, all] = [most / 2, most].map(|rounds| crew.rounds_s(rule, rounds));
    all + f64::from(rounds - most) * (all - half) / f64::from(most - most / 2)
}

/// Seconds of all walks of a step.
fn walks_s(crew: &Crew, work: &Workload) -> f64 {
    /// Rounds of tasks that are walked: some ten milliseconds' worth.
    const WALKED: usize = 1 << 16;
    let most = (WALKED / crew.times.len().max(1)).clamp(4, 64) as u32;
    let walk = |rule: Rule, rounds: u32| match &work.waves {
        Some(waves) if crew.hosts == 1 => f64::from(rounds) * crew.waves_s(waves),
        _ => rounds_s(crew, rule, rounds, most),
    };
    let mut known: Vec<((Rule, u32), f64)> = Vec::new();
    let mut sum = 0.0;
    for passes in &work.walks {
        let key = (passes.rule, passes.rounds);
        let seconds = match known.iter().find(|known| known.0 == key) {
            Some(known) => known.1,
            None => {
                let seconds = walk(passes.rule, passes.rounds);
                known.push((key, seconds));
                seconds
            }
        };
        sum += seconds;
    }
    sum
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::{FarReads, Load, Passes, Rate, Trial};
    use meshweft_mesh::Graph;
    use meshweft_schedule::Order;

    pub(crate) fn machine() -> Machine {
        let rate = |threads, bytes, per_s| Rate { threads, bytes, per_s };
        Machine {
            threads: 4,
            reads: vec![rate(1, 1e6, 4e10), rate(1, 1e8, 1e10), rate(4, 1e6, 16e10), rate(4, 1e8, 2e10)],
            gathers: vec![rate(1, 1e6, 1e9), rate(1, 1e8, 1e8)],
        }
    }

    /// Tasks in a row, all alike.
    pub(crate) fn row(tasks: usize, bytes: f64, resident: usize, rule: Rule) -> Workload {
        let edges: Vec<[u32; 2]> = (1..tasks as u32).map(|t| [t - 1, t]).collect();
        Workload {
            order: Order::BLOCKED,
            vertices: 100 * tasks,
            resident_bytes: resident,
            loads: vec![Load { updates: 1e5, reads: 1e6, bytes }; tasks],
            rounds: 2,
            is_open: false,
            is_search: false,
            changes: false,
            projects: false,
            far_reads: Vec::new(),
            hosts: Vec::new(),
            walks: vec![Passes { rule, rounds: 2 }],
            graph: Graph::from_edges(tasks, &edges).unwrap(),
            depths: (0..tasks as u32).collect(),
            waves: None,
            owners: Vec::new(),
        }
    }

    pub(crate) const COSTS: Costs = Costs { read_s: 1e-9, update_s: 0.0, exposed: 1.0, task_s: 0.0, bytes: 1e6 };

    fn here(threads: usize) -> Place {
        Place { hosts: 1, threads, link: None, is_one_machine: true }
    }

    #[test]
    fn each_limit_is_named_where_it_binds() {
        let machine = machine();
        let limit = |costs: &Costs, work: &Workload, place| machine.predict(costs, work, place).limit();
        // 64 tasks of a millisecond and next to no bytes.
        let light = row(64, 1.0, 1 << 20, Rule::AtOnce);
        assert_eq!(limit(&COSTS, &light, here(4)), Cost::Compute);
        // As many bytes as take 4 ms.
        let heavy = row(64, 4e7, 1 << 30, Rule::AtOnce);
        assert_eq!(limit(&COSTS, &heavy, here(4)), Cost::Memory);
        assert_eq!(limit(&COSTS, &row(64, 1.0, 1 << 20, Rule::InOrder), here(16)), Cost::Wait);
        assert_eq!(limit(&Costs { task_s: 0.1, ..COSTS }, &light, here(4)), Cost::Tasks);
        let far = vec![FarReads { bytes: 1e9, reads: 1e9 }];
        assert_eq!(limit(&COSTS, &Workload { far_reads: far, ..light.clone() }, here(4)), Cost::Gather);
        let hosts = vec![HostLoad { vertices: 3200, neighbors: 1, messages: 1, bytes: 1000 }; 2];
        let owners = (0..64).map(|t| t / 32).collect();
        let apart = Workload { hosts, owners, ..light };
        let on = |latency_s, bytes_per_s, message_s| {
            limit(&COSTS, &apart, Place { hosts: 2, link: Some(Link { latency_s, bytes_per_s, message_s }), ..here(1) })
        };
        let found = [on(0.0, 1e9, 0.0), on(1.0, 1e9, 0.0), on(0.0, 1e4, 0.0), on(0.0, 1e9, 1.0)];
        assert_eq!(found, [Cost::Compute, Cost::Latency, Cost::Network, Cost::Messages]);
    }

    #[test]
    fn more_threads_are_faster_until_memory_gives_no_more() {
        let machine = machine();
        let work = row(64, 2e7, 1 << 30, Rule::AtOnce);
        let times = [1, 2, 4, 8].map(|threads| machine.predict(&COSTS, &work, here(threads)).step_s());
        assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
        // The roof: 64 tasks of 20 MB at 20 GB/s, two rounds.
        assert!((times[3] / (2.0 * 64.0 * 2e7 / 2e10) - 1.0).abs() < 0.01, "{times:?}");
    }

    #[test]
    fn the_trial_itself_is_predicted_as_it_was_measured() {
        let machine = machine();
        let work = row(16, 1e5, 1_000_000, Rule::AtOnce);
        let trial = Trial { alone_s: 0.1, shared_s: 0.05, threads: 4, cold_s: 1e-4 };
        let costs = machine.costs(&work, &trial, None);
        let round_s = |threads| machine.predict(&costs, &work, here(threads)).round_s();
        assert!((round_s(1) / trial.alone_s - 1.0).abs() < 1e-9);
        assert!((round_s(4) / trial.shared_s - 1.0).abs() < 0.05, "{}", round_s(4));
    }

    #[test]
    fn two_trials_with_more_and_fewer_neighbors_tell_updates_from_reads() {
        let machine = machine();
        let (many, few) = (row(16, 0.0, 1 << 20, Rule::AtOnce), row(16, 0.0, 1 << 20, Rule::AtOnce));
        let few = Workload { loads: vec![Load { updates: 1e5, reads: 2e5, bytes: 0.0 }; 16], ..few };
        // A nanosecond a read, and five an update.
        let round_s = |work: &Workload| work.load().reads * 1e-9 + work.load().updates * 5e-9;
        let trial = Trial { alone_s: round_s(&many), shared_s: round_s(&many), threads: 1, cold_s: 0.0 };
        let costs = machine.costs(&many, &trial, Some((&few, round_s(&few))));
        assert!((costs.read_s / 1e-9 - 1.0).abs() < 1e-9 && (costs.update_s / 5e-9 - 1.0).abs() < 1e-9, "{costs:?}");
        let predicted = |work: &Workload| machine.predict(&costs, work, here(1)).round_s();
        assert!((predicted(&few) / round_s(&few) - 1.0).abs() < 1e-9);
        // The same twice says nothing.
        let same = machine.costs(&many, &trial, Some((&many, round_s(&many))));
        assert!(same.update_s == 0.0 && (same.read_s / 1.5e-9 - 1.0).abs() < 1e-9, "{same:?}");
    }

    #[test]
    fn many_rounds_take_as_long_as_they_do_when_all_are_walked() {
        let work = row(12, 0.0, 1 << 20, Rule::InOrder);
        let times = vec![1.0; 12];
        let crew = Crew {
            graph: &work.graph,
            depths: &work.depths,
            times: &times,
            owners: &[],
            hosts: 1,
            threads: 3,
            delay_s: 0.0,
        };
        let all = crew.rounds_s(Rule::InOrder, 40);
        for (most, share) in [(40, 1e-12), (20, 0.05), (10, 0.1)] {
            let some = rounds_s(&crew, Rule::InOrder, 40, most);
            assert!((some / all - 1.0).abs() < share, "{some} {all} from {most}");
        }
    }
}
