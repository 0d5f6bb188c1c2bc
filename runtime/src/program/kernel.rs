//! Kernels: the formulas of a program, and their short form.

use super::{Given, Kernels, Neighbors, VertexOf};
use crate::number::Real;

/// What all kernels have: a name, and settings of their own.
pub trait Kernel: Send + Sync + 'static {
    /// Its name in tables and shaders, unlike that of any other kernel of the program.
    const NAME: &'static str;

    /// Its settings, at most four reals; [`Given::settings`] has them in the kernel.
    fn settings(&self) -> Vec<f64> {
        Vec::new()
    }
}

/// A vertex update that reads the neighbors.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no update of this program",
    note = "`sweep` and `jacobi` take kernels declared as `update`; one declared as `map` goes to `stages.map`"
)]
pub trait Update<P: Kernels>: Kernel {
    /// Whether the same state of a vertex and its neighbors, parameters, globals and settings always come to the same new state
    /// and may therefore be left out where nothing has changed since the last time.
    const QUIET: bool = false;

    /// The new state of a vertex from its own and its neighbors'.
    fn update<R: Real>(given: &Given<P, R>, own: VertexOf<P, R>, around: &impl Neighbors<P, R>) -> VertexOf<P, R>;
}

/// A vertex update that reads the vertex alone.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no map of this program",
    note = "`map` takes kernels declared as `map`; one declared as `update` goes to `stages.sweep` or `stages.jacobi`"
)]
pub trait Map<P: Kernels>: Kernel {
    /// The new state of a vertex from its own.
    fn map<R: Real>(given: &Given<P, R>, own: VertexOf<P, R>) -> VertexOf<P, R>;
}

/// A number measured at every vertex and combined over the mesh.
///
/// The combination is a fixed tree over blocks of 4,096 vertices consecutive along the curve, in 64 bits, so it does
/// not depend on threads.
#[diagnostic::on_unimplemented(
    message = "`{Self}` measures nothing of this program",
    note = "`reduce` and `measure` take kernels declared as `sum`, `min` or `max`"
)]
pub trait Reduce<P: Kernels>: Kernel {
    /// How the values of the vertices are combined.
    const COMBINE: Combine;
    /// Its label and unit (empty for a pure number) among the metrics; one without is measured by steps alone.
    const METRIC: Option<(&'static str, &'static str)>;

    /// The share of one vertex.
    fn measure<R: Real>(given: &Given<P, R>, own: VertexOf<P, R>, around: &impl Neighbors<P, R>) -> R;
}

/// New globals from parameters and globals, once for the whole mesh.
#[diagnostic::on_unimplemented(
    message = "`{Self}` computes no globals of this program",
    note = "`scalar` takes kernels declared as `scalar`"
)]
pub trait Scalar<P: Kernels>: Kernel {
    /// The new globals.
    fn compute<R: Real>(given: &Given<P, R>) -> P::Globals<R>;
}

/// A decision by parameters and globals, once for the whole mesh.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no test of this program",
    note = "`until` takes kernels declared as `test`"
)]
pub trait Test<P: Kernels>: Kernel {
    /// Whether it holds.
    fn test<R: Real>(given: &Given<P, R>) -> R::Mask;
}

/// How a [`Reduce`] combines the values of the vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Their sum; 0 without vertices.
    Sum,
    /// The smallest; infinity without vertices.
    Min,
    /// The largest; minus infinity without vertices.
    Max,
}

impl Combine {
    /// What it comes to without vertices.
    pub(crate) fn empty(self) -> f64 {
        match self {
            Combine::Sum => 0.0,
            Combine::Min => f64::INFINITY,
            Combine::Max => f64::NEG_INFINITY,
        }
    }
}

/// Declares the kernels of a program, each as the formula it is, and names its records. In the formulas `R` is the number
/// type, `p` the parameters ([`Given`](crate::Given)), `own` the vertex and `around` its neighbors
/// ([`Neighbors`](crate::Neighbors)).
///
/// The first line names the program and its records: vertex, parameters, globals; those left out are `()`. Then, in any order:
///
/// - `map NAME |p, own| new;`
/// - `update NAME |p, own, around| new;`
/// - `quiet update NAME |p, own, around| new;`, which a CPU leaves out wherever nothing has changed since it last ran there: a
///   front that moves through a mesh at rest costs what it moves through. Neither bits nor rounds change. Such a kernel neither
///   reads the step nor draws random numbers
/// - `relax NAME(Star: R) { held |own| key; offer |p, from, edge| key; take |p, own, offer, from| new; }`, by which a vertex takes the
///   least that its neighbors offer, where that is less than what it holds ([`Relax`](crate::Relax))
/// - `project NAME(Star) |p, corners, state, data| (corners, state);`, by which elements move their corners in place, one after the
///   other ([`Project`](crate::Project))
/// - `sum NAME("label", "unit") |p, own, around| real;`, also `min` and `max`; without a label it is no metric. One
///   that looks at no neighbors is measured while vertices that have just been updated are still in a cache
/// - `scalar NAME |p| globals;`
/// - `test NAME |p| mask;`
/// - `use KIND PATH;` for a kernel whose traits are implemented elsewhere
///
/// A kernel with settings of its own names them in brackets: `update Relax[omega] |p, own, around| ...;` is then a struct
/// `Relax { omega: f64 }`, and `omega` a real in its formula.
///
/// ```
/// use meshweft::{Kernel, Mesh, Program, Real, Reduce, Stages, kernels, stars, vertex};
/// vertex! { pub struct Height<R> { shared height: R } }
/// stars! { Edges[1]; }
/// struct Smooth;
/// kernels! {
///     for Smooth: Height;
///     /// The mean of the neighbors' heights, weighted.
///     update Average[weight] |_, own, around| {
///         let (sum, count) = around.sum(Edges, |[other], ()| (other.height, R::lit(1.0)));
///         Height { height: own.height + weight * (sum / count - own.height) }
///     };
///     /// The highest height.
///     max Highest("highest", "m") |_, own, _| own.height;
/// }
/// impl Program for Smooth {
///     fn initial(&self, mesh: &Mesh, v: u32) -> Height<f64> { Height { height: mesh.points()[v as usize][2] } }
///     fn step(&self, stages: &mut Stages<Self>) { stages.sweep(Average { weight: 0.5 }, 3) }
/// }
/// assert_eq!((Average::NAME, <Highest as Reduce<Smooth>>::METRIC), ("Average", Some(("highest", "m"))));
/// ```
#[macro_export]
macro_rules! kernels {
    (for $program:ty: $vertex:ident; $($rest:tt)*) => {
        $crate::kernels! { @ ($program, $vertex<R>, (), ()) [] $($rest)* }
    };
    (for $program:ty: $vertex:ident, $parameters:ident; $($rest:tt)*) => {
        $crate::kernels! { @ ($program, $vertex<R>, $parameters<R>, ()) [] $($rest)* }
    };
    (for $program:ty: $vertex:ident, (), $globals:ident; $($rest:tt)*) => {
        $crate::kernels! { @ ($program, $vertex<R>, (), $globals<R>) [] $($rest)* }
    };
    (for $program:ty: $vertex:ident, $parameters:ident, $globals:ident; $($rest:tt)*) => {
        $crate::kernels! { @ ($program, $vertex<R>, $parameters<R>, $globals<R>) [] $($rest)* }
    };

    (@ ($program:ty, $vertex:ty, $parameters:ty, $globals:ty) [$($kind:ident $kernel:ty;)*]) => {
        impl $crate::Kernels for $program {
            type Vertex<R: $crate::Real> = $vertex;
            type Parameters<R: $crate::Real> = $parameters;
            type Globals<R: $crate::Real> = $globals;

            fn list(kernels: &mut impl $crate::KernelList<Self>) {
                $(kernels.$kind::<$kernel>();)*
                let _ = kernels;
            }
        }
    };
    (@ $records:tt [$($list:tt)*] use $kind:ident $kernel:ty; $($rest:tt)*) => {
        $crate::kernels! { @ $records [$($list)* $kind $kernel;] $($rest)* }
    };
    (@ ($program:ty, $($records:ty),*) [$($list:tt)*] $(#[$meta:meta])* map $name:ident $([$($setting:ident),+])?
        |$p:pat_param, $own:pat_param| $body:expr; $($rest:tt)*) => {
        $crate::kernels! { @kernel $(#[$meta])* $name [$($($setting),+)?] }
        impl $crate::Map<$program> for $name {
            #[inline(always)]
            fn map<R: $crate::Real>(
                given: &$crate::Given<$program, R>,
                $own: $crate::VertexOf<$program, R>,
            ) -> $crate::VertexOf<$program, R> {
                $(let [$($setting),+] = given.settings();)?
                let $p = given;
                $body
            }
        }
        $crate::kernels! { @ ($program, $($records),*) [$($list)* map $name;] $($rest)* }
    };
    (@ $records:tt $list:tt $(#[$meta:meta])* update $($rest:tt)*) => {
        $crate::kernels! { @update false $records $list $(#[$meta])* $($rest)* }
    };
    (@ $records:tt $list:tt $(#[$meta:meta])* quiet update $($rest:tt)*) => {
        $crate::kernels! { @update true $records $list $(#[$meta])* $($rest)* }
    };
    (@update $quiet:literal ($program:ty, $($records:ty),*) [$($list:tt)*] $(#[$meta:meta])* $name:ident
        $([$($setting:ident),+])? |$p:pat_param, $own:pat_param, $around:pat_param| $body:expr; $($rest:tt)*) => {
        $crate::kernels! { @kernel $(#[$meta])* $name [$($($setting),+)?] }
        impl $crate::Update<$program> for $name {
            const QUIET: bool = $quiet;

            #[inline(always)]
            fn update<R: $crate::Real>(
                given: &$crate::Given<$program, R>,
                $own: $crate::VertexOf<$program, R>,
                $around: &impl $crate::Neighbors<$program, R>,
            ) -> $crate::VertexOf<$program, R> {
                $(let [$($setting),+] = given.settings();)?
                let $p = given;
                $body
            }
        }
        $crate::kernels! { @ ($program, $($records),*) [$($list)* update $name;] $($rest)* }
    };
    (@ ($program:ty, $($records:ty),*) [$($list:tt)*] $(#[$meta:meta])* relax $name:ident $([$($setting:ident),+])?
        ($star:ident: $key:ty) {
            held |$held:pat_param| $what:expr;
            offer |$p:pat_param, $from:pat_param, $edge:pat_param| $offer:expr;
            take |$taken:pat_param, $own:pat_param, $offered:pat_param, $of:pat_param| $new:expr;
        }
        $($rest:tt)*) => {
        $crate::kernels! { @kernel $(#[$meta])* $name [$($($setting),+)?] }
        impl $crate::Relax<$program> for $name {
            type Along = $star;
            const ALONG: $star = $star;
            type Key<R: $crate::Real> = $key;

            #[inline(always)]
            fn held<R: $crate::Real>($held: &$crate::SharedOf<$program, R>) -> $key {
                $what
            }

            #[inline(always)]
            fn offer<R: $crate::Real>(
                given: &$crate::Given<$program, R>,
                $from: $crate::SharedOf<$program, R>,
                $edge: <$star as $crate::Star<1>>::Data<R>,
            ) -> $key {
                $(let [$($setting),+] = given.settings(); $(let _ = $setting;)+)?
                let $p = given;
                $offer
            }

            #[inline(always)]
            fn take<R: $crate::Real>(
                given: &$crate::Given<$program, R>,
                $own: $crate::VertexOf<$program, R>,
                $offered: $key,
                $of: $crate::SharedOf<$program, R>,
            ) -> $crate::VertexOf<$program, R> {
                $(let [$($setting),+] = given.settings(); $(let _ = $setting;)+)?
                let $taken = given;
                $new
            }
        }
        $crate::kernels! { @ ($program, $($records),*) [$($list)* relax $name;] $($rest)* }
    };
    (@ ($program:ty, $($records:ty),*) [$($list:tt)*] $(#[$meta:meta])* project $name:ident $([$($setting:ident),+])?
        ($star:ident) |$p:pat_param, $corners:pat_param, $own:pat_param, $data:pat_param| $body:expr; $($rest:tt)*) => {
        $crate::kernels! { @kernel $(#[$meta])* $name [$($($setting),+)?] }
        impl $crate::Project<$program> for $name {
            type Along = $star;

            #[inline(always)]
            fn project<R: $crate::Real>(
                given: &$crate::Given<$program, R>,
                $corners: $crate::CornersOf<$program, $star, R>,
                $own: $crate::StateOf<$star, R>,
                $data: <$star as $crate::Elements>::Data<R>,
            ) -> $crate::Projected<$program, $star, R> {
                $(let [$($setting),+] = given.settings();)?
                let $p = given;
                $body
            }
        }
        $crate::kernels! { @ ($program, $($records),*) [$($list)* project $name;] $($rest)* }
    };
    (@ ($program:ty, $($records:ty),*) [$($list:tt)*] $(#[$meta:meta])* scalar $name:ident $([$($setting:ident),+])?
        |$p:pat_param| $body:expr; $($rest:tt)*) => {
        $crate::kernels! { @kernel $(#[$meta])* $name [$($($setting),+)?] }
        impl $crate::Scalar<$program> for $name {
            #[inline(always)]
            fn compute<R: $crate::Real>(
                given: &$crate::Given<$program, R>,
            ) -> <$program as $crate::Kernels>::Globals<R> {
                $(let [$($setting),+] = given.settings();)?
                let $p = given;
                $body
            }
        }
        $crate::kernels! { @ ($program, $($records),*) [$($list)* scalar $name;] $($rest)* }
    };
    (@ ($program:ty, $($records:ty),*) [$($list:tt)*] $(#[$meta:meta])* test $name:ident $([$($setting:ident),+])?
        |$p:pat_param| $body:expr; $($rest:tt)*) => {
        $crate::kernels! { @kernel $(#[$meta])* $name [$($($setting),+)?] }
        impl $crate::Test<$program> for $name {
            #[inline(always)]
            fn test<R: $crate::Real>(given: &$crate::Given<$program, R>) -> R::Mask {
                $(let [$($setting),+] = given.settings();)?
                let $p = given;
                $body
            }
        }
        $crate::kernels! { @ ($program, $($records),*) [$($list)* test $name;] $($rest)* }
    };
    (@ $records:tt $list:tt $(#[$meta:meta])* sum $($rest:tt)*) => {
        $crate::kernels! { @reduce Sum $records $list $(#[$meta])* $($rest)* }
    };
    (@ $records:tt $list:tt $(#[$meta:meta])* min $($rest:tt)*) => {
        $crate::kernels! { @reduce Min $records $list $(#[$meta])* $($rest)* }
    };
    (@ $records:tt $list:tt $(#[$meta:meta])* max $($rest:tt)*) => {
        $crate::kernels! { @reduce Max $records $list $(#[$meta])* $($rest)* }
    };
    (@reduce $how:ident $records:tt $list:tt $(#[$meta:meta])* $name:ident [$($setting:ident),+]
        ($label:literal, $unit:literal) |$($rest:tt)*) => {
        compile_error!(concat!("the metric ", stringify!($name), " has settings, which nobody gives it: leave out its label"));
    };
    (@reduce $how:ident $records:tt $list:tt $(#[$meta:meta])* $name:ident
        ($label:literal, $unit:literal) |$($rest:tt)*) => {
        $crate::kernels! { @reduce $how (Some(($label, $unit))) $records $list $(#[$meta])* $name [] |$($rest)* }
    };
    (@reduce $how:ident $records:tt $list:tt $(#[$meta:meta])* $name:ident $([$($setting:ident),+])? |$($rest:tt)*) => {
        $crate::kernels! { @reduce $how (None) $records $list $(#[$meta])* $name [$($($setting),+)?] |$($rest)* }
    };
    (@reduce $how:ident ($metric:expr) ($program:ty, $($records:ty),*) [$($list:tt)*] $(#[$meta:meta])* $name:ident
        [$($setting:ident),*] |$p:pat_param, $own:pat_param, $around:pat_param| $body:expr; $($rest:tt)*) => {
        $crate::kernels! { @kernel $(#[$meta])* $name [$($setting),*] }
        impl $crate::Reduce<$program> for $name {
            const COMBINE: $crate::Combine = $crate::Combine::$how;
            const METRIC: Option<(&'static str, &'static str)> = $metric;

            #[inline(always)]
            fn measure<R: $crate::Real>(
                given: &$crate::Given<$program, R>,
                $own: $crate::VertexOf<$program, R>,
                $around: &impl $crate::Neighbors<$program, R>,
            ) -> R {
                let [$($setting),*] = given.settings();
                let $p = given;
                $body
            }
        }
        $crate::kernels! { @ ($program, $($records),*) [$($list)* reduce $name;] $($rest)* }
    };
    (@kernel $(#[$meta:meta])* $name:ident []) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl $crate::Kernel for $name {
            const NAME: &'static str = stringify!($name);
        }
    };
    (@kernel $(#[$meta:meta])* $name:ident [$($setting:ident),+]) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $(#[doc = concat!("Setting `", stringify!($setting), "`.")] pub $setting: f64),+ }

        impl $crate::Kernel for $name {
            const NAME: &'static str = stringify!($name);

            fn settings(&self) -> Vec<f64> {
                vec![$(self.$setting),+]
            }
        }
    };
}
