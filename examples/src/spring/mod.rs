//! Springs with dashpots to all neighbors: the mass-spring-dashpot model of Laika, and our benchmark.
//!
//! Every vertex is a unit mass tied to its neighbors by springs of one rest length, the mean edge of the mesh, and
//! slowed by a dashpot. Leapfrog: neighbors see positions half a step ahead. The extreme vertices of each axis are
//! fixed. Units are the mesh's lengths and an arbitrary time.
//!
//! Source: Gruevski, Hasenplaugh, Lugato and Thomas, "Laika: efficient in-place scheduling for 3D mesh graph
//! computations", SPAA 2018.

mod checks;

use crate::example::{Check, Example, Info, Look};
use crate::settings::{Kind, Setting, Settings};
use anyhow::Result;
use meshweft::nalgebra::Vector3;
use meshweft::{Length, Metrics, Program, Real, Stages, Star, Stars, kernel, record};
use meshweft_mesh::{Mesh, mean_edge_length};

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Rest length of every spring, m.
        rest: R,
        /// Stiffness: one over the rest length, 1/m.
        stiffness: R,
        /// Damping rate, 1/s.
        damping: R,
        /// Time step, s.
        dt: R,
    }
}

record! {
    /// What neighbors read.
    pub struct Shared<R> {
        /// Position half a step ahead, m.
        half: Vector3<R>,
    }
}

record! {
    /// What only the vertex reads.
    pub struct Private<R> {
        /// Position, m.
        position: Vector3<R>,
        /// Velocity, m/s.
        velocity: Vector3<R>,
        /// 1, or 0 where the vertex is fixed.
        free: R,
    }
}

/// Springs to the neighbors.
pub struct Springs;

impl Star<1> for Springs {
    const INDEX: usize = 0;
    type Data<R: Real> = ();
}

/// A mesh of springs and dashpots.
pub struct Spring {
    rest: f64,
    damping: f64,
    dt: f64,
    fixed: Vec<u32>,
    edges: Vec<[u32; 2]>,
}

kernel! {
    /// Sums the forces of the springs and takes a step.
    update Leap for Spring: |p, own, body, neighbors| {
        let force = neighbors.fold(Springs, Vector3::zeros(), |force, [other], ()| {
            let d = own.half - other.half;
            force + d * ((p.rest - d.length()) * p.stiffness)
        });
        let velocity = (body.velocity + (force - body.velocity * p.damping) * p.dt) * body.free;
        let position = body.position + velocity * p.dt;
        let half = position + velocity * (p.dt * R::lit(0.5));
        (Shared { half }, Private { position, velocity, ..body })
    }
}

kernel! {
    /// `½ v²` of unit masses.
    sum Kinetic ("kinetic energy", "J") for Spring: |_, _, body, _| R::lit(0.5) * body.velocity.dot(&body.velocity)
}

kernel! {
    /// The integral of the force `l (l - rest) / rest` of a spring of length `l`: `(l³/3 - rest l²/2) / rest + rest²/6`,
    /// half of it at either end.
    sum Elastic ("elastic energy", "J") for Spring: |p, own, _, neighbors| {
        neighbors.fold(Springs, R::lit(0.0), |energy, [other], ()| {
            let length = (own.half - other.half).length();
            let cubic = length * length * (length * R::lit(1.0 / 3.0) - p.rest * R::lit(0.5)) * p.stiffness;
            energy + R::lit(0.5) * (cubic + p.rest * p.rest * R::lit(1.0 / 6.0))
        })
    }
}

impl Program for Spring {
    type Parameters<R: Real> = Parameters<R>;
    type Shared<R: Real> = Shared<R>;
    type Private<R: Real> = Private<R>;

    fn time_step(&self) -> f64 {
        self.dt
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { rest: self.rest, stiffness: 1.0 / self.rest, damping: self.damping, dt: self.dt }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        stars.add(Springs, self.edges.clone(), |_| ());
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> (Shared<f64>, Private<f64>) {
        let position = Vector3::from(mesh.points()[v as usize]);
        let free = if self.fixed.contains(&v) { 0.0 } else { 1.0 };
        (Shared { half: position }, Private { position, velocity: Vector3::zeros(), free })
    }

    fn step(&self, stages: &mut impl Stages<Self>) {
        stages.sweep(Leap, 1);
    }

    fn metrics(&self, metrics: &mut impl Metrics<Self>) {
        metrics.measure(Kinetic);
        metrics.measure(Elastic);
    }
}

impl Example for Spring {
    const INFO: Info = Info {
        name: "spring",
        about: "masses, springs and dashpots between all neighbors, swept in place (Laika's model; the benchmark)",
        mesh: "box:32",
        steps: 400,
        settings: &[
            Setting {
                name: "dt",
                about: "time step; above about 0.5 it diverges",
                kind: Kind::Number { default: 0.1, unit: "s", range: [1e-9, 1e9] },
            },
            Setting {
                name: "damping",
                about: "rate at which velocities fade",
                kind: Kind::Number { default: 1.0, unit: "1/s", range: [0.0, 1e9] },
            },
        ],
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<Spring> {
        let edges = mesh.edges();
        let mean = mean_edge_length(mesh, &edges);
        // Without edges, or with all points in one place, there is nothing to be stretched; any length will do.
        let rest = if mean > 0.0 { mean } else { 1.0 };
        let (damping, dt) = (settings.number("damping"), settings.number("dt"));
        Ok(Spring { rest, damping, dt, fixed: extremes(mesh), edges })
    }

    fn look(&self) -> Look {
        Look { positions: Some("position"), color: Some("velocity"), label: "speed (m/s)", ..Look::default() }
    }

    fn checks() -> Result<Vec<Check>> {
        checks::run()
    }
}

/// The lowest and the highest vertex along each axis in which the mesh has an extent: at most six. Ties go to the lowest
/// (highest) of the other coordinates, so that names do not matter.
fn extremes(mesh: &Mesh) -> Vec<u32> {
    let points = mesh.points();
    let [low, high] = mesh.bounds();
    let mut fixed = Vec::new();
    for axis in (0..3).filter(|&axis| high[axis] > low[axis]) {
        let key = |v: &u32| [0, 1, 2].map(|k| points[*v as usize][(axis + k) % 3]);
        let by_place = |a: &u32, b: &u32| key(a).partial_cmp(&key(b)).expect("coordinates are finite");
        let ids = 0..points.len() as u32;
        fixed.extend(ids.clone().min_by(by_place));
        fixed.extend(ids.max_by(by_place));
    }
    fixed.sort_unstable();
    fixed.dedup();
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate::generate;

    #[test]
    fn a_box_is_held_at_six_vertices_at_most_and_a_chain_at_its_ends() {
        assert!((2..=6).contains(&extremes(&generate("box:5", 1).unwrap()).len()));
        assert_eq!(extremes(&generate("chain:5", 1).unwrap()), [0, 4]);
    }
}
