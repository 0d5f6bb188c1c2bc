//! The least energy that three vectors have between them.

use meshweft::Real;

/// Sweeps of rotations: each squares what is left.
const SWEEPS: usize = 5;
/// The shares of a vector that may be left over without the others before it counts as one of them, squared.
const DEPENDENT: f64 = 1e-13;

/// The least `λ` of `stiff c = λ heavy c`, and its `c`, of mass 1. Vectors that depend on those before, or have no mass, take no part; if none
/// does, all is 0.
///
/// Cholesky of the mass, then Jacobi's rotations: Golub and Van Loan, Matrix Computations, 2013, sections 8.5 and 8.7.
#[allow(clippy::needless_range_loop)]
pub(super) fn least<R: Real>(mut stiff: [[R; 3]; 3], mut heavy: [[R; 3]; 3]) -> (R, [R; 3]) {
    let (zero, one) = (R::lit(0.0), R::lit(1.0));
    let inverse = |x: R, least: f64| R::select(R::lit(least).less(x), one / x, zero);
    // To a mass of 1 each.
    let scale = [0, 1, 2].map(|k| inverse(heavy[k][k].max(zero).sqrt(), 0.0));
    for i in 0..3 {
        for j in 0..3 {
            heavy[i][j] *= scale[i] * scale[j];
            stiff[i][j] *= scale[i] * scale[j];
        }
    }
    // Columns of `turn` are vectors of mass 1 without each other: Gram and Schmidt.
    let mut turn = [[zero; 3]; 3];
    for j in 0..3 {
        let mut column = [zero; 3];
        column[j] = one;
        // Twice is enough.
        for _ in 0..2 {
            for k in 0..j {
                let mut product = zero;
                for a in 0..3 {
                    for b in 0..3 {
                        product += turn[a][k] * heavy[a][b] * column[b];
                    }
                }
                for a in 0..3 {
                    column[a] -= turn[a][k] * product;
                }
            }
        }
        let mut mass = zero;
        for a in 0..3 {
            for b in 0..3 {
                mass += column[a] * heavy[a][b] * column[b];
            }
        }
        let over = inverse(mass.max(zero).sqrt(), DEPENDENT.sqrt());
        for a in 0..3 {
            turn[a][j] = column[a] * over;
        }
    }
    let mut energy = [[zero; 3]; 3];
    for i in 0..3 {
        for j in 0..3 {
            for a in 0..3 {
                for b in 0..3 {
                    energy[i][j] += turn[a][i] * stiff[a][b] * turn[b][j];
                }
            }
        }
    }
    for _ in 0..SWEEPS {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            let off = energy[p][q];
            let is_off = zero.less(off.abs());
            let slope = (energy[q][q] - energy[p][p]) / R::select(is_off, off + off, one);
            let tangent = slope.sign() / (slope.abs() + (slope * slope + one).sqrt());
            let tangent = R::select(is_off, R::select(slope.equals(zero), one, tangent), zero);
            let cosine = one / (tangent * tangent + one).sqrt();
            let sine = tangent * cosine;
            for k in 0..3 {
                let (a, b) = (energy[k][p], energy[k][q]);
                (energy[k][p], energy[k][q]) = (cosine * a - sine * b, sine * a + cosine * b);
            }
            for k in 0..3 {
                let (a, b) = (energy[p][k], energy[q][k]);
                (energy[p][k], energy[q][k]) = (cosine * a - sine * b, sine * a + cosine * b);
            }
            for k in 0..3 {
                let (a, b) = (turn[k][p], turn[k][q]);
                (turn[k][p], turn[k][q]) = (cosine * a - sine * b, sine * a + cosine * b);
            }
        }
    }
    // Of those that take part.
    let (mut value, mut take) = (R::lit(1e30), [zero; 3]);
    for j in 0..3 {
        let takes_part = zero.less(turn[0][j].abs() + turn[1][j].abs() + turn[2][j].abs());
        let is_less = takes_part & energy[j][j].less(value);
        value = R::select(is_less, energy[j][j], value);
        for a in 0..3 {
            take[a] = R::select(is_less, turn[a][j] * scale[a], take[a]);
        }
    }
    // Of the two ways round the one that goes on as before.
    let first = R::select(take[0].equals(zero), R::select(take[1].equals(zero), take[2], take[1]), take[0]);
    let sign = R::select(first.less(zero), R::lit(-1.0), one);
    let take = take.map(|share| share * sign);
    (R::select(value.less(R::lit(1e30)), value, zero), take)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `c A c`.
    fn form(a: &[[f64; 3]; 3], c: &[f64; 3]) -> f64 {
        (0..3).map(|i| (0..3).map(|j| c[i] * a[i][j] * c[j]).sum::<f64>()).sum()
    }

    #[test]
    fn the_least_is_that_of_the_pencil() {
        let stiff = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 5.0]];
        let heavy = [[2.0, 0.5, 0.25], [0.5, 1.0, -0.125], [0.25, -0.125, 3.0]];
        let (value, c) = least(stiff, heavy);
        assert!((form(&heavy, &c) - 1.0).abs() < 1e-14);
        for i in 0..3 {
            let off: f64 = (0..3).map(|j| (stiff[i][j] - value * heavy[i][j]) * c[j]).sum();
            assert!(off.abs() < 1e-13, "row {i}: {off}");
        }
        // Nothing has less.
        for n in 0..1000 {
            let other = [0, 1, 2].map(|k| f64::from((n * 37 + k * 11 + k * k * n) % 41 - 20));
            assert!(form(&stiff, &other) >= (value - 1e-12) * form(&heavy, &other));
        }
    }

    #[test]
    fn what_depends_on_others_or_is_not_there_takes_no_part() {
        // The third is the second, and there is no first.
        let (stiff, heavy) =
            ([[0.0, 0.0, 0.0], [0.0, 6.0, 6.0], [0.0, 6.0, 6.0]], [[0.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.0, 2.0, 2.0]]);
        let (value, c) = least::<f64>(stiff, heavy);
        assert!((value - 3.0).abs() < 1e-14 && c[0] == 0.0 && c[2] == 0.0);
        assert!((c[1] * c[1] - 0.5).abs() < 1e-15);
    }
}
