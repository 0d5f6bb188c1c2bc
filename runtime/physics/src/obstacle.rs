//! Obstacles: how far a point is from each, and which way out is.

use meshweft::nalgebra::Vector3;
use meshweft::{Length, Real, record};

record! {
    /// Where a point is, as an obstacle sees it.
    pub struct Touch<R> {
        /// Which way leads out: a unit vector.
        normal: Vector3<R>,
        /// Distance from the surface, m: negative inside.
        distance: R,
    }
}

record! {
    /// All that lies below a plane.
    pub struct Plane<R> {
        /// Which way leads out: a unit vector.
        normal: Vector3<R>,
        /// How far along it the plane lies from the origin, m.
        offset: R,
    }
}

record! {
    /// A ball.
    pub struct Sphere<R> {
        /// Its center, m.
        center: Vector3<R>,
        /// Its radius, m.
        radius: R,
    }
}

record! {
    /// A box along the axes, with rounded edges.
    pub struct Cuboid<R> {
        /// Its center, m.
        center: Vector3<R>,
        /// Half of its sides without the rounding, m: 0 or more.
        half: Vector3<R>,
        /// By how much it is larger all around, which rounds it, m.
        rounding: R,
    }
}

record! {
    /// All that is as near to a line as the radius.
    pub struct Capsule<R> {
        /// One end of the line, m.
        start: Vector3<R>,
        /// The other, m; both may be in one place.
        end: Vector3<R>,
        /// Its radius, m.
        radius: R,
    }
}

/// Shorter than this is no direction, m.
const TINY: f64 = 1e-9;

impl<R: Real> Plane<R> {
    /// Where a point is: cost 6 operations.
    #[inline(always)]
    pub fn touch(&self, point: Vector3<R>) -> Touch<R> {
        Touch { normal: self.normal, distance: self.normal.dot(&point) - self.offset }
    }
}

impl<R: Real> Sphere<R> {
    /// Where a point is; at the center no way leads out.
    #[inline(always)]
    pub fn touch(&self, point: Vector3<R>) -> Touch<R> {
        let from_center = point - self.center;
        let distance = from_center.length().max(R::lit(TINY));
        Touch { normal: from_center * (R::lit(1.0) / distance), distance: distance - self.radius }
    }
}

impl<R: Real> Cuboid<R> {
    /// Where a point is; inside, the way to the nearest side.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Cuboid;
    /// let table = Cuboid { center: Vector3::zeros(), half: Vector3::new(2.0, 1.0, 0.5), rounding: 0.1_f64 };
    /// let inside = table.touch(Vector3::new(1.0, 0.3, -0.4));
    /// assert!((inside.distance + 0.2).abs() < 1e-15 && inside.normal == -Vector3::z());
    /// assert_eq!(table.touch(Vector3::new(2.0 + 3.0, 1.0 + 4.0, 0.0)).distance, 4.9);
    /// ```
    #[inline(always)]
    pub fn touch(&self, point: Vector3<R>) -> Touch<R> {
        let (zero, one) = (R::lit(0.0), R::lit(1.0));
        let from_center = point - self.center;
        let sign = from_center.map(|x| R::select(x.less(zero), -one, one));
        let beyond = from_center.map(|x| x.abs()) - self.half;
        let outside = beyond.map(|x| x.max(zero));
        let length = outside.length();
        let nearest = beyond.x.max(beyond.y).max(beyond.z);
        // The first of equally near sides.
        let is_x = beyond.x.at_least(nearest);
        let is_y = beyond.y.at_least(nearest) & !is_x;
        let along = |is_side: R::Mask| R::select(is_side, one, zero);
        let inward = Vector3::new(along(is_x), along(is_y), along(!is_x & !is_y));
        let is_outside = R::lit(TINY).less(length);
        let outward = outside * (one / length.max(R::lit(TINY)));
        let normal = outward.zip_map(&inward, |outward, inward| R::select(is_outside, outward, inward));
        Touch { normal: normal.component_mul(&sign), distance: length + nearest.min(zero) - self.rounding }
    }
}

impl<R: Real> Capsule<R> {
    /// Where a point is; on the line no way leads out.
    ///
    /// ```
    /// use meshweft::nalgebra::Vector3;
    /// use meshweft_physics::Capsule;
    /// let rail = Capsule { start: Vector3::zeros(), end: Vector3::x() * 4.0, radius: 0.5 };
    /// assert_eq!(rail.touch(Vector3::new(3.0, 0.0, -2.0)).distance, 1.5);
    /// assert_eq!(rail.touch(Vector3::new(7.0, 0.0, 4.0)).distance, 4.5);
    /// ```
    #[inline(always)]
    pub fn touch(&self, point: Vector3<R>) -> Touch<R> {
        let (axis, from_start) = (self.end - self.start, point - self.start);
        let share = from_start.dot(&axis) / axis.dot(&axis).max(R::lit(TINY * TINY));
        let share = share.max(R::lit(0.0)).min(R::lit(1.0));
        Sphere { center: self.start + axis * share, radius: self.radius }.touch(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_are_unit_slopes_of_the_distance() {
        let plane = Plane { normal: Vector3::new(0.6, 0.0, 0.8), offset: 0.2 };
        let sphere = Sphere { center: Vector3::new(0.1, 0.2, 0.3), radius: 0.7 };
        let cuboid = Cuboid { center: Vector3::new(0.1, 0.0, 0.2), half: Vector3::new(0.4, 0.5, 0.3), rounding: 0.05 };
        let capsule = Capsule { start: Vector3::new(-1.0, 0.0, 0.2), end: Vector3::new(0.3, 0.1, 0.2), radius: 0.2 };
        let touches: [&dyn Fn(Vector3<f64>) -> Touch<f64>; 4] =
            [&|x| plane.touch(x), &|x| sphere.touch(x), &|x| cuboid.touch(x), &|x| capsule.touch(x)];
        for (k, touch) in touches.iter().enumerate() {
            let (mut inside, mut outside) = (0, 0);
            for i in 0..1000 {
                let unit = |axis: usize| ((i * [7, 31, 101][axis]) % 997) as f64 / 997.0;
                let x = Vector3::from_fn(|axis, _| 3.0 * unit(axis) - 1.49);
                let Touch { normal, distance } = touch(x);
                *(if distance < 0.0 { &mut inside } else { &mut outside }) += 1;
                assert!((normal.norm() - 1.0).abs() < 1e-12, "{k} {x}");
                // The way out is as long as the distance says, and ends at the surface.
                assert!(touch(x - normal * distance).distance.abs() < 1e-12, "{k} {x}");
            }
            assert!(inside > 0 && outside > 0, "{k}: {inside} inside, {outside} outside");
        }
    }

    #[test]
    fn there_is_a_distance_where_no_way_leads_out() {
        let point = Vector3::new(1.0f32, 2.0, 3.0);
        let capsule = Capsule { start: point, end: point, radius: 0.5 };
        assert_eq!((capsule.touch(point).normal, capsule.touch(point).distance), (Vector3::zeros(), 1e-9 - 0.5));
        let flat = Cuboid { center: point, half: Vector3::zeros(), rounding: 0.0 };
        assert_eq!(flat.touch(point).distance, 0.0);
        assert_eq!(flat.touch(point).normal.norm(), 1.0);
    }
}
