//! Surfaces and solids that come apart where they are stretched too far.

use super::symmetric::Symmetric;
use meshweft::Int;
use meshweft::mesh::{CellKind, Cells, Error, Field, Mesh, Result, group, parallel};
use meshweft::nalgebra::Vector3;
use std::collections::BTreeMap;
use std::ops::Range;

/// Elements that come apart at their vertices (claim C17).
///
/// Each vertex of a mesh has spare **places** beside its own, with a state of their own. Where what a place holds is stretched too far, its
/// elements on one side of a plane go over to a spare one: the vertex has split. Which place holds what is part of the state, a bit for each
/// element around the vertex, so a run that goes on elsewhere tears on in the same way.
///
/// A program has its elements in changing stars, and lets them [tear](Tearing::tear) in [`Program::renew`](meshweft::Program::renew).
///
/// ```
/// use meshweft::nalgebra::Vector3;
/// use meshweft_physics::{Panel, Tearing};
/// // Two triangles on each side of the middle of a strip, pulled apart along x.
/// let strip = [[0, 1, 2], [2, 1, 3], [2, 3, 4], [4, 3, 5]];
/// let rest: Vec<[f64; 3]> = (0..6).map(|v| [f64::from(v / 2), f64::from(v % 2), 0.0]).collect();
/// let tearing = Tearing::new(6, strip.to_vec(), 1)?;
/// assert_eq!((tearing.places(), tearing.vertex_of(8)), (12, 2));
/// let corners = tearing.corners(|_| [meshweft::Int(0); 2]);
/// let panels = strip.map(|corners| Panel::at_rest(corners.map(|v| rest[v as usize])));
/// let at = |place: u32| Vector3::from(rest[tearing.vertex_of(place) as usize]).component_mul(&Vector3::new(1.2, 1.0, 1.0));
/// let torn = tearing.tear(corners, 0.1, at, |_| true, |e, corners| {
///     let [a, b, c] = corners.map(at);
///     (panels[e].stretch(a, [b, c]), panels[e].area)
/// });
/// // Both vertices of the middle have split, and the halves share none.
/// assert_eq!(torn.corners, [[0, 1, 2], [2, 1, 3], [8, 9, 4], [4, 9, 5]]);
/// # Ok::<(), meshweft::mesh::Error>(())
/// ```
pub struct Tearing<const K: usize> {
    elements: Vec<[u32; K]>,
    vertices: u32,
    spares: u32,
    /// Where the incidences of each vertex begin, shape `[vertices + 1]`.
    starts: Vec<u32>,
    /// Of each vertex its elements times `K` plus the corner that it is, ascending.
    incidences: Vec<u32>,
    once: Vec<u32>,
}

/// What has come apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Torn<const K: usize> {
    /// The places at the corners of each element, shape [elements × K].
    pub corners: Vec<[u32; K]>,
    /// Places that hold other elements than before, ascending, shape `[changed]`.
    pub changed: Vec<u32>,
    /// Of each of those, shape `[changed]`, the place whose state it goes on with: itself, or, of one that held nothing, the one that it was split from.
    pub from: Vec<u32>,
}

impl<const K: usize> Tearing<K> {
    /// Elements around a vertex, at most: one bit each.
    const MOST: u32 = 64;

    /// Elements of so many vertices, shape [elements × K], with `spares` places for each beside its own: the places of vertex `v` are `v`, and `vertices +
    /// spares v` and those after it.
    ///
    /// # Errors
    /// More than 64 elements at a vertex; 2^31 places; an element of a vertex that is not there.
    pub fn new(vertices: u32, elements: Vec<[u32; K]>, spares: u32) -> Result<Tearing<K>> {
        let places = u64::from(vertices) * (1 + u64::from(spares));
        if places > u64::from(u32::MAX / 2) {
            return Err(Error::Invalid(format!("{vertices} vertices with {spares} spare places each are too many")));
        }
        if let Some(v) = elements.as_flattened().iter().find(|&&v| v >= vertices) {
            return Err(Error::Invalid(format!("an element has vertex {v} of {vertices}")));
        }
        let incidence = |e: usize, k: usize| (elements[e][k], (e * K + k) as u32);
        let (starts, incidences) =
            group(vertices as usize, elements.len(), |e| std::array::from_fn::<_, K, _>(|k| incidence(e, k)));
        if let Some((v, ends)) = starts.windows(2).enumerate().find(|(_, ends)| ends[1] - ends[0] > Self::MOST) {
            return Err(Error::Invalid(format!(
                "{} elements meet at vertex {v}, and what tears has at most {} there: use a more even mesh",
                ends[1] - ends[0],
                Self::MOST
            )));
        }
        let mut tearing = Tearing { elements, vertices, spares, starts, incidences, once: Vec::new() };
        tearing.once = (0..tearing.places()).map(|place| tearing.vertex_of(place)).collect();
        Ok(tearing)
    }

    /// Number of places.
    pub fn places(&self) -> u32 {
        self.vertices * (1 + self.spares)
    }

    /// Of each place the vertex that it belongs to, shape `[places]`.
    pub fn once(&self) -> &[u32] {
        &self.once
    }

    /// Whether a place holds nothing before anything tears.
    pub fn is_spare(&self, place: u32) -> bool {
        place >= self.vertices
    }

    /// A mesh with a point for each place, where that of its vertex is, with its fields, and the elements as cells.
    ///
    /// # Errors
    /// What [`Mesh::new`] says.
    ///
    /// # Panics
    /// If the mesh has other vertices than this.
    pub fn mesh(&self, mesh: &Mesh, kind: CellKind) -> Result<Mesh> {
        let once = &self.once;
        let cells = Cells::of(kind, self.elements.as_flattened().to_vec());
        let mut whole = Mesh::new(once.iter().map(|&v| mesh.points()[v as usize]).collect(), cells)?;
        mesh.point_fields().iter().try_for_each(|field| whole.set_point_field(field.of(once)))?;
        Ok(whole)
    }

    /// The vertex that a place belongs to.
    pub fn vertex_of(&self, place: u32) -> u32 {
        match place.checked_sub(self.vertices) {
            None => place,
            Some(spare) => spare / self.spares,
        }
    }

    /// The elements before anything tore.
    pub fn elements(&self) -> &[[u32; K]] {
        &self.elements
    }

    /// The spare places of a vertex.
    fn spares_of(&self, v: u32) -> Range<u32> {
        let first = self.vertices + v * self.spares;
        first..first + self.spares
    }

    /// All places of a vertex, its own first.
    fn places_of(&self, v: u32) -> impl Iterator<Item = u32> {
        std::iter::once(v).chain(self.spares_of(v))
    }

    /// The corners of elements that a vertex is.
    fn around(&self, v: u32) -> &[u32] {
        &self.incidences[self.starts[v as usize] as usize..self.starts[v as usize + 1] as usize]
    }

    /// Pairs of places, shape [pairs × 2], for [`Stars::add_changing_near`](meshweft::Stars::add_changing_near), given pairs of vertices that elements may join.
    pub fn near(&self, pairs: impl IntoIterator<Item = [u32; 2]>) -> Vec<[u32; 2]> {
        let all = |[a, b]: [u32; 2]| self.places_of(a).flat_map(move |i| self.places_of(b).map(move |j| [i, j]));
        pairs.into_iter().flat_map(all).collect()
    }

    /// The places at the corners of each element, shape [elements × K]. `holds`: what each place holds, a bit for each element around its vertex; what no spare one
    /// does its own place does, and of several that do the first.
    pub fn corners(&self, holds: impl Fn(u32) -> [Int; 2]) -> Vec<[u32; K]> {
        let mut corners = self.elements.clone();
        for v in 0..self.vertices {
            // Later ones first, so that the first of several is left.
            for place in self.spares_of(v).rev() {
                let held = holds(place).map(|word| word.0 as u32);
                let is_held = |&(j, _): &(usize, &u32)| held[j / 32] >> (j % 32) & 1 != 0;
                for (_, &incidence) in self.around(v).iter().enumerate().filter(is_held) {
                    corners[incidence as usize / K][incidence as usize % K] = place;
                }
            }
        }
        corners
    }

    /// What a place holds among elements with these corners: the state from which [`Tearing::corners`] makes them, 0 of a vertex's own place.
    pub fn holds(&self, place: u32, corners: &[[u32; K]]) -> [Int; 2] {
        let mut held = [0u32; 2];
        if self.is_spare(place) {
            for (j, &i) in self.around(self.vertex_of(place)).iter().enumerate() {
                held[j / 32] |= u32::from(corners[i as usize / K][i as usize % K] == place) << (j % 32);
            }
        }
        held.map(|word| Int(word as i32))
    }

    /// The elements as cells, given what the places hold as a field, shape [places × 2].
    pub fn cells(&self, kind: CellKind, holds: &Field) -> Cells {
        let holds = |place: u32| [0, 1].map(|k| Int(holds.values[2 * place as usize + k] as i32));
        Cells::of(kind, self.corners(holds).into_flattened())
    }

    /// The elements that a place holds, ascending.
    pub fn held<'a>(&'a self, place: u32, corners: &'a [[u32; K]]) -> impl Iterator<Item = usize> + 'a {
        let around = self.around(self.vertex_of(place)).iter().map(|&i| (i as usize / K, i as usize % K));
        around.filter(move |&(e, k)| corners[e][k] == place).map(|(e, _)| e)
    }

    /// Lets go where elements are stretched by more than `limit`, a share of their length at rest.
    ///
    /// The mean of `F Fᵀ` over the elements of a place says how far and along what they are stretched; where that is too far, they part at the
    /// plane through the place across it. What then hangs together at a vertex alone comes apart, too. A place splits once a call, and no longer
    /// when its vertex has no spare place left.
    ///
    /// `corners`: as [`Tearing::corners`] has them. `at`: where a place is, m. `may`: whether a place may split. `stretched`: of an element
    /// with its corners the columns of `F`, and its measure, m² or m³.
    ///
    /// Cost O(elements), in parallel. Source of the idea: splitting vertices along a plane across the largest stress, O'Brien and Hodgins,
    /// "Graphical modeling and animation of brittle fracture", SIGGRAPH 1999.
    pub fn tear<const D: usize>(
        &self,
        mut corners: Vec<[u32; K]>,
        limit: f64,
        at: impl Fn(u32) -> Vector3<f64> + Sync,
        may: impl Fn(u32) -> bool + Sync,
        stretched: impl Fn(usize, [u32; K]) -> ([Vector3<f64>; D], f64) + Sync,
    ) -> Torn<K> {
        let most = (1.0 + limit) * (1.0 + limit);
        // A mean is stretched no further than what it is the mean of.
        let hot = parallel::filter(corners.len(), |e| largest(&stretched(e, corners[e]).0) > most);
        let split = |place: u32, held: &[u32]| -> Vec<u32> {
            let (mut spread, mut measure) = (Symmetric::diagonal(0.0), 0.0);
            for e in held.iter().map(|&i| i as usize / K) {
                let (columns, share) = stretched(e, corners[e]);
                spread = columns.into_iter().fold(spread, |spread, column| spread.plus_outer(share, column));
                measure += share;
            }
            let (largest, along) = spread.principal();
            // Not so of a sum that is no number either.
            if !(largest > most * measure && measure > 0.0 && may(place)) {
                return Vec::new();
            }
            let own = at(place);
            let beyond = |e: usize| corners[e].iter().map(|&corner| (at(corner) - own).dot(&along)).sum::<f64>() > 0.0;
            held.iter().copied().filter(|&i| beyond(i as usize / K)).collect()
        };
        let moves = self.moves(&self.vertices_of(hot.into_iter()), &corners, split);
        let mut changed = BTreeMap::new();
        self.go(&moves, &mut corners, &mut changed);
        let split: Vec<u32> = moves.iter().map(|leaving| self.vertex_of(leaving.to)).collect();
        let beside = self.vertices_of(split.iter().flat_map(|&v| self.around(v)).map(|&i| i / K as u32));
        let loose = self.moves(&beside, &corners, |place, held| match may(place) {
            true => self.loose(&corners, place, held),
            false => Vec::new(),
        });
        self.go(&loose, &mut corners, &mut changed);
        let (changed, from) = changed.into_iter().unzip();
        Torn { corners, changed, from }
    }

    /// The vertices of some elements, ascending.
    fn vertices_of(&self, elements: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut vertices: Vec<u32> = elements.flat_map(|e| self.elements[e as usize]).collect();
        vertices.sort_unstable();
        vertices.dedup();
        vertices
    }

    /// Which corners of elements around some vertices go where, as `leaves` says of the corners that a place is: to a spare place of its vertex
    /// that holds nothing.
    fn moves(
        &self,
        vertices: &[u32],
        corners: &[[u32; K]],
        leaves: impl Fn(u32, &[u32]) -> Vec<u32> + Sync,
    ) -> Vec<Move> {
        let of_vertex = |v: u32| {
            let held = |place: u32| -> Vec<u32> {
                let here = |&&i: &&u32| corners[i as usize / K][i as usize % K] == place;
                self.around(v).iter().filter(here).copied().collect()
            };
            let mut free = self.spares_of(v).filter(|&place| held(place).is_empty()).collect::<Vec<_>>().into_iter();
            let mut moves = Vec::new();
            for place in self.places_of(v) {
                let held = held(place);
                if free.len() == 0 || held.len() < 2 {
                    continue;
                }
                let leaving = leaves(place, &held);
                if !leaving.is_empty() && leaving.len() < held.len() {
                    moves.extend(free.next().map(|to| Move { from: place, to, leaving }));
                }
            }
            moves
        };
        let parts =
            parallel::map(vertices.chunks(64), |some| some.iter().flat_map(|&v| of_vertex(v)).collect::<Vec<_>>());
        parts.into_iter().flatten().collect()
    }

    fn go(&self, moves: &[Move], corners: &mut [[u32; K]], changed: &mut BTreeMap<u32, u32>) {
        for Move { from, to, leaving } in moves {
            leaving.iter().for_each(|&i| corners[i as usize / K][i as usize % K] = *to);
            let origin = *changed.entry(*from).or_insert(*from);
            changed.insert(*to, origin);
        }
    }

    /// The corners that a place is of elements which hang together with the first of those that it holds at the place alone, and not by an edge
    /// of triangles or a face of tets.
    fn loose(&self, corners: &[[u32; K]], place: u32, held: &[u32]) -> Vec<u32> {
        let others = |i: u32| corners[i as usize / K].into_iter().filter(move |&corner| corner != place);
        let joined = |i: u32, j: u32| others(i).filter(|&a| others(j).any(|b| a == b)).count() + 2 >= K;
        let (mut reached, mut rest) = (vec![held[0]], held[1..].to_vec());
        let mut next = 0;
        while next < reached.len() {
            let (near, far): (Vec<u32>, Vec<u32>) = rest.iter().partition(|&&i| joined(i, reached[next]));
            reached.extend(near);
            rest = far;
            next += 1;
        }
        rest
    }
}

/// The largest eigenvalue of `F Fᵀ`, or of three columns a bound for it, given those of `F`.
///
/// Source: Wolkowicz and Styan, "Bounds for eigenvalues using traces", 1980.
fn largest<const D: usize>(columns: &[Vector3<f64>; D]) -> f64 {
    let dimension = D as f64;
    let products = columns.iter().flat_map(|a| columns.iter().map(|b| a.dot(b)));
    let (trace, squared) = (columns.iter().map(|a| a.dot(a)).sum::<f64>(), products.map(|x| x * x).sum::<f64>());
    let mean = trace / dimension;
    // What rounding takes away must not matter.
    let apart = (squared / dimension - mean * mean).max(0.0) + 1e-12 * mean * mean;
    mean + ((dimension - 1.0) * apart).sqrt()
}

/// Corners of elements that go from one place to another.
struct Move {
    from: u32,
    to: u32,
    leaving: Vec<u32>,
}
