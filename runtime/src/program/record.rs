//! Records: plain structs of reals that can be taken apart, stored in any layout, and put together again.

use super::lanes::Lanes;
use super::real::{Number, Real};
use nalgebra::SMatrix;

/// One named part of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name, such as `position`.
    pub name: String,
    /// Reals it consists of: 1 a scalar, 3 a vector, 9 a 3×3 matrix (column after column).
    pub components: usize,
}

/// A plain value of [`Record::LEN`] reals: a scalar, a static vector or matrix, a tuple, or a struct made by
/// [`record!`](crate::record).
///
/// ```
/// use meshweft::{Record, record};
/// use nalgebra::Vector3;
/// record! {
///     /// A point mass.
///     pub struct Body<R> { position: Vector3<R>, mass: R }
/// }
/// let body = Body::<f64>::build(|k| k as f64);
/// assert_eq!((<Body<f64> as Record<f64>>::LEN, body.position.z, body.mass), (4, 2.0, 3.0));
/// assert_eq!(<Body<f64> as Record<f64>>::parts("")[0].name, "position");
/// ```
pub trait Record<R: Real>: Copy + Send + Sync {
    /// Number of reals.
    const LEN: usize;

    /// Puts a record together; `leaf(k)` gives real `k`, asked in ascending order.
    fn build(leaf: impl FnMut(usize) -> R) -> Self;

    /// Takes a record apart; `leaf(k, x)` receives real `k`, in ascending order.
    fn each(&self, leaf: impl FnMut(usize, R));

    /// Combines two records real by real.
    fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self;

    /// Names the parts, in the order of the reals; `name` is that of the whole, empty at the top.
    fn parts(name: &str) -> Vec<Part>;
}

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
        vec![Part { name: if name.is_empty() { "value" } else { name }.into(), components: 1 }]
    }
}

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
        vec![Part { name: if name.is_empty() { "value" } else { name }.into(), components: M * N }]
    }
}

impl<R: Real, A: Record<R>, B: Record<R>> Record<R> for (A, B) {
    const LEN: usize = A::LEN + B::LEN;
    #[inline(always)]
    fn build(mut leaf: impl FnMut(usize) -> R) -> Self {
        let first = A::build(&mut leaf);
        (first, B::build(|k| leaf(A::LEN + k)))
    }
    #[inline(always)]
    fn each(&self, mut leaf: impl FnMut(usize, R)) {
        self.0.each(&mut leaf);
        self.1.each(|k, x| leaf(A::LEN + k, x));
    }
    #[inline(always)]
    fn zip(self, other: Self, f: &mut impl FnMut(R, R) -> R) -> Self {
        (self.0.zip(other.0, f), self.1.zip(other.1, f))
    }
    fn parts(name: &str) -> Vec<Part> {
        let mut parts = A::parts(&format!("{name}0"));
        parts.extend(B::parts(&format!("{name}1")));
        parts
    }
}

/// Declares a struct over a number type and makes it a [`Record`]; see there for an example.
///
/// Every field is itself a record: `R`, a static `nalgebra` vector or matrix over `R`, or another such struct.
#[macro_export]
macro_rules! record {
    ($(#[$meta:meta])* $vis:vis struct $name:ident<$r:ident> { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        $vis struct $name<$r> { $($(#[$field_meta])* $vis $field: $type),* }

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
        }
    };
}

/// Rounds every real of a record from 64 bits to the precision that runs.
pub(crate) fn convert<A: Record<f64>, T: Number, B: Record<T>>(from: A) -> B {
    let mut leaves = Vec::with_capacity(A::LEN);
    from.each(|_, x| leaves.push(x));
    B::build(|k| T::from_f64(leaves[k]))
}

/// The same numbers in every lane.
pub(crate) fn splat<A: Record<T>, T: Number, L: Lanes<Scalar = T>, B: Record<L>>(from: A) -> B {
    let mut leaves = Vec::with_capacity(A::LEN);
    from.each(|_, x| leaves.push(x));
    B::build(|k| L::from_fn(|_| leaves[k]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{Matrix2, Vector3};

    record! {
        struct Inner<R> { spin: Vector3<R>, strain: Matrix2<R> }
    }
    record! {
        struct Outer<R> { inner: Inner<R>, mass: R }
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
    }
}
