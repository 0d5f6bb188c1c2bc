//! What is summed up over elements, node by node.

use super::matrix::Matrix;
use super::patch::{At, Patch, shapes};
use super::shape::{Function, Sample, Shape};
use crate::incidence::Incidence;
use crate::parallel;
use std::ops::Range;

/// Sums by node, in the order in which nodes have come.
pub(super) struct Sums<T> {
    nodes: Vec<u32>,
    pub(super) sums: Vec<T>,
    /// Scratch space: places by ascending nodes.
    order: Vec<u32>,
}

impl<T> Default for Sums<T> {
    fn default() -> Sums<T> {
        Sums { nodes: Vec::new(), sums: Vec::new(), order: Vec::new() }
    }
}

impl<T: Copy> Sums<T> {
    /// The place of the sum of a node, from zero if it is new.
    pub(super) fn place(&mut self, node: u32, zero: T) -> usize {
        // There are few: to look at all is quicker than a search, whose end cannot be foreseen.
        let found: u32 = self.nodes.iter().zip(1..).map(|(&other, place)| if other == node { place } else { 0 }).sum();
        if found > 0 {
            return found as usize - 1;
        }
        self.nodes.push(node);
        self.sums.push(zero);
        self.nodes.len() - 1
    }

    /// Calls `each` with nodes, ascending, and their sums, and forgets them.
    pub(super) fn drain(&mut self, mut each: impl FnMut(u32, T)) {
        self.order.clear();
        self.order.extend(0..self.nodes.len() as u32);
        self.order.sort_unstable_by_key(|&k| self.nodes[k as usize]);
        self.order.iter().for_each(|&k| each(self.nodes[k as usize], self.sums[k as usize]));
        self.nodes.clear();
        self.sums.clear();
    }
}

/// So many nodes at least are worked on together, so that few elements are placed for two of their ranges.
const WIDTH: usize = 1 << 12;

/// The most nodes of an element: those of a hex of degree 2.
const MOST_NODES: usize = 27;

/// Rows of a matrix: pairs, their blocks, and blocks on the diagonal.
type Rows<const N: usize> = (Vec<[u32; 2]>, Vec<[[f64; N]; N]>, Vec<[[f64; N]; N]>);

/// An element that has a node.
pub(super) struct Touching<'a, T> {
    pub(super) element: usize,
    /// Which of its nodes it is.
    pub(super) node: usize,
    pub(super) prepared: &'a [T],
}

impl Patch {
    /// What `each` adds for a node and the elements that have it, ascending: for some nodes after the other. `prepare`: what it takes of an
    /// element, once for those.
    pub(super) fn by_node<T: Send, S: Default, R: Default + Send>(
        &self,
        prepare: impl Fn(usize, &mut Vec<T>) + Sync,
        each: impl Fn(u32, &[Touching<T>], &mut S, &mut R) + Sync,
    ) -> Vec<R> {
        let incidence = Incidence::with_width(WIDTH, self.points.len(), self.len(), |e| self.unknowns(e));
        let scratch = || (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        incidence.by_range(scratch, |(here, prepared, starts, places), range: Range<u32>, elements| {
            here.clear();
            prepared.clear();
            // Where the nodes of the range start among what touches them, one further on.
            starts.clear();
            starts.resize(range.len() + 2, 0);
            let own = |e: usize| {
                let numbered = self.unknowns(e).iter().enumerate().filter(|(_, v)| range.contains(v));
                numbered.map(|(node, v)| (node, (v - range.start) as usize))
            };
            elements.for_each(|e| {
                let first = prepared.len();
                prepare(e, prepared);
                here.push((e, first..prepared.len()));
                own(e).for_each(|(_, v)| starts[v + 2] += 1);
            });
            (2..starts.len()).for_each(|v| starts[v] += starts[v - 1]);
            places.resize(starts[range.len() + 1], (0, 0));
            for (number, (e, _)) in here.iter().enumerate() {
                for (node, v) in own(*e) {
                    places[starts[v + 1]] = (number, node);
                    starts[v + 1] += 1;
                }
            }
            let mut touching = Vec::new();
            let (mut sums, mut made) = (S::default(), R::default());
            for (v, place) in range.zip(0..) {
                touching.clear();
                touching.extend(places[starts[place]..starts[place + 1]].iter().map(|&(number, node)| {
                    let (element, own): &(usize, Range<usize>) = &here[number];
                    Touching { element: *element, node, prepared: &prepared[own.clone()] }
                }));
                each(v, &touching, &mut sums, &mut made);
            }
            made
        })
    }

    /// The matrix of `∫ form(slopes of one node, slopes of another)`, 1/m each. Swapping both must transpose what `form` returns, to the last bit
    /// where names of points are to make no difference. Cost O(elements × squares of their nodes), in parallel.
    pub fn stiffness<const N: usize>(
        &self,
        form: impl Fn(&At, [f64; 3], [f64; 3]) -> [[f64; N]; N] + Sync,
    ) -> Matrix<N> {
        self.assemble(|shape| &shape.slopes, |at, a, b| form(at, a.1, b.1))
    }

    /// The matrix of `∫ form × function of one node × function of another`, for `N` unknowns a node: `form` in kg/m³ makes masses in kg. Cost as
    /// of [`stiffness`](Patch::stiffness).
    pub fn mass<const N: usize>(&self, form: impl Fn(&At) -> [[f64; N]; N] + Sync) -> Matrix<N> {
        self.assemble(|shape| &shape.values, |at, a, b| form(at).map(|row| row.map(|x| x * (a.0 * b.0))))
    }

    fn assemble<const N: usize>(
        &self,
        samples: impl Fn(&Shape) -> &[Sample] + Sync,
        block: impl Fn(&At, &Function, &Function) -> [[f64; N]; N] + Sync,
    ) -> Matrix<N> {
        // Loops, here and below: zipped iterators are not inlined where a program calls this, and took 1.3 times as long.
        let add = |sum: &mut [[f64; N]; N], weight: f64, block: [[f64; N]; N]| {
            for i in 0..N {
                for j in 0..N {
                    sum[i][j] += weight * block[i][j];
                }
            }
        };
        let shapes = shapes(self.degree);
        let place = |e, placed: &mut Vec<_>| {
            placed.extend(samples(self.shape(&shapes, e)).iter().map(|sample| self.sloped(sample, e)))
        };
        let parts =
            self.by_node(place, |here, touching, row: &mut Sums<_>, (pairs, blocks, diagonals): &mut Rows<N>| {
                let zero = [[0.0; N]; N];
                let mut diagonal = zero;
                let mut places = [0; MOST_NODES];
                for &Touching { element, node, prepared } in touching {
                    let nodes = self.unknowns(element);
                    for (place, &there) in places.iter_mut().zip(nodes).filter(|(_, there)| **there > here) {
                        *place = row.place(there, zero);
                    }
                    for sloped in prepared {
                        let placed = &sloped.placed;
                        let (at, weight) = (self.at(element, placed), placed.sample.weight * placed.stretch.abs());
                        let own = sloped.function(node);
                        for (j, &there) in nodes.iter().enumerate().filter(|(_, there)| **there >= here) {
                            let block = block(&at, &own, &sloped.function(j));
                            add(if there == here { &mut diagonal } else { &mut row.sums[places[j]] }, weight, block);
                        }
                    }
                }
                row.drain(|there, block| {
                    pairs.push([here, there]);
                    blocks.push(block);
                });
                diagonals.push(diagonal);
            });
        let (pairs, blocks, diagonal): (Vec<_>, Vec<_>, Vec<_>) = parts.into_iter().collect();
        Matrix { pairs: parallel::concat(pairs), blocks: blocks.concat(), diagonal: diagonal.concat() }
    }

    /// The loads `∫ density × function` of the nodes, for `N` unknowns a node: `density` in N/m³ makes forces in N. Shape [nodes × N]. Cost
    /// O(nodes of all elements), in parallel.
    pub fn loads<const N: usize>(&self, density: impl Fn(&At) -> [f64; N] + Sync) -> Vec<[f64; N]> {
        let shapes = shapes(self.degree);
        let prepare = |e: usize, own: &mut Vec<[f64; N]>| {
            let (first, count) = (own.len(), self.nodes(e).len());
            own.resize(first + count, [0.0; N]);
            for sample in &self.shape(&shapes, e).values {
                let placed = self.place(sample, e);
                let (density, weight) = (density(&self.at(e, &placed)), sample.weight * placed.stretch.abs());
                for (load, (value, _)) in own[first..].iter_mut().zip(&sample.nodes) {
                    for k in 0..N {
                        load[k] += weight * value * density[k];
                    }
                }
            }
        };
        let parts = self.by_node(prepare, |_, touching, (): &mut (), loads: &mut Vec<[f64; N]>| {
            loads.push(touching.iter().fold([0.0; N], |mut load, Touching { node, prepared, .. }| {
                for k in 0..N {
                    load[k] += prepared[*node][k];
                }
                load
            }));
        });
        parts.concat()
    }

    /// The integral of what `of` makes of the `values` of the nodes, shape [nodes × N], as they are in between. Cost O(nodes of all elements), in
    /// parallel.
    pub fn integral<const N: usize>(&self, values: &[[f64; N]], of: impl Fn(&At, [f64; N]) -> f64 + Sync) -> f64 {
        let shapes = shapes(self.degree);
        let sums = parallel::collect(self.len(), |e| {
            let sum = |sample: &Sample| {
                let placed = self.place(sample, e);
                let mut mean = [0.0; N];
                for (&v, (value, _)) in self.unknowns(e).iter().zip(&sample.nodes) {
                    mean.iter_mut().zip(values[v as usize]).for_each(|(mean, x)| *mean += value * x);
                }
                sample.weight * placed.stretch.abs() * of(&self.at(e, &placed), mean)
            };
            self.shape(&shapes, e).values.iter().map(sum).sum::<f64>()
        });
        sums.iter().sum()
    }
}
