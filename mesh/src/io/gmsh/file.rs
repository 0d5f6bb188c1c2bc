//! What the sections of a file say, put together at its end.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::super::draft::Draft;
use super::super::text::Text;
use super::tags::Tags;
use crate::error::Result;

/// Dimension and tag of an entity or of a physical group.
pub(super) type Tag = (i32, i32);

/// What the sections say, put together at the end since they may come in any order.
pub(super) struct File {
    pub(super) draft: Draft,
    pub(super) nodes: Tags,
    /// Tags of elements.
    pub(super) elements: Vec<u64>,
    /// Tags of elements that are cells already, and these.
    pub(super) twins: HashMap<u64, u32>,
    /// Where they are, once data need it.
    pub(super) element_tags: Option<Tags>,
    /// Names of physical groups.
    pub(super) names: HashMap<Tag, String>,
    /// Physical groups of each entity.
    pub(super) physicals: HashMap<Tag, Vec<i32>>,
    /// Runs of cells: entity, first cell, end.
    pub(super) blocks: Vec<(Tag, u32, u32)>,
    /// Fields so far: whether of nodes, and their names.
    pub(super) fields: HashSet<(bool, String)>,
}

impl File {
    /// Nothing yet, of a file of so many bytes.
    pub(super) fn new(bytes: usize) -> File {
        File {
            draft: Draft::new(bytes),
            nodes: Tags::default(),
            elements: Vec::new(),
            twins: HashMap::new(),
            element_tags: None,
            names: HashMap::new(),
            physicals: HashMap::new(),
            blocks: Vec::new(),
            fields: HashSet::new(),
        }
    }

    pub(super) fn finish(mut self, text: &Text) -> Result<Draft> {
        let mut groups: BTreeMap<Tag, Vec<u32>> = BTreeMap::new();
        // Real cells are in a few groups; without a limit a small file could ask for a huge number of memberships.
        let mut left = 64 * self.draft.cell_count();
        for &(entity, start, end) in &self.blocks {
            for &tag in self.physicals.get(&entity).into_iter().flatten() {
                left = left.checked_sub((end - start) as usize).ok_or_else(|| {
                    text.error("the cells are in more than 64 physical groups each: remove those not needed")
                })?;
                groups.entry((entity.0, tag)).or_default().extend(start..end);
            }
        }
        for ((dimension, tag), cells) in groups {
            let name = self.names.remove(&(dimension, tag)).unwrap_or_else(|| tag.to_string());
            let added = self.draft.group(&name, dimension as usize, cells);
            added.map_err(|message| text.error(message))?;
        }
        Ok(self.draft)
    }
}
