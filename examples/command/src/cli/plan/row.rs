//! A configuration, and what it takes.

use super::gpus::Gpu;
use crate::cli::text;
use anyhow::Result;
#[cfg(feature = "cluster")]
use meshweft::model::{Costs, Link, Machine, Packed};
use meshweft::model::{Place, Prediction, Workload};
use meshweft::{Backend, Order};
#[cfg(feature = "cluster")]
use meshweft::{Cluster, Compress};

/// One way to run a step, and what it takes.
pub(super) struct Row {
    pub(super) order: Order,
    pub(super) place: Place,
    /// The GPU that updates, and how much of the mesh it has if the cores have the rest.
    pub(super) gpu: Option<Gpu>,
    pub(super) share: Option<f64>,
    /// Whether hosts pack what they send each other.
    pub(super) is_packed: Option<bool>,
    /// Bytes that a round moves, and states that an update reads.
    pub(super) bytes: f64,
    pub(super) reads_per_update: f64,
    /// Seconds of one of those in a cache.
    pub(super) read_s: f64,
    pub(super) prediction: Prediction,
    /// Seconds of a round, where it was tried.
    pub(super) measured_s: Option<f64>,
}

/// So many threads of this machine.
pub(super) fn here(threads: usize) -> Place {
    Place { hosts: 1, threads, link: None, is_one_machine: true }
}

impl Row {
    /// What `work` is predicted to take in a place. `read_s`: seconds of a state that is read, in a cache.
    pub(super) fn new(work: &Workload, place: Place, read_s: f64, prediction: Prediction) -> Row {
        Row {
            order: work.order,
            place,
            gpu: None,
            share: None,
            is_packed: None,
            bytes: work.load().bytes,
            reads_per_update: work.reads_per_update(),
            read_s,
            prediction,
            measured_s: None,
        }
    }

    /// Of hosts on a link, who pack what they send if that is quicker. `packed`: how it packs, unless they must not.
    #[cfg(feature = "cluster")]
    pub(super) fn on_hosts(
        work: &Workload,
        place: Place,
        (machine, costs): (&Machine, &Costs),
        (packed, how): (Option<Packed>, Compress),
    ) -> Row {
        let on = |link: Link| {
            let is_taken = |packed: &Packed| how == Compress::Always || packed.is_taken(link, work.message_bytes());
            packed.filter(is_taken).map(|packed| link.packed(&packed))
        };
        let packed = place.link.and_then(on);
        let prediction = machine.predict(costs, work, Place { link: packed.or(place.link), ..place });
        Row { is_packed: Some(packed.is_some()), ..Row::new(work, place, costs.read_s, prediction) }
    }

    /// What it runs on, on this machine.
    ///
    /// # Errors
    /// None that a row can have.
    pub(super) fn backend(&self) -> Result<Backend> {
        let threads = self.place.threads;
        Ok(match (&self.gpu, self.share) {
            #[cfg(feature = "cluster")]
            (Some(gpu), Some(share)) => Backend::Cluster(Cluster::hybrid(gpu.number, share)?.threads(threads)),
            (Some(gpu), _) => Backend::Gpu { adapter: gpu.number },
            (None, _) => Backend::Cpu { threads },
        })
    }

    /// Where it runs, in words.
    pub(super) fn place(&self) -> String {
        let threads = text::counted(self.place.threads, "thread", "threads");
        match (&self.gpu, self.share) {
            (Some(gpu), Some(share)) => format!("{threads}, {:.0} % on {gpu}", 100.0 * share),
            (Some(gpu), None) => gpu.to_string(),
            (None, _) if self.place.hosts == 1 => threads,
            (None, _) => {
                let packed = self.is_packed.map_or("", |is_packed| if is_packed { ", packed" } else { ", plain" });
                format!("{} hosts × {threads}{packed}", self.place.hosts)
            }
        }
    }
}
