//! Programs as data: what other languages write, and what need not be known when Rust is compiled.
//!
//! A [`TapeProgram`] says what a [`Program`](crate::Program) says, as values: the parts of its records, its stars with their elements, its kernels
//! as [`Formula`]s, the stages of a step. It runs on every backend of this process, in every order, with the bits of the same program in Rust; the
//! cores interpret its kernels, a GPU has them as shaders.
//!
//! ```
//! use meshweft::mesh::{CellKind, generate::generate};
//! use meshweft::tapes::{Along, Binary, Formula, Input, Leaf, Purpose, TapeKernel, TapeProgram, TapeStage, TapeStar};
//! use meshweft::{Kind, Part};
//!
//! // The sum of the neighbors' heights.
//! let mut formula = Formula::default();
//! let start = formula.real(0.0);
//! let sum = formula.open(Along::new(0, "Edges", 1, 0), vec![Leaf { name: "sum".into(), kind: Kind::Real, start }])?[0];
//! let height = formula.other(0, 0)?;
//! let sum = formula.binary(Binary::Add, sum, height)?;
//! let sum = formula.close(vec![sum])?;
//! formula.finish(sum)?;
//!
//! let mesh = generate("chain:3", 1)?;
//! let program = TapeProgram {
//!     name: "Sums".into(),
//!     shared: vec![Part { name: "height".into(), components: 1, kind: Kind::Real }],
//!     stars: vec![TapeStar {
//!         name: "Edges".into(),
//!         shape: CellKind::Edge,
//!         elements: mesh.edges().into_flattened().into(),
//!         ..TapeStar::default()
//!     }],
//!     kernels: vec![TapeKernel { name: "Sum".into(), purpose: Purpose::Update { quiet: false }, formula: formula.into() }],
//!     initial: vec![1.0, 10.0, 100.0],
//!     step: vec![TapeStage::Jacobi { kernel: 0, settings: vec![], rounds: 1 }],
//!     ..TapeProgram::default()
//! };
//! let mut sums = program.builder(mesh).start()?;
//! sums.step()?;
//! assert_eq!(sums.field("height")?.values, [10.0, 101.0, 10.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod tests;
#[cfg(feature = "cluster")]
mod wire;

use crate::engine::Table;
use crate::error::{Error, Result};
use crate::names::lasting;
use crate::number::{Kind, Number, Part, Precision};
use crate::program::{
    AnyProgram, Around, Combine, Fields, Found, KernelId, Named, Records, StageList, StarPlan, Stars,
};
use crate::step::SETTINGS;
pub use crate::trace::{Along, Binary, Formula, Input, Leaf, Type, Unary, Value};
use crate::trace::{Node, Role};
use meshweft_mesh::{CellKind, Mesh};
use meshweft_schedule::Rule;
use std::sync::Arc;

/// A program as data. Lengths that do not fit each other are errors when a simulation is built.
#[derive(Clone, Debug)]
pub struct TapeProgram {
    /// Its name, in checkpoints and messages.
    pub name: String,
    /// What neighbors read of a vertex.
    pub shared: Vec<Part>,
    /// The rest of its state.
    pub private: Vec<Part>,
    /// Numbers that all kernels read.
    pub parameters: Vec<Part>,
    /// Numbers that all kernels read and stages write.
    pub globals: Vec<Part>,
    /// What lies around a vertex, by the numbers that formulas have for it.
    pub stars: Vec<TapeStar>,
    /// Its kernels, by the numbers that stages have for them.
    pub kernels: Vec<TapeKernel>,
    /// Where the vertices are that it has beside those of the mesh, see [`Program::parts`](crate::Program::parts).
    pub parts: Vec<Vec<[f64; 3]>>,
    /// Names of the fields that are of cells, see [`Program::of_cells`](crate::Program::of_cells).
    pub of_cells: Vec<String>,
    /// State at the start: shape [vertices × reals], shared ones first; vertices of all parts.
    pub initial: Vec<f64>,
    /// Whether each vertex keeps its state; none does if this is empty.
    pub fixed: Vec<bool>,
    /// Globals at the start; zeros if this is empty.
    pub start: Vec<f64>,
    /// Values of the parameters.
    pub values: Vec<f64>,
    /// The time that a step advances, in seconds; the longest that it may, where it [lasts](TapeStage::Lasts) as long as a global says.
    pub time_step: f64,
    /// Which real of the parameters is the time step as kernels read it: [`AnySimulation::step_until`](crate::AnySimulation::step_until)
    /// shortens a step by it. Without one it shortens none.
    pub time_parameter: Option<usize>,
    /// What a step does.
    pub step: Vec<TapeStage>,
}

#[cfg(feature = "cluster")]
pub(crate) use wire::read;

/// A star as data.
#[derive(Clone, Debug)]
pub struct TapeStar {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub shape: CellKind,
    /// Whether an element is around its last vertex alone: of edges.
    pub is_directed: bool,
    /// Vertices, corner by corner.
    pub elements: Arc<[u32]>,
    /// What the data of an element consists of.
    pub parts: Vec<Part>,
    /// Shape [elements × reals], or [elements × corners × reals] where corners see different data.
    pub data: Arc<[f64]>,
}

/// A kernel as data.
#[derive(Clone, Debug)]
pub struct TapeKernel {
    /// Its name, unlike that of any other kernel of the program.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// What it computes.
    pub formula: Arc<Formula>,
}

/// What a kernel is for, and so what its formula is given and comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new vertex from the old one.
    Map,
    /// A new vertex from the old one and its neighbors; quiet, if it may be left out where nothing has changed.
    Update {
        /// Neither the step nor random numbers change it.
        quiet: bool,
    },
    /// A real for each vertex.
    Measure {
        /// How they are combined.
        combine: Combine,
        /// Label and unit, if it is a metric.
        metric: Option<(String, String)>,
    },
    /// New globals.
    Scalar,
    /// A truth value by globals.
    Test,
}

/// A stage of a step. Kernels have their numbers.
#[allow(missing_docs, reason = "the same three fields in each")]
#[derive(Clone, Debug, PartialEq)]
pub enum TapeStage {
    /// See [`Stages::map`](crate::Stages::map).
    Map { kernel: usize, settings: Vec<f64> },
    /// See [`Stages::sweep`](crate::Stages::sweep).
    Sweep { kernel: usize, settings: Vec<f64>, rounds: usize },
    /// See [`Stages::sweep_backward`](crate::Stages::sweep_backward).
    SweepBackward { kernel: usize, settings: Vec<f64>, rounds: usize },
    /// See [`Stages::jacobi`](crate::Stages::jacobi).
    Jacobi { kernel: usize, settings: Vec<f64>, rounds: usize },
    /// See [`Stages::fixpoint`](crate::Stages::fixpoint).
    Fixpoint { kernel: usize, settings: Vec<f64>, most: usize },
    /// See [`Stages::reduce`](crate::Stages::reduce); into which real of the globals.
    Reduce { kernel: usize, settings: Vec<f64>, into: usize },
    /// See [`Stages::scalar`](crate::Stages::scalar).
    Scalar { kernel: usize, settings: Vec<f64> },
    /// See [`Stages::until`](crate::Stages::until).
    Until { kernel: usize, settings: Vec<f64>, most: usize, repeat: Vec<TapeStage> },
    /// See [`Stages::on`](crate::Stages::on).
    On { part: usize, stages: Vec<TapeStage> },
    /// See [`Stages::lasts`](crate::Stages::lasts); which real of the globals says so.
    Lasts { global: usize },
}

impl Default for TapeProgram {
    fn default() -> TapeProgram {
        TapeProgram {
            name: String::new(),
            shared: Vec::new(),
            private: Vec::new(),
            parameters: Vec::new(),
            globals: Vec::new(),
            stars: Vec::new(),
            kernels: Vec::new(),
            parts: Vec::new(),
            of_cells: Vec::new(),
            initial: Vec::new(),
            fixed: Vec::new(),
            start: Vec::new(),
            values: Vec::new(),
            time_step: 1.0,
            time_parameter: None,
            step: Vec::new(),
        }
    }
}

impl Default for TapeStar {
    /// Edges, of which there are none.
    fn default() -> TapeStar {
        TapeStar {
            name: String::new(),
            shape: CellKind::Edge,
            is_directed: false,
            elements: Arc::default(),
            parts: Vec::new(),
            data: Arc::default(),
        }
    }
}

impl Purpose {
    fn role(&self) -> Role {
        match *self {
            Purpose::Map => Role::Map,
            Purpose::Update { quiet } => Role::Update { is_quiet: quiet },
            Purpose::Measure { combine, .. } => Role::Measure(combine),
            Purpose::Scalar => Role::Scalar,
            Purpose::Test => Role::Test,
        }
    }
}

impl TapeProgram {
    /// Its records and kernels for a number type.
    ///
    /// # Errors
    /// What does not fit together, by name.
    pub(crate) fn table<T: Number>(&self) -> Result<Table<T>> {
        self.check_sizes()?;
        let records = Records::of_parts([&self.shared, &self.private, &self.parameters, &self.globals]);
        if let Some(fault) = &records.fault {
            return Err(Error::Program(fault.clone()));
        }
        for kernel in &self.kernels {
            self.check(kernel, &records).map_err(|why| Error::Program(format!("kernel {} {why}", kernel.name)))?;
        }
        let kernels = self.kernels.iter().map(|kernel| {
            let metric = match &kernel.purpose {
                Purpose::Measure { metric: Some((label, unit)), .. } => Some((lasting(label), lasting(unit))),
                _ => None,
            };
            (lasting(&kernel.name), kernel.purpose.role(), kernel.formula.clone(), metric)
        });
        let table = Table::of_formulas(lasting(&self.name), records, kernels)?;
        #[cfg(feature = "cluster")]
        let table = Table { data: wire::write(self).into(), ..table };
        Ok(table)
    }

    /// Whether its records are of ordinary size, and its names can stand in a line: what follows counts on it.
    ///
    /// # Errors
    /// What is not.
    fn check_sizes(&self) -> Result<()> {
        /// Reals of a record.
        const MOST: usize = 1 << 16;
        let names = |parts: &[Part]| parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>();
        let mut all = vec![self.name.clone()];
        let records = [&self.shared, &self.private, &self.parameters, &self.globals];
        for parts in records.into_iter().chain(self.stars.iter().map(|star| &star.parts)) {
            let reals = parts.iter().try_fold(0, |sum: usize, part| sum.checked_add(part.components));
            if reals.is_none_or(|reals| reals > MOST) {
                return Err(Error::Program(format!("a record of {} has more than {MOST} numbers", self.name)));
            }
            all.extend(names(parts));
        }
        all.extend(self.stars.iter().map(|star| star.name.clone()));
        all.extend(self.kernels.iter().map(|kernel| kernel.name.clone()));
        let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        match all.iter().find(|name| name.contains(breaks)) {
            Some(name) => {
                Err(Error::Program(format!("{name:?} has a letter that no line can hold: take another name")))
            }
            None => Ok(()),
        }
    }

    /// Numbers of reals of its state.
    fn reals(&self) -> usize {
        self.shared.iter().chain(&self.private).map(|part| part.components).sum()
    }

    /// Whether a formula reads what there is, and comes to what it is for.
    fn check(&self, kernel: &TapeKernel, records: &Records) -> std::result::Result<(), String> {
        let [shared, private, parameters, globals] = records.lengths();
        let Formula { tape, outputs, .. } = &*kernel.formula;
        let (is_of_vertex, looks_around) = match kernel.purpose {
            Purpose::Map => (true, false),
            Purpose::Update { .. } | Purpose::Measure { .. } => (true, true),
            Purpose::Scalar | Purpose::Test => (false, false),
        };
        if kernel.formula.is_open() {
            return Err("has a loop over elements that does not end".into());
        }
        if !(tape.folds.is_empty() || looks_around) {
            return Err("looks at neighbors, which an update or a measure may".into());
        }
        for id in 0..tape.len() {
            let Node::Input(input, k) = tape.node(id) else { continue };
            let given = match input {
                Input::Parameters => parameters,
                Input::Globals => globals,
                Input::Settings => SETTINGS,
                Input::Shared if is_of_vertex => shared,
                Input::Private if is_of_vertex => private,
                Input::Vertex if is_of_vertex => 1,
                Input::Shared | Input::Private | Input::Vertex => {
                    return Err("looks at a vertex, but runs once for the whole mesh".into());
                }
                Input::Step | Input::Draw => 1,
                Input::Other { .. } => shared,
                // Formulas know how much there is of it.
                Input::Data { .. } => usize::MAX,
            };
            if k >= given {
                return Err(format!("reads number {k} of {input:?}, of which there are {given}"));
            }
        }
        let wanted = match kernel.purpose {
            Purpose::Map | Purpose::Update { .. } => shared + private,
            Purpose::Measure { .. } | Purpose::Test => 1,
            Purpose::Scalar => globals,
        };
        if outputs.len() != wanted {
            return Err(format!("comes to {} numbers where there are {wanted}", outputs.len()));
        }
        let kind = if kernel.purpose == Purpose::Test { Type::Truth } else { Type::Real };
        match outputs.iter().map(|&id| tape.type_of(id)).find(|&found| found != kind) {
            Some(found) => Err(format!("comes to {} where {} is", found.name(), kind.name())),
            None => Ok(()),
        }
    }

    /// Whether it has as many values as it says.
    ///
    /// # Errors
    /// What there are too many or too few of.
    pub(crate) fn check_values(&self, mesh: &Mesh) -> Result<()> {
        let vertices = mesh.points().len() + self.parts.iter().map(Vec::len).sum::<usize>();
        let count = |parts: &[Part]| parts.iter().map(|part| part.components).sum::<usize>();
        let lengths = [
            ("values of the initial state", self.initial.len(), vertices * self.reals()),
            ("values of parameters", self.values.len(), count(&self.parameters)),
            ("marks of vertices that are fixed", self.fixed.len(), if self.fixed.is_empty() { 0 } else { vertices }),
            ("globals at the start", self.start.len(), if self.start.is_empty() { 0 } else { count(&self.globals) }),
        ];
        let kinds = Fields(self.parameters.clone()).kinds();
        if let Some(place) = self.time_parameter.filter(|&place| kinds.get(place) != Some(&Kind::Real)) {
            let count = kinds.len();
            return Err(Error::Invalid(format!(
                "the time step is number {place} of the parameters, of which there are {count}, and that is no real"
            )));
        }
        if let Some((what, given, wanted)) = lengths.into_iter().find(|(_, given, wanted)| given != wanted) {
            return Err(Error::Invalid(format!("{given} {what} were given, {wanted} are needed")));
        }
        for star in &self.stars {
            let (corners, reals) = (star.shape.corners(), count(&star.parts));
            if star.elements.len() % corners != 0 {
                return Err(Error::Invalid(format!(
                    "star {} has {} vertices, which are no elements of {corners} each",
                    star.name,
                    star.elements.len()
                )));
            }
            let elements = star.elements.len() / corners;
            if ![elements * reals, elements * corners * reals].contains(&star.data.len()) {
                return Err(Error::Invalid(format!(
                    "star {} has {elements} elements with {reals} reals each, and {} values",
                    star.name,
                    star.data.len()
                )));
            }
        }
        Ok(())
    }
}

impl TapeStar {
    fn plan(&self, index: usize) -> StarPlan {
        let (corners, shape, data) = (self.shape.corners(), self.shape, self.data.clone());
        let reals: usize = self.parts.iter().map(|part| part.components).sum();
        let kinds: Vec<Kind> = Fields(self.parts.clone()).kinds();
        let (elements, of) = (self.elements.len() / corners, kinds.clone());
        let is_by_corner = data.len() != elements * reals;
        StarPlan {
            index,
            name: lasting(&self.name),
            corners,
            shape,
            around: if self.is_directed { Around::Last } else { Around::All },
            is_searched: false,
            changes: false,
            lasts: false,
            near: Vec::new(),
            lists: Box::new(self.elements.clone()),
            data_len: reals,
            parts: self.parts.iter().map(|part| (part.name.clone(), part.components)).collect(),
            kinds,
            data: Box::new(move |_, incidences, out| {
                for &incidence in incidences {
                    let row = incidence as usize / if is_by_corner { 1 } else { corners };
                    let values = &data[row * reals..][..reals];
                    out.extend(values.iter().zip(&of).map(|(&x, kind)| kind.encode::<f64>(x)));
                }
            }),
        }
    }
}

impl<T: Number> AnyProgram<T> for TapeProgram {
    fn time_step(&self) -> f64 {
        self.time_step
    }

    fn set_time_step(&mut self, dt: f64) -> bool {
        // What kernels know of it is in parameters, which else look like all others.
        let place = self.time_parameter.filter(|_| T::PRECISION != Precision::I32);
        let Some(value) = place.and_then(|place| self.values.get_mut(place)) else { return false };
        (*value, self.time_step) = (dt, dt);
        true
    }

    fn parameters(&self, _time: f64) -> Vec<T> {
        encode(&self.parameters, &self.values)
    }

    fn globals(&self) -> Vec<T> {
        match self.start.is_empty() {
            true => encode(&self.globals, &vec![0.0; Fields(self.globals.clone()).len()]),
            false => encode(&self.globals, &self.start),
        }
    }

    fn parts(&self, _: &Mesh) -> Vec<Vec<[f64; 3]>> {
        self.parts.clone()
    }

    fn of_cells(&self) -> Vec<String> {
        self.of_cells.clone()
    }

    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        self.check_values(mesh)?;
        stars.plans.extend(self.stars.iter().enumerate().map(|(index, star)| star.plan(index)));
        Ok(())
    }

    fn renew<'a>(&self, _: &Mesh, found: Found<'a>) -> Result<Found<'a>> {
        Ok(found)
    }

    fn initial(&self, _: &Mesh, v: u32, reals: &mut Vec<T>) {
        let kinds = self.shared.iter().chain(&self.private);
        let kinds = kinds.flat_map(|part| std::iter::repeat_n(part.kind, part.components));
        let values = &self.initial[v as usize * self.reals()..][..self.reals()];
        reals.extend(values.iter().zip(kinds).map(|(&x, kind)| kind.encode::<T>(x)));
    }

    fn fixed(&self, _: &Mesh, v: u32) -> bool {
        self.fixed.get(v as usize).copied().unwrap_or(false)
    }

    fn step(&self, mut list: StageList) -> StageList {
        self.tell(&self.step, &mut list);
        list
    }
}

impl TapeProgram {
    /// That real of the globals, if there is one.
    fn global(&self, place: usize) -> Option<usize> {
        Some(place).filter(|&place| place < Fields(self.globals.clone()).len())
    }

    fn tell(&self, stages: &[TapeStage], list: &mut StageList) {
        /// Whether a kernel is for what a stage does with it.
        type Fits = fn(&Purpose) -> bool;
        let named = |kernel: usize, settings: &[f64]| Named {
            name: self.kernels.get(kernel).map_or("?", |kernel| lasting(&kernel.name)),
            id: KernelId::At(kernel),
            settings: settings.to_vec(),
        };
        for stage in stages {
            let wanted: Option<(usize, Fits)> = match stage {
                TapeStage::Map { kernel, .. } => Some((*kernel, |purpose| *purpose == Purpose::Map)),
                TapeStage::Sweep { kernel, .. }
                | TapeStage::SweepBackward { kernel, .. }
                | TapeStage::Jacobi { kernel, .. }
                | TapeStage::Fixpoint { kernel, .. } => {
                    Some((*kernel, |purpose| matches!(purpose, Purpose::Update { .. })))
                }
                TapeStage::Reduce { kernel, .. } => {
                    Some((*kernel, |purpose| matches!(purpose, Purpose::Measure { .. })))
                }
                TapeStage::Scalar { kernel, .. } => Some((*kernel, |purpose| *purpose == Purpose::Scalar)),
                TapeStage::Until { kernel, .. } => Some((*kernel, |purpose| *purpose == Purpose::Test)),
                TapeStage::On { .. } | TapeStage::Lasts { .. } => None,
            };
            if let Some((kernel, fits)) = wanted {
                let Some(of) = self.kernels.get(kernel) else {
                    let count = self.kernels.len();
                    return list.refuse(format!("a step uses kernel number {kernel}, of which there are {count}"));
                };
                if !fits(&of.purpose) {
                    return list.refuse(format!("a step uses kernel {}, which is for something else", of.name));
                }
            }
            match stage {
                TapeStage::On { part, stages } => {
                    let before = list.turn_to(*part);
                    self.tell(stages, list);
                    list.part = before;
                }
                TapeStage::Lasts { global } => list.lasts(self.global(*global)),
                TapeStage::Map { kernel, settings } => list.update(named(*kernel, settings), Rule::Alone, 1),
                TapeStage::Sweep { kernel, settings, rounds } => {
                    list.update(named(*kernel, settings), Rule::InOrder, *rounds);
                }
                TapeStage::SweepBackward { kernel, settings, rounds } => {
                    list.update(named(*kernel, settings), Rule::Backward, *rounds);
                }
                TapeStage::Jacobi { kernel, settings, rounds } => {
                    list.update(named(*kernel, settings), Rule::AtOnce, *rounds);
                }
                TapeStage::Fixpoint { kernel, settings, most } => {
                    let purpose = self.kernels.get(*kernel).map(|kernel| &kernel.purpose);
                    let is_quiet = purpose == Some(&Purpose::Update { quiet: true });
                    list.fixpoint(named(*kernel, settings), is_quiet, *most);
                }
                TapeStage::Reduce { kernel, settings, into } => {
                    list.reduce(named(*kernel, settings), self.global(*into));
                }
                TapeStage::Scalar { kernel, settings } => list.scalar(named(*kernel, settings)),
                TapeStage::Until { kernel, settings, most, repeat } => {
                    let outside = list.begin();
                    self.tell(repeat, list);
                    list.until(named(*kernel, settings), *most, outside);
                }
            }
        }
    }
}

fn encode<T: Number>(parts: &[Part], values: &[f64]) -> Vec<T> {
    let kinds = parts.iter().flat_map(|part| std::iter::repeat_n(part.kind, part.components));
    values.iter().zip(kinds).map(|(&x, kind)| kind.encode(x)).collect()
}
