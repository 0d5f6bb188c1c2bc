//! What lists take in each form: for benchmarks, which see nothing else of how searches are said.

use crate::error::{Error, Result};
use crate::ids::{Form, List, read, write_plain};
use crate::wire::Reader;
use std::collections::BTreeMap;
use std::time::Instant;

/// A list in one form. Hidden, as [`list_costs`] is.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListCost {
    /// The name of the form.
    pub form: &'static str,
    /// What it takes, with its head.
    pub bytes: usize,
    /// Seconds to write it, in which is what finding out takes how long it would be in each form; plain lists are just written.
    pub write_s: f64,
    /// Seconds to read it, checks included.
    pub read_s: f64,
}

/// Writes and reads ascending ids below `end` in each form, so many `times`, of which the least counts, and says what that takes. Beside
/// it the entropy of their gaps, each taken by itself, in bits an id: fewer takes no code that knows nothing of their order.
///
/// Hidden: lists are private to searches, and a benchmark alone wants to see them one by one.
///
/// # Errors
/// Ids that do not ascend, or one that is not below `end`.
#[doc(hidden)]
pub fn list_costs(ids: &[u32], end: u32, times: usize) -> Result<(f64, Vec<ListCost>)> {
    if !ids.is_sorted_by(|a, b| a < b) || ids.last().is_some_and(|&last| last >= end) {
        return Err(Error::Invalid(format!("a list of {} ids is to ascend, below {end}", ids.len())));
    }
    let cost = |form: Form| {
        let (mut cost, mut out) =
            (ListCost { form: name(form), bytes: 0, write_s: f64::MAX, read_s: f64::MAX }, Vec::new());
        for _ in 0..times.max(1) {
            out.clear();
            let clock = Instant::now();
            match form {
                Form::Plain => write_plain(ids, &mut out),
                _ => List::new(ids, end).write(form, &mut out),
            }
            cost.write_s = cost.write_s.min(clock.elapsed().as_secs_f64());
            let (clock, mut rest) = (Instant::now(), Reader(&out));
            let found = read(&mut rest, end);
            cost.read_s = cost.read_s.min(clock.elapsed().as_secs_f64());
            assert!(found.is_some_and(|found| found.1 == ids), "a list in the form {form:?} comes back");
        }
        ListCost { bytes: out.len(), ..cost }
    };
    Ok((entropy(ids), Form::ALL.map(cost).to_vec()))
}

fn name(form: Form) -> &'static str {
    match form {
        Form::Plain => "plain",
        Form::Bitmap => "bitmap",
        Form::Packed => "S4-BP128",
        Form::Rice => "Rice",
    }
}

/// Entropy of the gaps, taken one by one, in bits an id; 0 of no ids.
pub(crate) fn entropy(ids: &[u32]) -> f64 {
    let mut counts = BTreeMap::<u32, f64>::new();
    let mut next = 0;
    for &id in ids {
        *counts.entry(id - next).or_default() += 1.0;
        next = id + 1;
    }
    let n = ids.len() as f64;
    // Zero, and not minus zero, of none.
    counts.values().map(|count| count / n * (n / count).log2()).fold(0.0, |all, part| all + part)
}
