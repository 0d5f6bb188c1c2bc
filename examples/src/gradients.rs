//! Conjugate gradients with multigrid, for programs whose vertices are the nodes of a symmetric equation.

use meshweft::nalgebra::Vector3;
use meshweft::{Real, record};
use std::ops::Mul;

/// The unknowns of a node: a real, or three.
pub trait Unknowns<R: Real> {
    /// Of the same.
    fn zero() -> Self;
    /// The inner product.
    fn inner(self, other: Self) -> R;
}

impl<R: Real> Unknowns<R> for R {
    #[inline(always)]
    fn zero() -> R {
        R::lit(0.0)
    }

    #[inline(always)]
    fn inner(self, other: R) -> R {
        self * other
    }
}

impl<R: Real> Unknowns<R> for Vector3<R> {
    #[inline(always)]
    fn zero() -> Vector3<R> {
        Vector3::zeros()
    }

    #[inline(always)]
    fn inner(self, other: Vector3<R>) -> R {
        self.x * other.x + self.y * other.y + self.z * other.z
    }
}

record! {
    /// A block of a matrix.
    pub struct Rows<R> {
        /// The first row.
        x: Vector3<R>,
        /// The second.
        y: Vector3<R>,
        /// The third.
        z: Vector3<R>,
    }
}

impl<R: Real> Mul<Vector3<R>> for Rows<R> {
    type Output = Vector3<R>;

    #[inline(always)]
    fn mul(self, v: Vector3<R>) -> Vector3<R> {
        Vector3::new(self.x.inner(v), self.y.inner(v), self.z.inner(v))
    }
}

/// A block of a matrix of [`Multigrid`](meshweft_mesh::Multigrid) as kernels have it.
pub trait Block<const N: usize> {
    /// The same.
    fn of(block: [[f64; N]; N]) -> Self;
}

impl Block<1> for f64 {
    fn of([[x]]: [[f64; 1]; 1]) -> f64 {
        x
    }
}

impl Block<3> for Rows<f64> {
    fn of([x, y, z]: [[f64; 3]; 3]) -> Rows<f64> {
        Rows { x: Vector3::from(x), y: Vector3::from(y), z: Vector3::from(z) }
    }
}

pub fn transposed<const N: usize>(block: &[[f64; N]; N]) -> [[f64; N]; N] {
    std::array::from_fn(|i| std::array::from_fn(|j| block[j][i]))
}

/// Writes the records and kernels of a program that solves `A u = load` for the unknowns of its nodes, and the functions
/// `add_levels` and `solve`.
///
/// The equation is scaled to `A = 1 - E - L`, where `E` and `L` are what comes from neighbors that are earlier and later in the order. A V-cycle
/// of multigrid is the preconditioner; its levels are parts beside the mesh. On each there is a sweep forward and one backward. The first
/// starts from zero, so that it needs earlier neighbors alone, and what it leaves is `L` times its result, which a second sweep forward puts
/// in its place.
macro_rules! conjugate_gradients {
    (
        for $program:ident, $parameters:ident: $unknown:ident: $value:ty, $block:ty, $n:literal;
        vertex { $($vertex:tt)* }
        globals { $($globals:tt)* }
        stars { $($stars:tt)* }
        kernels { $($kernels:tt)* }
    ) => {
        meshweft::record! {
            /// How far conjugate gradients are.
            pub struct Progress<R> {
                /// The square of the largest residual that a step began with.
                first: R,
                /// That of the present one.
                missing: R,
                /// That of the one after the next stride.
                next: R,
                /// The product of the residual and what the preconditioner makes of it.
                product: R,
                /// The same in the iteration before.
                before: R,
                /// The product of the direction and its image, which the equation makes of it.
                curvature: R,
                /// The product of the residual and that image.
                across: R,
                /// The square of that image.
                length: R,
                /// How far to go along the direction.
                stride: R,
                /// How much of the direction to keep.
                keep: R,
                $($globals)*
            }
        }

        meshweft::vertex! {
            /// A node, or a vertex of a coarse level.
            pub struct Node<R> {
                $($vertex)*
                /// The right-hand side, scaled.
                load: $value,
                /// By what scaled unknowns are multiplied.
                scale: $block,
                /// The solution so far, scaled.
                solved: $value,
                /// The residual; on a coarse level that of the level above.
                missing: $value,
                /// Where to go.
                direction: $value,
                /// What the equation makes of the direction.
                image: $value,
                /// What the sweep down has found, while the residual is in its place; then what earlier neighbors added in the sweep back.
                kept: $value,
            }
        }

        meshweft::stars! {
            /// Neighbors that come earlier in the order, and minus the block of the matrix.
            pub Earlier[1]: $block;
            /// Those that come later.
            pub Later[1]: $block;
            /// What a coarse vertex stands for, and its share in that.
            pub Finer[1]: $block;
            /// The coarse vertices of a finer one.
            pub Coarser[1]: $block;
            /// The last level, and the inverse of its equation.
            pub Last[1]: $block;
            $($stars)*
        }

        meshweft::kernels! {
            for $program: Node, $parameters, Progress;

            /// Scaled unknowns in the place of the solution.
            map Scale |_, own| {
                let zero = <$value as $crate::gradients::Unknowns<R>>::zero();
                Node { $unknown: own.solved, direction: zero, image: zero, ..own }
            };

            /// The residual that a step starts from.
            update Begin |_, own, around| {
                let earlier = around.sum(Earlier, |[other], block| block * other.$unknown);
                let later = around.sum(Later, |[other], block| block * other.$unknown);
                Node { missing: own.load + earlier + later - own.$unknown, ..own }
            };

            /// Takes the stride that was found, and begins the next: a sweep from zero.
            update Descend |p, own, around| {
                let stride = p.globals.stride;
                let missing = own.missing - own.image * stride;
                let found = missing + around.sum(Earlier, |[other], block| block * other.$unknown);
                Node { $unknown: found, missing, solved: own.solved + own.direction * stride, ..own }
            };

            /// Puts the residual in the place of what a sweep from zero has found: later neighbors, which it had not reached.
            update Leave |_, own, around| {
                Node { $unknown: around.sum(Later, |[other], block| block * other.$unknown), kept: own.$unknown, ..own }
            };

            /// Takes the residual of the level above, and sweeps from zero.
            update Restrict |_, own, around| {
                let missing = around.sum(Finer, |[other], share| share * other.$unknown);
                let found = missing + around.sum(Earlier, |[other], block| block * other.$unknown);
                Node { $unknown: found, missing, ..own }
            };

            /// Takes the residual of the level above.
            update Gather |_, own, around| {
                Node { $unknown: around.sum(Finer, |[other], share| share * other.$unknown), ..own }
            };

            /// Solves the last level.
            update Invert |_, own, around| {
                Node { $unknown: around.sum(Last, |[other], block| block * other.$unknown), ..own }
            };

            /// Adds what the level below has found.
            update Correct |_, own, around| {
                Node { $unknown: own.kept + around.sum(Coarser, |[other], share| share * other.$unknown), ..own }
            };

            /// Gauss–Seidel, backward: what comes from earlier neighbors is that of before.
            update Smooth |_, own, around| {
                let earlier = around.sum(Earlier, |[other], block| block * other.$unknown);
                let later = around.sum(Later, |[other], block| block * other.$unknown);
                Node { $unknown: own.missing + earlier + later, kept: earlier, ..own }
            };

            /// Turns, and what the equation makes of the new direction. The sweep backward has left `A x = r + E (x before - x)`.
            update Turn |p, own, around| {
                let earlier = around.sum(Earlier, |[other], block| block * other.$unknown);
                let image = own.missing + own.kept - earlier + own.image * p.globals.keep;
                Node { direction: own.$unknown + own.direction * p.globals.keep, image, ..own }
            };

            /// Takes the last stride, in the unit of the user.
            map End |p, own| {
                let solved = own.solved + own.direction * p.globals.stride;
                Node { $unknown: own.scale * solved, solved, ..own }
            };

            /// The square of the residual.
            sum Square |_, own, _| $crate::gradients::Unknowns::<R>::inner(own.missing, own.missing);

            /// Its product with what the preconditioner makes of it.
            sum Product |_, own, _| $crate::gradients::Unknowns::<R>::inner(own.missing, own.$unknown);

            /// The product of the direction and its image.
            sum Curvature |_, own, _| $crate::gradients::Unknowns::<R>::inner(own.direction, own.image);

            /// The product of the residual and that image.
            sum Across |_, own, _| $crate::gradients::Unknowns::<R>::inner(own.missing, own.image);

            /// The square of that image.
            sum Length |_, own, _| $crate::gradients::Unknowns::<R>::inner(own.image, own.image);

            /// Where to start.
            scalar Start |p| {
                let Progress { first, missing, .. } = p.globals;
                let zero = R::lit(0.0);
                Progress { first: first.max(missing), next: missing, before: zero, stride: zero, keep: zero, ..p.globals }
            };

            /// How much of the direction to keep.
            scalar Keep |p| {
                let Progress { product, before, .. } = p.globals;
                let zero = R::lit(0.0);
                Progress { keep: R::select(zero.less(before), product / before, zero), before: product, ..p.globals }
            };

            /// How far to go, and what is then missing. Where nothing is missing any more the curvature may be zero, too.
            scalar Stride |p| {
                let Progress { missing, product, curvature, across, length, .. } = p.globals;
                let zero = R::lit(0.0);
                let stride = R::select(zero.less(curvature), product / curvature, zero);
                let next = missing - stride * (across + across - stride * length);
                Progress { stride, next: next.max(zero), ..p.globals }
            };

            /// Whether the residual is small enough.
            test Arrived[square] |p| p.globals.next.at_most(square * p.globals.first);

            $($kernels)*
        }

        /// Adds the stars of all levels.
        fn add_levels(levels: &std::sync::Arc<meshweft_mesh::Multigrid<$n>>, stars: &mut meshweft::Stars) {
            use $crate::gradients::{Block, transposed};
            type Of<R> = $block;
            let [earlier, later, finer, coarser, last] = std::array::from_fn(|_| levels.clone());
            let block = |levels: &meshweft_mesh::Multigrid<$n>, i: meshweft::Incidence<2>| -> Of<f64> {
                let block = &levels.blocks[i.element];
                Block::of(if i.corner == 0 { *block } else { transposed(block) })
            };
            stars.add_earlier(Earlier, levels.pairs.clone(), move |i| block(&earlier, i));
            stars.add_later(Later, levels.pairs.clone(), move |i| block(&later, i));
            stars.add_directed(Finer, levels.down.clone(), move |i| Block::of(transposed(&finer.shares[i.element])));
            stars.add_directed(Coarser, levels.up.clone(), move |i| Block::of(coarser.shares[i.element]));
            stars.add_directed(Last, levels.across.clone(), move |i| Block::of(last.inverse[i.element]));
        }

        /// Solves to a residual of `tolerance` over the first, in so many iterations at most.
        fn solve(
            levels: &meshweft_mesh::Multigrid<$n>,
            tolerance: f64,
            rounds: usize,
            stages: &mut meshweft::Stages<$program>,
        ) {
            // What is solved at once has a part of its own, the last.
            let is_direct = !levels.inverse.is_empty();
            let last = levels.points.len() - usize::from(is_direct);
            stages.on(0, |stages| {
                stages.map(Scale);
                stages.sweep(Begin, 1);
            });
            stages.reduce(Square, |g| &mut g.missing);
            stages.scalar(Start);
            stages.until(Arrived { square: tolerance * tolerance }, rounds, |stages| {
                stages.on(0, |stages| stages.sweep(Descend, 1));
                stages.reduce(Square, |g| &mut g.missing);
                for level in 0..last {
                    stages.on(level, |stages| stages.sweep(Leave, 1));
                    let is_gathered = is_direct && level + 1 == last;
                    stages.on(level + 1, |stages| if is_gathered { stages.sweep(Gather, 1) } else { stages.sweep(Restrict, 1) });
                }
                match is_direct {
                    true => stages.on(last + 1, |stages| stages.sweep(Invert, 1)),
                    false => stages.on(last, |stages| stages.sweep_backward(Smooth, 1)),
                }
                for level in (0..last).rev() {
                    stages.on(level, |stages| {
                        stages.sweep(Correct, 1);
                        stages.sweep_backward(Smooth, 1);
                    });
                }
                stages.reduce(Product, |g| &mut g.product);
                stages.scalar(Keep);
                stages.on(0, |stages| stages.sweep(Turn, 1));
                stages.reduce(Curvature, |g| &mut g.curvature);
                stages.reduce(Across, |g| &mut g.across);
                stages.reduce(Length, |g| &mut g.length);
                stages.scalar(Stride);
            });
            stages.on(0, |stages| stages.map(End));
        }
    };
}

pub(crate) use conjugate_gradients;
