//! Gmsh's mesh file of versions 2, 4.0 and 4.1, ASCII and binary of either byte order, read only.
//!
//! Read: nodes with any tags; elements of first and second order (types 1 to 19) of all dimensions, of the latter the
//! corners; physical groups as [`Group`](crate::Group)s, where a group without a name is called by its tag, such as
//! `3`;
//! `$NodeData` and `$ElementData` as fields, NaN where they have no value. Partitioned files are read as one mesh. Parametric
//! coordinates, periodic links and ghost elements are skipped; sections of other data are left out with a note. Version
//! 1 is refused.
//!
//! Source: Geuzaine and Remacle, "Gmsh reference manual", section "MSH file format"; for 4.0, that of Gmsh 4.0.

mod data;
mod elements;
mod file;
mod nodes;
mod numbers;
mod tags;
#[cfg(test)]
mod tests;

use std::path::Path;

use self::data::Owner;
use self::file::File;
use self::numbers::{Numbers, Version};
use super::binary::{Binary, Order};
use super::draft::Draft;
use super::text::{Text, shown};
use crate::error::Result;

pub(super) fn parse(name: &Path, bytes: &[u8]) -> Result<Draft> {
    let mut text = Text::new(name, bytes);
    if text.word() != Some(b"$MeshFormat") {
        return Err(text.error("a Gmsh file starts with `$MeshFormat`"));
    }
    let (version, order) = format(&mut text)?;
    if order.is_some() {
        text.count_bytes();
    }
    end_section(&mut text, b"MeshFormat")?;
    let mut file = File::new(bytes.len());
    let mut found = [false; 2];
    while let Some(word) = text.word() {
        let Some(section) = word.strip_prefix(b"$") else {
            return Err(text.error(format!("{} found where a section such as `$Nodes` should start", shown(word))));
        };
        let is_early = match section {
            b"Nodes" => found != [false; 2],
            b"Elements" | b"NodeData" => !found[0],
            b"ElementData" => !found[1],
            _ => false,
        };
        if is_early {
            return Err(text.error(format!("{} comes twice or before what it refers to", shown(word))));
        }
        match section {
            b"PhysicalNames" => file.read_names(&mut text)?,
            b"NodeData" => file.read_data(&mut text, order, Owner::Nodes)?,
            b"ElementData" => file.read_data(&mut text, order, Owner::Elements)?,
            b"Entities" | b"PartitionedEntities" if version != Version::Two => {
                let mut numbers = Numbers::behind(&mut text, order);
                file.read_entities(&mut numbers, version, section == b"PartitionedEntities")?;
                numbers.leave(&mut text);
            }
            b"Nodes" | b"Elements" => {
                file.read_mesh(&mut text, version, order, section == b"Nodes")?;
                found[usize::from(section == b"Elements")] = true;
            }
            _ => {
                if section.ends_with(b"Data") {
                    file.draft.note(text.error(format!("section {} is left out", shown(word))));
                }
                skip_section(&mut text, section)?;
                continue;
            }
        }
        end_section(&mut text, section)?;
    }
    if found != [true; 2] {
        return Err(text.error("the file ends without $Nodes and $Elements: it was cut short"));
    }
    file.finish(&text)
}

/// The rest of the section `$MeshFormat`; no byte order means ASCII.
fn format(text: &mut Text) -> Result<(Version, Option<Order>)> {
    let version = match text.need("the version")? {
        b"2" | b"2.0" | b"2.1" | b"2.2" => Version::Two,
        b"4" | b"4.0" => Version::FourZero,
        b"4.1" => Version::FourOne,
        other => {
            return Err(text.error(format!(
                "version {} is not supported, only 2, 4.0 and 4.1: convert with `gmsh FILE -save -format msh41 -o NEW.msh`",
                shown(other)
            )));
        }
    };
    let is_binary: u32 = text.number("the file type, 0 or 1")?;
    let size: u32 = text.number("the size of a number")?;
    if is_binary > 1 || (is_binary == 1 && size != 8) {
        return Err(
            text.error(format!("file type {is_binary} with numbers of {size} bytes: only 0, or 1 with 8, exist"))
        );
    }
    if is_binary == 0 {
        return Ok((version, None));
    }
    text.next_line();
    let mut one = Binary::new(text.name(), text.bytes(), text.at(), Order::Little);
    let order = match one.i32("the number 1 that shows the byte order")? {
        1 => Order::Little,
        0x0100_0000 => Order::Big,
        other => return Err(text.error(format!("the number that shows the byte order is {other:#x} and not 1"))),
    };
    text.seek(one.at());
    Ok((version, Some(order)))
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
        for _ in 0..text.count("physical names", 4)? {
            let first = text.number("the dimension of a physical group")?;
            // Version 2.0 has no dimensions: the name is that of the groups of all.
            let (dimensions, tag) = match text.clone().word_in_line() {
                Some([b'"', ..]) => (0..=3, first),
                _ => (first..=first, text.number("the tag of a physical group")?),
            };
            let quoted = text.rest_of_line();
            let name = quoted.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
            let name = name.ok_or_else(|| text.error(format!("{} is no quoted name", shown(quoted))))?;
            for dimension in dimensions {
                self.names.insert((dimension, tag), String::from_utf8_lossy(name).into_owned());
            }
        }
        Ok(())
    }

    /// Reads the section `$Nodes`, or `$Elements`.
    fn read_mesh(&mut self, text: &mut Text, version: Version, order: Option<Order>, is_nodes: bool) -> Result<()> {
        let mut count = 0;
        if version == Version::Two {
            count = text.number("a number of nodes or elements")?; // a word in binary files, too
        }
        self.element_tags = None;
        let mut numbers = Numbers::behind(text, order);
        match (is_nodes, version) {
            (true, Version::Two) => self.nodes = nodes::read_list(&mut numbers, count, &mut self.draft)?,
            (true, _) => self.nodes = nodes::read_blocks(&mut numbers, version, &mut self.draft)?,
            (false, Version::Two) => self.read_element_list(&mut numbers, count)?,
            (false, _) => self.read_element_blocks(&mut numbers, version)?,
        }
        numbers.leave(text);
        Ok(())
    }

    /// Remembers the physical groups of the entities and skips their boxes and boundaries.
    fn read_entities(&mut self, numbers: &mut Numbers, version: Version, partitioned: bool) -> Result<()> {
        let is_wide = version == Version::FourOne;
        if partitioned {
            let ghosts = if is_wide {
                numbers.size("the number of partitions")?;
                numbers.count("ghost entities", 2, 8)?
            } else {
                numbers.int("the number of partitions")?;
                numbers.short_count("ghost entities", 2, 8)?
            };
            for _ in 0..ghosts {
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
                    let partitions = match is_wide {
                        true => numbers.count("partitions of an entity", 1, 4)?,
                        false => numbers.short_count("partitions of an entity", 1, 4)?,
                    };
                    for _ in 0..partitions {
                        numbers.int("a partition of an entity")?;
                    }
                }
                for _ in 0..if dimension == 0 && is_wide { 3 } else { 6 } {
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
}
