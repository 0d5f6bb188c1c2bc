//! `meshweft info --parts`: what each of several hosts would have of a mesh.

use super::console::{Console, Outcome};
use super::programs::Programs;
use super::text;
use crate::{Options, Settings};
use anyhow::Result;
use clap::Args;
use meshweft::{Backend, HostReport, Order, Sharing};
use meshweft_mesh::{CellKind, Cut, Field, Mesh, io};
use meshweft_picture::{Camera, Coloring, DISTINCT, Picture, Scene, Section, Size, Skin, Up, render};
use serde_json::{Value, json};
use std::path::PathBuf;

/// How many hosts, and what decides who has what.
#[derive(Args)]
pub(super) struct Parts {
    /// Show what each of N hosts would have of the mesh: what `meshweft run EXAMPLE --processes N` gives them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    parts: Option<u32>,
    /// The example, with its own settings: which vertices it reads decides what is sent, and how much a task costs [default: the first
    /// of `meshweft list`]
    #[arg(long, value_name = "NAME", requires = "parts")]
    example: Option<String>,
    /// The order of a sweep, as in `meshweft run`: tasks are not cut
    #[arg(long, value_name = "[CURVE/]KEY", default_value_t, requires = "parts")]
    order: Order,
    /// How the mesh is cut
    #[arg(long, value_name = "curve|bisection|grid[:ROWSxCOLUMNS]", default_value_t, requires = "parts")]
    cut: Cut,
    /// File for a picture of the mesh, colored by host
    #[arg(long, value_name = "FILE.png", requires = "parts")]
    picture: Option<PathBuf>,
    /// File for the mesh with a field `host`, for ParaView
    #[arg(long, value_name = "FILE.vtu", requires = "parts")]
    out: Option<PathBuf>,
}

impl Parts {
    /// How many hosts, if the user wants to know.
    pub(super) fn hosts(&self) -> Option<u32> {
        self.parts
    }
}

/// Plans the example as a run would, and prints who has what.
pub(super) fn run(
    (name, seed, mesh): (&str, u64, Mesh),
    hosts: u32,
    arguments: &Parts,
    programs: &Programs,
    json: bool,
    console: &mut Console,
) -> Result<Outcome> {
    let entry = match &arguments.example {
        Some(name) => programs.find(name)?,
        None => programs.first()?,
    };
    // What hosts lay out is what cores lay out; nothing is updated.
    let options = Options { order: arguments.order, backend: Backend::Cpu { threads: 1 }, ..Options::default() };
    let run = entry.start(mesh.clone(), &Settings::new(entry.info.settings), &options)?;
    let sharing = run.shares(hosts, arguments.cut)?;
    let facts = Facts { mesh: name, seed, example: entry.info.name, order: run.schedule().order(), cut: arguments.cut };
    if let Some(path) = &arguments.picture {
        paint(&mesh, &sharing, &facts.caption()).write_png(path)?;
    }
    if let Some(path) = &arguments.out {
        let values = sharing.owners.iter().map(|&host| f64::from(host)).collect();
        let mut mesh = mesh;
        mesh.set_point_field(Field { name: "host".into(), components: 1, values })?;
        io::write(path, &mesh)?;
    }
    if json {
        writeln!(console.out, "{}", facts.as_json(&sharing))?;
    } else {
        facts.print(&sharing, console)?;
        let files = [&arguments.picture, &arguments.out].into_iter().flatten();
        let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
        if !files.is_empty() {
            writeln!(console.out, "\nwrote {}", files.join("  "))?;
        }
    }
    Ok(Outcome::Done)
}

/// What decides who has what.
struct Facts<'a> {
    mesh: &'a str,
    seed: u64,
    example: &'static str,
    order: Order,
    cut: Cut,
}

/// Sums over all hosts.
fn total(hosts: &[HostReport], of: impl Fn(&HostReport) -> usize) -> usize {
    hosts.iter().map(of).sum()
}

/// The most vertices of a host over the mean.
fn imbalance(hosts: &[HostReport]) -> f64 {
    let most = hosts.iter().map(|host| host.vertices).max().unwrap_or(0);
    let mean = total(hosts, |host| host.vertices) as f64 / hosts.len() as f64;
    if mean > 0.0 { most as f64 / mean } else { 1.0 }
}

fn share(part: usize, of: usize) -> f64 {
    if of > 0 { part as f64 / of as f64 } else { 0.0 }
}

impl Facts<'_> {
    fn caption(&self) -> String {
        format!("{}, {}, {}, cut by {}", self.mesh, self.example, self.order, self.cut)
    }

    fn print(&self, sharing: &Sharing, console: &mut Console) -> Result<()> {
        let hosts = &sharing.hosts;
        let [vertices, boundary] = [total(hosts, |host| host.vertices), total(hosts, |host| host.boundary)];
        let head = ["host", "vertices", "tasks", "boundary", "ghosts", "messages a round", "sent a round", "neighbors"];
        let mut rows = vec![head.map(str::to_string).to_vec()];
        let row = |name: String, host: &HostReport, neighbors: String| {
            let [vertices, tasks, boundary, ghosts] =
                [host.vertices, host.tasks, host.boundary, host.ghosts].map(text::count);
            let messages = text::count(host.round_messages as usize);
            vec![name, vertices, tasks, boundary, ghosts, messages, text::bytes(host.round_bytes as f64), neighbors]
        };
        for host in hosts {
            let neighbors: Vec<String> = host.neighbors.iter().map(u32::to_string).collect();
            rows.push(row(host.host.to_string(), host, neighbors.join(" ")));
        }
        rows.push(row("all".into(), &self.all(hosts), String::new()));
        let out = &mut console.out;
        text::table(out, &rows)?;
        writeln!(out)?;
        let seed = if self.seed == 1 { String::new() } else { format!(" --seed {}", self.seed) };
        let equal = match self.cut {
            Cut::Curve => "equal bytes of its updates, in whole tasks",
            Cut::Bisection => "equal numbers of tasks",
            Cut::Grid(_) => "equal bytes of its updates, in whole tasks dealt like cards",
        };
        let rows = [
            ("imbalance", format!("{:.3}: the most vertices of a host over the mean", imbalance(hosts))),
            ("border", format!("{:.2} % of all vertices are read by other hosts", 100.0 * share(boundary, vertices))),
            ("order", self.order.to_string()),
            (
                "shares",
                format!(
                    "those of `meshweft run {} --mesh {}{seed} --order {} --cut {} --processes {}`: {equal}",
                    self.example,
                    self.mesh,
                    self.order,
                    self.cut,
                    hosts.len()
                ),
            ),
        ];
        Ok(text::pairs(out, &rows)?)
    }

    /// The sums over all hosts, as if they were one.
    fn all(&self, hosts: &[HostReport]) -> HostReport {
        HostReport {
            vertices: total(hosts, |host| host.vertices),
            tasks: total(hosts, |host| host.tasks),
            boundary: total(hosts, |host| host.boundary),
            ghosts: total(hosts, |host| host.ghosts),
            round_messages: hosts.iter().map(|host| host.round_messages).sum(),
            round_bytes: hosts.iter().map(|host| host.round_bytes).sum(),
            ..HostReport::default()
        }
    }

    fn as_json(&self, sharing: &Sharing) -> Value {
        let hosts = &sharing.hosts;
        let all = self.all(hosts);
        json!({
            "mesh": self.mesh,
            "seed": self.seed,
            "example": self.example,
            "order": self.order.to_string(),
            "cut": self.cut.to_string(),
            "hosts": hosts.iter().map(super::hosts::planned).collect::<Vec<_>>(),
            "vertices": all.vertices,
            "tasks": all.tasks,
            "boundary": all.boundary,
            "ghosts": all.ghosts,
            "messages_a_round": all.round_messages,
            "bytes_a_round": all.round_bytes,
            "imbalance": imbalance(hosts),
            "boundary_share": share(all.boundary, all.vertices),
        })
    }
}

/// Pixels of the picture.
const SIZE: Size = Size { width: 1280, height: 960 };
/// Hosts that the picture lists, at most: what its height has room for.
const LISTED: usize = 24;

/// Draws the surface of a mesh, or its points and edges if it has none, colored by host; solids are cut open as in a run.
fn paint(mesh: &Mesh, sharing: &Sharing, caption: &str) -> Picture {
    let colors = colors(&sharing.hosts);
    let name = |i: usize| match sharing.hosts.len() {
        n if i < LISTED - 1 || n == LISTED && i < n => format!("host {}", i + 1),
        n if i == LISTED - 1 => format!("and {} more", n - i),
        _ => String::new(),
    };
    let kinds: Vec<(String, [u8; 3])> = colors.iter().enumerate().map(|(i, &color)| (name(i), color)).collect();
    let camera = Camera::framing(mesh.bounds(), Up::Z);
    let skin = Skin::of(mesh, Section::default(), camera.toward());
    let places = skin.cuts.iter().map(|cut| cut.place(mesh.points()));
    let points: Vec<[f64; 3]> = mesh.points().iter().copied().chain(places).collect();
    let hosts_of_cuts = skin.cuts.iter().map(|cut| &sharing.owners[cut.nearest() as usize]);
    let of: Vec<u32> = sharing.owners.iter().chain(hosts_of_cuts).map(|host| host - 1).collect();
    let edges = mesh.cells().corners_of(CellKind::Edge);
    let scene = Scene {
        points: &points,
        triangles: &skin.triangles,
        faces: &skin.faces,
        edges: edges.as_chunks().0,
        coloring: Coloring::Kinds { of: &of, kinds: &kinds },
        caption,
        ..Scene::default()
    };
    render(&scene, &camera, SIZE)
}

/// The color of each host: the next in turn, unless a neighbor before it has that.
fn colors(hosts: &[HostReport]) -> Vec<[u8; 3]> {
    let mut chosen: Vec<usize> = Vec::new();
    for (i, host) in hosts.iter().enumerate() {
        let is_free = |color: &usize| {
            !host.neighbors.iter().any(|&other| chosen.get(other as usize - 1).is_some_and(|taken| taken == color))
        };
        let turns = (0..DISTINCT.len()).map(|k| (i + k) % DISTINCT.len());
        chosen.push(turns.clone().find(is_free).unwrap_or(i % DISTINCT.len()));
    }
    chosen.into_iter().map(|color| DISTINCT[color]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::programs::DIFFUSION;

    #[test]
    fn shares_are_those_that_the_owners_of_vertices_say() {
        // The program reads its neighbors in the mesh, so that boundary and ghosts can be counted in the graph of the mesh.
        let mesh = meshweft_mesh::generate::generate("box:9", 3).unwrap();
        let graph = meshweft_mesh::Graph::from_cells(&mesh).unwrap();
        let entry = DIFFUSION.first().unwrap();
        for (order, cut) in [("blocked:64", Cut::Curve), ("color", Cut::Bisection), ("jacobi", Cut::Curve)] {
            let options = Options { order: order.parse().unwrap(), ..Options::default() };
            let run = entry.start(mesh.clone(), &Settings::new(entry.info.settings), &options).unwrap();
            for hosts in [1, 2, 5, 8] {
                let sharing = run.shares(hosts, cut).unwrap();
                let owners = sharing.owners.iter().map(|host| host - 1).collect();
                let partition = meshweft_mesh::Partition::from_owners(&graph, owners, hosts as usize).unwrap();
                assert_eq!(total(&sharing.hosts, |host| host.tasks), run.schedule().graph().len());
                for (host, part) in sharing.hosts.iter().zip(partition.parts()) {
                    let own = [host.vertices, host.boundary, host.ghosts];
                    assert_eq!(own, [part.owned.len(), part.boundary.len(), part.ghosts.len()], "{order} {hosts}");
                    assert!(host.neighbors.iter().all(|&other| {
                        other != host.host && sharing.hosts[other as usize - 1].neighbors.contains(&host.host)
                    }));
                }
                if (order, hosts) == ("blocked:64", 2) {
                    assert!(imbalance(&sharing.hosts) < 1.2, "a dozen tasks make two shares alike");
                }
            }
        }
    }

    #[test]
    fn files_have_the_owners_and_a_color_of_each_host() {
        let folder = tempfile::tempdir().unwrap();
        let [png, vtu] = ["hosts.png", "hosts.vtu"].map(|name| folder.path().join(name).display().to_string());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let words = ["meshweft", "info", "sheet:24", "--order", "blocked:64", "--parts", "3", "--json"];
        let arguments = words.into_iter().chain(["--picture", &png, "--out", &vtu]);
        let code = crate::cli::run(&DIFFUSION, arguments, &mut Console::new(&mut out, &mut err));
        assert_eq!((code, String::from_utf8(err).unwrap()), (0, String::new()));
        let report: Value = serde_json::from_slice(&out).unwrap();
        let mesh = io::read(vtu.as_ref()).unwrap();
        let owners = &mesh.point_field("host").unwrap().values;
        for host in report["hosts"].as_array().unwrap() {
            let count = owners.iter().filter(|&&owner| Some(owner) == host["host"].as_f64()).count();
            assert_eq!(host["vertices"], count);
        }
        let mut picture =
            png::Decoder::new(std::io::BufReader::new(std::fs::File::open(png).unwrap())).read_info().unwrap();
        let mut rgb = vec![0; picture.output_buffer_size().unwrap()];
        picture.next_frame(&mut rgb).unwrap();
        for color in &DISTINCT[..3] {
            // The list has it as it is, and light and shade leave most of a color on the mesh.
            let near = |p: &[u8]| (0..3).all(|k| p[k].abs_diff(color[k]) < 24);
            assert!(rgb.chunks_exact(3).filter(|p| near(p)).count() > 10_000, "{color:?}");
        }
    }

    #[test]
    fn neighbors_have_other_colors_also_where_hosts_are_many() {
        // A ring of 17: the last is a neighbor of the first, and 16 + 1 would begin the colors again.
        let hosts: Vec<HostReport> = (0..17u32)
            .map(|i| HostReport {
                host: i + 1,
                neighbors: vec![(i + 16) % 17 + 1, (i + 1) % 17 + 1],
                ..HostReport::default()
            })
            .collect();
        let colors = colors(&hosts);
        assert!((0..17).all(|i| colors[i] != colors[(i + 1) % 17]));
    }
}
