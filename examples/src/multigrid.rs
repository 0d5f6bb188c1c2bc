//! A V-cycle of multigrid, for programs whose vertices are the nodes of a symmetric equation.

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

/// Writes the vertex, stars and kernels of a program whose preconditioner is a V-cycle of multigrid, and the functions `add_levels` and `cycle`.
///
/// The equation of the nodes is scaled to `A = 1 - E - L`, where `E` and `L` are what comes from neighbors that are earlier and later in the
/// order. The levels are parts beside the mesh. On each there is a sweep forward and one backward. The first starts from zero, so that it needs
/// earlier neighbors alone, and what it leaves is `L` times its result, which a second sweep forward puts in its place.
macro_rules! multigrid {
    (
        for $program:ident, $parameters:ident, $globals:ident: $unknown:ident: $value:ty, $block:ty, $n:literal;
        vertex { $($vertex:tt)* }
        stars { $($stars:tt)* }
        kernels { $($kernels:tt)* }
    ) => {
        meshweft::vertex! {
            /// A node, or a vertex of a coarse level.
            pub struct Node<R> {
                $($vertex)*
                /// By what scaled unknowns are multiplied.
                scale: $block,
                /// The residual; on a coarse level that of the level above.
                missing: $value,
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
            for $program: Node, $parameters, $globals;

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

            $($kernels)*
        }

        /// Adds the stars of all levels.
        fn add_levels(levels: &std::sync::Arc<meshweft_mesh::Multigrid<$n>>, stars: &mut meshweft::Stars) {
            use $crate::multigrid::{Block, transposed};
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

        /// A V-cycle, after the sweep from zero on the mesh.
        fn cycle(levels: &meshweft_mesh::Multigrid<$n>, stages: &mut meshweft::Stages<$program>) {
            // What is solved at once has a part of its own, the last.
            let is_direct = !levels.inverse.is_empty();
            let last = levels.points.len() - usize::from(is_direct);
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
        }
    };
}

pub(crate) use multigrid;
