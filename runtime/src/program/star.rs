//! Stars: what lies around a vertex.

use super::{Kernels, Kind, Record, SharedOf};
use crate::number::{Real, array};
use meshweft_mesh::CellKind;
use std::sync::Arc;

/// Declares the stars of a program: each a name, how many *other* vertices an incident element has (0 a piece of boundary, 1 an edge, 2 a
/// triangle, 3 a tet, quad or hinge, up to 7 a hex), and the record of its data over `R` (nothing where that is left out). The elements of a
/// star that is marked `changing` are found anew before each step: see [`Program::renew`](crate::Program::renew). Elements that are
/// [projected](crate::Project) may have state of their own, whose record stands behind `=>`.
///
/// ```
/// use meshweft::{Real, Star, record, stars};
/// record! {
///     /// A triangle at rest.
///     pub struct Rest<R> { area: R }
/// }
/// stars! {
///     /// Springs to the neighbors.
///     pub Springs[1];
///     /// Triangles around a vertex.
///     pub Triangles[2]: Rest<R>;
///     /// Vertices that are close by at the moment.
///     pub changing Close[1];
///     /// Rods that remember what they have pulled with.
///     pub Rods[1]: R => R;
/// }
/// assert_eq!((<Triangles as Star<2>>::INDEX, <Triangles as Star<2>>::NAME), (1, "Triangles"));
/// assert!(<Close as Star<1>>::CHANGES && !<Springs as Star<1>>::CHANGES);
/// ```
#[macro_export]
macro_rules! stars {
    (@ ($index:expr)) => {};
    (@ ($index:expr) $(#[$meta:meta])* $vis:vis changing $name:ident[$others:literal] $(: $data:ty)?; $($rest:tt)*) => {
        $crate::stars! { @star ($index, true, $(#[$meta])* $vis $name[$others]) ($($data)?) () $($rest)* }
    };
    (@ ($index:expr) $(#[$meta:meta])* $vis:vis $name:ident[$others:literal] $(: $data:ty)? $(=> $state:ty)?; $($rest:tt)*) => {
        $crate::stars! { @star ($index, false, $(#[$meta])* $vis $name[$others]) ($($data)?) ($($state)?) $($rest)* }
    };
    (@star $star:tt () $state:tt $($rest:tt)*) => { $crate::stars! { @star $star (()) $state $($rest)* } };
    (@star $star:tt $data:tt () $($rest:tt)*) => { $crate::stars! { @star $star $data (()) $($rest)* } };
    (@star ($index:expr, $changes:literal, $(#[$meta:meta])* $vis:vis $name:ident[$others:literal]) ($data:ty) ($state:ty)
        $($rest:tt)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $name;

        impl $crate::Star<$others> for $name {
            const INDEX: usize = $index;
            const NAME: &'static str = stringify!($name);
            const CHANGES: bool = $changes;
            type Data<R: $crate::Real> = $data;
        }

        impl $crate::Elements for $name {
            const INDEX: usize = $index;
            const NAME: &'static str = stringify!($name);
            type Corners<A: Copy> = [A; $others + 1];
            type Data<R: $crate::Real> = $data;
            type State<R: $crate::Real> = $state;
        }

        $crate::stars! { @ ($index + 1) $($rest)* }
    };
    ($($stars:tt)*) => { $crate::stars! { @ (0) $($stars)* } };
}

/// A kind of star: incident elements with `N` other vertices each. [`stars!`](crate::stars) writes it.
pub trait Star<const N: usize>: Send + Sync + 'static {
    /// Its rank among the stars of the program, from 0.
    const INDEX: usize;
    /// Its name.
    const NAME: &'static str;
    /// Whether its elements come and go during a run.
    const CHANGES: bool = false;
    /// The data of one incident element as its vertex sees it.
    type Data<R: Real>: Record<R>;
}

/// The elements of a star as a whole, which are [projected](crate::Project) one after the other. [`stars!`](crate::stars) writes it.
pub trait Elements: Send + Sync + 'static {
    /// The rank of the star among those of the program, from 0.
    const INDEX: usize;
    /// Its name.
    const NAME: &'static str;
    /// What there is one of for each corner: an array.
    type Corners<A: Copy>: Corners<A>;
    /// The data of an element, as its first corner sees it.
    type Data<R: Real>: Record<R>;
    /// The state of an element.
    type State<R: Real>: Record<R>;
}

/// An array with one place for each corner of an element.
pub trait Corners<A>: Copy + AsRef<[A]> {
    /// Corners of an element.
    const LEN: usize;

    /// Place `k` is `corner(k)`.
    fn build(corner: impl FnMut(usize) -> A) -> Self;
}

impl<A: Copy, const K: usize> Corners<A> for [A; K] {
    const LEN: usize = K;

    #[inline(always)]
    fn build(mut corner: impl FnMut(usize) -> A) -> Self {
        // As `number::array` does it.
        let mut corners = [corner(0); K];
        (1..K).for_each(|k| corners[k] = corner(k));
        corners
    }
}

/// The neighbors of the vertex that is updated.
pub trait Neighbors<P: Kernels, R: Real> {
    /// Folds over the incident elements of a star: `f` receives what was gathered so far, the shared state of the other
    /// vertices, and the data of the element.
    ///
    /// The other vertices come in the order that keeps the element's orientation with the vertex itself first. Elements come
    /// in an order that depends on where their vertices lie, never on their names.
    fn fold<const N: usize, E: Star<N>, A: Record<R>>(
        &self,
        star: E,
        init: A,
        f: impl Fn(A, [SharedOf<P, R>; N], E::Data<R>) -> A,
    ) -> A;

    /// Adds up a record over the incident elements of a star, starting from zeros.
    #[inline(always)]
    fn sum<const N: usize, E: Star<N>, A: Record<R>>(
        &self,
        star: E,
        f: impl Fn([SharedOf<P, R>; N], E::Data<R>) -> A,
    ) -> A {
        let zero = A::build(|_| R::lit(0.0));
        self.fold(star, zero, |sum, others, data| {
            let mut kinds = (0..A::LEN).map(A::kind);
            sum.zip(f(others, data), &mut |a, b| match kinds.next() {
                Some(Kind::Integer) => R::hold_int(a.held_int() + b.held_int()),
                _ => a + b,
            })
        })
    }
}

/// One element as one of its vertices sees it.
#[derive(Clone, Copy, Debug)]
pub struct Incidence<const K: usize> {
    /// The element, in the order in which they were added.
    pub element: usize,
    /// Which corner of the element the vertex is.
    pub corner: usize,
    /// The vertex itself, then the others in the order in which [`Neighbors::fold`] gives them.
    pub vertices: [u32; K],
    shape: CellKind,
}

impl<const K: usize> Incidence<K> {
    /// Puts values given corner by corner of the element into the order of [`Incidence::vertices`].
    pub fn arrange<A: Copy>(&self, values: [A; K]) -> [A; K] {
        array(values[0], |k| values[self.shape.turn(self.corner)[k]])
    }
}

/// Appends the reals of the data of some incidences, element times corners plus corner each, of these elements.
pub(crate) type DataOf = Box<dyn Fn(&[u32], &[u32], &mut Vec<f64>) + Send + Sync>;

/// What all elements of a star have in common: all that a kernel knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StarShape {
    pub(crate) name: String,
    /// Whether an element is around one of its vertices alone.
    pub(crate) is_directed: bool,
    /// Whether its elements come and go during a run.
    pub(crate) changes: bool,
    /// Other vertices of an element.
    pub(crate) others: usize,
    /// Names and numbers of reals of the parts of its data.
    pub(crate) parts: Vec<(String, usize)>,
}

impl StarShape {
    /// Other vertices and reals of data of an element.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.others, self.parts.iter().map(|(_, reals)| reals).sum())
    }
}

/// Around which of its vertices an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    All,
    Last,
    /// Of an edge, around the end that comes later in the order, which sees the earlier one.
    Later,
    /// The other way round.
    Earlier,
}

/// One star before it is laid out: the elements and what computes their data.
pub(crate) struct StarPlan {
    pub(crate) index: usize,
    pub(crate) name: &'static str,
    pub(crate) corners: usize,
    /// Which corners can take each other's places.
    pub(crate) shape: CellKind,
    /// Around which of its vertices an element is.
    pub(crate) around: Around,
    /// Whether nothing but relaxations looks along it.
    pub(crate) is_searched: bool,
    /// Whether its elements come and go during a run.
    pub(crate) changes: bool,
    /// Whether the very same list always has the same data.
    pub(crate) lasts: bool,
    /// Vertices that elements which come may well join.
    pub(crate) near: Vec<[u32; 2]>,
    /// [`StarPlan::elements`].
    pub(crate) lists: Box<dyn AsRef<[u32]> + Send + Sync>,
    pub(crate) data_len: usize,
    /// Names and numbers of reals of the parts of its data.
    pub(crate) parts: Vec<(String, usize)>,
    /// What each of those reals is.
    pub(crate) kinds: Vec<Kind>,
    pub(crate) data: DataOf,
}

/// Elements as the program has them.
struct Lists<const K: usize>(Arc<Vec<[u32; K]>>);

impl<const K: usize> AsRef<[u32]> for Lists<K> {
    fn as_ref(&self) -> &[u32] {
        self.0.as_flattened()
    }
}

impl StarPlan {
    /// Of the star `S`.
    fn of<const N: usize, S: Star<N>>(
        shape: CellKind,
        lists: Box<dyn AsRef<[u32]> + Send + Sync>,
        data: DataOf,
    ) -> StarPlan {
        let parts = <S::Data<f64>>::parts("").into_iter().map(|part| (part.name, part.components));
        StarPlan {
            index: S::INDEX,
            name: S::NAME,
            corners: N + 1,
            shape,
            around: Around::All,
            is_searched: false,
            changes: false,
            lasts: false,
            near: Vec::new(),
            lists,
            data_len: <S::Data<f64> as Record<f64>>::LEN,
            parts: parts.collect(),
            kinds: (0..<S::Data<f64>>::LEN).map(<S::Data<f64>>::kind).collect(),
            data,
        }
    }

    /// The corners, element after element.
    pub(crate) fn elements(&self) -> &[u32] {
        (*self.lists).as_ref()
    }

    /// The first corner that an element is around.
    pub(crate) fn first_corner(&self) -> usize {
        if self.around == Around::Last { self.corners - 1 } else { 0 }
    }

    /// Whether an element is around the vertex at that corner of it. `place`: of the vertex at a corner, in the order.
    #[inline(always)]
    pub(crate) fn is_around(&self, corner: usize, place: impl Fn(usize) -> u32) -> bool {
        match self.around {
            Around::All => true,
            Around::Last => corner + 1 == self.corners,
            Around::Later => place(corner) > place(1 - corner),
            Around::Earlier => place(corner) < place(1 - corner),
        }
    }

    /// Whether an element may be around the vertex at that corner of it.
    pub(crate) fn may_be_around(&self, corner: usize) -> bool {
        self.around != Around::Last || corner + 1 == self.corners
    }

    /// The name of real `k` of the data of an element.
    pub(crate) fn name_of(&self, mut k: usize) -> String {
        for (name, components) in &self.parts {
            match (k < *components, components) {
                (true, 1) => return name.clone(),
                (true, _) => return format!("{name}[{k}]"),
                _ => k -= components,
            }
        }
        unreachable!("real {k} lies in some part")
    }

    pub(crate) fn common(&self) -> StarShape {
        StarShape {
            name: self.name.into(),
            is_directed: self.around != Around::All,
            changes: self.changes,
            others: self.corners - 1,
            parts: self.parts.clone(),
        }
    }
}

/// The vertices of an element with that of `corner` first.
#[inline(always)]
pub(crate) fn own_first<const K: usize>(shape: CellKind, element: &[u32; K], corner: usize) -> [u32; K] {
    // Any shape of two corners turns like this, and the compiler knows how often.
    if K == 2 {
        return array(0, |k| element[k ^ corner]);
    }
    let turn = shape.turn(corner);
    array(0, |k| element[turn[k]])
}

/// Receives the stars of a program.
#[derive(Default)]
pub struct Stars {
    pub(crate) plans: Vec<StarPlan>,
    /// Whether elements of changing stars are found anew.
    pub(crate) renews: bool,
}

impl Stars {
    /// A star of edges without data.
    pub(crate) fn plain_edges(name: &'static str, edges: Vec<[u32; 2]>) -> Stars {
        Stars {
            renews: false,
            plans: vec![StarPlan {
                index: 0,
                name,
                corners: 2,
                shape: CellKind::Edge,
                around: Around::All,
                is_searched: false,
                changes: false,
                lasts: false,
                near: Vec::new(),
                lists: Box::new(Lists(Arc::new(edges))),
                data_len: 0,
                parts: Vec::new(),
                kinds: Vec::new(),
                data: Box::new(|_, _, _| {}),
            }],
        }
    }

    /// Adds a star from its elements: edges, triangles, tets (or hinges), pyramids, wedges or hexes, by their `K` corners; or vertices, which have
    /// something around them that joins them to no other, as a [face of the boundary](meshweft_mesh::BoundaryFace) is to a cell.
    ///
    /// `elements`: vertex ids of the mesh, `K = N + 1` an element; one that repeats a vertex is left out. `data` is
    /// called once for every element and corner, in any order and from any thread.
    ///
    /// # Panics
    /// If `K` is not `N + 1`, or no such shape has `K` corners.
    pub fn add<const N: usize, const K: usize, S: Star<N>>(
        &mut self,
        star: S,
        elements: Vec<[u32; K]>,
        data: impl Fn(Incidence<K>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        self.add_shared(star, Arc::new(elements), data);
    }

    /// The same for elements that the program keeps: they are not copied.
    ///
    /// # Panics
    /// As [`Stars::add`].
    ///
    /// ```
    /// # use meshweft::{Stars, stars};
    /// # use std::sync::Arc;
    /// # stars! { Edges[1]; }
    /// let edges = Arc::new(vec![[0, 1], [1, 2]]);
    /// let mut stars = Stars::default();
    /// stars.add_shared(Edges, edges.clone(), |_| ());
    /// assert_eq!(Arc::strong_count(&edges), 2);
    /// ```
    pub fn add_shared<const N: usize, const K: usize, S: Star<N>>(
        &mut self,
        star: S,
        elements: Arc<Vec<[u32; K]>>,
        data: impl Fn(Incidence<K>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        self.push(star, shape_of(K), elements, data);
    }

    /// Adds a star from directed edges: an edge `[from, to]` is around `to` alone, which sees `from`.
    ///
    /// `edges`: vertex ids of the mesh, shape [edges × 2]; one from a vertex to itself is left out. In an order of sweeps both ends are
    /// neighbors all the same. `data` is called once for every edge, in any order and from any thread.
    ///
    /// ```
    /// use meshweft::{Program, Simulation, Stages, Stars, kernels, stars, vertex};
    /// use meshweft::mesh::Mesh;
    /// use std::sync::Arc;
    /// vertex! { pub struct Page<R> { shared votes: R } }
    /// stars! { pub Links[1]; }
    /// struct Vote(Arc<Vec<[u32; 2]>>);
    /// kernels! {
    ///     for Vote: Page;
    ///     update Count |_, own, around| Page { votes: around.sum(Links, |[from], ()| from.votes) };
    /// }
    /// impl Program for Vote {
    ///     fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
    ///         stars.add_directed(Links, self.0.clone(), |_| ());
    ///         Ok(())
    ///     }
    ///     fn initial(&self, _mesh: &Mesh, v: u32) -> Page<f64> {
    ///         Page { votes: f64::from(1 + v) }
    ///     }
    ///     fn step(&self, stages: &mut Stages<Self>) {
    ///         stages.jacobi(Count, 1);
    ///     }
    /// }
    /// let links = vec![[0, 2], [1, 2], [2, 0]];
    /// let mesh = Mesh::from_graph(3, links.clone())?;
    /// let mut run = Simulation::builder(mesh, Vote(Arc::new(links))).build()?;
    /// run.step()?;
    /// assert_eq!(run.field("votes")?.values, [3.0, 0.0, 3.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn add_directed<S: Star<1>>(
        &mut self,
        star: S,
        edges: Arc<Vec<[u32; 2]>>,
        data: impl Fn(Incidence<2>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        self.push_edges(star, edges, data, Around::Last);
    }

    /// Adds a star of edges of which each is around the end alone that comes later in the order, which sees the earlier one: half of what
    /// [`Stars::add_shared`] reads. A sweep forward finds new values there.
    ///
    /// `edges`: vertex ids of the mesh, shape [edges × 2]; one from a vertex to itself is left out. `data` is called once for every edge, for the
    /// end that it is around. Under [`Order::JACOBI`](crate::Order::JACOBI) vertices come in the order of the curve.
    ///
    /// ```
    /// use meshweft::{Mesh, Order, Program, Simulation, Stages, Stars, kernels, stars, vertex};
    /// use std::sync::Arc;
    /// vertex! { pub struct Link<R> { shared length: R, rest: R } }
    /// stars! { pub Before[1]; pub After[1]; }
    /// struct Chain;
    /// kernels! {
    ///     for Chain: Link;
    ///     update Count |_, own, around| Link {
    ///         length: R::lit(1.0) + around.sum(Before, |[other], ()| other.length),
    ///         rest: around.sum(After, |[_], ()| R::lit(1.0)),
    ///     };
    /// }
    /// impl Program for Chain {
    ///     fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
    ///         stars.add_earlier(Before, Arc::new(mesh.edges()), |_| ());
    ///         stars.add_later(After, Arc::new(mesh.edges()), |_| ());
    ///         Ok(())
    ///     }
    ///     fn initial(&self, _: &Mesh, _: u32) -> Link<f64> { Link { length: 0.0, rest: 0.0 } }
    ///     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Count, 1) }
    /// }
    /// let mesh = Mesh::from_graph(3, vec![[1, 0], [1, 2]])?;
    /// let mut chain = Simulation::builder(mesh, Chain).order(Order::PRIORITY_DAG).build()?;
    /// chain.step()?;
    /// assert_eq!(chain.field("length")?.values, [1.0, 2.0, 3.0]);
    /// assert_eq!(chain.field("rest")?.values, [1.0, 1.0, 0.0]);
    /// # Ok::<(), meshweft::Error>(())
    /// ```
    pub fn add_earlier<S: Star<1>>(
        &mut self,
        star: S,
        edges: Arc<Vec<[u32; 2]>>,
        data: impl Fn(Incidence<2>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        self.push_edges(star, edges, data, Around::Later);
    }

    /// The same with each edge around the end that comes earlier, which sees the later one. [`Stars::add_earlier`] has an example.
    pub fn add_later<S: Star<1>>(
        &mut self,
        star: S,
        edges: Arc<Vec<[u32; 2]>>,
        data: impl Fn(Incidence<2>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        self.push_edges(star, edges, data, Around::Earlier);
    }

    /// As [`Stars::add`] for elements of a given shape: a quad has as many corners as a tet, but turns otherwise.
    /// [`CellKind::turn`] says in which order the corners come.
    ///
    /// # Panics
    /// If `K` is not `N + 1`, or not the number of corners of that shape.
    pub fn add_cells<const N: usize, const K: usize, S: Star<N>>(
        &mut self,
        star: S,
        shape: CellKind,
        elements: Vec<[u32; K]>,
        data: impl Fn(Incidence<K>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        self.push(star, shape, Arc::new(elements), data);
    }

    /// Adds a star that has no elements before [`Program::renew`](crate::Program::renew) finds some: edges, triangles, tets, pyramids,
    /// wedges or hexes.
    ///
    /// # Panics
    /// If it is not marked `changing`, or no such shape has `N + 1` corners.
    pub fn add_changing<const N: usize, S: Star<N>>(&mut self, star: S) {
        self.add_changing_near(star, Vec::new());
    }

    /// The same where it is known which vertices elements may well join, `near`: ids of the mesh, shape [pairs × 2]. The order keeps them apart
    /// from the start as if they were joined, so that such elements cost no turns. Others may come all the same.
    ///
    /// # Panics
    /// As [`Stars::add_changing`].
    ///
    /// ```
    /// # use meshweft::{Stars, stars};
    /// # stars! { changing Springs[1]; }
    /// let mut stars = Stars::default();
    /// // A rope that may be untied anywhere.
    /// stars.add_changing_near(Springs, vec![[0, 1], [1, 2]]);
    /// ```
    pub fn add_changing_near<const N: usize, S: Star<N>>(&mut self, _star: S, near: Vec<[u32; 2]>) {
        assert!(S::CHANGES, "star {} is not marked `changing` in `stars!`", S::NAME);
        let elements: Vec<u32> = Vec::new();
        let plan = StarPlan::of::<N, S>(shape_of(N + 1), Box::new(elements), Box::new(|_, _, _| {}));
        self.plans.push(StarPlan { changes: true, near, ..plan });
    }

    fn push_edges<S: Star<1>>(
        &mut self,
        star: S,
        edges: Arc<Vec<[u32; 2]>>,
        data: impl Fn(Incidence<2>) -> S::Data<f64> + Send + Sync + 'static,
        around: Around,
    ) {
        self.push(star, CellKind::Edge, edges, data);
        self.plans.last_mut().expect("just added").around = around;
    }

    fn push<const N: usize, const K: usize, S: Star<N>>(
        &mut self,
        _star: S,
        shape: CellKind,
        elements: Arc<Vec<[u32; K]>>,
        data: impl Fn(Incidence<K>) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        assert!(K == N + 1, "an element of a star of {N} others has {} vertices", N + 1);
        assert!(shape.corners() == K, "a {} has {} corners, not {K}", shape.name(), shape.corners());
        assert!(
            !S::CHANGES || self.renews || elements.is_empty(),
            "star {} is marked `changing`: its elements come by `Program::renew`",
            S::NAME
        );
        let data = Box::new(move |elements: &[u32], incidences: &[u32], out: &mut Vec<f64>| {
            let elements = elements.as_chunks::<K>().0;
            for &incidence in incidences {
                let (element, corner) = (incidence as usize / K, incidence as usize % K);
                let vertices = own_first(shape, &elements[element], corner);
                data(Incidence { element, corner, vertices, shape }).each(|_, x| out.push(x));
            }
        });
        self.plans.push(StarPlan::of::<N, S>(shape, Box::new(Lists(elements)), data));
    }
}

/// The shape of elements that have so many corners, unless another is asked for.
fn shape_of(corners: usize) -> CellKind {
    match corners {
        1 => CellKind::Vertex,
        2 => CellKind::Edge,
        3 => CellKind::Triangle,
        4 => CellKind::Tet,
        5 => CellKind::Pyramid,
        6 => CellKind::Wedge,
        8 => CellKind::Hex,
        _ => panic!("no element has {corners} corners"),
    }
}

/// The most corners of an element.
pub(crate) const CORNERS: usize = 8;

/// Rows cut at another width would name vertices that are no neighbors.
#[inline(always)]
pub(crate) fn check_shape<R: Real, const N: usize, E: Star<N>>(shape: (usize, usize)) {
    let wanted = (N, <E::Data<R> as Record<R>>::LEN);
    assert!(shape == wanted, "star {} was added with {shape:?} others and reals, not {wanted:?}", E::NAME);
}
