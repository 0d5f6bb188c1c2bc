//! Plans, read as a device would read them, without one.

use super::*;
use crate::layout::{Forms, Layout, Shape, data_graph};
use crate::number::Precision;
use crate::program::{Incidence, Stars};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells, Curve, Mesh};
use meshweft_schedule::{Schedule, is_ready};
use meshweft_shaders::layout as shaders;

crate::stars! { Edges[1]: R; }

/// A ball of tets, and a fan whose hub is updated by itself.
fn mesh() -> Mesh {
    let ball = generate("ball:24", 1).unwrap();
    let mut points = ball.points().to_vec();
    let mut corners: Vec<u32> = ball.edges().into_flattened();
    let hub = points.len() as u32;
    points.extend((0..300).map(|i| [2.0 + f64::from(i) * 0.01, f64::from(i % 7), 0.0]));
    corners.extend((1..300).flat_map(|i| [hub, hub + i]));
    Mesh::new(points, Cells::of(CellKind::Edge, corners)).unwrap()
}

/// A layout, and the graph of its vertices by their places.
fn layout(mesh: &Mesh, order: Order, grain: u32, width: usize) -> (Layout, Graph) {
    let numbers = Curve::default().order(mesh.points());
    let mut stars = Stars::default();
    stars.add(Edges, mesh.edges(), |i: Incidence<2>| f64::from(i.vertices[1]));
    let graph = data_graph(&numbers, &stars.plans).unwrap();
    let schedule = Schedule::new(&graph, order, grain).unwrap();
    let graph = graph.permuted(schedule.permutation());
    (
        Layout::new(
            schedule,
            &numbers,
            &stars.plans,
            Precision::F32,
            Shape { width, shared: 1, private: 1 },
            Forms::Tables,
        )
        .unwrap(),
        graph,
    )
}

const LIMITS: Limits = Limits { binding_bytes: 1 << 30, workgroup_bytes: 32 << 10, invocations: 256 };

/// What the workgroups of a dispatch update, run after run, as slots.
fn work(plan: &Plan, dispatch: &Dispatch) -> Vec<Vec<Vec<u32>>> {
    let chunk = &plan.chunks[dispatch.chunk];
    let range = shaders::Range::from_words(&plan.ranges[dispatch.range as usize]);
    let all = range.first..range.end;
    if dispatch.entry == Entry::Phase {
        // Any invocation may be in any workgroup, so each counts as one of its own.
        return all.map(|slot| vec![vec![slot]]).collect();
    }
    let word = |at: u32| chunk.words[at as usize];
    let walk = |at: u32| {
        let task = if range.listed != 0 { plan.list[at as usize] } else { at };
        let tile = |number: u32| {
            let words = &chunk.words[range.tiles as usize + number as usize * shaders::Tile::WORDS..];
            let tile = shaders::Tile::from_words(&words[..shaders::Tile::WORDS]);
            (0..tile.run_count).map(move |run| (tile.runs + run, tile))
        };
        let tiles = word(range.tasks + task)..word(range.tasks + task + 1);
        let mut runs: Vec<Vec<u32>> =
            tiles.flat_map(tile).map(|(run, _)| (word(run)..word(run + 1)).collect()).collect();
        if range.backward != 0 {
            runs.reverse();
        }
        runs
    };
    all.map(walk).collect()
}

/// Runs the dispatches of some rounds, with the inequality instead of updates: every vertex must be ready whatever the other
/// workgroups of its dispatch have done by then.
fn replay(layout: &Layout, graph: &Graph, plan: &mut Plan, rule: Rule, rounds: u32, what: &str) {
    let mut epochs = vec![0u32; graph.len()];
    let mut left = rounds;
    while left > 0 {
        let walk = plan.walk(layout, (None, rule, left));
        left -= walk.rounds;
        for dispatch in &walk.dispatches {
            let before = epochs.clone();
            let mut group_of = vec![None; graph.len()];
            for (group, runs) in work(plan, dispatch).iter().enumerate() {
                for run in runs {
                    // Padding lanes are left out.
                    let places = run.iter().map(|&slot| layout.place(slot as usize) as u32);
                    let places: Vec<u32> = places
                        .zip(run)
                        .filter(|&(p, &s)| layout.slot(layout.vertex_at(p)) == s as usize)
                        .map(|(p, _)| p)
                        .collect();
                    for &place in &places {
                        // Of other workgroups it may see the state before the dispatch.
                        let seen = |u: u32| {
                            if group_of[u as usize] == Some(group) { epochs[u as usize] } else { before[u as usize] }
                        };
                        assert!(rule == Rule::Alone || is_ready(graph, place, rule, seen), "{what}: {place} is early");
                    }
                    for &place in &places {
                        epochs[place as usize] += 1;
                        group_of[place as usize] = Some(group);
                    }
                    // In place, nobody else may write what a run reads.
                    let together = |&place: &u32| graph.neighbors(place).iter().any(|u| places.contains(u));
                    let in_place = matches!(rule, Rule::InOrder | Rule::Backward);
                    assert!(
                        !in_place || run.len() > 512 || !places.iter().any(together),
                        "{what}: a run holds an edge"
                    );
                }
            }
            if matches!(rule, Rule::InOrder | Rule::Backward) {
                for place in 0..graph.len() {
                    let own = group_of[place];
                    let apart = |&u: &u32| group_of[u as usize].is_some() && group_of[u as usize] != own;
                    let clash = own.is_some() && graph.neighbors(place as u32).iter().any(apart);
                    assert!(!clash, "{what}: {place} has a neighbor in another workgroup of its dispatch");
                }
            }
        }
    }
    assert!(epochs.iter().all(|&epoch| epoch == rounds), "{what}: some vertex is left out, or comes twice");
}

#[test]
fn the_dispatches_of_every_order_and_rule_keep_the_inequality() {
    let mesh = mesh();
    for order in Order::ALL {
        for (grain, width) in [(40, 8), (7, 16), (100_000, 32)] {
            for binding_bytes in [1 << 30, 96 << 10] {
                let (layout, graph) = layout(&mesh, order, grain, width);
                let mut plan = match Plan::new(&layout, &Limits { binding_bytes, ..LIMITS }) {
                    Ok(plan) => plan,
                    // What cannot be cut says so.
                    Err(error) => {
                        let is_one = super::is_walked(&layout) && grain == 100_000;
                        assert!(binding_bytes < 1 << 30 && is_one, "{order}: {error}");
                        continue;
                    }
                };
                let what = format!("{order}, tasks of {grain}, width {width}, {} chunks", plan.chunks.len());
                for chunk in &plan.chunks {
                    assert!(chunk.words.len() * 4 <= binding_bytes as usize, "{what}");
                }
                for rounds in [1, 3] {
                    for rule in [Rule::Alone, Rule::AtOnce, Rule::InOrder, Rule::Backward] {
                        // Under jacobi, a recorded step has no rounds in order.
                        if order == Order::JACOBI && matches!(rule, Rule::InOrder | Rule::Backward) {
                            continue;
                        }
                        replay(&layout, &graph, &mut plan, rule, rounds, &format!("{what}, {rule:?}"));
                    }
                }
            }
        }
    }
}

#[test]
fn a_sweep_of_blocks_takes_a_dispatch_a_color() {
    let mesh = generate("box:16", 1).unwrap();
    let (layout, _) = layout(&mesh, Order::BLOCKED, 64, 8);
    let mut plan = Plan::new(&layout, &LIMITS).unwrap();
    let colors = meshweft_mesh::Coloring::balanced(layout.schedule.graph()).count();
    let dispatches = plan.walk(&layout, (None, Rule::InOrder, 1)).dispatches.len();
    assert!(dispatches <= colors, "{dispatches} dispatches, {colors} colors");
    assert!(plan.harness.table.is_some());
    let small = Plan::new(&layout, &Limits { workgroup_bytes: 256, ..LIMITS }).unwrap();
    assert!(small.harness.table.is_none(), "a table that does not fit is left out");
}

#[test]
fn small_waves_in_sequence_are_one_dispatch() {
    let mesh = generate("box:16", 1).unwrap();
    let (layout, _) = layout(&mesh, Order::LEVEL_COLOR, 64, 8);
    let mut plan = Plan::new(&layout, &LIMITS).unwrap();
    let (dispatches, waves) = (plan.walk(&layout, (None, Rule::InOrder, 1)).dispatches.len(), layout.waves().len());
    assert!(4 * dispatches < waves, "{dispatches} dispatches of {waves} waves");
}

#[test]
fn rounds_overlap_as_far_as_the_longest_chain_allows() {
    let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]]).unwrap();
    for rule in [Rule::InOrder, Rule::Backward] {
        // Round by round the chain moves on by two: 0 waits for 1, which has just waited for 0.
        assert_eq!([0, 1, 2, 3].map(|rounds| waves(&path, rule, rounds).len()), [0, 4, 6, 8]);
    }
    assert_eq!(waves(&Graph::from_edges(3, &[]).unwrap(), Rule::InOrder, 5).len(), 5);
}
