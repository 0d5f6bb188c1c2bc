//! The section `$Nodes`.

use super::super::draft::Draft;
use super::numbers::{Numbers, Version, Words};
use super::tags::Tags;
use crate::error::Result;
use crate::parallel;

/// Reads the nodes of version 2, whose number has been read.
pub(super) fn read_list(numbers: &mut Numbers, count: u64, draft: &mut Draft) -> Result<Tags> {
    let count = numbers.check_count(count, "nodes", 4, 28)?;
    let mut tags = Vec::with_capacity(count);
    read_rows(numbers, Version::Two, count, 0, &mut tags, draft)?;
    Tags::of(&tags, "node").map_err(|message| numbers.error(message))
}

/// Reads the nodes of versions 4, which come in blocks, one an entity.
pub(super) fn read_blocks(numbers: &mut Numbers, version: Version, draft: &mut Draft) -> Result<Tags> {
    let blocks = numbers.count("blocks of nodes", 4, 20)?;
    numbers.size("the number of nodes")?;
    if version == Version::FourOne {
        numbers.size("the least node tag")?;
        numbers.size("the greatest node tag")?;
    }
    let mut tags: Vec<u64> = Vec::new();
    for _ in 0..blocks {
        let [dimension, _] = numbers.entity(version)?;
        let parametric = numbers.int("whether nodes have parameters, 0 or 1")?;
        if !(0..=3).contains(&dimension) || !(0..=1).contains(&parametric) {
            return Err(numbers.error(format!("nodes of dimension {dimension}, parametric {parametric}")));
        }
        let extra = match (version, dimension) {
            (Version::FourZero, 3) => 0,
            _ => (dimension * parametric) as usize,
        };
        if version == Version::FourZero {
            let count = numbers.count("nodes", 4 + extra, 4 + 8 * (3 + extra))?;
            read_rows(numbers, version, count, extra, &mut tags, draft)?;
            continue;
        }
        let count = numbers.count("nodes", 4 + extra, 8 * (4 + extra))?;
        let whole = numbers.block(count, 8 * (4 + extra), |words| points(words, count, 3 + extra));
        if let Some((block_tags, points)) = whole {
            numbers.skip(count * 8 * (4 + extra))?;
            tags.extend(block_tags);
            draft.points.extend(points);
            continue;
        }
        let first = tags.len();
        for _ in 0..count {
            tags.push(numbers.size("the tag of a node")?);
        }
        for k in 0..count {
            let point = read_point(numbers, tags[first + k], extra)?;
            draft.points.push(point);
        }
    }
    Tags::of(&tags, "node").map_err(|message| numbers.error(message))
}

/// Nodes of which each is a tag and then its coordinates.
fn read_rows(
    numbers: &mut Numbers,
    version: Version,
    count: usize,
    extra: usize,
    tags: &mut Vec<u64>,
    draft: &mut Draft,
) -> Result<()> {
    for _ in 0..count {
        let tag = numbers.tag(version, "the tag of a node")?;
        let point = read_point(numbers, tag, extra)?;
        tags.push(tag);
        draft.points.push(point);
    }
    Ok(())
}

fn read_point(numbers: &mut Numbers, tag: u64, extra: usize) -> Result<[f64; 3]> {
    let mut point = [0.0; 3];
    for x in &mut point {
        *x = numbers.float("a coordinate")?;
        if !x.is_finite() {
            return Err(numbers.error(format!("node {tag} has the coordinate {x}, which is not finite")));
        }
    }
    for _ in 0..extra {
        numbers.float("a parameter of a node")?;
    }
    Ok(point)
}

/// Tags and finite coordinates of a block of nodes; `stride` numbers, the coordinates first, follow the tags for each.
fn points(words: Words, count: usize, stride: usize) -> Option<(Vec<u64>, Vec<[f64; 3]>)> {
    let tags = parallel::collect(count, |v| words.at(v));
    let point = |v: usize| [0, 1, 2].map(|k| f64::from_bits(words.at(count + v * stride + k)));
    let points: Vec<[f64; 3]> = parallel::collect(count, point);
    let finite = parallel::first(count, |v| points[v].iter().any(|x| !x.is_finite())).is_none();
    finite.then_some((tags, points))
}
