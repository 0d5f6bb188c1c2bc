//! A witness that watches every update of a run.

use meshweft_mesh::Graph;
use meshweft_schedule::Rule;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Counts the updates of every vertex, and checks at each update that the neighbors stand where the order wants them
/// [C7]: those before the vertex have been updated once more than it, those after it as often.
pub(crate) struct Audit {
    /// The data graph, numbered by the order: neighbors of lower number are predecessors.
    graph: Graph,
    /// What changing stars join at the moment, numbered likewise.
    changing: RwLock<Graph>,
    counts: Vec<AtomicU32>,
    /// The first breach: neighbor + 1 in the upper half, vertex in the lower; 0 for none.
    breach: AtomicU64,
    /// Rounds of projections that were asked for, if it watches elements.
    rounds: AtomicU32,
    /// By star, those of elements that are projected.
    pub(crate) elements: BTreeMap<usize, Arc<Audit>>,
}

impl Audit {
    pub(crate) fn new(graph: Graph) -> Audit {
        let counts = (0..graph.len()).map(|_| AtomicU32::new(0)).collect();
        let changing = RwLock::new(joined(graph.len(), &[]));
        Audit {
            graph,
            changing,
            counts,
            breach: AtomicU64::new(0),
            rounds: AtomicU32::new(0),
            elements: BTreeMap::new(),
        }
    }

    /// The same with one for the elements of each star that are projected, of a graph that is numbered likewise.
    pub(crate) fn with_elements(self, graphs: BTreeMap<usize, Graph>) -> Audit {
        let elements = graphs.into_iter().map(|(star, graph)| (star, Arc::new(Audit::new(graph)))).collect();
        Audit { elements, ..self }
    }

    /// Elements will be projected in so many rounds more.
    pub(crate) fn expect(&self, rounds: u32) {
        self.rounds.fetch_add(rounds, Ordering::AcqRel);
    }

    /// Rounds in which elements were to be projected so far.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Acquire)
    }

    /// Replaces what changing stars join: pairs of places in the order.
    pub(crate) fn renew(&self, pairs: &[[u32; 2]]) {
        *self.changing.write().unwrap_or_else(PoisonError::into_inner) = joined(self.graph.len(), pairs);
    }

    /// Sets all counts, after a walk that panicked in the middle.
    pub(crate) fn recount(&self, rounds: u32) {
        self.counts.iter().for_each(|count| count.store(rounds, Ordering::Release));
        self.elements.values().for_each(|elements| elements.recount(elements.rounds()));
    }

    /// Called before the update of some vertices without an edge between them.
    pub(crate) fn before(&self, rule: Rule, vertices: impl Iterator<Item = usize>) {
        if rule != Rule::AtOnce {
            vertices.for_each(|v| self.check(rule, v));
        }
    }

    /// Called after it: unless double-buffered, their neighbors must stand as before.
    pub(crate) fn after(&self, rule: Rule, vertices: impl Iterator<Item = usize> + Clone) {
        self.before(rule, vertices.clone());
        vertices.for_each(|v| _ = self.counts[v].fetch_add(1, Ordering::AcqRel));
    }

    /// Called where some vertices in sequence would have come to what they are.
    pub(crate) fn left_out(&self, rule: Rule, vertices: impl Iterator<Item = usize>) {
        let mut vertices: Vec<usize> = vertices.collect();
        if rule == Rule::Backward {
            vertices.reverse();
        }
        for v in vertices {
            self.before(rule, std::iter::once(v));
            self.after(rule, std::iter::once(v));
        }
    }

    fn check(&self, rule: Rule, v: usize) {
        let own = self.counts[v].load(Ordering::Acquire);
        let changing = self.changing.read().unwrap_or_else(PoisonError::into_inner);
        for &u in self.graph.neighbors(v as u32).iter().chain(changing.neighbors(v as u32)) {
            let expected = own + u32::from(rule.puts_first(u, v as u32));
            if self.counts[u as usize].load(Ordering::Acquire) != expected {
                let breach = (u64::from(u) + 1) << 32 | v as u64;
                let _ = self.breach.compare_exchange(0, breach, Ordering::AcqRel, Ordering::Acquire);
            }
        }
    }

    /// The first pair of vertex and neighbor, as places in memory, that were updated out of order.
    pub(crate) fn breach(&self) -> Option<(u32, u32)> {
        let breach = self.breach.load(Ordering::Acquire);
        (breach != 0).then(|| (breach as u32, (breach >> 32) as u32 - 1))
    }

    /// The first vertex that has not been updated `expected` times, with its count.
    pub(crate) fn miscounted(&self, expected: u32) -> Option<(usize, u32)> {
        let counts = self.counts.iter().map(|c| c.load(Ordering::Acquire));
        counts.enumerate().find(|&(_, count)| count != expected)
    }
}

fn joined(vertices: usize, pairs: &[[u32; 2]]) -> Graph {
    Graph::from_edges(vertices, pairs).expect("vertices are numbered by the order")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_counts_are_watched() {
        let path = Graph::from_edges(3, &[[0, 1], [1, 2]]).unwrap();
        let watch = |rule: Rule, vertices: &[usize]| {
            let audit = Audit::new(path.clone());
            for &v in vertices {
                audit.before(rule, std::iter::once(v));
                audit.after(rule, std::iter::once(v));
            }
            audit
        };
        let good = watch(Rule::InOrder, &[0, 1, 2]);
        assert_eq!((good.breach(), good.miscounted(1), good.miscounted(2)), (None, None, Some((0, 1))));
        assert_eq!(watch(Rule::Backward, &[2, 1, 0]).breach(), None);
        assert_eq!(watch(Rule::Backward, &[0, 1, 2]).breach(), Some((0, 1)));
        assert_eq!(watch(Rule::InOrder, &[0, 2, 1]).breach(), Some((2, 1)));
        assert_eq!(watch(Rule::InOrder, &[0, 1]).miscounted(1), Some((2, 0)));
        let with_pair = Audit::new(path);
        with_pair.renew(&[[0, 2]]);
        with_pair.before(Rule::InOrder, [1, 2].into_iter());
        assert_eq!(with_pair.breach(), Some((1, 0)));
    }
}
