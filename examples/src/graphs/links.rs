//! The edges of a graph as the programs on graphs take them.

use anyhow::{Result, ensure};
use meshweft::{Incidence, Star, Stars};
use meshweft_mesh::{Mesh, parallel};
use rayon::prelude::*;
use std::sync::Arc;

/// The edges of a mesh, each once: its line cells, or the edges of its other cells.
///
/// Cells that join the same two vertices are one edge, with the smallest of their weights (the cell field `weight`; 1 without). Edges
/// from a vertex to itself lie apart.
#[derive(Clone, Debug)]
pub(super) struct Links {
    pub(super) vertices: usize,
    /// Shape [edges × 2], ascending; of undirected ones the smaller id first.
    pub(super) edges: Arc<Vec<[u32; 2]>>,
    /// Shape [edges]; empty if all are 1.
    pub(super) weights: Arc<Vec<f64>>,
    /// Vertices that have an edge to themselves, ascending, and its weight.
    pub(super) loops: Vec<(u32, f64)>,
    pub(super) is_directed: bool,
}

impl Links {
    /// `weighted`: whether weights count. Cost that of sorting the edges.
    ///
    /// # Errors
    /// 2^31 vertices.
    pub(super) fn new(mesh: &Mesh, is_directed: bool, weighted: bool) -> Result<Links> {
        let vertices = mesh.points().len();
        ensure!(i32::try_from(vertices).is_ok(), "{vertices} vertices: their ids must fit into 31 bits");
        let is_lines = mesh.dimension() == 1;
        let others = if is_lines { Vec::new() } else { mesh.edges() };
        let cells: &[[u32; 2]] = if is_lines { mesh.cells().all_corners().as_chunks().0 } else { &others };
        // Numbers of 64 bits are sorted faster than pairs.
        let key = |&[from, to]: &[u32; 2]| {
            let [from, to] = if is_directed { [from, to] } else { [from.min(to), from.max(to)] };
            u64::from(from) << 32 | u64::from(to)
        };
        let edge = |key: u64| [(key >> 32) as u32, key as u32];
        let (edges, weights): (Vec<[u32; 2]>, Vec<f64>) =
            match mesh.cell_field("weight").filter(|_| weighted && is_lines) {
                None => {
                    let mut keys = parallel::collect(cells.len(), |c| key(&cells[c]));
                    keys.par_sort_unstable();
                    keys.dedup();
                    (parallel::collect(keys.len(), |k| edge(keys[k])), Vec::new())
                }
                Some(field) => {
                    let mut keys: Vec<(u64, f64)> = cells.iter().map(key).zip(field.values.iter().copied()).collect();
                    keys.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
                    keys.dedup_by_key(|edge| edge.0);
                    keys.into_iter().map(|(key, weight)| (edge(key), weight)).unzip()
                }
            };
        let weight = |e: usize| weights.get(e).copied().unwrap_or(1.0);
        let loops = parallel::filter(edges.len(), |e| edges[e][0] == edges[e][1]).into_iter().map(|e| e as usize);
        let loops = loops.map(|e| (edges[e][0], weight(e))).collect();
        Ok(Links { vertices, edges: Arc::new(edges), weights: Arc::new(weights), loops, is_directed })
    }

    /// The edges if `holds`, else none.
    pub(super) fn only_if(&self, holds: bool) -> Links {
        let edges = if holds { self.edges.clone() } else { Arc::default() };
        Links { edges, ..self.clone() }
    }

    /// Adds the edges as a star, with the data that each has.
    pub(super) fn add<S: Star<1>>(
        &self,
        stars: &mut Stars,
        star: S,
        data: impl Fn(usize) -> S::Data<f64> + Send + Sync + 'static,
    ) {
        let of = move |edge: Incidence<2>| data(edge.element);
        match self.is_directed {
            true => stars.add_directed(star, self.edges.clone(), of),
            false => stars.add_shared(star, self.edges.clone(), of),
        }
    }

    /// The weight of an edge.
    pub(super) fn weight(&self, edge: usize) -> f64 {
        self.weights.get(edge).copied().unwrap_or(1.0)
    }

    /// The sum of the weights of the edges out of each vertex, those to itself included.
    pub(super) fn out_weights(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.vertices];
        for (e, &[from, to]) in self.edges.iter().enumerate() {
            sums[from as usize] += self.weight(e);
            if !self.is_directed && from != to {
                sums[to as usize] += self.weight(e);
            }
        }
        sums
    }

    /// The vertex that the user calls `source` in the numbers of the file; -1 is the one with most edges, the first of several.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn source(&self, mesh: &Mesh, source: f64) -> Result<u32> {
        if source < 0.0 {
            let mut degrees = vec![0u32; self.vertices];
            self.edges.iter().flatten().for_each(|&v| degrees[v as usize] += 1);
            let most = degrees.iter().copied().max().unwrap_or(0);
            return Ok(degrees.iter().position(|&degree| degree == most).unwrap_or(0) as u32);
        }
        let ids = mesh.point_field("id").map(|field| &field.values);
        let found = match ids {
            Some(ids) => ids.iter().position(|&id| id == source),
            None => Some(source as usize).filter(|&v| v < self.vertices && source.fract() == 0.0),
        };
        let Some(v) = found else {
            let last = self.vertices.saturating_sub(1) as f64;
            let [least, most] = ids.map_or([0.0, last], |ids| {
                [
                    ids.iter().copied().fold(f64::INFINITY, f64::min),
                    ids.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ]
            });
            anyhow::bail!(
                "the graph has no vertex {source}: it has {} from {least} to {most}, as its file counts; set another source",
                self.vertices
            );
        };
        Ok(v as u32)
    }
}
