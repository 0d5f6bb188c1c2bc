//! What is done to a solid in the course of time: where its ends are held, and what it touches.

use super::options::{Act, Obstructed, SoftbodyOptions};
use super::scene::Scene;
use meshweft::nalgebra::Vector3;
use meshweft::{Real, record};
use meshweft_physics::{Contact, Plane, Sphere, Touch};
use std::f64::consts::{PI, TAU};

/// Out of reach, m.
const FAR: f64 = 1e9;

/// Contact stiffness over that of inertia and solid, per vertex.
const CONTACT: f64 = 10.0;

record! {
    /// How far the two ends have been moved, each the other way.
    pub struct Grip<R> {
        /// What the ends turn about: a point of a line along x, m.
        center: Vector3<R>,
        /// Cosine of the angle by which each end is turned.
        cos: R,
        /// Sine of that angle.
        sin: R,
        /// How far each end is pulled, m.
        pull: R,
    }
}

record! {
    /// What the solid touches.
    pub struct Obstacles<R> {
        /// A ball on the ground.
        ball: Sphere<R>,
        /// The ground.
        ground: Plane<R>,
        /// A plate above, at the end of the step.
        lid: Plane<R>,
        /// How far the plate moves up in the step, m.
        lift: R,
        /// Coefficient of friction.
        friction: R,
    }
}

impl<R: Real> Grip<R> {
    /// Where it holds a vertex that is there at rest.
    #[inline(always)]
    pub fn hold(&self, rest: Vector3<R>) -> Vector3<R> {
        let Grip { center, cos, sin, pull } = *self;
        let rest = rest - center;
        let side = R::select(rest.x.less(R::lit(0.0)), R::lit(-1.0), R::lit(1.0));
        let turn = sin * side;
        Vector3::new(rest.x + pull * side, rest.y * cos - rest.z * turn, rest.y * turn + rest.z * cos) + center
    }
}

impl<R: Real> Obstacles<R> {
    /// Where a point is, as ball, ground and lid see it.
    #[inline(always)]
    pub fn touch(&self, at: Vector3<R>) -> [Touch<R>; 3] {
        [self.ball.touch(at), self.ground.touch(at), self.lid.touch(at)]
    }

    /// How contact pushes a vertex of a stiffness, N/m.
    #[inline(always)]
    pub(super) fn contact(&self, stiffness: R, dt: R) -> Contact<R> {
        // Sliding slower than this is smoothed to sticking, m.
        let slip = dt * R::lit(1e-3);
        Contact { stiffness: stiffness * R::lit(CONTACT), friction: self.friction, slip }
    }

    /// How far something has moved in the step, as the lid sees it.
    #[inline(always)]
    pub fn by_lid(&self, moved: Vector3<R>) -> Vector3<R> {
        moved - Vector3::new(R::lit(0.0), R::lit(0.0), self.lift)
    }
}

impl SoftbodyOptions {
    /// How far the load has come, 0 to 1: smoothly to its full amount and back once a period.
    fn load(&self, time: f64) -> f64 {
        let half = Real::sin(PI * time / self.period);
        self.amount.unwrap_or(match self.act {
            Act::Drop | Act::Pile => 0.0,
            Act::Twist => 0.5,
            Act::Stretch => 1.0,
            Act::Squeeze => 0.6,
        }) * half
            * half
    }

    /// Gravity as the ground sees it, which slopes, m/s².
    pub(crate) fn pull_of_gravity(&self) -> Vector3<f64> {
        let slope = self.slope * PI / 180.0;
        Vector3::new(Real::sin(slope), 0.0, -Real::cos(slope)) * self.gravity
    }

    /// Whether there is something to touch.
    pub(crate) fn has_contact(&self) -> bool {
        let falls = matches!(self.act, Act::Drop | Act::Pile | Act::Squeeze) || self.tear.is_some();
        falls && self.obstacles != Obstructed::Nothing
    }
}

impl Scene {
    /// Where the ends are held at a time.
    pub(crate) fn grip(&self, options: &SoftbodyOptions, time: f64) -> Grip<f64> {
        let angle = if options.act == Act::Twist { TAU * options.load(time) } else { 0.0 };
        let pull = if options.act == Act::Stretch { 0.5 * self.length * options.load(time) } else { 0.0 };
        Grip { center: self.center.into(), cos: Real::cos(angle), sin: Real::sin(angle), pull }
    }

    /// What the solid touches in the step from a time on.
    pub(crate) fn obstacles(&self, options: &SoftbodyOptions, time: f64) -> Obstacles<f64> {
        let (center, radius) = self.ball;
        let end = time + options.dt;
        Obstacles {
            ball: Sphere { center: Vector3::from(center), radius },
            // Where nothing is to be touched, the ground is out of reach.
            ground: Plane { normal: Vector3::z(), offset: if options.has_contact() { 0.0 } else { -FAR } },
            lid: Plane { normal: -Vector3::z(), offset: -self.lid(options, end) },
            lift: self.lid(options, end) - self.lid(options, time),
            friction: options.friction,
        }
    }

    /// The height of the lid, m: out of reach where nothing is squeezed.
    fn lid(&self, options: &SoftbodyOptions, time: f64) -> f64 {
        match options.act {
            Act::Squeeze if options.has_contact() => self.height * (1.0 - options.load(time)).max(0.0),
            _ => FAR,
        }
    }
}
