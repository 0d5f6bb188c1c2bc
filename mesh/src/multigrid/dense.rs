//! Small symmetric matrices without zeros.

/// A symmetric matrix, of which the lower triangle counts.
pub(super) struct Dense {
    size: usize,
    entries: Vec<f64>,
}

impl Dense {
    /// Zeros.
    pub(super) fn new(size: usize) -> Dense {
        Dense { size, entries: vec![0.0; size * size] }
    }

    /// An entry of the lower triangle: `row >= column`.
    pub(super) fn at(&mut self, row: usize, column: usize) -> &mut f64 {
        &mut self.entries[row * self.size + column]
    }

    pub(super) fn get(&self, row: usize, column: usize) -> f64 {
        self.entries[row.max(column) * self.size + row.min(column)]
    }

    /// The inverse of a positive one, by Cholesky. Cost O(size³). An unknown that depends on those before is left out of it.
    pub(super) fn inverse(mut self) -> Dense {
        /// Pivots below it are rounding, where diagonals are one.
        const DEPENDENT: f64 = 1e-12;
        let n = self.size;
        for j in 0..n {
            for i in j..n {
                let sum: f64 = (0..j).map(|k| self.get(i, k) * self.get(j, k)).sum();
                *self.at(i, j) -= sum;
            }
            let pivot = self.get(j, j);
            let scale = if pivot > DEPENDENT { 1.0 / pivot.sqrt() } else { 0.0 };
            (j..n).for_each(|i| *self.at(i, j) *= scale);
        }
        // Column by column, the inverse of the triangle, and then of its product with itself.
        let mut root = Dense::new(n);
        for j in (0..n).filter(|&j| self.get(j, j) > 0.0) {
            *root.at(j, j) = 1.0 / self.get(j, j);
            for i in (j + 1..n).filter(|&i| self.get(i, i) > 0.0) {
                let sum: f64 = (j..i).map(|k| self.get(i, k) * root.get(k, j)).sum();
                *root.at(i, j) = -sum / self.get(i, i);
            }
        }
        let mut inverse = Dense::new(n);
        for i in 0..n {
            for j in 0..=i {
                *inverse.at(i, j) = (i..n).map(|k| root.get(k, i) * root.get(k, j)).sum();
            }
        }
        inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_times_its_matrix_is_one() {
        let entry = |i: usize, j: usize| if i == j { 1.0 } else { 0.3 / (1 + i + 2 * j) as f64 };
        let mut dense = Dense::new(7);
        (0..7).for_each(|i| {
            (0..=i).for_each(|j| *dense.at(i, j) = if i == 3 && j < 3 { entry(j, i) } else { entry(i, j) })
        });
        let whole: Vec<f64> = (0..49).map(|e| dense.get(e / 7, e % 7)).collect();
        let inverse = dense.inverse();
        for (i, j) in (0..7).flat_map(|i| (0..7).map(move |j| (i, j))) {
            let product: f64 = (0..7).map(|k| inverse.get(i, k) * whole[7 * k + j]).sum();
            assert!((product - f64::from(i == j)).abs() < 1e-14, "{i} {j}: {product}");
        }
    }

    #[test]
    fn what_depends_on_others_is_left_out() {
        // The second is the first, and the last is alone.
        let mut dense = Dense::new(3);
        [(0, 0), (1, 0), (1, 1), (2, 2)].into_iter().for_each(|(i, j)| *dense.at(i, j) = 1.0);
        let inverse = dense.inverse();
        assert_eq!([inverse.get(0, 0), inverse.get(1, 0), inverse.get(1, 1), inverse.get(2, 2)], [1.0, 0.0, 0.0, 1.0]);
    }
}
