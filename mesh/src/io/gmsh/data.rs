//! The sections `$NodeData` and `$ElementData`, which become fields.

use super::super::binary::Order;
use super::super::text::{Text, shown};
use super::file::File;
use super::numbers::{Numbers, Version};
use super::tags::Tags;
use crate::error::{Error, Place, Result, shown_name};

/// What the numbers of a section belong to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Owner {
    Nodes,
    Elements,
}

impl File {
    /// Reads one section; nodes or elements that it does not name get NaN.
    pub(super) fn read_data(&mut self, text: &mut Text, order: Option<Order>, owner: Owner) -> Result<()> {
        let (name, components, rows) = head(text)?;
        let (section, what, count) = match owner {
            Owner::Nodes => ("$Nodes", "node", self.draft.points.len()),
            Owner::Elements => ("$Elements", "element", self.draft.cell_count()),
        };
        if owner == Owner::Elements && self.element_tags.is_none() {
            let tags = Tags::of(&self.elements, what).map_err(|message| text.error(message))?;
            self.element_tags = Some(tags);
        }
        let mut numbers = Numbers::behind(text, order);
        let rows = numbers.check_count(rows, "values", 1 + components, 4 + 8 * components)?;
        // The section has some nodes or elements, but the field needs values for all.
        let room = self.draft.fill(&name, &format!("{what}s"), count.saturating_mul(components));
        room.map_err(|message| numbers.error(message))?;
        let mut values = vec![f64::NAN; count * components];
        for _ in 0..rows {
            let tag = numbers.tag(Version::Two, &format!("the tag of a {what}"))?; // 32 bits in every version
            let index = match owner {
                Owner::Nodes => self.nodes.index(tag),
                Owner::Elements => {
                    let known = self.element_tags.as_ref().and_then(|tags| tags.index(tag));
                    known.or_else(|| self.twins.get(&tag).copied())
                }
            };
            let index = index.ok_or_else(|| numbers.error(format!("{what} {tag} is not in {section}")))? as usize;
            for value in &mut values[index * components..(index + 1) * components] {
                *value = numbers.float("a value")?;
            }
        }
        if !self.fields.insert((owner == Owner::Nodes, name.clone())) {
            let message =
                format!("field {} comes several times, as of time steps: the last is read", shown_name(&name));
            self.draft.note(Error::file(text.name(), Place::Whole, message));
        }
        let added = match owner {
            Owner::Nodes => self.draft.point_field(&name, components, values),
            Owner::Elements => self.draft.cell_field(&name, components, values),
        };
        added.map_err(|message| numbers.error(message))?;
        numbers.leave(text);
        Ok(())
    }
}

/// Name, number of components, and number of rows.
fn head(text: &mut Text) -> Result<(String, usize, u64)> {
    let mut name = None;
    for _ in 0..text.count("strings", 1)? {
        if !text.next_line() {
            return Err(text.error("the file ends where a string should be: it was cut short"));
        }
        let line = text.rest_of_line();
        let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
        name = name.or_else(|| Some(String::from_utf8_lossy(line).into_owned()));
    }
    for _ in 0..text.count("real numbers", 2)? {
        text.number::<f64>("a real number")?;
    }
    let mut integers = [0, 1, 0]; // the time step, components, rows
    for k in 0..text.count("integers", 2)? {
        let word = text.need("an integer")?;
        let integer = super::super::text::number(word);
        let integer: i64 = integer.ok_or_else(|| text.error(format!("{} is no integer", shown(word))))?;
        if let Some(known) = integers.get_mut(k) {
            *known = integer;
        }
    }
    let [_, components, rows] = integers;
    match (usize::try_from(components), u64::try_from(rows)) {
        (Ok(components @ 1..=9), Ok(rows)) => Ok((name.unwrap_or_else(|| "data".into()), components, rows)),
        _ => Err(text.error(format!("{rows} values of {components} components: 1 to 9 components are supported"))),
    }
}
