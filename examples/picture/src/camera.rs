//! Where a picture is taken from, and how points in space become samples of the picture.

use super::vector::{Vector, add, dot, scale, smoothstep, sub, unit};

/// The axis that points up in the picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Up {
    /// The third coordinate.
    #[default]
    Z,
    /// The second coordinate, as in most scanned models.
    Y,
}

/// A view that fits a box. Use the box of the whole run, so that the view stands still while the mesh moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Camera {
    center: [f64; 3],
    radius: f64,  // half the diagonal of the box, in the units of the points
    half: Vector, // half the sides of the box in scene space, a vector of length 1
    up: Up,
    azimuth_deg: f64,
    elevation_deg: f64,
}

impl Camera {
    /// Looks at the box with the lower and upper corner `bounds` from the front, right and above.
    ///
    /// A box that is flat along an axis is seen straight along that axis, because its scalar is then the thing to see.
    /// A box that is not finite is replaced by a cube, one without size by a cube of side 1 around it.
    pub fn framing(bounds: [[f64; 3]; 2], up: Up) -> Camera {
        let finite = bounds.iter().flatten().all(|x| x.is_finite());
        let [low, high] = if finite { bounds } else { [[-0.5; 3], [0.5; 3]] };
        let center = std::array::from_fn(|k| 0.5 * low[k] + 0.5 * high[k]);
        let mut half: [f64; 3] = upright(std::array::from_fn(|k| 0.5 * high[k] - 0.5 * low[k]), up).map(f64::abs);
        let mut longest = half.iter().fold(0.0f64, |m, &h| m.max(h));
        // A box too small for its quotients to be finite is a point; so is one below the resolution of its coordinates.
        if longest < center.iter().fold(1e-300, |m, c: &f64| m.max(c.abs() * 1e-15)) {
            (half, longest) = ([0.5; 3], 0.5);
        }
        let diagonal = half.iter().map(|h| (h / longest).powi(2)).sum::<f64>().sqrt();
        let flat = half.map(|h| h < 0.01 * longest);
        // A line is flat along two axes: the first arm that fits shows its whole length.
        let (azimuth_deg, elevation_deg) = match flat {
            [_, _, true] => (-90.0, 90.0),
            [_, true, _] => (-90.0, 0.0),
            [true, _, _] => (0.0, 0.0),
            // The flatter the box, the steeper the view, down to what shows the sides of a cube.
            _ => (-62.0, 44.0 - 20.0 * (half[2] / half[0].max(half[1])).min(1.0)),
        };
        let half = half.map(|h| (h / longest / diagonal) as f32);
        Camera { center, radius: (longest * diagonal).min(f64::MAX), half, up, azimuth_deg, elevation_deg }
    }

    /// The same box seen from elsewhere, for a turntable or a better side. In degrees: `azimuth_deg` counts around the
    /// up axis, -90 is the front (the camera looks along +y, or along -z if y is up), 0 is the side of +x;
    /// `elevation_deg`, -90 to 90, is the height over the horizon.
    pub fn seen_from(self, azimuth_deg: f64, elevation_deg: f64) -> Camera {
        let sane = |x: f64| if x.is_finite() { x } else { 0.0 };
        Camera { azimuth_deg: sane(azimuth_deg), elevation_deg: sane(elevation_deg).clamp(-90.0, 90.0), ..self }
    }

    /// The direction from the box to the camera, of length 1, in the coordinates of the points.
    ///
    /// ```
    /// use meshweft_picture::{Camera, Up};
    /// let [x, y, z] = Camera::framing([[0.0; 3], [1.0; 3]], Up::Z).toward();
    /// assert!(x > 0.0 && y < 0.0 && z > 0.0); // from the right, the front and above
    /// ```
    pub fn toward(&self) -> [f64; 3] {
        let (sa, ca) = self.azimuth_deg.to_radians().sin_cos();
        let (se, ce) = self.elevation_deg.to_radians().sin_cos();
        let [x, y, z] = [ce * ca, ce * sa, se];
        match self.up {
            Up::Z => [x, y, z],
            Up::Y => [x, z, -y],
        }
    }
}

/// Turns coordinates so that the third one points up.
fn upright(p: [f64; 3], up: Up) -> [f64; 3] {
    match up {
        Up::Z => p,
        Up::Y => [p[0], -p[2], p[1]],
    }
}

/// A rectangle of the picture, in samples: left, top, right, bottom.
pub(super) type Frame = [f32; 4];

/// A camera in front of a grid of samples.
///
/// *Scene space* is that of the points, moved and scaled so that the box of the camera lies in the unit ball around the
/// origin and z points up: single precision is enough in it, whatever the units of the points.
pub(super) struct View {
    center: [f64; 3],
    radius: f64,
    up: Up,
    /// Position of the camera in scene space.
    pub eye: Vector,
    /// Unit vectors in scene space: right in the picture, up in the picture, and from the scene to the camera.
    pub axes: [Vector; 3],
    /// The direction of the key light: from the upper left, a little behind the camera.
    pub key_light: Vector,
    /// The direction of the light opposite to it.
    pub fill_light: Vector,
    /// Distance from the camera to the middle of the scene.
    pub distance: f32,
    /// Samples per unit of tangent.
    pub focal: f32,
    tangent: f32,     // of a sample
    middle: [f32; 2], // sample on the axis of the lens
}

impl View {
    /// The view of `camera` through a lens of 26 degrees that just fits the box into `frame`.
    pub fn new(camera: &Camera, height: usize, frame: Frame) -> View {
        let (sa, ca) = camera.azimuth_deg.to_radians().sin_cos();
        let (se, ce) = camera.elevation_deg.to_radians().sin_cos();
        let narrow = |v: [f64; 3]| v.map(|x| x as f32);
        let back = narrow([ce * ca, ce * sa, se]);
        let right = narrow([-sa, ca, 0.0]);
        let toward = narrow([ca, sa, 0.0]); // the camera, along the horizon
        let above = narrow([-se * ca, -se * sa, ce]);
        let focal = height as f32 / (2.0 * 13f32.to_radians().tan());
        let tangent = [(frame[2] - frame[0]) / (2.0 * focal), (frame[3] - frame[1]) / (2.0 * focal)];

        // A corner at (x, z) in camera space is inside the frame if |x - shift| <= tangent (distance - z): linear in
        // the shift and the distance, so the nearest camera follows from the extremes of x + tangent z, x - tangent z.
        let mut least = [f32::INFINITY; 2];
        let mut most = [f32::NEG_INFINITY; 2];
        for corner in 0..8 {
            let p: Vector =
                std::array::from_fn(|k| if corner >> k & 1 == 0 { camera.half[k] } else { -camera.half[k] });
            let z = dot(p, back);
            for (k, axis) in [right, above].into_iter().enumerate() {
                most[k] = most[k].max(dot(p, axis) + tangent[k] * z);
                least[k] = least[k].min(dot(p, axis) - tangent[k] * z);
            }
        }
        let distance = (0..2).map(|k| (most[k] - least[k]) / (2.0 * tangent[k])).fold(1.2, f32::max);
        let shift: [f32; 2] = std::array::from_fn(|k| 0.5 * (most[k] + least[k]));
        let eye = add(add(scale(right, shift[0]), scale(above, shift[1])), scale(back, distance));
        View {
            center: camera.center,
            radius: camera.radius,
            up: camera.up,
            eye,
            axes: [right, above, back],
            key_light: unit(add(add(scale(right, -0.55), scale(toward, 0.35)), [0.0, 0.0, 0.95])),
            fill_light: unit(add(add(scale(right, 0.8), scale(toward, 0.6)), [0.0, 0.0, 0.25])),
            distance,
            focal,
            tangent: 1.0 / focal,
            middle: [0.5 * (frame[0] + frame[2]), 0.5 * (frame[1] + frame[3])],
        }
    }

    /// A point in scene space; None if it is not finite or absurdly far away.
    pub fn to_scene(&self, p: &[f64; 3]) -> Option<Vector> {
        let q: [f64; 3] = upright(std::array::from_fn(|k| (p[k] - self.center[k]) / self.radius), self.up);
        q.iter().all(|x| x.abs() < 1e6).then(|| q.map(|x| x as f32))
    }

    /// A length in scene space.
    pub fn length_to_scene(&self, length: f64) -> f32 {
        (length / self.radius) as f32
    }

    /// A length in the units of the points.
    pub fn length_from_scene(&self, length: f64) -> f64 {
        length * self.radius
    }

    /// A height (the coordinate along the up axis) in scene space.
    pub fn height_to_scene(&self, height: f64) -> f32 {
        let middle = match self.up {
            Up::Z => self.center[2],
            Up::Y => self.center[1],
        };
        ((height - middle) / self.radius) as f32
    }

    /// Sample coordinates and the inverse of the depth, which is linear over a flat surface. None behind the camera.
    #[inline]
    pub fn project(&self, p: Vector) -> Option<Vector> {
        let q = sub(p, self.eye);
        let depth = -dot(q, self.axes[2]);
        if depth.is_nan() || depth < 0.02 {
            return None;
        }
        let inverse = 1.0 / depth;
        let x = self.middle[0] + self.focal * dot(q, self.axes[0]) * inverse;
        let y = self.middle[1] - self.focal * dot(q, self.axes[1]) * inverse;
        Some([x, y, inverse])
    }

    /// Direction from the eye through a sample, of depth 1.
    #[inline]
    pub fn ray(&self, x: f32, y: f32) -> Vector {
        let across = scale(self.axes[0], (x - self.middle[0]) * self.tangent);
        let along = scale(self.axes[1], (self.middle[1] - y) * self.tangent);
        sub(add(across, along), self.axes[2])
    }

    /// Inverse depth of the horizontal plane at `height` under a sample: not positive where the ray misses it.
    #[inline]
    pub fn plane_inverse_depth(&self, height: f32, [x, y]: [f32; 2]) -> f32 {
        self.ray(x, y)[2] / (height - self.eye[2])
    }

    /// Samples that a length in scene space covers at an inverse depth.
    #[inline]
    pub fn samples_of(&self, length: f32, inverse_depth: f32) -> f32 {
        length * self.focal * inverse_depth
    }

    /// How far something at that inverse depth lies in the haze: 0 in front of the scene, 1 behind it.
    #[inline]
    pub fn haze(&self, inverse_depth: f32) -> f32 {
        smoothstep(self.distance - 0.9, self.distance + 1.3, 1.0 / inverse_depth.max(1e-6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_box_fits_and_touches_the_frame() {
        for (bounds, up) in [([[0.0, 0.0, 0.0], [2.0, 1.0, 0.5]], Up::Z), ([[-1e9, 5e9, 0.0], [0.0, 6e9, 2e9]], Up::Y)]
        {
            let view = View::new(&Camera::framing(bounds, up), 600, [40.0, 30.0, 700.0, 550.0]);
            let mut ends = [f32::MAX, f32::MAX, f32::MIN, f32::MIN];
            for corner in 0..8 {
                let p = std::array::from_fn(|k| bounds[corner >> k & 1][k]);
                let [x, y, _] = view.project(view.to_scene(&p).unwrap()).unwrap();
                ends = [ends[0].min(x), ends[1].min(y), ends[2].max(x), ends[3].max(y)];
            }
            assert!(ends[0] > 39.9 && ends[1] > 29.9 && ends[2] < 700.1 && ends[3] < 550.1, "{ends:?}");
            assert!(ends[2] - ends[0] > 659.0 || ends[3] - ends[1] > 519.0, "{ends:?}");
        }
    }

    #[test]
    fn a_flat_sheet_is_seen_from_above_with_y_up_in_the_picture() {
        let camera = Camera::framing([[0.0; 3], [2.0, 1.0, 0.0]], Up::Z);
        let view = View::new(&camera, 100, [0.0, 0.0, 200.0, 100.0]);
        let at = |p: [f64; 3]| view.project(view.to_scene(&p).unwrap()).unwrap();
        assert!(at([0.0, 1.0, 0.0])[1] < 1.0 && at([2.0, 0.0, 0.0])[0] > 199.0);
    }

    #[test]
    fn ray_and_project_agree() {
        let view = View::new(&Camera::framing([[-1.0; 3], [1.0; 3]], Up::Z), 300, [0.0, 0.0, 400.0, 300.0]);
        let [x, y, inverse] = view.project([0.3, -0.2, 0.1]).unwrap();
        let p = add(view.eye, scale(view.ray(x, y), 1.0 / inverse));
        assert!(super::super::vector::length(sub(p, [0.3, -0.2, 0.1])) < 1e-5, "{p:?}");
        assert!((view.plane_inverse_depth(0.1, [x, y]) - inverse).abs() < 1e-5);
    }
}
