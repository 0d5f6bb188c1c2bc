//! A program's stars and state, laid out in the order of a schedule.

use crate::error::{Error, Result};
use crate::program::{Float, Neighbors, Record, Star, StarPlan, own_first};
use crate::schedule::Schedule;
use meshweft_mesh::{Graph, Permutation};
use rayon::prelude::*;

/// Everything of a simulation that does not change from step to step.
pub(crate) struct Layout<T> {
    pub(crate) schedule: Schedule,
    pub(crate) stars: Vec<StarTable<T>>,
    /// From vertex ids of the mesh to places in memory, and back.
    pub(crate) places: Permutation,
}

/// One star in rows: the things around vertex `v` are `offsets[v]..offsets[v + 1]`.
pub(crate) struct StarTable<T> {
    /// Other vertices and reals of data of each thing.
    shape: (usize, usize),
    offsets: Vec<u32>,
    others: Vec<u32>,
    data: Vec<T>,
}

/// The graph that joins every two vertices that appear in one element, numbered as the mesh is.
pub(crate) fn data_graph(vertices: usize, plans: &[StarPlan]) -> Result<Graph> {
    for plan in plans {
        if let Some(at) = plan.elements.iter().position(|&v| v as usize >= vertices) {
            return Err(Error::Contract(format!(
                "element {} of star {} names vertex {}, but the mesh has {vertices}",
                at / plan.corners,
                plan.index,
                plan.elements[at]
            )));
        }
    }
    let elements = plans.iter().flat_map(|plan| plan.elements.chunks_exact(plan.corners));
    Ok(Graph::from_cliques(vertices, elements)?)
}

impl<T: Float> Layout<T> {
    /// Lays out the stars. `curve`: from ids of the mesh to numbers along the curve.
    pub(crate) fn new(schedule: Schedule, curve: &Permutation, mut plans: Vec<StarPlan>) -> Result<Layout<T>> {
        let places = curve.then(schedule.permutation());
        plans.sort_by_key(|plan| plan.index);
        if let Some((place, plan)) = plans.iter().enumerate().find(|(place, plan)| plan.index != *place) {
            return Err(Error::Contract(format!("star {place} is missing or given twice: found {}", plan.index)));
        }
        let stars = plans.iter().map(|plan| StarTable::new(plan, &places, curve)).collect::<Result<_>>()?;
        Ok(Layout { schedule, stars, places })
    }

    /// Bytes of the rows of all stars.
    pub(crate) fn bytes(&self) -> usize {
        let of = |s: &StarTable<T>| (s.offsets.len() + s.others.len()) * 4 + s.data.len() * T::BYTES;
        self.stars.iter().map(of).sum::<usize>() + self.places.len() * 8
    }
}

impl<T: Float> StarTable<T> {
    fn new(plan: &StarPlan, places: &Permutation, curve: &Permutation) -> Result<StarTable<T>> {
        let corners = plan.corners;
        if plan.elements.len() > u32::MAX as usize {
            return Err(Error::Invalid(format!("star {} has more than 2^32 - 1 corners: cut the mesh", plan.index)));
        }
        let element = |incidence: u32| &plan.elements[incidence as usize / corners * corners..][..corners];
        // An element that repeats a vertex has no orientation: it is left out.
        let proper = |e: &[u32]| (1..corners).all(|i| !e[..i].contains(&e[i]));
        let mut offsets = vec![0u32; places.len() + 1];
        let rank = places.rank();
        for e in plan.elements.chunks_exact(corners).filter(|e| proper(e)) {
            e.iter().for_each(|&v| offsets[rank[v as usize] as usize + 1] += 1);
        }
        for v in 0..places.len() {
            offsets[v + 1] += offsets[v];
        }
        let mut next = offsets.clone();
        let mut incidences = vec![0u32; offsets[places.len()] as usize];
        for (e, corner_ids) in plan.elements.chunks_exact(corners).enumerate().filter(|(_, c)| proper(c)) {
            for (corner, &v) in corner_ids.iter().enumerate() {
                let slot = &mut next[rank[v as usize] as usize];
                incidences[*slot as usize] = (e * corners + corner) as u32;
                *slot += 1;
            }
        }
        let others_of = |incidence: u32| {
            let mut vertices = [0; 4];
            own_first(element(incidence), incidence as usize % corners, &mut vertices);
            vertices
        };
        let rows: Vec<(Vec<u32>, Vec<T>)> = (0..places.len())
            .into_par_iter()
            .map(|v| {
                let mut row: Vec<([u32; 3], u32, [u32; 4])> = incidences[offsets[v] as usize..offsets[v + 1] as usize]
                    .iter()
                    .map(|&incidence| {
                        let vertices = others_of(incidence);
                        // Sorted by places in space alone: the order of a sum must not depend on names.
                        let mut key = [0; 3];
                        (1..corners).for_each(|k| key[k - 1] = curve.rank()[vertices[k] as usize]);
                        (key, incidence, vertices)
                    })
                    .collect();
                row.sort_unstable();
                let mut others = Vec::with_capacity(row.len() * (corners - 1));
                let mut reals = Vec::with_capacity(row.len() * plan.data_len);
                for (_, incidence, vertices) in row {
                    others.extend(vertices[1..corners].iter().map(|&u| rank[u as usize]));
                    let (e, corner) = (incidence as usize / corners, incidence as usize % corners);
                    (plan.data)(e, corner, &vertices[..corners], &mut reals);
                }
                (others, reals.into_iter().map(T::from_f64).collect())
            })
            .collect();
        let mut others = Vec::with_capacity(incidences.len() * (corners - 1));
        let mut data = Vec::with_capacity(incidences.len() * plan.data_len);
        for (row_others, row_data) in rows {
            others.extend(row_others);
            data.extend(row_data);
        }
        Ok(StarTable { shape: (corners - 1, plan.data_len), offsets, others, data })
    }
}

/// The neighbors of vertex `v`; `leaf(i)` reads real `i` of the shared state.
pub(crate) struct Row<'a, T, F> {
    pub(crate) v: usize,
    pub(crate) stars: &'a [StarTable<T>],
    pub(crate) leaf: F,
}

impl<T: Float, S: Record<T>, F: Fn(usize) -> T> Neighbors<T, S> for Row<'_, T, F> {
    #[inline(always)]
    fn fold<const N: usize, E: Star<N>, A: Record<T>>(
        &self,
        _star: E,
        init: A,
        f: impl Fn(A, [S; N], E::Data<T>) -> A,
    ) -> A {
        let star = &self.stars[E::INDEX];
        let len = <E::Data<T> as Record<T>>::LEN;
        // Rows cut at another width would name vertices that are no neighbors.
        assert!(
            star.shape == (N, len),
            "star {} was added with {:?} others and reals, not {:?}",
            E::INDEX,
            star.shape,
            (N, len)
        );
        let (start, end) = (star.offsets[self.v] as usize, star.offsets[self.v + 1] as usize);
        let others = &star.others[start * N..end * N];
        let data = &star.data[start * len..end * len];
        (0..end - start).fold(init, |gathered, j| {
            let shared: [S; N] = std::array::from_fn(|i| {
                let u = others[j * N + i] as usize * shared_stride(S::LEN);
                S::build(|k| {
                    assert!(k < S::LEN, "a record asks for its own reals only");
                    (self.leaf)(u + k)
                })
            });
            f(gathered, shared, E::Data::build(|k| data[j * len + k]))
        })
    }
}

/// Reals from one vertex's shared state to the next: a vector of three takes the place of four, so that a neighbor is
/// one aligned load.
pub(crate) const fn shared_stride(len: usize) -> usize {
    if len == 3 { 4 } else { len }
}

/// The state of all vertices, in the order of the schedule.
///
/// Shared state lies vertex after vertex, because it is read at random; private state lies real after real, because it
/// is read in order.
#[derive(Clone)]
pub(crate) struct State<T> {
    pub(crate) len: usize,
    pub(crate) shared: Vec<T>,
    /// What a double-buffered sweep writes; empty until there is one.
    pub(crate) next: Vec<T>,
    pub(crate) private: Vec<T>,
}

impl<T: Float> State<T> {
    pub(crate) fn new(len: usize, shared_len: usize, private_len: usize) -> State<T> {
        let zero = T::from_f64(0.0);
        State {
            len,
            shared: vec![zero; len * shared_stride(shared_len)],
            next: Vec::new(),
            private: vec![zero; len * private_len],
        }
    }

    pub(crate) fn shared<S: Record<T>>(&self, v: usize) -> S {
        S::build(|k| self.shared[v * shared_stride(S::LEN) + k])
    }

    pub(crate) fn private<S: Record<T>>(&self, v: usize) -> S {
        S::build(|k| self.private[k * self.len + v])
    }

    pub(crate) fn set_shared<S: Record<T>>(&mut self, v: usize, record: S) {
        record.each(|k, x| self.shared[v * shared_stride(S::LEN) + k] = x);
    }

    pub(crate) fn set_private<S: Record<T>>(&mut self, v: usize, record: S) {
        record.each(|k, x| self.private[k * self.len + v] = x);
    }

    /// Bytes of all arrays.
    pub(crate) fn bytes(&self) -> usize {
        (self.shared.len() + self.next.len() + self.private.len()) * T::BYTES
    }
}
