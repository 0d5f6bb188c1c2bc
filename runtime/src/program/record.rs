//! Records: plain structs of reals that can be taken apart, stored in any layout, and put together again.
//!
//! The trait [`Record`] stands beside [`Real`]. Here is what has it, how a struct gets it, and how records change their precision.

use crate::number::lanes::{F32x8, F32x16, F64x4, F64x8, Mask};
use crate::number::{Int, Ints, Kind, Number, Part, Real, Record, array};
use nalgebra::SMatrix;

impl<R: Real> Record<R> for R {
    const LEN: usize = 1;
    #[inline(always)]
    fn build(mut leaf: impl FnMut(usize) -> R) -> R {
        leaf(0)
    }
    #[inline(always)]
    fn each(&self, mut leaf: impl FnMut(usize, R)) {
        leaf(0, *self);
    }
    #[inline(always)]
    fn zip(self, other: R, f: &mut impl FnMut(R, R) -> R) -> R {
        f(self, other)
    }
    fn parts(name: &str) -> Vec<Part> {
        Part::new(name, 1, Kind::Real)
    }
    #[inline(always)]
    fn kind(_: usize) -> Kind {
        Kind::Real
    }
}

/// The integers beside types of reals; where those are integers themselves, they are records as reals. Each type is
/// spelled out: under its name as `Real::Int` other crates cannot tell it from their own records.
macro_rules! integers {
    ($($real:ty: $integer:ty;)*) => {$(
        impl $crate::Record<$real> for $integer {
            const LEN: usize = 1;
            #[inline(always)]
            fn build(mut leaf: impl FnMut(usize) -> $real) -> Self {
                leaf(0).held_int()
            }
            #[inline(always)]
            fn each(&self, mut leaf: impl FnMut(usize, $real)) {
                leaf(0, <$real>::hold_int(*self));
            }
            #[inline(always)]
            fn zip(self, other: Self, f: &mut impl FnMut($real, $real) -> $real) -> Self {
                f(<$real>::hold_int(self), <$real>::hold_int(other)).held_int()
            }
            fn parts(name: &str) -> Vec<$crate::Part> {
                $crate::Part::new(name, 1, $crate::Kind::Integer)
            }
            #[inline(always)]
            fn kind(_: usize) -> $crate::Kind {
                $crate::Kind::Integer
            }
        }
    )*};
}
integers! {
    f32: Int;
    f64: Int;
    F32x8: Ints<8, Mask<wide::f32x8>>;
    F32x16: Ints<16, Mask<wide::f32x16>>;
    F64x4: Ints<4, Mask<wide::f64x4>>;
    F64x8: Ints<8, Mask<wide::f64x8>>;
}
pub(crate) use integers;

impl<R: Real> Record<R> for () {
    const LEN: usize = 0;
    #[inline(always)]
    fn build(_: impl FnMut(usize) -> R) {}
    #[inline(always)]
    fn each(&self, _: impl FnMut(usize, R)) {}
    #[inline(always)]
    fn zip(self, (): (), _: &mut impl FnMut(R, R) -> R) {}
    fn parts(_: &str) -> Vec<Part> {
        Vec::new()
    }
    fn kind(k: usize) -> Kind {
        panic!("an empty record has no leaf {k}")
    }
}

impl<R: Real, const M: usize, const N: usize> Record<R> for SMatrix<R, M, N> {
    const LEN: usize = M * N;
    #[inline(always)]
    fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
        SMatrix::from_fn(|i, j| leaf(j * M + i))
    }
    #[inline(always)]
    fn each(&self, mut leaf: impl FnMut(usize, R)) {
        for j in 0..N {
            for i in 0..M {
                leaf(j * M + i, self[(i, j)]);
            }
        }
    }
    #[inline(always)]
    fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
        SMatrix::from_fn(|i, j| f(self[(i, j)], other[(i, j)]))
    }
    fn parts(name: &str) -> Vec<Part> {
        Part::new(name, M * N, Kind::Real)
    }
    #[inline(always)]
    fn kind(_: usize) -> Kind {
        Kind::Real
    }
}

/// One after the other. An array of what is one part, such as a vector, is one part too; others are numbered.
impl<R: Real, A: Record<R>, const N: usize> Record<R> for [A; N] {
    const LEN: usize = N * A::LEN;
    #[inline(always)]
    fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
        array(A::build(|_| R::lit(0.0)), |i| A::build(|k| leaf(i * A::LEN + k)))
    }
    #[inline(always)]
    fn each(&self, mut leaf: impl FnMut(usize, R)) {
        for (i, record) in self.iter().enumerate() {
            record.each(|k, x| leaf(i * A::LEN + k, x));
        }
    }
    #[inline(always)]
    fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
        let mut zipped = self;
        for (record, other) in zipped.iter_mut().zip(other) {
            *record = record.zip(other, f);
        }
        zipped
    }
    fn parts(name: &str) -> Vec<Part> {
        match &A::parts(name)[..] {
            [part] => vec![Part { components: N * part.components, ..part.clone() }],
            _ => (0..N).flat_map(|i| A::parts(&format!("{name}{i}"))).collect(),
        }
    }
    #[inline(always)]
    fn kind(k: usize) -> Kind {
        A::kind(k % A::LEN)
    }
}

macro_rules! tuples {
    ($($($name:ident $i:tt),+;)*) => {$(
        impl<R: Real, $($name: Record<R>),+> Record<R> for ($($name,)+) {
            const LEN: usize = 0 $(+ $name::LEN)+;
            #[inline(always)]
            fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
                let mut start = 0;
                ($({
                    let first = start;
                    start += $name::LEN;
                    let _ = start;
                    $name::build(|k| leaf(first + k))
                },)+)
            }
            #[inline(always)]
            fn each(&self, mut leaf: impl FnMut(usize, R)) {
                let mut start = 0;
                $(
                    self.$i.each(|k, x| leaf(start + k, x));
                    start += $name::LEN;
                )+
                let _ = start;
            }
            #[inline(always)]
            fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
                ($(self.$i.zip(other.$i, f),)+)
            }
            fn parts(name: &str) -> Vec<Part> {
                let mut parts = Vec::new();
                $(parts.extend($name::parts(&format!("{name}{}", $i)));)+
                parts
            }
            #[inline(always)]
            fn kind(mut k: usize) -> Kind {
                $(
                    if k < $name::LEN {
                        return $name::kind(k);
                    }
                    k -= $name::LEN;
                )+
                panic!("the record ends {k} leaves before the one that was asked for")
            }
        }
    )*};
}
tuples! {
    A 0;
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
    A 0, B 1, C 2, D 3, E 4, F 5;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6;
    A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7;
}

/// Declares a struct over a number type and makes it a [`Record`]; see there for an example.
///
/// Every field is itself a record: `R`, `R::Int`, a static `nalgebra` vector or matrix over `R`, an array or tuple of records,
/// or another such struct.
#[macro_export]
macro_rules! record {
    ($(#[$meta:meta])* $vis:vis struct $name:ident<$r:ident> { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $name<$r: $crate::Real> { $($(#[$field_meta])* $vis $field: $type),* }

        impl<$r: $crate::Real> $crate::Record<$r> for $name<$r> {
            const LEN: usize = 0 $(+ <$type as $crate::Record<$r>>::LEN)*;
            #[inline(always)]
            fn build(mut leaf: impl FnMut(usize) -> $r) -> Self {
                let mut start = 0;
                $(
                    let $field = <$type as $crate::Record<$r>>::build(|k| leaf(start + k));
                    #[allow(unused_assignments)]
                    { start += <$type as $crate::Record<$r>>::LEN; }
                )*
                Self { $($field),* }
            }
            #[inline(always)]
            fn each(&self, mut leaf: impl FnMut(usize, $r)) {
                let mut start = 0;
                $(
                    <$type as $crate::Record<$r>>::each(&self.$field, |k, x| leaf(start + k, x));
                    #[allow(unused_assignments)]
                    { start += <$type as $crate::Record<$r>>::LEN; }
                )*
            }
            #[inline(always)]
            fn zip(self, other: Self, f: &mut impl FnMut($r, $r) -> $r) -> Self {
                Self { $($field: <$type as $crate::Record<$r>>::zip(self.$field, other.$field, f)),* }
            }
            fn parts(name: &str) -> Vec<$crate::Part> {
                let mut parts = Vec::new();
                $(
                    let field = if name.is_empty() {
                        stringify!($field).to_string()
                    } else {
                        format!("{name}.{}", stringify!($field))
                    };
                    parts.extend(<$type as $crate::Record<$r>>::parts(&field));
                )*
                parts
            }
            #[inline(always)]
            fn kind(mut k: usize) -> $crate::Kind {
                $(
                    if k < <$type as $crate::Record<$r>>::LEN {
                        return <$type as $crate::Record<$r>>::kind(k);
                    }
                    k -= <$type as $crate::Record<$r>>::LEN;
                )*
                panic!("the record ends {k} leaves before the one that was asked for")
            }
        }
    };
}

/// The state of a vertex: a record of which some fields are shared. [`vertex!`](crate::vertex) writes it.
pub trait Vertex<R: Real>: Copy + Send + Sync {
    /// The fields that neighbors read.
    type Shared: Record<R>;
    /// The others.
    type Private: Record<R>;

    /// Takes it apart.
    fn split(self) -> (Self::Shared, Self::Private);

    /// Puts it together.
    fn join(shared: Self::Shared, private: Self::Private) -> Self;
}

/// Declares the state of a vertex: a struct over a number type whose fields are `R`, static `nalgebra` vectors and matrices
/// over `R`, or records ([`record!`](crate::record)). What neighbors read is marked `shared`: it is gathered all the time, so
/// mark no more than that.
///
/// ```
/// use meshweft::{Vertex, vertex};
/// use nalgebra::Vector3;
/// vertex! {
///     /// A point mass.
///     pub struct Body<R> {
///         /// Position, m.
///         shared position: Vector3<R>,
///         /// Velocity, m/s.
///         velocity: Vector3<R>,
///     }
/// }
/// let body = Body { position: Vector3::new(1.0, 2.0, 3.0), velocity: Vector3::zeros() };
/// let (shared, _) = body.split();
/// assert_eq!(shared.position, body.position);
/// ```
#[macro_export]
macro_rules! vertex {
    ($(#[$meta:meta])* $vis:vis struct $name:ident<$r:ident> { $($fields:tt)* }) => {
        $crate::vertex! { @ [$(#[$meta])* $vis struct $name $r] [] [] [] $($fields)*, }
    };
    (@ $head:tt [$($all:tt)*] [$($shared:tt)*] $private:tt
        $(#[$meta:meta])* shared $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::vertex! { @ $head [$($all)* $(#[$meta])* $field: $type,] [$($shared)* $field: $type,] $private $($rest)* }
    };
    (@ $head:tt [$($all:tt)*] $shared:tt [$($private:tt)*] $(#[$meta:meta])* $field:ident: $type:ty, $($rest:tt)*) => {
        $crate::vertex! { @ $head [$($all)* $(#[$meta])* $field: $type,] $shared [$($private)* $field: $type,] $($rest)* }
    };
    (@ [$(#[$meta:meta])* $vis:vis struct $name:ident $r:ident] [$($(#[$field_meta:meta])* $field:ident: $type:ty,)*]
        [$($shared:ident: $shared_type:ty,)*] [$($private:ident: $private_type:ty,)*] $(,)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $name<$r: $crate::Real> { $($(#[$field_meta])* $vis $field: $type),* }

        const _: () = {
            $crate::vertex! { @record SharedFields $r [$($shared: $shared_type),*] }
            $crate::vertex! { @record PrivateFields $r [$($private: $private_type),*] }

            impl<$r: $crate::Real> $crate::Vertex<$r> for $name<$r> {
                type Shared = $crate::vertex!(@type SharedFields $r [$($shared)*]);
                type Private = $crate::vertex!(@type PrivateFields $r [$($private)*]);

                #[inline(always)]
                fn split(self) -> (Self::Shared, Self::Private) {
                    (
                        $crate::vertex!(@value SharedFields [$($shared: self.$shared),*]),
                        $crate::vertex!(@value PrivateFields [$($private: self.$private),*]),
                    )
                }

                #[inline(always)]
                fn join(shared: Self::Shared, private: Self::Private) -> Self {
                    let _ = (shared, private);
                    $name { $($shared: shared.$shared,)* $($private: private.$private,)* }
                }
            }
        };
    };
    (@record $name:ident $r:ident []) => {};
    (@record $name:ident $r:ident [$($fields:tt)+]) => {
        $crate::record! {
            /// Some fields of the vertex.
            #[allow(missing_docs)]
            pub struct $name<$r> { $($fields)+ }
        }
    };
    (@type $name:ident $r:ident []) => { () };
    (@type $name:ident $r:ident [$($fields:tt)+]) => { $name<$r> };
    (@value $name:ident []) => { () };
    (@value $name:ident [$($fields:tt)+]) => { $name { $($fields)+ } };
}

impl Kind {
    /// What state stores for a leaf of this kind.
    #[inline(always)]
    pub(crate) fn encode<T: Number>(self, value: f64) -> T {
        match self {
            Kind::Real => T::from_f64(value),
            Kind::Integer => T::hold_int(<Int as Real>::lit(value)),
        }
    }

    /// The value of what state stores.
    #[inline(always)]
    pub(crate) fn decode<T: Number>(self, stored: T) -> f64 {
        match self {
            Kind::Real => stored.to_f64(),
            Kind::Integer => stored.held_int().to_f64(),
        }
    }
}

/// The leaves of a record, as state of a precision stores them.
pub(crate) fn leaves<A: Record<f64>, T: Number>(from: &A) -> Vec<T> {
    let mut leaves = Vec::with_capacity(A::LEN);
    push(from, &mut leaves);
    leaves
}

/// Appends them.
pub(crate) fn push<A: Record<f64>, T: Number>(from: &A, leaves: &mut Vec<T>) {
    from.each(|k, x| leaves.push(A::kind(k).encode(x)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Integer;
    use crate::number::Lanes;
    use nalgebra::{Matrix2, Vector3};

    /// Rounds every real of a record to the precision that runs.
    fn convert<A: Record<f64>, T: Number, B: Record<T>>(from: A) -> B {
        let leaves = leaves::<A, T>(&from);
        B::build(|k| leaves[k])
    }

    record! {
        struct Inner<R> { spin: Vector3<R>, strain: Matrix2<R> }
    }
    record! {
        struct Outer<R> { inner: Inner<R>, mass: R }
    }
    record! {
        struct Mixed<R> { label: R::Int, pair: [Vector3<R>; 2], more: (R, R::Int, [Inner<R>; 2]) }
    }

    #[test]
    fn taking_apart_and_putting_together_are_inverse() {
        let outer = Outer::<f32>::build(|k| k as f32);
        let mut seen = Vec::new();
        outer.each(|k, x| seen.push((k, x)));
        assert_eq!(seen, (0..8).map(|k| (k, k as f32)).collect::<Vec<_>>());
        assert_eq!(outer.inner.strain[(1, 0)], 4.0);
        let wide: Outer<f64> = convert::<Outer<f64>, f64, _>(Outer::build(|k| k as f64));
        assert_eq!(wide.mass, 7.0);
    }

    #[test]
    fn parts_name_the_path() {
        let names: Vec<_> = Outer::<f64>::parts("").into_iter().map(|p| (p.name, p.components)).collect();
        assert_eq!(names, [("inner.spin".into(), 3), ("inner.strain".into(), 4), ("mass".into(), 1)]);
        let names: Vec<_> = Mixed::<f64>::parts("").into_iter().map(|p| (p.name, p.components)).collect();
        let expected =
            ["label", "pair", "more0", "more1", "more20.spin", "more20.strain", "more21.spin", "more21.strain"];
        assert_eq!(
            names,
            expected.into_iter().zip([1, 6, 1, 1, 3, 4, 3, 4]).map(|(n, c)| (n.into(), c)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn integers_are_leaves_in_every_precision() {
        // Negative integers have the bits of NaN.
        let mixed = Mixed::<f64>::build(|k| -(k as f64));
        assert_eq!((mixed.label, mixed.more.1, mixed.more.0), (Int(0), Int(-8), -7.0));
        let half: Mixed<f32> = convert::<_, f32, _>(mixed);
        let whole: Mixed<Int> = convert::<_, Int, _>(mixed);
        let wide = Mixed::<F32x8>::build(|k| {
            let mut leaf = 0.0;
            half.each(|i, x| leaf = if i == k { x } else { leaf });
            F32x8::from_fn(|_| leaf)
        });
        assert_eq!((half.more.1, half.more.0, whole.more.1, whole.more.0), (Int(-8), -7.0, Int(-8), Int(-7)));
        assert_eq!(wide.more.1, Integer::lit(-8));
        let kinds = (0..<Mixed<f32> as Record<f32>>::LEN).map(Mixed::<f32>::kind);
        let integers: Vec<usize> =
            kinds.enumerate().filter(|(_, kind)| *kind == Kind::Integer).map(|(k, _)| k).collect();
        assert_eq!(integers, [0, 8]);
        half.each(|k, x| assert_eq!(Mixed::<f32>::kind(k).decode(x), -(k as f64)));
        assert_eq!(half.probe(), 0.0);
        assert!((0..8).all(|i| {
            let mut lanes = [1.0; 8];
            wide.probe().store(&mut lanes);
            lanes[i] == 0.0
        }));
        let non_finite = Mixed::<f32> { more: (f32::INFINITY, Int(0), half.more.2), ..half };
        assert!(non_finite.probe().is_nan());
    }
}
