//! The short form of kernels.

/// Declares a kernel as the formula it is: a unit struct with its [`Map`](crate::Map), [`Kernel`](crate::Kernel) or
/// [`Reduce`](crate::Reduce) implementation. Inside the body `R` is the number type.
///
/// - `map NAME for PROGRAM: |parameters, shared, private| (shared, private)`
/// - `update NAME for PROGRAM: |parameters, shared, private, neighbors| (shared, private)`
/// - `sum`, `min` or `max NAME ("name", "unit") for PROGRAM: |parameters, shared, private, neighbors| number`
///
/// ```
/// use meshweft::{Kernel, Real, Reduce, kernel, record};
/// # use meshweft::{Program, Stages, Star, Stars, mesh::Mesh};
/// record! { struct Height<R> { height: R } }
/// struct Edges;
/// impl Star<1> for Edges { const INDEX: usize = 0; type Data<R: Real> = (); }
/// struct Smooth;
/// # impl Program for Smooth {
/// #     type Parameters<R: Real> = (); type Shared<R: Real> = Height<R>; type Private<R: Real> = ();
/// #     fn time_step(&self) -> f64 { 1.0 }
/// #     fn parameters(&self, _: f64) {}
/// #     fn stars(&self, _: &Mesh, _: &mut Stars) -> meshweft::Result<()> { Ok(()) }
/// #     fn initial(&self, _: &Mesh, _: u32) -> (Height<f64>, ()) { (Height { height: 0.0 }, ()) }
/// #     fn step(&self, stages: &mut impl Stages<Self>) { stages.sweep(Average, 1) }
/// # }
/// kernel! {
///     /// The mean of the neighbors' heights.
///     update Average for Smooth: |_, _own, private, neighbors| {
///         let (sum, count) = neighbors.fold(Edges, (R::lit(0.0), R::lit(0.0)), |(sum, count), [other], ()| {
///             (sum + other.height, count + R::lit(1.0))
///         });
///         (Height { height: sum / count }, private)
///     }
/// }
/// kernel! {
///     /// The highest height.
///     max Highest ("highest", "m") for Smooth: |_, own, _, _| own.height
/// }
/// assert_eq!((<Average as Kernel<Smooth>>::NAME, <Highest as Reduce<Smooth>>::UNIT), ("Average", "m"));
/// ```
#[macro_export]
macro_rules! kernel {
    ($(#[$meta:meta])* map $name:ident for $program:ty:
        |$p:pat_param, $own:pat_param, $private:pat_param| $body:expr) => {
        $(#[$meta])*
        struct $name;

        impl $crate::Map<$program> for $name {
            const NAME: &'static str = stringify!($name);

            #[inline(always)]
            fn update<R: $crate::Real>(
                $p: &<$program as $crate::Program>::Parameters<R>,
                $own: <$program as $crate::Program>::Shared<R>,
                $private: <$program as $crate::Program>::Private<R>,
            ) -> (<$program as $crate::Program>::Shared<R>, <$program as $crate::Program>::Private<R>) {
                $body
            }
        }
    };
    ($(#[$meta:meta])* update $name:ident for $program:ty:
        |$p:pat_param, $own:pat_param, $private:pat_param, $neighbors:pat_param| $body:expr) => {
        $(#[$meta])*
        struct $name;

        impl $crate::Kernel<$program> for $name {
            const NAME: &'static str = stringify!($name);

            #[inline(always)]
            fn update<R: $crate::Real>(
                $p: &<$program as $crate::Program>::Parameters<R>,
                $own: <$program as $crate::Program>::Shared<R>,
                $private: <$program as $crate::Program>::Private<R>,
                $neighbors: &impl $crate::Neighbors<R, <$program as $crate::Program>::Shared<R>>,
            ) -> (<$program as $crate::Program>::Shared<R>, <$program as $crate::Program>::Private<R>) {
                $body
            }
        }
    };
    ($(#[$meta:meta])* sum $($rest:tt)*) => { $crate::kernel! { @ Sum $(#[$meta])* $($rest)* } };
    ($(#[$meta:meta])* min $($rest:tt)*) => { $crate::kernel! { @ Min $(#[$meta])* $($rest)* } };
    ($(#[$meta:meta])* max $($rest:tt)*) => { $crate::kernel! { @ Max $(#[$meta])* $($rest)* } };
    (@ $how:ident $(#[$meta:meta])* $name:ident ($label:literal, $unit:literal) for $program:ty:
        |$p:pat_param, $own:pat_param, $private:pat_param, $neighbors:pat_param| $body:expr) => {
        $(#[$meta])*
        struct $name;

        impl $crate::Reduce<$program> for $name {
            const NAME: &'static str = $label;
            const UNIT: &'static str = $unit;
            const COMBINE: $crate::Combine = $crate::Combine::$how;

            #[inline(always)]
            fn measure<R: $crate::Real>(
                $p: &<$program as $crate::Program>::Parameters<R>,
                $own: <$program as $crate::Program>::Shared<R>,
                $private: <$program as $crate::Program>::Private<R>,
                $neighbors: &impl $crate::Neighbors<R, <$program as $crate::Program>::Shared<R>>,
            ) -> R {
                $body
            }
        }
    };
}
