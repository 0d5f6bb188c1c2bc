//! Lagrange finite elements: nodes, and what is summed up over cells and over the boundary.

mod matrix;
mod shape;

use crate::cell::{CellKind, Cells};
use crate::dual::Groups;
use crate::error::{Error, Result};
use crate::incidence::Incidence;
use crate::measure::{cross, dot};
use crate::mesh::{Group, Mesh};
use crate::parallel;
use crate::partners::Partners;
pub use matrix::Matrix;
use shape::{Function, Sample, Shape};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Finite elements on a mesh.
///
/// Of degree 1 the nodes are the points of the mesh; of degree 2 there is one more in the middle of each edge, of each quad and of each hex. Cells
/// stay as straight as they were.
///
/// Source: Hughes, The Finite Element Method, 1987, chapter 3.
///
/// ```
/// use meshweft_mesh::generate::generate;
/// // The energy of u = x in a cube: half of its volume.
/// let elements = generate("box:4", 1)?.elements(2)?;
/// let matrix = elements.cells().stiffness(|_, a, b| [[(0..3).map(|k| a[k] * b[k]).sum()]]);
/// let x: Vec<[f64; 1]> = elements.mesh().points().iter().map(|p| [p[0]]).collect();
/// let energy: f64 = matrix.times(&x).iter().zip(&x).map(|(a, b)| 0.5 * a[0] * b[0]).sum();
/// assert!((energy - 0.5).abs() < 1e-14);
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Elements {
    mesh: Mesh,
    cells: Patch,
    rim: Patch,
    /// The node that each takes its values from, if two sides are one.
    leads: Option<Vec<u32>>,
}

/// Elements of one dimension: the cells of a mesh, or the faces of its boundary.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Where the nodes are.
    points: Arc<Vec<[f64; 3]>>,
    dimension: usize,
    degree: usize,
    kinds: Vec<CellKind>,
    ends: Vec<u32>,
    nodes: Vec<u32>,
    /// The same with those that others take their values from in their places, if two sides are one.
    unknowns: Option<Vec<u32>>,
    /// Of a face the middle of the cell behind it.
    inside: Vec<[f64; 3]>,
    groups: Vec<Option<usize>>,
}

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

impl Mesh {
    /// Finite elements of degree 1 or 2 on the cells of the highest dimension. Cost O(cells), of degree 2 O(cells × log).
    ///
    /// # Errors
    /// Another degree; a mesh without cells that have an extent; pyramids of degree 2; too many nodes.
    pub fn elements(&self, degree: usize) -> Result<Elements> {
        let dimension = self.dimension();
        if !(1..=2).contains(&degree) {
            return Err(Error::Invalid(format!("finite elements are of degree 1 or 2 here, not {degree}")));
        }
        if dimension == 0 {
            return Err(Error::Invalid("finite elements need cells: this mesh has points alone".into()));
        }
        let shapes = shapes(degree);
        let mut nodes = Nodes { mesh: self, shapes: &shapes, middles: BTreeMap::new(), points: self.points().to_vec() };
        // Of degree 1 cells stay whole.
        let mut cut = if degree == 1 { self.cells().clone() } else { Cells::new() };
        // Where the parts of each cell begin.
        let mut starts = Vec::with_capacity(self.cells().len() + 1);
        let mut cells = Patch::empty(dimension, degree);
        let mut of_cells = vec![None; self.cells().len()];
        for (g, group) in self.groups().iter().enumerate().rev() {
            group.cells.iter().for_each(|&c| of_cells[c as usize] = Some(g));
        }
        for (c, (kind, corners)) in self.cells().iter().enumerate() {
            starts.push(if degree == 1 { c } else { cut.len() } as u32);
            let own = nodes.of(c, kind, corners)?;
            let parts = nodes.shape(kind).filter(|_| degree > 1).into_iter().flat_map(|shape| &shape.parts);
            for part in parts {
                cut.push(kind, &part.iter().map(|&k| own[k as usize]).collect::<Vec<u32>>());
            }
            if kind.dimension() == dimension {
                cells.push(kind, &own, of_cells[c], None);
            }
        }
        starts.push(cut.len() as u32);
        let groups = Groups::of(self, dimension);
        let mut rim = Patch::empty(dimension - 1, degree);
        let mut facets = self.boundary_facets();
        facets.sort_unstable();
        for facet in facets {
            let corners = self.facet(facet);
            let kind =
                CellKind::ALL.into_iter().find(|k| k.dimension() + 1 == dimension && k.corners() == corners.len());
            let own = nodes.of(facet.0, kind.expect("facets are cells"), &corners)?;
            let group = groups.of_face(crate::dual::key(corners.iter().copied()));
            rim.push(kind.expect("facets are cells"), &own, group, Some(mean(self, self.cells().corners(facet.0))));
        }
        if u32::try_from(nodes.points.len().max(cells.nodes.len()).max(rim.nodes.len())).is_err() {
            return Err(Error::Invalid(
                "finite elements of this mesh have 2^32 nodes or more: take fewer cells".into(),
            ));
        }
        let mut mesh = Mesh::new(nodes.points, cut)?;
        for group in self.groups() {
            let cells = group.cells.iter().flat_map(|&c| starts[c as usize]..starts[c as usize + 1]).collect();
            mesh.add_group(Group { cells, ..group.clone() })?;
        }
        let points = Arc::new(mesh.points().to_vec());
        [&mut cells, &mut rim].into_iter().for_each(|patch| patch.points = points.clone());
        cells.check()?;
        Ok(Elements { mesh, cells, rim, leads: None })
    }
}

fn mean(mesh: &Mesh, corners: &[u32]) -> [f64; 3] {
    let sum = |k: usize| corners.iter().map(|&v| mesh.points()[v as usize][k]).sum::<f64>();
    [0, 1, 2].map(|k| sum(k) / corners.len() as f64)
}

fn shapes(degree: usize) -> Vec<Option<Shape>> {
    CellKind::ALL.iter().map(|&kind| Shape::new(kind, degree)).collect()
}

/// Corners that a node lies between, ascending.
fn key(between: &[u8], corners: &[u32]) -> [u32; 4] {
    let mut key = [u32::MAX; 4];
    key.iter_mut().zip(between).for_each(|(key, &k)| *key = corners[k as usize]);
    key.sort_unstable();
    key
}

/// Nodes by the points that they lie between.
struct Nodes<'a> {
    mesh: &'a Mesh,
    shapes: &'a [Option<Shape>],
    /// Middles of edges and quads, by their corners in ascending order.
    middles: BTreeMap<[u32; 4], u32>,
    points: Vec<[f64; 3]>,
}

impl<'a> Nodes<'a> {
    fn shape(&self, kind: CellKind) -> Option<&'a Shape> {
        self.shapes[kind as usize].as_ref()
    }

    /// Those of an element.
    fn of<'b>(&mut self, cell: usize, kind: CellKind, corners: &'b [u32]) -> Result<Cow<'b, [u32]>> {
        let Some(shape) = self.shape(kind) else {
            let way_out = "take degree 1, or a mesh without them";
            return Err(Error::Invalid(format!("cell {cell} is a {}, which has no degree 2: {way_out}", kind.name())));
        };
        if shape.nodes.len() == corners.len() {
            return Ok(Cow::Borrowed(corners));
        }
        let mut nodes = corners.to_vec();
        for between in &shape.nodes[corners.len()..] {
            let next = self.points.len() as u32;
            // That of a hex is in no other.
            let node =
                if between.len() > 4 { next } else { *self.middles.entry(key(between, corners)).or_insert(next) };
            // Of the points as the cell names them: in any names of these the place is the same.
            if node == next {
                let ends: Vec<u32> = between.iter().map(|&k| corners[k as usize]).collect();
                self.points.push(mean(self.mesh, &ends));
            }
            nodes.push(node);
        }
        Ok(Cow::Owned(nodes))
    }
}

impl Elements {
    /// The nodes as points, and cells between them: of degree 2 each cell is cut in its middles, so that files and films show all values. Groups
    /// come along.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// The cells.
    pub fn cells(&self) -> &Patch {
        &self.cells
    }

    /// The faces of the boundary: of a solid its facets, of a surface its edges, of a line its ends.
    pub fn rim(&self) -> &Patch {
        &self.rim
    }

    /// Makes two sides of the boundary one: nodes of the second *follow* those of the first, each where it is but for the way between the sides. In
    /// matrices and loads a node that follows has nothing, as one without elements; the other has what is around both. `first` and `second`: whether
    /// a face of the boundary is on that side, by its middle. Other sides may be one already. Cost O(nodes of all elements), and for each node of a side
    /// as many as are level with it.
    ///
    /// # Errors
    /// Sides that are not the same but for a way between them, or have no face; a node that is on both.
    ///
    /// ```
    /// use meshweft_mesh::generate::generate;
    /// let mut elements = generate("quads:4x3", 1)?.elements(1)?;
    /// let [low, high] = elements.mesh().bounds();
    /// elements.periodic(|face| face.place[0] == low[0], |face| face.place[0] == high[0])?;
    /// assert_eq!(elements.followers().len(), 3);
    /// assert_eq!(elements.rim().len(), 6);
    /// // The area around a node on the sides is that around any other of its row.
    /// let areas = elements.cells().loads(|_| [1.0]);
    /// let [lead, follower] = elements.followers()[1];
    /// assert_eq!(areas[follower as usize], [0.0]);
    /// assert!((areas[lead as usize][0] - areas.iter().map(|own| own[0]).fold(0.0, f64::max)).abs() < 1e-15);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn periodic(&mut self, first: impl Fn(&At) -> bool, second: impl Fn(&At) -> bool) -> Result<()> {
        let (shapes, rim, points) = (shapes(self.rim.degree), &self.rim, self.mesh.points());
        let middles: Vec<At> = (0..rim.len()).map(|e| rim.middle(&shapes, e)).collect();
        let (bounds, dimension) = (self.mesh.bounds(), rim.dimension as f64);
        let size = |e: usize| match rim.dimension {
            0 => (0..3).map(|k| bounds[1][k] - bounds[0][k]).fold(0.0, f64::max),
            _ => rim.measure(&shapes, e).powf(1.0 / dimension),
        };
        // Nodes, and the size of a face that has each.
        let side = |is_there: &dyn Fn(&At) -> bool| -> BTreeMap<u32, f64> {
            let faces = (0..rim.len()).filter(|&e| is_there(&middles[e]));
            faces.flat_map(|e| rim.nodes(e).iter().map(move |&v| (v, size(e)))).collect()
        };
        let (near, far) = (side(&first), side(&second));
        if let Some(v) = near.keys().find(|v| far.contains_key(v)) {
            return Err(Error::Invalid(format!(
                "node {v} at {:?} is on both of two sides that are one",
                points[*v as usize]
            )));
        }
        let places = |side: &BTreeMap<u32, f64>| side.keys().map(|&v| points[v as usize]).collect::<Vec<_>>();
        let sizes: Vec<f64> = near.values().copied().collect();
        let Partners { of_first, .. } = Partners::of(&places(&near), &places(&far), &sizes, "nodes")?;
        let far: Vec<u32> = far.into_keys().collect();
        let mut leads = self.leads.take().unwrap_or_else(|| (0..points.len() as u32).collect());
        let root = |leads: &[u32], mut v: u32| {
            while leads[v as usize] != v {
                v = leads[v as usize];
            }
            v
        };
        let partners: BTreeMap<u32, u32> = near.keys().zip(of_first).map(|(&v, partner)| (far[partner], v)).collect();
        let faces = |is_there: &dyn Fn(&At) -> bool| -> BTreeSet<Vec<u32>> {
            let faces = (0..rim.len()).filter(|&e| is_there(&middles[e])).map(|e| {
                let mut corners: Vec<u32> = rim.nodes(e)[..rim.kinds[e].corners()].to_vec();
                corners.iter_mut().for_each(|v| *v = partners.get(v).copied().unwrap_or(*v));
                corners.sort_unstable();
                corners
            });
            faces.collect()
        };
        if let Some(face) = faces(&first).symmetric_difference(&faces(&second)).next() {
            return Err(Error::Invalid(format!(
                "sides that are one have the same faces: between the points {face:?} only one of them has one"
            )));
        }
        for (far, &v) in &partners {
            let [lead, follower] = [v, *far].map(|v| root(&leads, v));
            leads[follower as usize] = lead;
        }
        leads = (0..points.len() as u32).map(|v| root(&leads, v)).collect();
        let mut left = Patch { points: rim.points.clone(), ..Patch::empty(rim.dimension, rim.degree) };
        for e in (0..rim.len()).filter(|&e| !first(&middles[e]) && !second(&middles[e])) {
            left.push(rim.kinds[e], rim.nodes(e), rim.groups[e], Some(rim.inside[e]));
        }
        self.rim = left;
        for patch in [&mut self.cells, &mut self.rim] {
            patch.unknowns = Some(patch.nodes.iter().map(|&v| leads[v as usize]).collect());
        }
        self.leads = Some(leads);
        Ok(())
    }

    /// Pairs of a node and one that [follows](Elements::periodic) it: where that is done, it is to have its values. None unless sides are one. Cost
    /// O(nodes).
    pub fn followers(&self) -> Vec<[u32; 2]> {
        let pairs = self.leads.iter().flat_map(|leads| leads.iter().copied().zip(0..));
        pairs.filter(|(lead, v)| lead != v).map(|(lead, v)| [lead, v]).collect()
    }

    /// How the mean slope at a node depends on the values of the others: `Σ (value there - value here) × slope` over the pairs [there, here].
    /// Shapes [pairs × 2] and [pairs × 3], slopes in 1/m. Of degree 1 the slopes of cells in their middle, of degree 2 at the node, weighted by the
    /// volumes. Cost O(nodes of all cells).
    ///
    /// Source: Zienkiewicz and Zhu, A simple error estimator and adaptive procedure, 1987: means of what is constant by cell.
    pub fn mean_slopes(&self) -> (Vec<[u32; 2]>, Vec<[f64; 3]>) {
        let shapes = shapes(self.cells.degree);
        let cells = &self.cells;
        let volumes: Vec<f64> = parallel::collect(cells.len(), |e| cells.measure(&shapes, e));
        // Placed anew for each node: what was kept of an element would not be in a cache any more.
        let parts = cells.by_node(
            |_, _: &mut Vec<()>| (),
            |here, touching, slopes: &mut Sums<[f64; 3]>, (pairs, around): &mut (Vec<_>, Vec<_>)| {
                let all: f64 = touching.iter().map(|touching| volumes[touching.element]).sum();
                for &Touching { element, node, .. } in touching {
                    let sloped = cells.sloped(&cells.shape(&shapes, element).at_nodes[node], element);
                    let weight = volumes[element] / all;
                    for (j, &there) in cells.unknowns(element).iter().enumerate().filter(|(_, there)| **there != here) {
                        let (_, slope) = sloped.function(j);
                        let place = slopes.place(there, [0.0; 3]);
                        slopes.sums[place].iter_mut().zip(slope).for_each(|(sum, slope)| *sum += weight * slope);
                    }
                }
                slopes.drain(|there, slope| {
                    pairs.push([there, here]);
                    around.push(slope);
                });
            },
        );
        let (pairs, slopes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let (mut pairs, mut slopes) = (parallel::concat(pairs), parallel::concat(slopes));
        let own = pairs.len();
        for [lead, follower] in self.followers() {
            // Those of nodes that lead ascend by the node here.
            let first = pairs[..own].partition_point(|pair| pair[1] < lead);
            let own = first..pairs[..own].partition_point(|pair| pair[1] <= lead);
            slopes.extend_from_within(own.clone());
            let there: Vec<u32> = pairs[own].iter().map(|pair| pair[0]).collect();
            pairs.extend(there.into_iter().map(|there| [there, follower]));
        }
        (pairs, slopes)
    }
}

/// Sums by node, in the order in which nodes have come.
struct Sums<T> {
    nodes: Vec<u32>,
    sums: Vec<T>,
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
    fn place(&mut self, node: u32, zero: T) -> usize {
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
    fn drain(&mut self, mut each: impl FnMut(u32, T)) {
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
struct Touching<'a, T> {
    element: usize,
    /// Which of its nodes it is.
    node: usize,
    prepared: &'a [T],
}

/// A sample of an element where it is.
struct Placed<'a> {
    sample: &'a Sample,
    place: [f64; 3],
    /// The axes of the element.
    axes: [[f64; 3]; 3],
    /// Volume, area or length for 1 of the element.
    stretch: f64,
}

/// The same, with the vectors that take slopes along the axes to those in space.
struct Sloped<'a> {
    placed: Placed<'a>,
    duals: [[f64; 3]; 3],
}

impl Sloped<'_> {
    /// A node's function there: its slope is in space, 1/m.
    fn function(&self, node: usize) -> Function {
        let (value, along) = self.placed.sample.nodes[node];
        let [a, b, c] = self.duals;
        (value, [0, 1, 2].map(|k| along[0] * a[k] + along[1] * b[k] + along[2] * c[k]))
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
    let over = |v: [f64; 3], by: f64| v.map(|x| x / by);
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
    fn empty(dimension: usize, degree: usize) -> Patch {
        let (kinds, nodes, unknowns, inside, groups) = Default::default();
        Patch { points: Arc::default(), dimension, degree, kinds, ends: vec![0], nodes, unknowns, inside, groups }
    }

    fn push(&mut self, kind: CellKind, nodes: &[u32], group: Option<usize>, inside: Option<[f64; 3]>) {
        self.kinds.push(kind);
        self.nodes.extend_from_slice(nodes);
        self.ends.push(self.nodes.len() as u32);
        self.groups.push(group);
        self.inside.extend(inside);
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
    pub fn nodes(&self, element: usize) -> &[u32] {
        &self.nodes[self.ends[element] as usize..self.ends[element + 1] as usize]
    }

    /// The nodes that those of an element take their values from: themselves, unless two sides [are one](Elements::periodic).
    pub fn unknowns(&self, element: usize) -> &[u32] {
        &self.unknowns.as_ref().unwrap_or(&self.nodes)[self.ends[element] as usize..self.ends[element + 1] as usize]
    }

    /// Calls `each` with every node of every element, element after element, and where that is: the place of the node, and of a face the way out in
    /// its middle. Of a node that [follows](Elements::periodic) another it is called with that one. Cost O(nodes of all elements).
    pub fn each_node(&self, mut each: impl FnMut(u32, &At)) {
        let shapes = shapes(self.degree);
        for e in 0..self.len() {
            let middle = self.middle(&shapes, e);
            let nodes = self.unknowns(e).iter().zip(self.nodes(e));
            nodes.for_each(|(&unknown, &v)| each(unknown, &At { place: self.points[v as usize], ..middle }));
        }
    }

    /// The middle of an element. The way out of a face is that there: at a corner a face has no other.
    fn middle(&self, shapes: &[Option<Shape>], element: usize) -> At {
        let samples = &self.shape(shapes, element).slopes;
        self.at(element, &self.place(&samples[samples.len() / 2], element))
    }

    /// The first group of the mesh that an element is in, by its index in [`Mesh::groups`].
    pub fn group(&self, element: usize) -> Option<usize> {
        self.groups[element]
    }

    fn shape<'a>(&self, shapes: &'a [Option<Shape>], element: usize) -> &'a Shape {
        shapes[self.kinds[element] as usize].as_ref().expect("elements have a shape")
    }

    fn place<'a>(&self, sample: &'a Sample, element: usize) -> Placed<'a> {
        let corners = &self.nodes(element)[..sample.corners.len()];
        let (mut place, mut axes) = ([0.0; 3], [[0.0; 3]; 3]);
        for (&v, (weight, along)) in corners.iter().zip(&sample.corners) {
            let point = self.points[v as usize];
            for k in 0..3 {
                place[k] += weight * point[k];
                (0..self.dimension).for_each(|axis| axes[axis][k] += along[axis] * point[k]);
            }
        }
        Placed { sample, place, axes, stretch: span(axes, self.dimension) }
    }

    fn sloped<'a>(&self, sample: &'a Sample, element: usize) -> Sloped<'a> {
        let placed = self.place(sample, element);
        let duals = duals(placed.axes, self.dimension);
        Sloped { placed, duals }
    }

    /// Where a placed sample is.
    fn at(&self, element: usize, placed: &Placed) -> At {
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
    fn check(&self) -> Result<()> {
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
        let corners = &self.nodes(e)[..self.kinds[e].corners()];
        Err(Error::Invalid(format!(
            "the {} between points {corners:?} is flat or folded: finite elements need an extent in every direction",
            self.kinds[e].name()
        )))
    }

    /// Volume, area or length of an element.
    fn measure(&self, shapes: &[Option<Shape>], element: usize) -> f64 {
        let samples = &self.shape(shapes, element).slopes;
        samples.iter().map(|sample| sample.weight * self.place(sample, element).stretch.abs()).sum()
    }

    /// What `each` adds for a node and the elements that have it, ascending: for some nodes after the other. `prepare`: what it takes of an
    /// element, once for those.
    fn by_node<T: Send, S: Default, R: Default + Send>(
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
        let add = |sum: &mut [[f64; N]; N], weight: f64, block: [[f64; N]; N]| {
            sum.as_flattened_mut().iter_mut().zip(block.as_flattened()).for_each(|(sum, x)| *sum += weight * x);
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
                    load.iter_mut().zip(density).for_each(|(load, x)| *load += weight * value * x);
                }
            }
        };
        let parts = self.by_node(prepare, |_, touching, (): &mut (), loads: &mut Vec<[f64; N]>| {
            loads.push(touching.iter().fold([0.0; N], |mut load, Touching { node, prepared, .. }| {
                load.iter_mut().zip(prepared[*node]).for_each(|(load, x)| *load += x);
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

#[cfg(test)]
mod tests;
