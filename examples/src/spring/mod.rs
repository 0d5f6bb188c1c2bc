//! Springs with dashpots to all neighbors: the mass-spring-dashpot model of Laika, and our benchmark.
//!
//! Every vertex is a unit mass tied to its neighbors by springs of one rest length, the mean edge of the mesh, and
//! slowed by a dashpot. Leapfrog: neighbors see positions half a step ahead. The extreme vertices of each axis are
//! fixed. Units are the mesh's lengths and an arbitrary time.
//!
//! Source: Gruevski, Hasenplaugh, Lugato and Thomas, "Laika: efficient in-place scheduling for 3D mesh graph
//! computations", SPAA 2018.

mod checks;

use anyhow::Result;
use meshweft::nalgebra::Vector3;
use meshweft::{Length, Program, Stages, Stars, kernels, record, stars, vertex};
use meshweft_command::{Check, ColorMap, Example, Info, Look, Setting, Settings};
use meshweft_mesh::{Mesh, mean_edge_length};
use std::sync::Arc;

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

vertex! {
    /// A unit mass.
    pub struct Node<R> {
        /// Position half a step ahead, m.
        shared half: Vector3<R>,
        /// Position, m.
        position: Vector3<R>,
        /// Velocity, m/s.
        velocity: Vector3<R>,
        /// 1, or 0 where the vertex is fixed.
        free: R,
    }
}

stars! {
    /// Springs to the neighbors.
    pub Springs[1];
}

/// A mesh of springs and dashpots.
pub struct Spring {
    rest: f64,
    damping: f64,
    dt: f64,
    fixed: Vec<u32>,
    edges: Arc<Vec<[u32; 2]>>,
}

/// Settings of a mesh of springs; `SpringOptions::default()` is what the command takes.
#[derive(Clone, Debug, PartialEq)]
pub struct SpringOptions {
    /// Time step, s; above about 0.5 it diverges.
    pub dt: f64,
    /// Rate at which velocities fade, 1/s.
    pub damping: f64,
}

impl From<&Settings> for SpringOptions {
    fn from(settings: &Settings) -> SpringOptions {
        SpringOptions { dt: settings.number("dt"), damping: settings.number("damping") }
    }
}

impl Default for SpringOptions {
    fn default() -> SpringOptions {
        SpringOptions::from(&Settings::new(Spring::INFO.settings))
    }
}

impl Spring {
    /// A spring for every edge of the mesh, all of one rest length.
    pub fn with(mesh: &Mesh, options: &SpringOptions) -> Spring {
        let edges = mesh.edges();
        let mean = mean_edge_length(mesh, &edges);
        // Without edges, or with all points in one place, there is nothing to be stretched; any length will do.
        let rest = if mean > 0.0 { mean } else { 1.0 };
        Spring { rest, damping: options.damping, dt: options.dt, fixed: extremes(mesh), edges: Arc::new(edges) }
    }
}

kernels! {
    for Spring: Node, Parameters;

    /// Sums the forces of the springs and takes a step.
    update Leap |p, own, around| {
        let force = around.sum(Springs, |[other], ()| {
            let d = own.half - other.half;
            d * ((p.rest - d.length()) * p.stiffness)
        });
        let velocity = (own.velocity + (force - own.velocity * p.damping) * p.dt) * own.free;
        let position = own.position + velocity * p.dt;
        Node { half: position + velocity * (p.dt * R::lit(0.5)), position, velocity, ..own }
    };

    /// `½ v²` of unit masses.
    sum Kinetic("kinetic energy", "J") |_, own, _| R::lit(0.5) * own.velocity.dot(&own.velocity);

    /// The integral of the force `l (l - rest) / rest` of a spring of length `l`: `(l³/3 - rest l²/2) / rest + rest²/6`,
    /// half of it at either end.
    sum Elastic("elastic energy", "J") |p, own, around| around.sum(Springs, |[other], ()| {
        let length = (own.half - other.half).length();
        let cubic = length * length * (length * R::lit(1.0 / 3.0) - p.rest * R::lit(0.5)) * p.stiffness;
        R::lit(0.5) * (cubic + p.rest * p.rest * R::lit(1.0 / 6.0))
    });
}

impl Program for Spring {
    fn time_step(&self) -> f64 {
        self.dt
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        self.dt = dt;
        true
    }

    fn parameters(&self, _time: f64) -> Parameters<f64> {
        Parameters { rest: self.rest, stiffness: 1.0 / self.rest, damping: self.damping, dt: self.dt }
    }

    fn stars(&self, _mesh: &Mesh, stars: &mut Stars) -> meshweft::Result<()> {
        stars.add_shared(Springs, self.edges.clone(), |_| ());
        Ok(())
    }

    fn initial(&self, mesh: &Mesh, v: u32) -> Node<f64> {
        let position = Vector3::from(mesh.points()[v as usize]);
        let free = if self.fixed.contains(&v) { 0.0 } else { 1.0 };
        Node { half: position, position, velocity: Vector3::zeros(), free }
    }

    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Leap, 1);
    }
}

impl Example for Spring {
    const INFO: Info = Info {
        name: "spring",
        about: "masses, springs and dashpots between all neighbors, swept in place (Laika's model; the benchmark)",
        mesh: "box:32",
        steps: 400,
        settings: &[
            Setting::number("dt", "time step; above about 0.5 it diverges", 0.1, "s", [1e-9, 1e9]),
            Setting::number("damping", "rate at which velocities fade", 1.0, "1/s", [0.0, 1e9]),
        ],
        ..Info::DEFAULT
    };

    fn new(mesh: &mut Mesh, settings: &Settings, _order: meshweft::Order) -> Result<Spring> {
        Ok(Spring::with(mesh, &SpringOptions::from(settings)))
    }

    const LIVE: &'static [&'static str] = &["dt", "damping"];

    fn change(&mut self, settings: &Settings, _order: meshweft::Order) -> Result<()> {
        SpringOptions { dt: self.dt, damping: self.damping } = SpringOptions::from(settings);
        Ok(())
    }

    fn look(&self) -> Look {
        // Light where it is at rest, as most of it soon is.
        Look {
            positions: Some("position"),
            color: Some("velocity"),
            label: "speed (m/s)",
            map: ColorMap::Water,
            ..Look::default()
        }
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
