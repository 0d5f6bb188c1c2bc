//! Which host has which tasks.
//!
//! A partition decides where updates run and how much is sent, never what comes out: tasks, order and sums are those of the whole
//! mesh.

use crate::error::Result;
use crate::layout::{Layout, Tile};
use crate::number::Number;
use meshweft_mesh::{Cut, Partition};

/// The part of each task, `0..parts`: shape [tasks]. `points`: those of the mesh.
///
/// Runs of the curve are cut where they cost the same, by what an update of each task reads and writes; bisection takes
/// tasks as points. Depends on the arguments alone.
///
/// # Errors
/// Points that are not finite.
pub(super) fn partition<T: Number>(
    layout: &Layout<T>,
    points: &[[f64; 3]],
    parts: usize,
    cut: Cut,
) -> Result<Vec<u32>> {
    let order = layout.schedule.permutation().order();
    let tasks = layout.schedule.tasks();
    let places = |t: usize| tasks[t] as usize..tasks[t + 1] as usize;
    // Where the middle of each task lies along the curve.
    let middle = |t: usize| {
        let numbers = places(t).map(|place| u64::from(order[place]));
        numbers.sum::<u64>() as f64 / places(t).len().max(1) as f64
    };
    let middles: Vec<f64> = (0..layout.graph.len()).map(middle).collect();
    let mut along: Vec<usize> = (0..middles.len()).collect();
    along.sort_by(|&a, &b| middles[a].total_cmp(&middles[b]).then(a.cmp(&b)));
    let mut owners = vec![0; along.len()];
    if cut == Cut::Bisection && parts > 1 {
        // Numbered along the curve, as bisection likes it.
        let centers: Vec<[f64; 3]> = along.iter().map(|&t| center(layout, points, places(t))).collect();
        let numbers = meshweft_mesh::Permutation::from_order(along.iter().map(|&t| t as u32).collect())?;
        let partition = Partition::new(&layout.graph.permuted(&numbers), &centers, parts, cut)?;
        along.iter().zip(partition.owners()).for_each(|(&t, &owner)| owners[t] = owner);
        return Ok(owners);
    }
    let costs: Vec<f64> = (0..along.len()).map(|t| cost(layout, t)).collect();
    let total: f64 = costs.iter().sum();
    let mut before = 0.0;
    for t in along {
        // By its middle: a task goes where most of it lies.
        let share = (before + 0.5 * costs[t]) / total.max(f64::MIN_POSITIVE);
        owners[t] = ((share * parts as f64) as usize).min(parts - 1) as u32;
        before += costs[t];
    }
    Ok(owners)
}

/// Bytes that an update of a task moves.
fn cost<T: Number>(layout: &Layout<T>, t: usize) -> f64 {
    let (tiles, shape) = (layout.tiles_of(t..t + 1), layout.shape);
    let state = layout.slots_of_tiles(tiles.clone()).len() * (shape.shared + 2 * shape.private) * T::BYTES;
    let rows: usize = layout.tiles[tiles].iter().map(Tile::bytes).sum();
    (rows + state) as f64
}

fn center<T: Number>(layout: &Layout<T>, points: &[[f64; 3]], places: std::ops::Range<usize>) -> [f64; 3] {
    let count = places.len().max(1) as f64;
    let mut sum = [0.0; 3];
    for place in places {
        let point = points[layout.vertex_at(place as u32) as usize];
        (0..3).for_each(|i| sum[i] += point[i] / count);
    }
    sum
}
