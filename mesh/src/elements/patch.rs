//! Elements of one dimension, and where they are.

use super::shape::{Function, Sample, Shape};
use crate::cell::CellKind;
use crate::error::{Error, Result};
use crate::measure::{cross, dot};
use crate::parallel;
use std::sync::Arc;

/// Elements of one dimension: the cells of a mesh, or the faces of its boundary.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Where the nodes are.
    pub(super) points: Arc<Vec<[f64; 3]>>,
    pub(super) dimension: usize,
    pub(super) degree: usize,
    pub(super) kinds: Vec<CellKind>,
    pub(super) ends: Vec<u32>,
    pub(super) nodes: Vec<u32>,
    /// The same with those that others take their values from in their places, if two sides are one.
    pub(super) unknowns: Option<Vec<u32>>,
    /// Of a face the middle of the cell behind it.
    pub(super) inside: Vec<[f64; 3]>,
    /// The index of a group, or [`NONE`].
    pub(super) groups: Vec<u32>,
}

/// An element in no group.
pub(super) const NONE: u32 = u32::MAX;

/// A place within an element.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// The element.
    pub element: usize,
    /// The place, m.
    pub place: [f64; 3],
    /// Of a face of the boundary the unit vector out of the mesh; else 0.
    pub normal: [f64; 3],
}

pub(super) fn shapes(degree: usize) -> Vec<Option<Shape>> {
    CellKind::ALL.iter().map(|&kind| Shape::new(kind, degree)).collect()
}

/// A sample of an element where it is.
pub(super) struct Placed<'a> {
    pub(super) sample: &'a Sample,
    place: [f64; 3],
    /// The axes of the element.
    axes: [[f64; 3]; 3],
    /// Volume, area or length for 1 of the element.
    pub(super) stretch: f64,
}

/// The same, with the vectors that take slopes along the axes to those in space.
pub(super) struct Sloped<'a> {
    pub(super) placed: Placed<'a>,
    duals: [[f64; 3]; 3],
}

impl Sloped<'_> {
    /// A node's function there: its slope is in space, 1/m.
    #[inline]
    pub(super) fn function(&self, node: usize) -> Function {
        let (value, along) = self.placed.sample.nodes[node];
        let [a, b, c] = self.duals;
        let slope = |k: usize| along[0] * a[k] + along[1] * b[k] + along[2] * c[k];
        (value, [slope(0), slope(1), slope(2)])
    }
}

/// What the first `dimension` axes span.
fn span([a, b, c]: [[f64; 3]; 3], dimension: usize) -> f64 {
    match dimension {
        0 => 1.0,
        1 => dot(a, a).sqrt(),
        2 => dot(cross(a, b), cross(a, b)).sqrt(),
        _ => dot(a, cross(b, c)),
    }
}

/// The vectors dual to them.
fn duals([a, b, c]: [[f64; 3]; 3], dimension: usize) -> [[f64; 3]; 3] {
    let over = |[x, y, z]: [f64; 3], by: f64| [x / by, y / by, z / by];
    let none = [0.0; 3];
    match dimension {
        0 => [none; 3],
        1 => [over(a, dot(a, a)), none, none],
        2 => {
            let normal = cross(a, b);
            let square = dot(normal, normal);
            [over(cross(b, normal), square), over(cross(normal, a), square), none]
        }
        _ => {
            let volume = dot(a, cross(b, c));
            [over(cross(b, c), volume), over(cross(c, a), volume), over(cross(a, b), volume)]
        }
    }
}

impl Patch {
    pub(super) fn empty(dimension: usize, degree: usize) -> Patch {
        let (kinds, nodes, unknowns, inside, groups) = Default::default();
        Patch { points: Arc::default(), dimension, degree, kinds, ends: vec![0], nodes, unknowns, inside, groups }
    }

    pub(super) fn push(&mut self, kind: CellKind, nodes: &[u32], group: u32, inside: Option<[f64; 3]>) {
        self.kinds.push(kind);
        self.nodes.extend_from_slice(nodes);
        self.ends.push(self.nodes.len() as u32);
        self.groups.push(group);
        self.inside.extend(inside);
    }

    /// Gives back what memory has been set aside for more.
    pub(super) fn shrink(&mut self) {
        self.kinds.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.groups.shrink_to_fit();
        self.inside.shrink_to_fit();
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The nodes of an element: its corners, then middles.
    #[inline]
    pub fn nodes(&self, element: usize) -> &[u32] {
        &self.nodes[self.ends[element] as usize..self.ends[element + 1] as usize]
    }

    /// The nodes that those of an element take their values from: themselves, unless two sides [are one](super::Elements::periodic).
    #[inline]
    pub fn unknowns(&self, element: usize) -> &[u32] {
        &self.unknowns.as_ref().unwrap_or(&self.nodes)[self.ends[element] as usize..self.ends[element + 1] as usize]
    }

    /// Calls `each` with every node of every element, element after element, and where that is: the place of the node, and of a face the way out in
    /// its middle. Of a node that [follows](super::Elements::periodic) another it is called with that one. Cost O(nodes of all elements).
    pub fn each_node(&self, mut each: impl FnMut(u32, &At)) {
        let shapes = shapes(self.degree);
        for e in 0..self.len() {
            let middle = self.middle(&shapes, e);
            let nodes = self.unknowns(e).iter().zip(self.nodes(e));
            nodes.for_each(|(&unknown, &v)| each(unknown, &At { place: self.points[v as usize], ..middle }));
        }
    }

    /// The middles of all elements.
    pub(super) fn middles(&self) -> Vec<At> {
        let shapes = shapes(self.degree);
        (0..self.len()).map(|e| self.middle(&shapes, e)).collect()
    }

    /// Those of a boundary that are left.
    pub(super) fn filtered(&self, is_left: impl Fn(usize) -> bool) -> Patch {
        let mut left = Patch { points: self.points.clone(), ..Patch::empty(self.dimension, self.degree) };
        for e in (0..self.len()).filter(|&e| is_left(e)) {
            left.push(self.kinds[e], self.nodes(e), self.groups[e], Some(self.inside[e]));
        }
        left
    }

    /// The corners of an element.
    pub(super) fn corners(&self, element: usize) -> &[u32] {
        &self.nodes(element)[..self.kinds[element].corners()]
    }

    /// The middle of an element. The way out of a face is that there: at a corner a face has no other.
    fn middle(&self, shapes: &[Option<Shape>], element: usize) -> At {
        let samples = &self.shape(shapes, element).slopes;
        self.at(element, &self.place(&samples[samples.len() / 2], element))
    }

    /// The first group of the mesh that an element is in, by its index in [`Mesh::groups`](crate::Mesh::groups).
    pub fn group(&self, element: usize) -> Option<usize> {
        Some(self.groups[element]).filter(|&group| group != NONE).map(|group| group as usize)
    }

    #[inline]
    pub(super) fn shape<'a>(&self, shapes: &'a [Option<Shape>], element: usize) -> &'a Shape {
        shapes[self.kinds[element] as usize].as_ref().expect("elements have a shape")
    }

    pub(super) fn place<'a>(&self, sample: &'a Sample, element: usize) -> Placed<'a> {
        let corners = &self.nodes(element)[..sample.corners.len()];
        let (mut place, mut axes) = ([0.0; 3], [[0.0; 3]; 3]);
        for (&v, (weight, along)) in corners.iter().zip(&sample.corners) {
            let point = self.points[v as usize];
            // Along axes that it has not nothing changes.
            for k in 0..3 {
                place[k] += weight * point[k];
                for axis in 0..3 {
                    axes[axis][k] += along[axis] * point[k];
                }
            }
        }
        Placed { sample, place, axes, stretch: span(axes, self.dimension) }
    }

    pub(super) fn sloped<'a>(&self, sample: &'a Sample, element: usize) -> Sloped<'a> {
        let placed = self.place(sample, element);
        let duals = duals(placed.axes, self.dimension);
        Sloped { placed, duals }
    }

    /// Where a placed sample is.
    #[inline]
    pub(super) fn at(&self, element: usize, placed: &Placed) -> At {
        let [a, b, _] = placed.axes;
        let normal = match (self.inside.get(element), self.dimension) {
            (None, _) => [0.0; 3],
            (Some(inside), dimension) => {
                let out = [0, 1, 2].map(|k| placed.place[k] - inside[k]);
                let normal = match dimension {
                    0 => out,
                    1 => [0, 1, 2].map(|k| out[k] - dot(out, a) / dot(a, a) * a[k]),
                    _ => cross(a, b).map(|x| x * dot(cross(a, b), out).signum()),
                };
                normal.map(|x| x / dot(normal, normal).sqrt())
            }
        };
        At { element, place: placed.place, normal }
    }

    /// An element that is flat or folded.
    pub(super) fn check(&self) -> Result<()> {
        let shapes = shapes(self.degree);
        let is_bad = |e: usize| {
            let [low, high] =
                self.shape(&shapes, e).slopes.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], sample| {
                    let stretch = self.place(sample, e).stretch;
                    [low.min(stretch), high.max(stretch)]
                });
            !(low > 0.0 || high < 0.0) || !(low.is_finite() && high.is_finite())
        };
        let Some(e) = parallel::first(self.len(), is_bad) else { return Ok(()) };
        let corners = self.corners(e);
        Err(Error::Invalid(format!(
            "the {} between points {corners:?} is flat or folded: finite elements need an extent in every direction",
            self.kinds[e].name()
        )))
    }

    /// Volume, area or length of an element.
    pub(super) fn measure(&self, shapes: &[Option<Shape>], element: usize) -> f64 {
        let samples = &self.shape(shapes, element).slopes;
        samples.iter().map(|sample| sample.weight * self.place(sample, element).stretch.abs()).sum()
    }
}
