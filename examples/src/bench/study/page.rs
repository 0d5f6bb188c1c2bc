//! What a study makes, and what it asks other commands.

use anyhow::{Context, Result};
use meshweft_picture::Drawing;
use serde_json::Value;

/// What a study prints, and draws.
pub(super) struct Page {
    /// Tables in Markdown.
    pub(super) text: String,
    /// Plots with the names of their files.
    pub(super) plots: Vec<(&'static str, Drawing)>,
}

/// Asks another command for what it says in JSON.
pub(super) type Ask<'a> = &'a mut dyn FnMut(&[&str]) -> Result<Value>;

/// A number of such an answer.
///
/// # Errors
/// There is none.
pub(super) fn number(value: &Value, key: &str) -> Result<f64> {
    value[key].as_f64().with_context(|| format!("no number {key} in {value}"))
}

/// The value in the middle; of an even number the larger of both there.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
