//! Records that say of themselves what is not so.

use super::*;

/// What a record written by hand says of itself is an error where it is not so, before an engine cuts the state by it.
#[test]
fn records_that_lie_are_refused() {
    /// Two reals, of which `LIE` is wrong.
    #[derive(Clone, Copy)]
    struct Liar<R, const LIE: u8>([R; 2]);
    impl<R: Real, const LIE: u8> Record<R> for Liar<R, LIE> {
        const LEN: usize = 2;
        fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
            Liar([leaf(0), leaf(if LIE == 0 { 7 } else { 1 })])
        }
        fn each(&self, mut leaf: impl FnMut(usize, R)) {
            leaf(0, self.0[0]);
            if LIE != 1 {
                leaf(1, self.0[1]);
            }
        }
        fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
            Liar([f(self.0[0], other.0[0]), f(self.0[1], other.0[1])])
        }
        fn parts(_: &str) -> Vec<Part> {
            vec![Part { name: "pair".into(), components: if LIE == 2 { 3 } else { 2 }, kind: Kind::Real }]
        }
        fn kind(k: usize) -> Kind {
            if LIE == 3 && k == 1 { Kind::Integer } else { Kind::Real }
        }
    }
    #[derive(Clone, Copy)]
    struct State<R, const LIE: u8>(Liar<R, LIE>);
    impl<R: Real, const LIE: u8> Vertex<R> for State<R, LIE> {
        type Shared = Liar<R, LIE>;
        type Private = ();
        fn split(self) -> (Liar<R, LIE>, ()) {
            (self.0, ())
        }
        fn join(pair: Liar<R, LIE>, (): ()) -> Self {
            State(pair)
        }
    }
    struct Untrue<const LIE: u8>;
    impl<const LIE: u8> crate::Kernels for Untrue<LIE> {
        type Vertex<R: Real> = State<R, LIE>;
        type Parameters<R: Real> = ();
        type Globals<R: Real> = ();
        fn list(_: &mut impl crate::KernelList<Self>) {}
    }
    impl<const LIE: u8> Program for Untrue<LIE> {
        fn initial(&self, _: &Mesh, _: u32) -> State<f64, LIE> {
            State(Liar([0.0; 2]))
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }
    says(&refusal(Untrue::<0>), "has 2 reals, but `Record::build` visits [0, 7]: each once, in ascending order");
    says(&refusal(Untrue::<1>), "has 2 reals, but `Record::each` visits [0]: each once, in ascending order");
    says(&refusal(Untrue::<2>), "has 2 reals by `Record::LEN`, but 3 by `Record::parts`");
    says(&refusal(Untrue::<3>), "says another kind of real 1 by `Record::kind` than by `Record::parts`");
}

#[test]
fn a_record_whose_length_depends_on_the_number_type_is_refused() {
    /// As many reals as its number type has bytes.
    #[derive(Clone, Copy)]
    struct Odd<R>(R);
    impl<R: Real> Record<R> for Odd<R> {
        const LEN: usize = size_of::<R>();
        fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
            Odd((0..Self::LEN).map(&mut leaf).fold(R::lit(0.0), |_, x| x))
        }
        fn each(&self, mut leaf: impl FnMut(usize, R)) {
            (0..Self::LEN).for_each(|k| leaf(k, self.0));
        }
        fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
            Odd(f(self.0, other.0))
        }
        fn parts(_: &str) -> Vec<Part> {
            vec![Part { name: "odd".into(), components: Self::LEN, kind: Kind::Real }]
        }
        fn kind(_: usize) -> Kind {
            Kind::Real
        }
    }
    #[derive(Clone, Copy)]
    struct State<R>(Odd<R>);
    impl<R: Real> Vertex<R> for State<R> {
        type Shared = Odd<R>;
        type Private = ();
        fn split(self) -> (Odd<R>, ()) {
            (self.0, ())
        }
        fn join(odd: Odd<R>, (): ()) -> Self {
            State(odd)
        }
    }
    struct Uneven;
    kernels! {
        for Uneven: State;
        map Stay |_, own| own;
    }
    impl Program for Uneven {
        fn initial(&self, _: &Mesh, _: u32) -> State<f64> {
            State(Odd(0.0))
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.map(Stay);
        }
    }
    says(&refusal(Uneven), "the shared state depends on the number type: `Record::LEN` must be the same for all");

    // And the data of a star.
    stars! { Ropes[1]: Odd<R>; }
    struct Data;
    kernels! {
        for Data: Point;
        update Pull |_, own, around| Point { flow: around.sum(Ropes, |_, odd| odd.0), ..own };
    }
    impl Program for Data {
        fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
            stars.add(Ropes, mesh.edges(), |_| Odd(1.0));
            Ok(())
        }
        fn initial(&self, _: &Mesh, _: u32) -> Point<f64> {
            Point { heat: 0.0, flow: 0.0 }
        }
        fn step(&self, stages: &mut Stages<Self>) {
            stages.sweep(Pull, 1);
        }
    }
    says(&refusal(Data), "star Ropes");
}

#[test]
fn two_fields_of_one_name_are_refused() {
    record! { pub struct Inner<R> { heat: R } }
    #[derive(Clone, Copy)]
    struct Twin<R: Real>(Inner<R>, Inner<R>);
    impl<R: Real> Vertex<R> for Twin<R> {
        type Shared = Inner<R>;
        type Private = Inner<R>;
        fn split(self) -> (Inner<R>, Inner<R>) {
            (self.0, self.1)
        }
        fn join(a: Inner<R>, b: Inner<R>) -> Self {
            Twin(a, b)
        }
    }
    struct Twins;
    kernels! { for Twins: Twin; }
    impl Program for Twins {
        fn initial(&self, _: &Mesh, _: u32) -> Twin<f64> {
            Twin(Inner { heat: 0.0 }, Inner { heat: 0.0 })
        }
        fn step(&self, _: &mut Stages<Self>) {}
    }
    says(&refusal(Twins), "two fields of a vertex are called heat: each needs a name of its own");
}
