//! Plans, read as a device would read them, without one.

use super::*;
use crate::layout::data_graph;
use crate::program::{Incidence, Real, Star, Stars};
use crate::schedule::{Order as Name, Schedule};
use meshweft_mesh::generate::generate;
use meshweft_mesh::{CellKind, Cells, Curve, Mesh};

struct Edges;
impl Star<1> for Edges {
    const INDEX: usize = 0;
    type Data<R: Real> = R;
}

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

fn layout(mesh: &Mesh, order: Name, block_size: usize, width: usize) -> (Layout<f32>, Graph) {
    let numbers = Curve::default().order(mesh.points());
    let mut stars = Stars::default();
    stars.add(Edges, mesh.edges(), |i: Incidence<2>| f64::from(i.vertices[1]));
    let graph = data_graph(&numbers, &stars.plans).unwrap();
    let schedule = Schedule::new(&graph, order, block_size).unwrap();
    let graph = graph.permuted(schedule.permutation());
    (Layout::new(schedule, &numbers, stars.plans, width).unwrap(), graph)
}

const LIMITS: Limits =
    Limits { binding_bytes: 1 << 30, workgroup_bytes: 32 << 10, invocations: 256, shared: 1, private: 1 };

/// When each place is updated: by dispatch, workgroup there, and run in the workgroup. Lanes that are clones are left out.
fn times<T: Number>(layout: &Layout<T>, plan: &Plan, visits: &[Visit]) -> Vec<Vec<(usize, u32, u32)>> {
    let mut times = vec![Vec::new(); layout.places.len()];
    let mut note = |slot: u32, time: (usize, u32, u32)| {
        let place = layout.place(slot as usize);
        if layout.slot_at(place as u32) == slot as usize {
            times[place].push(time);
        }
    };
    for (number, visit) in visits.iter().enumerate() {
        let chunk = &plan.chunks[visit.chunk];
        let word = |at: u32| chunk.words[at as usize];
        match &visit.what {
            // Any invocation may be in any workgroup, so each counts as one of its own.
            What::Slots(slots) => slots.clone().for_each(|slot| note(slot, (number, slot, 0))),
            What::Tasks(tasks) => {
                for task in tasks.clone() {
                    let mut run = 0;
                    for tile in word(chunk.facts[TASKS] + task)..word(chunk.facts[TASKS] + task + 1) {
                        let at = chunk.facts[TILES] + tile * TILE_WORDS as u32;
                        for i in 0..word(at + 5) {
                            for slot in word(word(at + 4) + i)..word(word(at + 4) + i + 1) {
                                note(slot, (number, task, run));
                            }
                            run += 1;
                        }
                    }
                }
            }
        }
    }
    times
}

#[test]
fn visits_reach_every_vertex_once_and_neighbors_in_order() {
    let mesh = mesh();
    let total = mesh.points().len();
    for order in Name::ALL {
        for (block_size, width) in [(40, 8), (7, 16), (100_000, 32)] {
            for binding_bytes in [1 << 30, 64 << 10] {
                let (layout, graph) = layout(&mesh, order, block_size, width);
                let plan = match Plan::new(&layout, &Limits { binding_bytes, ..LIMITS }) {
                    Ok(plan) => plan,
                    // What cannot be cut says so.
                    Err(error) => {
                        let whole = order == Name::PriorityDag || (order == Name::Blocked && block_size == 100_000);
                        assert!(binding_bytes < 1 << 30 && whole, "{order}: {error}");
                        continue;
                    }
                };
                let what = format!("{order}, blocks of {block_size}, width {width}, {} chunks", plan.chunks.len());
                for chunk in &plan.chunks {
                    assert!(chunk.words.len() * 4 <= binding_bytes as usize, "{what}");
                }
                for visits in [&plan.all, &plan.each] {
                    let times = times(&layout, &plan, visits);
                    assert!(times.iter().all(|times| times.len() == 1), "{what}");
                }
                let Round::Visits(visits) = &plan.sweep else { continue };
                let times = times(&layout, &plan, visits);
                assert_eq!(times.iter().filter(|times| times.len() == 1).count(), total, "{what}");
                if layout.schedule.is_double_buffered() {
                    continue;
                }
                for v in 0..total as u32 {
                    for &u in graph.neighbors(v).iter().filter(|&&u| u < v) {
                        let ((d, g, r), (e, h, s)) = (times[u as usize][0], times[v as usize][0]);
                        assert!(d < e || (d == e && g == h && r < s), "{what}: {u} before {v}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_sweep_of_blocks_takes_a_dispatch_a_color() {
    let mesh = generate("box:16", 1).unwrap();
    let (layout, _) = layout(&mesh, Name::Blocked, 64, 8);
    let plan = Plan::new(&layout, &LIMITS).unwrap();
    let Round::Visits(visits) = &plan.sweep else { panic!("blocks are visited") };
    let Order::Tasks { graph, .. } = layout.schedule.plan() else { panic!("blocks are tasks") };
    let colors = meshweft_mesh::Coloring::balanced(graph).count();
    assert!(visits.len() <= colors, "{} dispatches, {colors} colors", visits.len());
    assert!(plan.harness.table.is_some());
    let small = Plan::new(&layout, &Limits { workgroup_bytes: 256, ..LIMITS }).unwrap();
    assert!(small.harness.table.is_none(), "a table that does not fit is left out");
}

#[test]
fn waves_are_the_longest_chain() {
    let path = Graph::from_edges(4, &[[0, 1], [1, 2], [2, 3]]).unwrap();
    // Round by round the chain moves on by two: 0 waits for 1, which has just waited for 0.
    assert_eq!([waves(&path, 0), waves(&path, 1), waves(&path, 2), waves(&path, 3)], [0, 4, 6, 8]);
    assert_eq!(waves(&Graph::from_edges(3, &[]).unwrap(), 5), 5);
}
