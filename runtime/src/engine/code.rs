//! A kernel as functions, so that engines know no program.

use super::cpu::relaxation::Place;
use super::cpu::tile::Visit;
#[cfg(feature = "cluster")]
use super::grid::{Grid, Sides};
use super::one::One;
use super::store::Store;
use super::touches::Touches;
#[cfg(feature = "cluster")]
use crate::error::Result;
use crate::layout::{Domain, Tile};
#[cfg(any(test, feature = "all-widths"))]
use crate::number::Other;
use crate::number::{Lanes, Number, Widest};
use crate::program::{Combine, KernelId, Uniform};
use crate::trace::Script;
use meshweft_schedule::Rule;
use std::sync::Arc;

/// One kernel.
#[derive(Clone)]
pub(crate) struct Compiled<T> {
    pub(crate) name: &'static str,
    pub(crate) id: KernelId,
    /// Label and unit of a measure that is a metric.
    pub(crate) metric: Option<(&'static str, &'static str)>,
    pub(crate) code: Code<T>,
    /// The same on symbols.
    pub(crate) script: Script,
}

/// Whether kernels are compiled for groups of `width` vertices: one by one always.
pub(crate) fn is_built<T: Number>(width: usize) -> bool {
    #[cfg(any(test, feature = "all-widths"))]
    if width == <Other<T> as Lanes>::WIDTH {
        return true;
    }
    width == 1 || width == <Widest<T> as Lanes>::WIDTH
}

/// What updates a vertex: its new reals, shared ones first. Tells whether they are finite.
pub(super) type UpdateOne<T> = Arc<dyn Fn(&One<T>, &mut Vec<T>) -> bool + Send + Sync>;
/// What updates a tile, in groups of any width that [`is_built`]. Tells whether all came out finite.
pub(super) type UpdateTile<T> = Arc<dyn Fn(&Visit<T>, &Tile) -> bool + Send + Sync>;
/// What measures a vertex.
pub(super) type MeasureOne<T> = Arc<dyn Fn(&One<T>) -> T + Send + Sync>;
/// What measures a tile: a value for each slot.
pub(super) type MeasureTile<T> = Arc<dyn Fn(&Visit<T>, &Tile, &mut [T]) + Send + Sync>;

/// What computes new globals.
pub(super) type Compute<T> = Arc<dyn Fn(&Uniform<T>) -> Vec<T> + Send + Sync>;
/// What says whether a test holds.
pub(super) type Decide<T> = Arc<dyn Fn(&Uniform<T>) -> bool + Send + Sync>;

/// What runs rounds of a relaxation until one changes nothing, so many at most: how many, and whether all came out finite.
#[derive(Clone, Copy)]
pub(crate) struct Relaxation<T> {
    /// The star along which it looks.
    pub(crate) star: usize,
    /// On the threads of this machine.
    pub(super) here: Here<T>,
    /// On hosts that stand in a grid.
    #[cfg(feature = "cluster")]
    pub(crate) in_grid: InGrid<T>,
}

type Here<T> = fn(&mut dyn Store<T>, Place<T>, &Uniform<T>, u32) -> (u32, bool);

#[cfg(feature = "cluster")]
type InGrid<T> = fn(&mut Grid<T>, &mut dyn Store<T>, &mut dyn Sides<T>, &Uniform<T>, u32) -> Result<(u32, bool)>;

/// What a measure looks at. One that looks at no neighbors is measured while vertices that were just updated are still in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The state of its vertex, parameters and settings.
    Own,
    /// All that, and globals.
    Globals,
    /// All that, and neighbors.
    Around,
}

/// Its functions.
#[derive(Clone)]
pub(crate) enum Code<T> {
    /// Of a map or an update: for one vertex, and for a tile; what it touches; whether it may be left out where nothing has changed; of a
    /// relaxation, its fixed point.
    Vertex { one: UpdateOne<T>, tile: UpdateTile<T>, touches: Touches, is_quiet: bool, relax: Option<Relaxation<T>> },
    /// Of a projection: the star whose elements it projects; for one element, the new reals of its corners and then its own; for a tile of
    /// elements.
    Project { star: usize, one: UpdateOne<T>, tile: UpdateTile<T> },
    /// Of no kernel: tasks change nothing, and other hosts are told what they hold.
    Tell,
    /// Of a measure: how values are combined; how far it looks; that of one vertex; those of a tile.
    Measure { how: Combine, sight: Sight, one: MeasureOne<T>, tile: MeasureTile<T> },
    /// New globals.
    Scalar(Compute<T>),
    /// Whether a test holds.
    Test(Decide<T>),
}

impl<T> Code<T> {
    /// How far it looks.
    pub(crate) fn sight(&self) -> Sight {
        match self {
            Code::Measure { sight, .. } => *sight,
            _ => Sight::Around,
        }
    }

    /// What it touches.
    pub(crate) fn touches(&self) -> Touches {
        match self {
            Code::Vertex { touches, .. } => *touches,
            _ => Touches::ALL,
        }
    }
}

/// An update of all vertices or of those of a part, or a projection of all elements of a star, some rounds of it.
#[derive(Clone)]
pub(crate) struct Pass<T> {
    /// The number of its kernel.
    pub(crate) kernel: usize,
    /// The part that it updates, if not all; never at once.
    pub(crate) part: Option<u32>,
    pub(crate) code: Code<T>,
    pub(crate) rule: Rule,
    pub(crate) rounds: u32,
    /// Rounds of the same stage before it.
    pub(crate) before: u32,
    pub(crate) uniform: Uniform<T>,
}

/// A measurement of all vertices.
pub(crate) struct Measure<T> {
    /// The number of its kernel.
    pub(crate) kernel: usize,
    pub(crate) code: Code<T>,
    pub(crate) uniform: Uniform<T>,
}

impl<T> Pass<T> {
    /// Whether a task is of another part than it updates.
    pub(crate) fn leaves_out(&self, domain: &Domain, t: u32) -> bool {
        self.part.is_some_and(|part| part != domain.part_of(t))
    }

    /// Whether it may be left out where nothing has changed.
    pub(crate) fn is_quiet(&self) -> bool {
        matches!(self.code, Code::Vertex { is_quiet: true, .. })
    }
}
