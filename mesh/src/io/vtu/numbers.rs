//! The numbers of an array, whichever way they are stored.

use std::ops::Range;
use std::str::FromStr;

use super::super::binary::Stored;
use super::super::text::{Text, number, shown};
use super::super::vtk_cells::Integers;
use super::data::Store;
use super::outline::{Array, Data};
use crate::error::{Result, shown_name};

/// The `count` numbers of an array of integers.
pub(super) fn integers<'a>(array: &Array, count: u64, store: &mut Store<'a>) -> Result<Integers<'a>> {
    Ok(match &array.data {
        Data::Ascii(range) => Integers::Plain(words(store, array, range, count)?.into()),
        _ => Integers::Stored(stored(array, count, store)?),
    })
}

/// The `count` numbers of an array that is not text, as they lie in the file.
pub(super) fn stored<'a>(array: &Array, count: u64, store: &mut Store<'a>) -> Result<Stored<'a>> {
    Ok(Stored::new(array.scalar, store.order(), store.bytes(array, count)?))
}

/// The numbers of an array of `count` tuples.
pub(super) fn floats(array: &Array, count: u64, store: &mut Store) -> Result<Vec<f64>> {
    let count = count.saturating_mul(array.components as u64);
    match &array.data {
        Data::Ascii(range) => words(store, array, range, count),
        _ => {
            let stored = stored(array, count, store)?;
            Ok(stored.floats(0..stored.len()))
        }
    }
}

/// The `count` words of an ASCII array.
fn words<T: FromStr>(store: &Store, array: &Array, range: &Range<usize>, count: u64) -> Result<Vec<T>> {
    let name = shown_name(&array.name);
    let mut text = Text::new(store.name(), &store.file()[..range.end]);
    text.seek(range.start);
    // Two bytes a number bound what the text can hold, whatever the tags say.
    let mut numbers = Vec::with_capacity(count.min(range.len() as u64 / 2 + 1) as usize);
    while let Some(word) = text.word() {
        if numbers.len() as u64 == count {
            return Err(text.error(format!("array {name} has more than its {count} numbers")));
        }
        let value = number(word);
        numbers.push(value.ok_or_else(|| text.error(format!("{} is no number of its type", shown(word))))?);
    }
    match numbers.len() {
        n if n as u64 == count => Ok(numbers),
        n => Err(text.error(format!("array {name} has {n} numbers and not {count}: a count is wrong"))),
    }
}
