//! Sides that are one.

use super::Elements;
use super::patch::{At, shapes};
use crate::error::{Error, Result};
use crate::partners::Partners;
use std::collections::{BTreeMap, BTreeSet};

impl Elements {
    /// Makes two sides of the boundary one: nodes of the second *follow* those of the first, each where it is but for the way between the sides. In
    /// matrices and loads a node that follows has nothing, as one without elements; the other has what is around both. `first` and `second`: whether
    /// a face of the boundary is on that side, by its middle. Other sides may be one already. Cost O(nodes of all elements), and for each node of a side
    /// as many as are level with it.
    ///
    /// # Errors
    /// Sides that are not the same but for a way between them, or have no face; a node that is on both.
    ///
    /// ```
    /// use meshweft_mesh::generate::generate;
    /// let mut elements = generate("quads:4x3", 1)?.elements(1)?;
    /// let [low, high] = elements.mesh().bounds();
    /// elements.periodic(|face| face.place[0] == low[0], |face| face.place[0] == high[0])?;
    /// assert_eq!(elements.followers().len(), 3);
    /// assert_eq!(elements.rim().len(), 6);
    /// // The area around a node on the sides is that around any other of its row.
    /// let areas = elements.cells().loads(|_| [1.0]);
    /// let [lead, follower] = elements.followers()[1];
    /// assert_eq!(areas[follower as usize], [0.0]);
    /// assert!((areas[lead as usize][0] - areas.iter().map(|own| own[0]).fold(0.0, f64::max)).abs() < 1e-15);
    /// # Ok::<(), meshweft_mesh::Error>(())
    /// ```
    pub fn periodic(&mut self, first: impl Fn(&At) -> bool, second: impl Fn(&At) -> bool) -> Result<()> {
        let middles = self.rim.middles();
        let on = |is_there: &dyn Fn(&At) -> bool| -> Vec<usize> {
            (0..middles.len()).filter(|&face| is_there(&middles[face])).collect()
        };
        let sides = [on(&first), on(&second)];
        let partners = self.partners(&sides)?;
        self.check_faces(&sides, &partners)?;
        let leads = self.leads.take().unwrap_or_else(|| (0..self.mesh.points().len() as u32).collect());
        let leads = led(leads, &partners);
        let is_left: BTreeSet<usize> = sides.into_iter().flatten().collect();
        self.rim = self.rim.filtered(|face| !is_left.contains(&face));
        for patch in [&mut self.cells, &mut self.rim] {
            patch.unknowns = Some(patch.nodes.iter().map(|&v| leads[v as usize]).collect());
        }
        self.leads = Some(leads);
        Ok(())
    }

    /// Of each node of the second of two sides that of the first which is the same.
    fn partners(&self, sides: &[Vec<usize>; 2]) -> Result<BTreeMap<u32, u32>> {
        let (points, [low, high]) = (self.mesh.points(), self.mesh.bounds());
        let shapes = shapes(self.rim.degree);
        let size = |face: usize| match self.rim.dimension {
            0 => (0..3).map(|k| high[k] - low[k]).fold(0.0, f64::max),
            dimension => self.rim.measure(&shapes, face).powf(1.0 / dimension as f64),
        };
        // Nodes, and the size of a face that has each.
        let [near, far] = sides.each_ref().map(|faces| -> BTreeMap<u32, f64> {
            faces.iter().flat_map(|&face| self.rim.nodes(face).iter().map(move |&v| (v, size(face)))).collect()
        });
        if let Some(v) = near.keys().find(|v| far.contains_key(v)) {
            let place = points[*v as usize];
            return Err(Error::Invalid(format!("node {v} at {place:?} is on both of two sides that are one")));
        }
        let places = |side: &BTreeMap<u32, f64>| side.keys().map(|&v| points[v as usize]).collect::<Vec<_>>();
        let sizes: Vec<f64> = near.values().copied().collect();
        let Partners { of_first, .. } = Partners::of(&places(&near), &places(&far), &sizes, "nodes")?;
        let far: Vec<u32> = far.into_keys().collect();
        Ok(near.into_keys().zip(of_first).map(|(v, partner)| (far[partner], v)).collect())
    }

    /// A face that one of two sides has alone: with the same nodes they may be cut along other diagonals.
    fn check_faces(&self, sides: &[Vec<usize>; 2], partners: &BTreeMap<u32, u32>) -> Result<()> {
        let [near, far] = sides.each_ref().map(|faces| -> BTreeSet<Vec<u32>> {
            let corners = |face: usize| self.rim.corners(face).iter().map(|v| *partners.get(v).unwrap_or(v));
            let sorted = |&face: &usize| {
                let mut corners: Vec<u32> = corners(face).collect();
                corners.sort_unstable();
                corners
            };
            faces.iter().map(sorted).collect()
        });
        match near.symmetric_difference(&far).next() {
            None => Ok(()),
            Some(face) => Err(Error::Invalid(format!(
                "sides that are one have the same faces: between the points {face:?} only one of them has one"
            ))),
        }
    }
}

/// What leads each node once that of each pair [follower, lead] follows, too. Shapes as `leads`, [nodes].
fn led(mut leads: Vec<u32>, partners: &BTreeMap<u32, u32>) -> Vec<u32> {
    let root = |leads: &[u32], mut v: u32| {
        while leads[v as usize] != v {
            v = leads[v as usize];
        }
        v
    };
    for (&follower, &lead) in partners {
        let [lead, follower] = [lead, follower].map(|v| root(&leads, v));
        leads[follower as usize] = lead;
    }
    (0..leads.len() as u32).map(|v| root(&leads, v)).collect()
}
