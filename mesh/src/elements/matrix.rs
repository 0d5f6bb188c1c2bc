//! Symmetric matrices between the nodes of a mesh.

use crate::block::transposed;

/// A symmetric matrix of blocks of `N` by `N` numbers: one on the diagonal for each node, one for each pair of nodes that share an element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix<const N: usize> {
    /// The pairs: the smaller id first, ascending.
    pub pairs: Vec<[u32; 2]>,
    /// The block in the row of the first and the column of the second of a pair; across the diagonal it is transposed. Shape [pairs × N × N].
    pub blocks: Vec<[[f64; N]; N]>,
    /// Shape [nodes × N × N].
    pub diagonal: Vec<[[f64; N]; N]>,
}

/// Adds the product of a block and a vector.
fn add_product<const N: usize>(sum: &mut [f64; N], block: &[[f64; N]; N], x: &[f64; N]) {
    sum.iter_mut().zip(block).for_each(|(sum, row)| row.iter().zip(x).for_each(|(a, x)| *sum += a * x));
}

impl<const N: usize> Matrix<N> {
    /// Its product with a vector of `N` numbers a node. Cost O(pairs).
    ///
    /// ```
    /// use meshweft_mesh::Matrix;
    /// let matrix = Matrix { pairs: vec![[0, 1]], blocks: vec![[[-1.0]]], diagonal: vec![[[2.0]], [[3.0]]] };
    /// assert_eq!(matrix.times(&[[5.0], [7.0]]), [[3.0], [16.0]]);
    /// ```
    pub fn times(&self, x: &[[f64; N]]) -> Vec<[f64; N]> {
        let mut y = vec![[0.0; N]; self.diagonal.len()];
        y.iter_mut().zip(&self.diagonal).zip(x).for_each(|((y, block), x)| add_product(y, block, x));
        for (&[i, j], block) in self.pairs.iter().zip(&self.blocks) {
            let [i, j] = [i as usize, j as usize];
            add_product(&mut y[i], block, &x[j]);
            add_product(&mut y[j], &transposed(block), &x[i]);
        }
        y
    }

    /// Adds another, whose pairs are among those of this one. Cost O(pairs of the other × log).
    ///
    /// # Panics
    /// A pair that this one has not.
    pub fn add(&mut self, other: &Matrix<N>) {
        let add = |sum: &mut [[f64; N]; N], block: &[[f64; N]; N]| {
            sum.as_flattened_mut().iter_mut().zip(block.as_flattened()).for_each(|(sum, a)| *sum += a);
        };
        self.diagonal.iter_mut().zip(&other.diagonal).for_each(|(sum, block)| add(sum, block));
        for (pair, block) in other.pairs.iter().zip(&other.blocks) {
            let place = self.pairs.binary_search(pair).expect("a pair of this matrix");
            add(&mut self.blocks[place], block);
        }
    }

    /// Takes out the unknowns that are `held` at a value: their columns go to the `loads`, their rows keep the diagonal alone, so that the rest
    /// stays symmetric and the solution has those values. Cost O(pairs).
    ///
    /// ```
    /// use meshweft_mesh::Matrix;
    /// let mut matrix = Matrix { pairs: vec![[0, 1]], blocks: vec![[[-1.0]]], diagonal: vec![[[2.0]], [[3.0]]] };
    /// let mut loads = vec![[0.0], [10.0]];
    /// matrix.hold(&[[Some(5.0)], [None]], &mut loads);
    /// // 2 x = 10 and 3 y = 15.
    /// assert_eq!((matrix.blocks[0], loads), ([[0.0]], vec![[10.0], [15.0]]));
    /// ```
    pub fn hold(&mut self, held: &[[Option<f64>; N]], loads: &mut [[f64; N]]) {
        let values: Vec<[f64; N]> = held.iter().map(|node| node.map(|value| value.unwrap_or(0.0))).collect();
        let moved = self.times(&values);
        for (load, moved) in loads.iter_mut().zip(&moved) {
            load.iter_mut().zip(moved).for_each(|(load, moved)| *load -= moved);
        }
        let cut = |block: &mut [[f64; N]; N], rows: &[Option<f64>; N], columns: &[Option<f64>; N]| {
            for (row, is_held) in block.iter_mut().zip(rows) {
                row.iter_mut()
                    .zip(columns)
                    .filter(|(_, c)| c.is_some() || is_held.is_some())
                    .for_each(|(a, _)| *a = 0.0);
            }
        };
        for (&[i, j], block) in self.pairs.iter().zip(&mut self.blocks) {
            cut(block, &held[i as usize], &held[j as usize]);
        }
        for (v, (block, node)) in self.diagonal.iter_mut().zip(held).enumerate() {
            let own: [f64; N] = std::array::from_fn(|k| block[k][k]);
            cut(block, node, node);
            for (k, value) in node.iter().enumerate().filter_map(|(k, value)| Some((k, (*value)?))) {
                block[k][k] = own[k];
                loads[v][k] = own[k] * value;
            }
        }
    }
}
