//! Basins: where the bed lies, and where there is water at the start.

use super::WaterOptions;
use crate::sides::join;
use anyhow::{Context, Result, bail};
use meshweft_mesh::Mesh;
use meshweft_physics::{Face, Rim, faces, rim};
use std::sync::Arc;

/// What is flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// A channel of 75 m by 30 m with three hills, and a dam at 16 m: Kawahara and Umetsu, Finite element method for moving boundary
    /// problems in river flow, 1986.
    Hills,
    /// Flat ground, 75 m long, with a dam in the middle.
    Dam,
    /// The channel with hills, and water at rest.
    Lake,
    /// The height of the mesh is that of the bed; a dam stands where the first 16 of 75 parts of its length end.
    Terrain,
}

impl Scene {
    /// That of a word.
    pub(super) fn named(word: &str) -> Scene {
        match word {
            "dam" => Scene::Dam,
            "lake" => Scene::Lake,
            "terrain" => Scene::Terrain,
            _ => Scene::Hills,
        }
    }
}

/// Length of the channel, and where its dam stands, m.
const LENGTH: f64 = 75.0;
const DAM: f64 = 16.0;
/// Width of the channel for which its hills are made, m.
const WIDTH: f64 = 30.0;

/// A basin, and the water in it at the start. All by cell.
#[derive(Clone)]
pub(super) struct Basin {
    /// How high the bed lies, and how deep the water is, m.
    pub(super) beds: Vec<f64>,
    pub(super) depths: Vec<f64>,
    /// m².
    pub(super) areas: Vec<f64>,
    /// Twice the area over the length of all faces if each was as long as the longest, m.
    pub(super) widths: Vec<f64>,
    /// The cells of each face, and how each of both sees it.
    pub(super) pairs: Arc<Vec<[u32; 2]>>,
    pub(super) faces: Arc<Vec<[Face<f64>; 2]>>,
    /// The cell of each face of the boundary, and how it sees that.
    pub(super) banks: Arc<Vec<(u32, Rim<f64>)>>,
    /// Depth below which water does not move, m.
    pub(super) film: f64,
    /// How many times as high as it is the surface is drawn.
    pub(super) lift: f64,
}

impl Basin {
    /// That of a scene. The mesh becomes that of its cells.
    pub(super) fn new(mesh: &mut Mesh, options: &WaterOptions) -> Result<Basin> {
        if mesh.dimension() != 2 {
            bail!(
                "shallow water runs on a surface of triangles or quads: this mesh has cells of dimension {}",
                mesh.dimension()
            );
        }
        let [low, high] = mesh.bounds();
        let length = high[0] - low[0];
        if length <= 0.0 {
            bail!("shallow water runs along x, where this mesh has no extent");
        }
        let is_terrain = options.scene == Scene::Terrain;
        let scale = if is_terrain { 1.0 } else { LENGTH / length };
        let place = |p: &[f64; 3]| [scale * (p[0] - low[0]), scale * (p[1] - low[1]), p[2]];
        let places: Vec<[f64; 3]> = mesh.points().iter().map(place).collect();
        let heights: Vec<f64> = places.iter().map(|p| p[2]).collect();
        mesh.set_points(places.iter().map(|p| [p[0], p[1], 0.0]).collect())?;
        let width = scale * (high[1] - low[1]);
        let mut dual = mesh.dual().context("shallow water runs on what the mesh looks like from above")?;
        if dual.volumes.is_empty() {
            bail!("the mesh has no cells");
        }
        let [x, y] = options.periodic;
        join([x, y, false], mesh.bounds(), |first, second| {
            dual.periodic(|face| first(face.centroid), |face| second(face.centroid))
        })?;
        // The mean of the corners; of a hill the height in the middle.
        let bed = |c: usize| match options.scene {
            Scene::Hills | Scene::Lake => hills(dual.mesh.points()[c], width),
            Scene::Dam => 0.0,
            Scene::Terrain => {
                let corners = mesh.cells().corners(dual.cells[c] as usize);
                corners.iter().map(|&v| heights[v as usize]).sum::<f64>() / corners.len() as f64
            }
        };
        let beds: Vec<f64> = (0..dual.volumes.len()).map(bed).collect();
        let dam = match options.scene {
            Scene::Dam => 0.5 * scale * length,
            Scene::Hills | Scene::Terrain => DAM / LENGTH * scale * length,
            Scene::Lake => f64::INFINITY,
        };
        let level = |c: usize| if dual.mesh.points()[c][0] < dam { options.level } else { options.low };
        let depths: Vec<f64> = (0..beds.len()).map(|c| (level(c) - beds[c]).max(0.0)).collect();
        let mut longest = vec![(0.0f64, 0.0); beds.len()];
        let own = dual.faces.iter().flat_map(|face| face.cells.map(|c| (c, face.area)));
        for (c, length) in own.chain(dual.boundary_faces.iter().map(|face| (face.cell, face.area))) {
            let (most, count) = longest[c as usize];
            longest[c as usize] = (most.max(length), count + 1.0);
        }
        let widths =
            dual.volumes.iter().zip(&longest).map(|(area, (most, count))| 2.0 * area / (count * most)).collect();
        let pairs = dual.faces.iter().map(|face| face.cells).collect();
        let banks = dual.boundary_faces.iter().map(|face| (face.cell, rim(&dual, face))).collect();
        let deepest = depths.iter().copied().fold(0.0, f64::max);
        let lift = if is_terrain { 1.0 } else { 3.0 };
        let (faces, film) = (Arc::new(faces(&dual)), 1e-5 * deepest.max(1e-3));
        let (pairs, banks) = (Arc::new(pairs), Arc::new(banks));
        let areas = dual.volumes.clone();
        *mesh = dual.mesh;
        Ok(Basin { beds, depths, areas, widths, pairs, faces, banks, film, lift })
    }
}

/// How high three hills are at a place of a channel that is so wide, m.
fn hills([x, y, _]: [f64; 3], width: f64) -> f64 {
    let y = y * WIDTH / width.max(f64::MIN_POSITIVE);
    let hill =
        |at: [f64; 2], height: f64, slope: f64| height - slope * ((x - at[0]).powi(2) + (y - at[1]).powi(2)).sqrt();
    let all = [hill([30.0, 6.0], 1.0, 0.125), hill([30.0, 24.0], 1.0, 0.125), hill([47.5, 15.0], 3.0, 0.3)];
    all.into_iter().fold(0.0, f64::max)
}
