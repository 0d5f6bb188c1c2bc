//! `meshweft view`: a mesh file or a series of states in a page of the browser.

use super::console::{Console, Outcome};
use super::options::at_least;
use super::{memory, meshes, watch};
use anyhow::Result;
use clap::Args;
use meshweft_mesh::{Cells, Field, Mesh};
use meshweft_picture::ColorMap;
use meshweft_view::{Config, Frame, History, Model, Quantity, Series, Shape, Span, Turn, Wanted, fields_of};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

/// What to show, and where.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// A mesh file or generator, or a series of states, NAME.pvd
    #[arg(value_name = "FILE")]
    file: OsString,
    /// The address of the page; anything but this machine alone lets others in who have the whole address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = watch::HERE, value_parser = watch::address)]
    address: SocketAddr,
    /// Seed of mesh generators that use random numbers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least::<0>)]
    seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  meshweft view out/EXAMPLE/EXAMPLE.pvd     the states of a run, with a slider over time
  meshweft view part.msh                    a mesh with its fields
  meshweft view ball:20                     a generated mesh";

/// Serves the page until a signal comes.
pub(super) fn run(arguments: &Arguments, console: &mut Console) -> Result<Outcome> {
    let path = Path::new(&arguments.file);
    let is_series = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("pvd"));
    let series = if is_series { Some(Series::open(path)?) } else { None };
    let first = match &series {
        Some(series) => series.read(0)?,
        None => meshes::open(&arguments.file, arguments.seed, memory::MESH, console.err)?,
    };
    let history = if is_series { History::beside(path) } else { Ok(None) };
    let history = history.unwrap_or_else(|error| {
        let _ = writeln!(console.err, "warning: {error}: no curves are shown");
        None
    });
    let history = history.unwrap_or_default();
    let mut states = States { history, ..States::new(arguments.file.to_string_lossy().into_owned(), first, series) };
    console.signals.make_stoppable();
    let (mut view, _door) =
        watch::open(&Config { address: arguments.address, steps: false, is_framed: false }, console)?;
    writeln!(console.err, "Ctrl-C ends it")?;
    while console.signals.count() == 0 {
        match view.turn() {
            Turn::Describe => view.describe(states.describe()),
            Turn::Show(wanted) => {
                let frame = states.frame(&wanted);
                if let Some(model) = states.changed() {
                    view.describe(model);
                }
                view.show(frame);
            }
            Turn::Step | Turn::Set(_) | Turn::Wait => {}
        }
    }
    view.end("this view was ended");
    Ok(Outcome::Done)
}

/// A mesh, or a series of states of it.
struct States {
    name: String,
    first: Mesh,
    series: Option<Series>,
    /// Whether the last state has the points elsewhere.
    moves: bool,
    /// Names and components of the fields of the first state.
    fields: Vec<(String, usize)>,
    /// The last one that was read, and its place.
    at: usize,
    read: Result<(Mesh, Vec<Field>), String>,
    /// The cells that pages know.
    known: Cells,
    /// What its run has measured.
    history: History,
}

impl States {
    fn new(name: String, first: Mesh, series: Option<Series>) -> States {
        let all = fields_of(&first);
        let fields = all.iter().map(|field| (field.name.clone(), field.components)).collect();
        let last = series.as_ref().and_then(|series| series.read(series.states().len() - 1).ok());
        let is_same = |last: &Mesh| last.points().len() == first.points().len();
        let moves = last.filter(is_same).is_some_and(|last| last.points() != first.points());
        let (read, known) = (Ok((first.clone(), all)), first.cells().clone());
        let history = History::default();
        States { name, first, series, moves, fields, at: 0, read, known, history }
    }

    /// What there is to see now, if the state that was shown last has other cells than the one before.
    fn changed(&mut self) -> Option<Model> {
        let cells = self.read.as_ref().ok()?.0.cells();
        if *cells == self.known {
            return None;
        }
        self.known = cells.clone();
        Some(self.describe())
    }

    fn describe(&self) -> Model {
        let quantity = |(name, components): &(String, usize)| Quantity {
            name: name.clone(),
            label: name.clone(),
            components: *components,
        };
        let times = self.series.iter().flat_map(Series::states).map(|state| state.time).collect();
        Model {
            name: Path::new(&self.name)
                .file_name()
                .map_or(self.name.clone(), |name| name.to_string_lossy().into_owned()),
            about: self.name.clone(),
            fields: self.fields.iter().map(quantity).collect(),
            // What moves is seen without colors.
            color: self.fields.iter().position(|(_, components)| *components == 1).filter(|_| !self.moves),
            map: ColorMap::Viridis,
            metrics: self.history.metrics.clone(),
            history: self.history.lines.clone(),
            moves: self.series.is_some(),
            points: self.first.points().to_vec(),
            shape: self
                .first
                .with_cells(self.known.clone())
                .map_or_else(|_| Shape::of(&self.first), |mesh| Shape::of(&mesh)),
            cells: self.known.len(),
            span: Span::States(if self.series.is_some() { times } else { vec![0.0] }),
            ..Model::default()
        }
    }

    fn frame(&mut self, wanted: &Wanted) -> Frame {
        let count = self.series.as_ref().map_or(1, |series| series.states().len());
        let at = wanted.at.min(count - 1);
        if let Some(series) = self.series.as_ref().filter(|_| at != self.at) {
            (self.at, self.read) = (at, read(series, at, &self.first));
        }
        let time = self.series.as_ref().map_or(0.0, |series| series.states()[at].time);
        let frame = Frame { step: at as u64, time, ..Frame::default() };
        let (mesh, all) = match &self.read {
            Ok(read) => read,
            Err(trouble) => return Frame { trouble: Some(trouble.clone()), ..frame },
        };
        let found = |&place: &usize| {
            let (name, components) = self.fields.get(place)?;
            let field = all.iter().find(|field| field.name == *name && field.components == *components)?;
            Some((place, field.values.clone()))
        };
        let moved = if self.series.is_some() { mesh.points().to_vec() } else { Vec::new() };
        Frame { points: moved, fields: wanted.fields.iter().filter_map(found).collect(), ..frame }
    }
}

/// Reads a state, which must have as many points as the first one; what comes apart has other cells.
fn read(series: &Series, at: usize, first: &Mesh) -> Result<(Mesh, Vec<Field>), String> {
    let mesh = series.read(at).map_err(|error| error.to_string())?;
    let (points, wanted) = (mesh.points().len(), first.points().len());
    if points != wanted {
        return Err(format!("state {} has {points} points, the first one {wanted}: view its file alone", at + 1));
    }
    let fields = fields_of(&mesh);
    Ok((mesh, fields))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::{CellKind, generate::generate, io};

    #[test]
    fn a_series_is_shown_state_by_state_and_what_is_wrong_with_one_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let mut list = String::new();
        for (i, spec) in ["sheet:4", "sheet:4", "sheet:5"].into_iter().enumerate() {
            let mut mesh = generate(spec, 1).unwrap();
            let values = vec![i as f64; mesh.points().len()];
            mesh.set_point_field(Field { name: "level".into(), components: 1, values }).unwrap();
            io::write(&folder.path().join(format!("{i}.vtu")), &mesh).unwrap();
            list += &format!("<DataSet timestep=\"{i}.5\" file=\"{i}.vtu\"/>");
        }
        let path = folder.path().join("all.pvd");
        std::fs::write(&path, format!("<VTKFile><Collection>{list}</Collection></VTKFile>")).unwrap();
        let series = Series::open(&path).unwrap();
        std::fs::write(path.with_extension("csv"), "step,time_s,level (m)\n0,0.5,0\n1,1.5,1\n").unwrap();
        let history = History::beside(&path).unwrap().unwrap();
        let states = States::new("all.pvd".into(), series.read(0).unwrap(), Some(series));
        let mut states = States { history, ..states };
        let model = states.describe();
        assert_eq!((model.metrics[0].unit.as_str(), &model.history[1]), ("m", &(1.5, vec![1.0])));
        assert_eq!((model.color, model.moves), (Some(0), true));
        let mut show = |at| states.frame(&Wanted { fields: vec![0, 9], metrics: true, at });
        let second = show(1);
        assert_eq!((second.time, second.fields, second.points.len()), (1.5, vec![(0, vec![1.0; 16])], 16));
        assert!(show(2).trouble.unwrap().contains("state 3 has 25 points, the first one 16"));
        assert_eq!(show(0).fields[0].1[0], 0.0);
        assert_eq!(show(99).step, 2);
        // What comes apart.
        let torn = states.first.cells().all_corners()[3..].to_vec();
        let mut mesh = Mesh::new(states.first.points().to_vec(), Cells::of(CellKind::Triangle, torn)).unwrap();
        mesh.set_point_field(Field { name: "level".into(), components: 1, values: vec![2.0; 16] }).unwrap();
        io::write(&folder.path().join("2.vtu"), &mesh).unwrap();
        assert!(states.changed().is_none());
        assert_eq!(states.frame(&Wanted { fields: vec![0], metrics: false, at: 0 }).trouble, None);
        assert_eq!(states.frame(&Wanted { fields: vec![0], metrics: false, at: 2 }).fields[0].1, [2.0; 16]);
        assert_eq!(states.changed().unwrap().cells, mesh.cells().len());
        assert!(states.changed().is_none());
    }
}
