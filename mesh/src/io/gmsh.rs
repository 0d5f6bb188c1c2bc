//! Gmsh's mesh file of version 4.1, ASCII and binary of either byte order, read only.
//!
//! Read: nodes with any tags, the linear elements (types 1 to 7 and 15) of all dimensions, and physical groups as
//! [`Group`](crate::Group)s; a group without a name is called by its tag, such as `3`. Partitioned files are read as one
//! mesh. Parametric coordinates, periodic links, ghost elements and data sections are skipped. Older versions and
//! elements of higher order are refused.
//!
//! Source: Geuzaine and Remacle, "Gmsh reference manual", section "MSH file format" (4.1).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::binary::{Binary, Order};
use super::draft::Draft;
use super::text::{Text, shown};
use crate::cell::CellKind;
use crate::error::{Error, Result};
use crate::mesh::Mesh;
use rayon::prelude::*;

/// Dimension and tag of an entity or of a physical group.
type Tag = (i32, i32);

/// Numbers of a section, as words or as bytes.
enum Numbers<'a> {
    Ascii(Text<'a>),
    Binary(Binary<'a>),
}

impl Numbers<'_> {
    fn int(&mut self, what: &str) -> Result<i32> {
        match self {
            Numbers::Ascii(text) => text.number(what),
            Numbers::Binary(file) => file.i32(what),
        }
    }

    fn size(&mut self, what: &str) -> Result<u64> {
        match self {
            Numbers::Ascii(text) => text.number(what),
            Numbers::Binary(file) => file.u64(what),
        }
    }

    fn float(&mut self, what: &str) -> Result<f64> {
        match self {
            Numbers::Ascii(text) => text.number(what),
            Numbers::Binary(file) => file.f64(what),
        }
    }

    /// A number of things of so many words, or bytes, each.
    fn count(&mut self, what: &str, words: usize, bytes: usize) -> Result<usize> {
        match self {
            Numbers::Ascii(text) => text.count(what, 2 * words),
            Numbers::Binary(file) => {
                let count = file.u64(what)?;
                file.check_count(count, what, bytes)
            }
        }
    }

    /// What `read` makes of the next `count` things of `bytes` bytes each, if they are binary and nothing is wrong with
    /// them. Nothing is skipped: who reads the same numbers one by one finds what is wrong, and where.
    fn block<T>(&self, count: usize, bytes: usize, read: impl FnOnce(Words) -> Option<T>) -> Option<T> {
        let Numbers::Binary(file) = self else { return None };
        let mut ahead = file.clone();
        let bytes = ahead.take(count.checked_mul(bytes)?, "a block").ok()?;
        read(Words { words: bytes.as_chunks().0, order: file.order() })
    }

    /// Moves behind bytes that [`Numbers::block`] has read.
    fn skip(&mut self, bytes: usize) -> Result<()> {
        match self {
            Numbers::Ascii(_) => Ok(()),
            Numbers::Binary(file) => file.take(bytes, "a block").map(drop),
        }
    }

    fn skip_ints(&mut self, what: &str) -> Result<()> {
        for _ in 0..self.count(what, 1, 4)? {
            self.int(what)?;
        }
        Ok(())
    }

    fn error(&self, message: impl Into<String>) -> Error {
        match self {
            Numbers::Ascii(text) => text.error(message),
            Numbers::Binary(file) => file.error(message),
        }
    }
}

/// Numbers of eight bytes.
#[derive(Clone, Copy)]
struct Words<'a> {
    words: &'a [[u8; 8]],
    order: Order,
}

impl Words<'_> {
    fn len(self) -> usize {
        self.words.len()
    }

    fn at(self, i: usize) -> u64 {
        match self.order {
            Order::Little => u64::from_le_bytes(self.words[i]),
            Order::Big => u64::from_be_bytes(self.words[i]),
        }
    }
}

/// Tags and finite coordinates of a block of nodes; `stride` numbers, the coordinates first, follow the tags for each.
fn points(words: Words, count: usize, stride: usize) -> Option<(Vec<u64>, Vec<[f64; 3]>)> {
    let tags = (0..count).into_par_iter().with_min_len(1 << 14).map(|v| words.at(v));
    let point = |v: usize| [0, 1, 2].map(|k| f64::from_bits(words.at(count + v * stride + k)));
    let points: Vec<[f64; 3]> = (0..count).into_par_iter().with_min_len(1 << 14).map(point).collect();
    let finite = points.par_iter().with_min_len(1 << 14).all(|p| p.iter().all(|x| x.is_finite()));
    finite.then(|| (tags.collect(), points))
}

/// What the sections say, put together at the end since they may come in any order.
#[derive(Default)]
struct File {
    draft: Draft,
    nodes: Nodes,
    /// Names of physical groups.
    names: HashMap<Tag, String>,
    /// Physical groups of each entity.
    physicals: HashMap<Tag, Vec<i32>>,
    /// Runs of cells: entity, first cell, end.
    blocks: Vec<(Tag, u32, u32)>,
}

pub(super) fn parse(name: &Path, bytes: &[u8]) -> Result<Mesh> {
    let mut text = Text::new(name, bytes);
    if text.word() != Some(b"$MeshFormat") {
        return Err(text.error("a Gmsh file starts with `$MeshFormat`"));
    }
    let order = format(&mut text)?;
    if order.is_some() {
        text.count_bytes();
    }
    end_section(&mut text, b"MeshFormat")?;
    let mut file = File::default();
    let mut found = [false; 2];
    while let Some(word) = text.word() {
        let Some(section) = word.strip_prefix(b"$") else {
            return Err(text.error(format!("{} found where a section such as `$Nodes` should start", shown(word))));
        };
        if section == b"PhysicalNames" {
            file.read_names(&mut text)?;
            end_section(&mut text, section)?;
            continue;
        }
        if !matches!(section, b"Entities" | b"PartitionedEntities" | b"Nodes" | b"Elements") {
            skip_section(&mut text, section)?;
            continue;
        }
        let mut numbers = match order {
            None => Numbers::Ascii(text.clone()),
            Some(order) => {
                text.next_line();
                Numbers::Binary(Binary::new(name, bytes, text.at(), order))
            }
        };
        match section {
            b"Entities" => file.read_entities(&mut numbers, false)?,
            b"PartitionedEntities" => file.read_entities(&mut numbers, true)?,
            b"Nodes" => {
                if found[0] || found[1] {
                    return Err(text.error("$Nodes comes twice or after $Elements"));
                }
                file.nodes = Nodes::read(&mut numbers, &mut file.draft)?;
                found[0] = true;
            }
            _ => {
                if !found[0] {
                    return Err(text.error("$Elements comes before $Nodes"));
                }
                file.read_elements(&mut numbers)?;
                found[1] = true;
            }
        }
        match numbers {
            Numbers::Ascii(at) => text = at,
            Numbers::Binary(at) => text.seek(at.at()),
        }
        end_section(&mut text, section)?;
    }
    if found != [true; 2] {
        return Err(text.error("the file ends without $Nodes and $Elements: it was cut short"));
    }
    file.finish(&text)
}

/// The rest of the section `$MeshFormat`; no byte order means ASCII.
fn format(text: &mut Text) -> Result<Option<Order>> {
    let version = text.need("the version")?;
    if version != b"4.1" {
        return Err(text.error(format!(
            "version {} is not supported, only 4.1: convert with `gmsh FILE -save -format msh41 -o NEW.msh`",
            shown(version)
        )));
    }
    let is_binary: u32 = text.number("the file type, 0 or 1")?;
    let size: u32 = text.number("the size of a number")?;
    if is_binary > 1 || (is_binary == 1 && size != 8) {
        return Err(
            text.error(format!("file type {is_binary} with numbers of {size} bytes: only 0, or 1 with 8, exist"))
        );
    }
    if is_binary == 0 {
        return Ok(None);
    }
    text.next_line();
    let mut one = Binary::new(text.name(), text.bytes(), text.at(), Order::Little);
    let order = match one.i32("the number 1 that shows the byte order")? {
        1 => Order::Little,
        0x0100_0000 => Order::Big,
        other => return Err(text.error(format!("the number that shows the byte order is {other:#x} and not 1"))),
    };
    text.seek(one.at());
    Ok(Some(order))
}

fn end_section(text: &mut Text, section: &[u8]) -> Result<()> {
    let end = format!("$End{}", String::from_utf8_lossy(section));
    let word = text.need(&format!("`{end}`"))?;
    match word == end.as_bytes() {
        true => Ok(()),
        false => Err(text.error(format!("{} found where `{end}` should be", shown(word)))),
    }
}

/// Moves behind the end of a section of any content.
fn skip_section(text: &mut Text, section: &[u8]) -> Result<()> {
    let end = [b"$End", section].concat();
    let rest = &text.bytes()[text.at()..];
    match rest.windows(end.len()).position(|w| w[0] == b'$' && w == end) {
        Some(start) => {
            text.seek(text.at() + start + end.len());
            Ok(())
        }
        None => Err(text.error(format!("section {} has no end: the file was cut short", shown(section)))),
    }
}

impl File {
    fn read_names(&mut self, text: &mut Text) -> Result<()> {
        for _ in 0..text.count("physical names", 6)? {
            let dimension = text.number("the dimension of a physical group")?;
            let tag = text.number("the tag of a physical group")?;
            let quoted = text.rest_of_line();
            let name = quoted.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
            let name = name.ok_or_else(|| text.error(format!("{} is no quoted name", shown(quoted))))?;
            self.names.insert((dimension, tag), String::from_utf8_lossy(name).into_owned());
        }
        Ok(())
    }

    /// Remembers the physical groups of the entities and skips their boxes and boundaries.
    fn read_entities(&mut self, numbers: &mut Numbers, partitioned: bool) -> Result<()> {
        if partitioned {
            numbers.size("the number of partitions")?;
            for _ in 0..numbers.count("ghost entities", 2, 8)? {
                numbers.int("a ghost entity")?;
                numbers.int("the partition of a ghost entity")?;
            }
        }
        let mut counts = [0; 4];
        for count in &mut counts {
            *count = numbers.count("entities", 5, 36)?; // the least: tag, a point, number of groups
        }
        for (dimension, count) in (0..).zip(counts) {
            for _ in 0..count {
                let tag = numbers.int("the tag of an entity")?;
                if partitioned {
                    numbers.int("the dimension of the parent entity")?;
                    numbers.int("the tag of the parent entity")?;
                    numbers.skip_ints("partitions of an entity")?;
                }
                for _ in 0..if dimension == 0 { 3 } else { 6 } {
                    numbers.float("the box of an entity")?;
                }
                let mut groups = Vec::new();
                for _ in 0..numbers.count("physical groups of an entity", 1, 4)? {
                    // A negative tag means that the entity is taken the other way around.
                    groups.push(numbers.int("a physical group")?.saturating_abs());
                }
                if dimension > 0 {
                    numbers.skip_ints("boundaries of an entity")?;
                }
                groups.sort_unstable();
                groups.dedup();
                self.physicals.insert((dimension, tag), groups);
            }
        }
        Ok(())
    }

    fn read_elements(&mut self, numbers: &mut Numbers) -> Result<()> {
        let blocks = numbers.count("blocks of elements", 4, 20)?;
        for what in ["the number of elements", "the least element tag", "the greatest element tag"] {
            numbers.size(what)?;
        }
        for _ in 0..blocks {
            let entity = (numbers.int("the dimension of an entity")?, numbers.int("the tag of an entity")?);
            let kind = element_kind(numbers.int("an element type")?).map_err(|message| numbers.error(message))?;
            let n = kind.corners();
            let count = numbers.count(&format!("elements of type {}", kind.name()), 1 + n, 8 * (1 + n))?;
            let first = self.draft.cell_count() as u32;
            let whole = numbers.block(count, 8 * (1 + n), |number| self.corners(number, n));
            if let Some(corners) = whole.filter(|corners| self.draft.has_room(corners.len())) {
                numbers.skip(count * 8 * (1 + n))?;
                self.draft.cells(kind, corners);
                self.blocks.extend((count > 0).then(|| (entity, first, self.draft.cell_count() as u32)));
                continue;
            }
            for _ in 0..count {
                let element = numbers.size("the tag of an element")?;
                let mut corners = [0; 8];
                for corner in &mut corners[..n] {
                    let tag = numbers.size("a node of an element")?;
                    *corner = self.nodes.index(tag).ok_or_else(|| {
                        numbers.error(format!("element {element} has node {tag}, which is not in $Nodes"))
                    })?;
                }
                self.draft.cell(kind, &corners[..n]).map_err(|message| numbers.error(message))?;
            }
            if count > 0 {
                self.blocks.push((entity, first, self.draft.cell_count() as u32));
            }
        }
        Ok(())
    }

    /// The corners of consecutive elements: each a tag and then `n` nodes, which must exist.
    fn corners(&self, numbers: Words, n: usize) -> Option<Vec<u32>> {
        let mut corners = vec![0; numbers.len() / (1 + n) * n];
        let elements = corners.par_chunks_exact_mut(n).enumerate().with_min_len(1 << 12);
        let known = elements.map(|(e, corners)| {
            corners.iter_mut().enumerate().all(|(k, corner)| {
                let point = self.nodes.index(numbers.at(e * (1 + n) + 1 + k));
                point.is_some_and(|v| {
                    *corner = v;
                    true
                })
            })
        });
        known.all(|known| known).then_some(corners)
    }

    fn finish(mut self, text: &Text) -> Result<Mesh> {
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
        self.draft.finish(text.name())
    }
}

fn element_kind(element_type: i32) -> Result<CellKind, String> {
    Ok(match element_type {
        1 => CellKind::Edge,
        2 => CellKind::Triangle,
        3 => CellKind::Quad,
        4 => CellKind::Tet,
        5 => CellKind::Hex,
        6 => CellKind::Wedge,
        7 => CellKind::Pyramid,
        15 => CellKind::Vertex,
        8..=12 | 16..=19 => {
            let name = match element_type {
                8 => "3-node line",
                9 => "6-node triangle",
                10 => "9-node quad",
                11 => "10-node tet",
                12 => "27-node hex",
                16 => "8-node quad",
                17 => "20-node hex",
                18 => "15-node wedge",
                _ => "13-node pyramid",
            };
            return Err(format!(
                "element type {element_type} ({name}) is of second order: only linear elements are supported, \
                 so mesh with `-order 1`"
            ));
        }
        other => {
            return Err(format!(
                "element type {other} is not supported: only linear elements, types 1 to 7 and 15, are"
            ));
        }
    })
}

/// Which point a node tag is.
#[derive(Default)]
struct Nodes {
    /// Tags count on from here in `dense`, where `u32::MAX` is no point.
    least: u64,
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
}

impl Nodes {
    fn read(numbers: &mut Numbers, draft: &mut Draft) -> Result<Nodes> {
        let blocks = numbers.count("blocks of nodes", 4, 20)?;
        for what in ["the number of nodes", "the least node tag", "the greatest node tag"] {
            numbers.size(what)?;
        }
        let mut tags: Vec<u64> = Vec::new();
        for _ in 0..blocks {
            let dimension = numbers.int("the dimension of an entity")?;
            numbers.int("the tag of an entity")?;
            let parametric = numbers.int("whether nodes have parameters, 0 or 1")?;
            if !(0..=3).contains(&dimension) || !(0..=1).contains(&parametric) {
                return Err(numbers.error(format!("nodes of dimension {dimension}, parametric {parametric}")));
            }
            let extra = (dimension * parametric) as usize;
            let count = numbers.count("nodes", 4 + extra, 8 * (4 + extra))?;
            let first = tags.len();
            let whole = numbers.block(count, 8 * (4 + extra), |words| points(words, count, 3 + extra));
            if let Some((block_tags, points)) = whole {
                numbers.skip(count * 8 * (4 + extra))?;
                tags.extend(block_tags);
                draft.points.extend(points);
                continue;
            }
            for _ in 0..count {
                tags.push(numbers.size("the tag of a node")?);
            }
            for k in 0..count {
                let mut point = [0.0; 3];
                for x in &mut point {
                    *x = numbers.float("a coordinate")?;
                    if !x.is_finite() {
                        let tag = tags[first + k];
                        return Err(numbers.error(format!("node {tag} has the coordinate {x}, which is not finite")));
                    }
                }
                for _ in 0..extra {
                    numbers.float("a parameter of a node")?;
                }
                draft.points.push(point);
            }
        }
        Nodes::of(&tags).map_err(|message| numbers.error(message))
    }

    fn of(tags: &[u64]) -> Result<Nodes, String> {
        if tags.len() >= u32::MAX as usize {
            return Err(format!("{} nodes: at most {} are supported", tags.len(), u32::MAX - 1));
        }
        let (Some(&least), Some(&greatest)) = (tags.iter().min(), tags.iter().max()) else {
            return Ok(Nodes::default());
        };
        let mut nodes = Nodes { least, ..Nodes::default() };
        let is_dense = greatest - least < 4 * tags.len() as u64; // a table then is smaller than a map
        if is_dense {
            nodes.dense = vec![u32::MAX; (greatest - least) as usize + 1];
        }
        for (&tag, v) in tags.iter().zip(0..) {
            let is_new = match is_dense {
                true => std::mem::replace(&mut nodes.dense[(tag - least) as usize], v) == u32::MAX,
                false => nodes.sparse.insert(tag, v).is_none(),
            };
            if !is_new {
                return Err(format!("node {tag} comes twice"));
            }
        }
        Ok(nodes)
    }

    fn index(&self, tag: u64) -> Option<u32> {
        if self.sparse.is_empty() {
            let at = usize::try_from(tag.checked_sub(self.least)?).ok()?;
            return self.dense.get(at).copied().filter(|&v| v != u32::MAX);
        }
        self.sparse.get(&tag).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::testing::{fails, fuzz, parsed};
    use super::*;

    const SAMPLE: &str = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n2 3 \"the skin\"\n3 1 \"body\"\n\
        $EndPhysicalNames\n$Entities\n1 0 1 1\n7 0 0 0 1 9\n5 0 0 0 1 1 1 1 -3 0\n1 0 0 0 1 1 1 2 1 2 1 5\n\
        $EndEntities\n$Comments\nfree text\n$EndComments\n$Nodes\n2 5 1 50\n2 5 1 3\n1\n2\n3\n0 0 0 0.5 0.5\n\
        1 0 0 0 0\n0 1 0 0 0\n3 1 0 2\n4\n50\n0 0 1\n5 5 5\n$EndNodes\n$Elements\n3 3 1 3\n0 7 15 1\n1 1\n\
        2 5 2 1\n2 1 3 2\n3 1 4 1\n3 1 2 3 4\n$EndElements\n";

    /// The same mesh in binary, without the comment.
    fn binary(order: Order) -> Vec<u8> {
        let mut bytes = b"$MeshFormat\n4.1 1 8\n".to_vec();
        let put = |bytes: &mut Vec<u8>, number: &[u8]| match order {
            Order::Little => bytes.extend(number),
            Order::Big => bytes.extend(number.iter().rev()),
        };
        let ints = |bytes: &mut Vec<u8>, all: &[i32]| all.iter().for_each(|x| put(bytes, &x.to_le_bytes()));
        let sizes = |bytes: &mut Vec<u8>, all: &[u64]| all.iter().for_each(|x| put(bytes, &x.to_le_bytes()));
        let floats = |bytes: &mut Vec<u8>, all: &[f64]| all.iter().for_each(|x| put(bytes, &x.to_le_bytes()));
        ints(&mut bytes, &[1]);
        bytes.extend(b"\n$EndMeshFormat\n$PhysicalNames\n2\n2 3 \"the skin\"\n3 1 \"body\"\n$EndPhysicalNames\n");
        bytes.extend(b"$Entities\n");
        sizes(&mut bytes, &[1, 0, 1, 1]);
        ints(&mut bytes, &[7]);
        floats(&mut bytes, &[0.0; 3]);
        sizes(&mut bytes, &[1]);
        ints(&mut bytes, &[9, 5]);
        floats(&mut bytes, &[0.0; 6]);
        sizes(&mut bytes, &[1]);
        ints(&mut bytes, &[-3]);
        sizes(&mut bytes, &[0]);
        ints(&mut bytes, &[1]);
        floats(&mut bytes, &[0.0; 6]);
        sizes(&mut bytes, &[2]);
        ints(&mut bytes, &[1, 2]);
        sizes(&mut bytes, &[1]);
        ints(&mut bytes, &[5]);
        bytes.extend(b"\n$EndEntities\n$Nodes\n");
        sizes(&mut bytes, &[2, 5, 1, 50]);
        ints(&mut bytes, &[2, 5, 1]);
        sizes(&mut bytes, &[3, 1, 2, 3]);
        floats(&mut bytes, &[0.0, 0.0, 0.0, 0.5, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        ints(&mut bytes, &[3, 1, 0]);
        sizes(&mut bytes, &[2, 4, 50]);
        floats(&mut bytes, &[0.0, 0.0, 1.0, 5.0, 5.0, 5.0]);
        bytes.extend(b"\n$EndNodes\n$Elements\n");
        sizes(&mut bytes, &[3, 3, 1, 3]);
        ints(&mut bytes, &[0, 7, 15]);
        sizes(&mut bytes, &[1, 1, 1]);
        ints(&mut bytes, &[2, 5, 2]);
        sizes(&mut bytes, &[1, 2, 1, 3, 2]);
        ints(&mut bytes, &[3, 1, 4]);
        sizes(&mut bytes, &[1, 3, 1, 2, 3, 4]);
        bytes.extend(b"\n$EndElements\n");
        bytes
    }

    #[test]
    fn reads_cells_of_all_dimensions_and_groups() {
        let mesh = parsed(Format::Gmsh, SAMPLE);
        assert_eq!(mesh.points()[4], [5.0; 3]);
        let cells: Vec<_> = mesh.cells().iter().collect();
        let expected: [(CellKind, &[u32]); 3] =
            [(CellKind::Vertex, &[0]), (CellKind::Triangle, &[0, 2, 1]), (CellKind::Tet, &[0, 1, 2, 3])];
        assert_eq!(cells, expected);
        let groups: Vec<_> = mesh.groups().iter().map(|g| (&*g.name, g.dimension, &g.cells[..])).collect();
        let expected: [(&str, usize, &[u32]); 4] =
            [("9", 0, &[0]), ("the skin", 2, &[1]), ("body", 3, &[2]), ("2", 3, &[2])];
        assert_eq!(groups, expected);
    }

    #[test]
    fn binary_of_both_orders_is_the_same() {
        for order in [Order::Little, Order::Big] {
            assert_eq!(parsed(Format::Gmsh, binary(order)), parsed(Format::Gmsh, SAMPLE), "{order:?}");
        }
    }

    #[test]
    fn partitioned_entities_give_groups() {
        let partitioned =
            "$PartitionedEntities\n2\n1\n9 1\n0 0 0 1\n1 3 1 1 2 0 0 0 1 1 1 1 4 0\n$EndPartitionedEntities\n";
        let text = SAMPLE.replace("$Comments\n", &format!("{partitioned}$Comments\n"));
        assert_eq!(parsed(Format::Gmsh, text).group("4").unwrap().cells, [2]);
    }

    #[test]
    fn errors_say_where() {
        let with = |from: &str, to: &str| SAMPLE.replace(from, to);
        fails(
            Format::Gmsh,
            with("4.1 0 8", "2.2 0 8"),
            "a:2: version \"2.2\" is not supported, only 4.1: convert with `gmsh ",
        );
        fails(Format::Gmsh, with("4.1 0 8", "4.1 1 4"), "a:2: file type 1 with numbers of 4 bytes");
        fails(Format::Gmsh, with("3 1 4 1", "3 1 11 1"), "a:39: element type 11 (10-node tet) is of second order");
        fails(Format::Gmsh, with("3 1 4 1", "3 1 99 1"), "a:39: element type 99 is not supported");
        fails(Format::Gmsh, with("3 1 4 1", "3 1 4 9223372036854775808"), "a:39: 9223372036854775808 elements of");
        fails(Format::Gmsh, with("3 1 4 1", "3 1 4 -1"), "a:39: \"-1\" is not a number of elements of type tet");
        fails(Format::Gmsh, with("2 5 1 3\n", "2 5 1 2147483648\n"), "a:20: 2147483648 nodes do not fit");
        fails(Format::Gmsh, with("3 1 2 3 4\n", "3 1 2 3 5\n"), "a:40: element 3 has node 5, which is not in $Nodes");
        fails(Format::Gmsh, with("1 0 0 0 0\n", "1 nan 0 0 0\n"), "a:25: node 2 has the coordinate NaN");
        fails(Format::Gmsh, with("\n50\n", "\n3\n"), "a:31: node 3 comes twice");
        fails(Format::Gmsh, with("$EndNodes", "$EndNode"), "a:32: \"$EndNode\" found where `$EndNodes`");
        fails(Format::Gmsh, with("$EndComments", ""), "a:15: section \"Comments\" has no end");
        fails(Format::Gmsh, with("\"body\"", "body"), "a:7: \"body\" is no quoted name");
        fails(Format::Gmsh, &SAMPLE[..SAMPLE.len() - 60], "a:3");
        fails(Format::Gmsh, "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n", "a:4: the file ends without");
        fails(Format::Gmsh, "$Nodes\n", "a:1: a Gmsh file starts");
        let tags: String = (0..1000).map(|tag| format!("{tag} ")).collect();
        let many = with("1 1 1 2 1 2 1 5", &format!("1 1 1 1000 {tags} 1 5"));
        fails(Format::Gmsh, many, "a:42: the cells are in more than 64 physical groups each");
        let bytes = binary(Order::Little);
        fails(Format::Gmsh, &bytes[..bytes.len() - 30], "a: byte ");
        let mut lying = bytes.clone();
        lying[20] = 3;
        fails(Format::Gmsh, &lying, "a:3: the number that shows the byte order is 0x3");
    }

    #[test]
    fn survives_mutations() {
        fuzz(Format::Gmsh, SAMPLE.as_bytes());
        fuzz(Format::Gmsh, &binary(Order::Little));
        fuzz(Format::Gmsh, &binary(Order::Big));
    }
}
