//! How a measure goes through the state.
//!
//! What is measured of a vertex is needed once, when its leaf of the tree is combined. Where the vertices of leaves lie in few tiles,
//! as in orders that keep to the curve, a thread measures those and combines the leaves before it goes on: values never leave its
//! cache. Elsewhere all tiles come first.
//!
//! A measure that looks at no neighbors, right after an update, needs no walk of its own: whoever does the last round of the last task
//! of some leaves measures those.

use super::ground::Ground;
use super::tile::Visit;
use super::{Cpu, table};
use crate::engine::code::{Code, Measure, MeasureTile, Sight};
use crate::engine::reduce::{self, Leaf, Reduction, SOME};
use crate::engine::store::Store;
use crate::engine::touches::Touches;
use crate::layout::Domain;
use crate::number::Number;
use crate::program::{Combine, Uniform};
use meshweft_schedule::Rule;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Slots that may be measured for each vertex that counts: more than one where tiles are in two parts, or have padding.
const SLOTS_A_VERTEX: f64 = 1.3;
/// Parts for each thread, if there are as many: so that none is left with nothing to do for long.
const PARTS_A_THREAD: usize = 4;

/// What there is to combine, and how it is divided.
#[derive(Clone)]
pub(super) struct Measures {
    leaves: Arc<[Leaf]>,
    /// Leaves of a part.
    some: usize,
    /// Where parts find their values, unless those lie in too many tiles.
    parts: Option<Arc<Parts>>,
}

/// Leaves that are measured together.
struct Parts {
    /// Of each part, the tiles in which its vertices are, and how many tasks those belong to.
    tiles: Vec<Vec<u32>>,
    tasks: Vec<u32>,
    /// Where the parts begin that have vertices of a task, for each task and at the end, and these parts.
    starts: Vec<u32>,
    of_tasks: Vec<u32>,
    /// Of each vertex along the curve, its place among the slots of the tiles of its part.
    places: Vec<u32>,
}

impl Measures {
    /// Cost O(vertices).
    pub(super) fn new(domain: &Domain, threads: usize) -> Measures {
        let leaves = reduce::leaves(domain);
        let some = (leaves.len() / (PARTS_A_THREAD * threads)).clamp(1, SOME);
        let parts = (leaves.len() >= threads).then(|| Parts::new(domain, leaves.chunks(some))).flatten();
        Measures { leaves: leaves.into(), some, parts: parts.map(Arc::new) }
    }
}

impl Parts {
    fn new<'a>(domain: &Domain, parts: impl Iterator<Item = &'a [Leaf]>) -> Option<Parts> {
        let most = (SLOTS_A_VERTEX * domain.along_curve.len() as f64) as usize;
        let mut tile_of = vec![0; domain.slots() / domain.width];
        for (tile, number) in domain.tiles.iter().zip(0..) {
            let own = tile.own();
            tile_of[own.start / domain.width..own.end / domain.width].fill(number);
        }
        let places = Vec::with_capacity(domain.along_curve.len());
        let mut found =
            Parts { tiles: Vec::new(), tasks: Vec::new(), starts: Vec::new(), of_tasks: Vec::new(), places };
        let (mut starts, mut all) = (vec![u32::MAX; domain.tiles.len()], 0);
        for part in parts {
            let (mut tiles, mut len) = (Vec::new(), 0);
            for &slot in &domain.along_curve[part[0].members.start..part[part.len() - 1].members.end] {
                let t = tile_of[slot as usize / domain.width];
                let (tile, start) = (&domain.tiles[t as usize], &mut starts[t as usize]);
                if *start == u32::MAX {
                    *start = len as u32;
                    tiles.push(t);
                    len += tile.own().len();
                }
                found.places.push(*start + (slot - tile.slots.start));
            }
            tiles.iter().for_each(|&t| starts[t as usize] = u32::MAX);
            found.tiles.push(tiles);
            all += len;
            if all > most {
                return None;
            }
        }
        found.find_tasks(domain);
        Some(found)
    }

    /// Which parts have vertices of which tasks.
    fn find_tasks(&mut self, domain: &Domain) {
        let count = domain.graph.len();
        let mut task_of = vec![0u32; domain.tiles.len()];
        (0..count).for_each(|t| task_of[domain.tiles_of(t..t + 1)].fill(t as u32));
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (tiles, part) in self.tiles.iter().zip(0..) {
            let mut tasks: Vec<u32> = tiles.iter().map(|&tile| task_of[tile as usize]).collect();
            tasks.sort_unstable();
            tasks.dedup();
            self.tasks.push(tasks.len() as u32);
            pairs.extend(tasks.into_iter().map(|task| (task, part)));
        }
        pairs.sort_unstable();
        let first = |task: usize| pairs.partition_point(|pair| (pair.0 as usize) < task);
        self.starts = (0..=count).map(|task| first(task) as u32).collect();
        self.of_tasks = pairs.into_iter().map(|pair| pair.1).collect();
    }

    /// The parts that have vertices of a task.
    fn of_task(&self, t: u32) -> &[u32] {
        &self.of_tasks[self.starts[t as usize] as usize..self.starts[t as usize + 1] as usize]
    }
}

/// One measure under way.
struct Look<T> {
    ground: Arc<Ground<T>>,
    measure: MeasureTile<T>,
    uniform: Uniform<T>,
    /// Which array holds the shared state.
    source: usize,
    /// Whether it looks at neighbors.
    sees: bool,
}

impl<T: Number> Look<T> {
    /// Measures a tile. `values`: one for each of its slots.
    #[expect(unsafe_code, reason = "opens the state for what the schedule allows")]
    fn tile(&self, tile: usize, values: &mut [T]) {
        let (Ground { domain, memory, .. }, uniform) = (&*self.ground, &self.uniform);
        // SAFETY: a measure only reads. What it reads is written by no one: either all updates are done, or it looks at no
        // neighbors and the last update of its tile's task is done (`Followers`).
        let cells = unsafe { memory.open(self.source, true) };
        let visit = Visit {
            domain,
            cells,
            vertices: cells,
            uniform,
            audit: None,
            rule: Rule::Alone,
            round: 0,
            touches: Touches::ALL,
            sees: self.sees,
        };
        (self.measure)(&visit, &domain.tiles[tile], values);
    }

    /// Measures the tiles of a part and combines its leaves. Values of leaves of which other hosts have some vertices are kept.
    fn part(&self, how: Combine, parts: &Parts, part: usize, leaves: &[Leaf]) -> [f64; SOME] {
        let Ground { domain, memory, .. } = &*self.ground;
        let tiles = parts.tiles[part].iter().map(|&t| (t as usize, domain.tiles[t as usize].own().len()));
        table::with(&table::VALUES, tiles.clone().map(|(_, len)| len).sum(), |values| {
            let mut rest = &mut *values;
            for (tile, len) in tiles {
                let own = rest.split_off_mut(..len).expect("all tiles have room");
                self.tile(tile, own);
            }
            let value = |member: usize| values[parts.places[member] as usize];
            for leaf in leaves.iter().filter(|leaf| !reduce::is_whole(domain, leaf)) {
                leaf.members.clone().for_each(|i| memory.measured(domain.along_curve[i] as usize, &[value(i)]));
            }
            reduce::some_leaves(how, |member| value(member).to_f64(), leaves)
        })
    }
}

/// What leaves have come to, as bits.
struct Sums {
    leaves: Arc<[Leaf]>,
    /// Leaves of a part.
    some: usize,
    found: Vec<AtomicU64>,
}

impl Sums {
    fn new(leaves: Arc<[Leaf]>, some: usize) -> Sums {
        let found = leaves.iter().map(|_| AtomicU64::new(0)).collect();
        Sums { leaves, some, found }
    }

    fn parts(&self) -> usize {
        self.leaves.len().div_ceil(self.some)
    }

    /// Takes down those of a part, which `combine` finds.
    fn part(&self, part: usize, combine: impl FnOnce(&[Leaf]) -> [f64; SOME]) {
        let start = part * self.some;
        let range = start..self.leaves.len().min(start + self.some);
        let sums = combine(&self.leaves[range.clone()]);
        self.found[range].iter().zip(sums).for_each(|(found, sum)| found.store(sum.to_bits(), Ordering::Release));
    }

    fn found(&self) -> impl Iterator<Item = (Leaf, f64)> {
        let found = self.found.iter().map(|sum| f64::from_bits(sum.load(Ordering::Acquire)));
        self.leaves.iter().cloned().zip(found)
    }
}

/// Measures that are taken part by part, as the last of the tasks of each part comes to its end.
pub(super) struct Followers<T> {
    measures: Vec<Follower<T>>,
    parts: Arc<Parts>,
    /// Tasks that each part still waits for.
    left: Vec<AtomicU32>,
}

struct Follower<T> {
    kernel: usize,
    how: Combine,
    look: Look<T>,
    sums: Sums,
}

impl<T: Number> Followers<T> {
    /// A task has done its last round, and nobody changes its state any more.
    pub(super) fn come(&self, t: u32) {
        for &part in self.parts.of_task(t) {
            // Whoever is last sees what all others have written.
            if self.left[part as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                for Follower { how, look, sums, .. } in &self.measures {
                    sums.part(part as usize, |leaves| look.part(*how, &self.parts, part as usize, leaves));
                }
            }
        }
    }

    /// What was measured, by kernel, after the walk.
    #[expect(unsafe_code, reason = "reads what was measured, once that is done")]
    pub(super) fn found(&self) -> Vec<(usize, Reduction)> {
        let found = |Follower { kernel, how, look, sums }: &Follower<T>| {
            let Ground { domain, memory, .. } = &*look.ground;
            // SAFETY: the walk is over, and with it what was measured along.
            let value = |slot: usize| unsafe { memory.values() }[slot].to_f64();
            (*kernel, Reduction::new(*how, domain, sums.found(), value))
        };
        self.measures.iter().map(found).collect()
    }
}

impl<T: Number> Cpu<T> {
    /// What is to be measured along with a walk after which array `source` holds the shared state.
    pub(super) fn followers(&mut self, source: usize) -> Option<Followers<T>> {
        let mut expected = std::mem::take(&mut self.expected);
        if expected.is_empty() {
            return None;
        }
        let Measures { leaves, some, parts } = self.measures();
        let parts = parts?;
        if self.ground.domain.share.is_some() {
            // Values of leaves that other hosts have a part of lie in one place for all measures.
            expected.truncate(1);
        }
        let follower = |measure: Measure<T>| {
            let Measure { kernel, code, uniform } = measure;
            let (how, look) = self.look(code, uniform, source);
            Follower { kernel, how, look, sums: Sums::new(leaves.clone(), some) }
        };
        let measures = expected.into_iter().map(follower).collect();
        let left = parts.tasks.iter().map(|&tasks| AtomicU32::new(tasks)).collect();
        Some(Followers { measures, parts, left })
    }

    fn measures(&mut self) -> Measures {
        let (domain, threads) = (&self.ground.domain, self.team.threads());
        self.measures.get_or_insert_with(|| Measures::new(domain, threads)).clone()
    }

    fn look(&self, code: Code<T>, uniform: Uniform<T>, source: usize) -> (Combine, Look<T>) {
        let Code::Measure { how, sight, tile: measure, .. } = code else { unreachable!("only measures measure") };
        (how, Look { ground: self.ground.clone(), measure, uniform, source, sees: sight == Sight::Around })
    }

    #[expect(unsafe_code, reason = "reads what was measured, once that is done")]
    pub(super) fn reduction(&mut self, code: Code<T>, uniform: Uniform<T>) -> Reduction {
        let (how, look) = self.look(code, uniform, self.current);
        let (kind, look) = (Arc::as_ptr(&look.measure).addr() as u64, Arc::new(look));
        let ground = self.ground.clone();
        let Measures { leaves, some, parts } = self.measures();
        let sums = Arc::new(Sums::new(leaves, some));
        let own = sums.clone();
        if let Some(parts) = parts {
            let part = move |i| own.part(i, |leaves| look.part(how, &parts, i, leaves));
            self.each(kind, sums.parts(), Arc::new(part));
        } else {
            let all = look.clone();
            let tile = move |i: usize| {
                let slots = all.ground.domain.tiles[i].own();
                table::with(&table::VALUES, slots.len(), |values| {
                    all.tile(i, values);
                    all.ground.memory.measured(slots.start, values);
                });
            };
            self.each(kind, ground.domain.tiles.len(), Arc::new(tile));
            let part = move |i| {
                let Ground { domain, memory, .. } = &*look.ground;
                // SAFETY: all tiles were measured by the work before this.
                let values = unsafe { memory.values() };
                let value = |member: usize| values[domain.along_curve[member] as usize].to_f64();
                own.part(i, |leaves| reduce::some_leaves(how, value, leaves));
            };
            self.each(u64::MAX, sums.parts(), Arc::new(part));
        }
        let Ground { domain, memory, .. } = &*ground;
        // SAFETY: all that measures is done.
        Reduction::new(how, domain, sums.found(), |slot| unsafe { memory.values() }[slot].to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::Measure;
    use crate::engine::cpu::stress::{Case, MOST, OWN, STIR, SUM, traced_table};
    use crate::engine::interpreter::{Interpreter, Walker};
    use crate::engine::{Engine, Serial, Table};
    use crate::number::Int;
    use crate::step::{Stage, Step};
    use meshweft_schedule::{Key, Order};

    fn measure(table: &Table<Int>, kernel: usize) -> Measure<Int> {
        let uniform = Uniform { parameters: vec![], globals: vec![Int(0); 2], settings: [Int(0); 4], step: 0, draw: 0 };
        Measure { kernel, code: table.kernels[kernel].code.clone(), uniform }
    }

    #[test]
    fn what_follows_an_update_is_measured_with_it_and_comes_to_the_same() {
        let n = 70_000;
        let edges: Vec<[u32; 2]> = (0..n).flat_map(|v| [[v, (v + 1) % n], [v, (v + 300) % n]]).collect();
        let update =
            |rule, rounds| Stage::Update { kernel: STIR, part: None, settings: [1.0, 0.0, 0.0, 0.0], rule, rounds };
        let reduce = |kernel, into| Stage::Reduce { kernel, settings: [0.0; 4], into };
        // The last of these asks for globals that the one before has just changed, and the first after it for neighbors.
        let stages = |rule| {
            let first = [update(rule, 2), reduce(MOST, 0), reduce(OWN, 1), reduce(MOST, 0)];
            first.into_iter().chain([update(rule, 1), reduce(SUM, 0), reduce(OWN, 1)]).collect::<Vec<_>>()
        };
        let table = Arc::new(traced_table());
        for (order, rule) in [
            (Order::JACOBI, Rule::AtOnce),
            (Order::BLOCKED, Rule::InOrder),
            (Order::BLOCKED, Rule::Backward),
            (Order::LEVEL_COLOR, Rule::InOrder),
        ] {
            let case = Case::new(n as usize, edges.clone(), order, 700);
            let step = Step { number: 0, parameters: Vec::new(), stages: stages(rule) };
            let (plain, state) = case.laid_out(1);
            let mut oracle = Interpreter::new(Serial::new(plain.domain.clone(), state), table.clone(), vec![Int(0); 2]);
            oracle.step(&step).unwrap();
            for (width, threads) in [(1, 1), (8, 1), (8, 2), (16, 3)] {
                let (layout, state) = case.laid_out(width);
                let cpu = Cpu::new(threads, layout.domain.clone(), None, state).unwrap();
                let mut cpu = Interpreter::new(cpu, table.clone(), vec![Int(0); 2]);
                cpu.step(&step).unwrap();
                assert_eq!(cpu.globals().unwrap(), oracle.globals().unwrap(), "{order} {width} {threads}");
                // Where leaves lie in few tiles.
                cpu.walker.expect([MOST, OWN].map(|kernel| measure(&table, kernel)).into());
                let followers = cpu.walker.followers(0).map_or(0, |then| then.measures.len());
                assert_eq!(followers, if order.key == Key::LevelColor { 0 } else { 2 }, "{order} {width} {threads}");
            }
        }
    }

    #[test]
    fn leaves_are_combined_where_they_were_measured_if_they_lie_in_few_tiles() {
        let n = 70_000;
        let near = |v: u32| [[v, (v + 1) % n], [v, (v + 300) % n]];
        let edges: Vec<[u32; 2]> = (0..n).flat_map(near).collect();
        let table = traced_table();
        let measure = || measure(&table, SUM);
        let mut met = [false; 2];
        for order in [Order::JACOBI, Order::BLOCKED, Order { key: Key::Color, ..Order::BLOCKED }] {
            let case = Case::new(n as usize, edges.clone(), order, 700);
            let (plain, state) = case.laid_out(1);
            let oracle = Serial::new(plain.domain.clone(), state).reduce(measure()).unwrap();
            for (width, threads) in [(1, 1), (8, 1), (8, 3), (16, 2), (8, 40)] {
                let (layout, state) = case.laid_out(width);
                let mut cpu = Cpu::new(threads, layout.domain.clone(), None, state).unwrap();
                assert_eq!(cpu.reduce(measure()).unwrap(), oracle, "{order} {width} {threads}");
                let is_near = cpu.measures.unwrap().parts.is_some();
                met[usize::from(is_near)] = true;
                assert!(order.key == Key::Color || is_near == (threads < 40), "{order} {width} {threads}");
            }
        }
        assert_eq!(met, [true; 2]);
    }
}
