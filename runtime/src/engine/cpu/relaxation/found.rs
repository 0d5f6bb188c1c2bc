//! What a round finds out.

use crate::number::Number;
use crate::program::{Record, less};

/// The next frontier, and what must be done before it is looked at.
pub(super) struct Found<A> {
    /// The frontier as lists, unless it was pulled: then it is a bitmap.
    pub(super) lists: Vec<Vec<u32>>,
    /// Vertices that were in the frontier and have changed again: their state is to be copied.
    pub(super) moved: Vec<Vec<u32>>,
    pub(super) tally: Tally<A>,
}

impl<A> Found<A> {
    pub(super) const NOTHING: Found<A> = Found { lists: Vec::new(), moved: Vec::new(), tally: Tally::NONE };
}

/// What is known of a frontier.
#[derive(Clone, Copy)]
pub(super) struct Tally<A> {
    pub(super) vertices: usize,
    /// Edges from them.
    pub(super) edges: usize,
    /// The least and the greatest that one of them offers, where that depends on nothing else.
    pub(super) offers: Option<[A; 2]>,
    /// Whether no one offers less than it holds.
    pub(super) is_monotone: bool,
    pub(super) is_finite: bool,
}

impl<A> Tally<A> {
    pub(super) const NONE: Tally<A> = Tally { vertices: 0, edges: 0, offers: None, is_monotone: true, is_finite: true };
}

impl<A> Tally<A> {
    /// Counts offers from `least` to `most`.
    #[inline(always)]
    pub(super) fn offer<R: Number>(&mut self, least: A, most: A)
    where
        A: Record<R>,
    {
        self.offers = Some(match self.offers {
            None => [least, most],
            Some([low, high]) => {
                [if less(least, low) { least } else { low }, if less(high, most) { most } else { high }]
            }
        });
    }
}
