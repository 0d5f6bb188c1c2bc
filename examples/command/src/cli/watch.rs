//! The live view of a run: between two steps it hands over what pages want to see.

use super::changes::Changes;
use super::console::Console;
use super::hosts;
use crate::{Run, Setting};
use anyhow::{Context, Result};
use meshweft_mesh::{Cells, Field, Mesh};
use meshweft_view::{Config, Dial, Frame, Metric, Model, Quantity, Shape, Turn, View, Wanted, fields_of};
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// What the address is unless another is stated: a free port that only this machine reaches.
pub(super) const HERE: &str = "127.0.0.1:0";
/// How long a run that was started on a terminal waits for its first page: a short one would be over before somebody looks.
const WELCOME: Duration = Duration::from_secs(30);
/// How long a run that is over waits for a page that is loaded anew.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time from one table of hosts to the next.
const BETWEEN_TABLES: Duration = Duration::from_secs(1);
/// The name of the field that says which host has a vertex.
const HOST: &str = "host";

/// Reads an address, with or without a port.
pub(super) fn address(word: &str) -> Result<SocketAddr, String> {
    let alone = || word.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
    word.parse().or_else(|_| alone()).map_err(|_| {
        "take an address of this machine, as in 127.0.0.1:8080 or 0.0.0.0; what is to be shown comes before it".into()
    })
}

/// Serves a page and says where; on a terminal, opens it in the browser. What is returned beside the view holds the way there.
pub(super) fn open(config: &Config, console: &mut Console) -> Result<(View, Option<NamedTempFile>)> {
    let view = View::start(config)?;
    writeln!(console.err, "view: {}", view.url())?;
    if !config.address.ip().is_loopback() {
        let warning = "others can reach this view, and what it sends is not encrypted: whoever has the address may watch, pause and set";
        writeln!(console.err, "warning: {warning}")?;
    }
    let door = if console.terminal { browse(view.url()) } else { None };
    if console.terminal && config.steps && !view.wait_for_page(WELCOME) {
        writeln!(console.err, "nobody has opened it yet: going on")?;
    }
    Ok((view, door))
}

/// Has the browser open an address, if there is one. Arguments of a process can be read by all users, so what it is given is a file
/// of this user's that leads there.
fn browse(url: &str) -> Option<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("meshweft-view-").suffix(".html").tempfile().ok()?;
    write!(file, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\">").ok()?;
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let mut command = match () {
        () if cfg!(target_os = "macos") => std::process::Command::new("open"),
        () if cfg!(windows) => std::process::Command::new("explorer"),
        () if has_screen => std::process::Command::new("xdg-open"),
        () => return None,
    };
    let quiet = std::process::Stdio::null;
    let mut opener = command.arg(file.path()).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().ok()?;
    std::thread::spawn(move || opener.wait());
    Some(file)
}

/// The view of a run, if it has one.
pub(super) struct Watch {
    view: Option<(View, Option<NamedTempFile>)>,
    about: String,
    /// Of the fields that a page may choose, those of the mesh: they stay.
    still: Vec<Field>,
    /// What pages were told that there is, with the corners of its cells, where those change.
    described: Option<(Model, Vec<u32>)>,
    /// When pages were last told of hosts.
    told: Option<Instant>,
    /// The settings of the run, which pages may change.
    pub(super) changes: Changes,
}

impl Watch {
    /// Starts to serve, if an address says where. `about` is what the page says of the run.
    pub(super) fn start(
        address: Option<SocketAddr>,
        about: String,
        changes: Changes,
        console: &mut Console,
    ) -> Result<Watch> {
        let open = |address| open(&Config { address, ..Config::default() }, console);
        Ok(Watch {
            view: address.map(open).transpose()?,
            about,
            still: Vec::new(),
            described: None,
            told: None,
            changes,
        })
    }

    /// Hands over what pages want, and waits while they want the run to. Returns whether it may take a step: not after a signal.
    pub(super) fn may_step(&mut self, name: &str, run: &mut Run, console: &mut Console) -> Result<bool> {
        while self.view.is_some() {
            match self.turn(name, run)? {
                Some(Turn::Step) => return Ok(true),
                Some(Turn::Set(wanted)) => self.set(&wanted, run, console),
                _ if console.signals.count() > 0 => return Ok(false),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Shows the last state, after which there is none.
    pub(super) fn end(&mut self, name: &str, run: &mut Run) -> Result<()> {
        let steps = run.steps();
        let Some((view, _)) = &mut self.view else { return Ok(()) };
        view.end(&format!("the run is over, after {steps} steps"));
        let end = Instant::now() + Duration::from_millis(200);
        while self.pages() > 0 && Instant::now() < end {
            self.turn(name, run)?;
        }
        Ok(())
    }

    /// Tells pages of what has ended the run.
    pub(super) fn fail(&mut self, error: &anyhow::Error) {
        if let Some((view, _)) = &mut self.view {
            view.end(&format!("the run has stopped: {error:#}"));
        }
    }

    /// Stays as long as a page is open, so that the last state can be looked at from all sides.
    pub(super) fn stay(&mut self, name: &str, run: &mut Run, console: &mut Console) -> Result<()> {
        if self.pages() == 0 {
            return Ok(());
        }
        writeln!(console.err, "the page is still open: the command ends when it is closed, or by Ctrl-C")?;
        console.out.flush()?;
        let (signals, mut seen) = (console.signals.count(), Instant::now());
        while console.signals.count() == signals && seen.elapsed() < PATIENCE {
            self.turn(name, run)?;
            if self.pages() > 0 {
                seen = Instant::now();
            }
        }
        Ok(())
    }

    /// Changes settings, and tells pages and people of it.
    fn set(&mut self, wanted: &[(usize, f64)], run: &mut Run, console: &mut Console) {
        let mut refused = None;
        for &(place, to) in wanted {
            match self.changes.set(place, to, run) {
                Ok(line) => line.iter().for_each(|line| drop(writeln!(console.err, "changed: {line}"))),
                Err(error) => refused = Some(format!("{error:#}")),
            }
        }
        let values = self.changes.live(run).iter().map(|&(_, _, value)| value).collect();
        if let Some((view, _)) = &mut self.view {
            view.set(values, refused);
        }
    }

    fn pages(&self) -> usize {
        self.view.as_ref().map_or(0, |(view, _)| view.pages())
    }

    /// Asks the view what is next, and does it unless it is a step.
    fn turn(&mut self, name: &str, run: &mut Run) -> Result<Option<Turn>> {
        let Some((view, _)) = &mut self.view else { return Ok(None) };
        let turn = view.turn();
        match &turn {
            Turn::Describe => {
                (self.still, self.told) = (still(run), None);
                let dial = |&(setting, unit, value): &(&Setting, &str, f64)| Dial {
                    name: setting.name.into(),
                    about: setting.about.into(),
                    unit: unit.into(),
                    value,
                };
                let dials = self.changes.live(run).iter().map(dial).collect();
                let model = Model { dials, ..describe(name, &self.about, &self.still, run)? };
                self.described = cells(run)?.map(|cells| (model.clone(), cells.all_corners().to_vec()));
                view.describe(model);
            }
            Turn::Show(wanted) => {
                // Before the state is asked for, for which all hosts take all steps.
                let is_time = self.told.is_none_or(|told| told.elapsed() >= BETWEEN_TABLES);
                let hosts = if is_time { run.hosts() } else { Vec::new() };
                let table = if hosts.is_empty() { Vec::new() } else { hosts::now(&hosts, run.steps()) };
                if !table.is_empty() {
                    self.told = Some(Instant::now());
                }
                if let (Some((model, corners)), Some(cells)) = (&mut self.described, cells(run)?)
                    && cells.all_corners() != corners
                {
                    *corners = cells.all_corners().to_vec();
                    model.shape = Shape::of(&run.mesh().with_cells(cells)?);
                    view.describe(model.clone());
                }
                let frame = frame(run, &self.still, wanted)?;
                view.show(Frame { table, ..frame });
            }
            Turn::Step | Turn::Set(_) | Turn::Wait => {}
        }
        Ok(Some(turn))
    }
}

/// The fields of the mesh that are none of the state.
fn still(run: &Run) -> Vec<Field> {
    let state = run.fields();
    let mut fields = fields_of(run.mesh());
    // Those of cells that vertices stand for are fields of the vertices.
    fields.extend(run.mesh().primal().into_iter().flat_map(Mesh::cell_fields).cloned());
    fields.into_iter().filter(|field| state.iter().all(|part| part.name != field.name)).collect()
}

fn describe(name: &str, about: &str, still: &[Field], run: &mut Run) -> Result<Model> {
    let metrics = run.metrics()?.iter().map(|m| Metric { name: m.name.into(), unit: m.unit.into() }).collect();
    let look = run.look();
    let quantity = |name: &str, components| {
        let label = if look.color == Some(name) && !look.label.is_empty() { look.label } else { name };
        Quantity { name: name.into(), label: label.into(), components }
    };
    let state = run.fields();
    let of_state = state.iter().map(|part| quantity(&part.name, part.components));
    let of_mesh = still.iter().map(|field| quantity(&field.name, field.components));
    let of_hosts = (!run.hosts().is_empty()).then(|| quantity(HOST, 1));
    let fields: Vec<Quantity> = of_state.chain(of_mesh).chain(of_hosts).collect();
    let points = run.points(&moving(run)?)?;
    let shape = match cells(run)? {
        Some(cells) => Shape::of(&run.mesh().with_cells(cells)?),
        None => Shape::of(run.drawn()),
    };
    Ok(Model {
        name: name.into(),
        about: about.into(),
        color: look.color.and_then(|name| fields.iter().position(|field| field.name == name)),
        map: look.map,
        metrics,
        moves: look.positions.is_some() || look.raised.is_some(),
        points,
        shape,
        cells: run.drawn().cells().len(),
        props: look.props.clone(),
        fields,
        ..Model::default()
    })
}

/// The cells of the state, if they change.
fn cells(run: &Run) -> Result<Option<Cells>> {
    run.look().cells.as_ref().map(|now| Ok((now.0)(&run.state()?))).transpose()
}

/// The fields that say where the points are, if they move.
fn moving(run: &Run) -> Result<Vec<Field>> {
    let look = run.look();
    let raised = look.raised.map(|(name, _)| name);
    Ok(look.positions.into_iter().chain(raised).map(|name| run.field(name)).collect::<Result<_, _>>()?)
}

fn frame(run: &mut Run, still: &[Field], wanted: &Wanted) -> Result<Frame> {
    let clock = Instant::now();
    let metrics = if wanted.metrics { run.metrics()?.iter().map(|metric| metric.value).collect() } else { Vec::new() };
    let measuring = clock.elapsed();
    let (state, mut moving) = (run.fields(), moving(run)?);
    let points = if moving.is_empty() { Vec::new() } else { run.points(&moving)? };
    let mut fields = Vec::with_capacity(wanted.fields.len());
    for &place in &wanted.fields {
        let Some(part) = state.get(place) else {
            let field = match still.get(place - state.len()) {
                Some(field) => field.clone(),
                // Another host may have a vertex after one was lost.
                None => Field {
                    name: HOST.into(),
                    components: 1,
                    values: run.owners().into_iter().map(f64::from).collect(),
                },
            };
            fields.push((place, run.at_drawn(field).values));
            continue;
        };
        // What was read for the places is not read again.
        let known = moving.iter().position(|field| field.name == part.name).map(|at| moving.swap_remove(at));
        let read = || run.field(&part.name).with_context(|| format!("cannot show {}", part.name));
        let mut field = known.map_or_else(read, Ok)?;
        // What stands for nothing has no color.
        let nothing = run.table().iter().find(|column| column.field == part.name).and_then(|column| column.nothing);
        if let Some((nothing, _)) = nothing {
            field.values.iter_mut().filter(|x| **x == nothing).for_each(|x| *x = f64::NAN);
        }
        fields.push((place, run.at_drawn(field).values));
    }
    Ok(Frame { step: run.steps(), time: run.time(), points, fields, metrics, measuring, ..Frame::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::programs::DIFFUSION;
    use crate::{Options, Settings};
    use std::net::TcpStream;
    use std::sync::{Arc, Mutex};
    use tungstenite::Message;

    #[test]
    fn addresses_are_read_with_and_without_a_port() {
        assert_eq!(address("127.0.0.1:8080"), Ok(([127, 0, 0, 1], 8080).into()));
        assert_eq!(address("0.0.0.0"), Ok(([0, 0, 0, 0], 0).into()));
        assert_eq!(address("[::1]:9").unwrap().port(), 9);
        for word in ["", "NAME", "localhost", "1.2.3", "127.0.0.1:99999"] {
            assert!(address(word).unwrap_err().contains("127.0.0.1:8080"), "{word}");
        }
    }

    /// A page that looks at all there is, pauses after every third frame, takes a step, and goes on. Returns how many frames it saw.
    fn look(url: &str) -> usize {
        let host = url.trim_start_matches("http://").split('/').next().unwrap();
        let stream = TcpStream::connect(host).unwrap();
        let (mut page, _) = tungstenite::client(format!("{}live", url.replace("http", "ws")), stream).unwrap();
        let mut frames = 0;
        while let Ok(message) = page.read() {
            let text = match message {
                Message::Binary(bytes) if bytes[0] == 2 => {
                    frames += 1;
                    match frames % 3 {
                        0 => r#"{"ready":true,"pause":true}"#,
                        1 => r#"{"ready":true,"step":1,"pick":7}"#,
                        _ => r#"{"ready":true,"pause":false,"pace":300,"field":0,"metrics":true,"inside":true}"#,
                    }
                }
                Message::Binary(_) => r#"{"ready":true,"field":0,"pause":true}"#,
                // So that it never stays paused.
                Message::Text(text) if text.contains("\"paused\":true") => r#"{"ready":true,"step":1,"pick":3}"#,
                _ => continue,
            };
            if page.send(Message::text(text)).is_err() {
                break;
            }
        }
        frames
    }

    /// The settings of a run, none changed.
    fn unchanged() -> Changes {
        let known = DIFFUSION.first().unwrap().info.settings;
        Changes::new(known, Settings::new(known), None)
    }

    // [C14]
    #[test]
    fn watching_pausing_and_stepping_change_no_bit() {
        let start = || {
            let entry = DIFFUSION.first().unwrap();
            let mesh = meshweft_mesh::generate::generate("ball:8", 1).unwrap();
            entry.start(mesh, &Settings::new(entry.info.settings), &Options::default()).unwrap()
        };
        let mut alone = start();
        (0..200).for_each(|_| alone.step().unwrap());

        let (mut out, mut err) = (Vec::new(), Vec::new());
        let console = &mut Console::new(&mut out, &mut err);
        let mut watch = Watch::start(Some(address(HERE).unwrap()), "a test".into(), unchanged(), console).unwrap();
        let url = watch.view.as_ref().unwrap().0.url().to_string();
        let page = std::thread::spawn(move || look(&url));
        assert!(watch.view.as_ref().unwrap().0.wait_for_page(Duration::from_secs(20)));
        let mut run = start();
        // Not before the page has seen the start, and has paused it.
        while !matches!(watch.turn("diffusion", &mut run).unwrap(), Some(Turn::Show(_))) {}
        while run.steps() < 200 {
            assert!(watch.may_step("diffusion", &mut run, console).unwrap());
            run.step().unwrap();
        }
        watch.end("diffusion", &mut run).unwrap();
        drop(watch);
        assert!(page.join().unwrap() > 5, "the page has seen the run");
        assert_eq!(run.digest().unwrap(), alone.digest().unwrap());
        assert!(String::from_utf8(err).unwrap().starts_with("view: http://127.0.0.1:"));
    }

    #[cfg(feature = "cluster")]
    #[test]
    fn a_run_on_hosts_shows_which_has_a_vertex() {
        let start = |backend| {
            let entry = DIFFUSION.first().unwrap();
            let mesh = meshweft_mesh::generate::generate("sheet:40", 1).unwrap();
            entry.start(mesh, &Settings::new(entry.info.settings), &Options { backend, ..Options::default() }).unwrap()
        };
        let two = meshweft::Cluster::inside(2).unwrap();
        let mut run = start(meshweft::Backend::Cluster(two));
        run.step().unwrap();
        let model = describe("diffusion", "", &[], &mut run).unwrap();
        assert_eq!(model.fields.last().unwrap().name, HOST);
        let wanted = Wanted { fields: vec![0, 1], ..Wanted::default() };
        let frame = frame(&mut run, &[], &wanted).unwrap();
        let count = |host: f64| frame.fields[1].1.iter().filter(|&&x| x == host).count();
        let vertices: Vec<_> = run.hosts().iter().map(|host| host.vertices).collect();
        assert_eq!(vec![count(1.0), count(2.0)], vertices);
        assert_eq!(hosts::now(&run.hosts(), run.steps()).len(), 3);
        assert!(describe("diffusion", "", &[], &mut start(meshweft::Backend::Serial)).unwrap().fields.len() == 1);
    }

    /// Where a command writes whose words are read while it runs.
    #[derive(Clone, Default)]
    struct Pipe(Arc<Mutex<Vec<u8>>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Pipe {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// Runs a command. If it serves a page, that pauses the run, and says each of its words once it has a frame.
    fn command(words: &[&str], page: Vec<&'static str>) -> (u8, serde_json::Value, String) {
        let (mut out, err) = (Vec::new(), Pipe::default());
        let said = err.clone();
        let speaker = std::thread::spawn(move || {
            if page.is_empty() {
                return;
            }
            let text = loop {
                let text = said.text();
                if text.contains('\n') {
                    break text;
                }
                std::thread::sleep(Duration::from_millis(2));
            };
            let url = text.lines().find_map(|line| line.strip_prefix("view: ")).unwrap();
            let host = url.trim_start_matches("http://").split('/').next().unwrap();
            let stream = TcpStream::connect(host).unwrap();
            let (mut socket, _) = tungstenite::client(format!("{}live", url.replace("http", "ws")), stream).unwrap();
            socket.send(Message::text(r#"{"pause":true}"#)).unwrap();
            for words in page {
                socket.send(Message::text(r#"{"ready":true,"pick":1}"#)).unwrap();
                loop {
                    match socket.read() {
                        Ok(Message::Binary(bytes)) if bytes[0] == 2 => break,
                        Ok(_) => {}
                        Err(_) => return,
                    }
                }
                let _ = socket.send(Message::text(words));
            }
            // What was asked for is done before the page goes.
            std::thread::sleep(Duration::from_millis(100));
        });
        let code = crate::cli::run(&DIFFUSION, words, &mut Console::new(&mut out, &mut err.clone()));
        speaker.join().unwrap();
        (code, serde_json::from_slice(&out).unwrap_or_default(), err.text())
    }

    #[test]
    fn settings_that_a_page_changes_are_noted_and_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let out = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let words = |name: &str, more: &[&str]| -> Vec<String> {
            let all = ["meshweft", "run", "NAME", "--mesh=sheet:9", "--json", "--quiet", "--no-pictures", "--out"];
            all.iter().map(ToString::to_string).chain([out(name)]).chain(more.iter().map(ToString::to_string)).collect()
        };
        let run = |words: &[String], page| command(&words.iter().map(String::as_str).collect::<Vec<_>>(), page);
        // Paused at some step; changed, and refused; then it goes on.
        let page = vec![r#"{"set":[0,0.1]}"#, r#"{"set":[0,7]}"#, r#"{"pause":false}"#];
        let (code, watched, said) = run(&words("watched", &["--view", "--steps=400", "--checkpoint-every=1000"]), page);
        assert_eq!(code, 0, "{said}");
        let changes = watched["changes"].as_array().unwrap();
        assert_eq!(
            (changes.len(), &changes[0]["to"], &watched["settings"]["rate"]),
            (1, &0.1.into(), &0.1.into()),
            "{said}"
        );
        let step = changes[0]["after_step"].as_u64().unwrap();
        assert!(said.contains(&format!("changed: rate from 0.05 to 0.1 after step {step}")), "{said}");
        let file = std::fs::read_to_string(folder.path().join("watched/NAME.changes.csv")).unwrap();
        assert_eq!(file, format!("after_step,setting,from,to,unit\n{step},rate,0.05,0.1,\n"));

        // The same by hand, and without.
        let entry = DIFFUSION.first().unwrap();
        let mesh = || meshweft_mesh::generate::generate("sheet:9", 1).unwrap();
        let mut settings = Settings::new(entry.info.settings);
        let mut by_hand = entry.start(mesh(), &settings, &Options::default()).unwrap();
        (0..step).for_each(|_| by_hand.step().unwrap());
        settings.set(entry.info.settings, "rate", "0.1").unwrap();
        by_hand.change(&settings).unwrap();
        (step..400).for_each(|_| by_hand.step().unwrap());
        assert_eq!(watched["digest"], by_hand.digest().unwrap());

        // Going on, the changed value stays, and so does what is noted.
        let resume = ["meshweft", "resume", &out("watched"), "--steps=500", "--json", "--quiet"];
        let (code, resumed, said) = command(&resume, vec![]);
        assert_eq!(code, 0, "{said}");
        (400..500).for_each(|_| by_hand.step().unwrap());
        assert_eq!((&resumed["digest"], &resumed["changes"]), (&by_hand.digest().unwrap().into(), &watched["changes"]));
        assert_eq!(std::fs::read_to_string(folder.path().join("watched/NAME.changes.csv")).unwrap(), file);
        // A run anew leaves nothing of it.
        let (code, anew, said) = run(&words("watched", &["--steps=5"]), vec![]);
        assert_eq!((code, anew["changes"].as_array().map(Vec::len)), (0, Some(0)), "{said}");
        assert!(!folder.path().join("watched/NAME.changes.csv").exists());
    }
}
