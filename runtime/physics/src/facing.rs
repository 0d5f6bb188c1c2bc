//! Which parts of a surface face each other.

use meshweft::mesh::contact::Gap;
use meshweft::nalgebra::Vector3;

/// Triangles around the vertices of a surface, and with them what it is like beside a point.
pub(super) struct Facing {
    /// Where the triangles of each vertex begin, shape `[n + 1]`.
    starts: Vec<usize>,
    triangles: Vec<[u32; 3]>,
}

impl Facing {
    /// How far the surface beside a closest point may rise toward the other, as the sine of an angle, before it counts as nearer: as uneven
    /// is what lies flat on something, and no steeper may a gap be that something slides by.
    const RISE: f64 = 0.02;

    pub(super) fn of(vertices: usize, triangles: &[[u32; 3]]) -> Facing {
        let mut around: Vec<(u32, [u32; 3])> = triangles.iter().flat_map(|&t| t.map(|v| (v, t))).collect();
        around.sort_unstable();
        let starts = (0..=vertices as u32).map(|v| around.partition_point(|&(u, _)| u < v)).collect();
        Facing { starts, triangles: around.into_iter().map(|(_, triangle)| triangle).collect() }
    }

    /// The share of its repulsion that a gap has: all of it where either closest point is the one of the surface around that is closest to the
    /// other, none where the surface beside it is clearly nearer, for then another gap repels there, straight, and not aslant as this one
    /// would: what slides along a flat surface would be held up by its edges.
    ///
    /// A vertex is only asked whether it faces the surface; an end of an edge is a vertex, which has gaps of its own. Source of the idea:
    /// the blocks of Chen, Hsu, Yang and others, "Offset Geometric Contact", 2025.
    pub(super) fn share(&self, gap: &Gap, places: &[[f64; 3]]) -> f64 {
        let (above, below) = gap.vertices.split_at(gap.above);
        let weights = gap.weights.split_at(gap.above);
        if gap.above == 2 && gap.weights.contains(&0.0) {
            return 0.0;
        }
        let normal = Vector3::from(gap.normal);
        let rise = match gap.above {
            1 => self.rise((below, weights.1), above, normal, places),
            _ => self.rise((below, weights.1), above, normal, places).max(self.rise(
                (above, weights.0),
                below,
                -normal,
                places,
            )),
        };
        (1.0 - rise / Self::RISE).max(0.0)
    }

    /// How much the surface rises toward `normal` beside a point of it, as the sine of an angle, at least 0. `part`: the vertices among
    /// which the point is, and their weights; triangles with a vertex of `others` do not count.
    fn rise(
        &self,
        (part, weights): (&[u32], &[f64]),
        others: &[u32],
        normal: Vector3<f64>,
        places: &[[f64; 3]],
    ) -> f64 {
        let at = |v: u32| Vector3::from(places[v as usize]);
        // The corner, edge or inside of a triangle.
        let mut feature = part.iter().zip(weights).filter(|(_, weight)| **weight != 0.0).map(|(&v, _)| v);
        let (Some(first), second, None) = (feature.next(), feature.next(), feature.next()) else { return 0.0 };
        let edge = second.map_or(Vector3::zeros(), |second| at(second) - at(first));
        let along = edge / edge.norm_squared().max(f64::MIN_POSITIVE);
        let around = &self.triangles[self.starts[first as usize]..self.starts[first as usize + 1]];
        let beside = around
            .iter()
            .filter(|triangle| {
                second.is_none_or(|v| triangle.contains(&v)) && !others.iter().any(|v| triangle.contains(v))
            })
            .flatten();
        let rise = |&corner: &u32| {
            let way = at(corner) - at(first);
            let across = way - edge * along.dot(&way);
            normal.dot(&across) / across.norm()
        };
        // Of a corner on the edge it is no number, and `max` takes the other.
        beside.filter(|&&v| v != first && Some(v) != second).map(rise).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_repel_where_no_other_part_is_nearer() {
        // A flat square of two triangles, with a vertex and an edge above it.
        let square = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
        let facing = Facing::of(8, &[[0, 1, 2], [0, 2, 3], [4, 5, 6]]);
        let share = |vertices: [u32; 4], above: usize, normal: [f64; 3], weights: [f64; 4], lift: f64| {
            let mut places = square.to_vec();
            places[3][2] = lift;
            places.extend([[0.5, 0.2, 0.1], [0.2, 0.5, 0.1], [0.5, 0.5, 2.0], [0.0; 3]]);
            facing.share(&Gap { vertices, above, normal, weights, distance: 0.1, least: 0.0 }, &places)
        };
        let up = [0.0, 0.0, 1.0];
        assert_eq!(share([4, 0, 1, 2], 1, up, [1.0, -0.5, -0.3, -0.2], 0.0), 1.0);
        // Beside the diagonal, aslant: the other triangle is nearer, unless it falls off.
        let aslant = [0.5, -0.5, 0.5f64.sqrt()];
        let on_diagonal = |lift| share([4, 0, 2, 3], 1, aslant, [1.0, -0.5, -0.5, 0.0], lift);
        assert_eq!(on_diagonal(0.0), 0.0);
        // Straight above the diagonal; and of two edges that cross there, or do not.
        assert_eq!(share([4, 0, 2, 3], 1, up, [1.0, -0.5, -0.5, 0.0], 0.0), 1.0);
        let risen = share([4, 0, 2, 3], 1, up, [1.0, -0.5, -0.5, 0.0], 0.01);
        assert!((risen - (1.0 - 0.01 / 0.5001f64.sqrt() / Facing::RISE)).abs() < 1e-9, "{risen}");
        assert_eq!(share([4, 5, 0, 2], 2, up, [0.5, 0.5, -0.65, -0.35], 0.0), 1.0);
        assert_eq!(share([4, 5, 0, 2], 2, up, [1.0, 0.0, -0.65, -0.35], 0.0), 0.0);
        // A corner of the square that all else falls away from faces up.
        assert_eq!(share([4, 0, 1, 2], 1, up, [1.0, 0.0, 0.0, -1.0], -1.0), 1.0);
    }
}
