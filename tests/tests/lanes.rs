//! Every kernel of every example gives the same bits on lanes of any width [C5].

use meshweft::lanes::{F32x8, F32x16, F64x4, F64x8};
use meshweft::{
    Corners, Given, KernelList, Kernels, Lanes, Map, Neighbors, Number, Project, Real, Record, Reduce,
    Scalar as ScalarKernel, SharedOf, Star, Test, Update, Vertex, VertexOf,
};
use meshweft_examples::airfoil::Airfoil;
use meshweft_examples::cloth::Cloth;
use meshweft_examples::elasticity::Elasticity;
use meshweft_examples::heat::{Heat, Implicit};
use meshweft_examples::poisson::Poisson;
use meshweft_examples::shallow_water::ShallowWater;
use meshweft_examples::softbody::Softbody;
use meshweft_examples::spring::Spring;
use meshweft_examples::vibration::Vibration;
use meshweft_examples::wave::Wave;
use meshweft_examples::xpbd::Xpbd;
use meshweft_tests::random;

/// Where the reals of an update come from: a number type asks for real `k` of the thing numbered `salt`.
trait Source<R: Real>: Copy {
    fn real(&self, salt: u64, k: usize) -> R;

    fn record<A: Record<R>>(&self, salt: u64) -> A {
        A::build(|k| self.real(salt, k))
    }
}

/// One vertex: made-up state, the same for the same vertex.
#[derive(Clone, Copy)]
struct Scalar(u64);

impl<T: Number> Source<T> for Scalar {
    fn real(&self, salt: u64, k: usize) -> T {
        let x = random::unit(self.0 + 1000 * salt, k as u64);
        // Mostly ordinary numbers, some zeros and some negative ones, so that both sides of a selection are taken.
        T::from_f64(if x < 0.1 { 0.0 } else { 3.0 * x - 1.0 })
    }
}

/// Vertices side by side.
#[derive(Clone, Copy)]
struct Wide;

impl<L: Lanes> Source<L> for Wide {
    fn real(&self, salt: u64, k: usize) -> L {
        L::from_fn(|lane| Scalar(lane as u64).real(salt, k))
    }
}

const PARAMETERS: u64 = 1;
const SHARED: u64 = 2;
const PRIVATE: u64 = 3;
const GLOBALS: u64 = 4;

/// Five things around the vertex.
struct Around<S>(S);

impl<P: Kernels, R: Real, S: Source<R>> Neighbors<P, R> for Around<S> {
    fn fold<const N: usize, E: Star<N>, B: Record<R>>(
        &self,
        _: E,
        init: B,
        f: impl Fn(B, [SharedOf<P, R>; N], E::Data<R>) -> B,
    ) -> B {
        (0..5).fold(init, |gathered, j| {
            let salt = 10 + 10 * (E::INDEX as u64 * 5 + j);
            f(gathered, std::array::from_fn(|i| self.0.record(salt + i as u64)), self.0.record(salt + 9))
        })
    }
}

/// The reals that a kernel returns.
fn leaves<P: Kernels, R: Real>(vertex: VertexOf<P, R>) -> Vec<R> {
    let mut out = Vec::new();
    let (shared, private) = vertex.split();
    shared.each(|_, x| out.push(x));
    private.each(|_, x| out.push(x));
    out
}

fn given<P: Kernels, R: Real, S: Source<R>>(s: S) -> Given<P, R> {
    Given::new(s.record(PARAMETERS), s.record(GLOBALS))
}

fn own<P: Kernels, R: Real, S: Source<R>>(s: S) -> VertexOf<P, R> {
    Vertex::join(s.record(SHARED), s.record(PRIVATE))
}

fn update<P: Kernels, K: Update<P>, R: Real, S: Source<R>>(s: S) -> Vec<R> {
    leaves::<P, R>(K::update(&given(s), own::<P, R, S>(s), &Around(s)))
}

fn map<P: Kernels, K: Map<P>, R: Real, S: Source<R>>(s: S) -> Vec<R> {
    leaves::<P, R>(K::map(&given(s), own::<P, R, S>(s)))
}

fn measure<P: Kernels, K: Reduce<P>, R: Real, S: Source<R>>(s: S) -> Vec<R> {
    vec![K::measure(&given(s), own::<P, R, S>(s), &Around(s))]
}

fn project<P: Kernels, K: Project<P>, R: Real, S: Source<R>>(s: S) -> Vec<R> {
    let corners = Corners::build(|k| s.record(10 + k as u64));
    let (corners, own) = K::project(&given(s), corners, s.record(PRIVATE), s.record(19));
    let mut out = Vec::new();
    corners.as_ref().iter().for_each(|corner| corner.each(|_, x| out.push(x)));
    own.each(|_, x| out.push(x));
    out
}

/// Compares lanes with scalars.
macro_rules! compare {
    ($name:expr, $f:ident) => {{
        compare!(@ $name, $f, F32x8);
        compare!(@ $name, $f, F32x16);
        compare!(@ $name, $f, F64x4);
        compare!(@ $name, $f, F64x8);
    }};
    (@ $name:expr, $f:ident, $lanes:ident) => {
        let wide: Vec<$lanes> = $f::<P, K, _, _>(Wide);
        for lane in 0..$lanes::WIDTH {
            let one: Vec<<$lanes as Lanes>::Scalar> = $f::<P, K, _, _>(Scalar(lane as u64));
            for (k, x) in one.iter().enumerate() {
                let mut y = [<$lanes as Lanes>::Scalar::from_f64(0.0); $lanes::WIDTH];
                wide[k].store(&mut y);
                let name = stringify!($lanes);
                assert_eq!(x.canonical_bits(), y[lane].canonical_bits(), "{}: real {k}, lane {lane} of {name}", $name);
            }
        }
    };
}

/// Counts the kernels that were compared.
#[derive(Default)]
struct Conformance {
    kernels: usize,
}

impl<P: Kernels> KernelList<P> for Conformance {
    fn map<K: Map<P>>(&mut self) {
        compare!(K::NAME, map);
        self.kernels += 1;
    }
    fn update<K: Update<P>>(&mut self) {
        compare!(K::NAME, update);
        self.kernels += 1;
    }
    fn project<K: Project<P>>(&mut self) {
        compare!(K::NAME, project);
        self.kernels += 1;
    }
    fn reduce<K: Reduce<P>>(&mut self) {
        compare!(K::NAME, measure);
        self.kernels += 1;
    }
    // These run once for the whole mesh, never on lanes.
    fn scalar<K: ScalarKernel<P>>(&mut self) {}
    fn test<K: Test<P>>(&mut self) {}
}

fn check<P: Kernels>(kernels: usize) {
    let mut conformance = Conformance::default();
    P::list(&mut conformance);
    assert_eq!(conformance.kernels, kernels, "{}", std::any::type_name::<P>());
}

#[test]
fn every_kernel_is_the_same_on_lanes() {
    check::<Heat>(8);
    check::<Implicit>(13);
    check::<Wave>(5);
    check::<Spring>(3);
    check::<Cloth>(14);
    check::<Softbody>(13);
    check::<Xpbd>(11);
    check::<ShallowWater>(8);
    check::<Airfoil>(10);
    check::<Poisson>(25);
    check::<Elasticity>(20);
    check::<Vibration>(26);
}

#[test]
fn nalgebra_products_work_on_lanes() {
    use nalgebra::Matrix3;
    let matrix = |s: f64| Matrix3::from_fn(|i, j| (i as f64 + 1.0) * s - j as f64);
    let (a, b) = (matrix(0.5), matrix(1.5));
    let wide = |m: Matrix3<f64>| m.map(F64x4::lit);
    let product = wide(a) * wide(b);
    assert!((0..9).all(|k| product[k] == F64x4::lit((a * b)[k])));
}
