//! The section `$Elements`.

use super::file::File;
use super::numbers::{Numbers, Version, Words};
use super::tags::Tags;
use crate::cell::CellKind;
use crate::error::Result;
use crate::parallel;

/// More nodes than an element has.
const MAX_NODES: usize = 27;

impl File {
    /// Reads the elements of version 2, whose number has been read. One that is in several physical groups comes once for
    /// each, one after the other: it becomes one cell.
    pub(super) fn read_element_list(&mut self, numbers: &mut Numbers, count: u64) -> Result<()> {
        let mut left = numbers.check_count(count, "elements", 4, 8)?;
        let mut last = None;
        while left > 0 {
            // Binary files say once for several elements what ASCII files say of each.
            let mut element = 0;
            if !numbers.is_binary() {
                element = numbers.tag(Version::Two, "the tag of an element")?;
            }
            let (kind, nodes) =
                element_kind(numbers.int("an element type")?).map_err(|message| numbers.error(message))?;
            let following = if numbers.is_binary() { numbers.int("a number of elements")? } else { 1 };
            let labels = numbers.int("a number of tags of an element")?;
            let (following, labels) = match (usize::try_from(following), usize::try_from(labels)) {
                (Ok(following), Ok(labels)) if (1..=left).contains(&following) => (following, labels),
                _ => return Err(numbers.error(format!("{following} elements with {labels} tags, of {left} left"))),
            };
            numbers.check_count(labels as u64, "tags of an element", 1, 4)?;
            for _ in 0..following {
                if numbers.is_binary() {
                    element = numbers.tag(Version::Two, "the tag of an element")?;
                }
                let mut physical = 0;
                for label in 0..labels {
                    let value = numbers.int("a tag of an element")?;
                    physical = if label == 0 { value.saturating_abs() } else { physical };
                }
                let points = self.read_points(numbers, Version::Two, element, nodes)?;
                match last {
                    Some((twin, other)) if twin == (kind, nodes, points) && other != physical => {
                        self.twins.insert(element, self.draft.cell_count() as u32 - 1);
                    }
                    _ => self.add_element(numbers, element, kind, &points[..nodes])?,
                }
                last = Some(((kind, nodes, points), physical));
                self.join_group((kind.dimension() as i32, physical));
            }
            left -= following;
        }
        Ok(())
    }

    /// Puts the last cell into the group that a file of version 2 names with each element; 0 is none.
    fn join_group(&mut self, group: (i32, i32)) {
        if group.1 == 0 {
            return;
        }
        let end = self.draft.cell_count() as u32;
        match self.blocks.last_mut() {
            Some((last, _, last_end)) if *last == group && *last_end + 1 == end => *last_end = end,
            _ => self.blocks.push((group, end - 1, end)),
        }
        self.physicals.entry(group).or_insert_with(|| vec![group.1]);
    }

    /// Reads the elements of versions 4, which come in blocks of one type and entity.
    pub(super) fn read_element_blocks(&mut self, numbers: &mut Numbers, version: Version) -> Result<()> {
        let blocks = numbers.count("blocks of elements", 4, 20)?;
        numbers.size("the number of elements")?;
        if version == Version::FourOne {
            numbers.size("the least element tag")?;
            numbers.size("the greatest element tag")?;
        }
        for _ in 0..blocks {
            let [dimension, tag] = numbers.entity(version)?;
            let (kind, nodes) =
                element_kind(numbers.int("an element type")?).map_err(|message| numbers.error(message))?;
            let size = if version == Version::FourOne { 8 } else { 4 };
            let count = numbers.count(&format!("elements of type {}", kind.name()), 1 + nodes, size * (1 + nodes))?;
            let first = self.draft.cell_count() as u32;
            let is_plain = version == Version::FourOne && nodes == kind.corners();
            let read = |words: Words| is_plain.then(|| corners(&self.nodes, words, nodes)).flatten();
            match numbers.block(count, size * (1 + nodes), read) {
                Some((tags, corners)) if self.draft.has_room(corners.len()) => {
                    numbers.skip(count * size * (1 + nodes))?;
                    self.elements.extend(tags);
                    self.draft.cells(kind, corners);
                }
                _ => {
                    for _ in 0..count {
                        let element = numbers.tag(version, "the tag of an element")?;
                        let points = self.read_points(numbers, version, element, nodes)?;
                        self.add_element(numbers, element, kind, &points[..nodes])?;
                    }
                }
            }
            if count > 0 {
                self.blocks.push(((dimension, tag), first, self.draft.cell_count() as u32));
            }
        }
        Ok(())
    }

    /// Reads the nodes of one element; zeros follow them.
    fn read_points(
        &self,
        numbers: &mut Numbers,
        version: Version,
        element: u64,
        nodes: usize,
    ) -> Result<[u32; MAX_NODES]> {
        let mut points = [0; MAX_NODES];
        for point in &mut points[..nodes] {
            let tag = numbers.tag(version, "a node of an element")?;
            *point = self
                .nodes
                .index(tag)
                .ok_or_else(|| numbers.error(format!("element {element} has node {tag}, which is not in $Nodes")))?;
        }
        Ok(points)
    }

    fn add_element(&mut self, numbers: &Numbers, element: u64, kind: CellKind, points: &[u32]) -> Result<()> {
        self.elements.push(element);
        self.draft.curved(kind, points).map_err(|message| numbers.error(message))
    }
}

/// Tags and corners of consecutive elements: each a tag and then `n` nodes, which must exist.
fn corners(nodes: &Tags, numbers: Words, n: usize) -> Option<(Vec<u64>, Vec<u32>)> {
    /// As many are worth a task.
    const ELEMENTS: usize = 1 << 12;
    let count = numbers.len() / (1 + n);
    let mut corners = vec![0; count * n];
    let elements = (0..).step_by(ELEMENTS).zip(corners.chunks_mut(ELEMENTS * n));
    let known = parallel::map(elements, |(first, corners)| {
        (first..).zip(corners.chunks_exact_mut(n)).all(|(e, corners)| {
            corners.iter_mut().enumerate().all(|(k, corner)| {
                let point = nodes.index(numbers.at(e * (1 + n) + 1 + k));
                point.is_some_and(|v| {
                    *corner = v;
                    true
                })
            })
        })
    });
    let tags = parallel::collect(count, |e| numbers.at(e * (1 + n)));
    known.into_iter().all(|known| known).then_some((tags, corners))
}

/// The kind of cells and the number of nodes of a type; corners come first.
fn element_kind(element_type: i32) -> Result<(CellKind, usize), String> {
    Ok(match element_type {
        1 => (CellKind::Edge, 2),
        2 => (CellKind::Triangle, 3),
        3 => (CellKind::Quad, 4),
        4 => (CellKind::Tet, 4),
        5 => (CellKind::Hex, 8),
        6 => (CellKind::Wedge, 6),
        7 => (CellKind::Pyramid, 5),
        8 => (CellKind::Edge, 3),
        9 => (CellKind::Triangle, 6),
        10 => (CellKind::Quad, 9),
        11 => (CellKind::Tet, 10),
        12 => (CellKind::Hex, 27),
        13 => (CellKind::Wedge, 18),
        14 => (CellKind::Pyramid, 14),
        15 => (CellKind::Vertex, 1),
        16 => (CellKind::Quad, 8),
        17 => (CellKind::Hex, 20),
        18 => (CellKind::Wedge, 15),
        19 => (CellKind::Pyramid, 13),
        other => {
            return Err(format!(
                "element type {other} is not supported: only elements of first and second order are, types 1 to 19, \
                 so mesh with `-order 2` at most"
            ));
        }
    })
}
