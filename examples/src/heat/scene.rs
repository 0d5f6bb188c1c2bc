//! A hot spot on a mesh: what all methods start from.

use anyhow::Result;
use meshweft::{Real, Stars, record, stars};
use meshweft_mesh::{Laplacian, Mesh};
use std::sync::Arc;

/// How much hotter the middle of the spot is, K.
const RISE: f64 = 100.0;

record! {
    /// Numbers that all vertices read.
    pub struct Parameters<R> {
        /// Diffusivity times time step, m².
        spread: R,
        /// The largest of all masses.
        largest_mass: R,
    }
}

stars! {
    /// Edges with their finite-element weight.
    pub Edges[1]: R;
}

/// The equation of a step, and the temperatures that the first starts from.
#[derive(Clone)]
pub(super) struct Scene {
    /// Edges of the Laplacian and their weights.
    edges: Arc<Vec<[u32; 2]>>,
    weights: Arc<Vec<f64>>,
    /// Lumped masses of the vertices: their shares of length (m), area (m²) or volume (m³).
    masses: Vec<f64>,
    /// The largest diffusivity times time step of explicit Euler, m².
    explicit_limit: f64,
    /// Time step, s.
    pub(super) dt: f64,
    /// Diffusivity times time step, m².
    spread: f64,
    /// Sums over the mesh are taken in units of it, so that small parts do not leave the range of 32 bits.
    largest_mass: f64,
    /// Temperature far from the hot spot, K.
    cold: f64,
    /// Center and radius of the hot spot, m.
    spot: ([f64; 3], f64),
}

impl Scene {
    /// `step`: the time step in seconds, or else how many times that of explicit Euler at its limit.
    ///
    /// # Errors
    /// A mesh without a Laplacian.
    pub(super) fn new(mesh: &Mesh, diffusivity: f64, step: Result<f64, f64>, cold: f64) -> Result<Scene> {
        let laplacian = Laplacian::of(mesh)?;
        let explicit_limit = laplacian.explicit_limit();
        let Laplacian { edges, weights, masses } = laplacian;
        let [low, high] = mesh.bounds();
        let extent = (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max);
        let corner = [high[0], (low[1] + high[1]) / 2.0, high[2]];
        let center = mesh.nearest(corner, |v| masses[v] > 0.0).unwrap_or(corner);
        // A mesh of one place has no extent; any radius will do.
        let radius = if extent > 0.0 { 0.22 * extent } else { 1.0 };
        // Without any mass every vertex keeps its temperature.
        let largest_mass = Some(masses.iter().copied().fold(0.0, f64::max)).filter(|&mass| mass > 0.0).unwrap_or(1.0);
        let mut scene = Scene {
            edges: Arc::new(edges),
            weights: Arc::new(weights),
            masses,
            explicit_limit,
            dt: 0.0,
            spread: 0.0,
            largest_mass,
            cold,
            spot: (center, radius),
        };
        scene.tune(diffusivity, step);
        Ok(scene)
    }

    /// Takes over what decides about a step, as in [`Scene::new`].
    pub(super) fn tune(&mut self, diffusivity: f64, step: Result<f64, f64>) {
        self.dt = step.unwrap_or_else(|times| times * self.explicit_limit / diffusivity);
        self.spread = diffusivity * self.dt;
    }

    /// The temperature of a vertex at the start, K.
    pub(super) fn temperature(&self, mesh: &Mesh, v: u32) -> f64 {
        let (center, radius) = self.spot;
        let p = mesh.points()[v as usize];
        let distance = (0..3).map(|k| (p[k] - center[k]).powi(2)).sum::<f64>();
        self.cold + RISE * Real::exp(-distance / (2.0 * radius * radius))
    }

    /// The lumped mass of a vertex: its share of length (m), area (m²) or volume (m³).
    pub(super) fn mass(&self, v: u32) -> f64 {
        self.masses[v as usize]
    }

    /// Adds the edges.
    pub(super) fn add_edges(&self, stars: &mut Stars) {
        let weights = self.weights.clone();
        stars.add_shared(Edges, self.edges.clone(), move |i| weights[i.element]);
    }

    pub(super) fn parameters(&self) -> Parameters<f64> {
        Parameters { spread: self.spread, largest_mass: self.largest_mass }
    }

    /// What the largest eigenvalue of the Jacobi iteration of an implicit step is at most, `D dt Σw / (m + D dt Σw)` of the vertex where that is
    /// largest: 1 less this is the slowest rate at which errors fall.
    pub(super) fn jacobi_radius(&self) -> f64 {
        let steps = self.spread / self.explicit_limit;
        steps / (1.0 + steps)
    }
}
