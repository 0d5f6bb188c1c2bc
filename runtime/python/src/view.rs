//! The live view of a simulation: a page in the browser that follows its steps.
//!
//! While steps are taken, whoever takes them asks the view what is next between two of them. Between calls of `step` a thread of the view
//! does, so that a page can be opened, and fields be looked at, at any time. Locks are taken in this order: simulation, view.

use crate::error::Error;
use meshweft::AnySimulation;
use meshweft_mesh::{Field, Means, Shown};
use meshweft_picture::ColorMap;
use meshweft_view::{Config, Frame, Metric, Model, Quantity, Shape, Turn, View, Wanted, fields_of};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A simulation that several threads share.
pub(crate) type Shared = Arc<Mutex<Box<dyn AnySimulation>>>;

/// How often pages get to see a simulation that takes no steps.
const LOOK: Duration = Duration::from_millis(100);

/// A view, and what it shows.
pub(crate) struct Watch {
    view: Mutex<View>,
    pub(crate) url: String,
    name: String,
    /// The field that colors at first, and the one that has the places of the points.
    color: Option<String>,
    positions: Option<String>,
    /// Of the fields that a page may choose, those of the mesh: they stay.
    still: Vec<Field>,
    /// What shows the cells that vertices stand for, and fields of cells.
    shown: Option<Shown>,
    means: Option<Means>,
    /// Calls of `step` that are under way.
    stepping: AtomicUsize,
}

/// A call of `step`, until it ends.
pub(crate) struct Stepping<'a>(&'a Watch);

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        self.0.stepping.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Watch {
    /// Serves a page to this machine alone.
    pub(crate) fn start(shared: &Shared, name: String, color: Option<String>, is_framed: bool) -> PyResult<Arc<Watch>> {
        let view = View::start(&Config { is_framed, ..Config::default() })
            .map_err(|error| Error::new_err(error.to_string()))?;
        let simulation = shared.lock();
        let state = simulation.fields();
        let positions = state
            .iter()
            .find(|part| part.name == "position" && part.components == 3 && !simulation.is_of_cells(&part.name));
        let is_of_mesh = |field: &Field| state.iter().all(|part| part.name != field.name);
        let watch = Watch {
            url: view.url().to_string(),
            view: Mutex::new(view),
            name,
            color,
            positions: positions.map(|part| part.name.clone()),
            shown: if positions.is_some() { None } else { simulation.mesh().shown(false) },
            means: state
                .iter()
                .any(|part| simulation.is_of_cells(&part.name))
                .then(|| Means::at_points(simulation.mesh())),
            still: fields_of(simulation.mesh()).into_iter().filter(is_of_mesh).collect(),
            stepping: AtomicUsize::new(0),
        };
        let watch = Arc::new(watch);
        let (shared, served) = (Arc::downgrade(shared), Arc::downgrade(&watch));
        let serve = move || while serve(&shared, &served).is_some() {};
        std::thread::Builder::new().name("view of Python".into()).spawn(serve)?;
        Ok(watch)
    }

    /// Marks a call of `step`.
    pub(crate) fn stepping(&self) -> Stepping<'_> {
        self.stepping.fetch_add(1, Ordering::AcqRel);
        Stepping(self)
    }

    /// Hands over what pages want, and says whether a step may be taken: otherwise it has waited for a moment.
    pub(crate) fn may_step(&self, simulation: &mut dyn AnySimulation) -> bool {
        loop {
            let turn = self.view.lock().turn();
            match turn {
                Turn::Step => return true,
                Turn::Wait => return false,
                asked => self.answer(&asked, simulation),
            }
        }
    }

    fn answer(&self, turn: &Turn, simulation: &mut dyn AnySimulation) {
        match turn {
            Turn::Describe => {
                let model = self.describe(simulation);
                self.view.lock().describe(model);
            }
            Turn::Show(wanted) => {
                let (step, time) = (simulation.steps(), simulation.time());
                let trouble = |error: meshweft::Error| Frame { trouble: Some(error.to_string()), ..Frame::default() };
                let frame = self.frame(wanted, simulation).unwrap_or_else(trouble);
                self.view.lock().show(Frame { step, time, ..frame });
            }
            // Parameters of a program in Python are its attributes: the page has none to set.
            Turn::Step | Turn::Set(_) | Turn::Wait => {}
        }
    }

    fn describe(&self, simulation: &mut dyn AnySimulation) -> Model {
        let quantity = |name: &str, components| Quantity { name: name.into(), label: name.into(), components };
        let (state, moves) = (simulation.fields(), self.positions.is_some());
        let of_state = state.iter().map(|part| quantity(&part.name, part.components));
        let of_mesh = self.still.iter().map(|field| quantity(&field.name, field.components));
        let fields: Vec<Quantity> = of_state.chain(of_mesh).collect();
        // What moves is seen without colors.
        let first = || state.iter().find(|part| part.components == 1 && !moves).map(|part| part.name.clone());
        let color = self.color.clone().or_else(first);
        let values = color.as_ref().and_then(|name| simulation.field(name).ok()).map(|field| field.values);
        let values = values.unwrap_or_default();
        let signed = values.iter().any(|x| *x < 0.0) && values.iter().any(|x| *x > 0.0);
        // A run that has diverged measures nothing.
        let metrics = simulation.metrics().unwrap_or_default();
        let mesh = self.shown.as_ref().map_or(simulation.mesh(), |shown| &shown.mesh);
        Model {
            name: self.name.clone(),
            about: format!("{} in {}", simulation.order(), simulation.precision()),
            color: color.and_then(|name| fields.iter().position(|field| field.name == name)),
            fields,
            map: if signed { ColorMap::Coolwarm } else { ColorMap::Viridis },
            metrics: metrics.iter().map(|m| Metric { name: m.name.into(), unit: m.unit.into() }).collect(),
            moves,
            points: self.points(simulation).unwrap_or_else(|_| mesh.points().to_vec()),
            shape: Shape::of(mesh),
            cells: mesh.cells().len(),
            ..Model::default()
        }
    }

    /// Where the points are.
    fn points(&self, simulation: &dyn AnySimulation) -> meshweft::Result<Vec<[f64; 3]>> {
        let drawn = self.shown.as_ref().map_or(simulation.mesh(), |shown| &shown.mesh);
        let Some(positions) = &self.positions else { return Ok(drawn.points().to_vec()) };
        Ok(simulation.field(positions)?.values.as_chunks().0.to_vec())
    }

    fn frame(&self, wanted: &Wanted, simulation: &mut dyn AnySimulation) -> meshweft::Result<Frame> {
        let state = simulation.fields();
        let mut fields = Vec::with_capacity(wanted.fields.len());
        for &place in &wanted.fields {
            let field = match state.get(place) {
                Some(part) => Some(simulation.field(&part.name)?),
                None => self.still.get(place - state.len()).cloned(),
            };
            let drawn = |field: Field| {
                let of_cells = self.means.as_ref().filter(|_| simulation.is_of_cells(&field.name));
                let means = self.shown.as_ref().map(|shown| &shown.means).or(of_cells);
                means.map_or_else(|| field.values.clone(), |means| means.of(&field).values)
            };
            fields.extend(field.map(|field| (place, drawn(field))));
        }
        let points = if self.positions.is_some() { self.points(simulation)? } else { Vec::new() };
        let clock = Instant::now();
        let measured = if wanted.metrics { simulation.metrics() } else { Ok(Vec::new()) };
        let measuring = clock.elapsed();
        let trouble = measured.as_ref().err().map(meshweft::Error::to_string);
        let metrics = measured.unwrap_or_default().iter().map(|metric| metric.value).collect();
        Ok(Frame { points, fields, metrics, measuring, trouble, ..Frame::default() })
    }
}

/// Shows a simulation that takes no steps. Nothing once it, or its view, is gone.
fn serve(shared: &Weak<Mutex<Box<dyn AnySimulation>>>, watch: &Weak<Watch>) -> Option<()> {
    std::thread::sleep(LOOK);
    let watch = watch.upgrade()?;
    while watch.stepping.load(Ordering::Acquire) == 0 {
        let turn = watch.view.lock().turn();
        if matches!(turn, Turn::Step | Turn::Wait) {
            break;
        }
        watch.answer(&turn, &mut **shared.upgrade()?.lock());
    }
    Some(())
}
