//! What a step of a simulation asks of a machine, as plain data.

use super::any::AnySimulation;
use super::core::Core;
#[cfg(feature = "cluster")]
use crate::cluster::sharing;
use crate::engine::waves;
use crate::error::Result;
use crate::layout::{Tile, shared_stride};
use crate::number::Number;
use crate::step::Stage;
#[cfg(feature = "cluster")]
use meshweft_mesh::Cut;
use meshweft_model::{FarReads, HostLoad, Load, Passes, Workload};
use meshweft_schedule::Rule;

impl<T: Number> Core<T> {
    /// See [`AnySimulation::workload`].
    pub(super) fn work(&self, threads: usize, parts: &[f64]) -> Result<Workload> {
        let mut steps = Steps::default();
        steps.add(&self.stages()?.0);
        steps.flush();
        let (layout, shape) = (&self.layout, self.layout.shape);
        // Shared state in and out, private state in and out.
        let slot_bytes = (2 * shared_stride(shape.shared) + 2 * shape.private) * T::BYTES;
        let loads = (0..layout.graph.len()).map(|t| {
            let tiles = layout.tiles_of(t..t + 1);
            let slots = layout.slots_of_tiles(tiles.clone()).len();
            let tiles = &layout.tiles[tiles];
            Load {
                updates: slots as f64,
                reads: (slots + tiles.iter().map(Tile::reads).sum::<usize>()) as f64,
                bytes: (slots * slot_bytes + tiles.iter().map(Tile::bytes).sum::<usize>()) as f64,
            }
        });
        let (owners, loads_of_hosts) = hosts_of_tasks(self, parts)?;
        Ok(Workload {
            order: self.order(),
            vertices: self.vertices() as usize,
            resident_bytes: layout.round_bytes() + self.state_bytes(),
            loads: loads.collect(),
            rounds: steps.walks.iter().map(|walk| walk.rounds).sum(),
            is_open: steps.is_open,
            is_search: steps.is_search,
            changes: layout.changes(),
            projects: !layout.elements.is_empty(),
            far_reads: far_reads(self),
            hosts: loads_of_hosts,
            walks: steps.walks,
            graph: layout.graph.clone(),
            depths: layout.depths.clone(),
            waves: waves(&layout.domain, threads.max(1)),
            owners,
        })
    }
}

/// The host of each task, and what each host does.
#[cfg(feature = "cluster")]
fn hosts_of_tasks<T: Number>(core: &Core<T>, parts: &[f64]) -> Result<(Vec<u32>, Vec<HostLoad>)> {
    if parts.len() <= 1 {
        return Ok((Vec::new(), Vec::new()));
    }
    let sharing = sharing(&core.layout, core.mesh.points(), parts, Cut::Curve)?;
    let first = |&place: &u32| sharing.owners[core.layout.vertex_at(place) as usize] - 1;
    let tasks = core.schedule().tasks();
    let owners = tasks[..core.schedule().graph().len()].iter().map(first).collect();
    let load = |host: &crate::HostReport| HostLoad {
        vertices: host.vertices,
        neighbors: host.neighbors.len(),
        messages: host.round_messages,
        bytes: host.round_bytes,
    };
    Ok((owners, sharing.hosts.iter().map(load).collect()))
}

/// In a build without hosts there is one.
#[cfg(not(feature = "cluster"))]
fn hosts_of_tasks<T: Number>(_: &Core<T>, parts: &[f64]) -> Result<(Vec<u32>, Vec<HostLoad>)> {
    match parts.len() {
        0 | 1 => Ok((Vec::new(), Vec::new())),
        n => Err(crate::Error::Invalid(format!("{n} hosts, in a build without the feature `cluster`"))),
    }
}

/// How lines of the state that tiles without tables touch gather on few of them: those of vertices with many neighbors are touched
/// most.
fn far_reads<T: Number>(core: &Core<T>) -> Vec<FarReads> {
    /// Bytes of a cache line.
    const LINE: usize = 64;
    /// Bytes of a core's first-level cache, on most.
    const CACHE: usize = 32 << 10;
    let stride = shared_stride(core.layout.shape.shared) * T::BYTES;
    let mut counts = vec![0u32; (core.layout.slots() * stride).div_ceil(LINE).max(1)];
    // A line that is in the first-level cache costs no more than any read. Each has one place there: which is a little too bad.
    let mut cached = vec![usize::MAX; CACHE / LINE];
    for tile in &core.layout.tiles {
        tile.each_far_read(|slot| {
            let line = slot as usize * stride / LINE;
            let place = line % cached.len();
            counts[line] += u32::from(cached[place] != line);
            cached[place] = line;
        });
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let (mut reads, mut start, mut all) = (0.0, 0, Vec::new());
    for size in (4..).map(|k| 1usize << k) {
        let end = size.min(counts.len());
        reads += counts[start..end].iter().map(|&count| f64::from(count)).sum::<f64>();
        all.push(FarReads { bytes: (end * LINE) as f64, reads });
        start = end;
        if end == counts.len() {
            break;
        }
    }
    all.retain(|far| far.reads > 0.0);
    all
}

/// The walks of a step.
#[derive(Default)]
struct Steps {
    walks: Vec<Passes>,
    /// The one that is being told.
    open: Option<Passes>,
    is_open: bool,
    is_search: bool,
}

impl Steps {
    fn add(&mut self, stages: &[Stage]) {
        for stage in stages {
            match stage {
                // A map is no round of its own: what it takes counts to those of the step.
                // Nor is one of another part than the mesh, which is much smaller.
                Stage::Update { rule: Rule::Alone, .. }
                | Stage::Update { part: Some(1..), .. }
                | Stage::Scalar { .. } => {}
                &Stage::Update { rule, rounds, .. } => {
                    let walk = self.open.get_or_insert(Passes { rule, rounds: 0 });
                    walk.rounds += rounds;
                }
                Stage::Reduce { .. } | Stage::Project { .. } => self.flush(),
                Stage::Fixpoint { .. } => {
                    self.flush();
                    self.open = Some(Passes { rule: Rule::AtOnce, rounds: 1 });
                    self.flush();
                    self.is_search = true;
                }
                Stage::Until { stages, .. } => {
                    self.add(stages);
                    self.is_open = true;
                }
            }
        }
    }

    fn flush(&mut self) {
        self.walks.extend(self.open.take());
    }
}
