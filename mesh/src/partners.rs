//! Places on two sides that are one.

use crate::error::{Error, Result};
use crate::measure::{add, scaled, sub};

/// How far two places may be from being the same, over the size of what is there.
const APART: f64 = 1e-6;

/// The places of two sides, and the way from the second to the first.
pub(crate) struct Partners {
    /// Of each place of the first side that of the second which is the same.
    pub(crate) of_first: Vec<usize>,
    /// m.
    pub(crate) shift: [f64; 3],
}

impl Partners {
    /// Places of two sides, shapes [places × 3], m. `sizes`: of what is at each place of the first, m; `what`: the word for it. Cost O(places × log), and for each place as
    /// many as are level with it.
    ///
    /// # Errors
    /// Sides that are not the same but for a way between them, or have no place.
    pub(crate) fn of(first: &[[f64; 3]], second: &[[f64; 3]], sizes: &[f64], what: &str) -> Result<Partners> {
        let (count, other) = (first.len(), second.len());
        if count == 0 || count != other {
            return Err(Error::Invalid(format!(
                "sides that are one have as many {what}, of which these have {count} and {other}"
            )));
        }
        let middle = |places: &[[f64; 3]]| {
            scaled(1.0 / count as f64, places.iter().fold([0.0; 3], |sum, place| add(sum, *place)))
        };
        let shift = sub(middle(first), middle(second));
        // Along the axis on which they are farthest apart few are in the same place.
        let extent = |k: usize| {
            let places = || second.iter().map(|place| place[k]);
            places().fold(f64::MIN, f64::max) - places().fold(f64::MAX, f64::min)
        };
        let axis = (1..3).fold(0, |most, k| if extent(k) > extent(most) { k } else { most });
        let mut along: Vec<usize> = (0..count).collect();
        along.sort_by(|&a, &b| second[a][axis].total_cmp(&second[b][axis]));
        let mut is_met = vec![false; count];
        let mut of_first = Vec::with_capacity(count);
        for (place, size) in first.iter().zip(sizes) {
            let (there, near) = (sub(*place, shift), APART * size);
            let start = along.partition_point(|&k| second[k][axis] < there[axis] - near);
            let mut candidates = along[start..].iter().take_while(|&&k| second[k][axis] <= there[axis] + near);
            let is_same = |k: usize| !is_met[k] && (0..3).all(|i| (second[k][i] - there[i]).abs() <= near);
            let Some(&partner) = candidates.find(|&&k| is_same(k)) else {
                return Err(Error::Invalid(format!(
                    "sides that are one have the same {what}: there is none at {there:?} for that at {place:?}"
                )));
            };
            is_met[partner] = true;
            of_first.push(partner);
        }
        Ok(Partners { of_first, shift })
    }
}
