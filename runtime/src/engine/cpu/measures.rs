//! How a measure goes through the state.
//!
//! What is measured of a vertex is needed once, when its leaf of the tree is combined. Where the vertices of leaves lie in few tiles,
//! as in orders that keep to the curve, a thread measures those and combines the leaves before it goes on: values never leave its
//! cache. Elsewhere all tiles come first.

use super::tile::Visit;
use super::walk::Ground;
use super::{Cpu, table};
use crate::engine::code::{Code, MeasureTile};
use crate::engine::reduce::{self, Leaf, Reduction, SOME};
use crate::layout::Domain;
use crate::number::{Lanes, Number};
use crate::program::{Combine, Uniform};
use crate::schedule::Rule;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Of each part, the tiles in which its vertices are.
    tiles: Vec<Vec<u32>>,
    /// Of each vertex along the curve, its place among the slots of the tiles of its part.
    places: Vec<u32>,
}

impl Measures {
    /// Cost O(vertices).
    pub(super) fn new<T: Number>(domain: &Domain<T>, threads: usize) -> Measures {
        let leaves = reduce::leaves(domain);
        let some = (leaves.len() / (PARTS_A_THREAD * threads)).clamp(1, SOME);
        let parts = (leaves.len() >= threads).then(|| Parts::new(domain, leaves.chunks(some))).flatten();
        Measures { leaves: leaves.into(), some, parts: parts.map(Arc::new) }
    }
}

impl Parts {
    fn new<'a, T: Number>(domain: &Domain<T>, parts: impl Iterator<Item = &'a [Leaf]>) -> Option<Parts> {
        let most = (SLOTS_A_VERTEX * domain.along_curve.len() as f64) as usize;
        let mut tile_of = vec![0; domain.slots() / domain.width];
        for (tile, number) in domain.tiles.iter().zip(0..) {
            let own = tile.own();
            tile_of[own.start / domain.width..own.end / domain.width].fill(number);
        }
        let mut found = Parts { tiles: Vec::new(), places: Vec::with_capacity(domain.along_curve.len()) };
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
        Some(found)
    }
}

/// One measure under way.
struct Look<T> {
    ground: Arc<Ground<T>>,
    measure: MeasureTile<T>,
    uniform: Uniform<T>,
    /// Which array holds the shared state.
    source: usize,
}

impl<T: Number> Look<T> {
    /// Measures a tile. `values`: one for each of its slots.
    fn tile(&self, tile: usize, values: &mut [T]) {
        let (Ground { domain, memory, .. }, uniform) = (&*self.ground, &self.uniform);
        let visit = Visit { domain, memory, uniform, audit: None, rule: Rule::Alone, round: 0, source: self.source };
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

impl<T: Number> Cpu<T> {
    pub(super) fn reduction(&mut self, code: Code<T>, uniform: Uniform<T>) -> Reduction {
        let Code::Measure { how, tile, .. } = code else { unreachable!("only measures measure") };
        let kind = tile[0] as usize as u64;
        let (ground, threads) = (self.ground.clone(), self.team.threads());
        let measure = tile[usize::from(ground.domain.width == T::Full::WIDTH)];
        let look = Arc::new(Look { ground: ground.clone(), measure, uniform, source: self.current });
        let Measures { leaves, some, parts } =
            self.measures.get_or_insert_with(|| Measures::new(&ground.domain, threads)).clone();
        let found = leaves.iter().map(|_| AtomicU64::new(0)).collect();
        let sums = Arc::new(Sums { leaves, some, found });
        let own = sums.clone();
        if let Some(parts) = parts {
            self.each(kind, sums.parts(), move |i| own.part(i, |leaves| look.part(how, &parts, i, leaves)));
        } else {
            let all = look.clone();
            self.each(kind, ground.domain.tiles.len(), move |i| {
                let slots = all.ground.domain.tiles[i].own();
                table::with(&table::VALUES, slots.len(), |values| {
                    all.tile(i, values);
                    all.ground.memory.measured(slots.start, values);
                });
            });
            self.each(u64::MAX, sums.parts(), move |i| {
                let Ground { domain, memory, .. } = &*look.ground;
                let values = memory.values();
                let value = |member: usize| values[domain.along_curve[member] as usize].to_f64();
                own.part(i, |leaves| reduce::some_leaves(how, value, leaves));
            });
        }
        let Ground { domain, memory, .. } = &*ground;
        Reduction::new(how, domain, sums.found(), |slot| memory.values()[slot].to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::Measure;
    use crate::engine::cpu::stress::{Case, Mixing, SUM};
    use crate::engine::interpreter::Host;
    use crate::engine::{Serial, Table};
    use crate::number::Int;
    use crate::schedule::{Key, Order};

    #[test]
    fn leaves_are_combined_where_they_were_measured_if_they_lie_in_few_tiles() {
        let n = 70_000;
        let near = |v: u32| [[v, (v + 1) % n], [v, (v + 300) % n]];
        let edges: Vec<[u32; 2]> = (0..n).flat_map(near).collect();
        let table = Table::<Int>::of::<Mixing>();
        let measure = || {
            let uniform =
                Uniform { parameters: vec![], globals: vec![Int(0); 2], settings: [Int(0); 4], step: 0, draw: 0 };
            Measure { kernel: SUM, code: table.kernels[SUM].code, uniform }
        };
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
