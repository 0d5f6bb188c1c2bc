//! Numbers of a section, as words or as bytes.

use super::super::binary::{Binary, Order};
use super::super::text::Text;
use crate::error::{Error, Result};

/// The versions whose numbers lie differently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Version {
    Two,
    FourZero,
    FourOne,
}

pub(super) enum Numbers<'a> {
    Ascii(Text<'a>),
    Binary(Binary<'a>),
}

impl<'a> Numbers<'a> {
    /// Starts behind the last word of `text`: where the file is binary, on the next line.
    pub(super) fn behind(text: &mut Text<'a>, order: Option<Order>) -> Numbers<'a> {
        match order {
            None => Numbers::Ascii(text.clone()),
            Some(order) => {
                text.next_line();
                Numbers::Binary(Binary::new(text.name(), text.bytes(), text.at(), order))
            }
        }
    }

    /// Moves the text to where these numbers end.
    pub(super) fn leave(self, text: &mut Text<'a>) {
        match self {
            Numbers::Ascii(at) => *text = at,
            Numbers::Binary(at) => text.seek(at.at()),
        }
    }

    pub(super) fn int(&mut self, what: &str) -> Result<i32> {
        match self {
            Numbers::Ascii(text) => text.number(what),
            Numbers::Binary(file) => file.i32(what),
        }
    }

    pub(super) fn size(&mut self, what: &str) -> Result<u64> {
        match self {
            Numbers::Ascii(text) => text.number(what),
            Numbers::Binary(file) => file.u64(what),
        }
    }

    /// The tag of a node or of an element: 64 bits since version 4.1.
    pub(super) fn tag(&mut self, version: Version, what: &str) -> Result<u64> {
        match (version, self) {
            (Version::FourOne, numbers) => numbers.size(what),
            (_, Numbers::Ascii(text)) => text.number(what),
            (_, Numbers::Binary(file)) => {
                let tag = file.i32(what)?;
                u64::try_from(tag).map_err(|_| file.error(format!("{tag} is not {what}")))
            }
        }
    }

    /// Dimension and tag of an entity, which changed places with version 4.1.
    pub(super) fn entity(&mut self, version: Version) -> Result<[i32; 2]> {
        let (first, second) = (self.int("an entity")?, self.int("an entity")?);
        Ok(if version == Version::FourOne { [first, second] } else { [second, first] })
    }

    pub(super) fn float(&mut self, what: &str) -> Result<f64> {
        match self {
            Numbers::Ascii(text) => text.number(what),
            Numbers::Binary(file) => file.f64(what),
        }
    }

    /// A count of items of so many words, or bytes, each.
    pub(super) fn count(&mut self, what: &str, words: usize, bytes: usize) -> Result<usize> {
        match self {
            Numbers::Ascii(text) => text.count(what, 2 * words),
            Numbers::Binary(file) => {
                let count = file.u64(what)?;
                file.check_count(count, what, bytes)
            }
        }
    }

    /// The same, where binary files store it in 32 bits.
    pub(super) fn short_count(&mut self, what: &str, words: usize, bytes: usize) -> Result<usize> {
        match self {
            Numbers::Ascii(text) => text.count(what, 2 * words),
            Numbers::Binary(file) => {
                let count = file.u32(what)?;
                file.check_count(count.into(), what, bytes)
            }
        }
    }

    /// Refuses a count of items that what is left of the file cannot hold.
    pub(super) fn check_count(&self, count: u64, what: &str, words: usize, bytes: usize) -> Result<usize> {
        match self {
            Numbers::Ascii(text) => text.check_count(count, what, 2 * words),
            Numbers::Binary(file) => file.check_count(count, what, bytes),
        }
    }

    /// What `read` makes of the next `count` items of `bytes` bytes each, if they are binary and nothing is wrong with
    /// them. Nothing is skipped: reading the same numbers one by one then finds what is wrong, and where.
    pub(super) fn block<T>(&self, count: usize, bytes: usize, read: impl FnOnce(Words) -> Option<T>) -> Option<T> {
        let Numbers::Binary(file) = self else { return None };
        let mut ahead = file.clone();
        let bytes = ahead.take(count.checked_mul(bytes)?, "a block").ok()?;
        read(Words { words: bytes.as_chunks().0, order: file.order() })
    }

    /// Moves behind bytes that [`Numbers::block`] has read.
    pub(super) fn skip(&mut self, bytes: usize) -> Result<()> {
        match self {
            Numbers::Ascii(_) => Ok(()),
            Numbers::Binary(file) => file.take(bytes, "a block").map(drop),
        }
    }

    pub(super) fn skip_ints(&mut self, what: &str) -> Result<()> {
        for _ in 0..self.count(what, 1, 4)? {
            self.int(what)?;
        }
        Ok(())
    }

    pub(super) fn is_binary(&self) -> bool {
        matches!(self, Numbers::Binary(_))
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        match self {
            Numbers::Ascii(text) => text.error(message),
            Numbers::Binary(file) => file.error(message),
        }
    }
}

/// Numbers of eight bytes.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    words: &'a [[u8; 8]],
    order: Order,
}

impl Words<'_> {
    pub(super) fn len(self) -> usize {
        self.words.len()
    }

    pub(super) fn at(self, i: usize) -> u64 {
        match self.order {
            Order::Little => u64::from_le_bytes(self.words[i]),
            Order::Big => u64::from_be_bytes(self.words[i]),
        }
    }
}
