//! Which host has which tasks.
//!
//! A partition decides where updates run and how much is sent, never what comes out: tasks, order and sums are those of the whole
//! mesh.

use crate::engine::HostReport;
use crate::error::{Error, Result};
use crate::layout::{Domain, Layout, Share, Shares, Tile};
use meshweft_mesh::{Cut, Partition};
use meshweft_net::Host;

/// How hosts would share a mesh: what [`AnySimulation::shares`](crate::AnySimulation::shares) finds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sharing {
    /// What each host would have. Nothing has been done yet, so times and what was sent are zero.
    pub hosts: Vec<HostReport>,
    /// The host of each vertex of the mesh, counted from 1: shape `[vertices]`.
    pub owners: Vec<u32>,
}

/// Hosts of which each has as much as any other.
///
/// # Errors
/// No hosts, or more than a run may have.
pub(crate) fn even(hosts: u32) -> Result<Vec<f64>> {
    /// More is surely a typo.
    const MOST: u32 = 1024;
    if hosts == 0 || hosts > MOST {
        return Err(Error::Invalid(format!("{hosts} hosts: take 1 to {MOST}")));
    }
    Ok(vec![1.0; hosts as usize])
}

/// How hosts would share a layout. `parts`: how much each is to have, all together.
///
/// # Errors
/// Those of [`partition`].
pub(crate) fn sharing(layout: &Layout, points: &[[f64; 3]], parts: &[f64], cut: Cut) -> Result<Sharing> {
    let hosts = parts.len() as u32;
    let of_tasks = partition(layout, points, parts, cut)?;
    let owners = hosts_of_vertices(layout, &of_tasks);
    let grid = cut.grid(hosts)?.filter(|_| !layout.searched.is_empty());
    let shares = Shares::new(layout, &of_tasks, hosts as usize, grid);
    Ok(Sharing { hosts: (0..hosts).map(|share| report(share + 1, &shares.domain(share))).collect(), owners })
}

/// The host of each vertex of the mesh, from the share of each task.
pub(super) fn hosts_of_vertices(layout: &Layout, of_tasks: &[u32]) -> Vec<Host> {
    let mut hosts = vec![0; layout.places.len()];
    for (places, share) in layout.schedule.tasks().windows(2).zip(of_tasks) {
        (places[0]..places[1]).for_each(|place| hosts[layout.vertex_at(place) as usize] = share + 1);
    }
    hosts
}

/// What a host has of the mesh.
pub(super) fn report(host: Host, domain: &Domain) -> HostReport {
    let Share { ghosts, links, .. } = domain.share.as_ref().expect("it is one");
    let sent = || links.iter().flat_map(|link| &link.sent);
    let mut boundary: Vec<u32> = sent().flat_map(|sent| &sent.1).copied().collect();
    let round_bytes = boundary.len() * domain.shape.shared * domain.precision.bytes();
    boundary.sort_unstable();
    boundary.dedup();
    HostReport {
        host,
        vertices: domain.along_curve.len(),
        tasks: ghosts.iter().filter(|ghost| ghost.is_empty()).count(),
        boundary: boundary.len(),
        ghosts: ghosts.iter().map(|ghost| ghost.len()).sum(),
        neighbors: links.iter().map(|link| link.with + 1).collect(),
        round_messages: sent().count() as u64,
        round_bytes: round_bytes as u64,
        ..HostReport::default()
    }
}

/// The part of each task, `0..parts`: shape [tasks]. `points`: those of the mesh; `weights`: how much each part is to have of it,
/// all together.
///
/// Runs of the curve are cut by what an update of each task reads and writes, and tasks are dealt to a grid by the same; bisection takes
/// tasks as points, and parts that weigh the same. Depends on the arguments alone.
///
/// # Errors
/// Points that are not finite; bisection of parts that do not weigh the same.
pub(super) fn partition(layout: &Layout, points: &[[f64; 3]], weights: &[f64], cut: Cut) -> Result<Vec<u32>> {
    let parts = weights.len();
    let order = layout.schedule.permutation().order();
    let tasks = layout.schedule.tasks();
    let places = |t: usize| tasks[t] as usize..tasks[t + 1] as usize;
    // Where the middle of each task lies along the curve.
    let middle = |t: usize| {
        let numbers = places(t).map(|place| u64::from(order[place]));
        let mean = numbers.sum::<u64>() as f64 / places(t).len().max(1) as f64;
        // Parts lie beside each other: a coarse vertex goes where fine ones around it do.
        let of = layout.part_of(t as u32) as usize;
        let [start, end] = [layout.parts[of][1], layout.parts[of + 1][1]].map(f64::from);
        if layout.parts.len() == 2 { mean } else { (mean - start) / (end - start).max(1.0) }
    };
    let middles: Vec<f64> = (0..layout.graph.len()).map(middle).collect();
    let mut along: Vec<usize> = (0..middles.len()).collect();
    along.sort_by(|&a, &b| middles[a].total_cmp(&middles[b]).then(a.cmp(&b)));
    let mut owners = vec![0; along.len()];
    if cut == Cut::Bisection && parts > 1 {
        if weights.iter().any(|weight| *weight != weights[0]) {
            return Err(Error::Invalid(
                "bisection makes equal parts: cut along the curve for parts that are not".into(),
            ));
        }
        // Numbered along the curve, as bisection likes it.
        let centers: Vec<[f64; 3]> = along.iter().map(|&t| center(layout, points, places(t))).collect();
        let numbers = meshweft_mesh::Permutation::from_order(along.iter().map(|&t| t as u32).collect())?;
        let partition = Partition::new(&layout.graph.permuted(&numbers), &centers, parts, cut)?;
        along.iter().zip(partition.owners()).for_each(|(&t, &owner)| owners[t] = owner);
        return Ok(owners);
    }
    let costs: Vec<f64> = (0..along.len()).map(|t| cost(layout, t)).collect();
    if let Cut::Grid(_) = cut {
        // The largest first, each to who has least: as when cards are dealt that are not all alike.
        along.sort_by(|&a, &b| costs[b].total_cmp(&costs[a]));
        let mut loads = vec![0.0; parts];
        for t in along {
            let load = |part: &usize| (loads[*part] + costs[t]) / weights[*part];
            let least = (0..parts).min_by(|a, b| load(a).total_cmp(&load(b))).unwrap_or(0);
            loads[least] += costs[t];
            owners[t] = least as u32;
        }
        return Ok(owners);
    }
    let total: f64 = costs.iter().sum();
    // Where parts end, of the whole.
    let all: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let ends: Vec<f64> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            sum / all
        })
        .collect();
    let mut before = 0.0;
    for t in along {
        // By its middle: a task goes where most of it lies.
        let share = (before + 0.5 * costs[t]) / total.max(f64::MIN_POSITIVE);
        owners[t] = ends.partition_point(|&end| end <= share).min(parts - 1) as u32;
        before += costs[t];
    }
    Ok(owners)
}

/// Bytes that an update of a task moves.
fn cost(layout: &Layout, t: usize) -> f64 {
    let (tiles, shape) = (layout.tiles_of(t..t + 1), layout.shape);
    let state =
        layout.slots_of_tiles(tiles.clone()).len() * (shape.shared + 2 * shape.private) * layout.precision.bytes();
    let rows: usize = layout.tiles[tiles].iter().map(Tile::bytes).sum();
    (rows + state) as f64
}

fn center(layout: &Layout, points: &[[f64; 3]], places: std::ops::Range<usize>) -> [f64; 3] {
    let count = places.len().max(1) as f64;
    let mut sum = [0.0; 3];
    for place in places {
        let v = layout.vertex_at(place as u32) as usize;
        let point = points.get(v).unwrap_or_else(|| &layout.beside[v - points.len()]);
        (0..3).for_each(|i| sum[i] += point[i] / count);
    }
    sum
}
