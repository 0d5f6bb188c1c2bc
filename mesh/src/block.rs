//! Small matrices, row by row.

/// `A` rows of `B` numbers.
pub(crate) type Block<const A: usize, const B: usize> = [[f64; B]; A];

/// Pivots that are so small beside the diagonal are of unknowns that depend on those before.
const DEPENDENT: f64 = 1e-10;

pub(crate) fn zero<const A: usize, const B: usize>() -> Block<A, B> {
    [[0.0; B]; A]
}

pub(crate) fn transposed<const A: usize, const B: usize>(block: &Block<A, B>) -> Block<B, A> {
    std::array::from_fn(|i| std::array::from_fn(|j| block[j][i]))
}

/// Adds the product `left × right`.
pub(crate) fn add_product<const A: usize, const B: usize, const C: usize>(
    sum: &mut Block<A, C>,
    left: &Block<A, B>,
    right: &Block<B, C>,
) {
    for (sum, row) in sum.iter_mut().zip(left) {
        for (x, right) in row.iter().zip(right) {
            sum.iter_mut().zip(right).for_each(|(sum, y)| *sum += x * y);
        }
    }
}

pub(crate) fn product<const A: usize, const B: usize, const C: usize>(
    left: &Block<A, B>,
    right: &Block<B, C>,
) -> Block<A, C> {
    let mut sum = zero();
    add_product(&mut sum, left, right);
    sum
}

pub(crate) fn is_zero<const A: usize, const B: usize>(block: &Block<A, B>) -> bool {
    block.as_flattened().iter().all(|&x| x == 0.0)
}

/// The lower triangle `L` of `block = L Lᵀ`, and its inverse; rows and columns of dependent unknowns are zero in both.
///
/// Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 10.3.
pub(crate) fn roots<const N: usize>(block: &Block<N, N>) -> [Block<N, N>; 2] {
    let (mut lower, mut inverse) = (zero(), zero());
    for j in 0..N {
        let rest = block[j][j] - (0..j).map(|k| lower[j][k] * lower[j][k]).sum::<f64>();
        if rest <= DEPENDENT * block[j][j] {
            continue;
        }
        let root = rest.sqrt();
        lower[j][j] = root;
        for i in j + 1..N {
            lower[i][j] = (block[i][j] - (0..j).map(|k| lower[i][k] * lower[j][k]).sum::<f64>()) / root;
        }
    }
    for j in (0..N).filter(|&j| lower[j][j] > 0.0) {
        inverse[j][j] = 1.0 / lower[j][j];
        for i in (j + 1..N).filter(|&i| lower[i][i] > 0.0) {
            let sum: f64 = (j..i).map(|k| lower[i][k] * inverse[k][j]).sum();
            inverse[i][j] = -sum / lower[i][i];
        }
    }
    // What depends on others is left out of them, too.
    lower.iter_mut().enumerate().filter(|(j, row)| row[*j] == 0.0).for_each(|(_, row)| *row = [0.0; N]);
    [lower, inverse]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_those_of_the_block() {
        let block = [[4.0, 2.0, -2.0], [2.0, 10.0, 5.0], [-2.0, 5.0, 21.0]];
        let [lower, inverse] = roots(&block);
        assert_eq!(product(&lower, &transposed(&lower)), block);
        let one: Block<3, 3> = product(&inverse, &lower);
        (0..3).for_each(|i| (0..3).for_each(|j| assert!((one[i][j] - f64::from(i == j)).abs() < 1e-15)));
    }

    #[test]
    fn what_depends_on_others_is_left_out() {
        // The second is the first twice.
        let [lower, inverse] = roots(&[[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 9.0]]);
        assert_eq!(lower, [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 3.0]]);
        assert_eq!(inverse[1], [0.0; 3]);
        assert_eq!(inverse[2], [0.0, 0.0, 1.0 / 3.0]);
        assert_eq!(roots(&[[0.0]]), [[[0.0]], [[0.0]]]);
    }
}
