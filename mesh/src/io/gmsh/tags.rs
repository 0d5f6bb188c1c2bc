//! Tags of nodes or elements, which may be any numbers in any order.

use std::collections::HashMap;

/// Where in the file's order the node or element of a tag comes.
#[derive(Default)]
pub(super) struct Tags {
    /// Tags count on from here in `dense`, where `u32::MAX` is none.
    least: u64,
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
}

impl Tags {
    /// `what`: the word for one of them.
    pub(super) fn of(tags: &[u64], what: &str) -> Result<Tags, String> {
        if tags.len() >= u32::MAX as usize {
            return Err(format!("{} {what}s: at most {} are supported", tags.len(), u32::MAX - 1));
        }
        let (Some(&least), Some(&greatest)) = (tags.iter().min(), tags.iter().max()) else {
            return Ok(Tags::default());
        };
        let mut known = Tags { least, ..Tags::default() };
        let is_dense = greatest - least < 4 * tags.len() as u64; // a table then is smaller than a map
        if is_dense {
            known.dense = vec![u32::MAX; (greatest - least) as usize + 1];
        }
        for (&tag, v) in tags.iter().zip(0..) {
            let is_new = match is_dense {
                true => std::mem::replace(&mut known.dense[(tag - least) as usize], v) == u32::MAX,
                false => known.sparse.insert(tag, v).is_none(),
            };
            if !is_new {
                return Err(format!("{what} {tag} comes twice"));
            }
        }
        Ok(known)
    }

    pub(super) fn index(&self, tag: u64) -> Option<u32> {
        if self.sparse.is_empty() {
            let at = usize::try_from(tag.checked_sub(self.least)?).ok()?;
            return self.dense.get(at).copied().filter(|&v| v != u32::MAX);
        }
        self.sparse.get(&tag).copied()
    }
}
