//! What of a surface touches what, step after step.

use super::contact::Contact;
use super::facing::Facing;
use super::gap::{Gap, Repulsion};
use super::system::System;
use meshweft::mesh::contact::{self, FREEDOM, Finder, Surface, crossings, edge_edge, point_triangle, separate};
use meshweft::mesh::{Error, Result, parallel};
use meshweft::nalgebra::Vector3;
use meshweft::{Incidence, Kernels, Length, Neighbors, Real, Renewal, SharedOf, Star, VertexOf, record};
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// Surfaces that do not pass through themselves or each other (claim C16).
///
/// A program keeps one, and lets it [find](Touching::renew) in [`Program::renew`](meshweft::Program::renew) the gaps of the step that comes:
/// elements of a changing star, with [`Gap`]s as their data. Kernels start the step from the guess, add the repulsion of the gaps, and keep
/// each vertex in its [`Corridor`].
pub struct Touching {
    triangles: Vec<[u32; 3]>,
    rest: Vec<[f64; 3]>,
    thickness: f64,
    /// Of each vertex the one that it was before anything tore; empty if nothing does.
    once: Vec<u32>,
    /// By numbers along the curve, once those are known.
    known: Mutex<Option<Known>>,
}

/// What is known of triangles from one step to the next.
struct Known {
    triangles: Vec<[u32; 3]>,
    finder: Finder,
    facing: Facing,
}

/// A surface that has come apart, by vertices of the mesh.
pub struct Apart<V> {
    /// Its triangles, shape [triangles × 3].
    pub triangles: Vec<[u32; 3]>,
    /// The states of all vertices, shape `[n]`.
    pub states: Vec<V>,
}

/// What a step begins with; all by numbers along the curve.
struct Approach {
    /// What comes near what, and how it repels.
    gaps: Vec<(contact::Gap, Repulsion)>,
    /// From where sweeps are to start, shape `[n]`, m.
    guess: Vec<[f64; 3]>,
    /// How much of the way there is open to each vertex, seen from its end, shape `[n]`.
    open: Vec<f64>,
}

/// A vertex at the start of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moving {
    /// Where it is, m.
    pub from: [f64; 3],
    /// Where it will be by inertia and what else is known, m.
    pub to: [f64; 3],
    /// How far a force moves it in the step, m/N: one over its stiffness, that of inertia and of what else holds it; 0 of one that is held
    /// altogether.
    pub compliance: f64,
}

/// Whether a triangle repeats no vertex.
fn has_sides([a, b, c]: &[u32; 3]) -> bool {
    a != b && b != c && c != a
}

impl Touching {
    /// Stiffness of a contact: this times what the vertices have themselves.
    const STIFFNESS: f64 = 10.0;

    /// Of what is near at rest, the gap at rest is this much wider than what repels.
    const SLACK: f64 = 0.8;

    /// The thickness is this share of the mean edge at most: more would push apart what lies beside each other.
    const OF_EDGE: f64 = 0.4;

    /// Surfaces of some triangles; those that repeat a vertex are none. `rest`: places of all vertices of the mesh, shape `[n]`, m;
    /// `thickness`: the distance that is kept, m, which is 0.4 of the mean edge at most.
    ///
    /// # Errors
    /// A thickness that is not above 0; a surface that passes through itself at rest.
    pub fn new(rest: Vec<[f64; 3]>, mut triangles: Vec<[u32; 3]>, thickness: f64) -> Result<Touching> {
        if !(thickness.is_finite() && thickness > 0.0) {
            return Err(Error::Invalid(format!(
                "a thickness of {thickness} m keeps nothing apart: it must be above 0"
            )));
        }
        triangles.retain(has_sides);
        let surface = Surface::new(&rest, &triangles, &[], &[])?;
        let crossed = crossings(&surface, &rest)?;
        if let Some((edge, triangle)) = crossed.first() {
            return Err(Error::Invalid(format!(
                "{} edges of the surface touch or cross triangles at rest, {edge:?} the triangle {triangle:?} first: what cannot pass through \
                 itself must begin apart: mend the mesh",
                crossed.len()
            )));
        }
        let length = |&[a, b]: &[u32; 2]| {
            let [a, b] = [a, b].map(|v| Vector3::from(rest[v as usize]));
            (b - a).norm()
        };
        let mut lengths: Vec<f64> = surface.edges().iter().map(length).filter(|&length| length > 0.0).collect();
        // By value, so that names do not decide the order of a sum.
        lengths.sort_unstable_by(f64::total_cmp);
        let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
        // Of no edges the mean is no number, and `min` takes the other.
        let thickness = thickness.min(Self::OF_EDGE * mean);
        Ok(Touching { triangles, thickness, rest, once: Vec::new(), known: Mutex::default() })
    }

    /// The same where vertices come apart: `once`, shape `[n]`, says of each the one that it was, and what shared that one may pass through each other at the
    /// tear.
    ///
    /// # Panics
    /// If not every vertex has one.
    pub fn with_once(self, once: Vec<u32>) -> Touching {
        assert_eq!(once.len(), self.rest.len(), "each vertex was one");
        Touching { once, ..self }
    }

    /// How far from its guess a vertex may end, m.
    pub fn freedom(&self) -> f64 {
        FREEDOM * self.thickness
    }

    /// Finds what comes near in the step that a renewal is for. `gaps`: the star that takes it; `guess` and `open`: the names of the fields that take
    /// where sweeps are to start, m, and how much of the way there is open, as [`Corridor`] has them; `torn`: triangles and states, where they are
    /// others than at first and in the renewal; `moving`: how a vertex moves by itself.
    ///
    /// # Errors
    /// Places with which nothing can be computed; more gaps than memory should hold.
    pub fn renew<P: Kernels, S: Star<3, Data<f64> = Gap<f64>>>(
        &self,
        renewal: &mut Renewal<P>,
        gaps: S,
        [guess, open]: [&'static str; 2],
        torn: Option<Apart<VertexOf<P, f64>>>,
        moving: impl Fn(VertexOf<P, f64>) -> Moving + Sync,
    ) -> meshweft::Result<()> {
        let (triangles, moving): (Cow<[[u32; 3]]>, Vec<Moving>) = match torn {
            None => (
                (&self.triangles).into(),
                parallel::collect(renewal.vertices() as usize, |v| moving(renewal.vertex(v as u32))),
            ),
            Some(Apart { mut triangles, states }) => {
                triangles.retain(has_sides);
                let mut all = vec![Moving::default(); states.len()];
                states.into_iter().zip(0..).for_each(|(state, v)| all[renewal.number(v) as usize] = moving(state));
                (triangles.into(), all)
            }
        };
        let found = self.approach(|v| renewal.number(v), &triangles, &moving)?;
        renewal.set_field(guess, found.guess.into_flattened());
        renewal.set_field(open, found.open);
        let elements = found.gaps.iter().map(|(gap, _)| gap.vertices).collect();
        renewal.set(gaps, elements, move |i: Incidence<4>| {
            let (gap, repulsion) = found.gaps[i.element];
            Gap::seen_from(&gap, &i, repulsion)
        });
        Ok(())
    }

    /// Looks at a step. `number`: of a vertex of the mesh along the curve; `moving`: by numbers.
    fn approach(&self, number: impl Fn(u32) -> u32, triangles: &[[u32; 3]], moving: &[Moving]) -> Result<Approach> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| known.triangles != triangles) {
            let mut rest = vec![[0.0; 3]; self.rest.len()];
            self.rest.iter().zip(0..).for_each(|(&place, v)| rest[number(v) as usize] = place);
            let named: Vec<[u32; 3]> = triangles.iter().map(|corners| corners.map(&number)).collect();
            let mut surface = Surface::new(&rest, &named, &[], &[])?;
            if !self.once.is_empty() {
                let mut once = vec![0; rest.len()];
                self.once.iter().zip(0..).for_each(|(&v, place)| once[number(place) as usize] = v);
                surface = surface.with_once(once);
            }
            let (triangles, facing) = (triangles.to_vec(), Facing::of(rest.len(), &named));
            *known = Some(Known { triangles, finder: Finder::new(surface, 0.0)?, facing });
        }
        let Known { finder, facing, .. } = known.as_mut().expect("it was just made");
        let from: Vec<[f64; 3]> = moving.iter().map(|vertex| vertex.from).collect();
        let to = moving.iter().map(|vertex| vertex.to).collect();
        let separation = separate(finder, &from, to, self.thickness)?;
        let rest = finder.surface().rest();
        let repulsion = |gap: &contact::Gap| {
            let corners = gap.vertices.map(|v| rest[v as usize]);
            let [a, b, c, d] = corners;
            let squared = match gap.above {
                1 => point_triangle(a, [b, c, d]).squared,
                _ => edge_edge([a, b], [c, d]).squared,
            };
            let moves = gap.vertices.iter().zip(gap.weights).map(|(&v, w)| w * w * moving[v as usize].compliance);
            let stiffness = facing.share(gap, &from) * Self::STIFFNESS / moves.sum::<f64>();
            // What is held on both sides moves by nothing.
            let stiffness = Some(stiffness).filter(|x| x.is_finite() && *x < 1e30).unwrap_or(0.0);
            Repulsion { thickness: self.thickness.min(Self::SLACK * squared.sqrt()), stiffness }
        };
        let gaps = separation.gaps.into_iter().map(|gap| (gap, repulsion(&gap))).collect();
        Ok(Approach { gaps, guess: separation.to, open: separation.open })
    }
}

/// `map` of an array is a call, which takes as long as a gap.
#[inline(always)]
fn each<A, B>([a, b, c]: [A; 3], f: &impl Fn(A) -> B) -> [B; 3] {
    [f(a), f(b), f(c)]
}

record! {
    /// Where a vertex may end, so that only gaps that are known can close: near the way from the start of the step to the guess.
    pub struct Corridor<R> {
        /// Where the vertex was at the start of the step, m.
        before: Vector3<R>,
        /// Where the sweeps of the step start, m.
        guess: Vector3<R>,
        /// The share of the way between them, seen from its end, near which it may end.
        open: R,
        /// How far from the way between them it may end, m.
        freedom: R,
    }
}

impl<R: Real> Corridor<R> {
    /// Where a vertex at `at`, a place where all gaps are open, goes in a step of Newton's method among gaps.
    ///
    /// `system`: all but the gaps; `place`: that of a neighbor, m; `relaxation`: the share of the step, at most 1 where a gap repels.
    #[inline(always)]
    pub fn step<P: Kernels, S: Copy + Star<3, Data<R> = Gap<R>>>(
        self,
        (around, gaps): (&impl Neighbors<P, R>, S),
        place: impl Fn(SharedOf<P, R>) -> Vector3<R>,
        contact: &Contact<R>,
        system: System<R>,
        at: Vector3<R>,
        relaxation: R,
    ) -> Vector3<R> {
        let repelled = |then: Vector3<R>| {
            around.fold(gaps, (system, R::lit(1.0)), |(system, clearance), others, gap| {
                let (system, then) = gap.add(contact, system, (at, then), each(others, &place));
                (system, clearance.min(then))
            })
        };
        // Repulsion begins at a stroke: a step that knows only of what repels at its start would plunge into what lies ahead, and be thrown
        // out again by the next.
        let (system, _) = repelled(at);
        let (system, clearance) = repelled(at + system.solve_robustly());
        let relaxation = R::select(clearance.less(R::lit(0.0)), relaxation.min(R::lit(1.0)), relaxation);
        self.keep((around, gaps), place, at, at + system.solve_robustly() * relaxation)
    }

    /// The place to which a vertex goes that would go from `at` to `to`, so that gaps stay open: slid along them, near the way to the guess, and
    /// where that is not enough, as far as all allow.
    #[inline(always)]
    fn keep<P: Kernels, S: Copy + Star<3, Data<R> = Gap<R>>>(
        self,
        (around, gaps): (&impl Neighbors<P, R>, S),
        place: impl Fn(SharedOf<P, R>) -> Vector3<R>,
        at: Vector3<R>,
        to: Vector3<R>,
    ) -> Vector3<R> {
        let to = around.fold(gaps, to, |to, others, gap| gap.held(to, at, each(others, &place)));
        let way = self.guess - self.before;
        let along = (to - self.before).dot(&way) / way.dot(&way).max(R::lit(1e-30));
        let near = self.before + way * along.max(R::lit(1.0) - self.open).min(R::lit(1.0));
        let far = to - near;
        let to = near + far * (self.freedom / far.length().max(self.freedom));
        let share = around.fold(gaps, R::lit(1.0), |share, others, gap| gap.share(share, to, at, each(others, &place)));
        at + (to - at) * share
    }
}
