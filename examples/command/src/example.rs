//! What an example is: a program with a scene, settings, a look and an acceptance test.

use crate::settings::{Setting, Settings};
use anyhow::{Context, Result};
use clap::ValueEnum;
use meshweft::{Number, Order, Program};
use meshweft_mesh::{Cells, Field, Mesh};
use meshweft_picture::{ColorMap, Prop, Section};
use std::fmt;
use std::sync::Arc;

/// What is known of an example before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// The word on the command line.
    pub name: &'static str,
    /// What it computes and by which method, in one line.
    pub about: &'static str,
    /// The mesh unless another is named.
    pub mesh: &'static str,
    /// Time steps unless another number is given.
    pub steps: usize,
    /// What `--set` can change.
    pub settings: &'static [Setting],
    /// The order unless another is named; none leaves that to the backend.
    pub order: Option<Order>,
    /// The precision unless another is named.
    pub precision: Precision,
}

impl Info {
    /// Of an example without settings that leaves order and precision open; name, line and mesh are to be filled in.
    pub const DEFAULT: Info =
        Info { name: "", about: "", mesh: "", steps: 1, settings: &[], order: None, precision: Precision::F32 };
}

/// A column of the table of vertices that a run leaves.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The field that it holds, one number a vertex.
    pub field: &'static str,
    /// Whether those are ids of vertices.
    pub is_vertex: bool,
    /// The value that stands for nothing, and the word that is written for it.
    pub nothing: Option<(f64, &'static str)>,
}

/// A program that can be run by name.
pub trait Example: Program {
    /// What is known of it.
    const INFO: Info;

    /// Sets the scene. The mesh may be scaled or moved to fit it. `order` is that of the sweeps.
    ///
    /// # Errors
    /// A mesh that the physics cannot run on.
    fn new(mesh: &mut Mesh, settings: &Settings, order: Order) -> Result<Self>;

    /// The numbers among its settings that [`Example::change`] takes over; none unless overridden.
    const LIVE: &'static [&'static str] = &[];

    /// Takes over those of its settings between two steps: all but its state is then what [`Example::new`] makes of them. Stars and fixed
    /// vertices stay as they are, so settings that decide about them are not among those.
    ///
    /// # Errors
    /// A value that it cannot go on with; it is then as it was.
    fn change(&mut self, _settings: &Settings, _order: Order) -> Result<()> {
        Ok(())
    }

    /// Whether it is this program that runs with these settings, of those of an example.
    fn runs(_settings: &Settings) -> bool {
        true
    }

    /// How its state is drawn.
    fn look(&self) -> Look;

    /// The columns of the table that a run leaves as `NAME.csv`, a line for each vertex, in place of the history of what
    /// was measured; none unless overridden.
    fn table(&self) -> Vec<Column> {
        Vec::new()
    }

    /// Judges a state by the properties that it must have, each a line; none unless overridden.
    ///
    /// # Errors
    /// A field that is missing.
    fn judge(&self, _fields: &[Field]) -> Result<Vec<Check>> {
        Ok(Vec::new())
    }

    /// What its user should know of how it took the mesh, in one line.
    fn note(&self) -> Option<String> {
        None
    }

    /// Runs its acceptance test.
    ///
    /// # Errors
    /// A run that fails before it can be judged.
    fn checks() -> Result<Vec<Check>>;
}

/// How a state is drawn.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The field that holds positions; the mesh stays where it is without one.
    pub positions: Option<&'static str>,
    /// Whether that is farther than the mesh goes, so that it can be seen: states keep the mesh where it is.
    pub is_exaggerated: bool,
    /// The fields that states have unless the user names others; all of them without.
    pub states: Option<&'static [&'static str]>,
    /// The field that colors the mesh: vectors by their length. One plain color without one.
    pub color: Option<&'static str>,
    /// What the colors mean, with the unit.
    pub label: &'static str,
    /// From the color field to colors; [`ColorMap::Coolwarm`] for one of two signs.
    pub map: ColorMap,
    /// The field that raises a flat mesh, and by how many meters where it is 1.
    pub raised: Option<(&'static str, f64)>,
    /// How solids are cut open unless the user says: [`Section::None`] for one whose shape is what matters.
    pub section: Section,
    /// The box that pictures show; all of the mesh, wherever it goes, without one.
    pub window: Option<[[f64; 3]; 2]>,
    /// From where, as [`Camera::seen_from`](meshweft_picture::Camera::seen_from) takes it, unless the user says.
    pub view: Option<[f64; 2]>,
    /// Whether steps lead to a state that stays, so that they are counted where else their time would stand.
    pub is_steady: bool,
    /// Things around the mesh.
    pub props: Vec<Prop>,
    /// The cells of a mesh whose cells have other corners from state to state.
    pub cells: Option<CellsNow>,
}

/// The cells that a mesh has in a state, given the fields of that: as many as at the start, each in its place, all of one kind.
#[derive(Clone)]
pub struct CellsNow(pub Arc<CellsOf>);

/// From the fields of a state to its cells.
pub type CellsOf = dyn Fn(&[Field]) -> Cells + Send + Sync;

impl fmt::Debug for CellsNow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CellsNow(..)")
    }
}

/// One line of an acceptance test: a measured number beside the one it must be.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was measured, on which mesh, by which method.
    pub name: String,
    /// What came out.
    pub measured: f64,
    /// What should.
    pub expected: f64,
    /// How far apart they may be.
    pub tolerance: Tolerance,
    /// The unit of both.
    pub unit: &'static str,
    /// Where the expected value comes from.
    pub source: &'static str,
}

/// How far a measured number may be from the expected one.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// At most this share of the expected value.
    Relative(f64),
    /// At most this much, in the unit of the value.
    Absolute(f64),
    /// Not above the expected value.
    AtMost,
}

impl Check {
    /// Whether the measured value is as expected. NaN never is.
    pub fn passes(&self) -> bool {
        let off = (self.measured - self.expected).abs();
        match self.tolerance {
            Tolerance::Relative(share) => off <= share * self.expected.abs(),
            Tolerance::Absolute(most) => off <= most,
            Tolerance::AtMost => self.measured <= self.expected,
        }
    }
}

/// The precision of state and arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Precision {
    /// 32 bits.
    #[default]
    F32,
    /// 64 bits.
    F64,
}

impl Precision {
    /// The word for it: `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => f32::NAME,
            Precision::F64 => f64::NAME,
        }
    }
}

/// The number of an element in a field, or the length of its vector.
pub(crate) fn magnitude(field: &Field, i: usize) -> f64 {
    match field.components {
        1 => field.values[i],
        n => field.values[n * i..n * (i + 1)].iter().map(|x| x * x).sum::<f64>().sqrt(),
    }
}

/// Finds the field of that name.
///
/// # Errors
/// It is not there.
pub fn find<'a>(fields: &'a [Field], name: &str) -> Result<&'a Field> {
    fields.iter().find(|field| field.name == name).with_context(|| format!("the state has no field {name}"))
}
