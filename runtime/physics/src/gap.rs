//! Contact of surfaces with themselves and each other.

use super::contact::Contact;
use super::obstacle::Touch;
use super::system::System;
use meshweft::mesh::contact;
use meshweft::nalgebra::{Vector3, Vector4};
use meshweft::{Incidence, Real, record};

record! {
    /// A gap between two parts of a surface that come near each other in a step, a vertex and a triangle or two edges, seen from one of
    /// the four vertices.
    ///
    /// [`separate`](meshweft::mesh::contact::separate) finds gaps; they are the elements of a star that changes, with these as its
    /// data. Normal and weights stay those of the start of the step, so that the gap is a linear function of the vertices; it is never
    /// wider than their distance.
    pub struct Gap<R> {
        /// The normal of the plane between, toward the side of the vertex: a unit vector.
        normal: Vector3<R>,
        /// Weights of the closest points in the four vertices, own first: those of its own side sum to 1, those of the other to -1. None
        /// is zero, so that the sign says of each on which side it is.
        weights: Vector4<R>,
        /// How far the sides must stay from each other along the normal, m.
        least: R,
        /// The width below which the sides repel each other, m.
        thickness: R,
        /// Force over what the gap lacks, N/m.
        stiffness: R,
    }
}

/// How the sides of a gap repel each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Repulsion {
    /// The width below which they do, m.
    pub(super) thickness: f64,
    /// Force over what the gap lacks, N/m: of one that is half of the thickness or wider at the start.
    pub(super) stiffness: f64,
}

impl Gap<f64> {
    /// A gap as one of its vertices sees it. One that is narrower than half of the thickness at the start repels more, as much as would
    /// hold twice the force for each halving.
    pub(super) fn seen_from(gap: &contact::Gap, incidence: &Incidence<4>, repulsion: Repulsion) -> Gap<f64> {
        /// The most by which stiffness grows.
        const MOST: f64 = 1e3;
        /// Nothing, with a sign.
        const NONE: f64 = 1e-30;
        let sign = if incidence.corner < gap.above { 1.0 } else { -1.0 };
        let weight = |corner: usize| {
            if corner < gap.above { gap.weights[corner].max(NONE) } else { gap.weights[corner].min(-NONE) }
        };
        let half = 0.5 * repulsion.thickness;
        let narrow = (half / gap.distance.max(half / MOST)).max(1.0);
        Gap {
            normal: Vector3::from(gap.normal) * sign,
            weights: Vector4::from(incidence.arrange([0, 1, 2, 3].map(weight))) * sign,
            least: gap.least,
            thickness: repulsion.thickness,
            stiffness: repulsion.stiffness * narrow,
        }
    }
}

impl<R: Real> Gap<R> {
    /// Adds what the gap pushes a vertex at `at` with, if it does when the vertex is at `then`; and by how much it is then wider than what repels, m.
    /// `contact`: its friction and slip count, its stiffness does not.
    #[inline(always)]
    pub(super) fn add(
        self,
        contact: &Contact<R>,
        system: System<R>,
        (at, then): (Vector3<R>, Vector3<R>),
        others: [Vector3<R>; 3],
    ) -> (System<R>, R) {
        let apart = self.apart(at, others);
        let touch = Touch { normal: self.normal, distance: self.normal.dot(&apart) - self.thickness };
        // Weights of the others sum to the opposite of its own.
        let then = Touch { distance: touch.distance + self.normal.dot(&(then - at)) * self.weights.x, ..touch };
        // At the start of the step the closest points were apart along the normal alone: all else is sliding.
        let contact = Contact { stiffness: self.stiffness, ..*contact };
        (contact.add_share(system, touch, then, apart, self.weights.x), then.distance)
    }

    /// Its energy, J.
    #[inline(always)]
    pub fn energy(self, at: Vector3<R>, others: [Vector3<R>; 3]) -> R {
        let lack = (self.thickness - self.normal.dot(&self.apart(at, others))).max(R::lit(0.0));
        R::lit(0.5) * self.stiffness * lack * lack
    }

    /// The least that the normal may make of the vertex's new place, so that a gap stays open even if all of its vertices move at the same
    /// time: each side has its half of what there is to take.
    #[inline(always)]
    fn limit(self, at: Vector3<R>, others: [Vector3<R>; 3]) -> R {
        let own = self.normal.dot(&at);
        let (zero, w) = (R::lit(0.0), [self.weights.y, self.weights.z, self.weights.w]);
        let (mut least, mut most) = (own, R::lit(-1e30));
        for k in 0..3 {
            let (along, is_own) = (self.normal.dot(&others[k]), zero.less(w[k]));
            least = R::select(is_own, least.min(along), least);
            most = R::select(is_own, most, most.max(along));
        }
        own.min((least + most + self.least) * R::lit(0.5))
    }

    /// Moves a place to which the vertex would go from `at` back to its side.
    #[inline(always)]
    pub(super) fn held(self, place: Vector3<R>, at: Vector3<R>, others: [Vector3<R>; 3]) -> Vector3<R> {
        place + self.normal * (self.limit(at, others) - self.normal.dot(&place)).max(R::lit(0.0))
    }

    /// How much of the way from `at` to a place stays on its side: `share`, or less.
    #[inline(always)]
    pub(super) fn share(self, share: R, place: Vector3<R>, at: Vector3<R>, others: [Vector3<R>; 3]) -> R {
        let (limit, zero) = (self.limit(at, others), R::lit(0.0));
        let (start, end) = (self.normal.dot(&at) - limit, self.normal.dot(&place) - limit);
        let way = start.max(zero) / (start - end).max(R::lit(1e-30));
        R::select(end.less(zero), share.min(way), share)
    }

    /// From the closest point of the other side to that of its own.
    #[inline(always)]
    fn apart(self, at: Vector3<R>, [b, c, d]: [Vector3<R>; 3]) -> Vector3<R> {
        let w = self.weights;
        // Weights sum to zero, and differences keep their digits.
        (b - at) * w.y + (c - at) * w.z + (d - at) * w.w
    }
}
