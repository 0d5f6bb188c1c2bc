//! Conjugate gradients with multigrid, for programs whose vertices are the nodes of a symmetric equation.

/// Writes the records and kernels of a program that solves `A u = load` for the unknowns of its nodes, and the functions `add_levels` and `solve`.
/// The preconditioner is a V-cycle of [multigrid](crate::multigrid).
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

        $crate::multigrid::multigrid! {
            for $program, $parameters, Progress: $unknown: $value, $block, $n;
            vertex {
                $($vertex)*
                /// The right-hand side, scaled.
                load: $value,
                /// The solution so far, scaled.
                solved: $value,
                /// Where to go.
                direction: $value,
                /// What the equation makes of the direction.
                image: $value,
            }
            stars { $($stars)* }
            kernels {
                /// Scaled unknowns in the place of the solution.
                map Scale |_, own| {
                    let zero = <$value as $crate::multigrid::Unknowns<R>>::zero();
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
                sum Square |_, own, _| $crate::multigrid::Unknowns::<R>::inner(own.missing, own.missing);

                /// Its product with what the preconditioner makes of it.
                sum Product |_, own, _| $crate::multigrid::Unknowns::<R>::inner(own.missing, own.$unknown);

                /// The product of the direction and its image.
                sum Curvature |_, own, _| $crate::multigrid::Unknowns::<R>::inner(own.direction, own.image);

                /// The product of the residual and that image.
                sum Across |_, own, _| $crate::multigrid::Unknowns::<R>::inner(own.missing, own.image);

                /// The square of that image.
                sum Length |_, own, _| $crate::multigrid::Unknowns::<R>::inner(own.image, own.image);

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
        }

        /// Solves to a residual of `tolerance` over the first, in so many iterations at most.
        fn solve(
            levels: &meshweft_mesh::Multigrid<$n>,
            tolerance: f64,
            rounds: usize,
            stages: &mut meshweft::Stages<$program>,
        ) {
            stages.on(0, |stages| {
                stages.map(Scale);
                stages.sweep(Begin, 1);
            });
            stages.reduce(Square, |g| &mut g.missing);
            stages.scalar(Start);
            stages.until(Arrived { square: tolerance * tolerance }, rounds, |stages| {
                stages.on(0, |stages| stages.sweep(Descend, 1));
                stages.reduce(Square, |g| &mut g.missing);
                cycle(levels, stages);
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
