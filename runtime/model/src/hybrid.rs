//! The cores of a machine and a GPU beside them, which share a mesh.

use super::{Cost, Costs, GpuCosts, Machine, Place, Prediction, Workload};

/// What a share on a GPU costs beside one on the cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HybridCosts {
    /// What the kernels cost on the GPU, as those of a host: level after level.
    pub gpu: GpuCosts,
    /// Seconds of a level of a round beyond the longer of both: values on their way between the device and the cores.
    pub trip_s: f64,
    /// Whether the GPU is a program on these very cores: what it does, they do not.
    pub is_software: bool,
}

/// The least share of a mesh that a host gets, of 1: one without work tells nothing of its rate.
pub const LEAST_SHARE: f64 = 0.01;

impl HybridCosts {
    /// The share of the GPU at which both are busy equally long: TOTEM's makespan is least there. Between 0.01 and 0.99; the least
    /// where its dispatches alone take as long as the cores with everything.
    ///
    /// `cores_s`: seconds of a round of all of `work` on the cores. `times`: how many times as large the mesh is as the one of `work`,
    /// which may be a piece of it. What a border costs, both wait for: it does not move the share.
    ///
    /// ```
    /// # use meshweft_model::{GpuCosts, HybridCosts};
    /// # use meshweft::{Simulation, mesh::generate::generate, toy::Counting};
    /// let work = Simulation::builder(generate("chain:1024", 1)?, Counting).build()?.workload(1, &[1.0])?;
    /// let gpu = GpuCosts { dispatches_s: 10e-6, read_s: 30e-6 / work.load().reads, copy_bytes_per_s: 1e12 };
    /// let costs = HybridCosts { gpu, trip_s: 0.0, is_software: false };
    /// // 100 µs on the cores, 30 on the GPU and 10 for its dispatches: 69 % are 31 µs on either.
    /// assert!((costs.share(100e-6, &work, 1.0) - 90.0 / 130.0).abs() < 1e-9);
    /// // A hundred times the mesh, on as many dispatches.
    /// assert!((costs.share(100e-6, &work, 100.0) - 9990.0 / 13_000.0).abs() < 1e-9);
    /// assert_eq!(costs.share(5e-6, &work, 1.0), 0.01);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn share(&self, cores_s: f64, work: &Workload, times: f64) -> f64 {
        let gpu_s: f64 = self.gpu.updates(work).map(|term| term.1).iter().sum();
        let spared_s = times * cores_s - self.gpu.dispatches_s;
        let share = spared_s / (times * (cores_s + gpu_s)).max(f64::MIN_POSITIVE);
        share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE)
    }

    /// Predicts a step of a mesh that the threads of a machine and a GPU share: the longer of both, or one after the other if the
    /// GPU is software; and the border, as trips and as bytes.
    ///
    /// `costs`: those of the program on the cores; `work`: for two hosts, the cores and the GPU, which has `share` of the mesh.
    pub fn predict(&self, machine: &Machine, costs: &Costs, work: &Workload, share: f64) -> Prediction {
        let place = Place { hosts: 1, threads: machine.threads, link: None, is_one_machine: true };
        let cores = machine.predict(costs, work, place);
        let rounds = f64::from(work.rounds);
        let own: Vec<(Cost, f64)> = cores.terms.iter().map(|&(cost, s)| (cost, (1.0 - share) * s)).collect();
        let mut other: Vec<(Cost, f64)> =
            self.gpu.updates(work).iter().map(|&(cost, s)| (cost, rounds * share * s)).collect();
        other.push((Cost::Dispatch, rounds * self.gpu.dispatches_s));
        let sum = |terms: &[(Cost, f64)]| terms.iter().map(|term| term.1).sum::<f64>();
        let mut all = match self.is_software {
            true => [own, other].concat(),
            false if sum(&own) < sum(&other) => other,
            false => own,
        };
        all.push((Cost::Latency, rounds * work.levels() * self.trip_s));
        // Out of one memory, into the other.
        let byte_s = machine.byte_s(1, f64::INFINITY) + 1.0 / self.gpu.copy_bytes_per_s;
        all.push((Cost::Network, rounds * work.sent_bytes() * byte_s));
        let of = |cost: Cost| all.iter().filter(|term| term.0 == cost).map(|term| term.1).sum::<f64>();
        let terms = Cost::ALL.map(|cost| (cost, of(cost))).into_iter().filter(|term| term.1 > 0.0).collect();
        Prediction { terms, rounds: work.rounds, threads: cores.threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLoad;
    use crate::prediction::tests::{COSTS, machine, row};
    use meshweft_schedule::Rule;

    /// 64 tasks of a millisecond on one of four cores, one after the other on a GPU that is three times as quick as all of them.
    fn shared() -> (HybridCosts, Workload) {
        let mut work = row(64, 1.0, 1 << 20, Rule::AtOnce);
        work.hosts = vec![HostLoad { vertices: 3200, neighbors: 1, messages: 1, bytes: 1000 }; 2];
        work.owners = (0..64).map(|t| t / 32).collect();
        let gpu = GpuCosts { dispatches_s: 1e-4, read_s: COSTS.read_s / 12.0, copy_bytes_per_s: 1e12 };
        (HybridCosts { gpu, trip_s: 2e-5, is_software: false }, work)
    }

    fn cores_s(work: &Workload) -> f64 {
        let here = Place { hosts: 1, threads: 4, link: None, is_one_machine: true };
        machine().predict(&COSTS, work, here).round_s()
    }

    #[test]
    fn no_other_share_is_quicker_than_the_one_at_which_both_are_busy_equally_long() {
        let (costs, work) = shared();
        let share = costs.share(cores_s(&work), &work, 1.0);
        assert!((0.7..0.76).contains(&share), "{share}");
        let round_s = |share| costs.predict(&machine(), &COSTS, &work, share).round_s();
        for other in (1..100).map(|i| f64::from(i) / 100.0) {
            assert!(round_s(other) >= round_s(share) - 1e-12, "{other} rather than {share}");
        }
    }

    #[test]
    fn a_gpu_that_is_software_takes_its_time_from_the_cores() {
        let (costs, work) = shared();
        let own = costs.predict(&machine(), &COSTS, &work, 0.5);
        let software = HybridCosts { is_software: true, ..costs }.predict(&machine(), &COSTS, &work, 0.5);
        let gpu_s = costs.gpu.predict(&work).of(Cost::Compute) / 2.0 + costs.gpu.predict(&work).of(Cost::Dispatch);
        assert!((software.step_s() - own.step_s() - gpu_s).abs() < 1e-9, "{software:?} {own:?}");
    }

    #[test]
    fn a_border_costs_a_trip_for_each_level() {
        let (costs, at_once) = shared();
        let in_order = Workload { walks: row(64, 1.0, 1 << 20, Rule::InOrder).walks, ..at_once.clone() };
        let trips = |work| costs.predict(&machine(), &COSTS, work, 0.5).of(Cost::Latency);
        // Two rounds; all tasks at once, or 64 one after the other.
        assert!((trips(&at_once) - 2.0 * 2e-5).abs() < 1e-12);
        assert!((trips(&in_order) - 2.0 * 64.0 * 2e-5).abs() < 1e-12);
        let slow = HybridCosts { trip_s: 1.0, ..costs };
        assert_eq!(slow.predict(&machine(), &COSTS, &at_once, 0.5).limit(), Cost::Latency);
    }
}
