//! Kinds of messages: their first byte.

/// Results of tasks at the border.
pub(crate) const VALUES: u8 = 0;
/// What driver and workers tell each other besides.
pub(crate) const CONTROL: u8 = 1;
/// A piece of something long.
pub(crate) const STREAM: u8 = 2;
/// A part of a search on hosts that stand in a grid.
pub(crate) const SEARCH: u8 = 4;
/// The driver asks how a host stands. The network's thread answers, whatever the host's own does.
pub(crate) const WATCH: u8 = 3;
