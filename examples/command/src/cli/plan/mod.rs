//! `meshweft plan`: how long every configuration would take, and why.
//!
//! The model itself is [`meshweft::model`]. Here are what it is fed with: the machine's constants ([`constants`]), which are
//! measured once and kept ([`cache`]), and what the program's kernels cost, by a [`trial`] on a piece of the mesh.

mod cache;
mod choice;
mod constants;
mod expected;
mod gpus;
#[cfg(feature = "cluster")]
mod link;
mod roofline;
mod row;
mod rows;
#[cfg(feature = "cluster")]
mod share;
mod source;
mod start;
mod table;
mod trial;

pub(super) use choice::choose;
#[cfg(feature = "cluster")]
pub(super) use expected::slower;
pub(super) use expected::{Expected, expected};
pub(super) use start::{Setup, start};

use cache::{Cache, name};
use gpus::{Gpu, gpus};
use row::Row;
#[cfg(feature = "cluster")]
use row::here;
use rows::{costs_of, on_threads};
use source::Source;
use table::Table;

use super::console::{Console, Outcome};
use super::options::{Plan, Problem};
use super::programs::Programs;
use super::{memory, meshes};
use anyhow::Result;
use clap::Args;
#[cfg(feature = "cluster")]
use meshweft::Compress;
use meshweft::model::{Costs, Machine};
#[cfg(feature = "cluster")]
use meshweft::model::{Link, Place};
use meshweft::{Backend, Order};
use meshweft_mesh::Mesh;
use std::path::PathBuf;

/// What to predict.
#[derive(Args)]
#[command(args_override_self = true, after_help = EXAMPLES)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) problem: Problem,
    /// Numbers of hosts like this one that may share the mesh; needs --link
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(2..=1024), requires = "link")]
    share_among: Vec<u32>,
    /// What would join them: bits a second, and the time from a task that has ended on one host to one that may begin on another
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "RATE,LATENCY", value_parser = link::parse)]
    link: Option<Link>,
    /// Measure this machine and the program anew, instead of using what an earlier command has measured
    #[arg(long)]
    fresh: bool,
    /// Run each configuration of this machine briefly too, and print what it took beside what was predicted
    #[arg(long)]
    measure: bool,
    /// Folder for the roofline, as roofline.svg and roofline.png [default: out/EXAMPLE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  meshweft plan EXAMPLE --mesh box:100
  meshweft plan EXAMPLE --mesh box:128 --order blocked --share-among 2,4,8 --link 10Gbit,100us
  meshweft plan EXAMPLE --measure                 and what each takes indeed

Another order is another result: the table says what each costs, which one is right only the problem can say. Every number that goes
into a prediction was measured on this machine, in a few seconds, and is kept in ~/.cache/meshweft for the next time.";

impl Arguments {
    /// The folder for the pictures.
    ///
    /// # Errors
    /// None is stated, and no example is named.
    fn folder(&self) -> Result<PathBuf> {
        match &self.out {
            Some(folder) => Ok(folder.clone()),
            None => Ok(["out", self.problem.named()?].iter().collect()),
        }
    }
}

/// Predicts all configurations.
pub(super) fn run(arguments: &Arguments, programs: &Programs, console: &mut Console) -> Result<Outcome> {
    let plan = arguments.problem.plan(programs, false)?;
    let threads = match arguments.problem.threads() {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let mut cache = Cache::open(threads, arguments.fresh);
    let machine = cache.machine()?;
    let mesh = meshes::open(&plan.mesh, plan.seed, memory::SET_UP, console.err)?;
    let grain = plan.options.backend.grain(mesh.points().len());
    let order = plan.options.order.resolved(grain);
    let (gpus, mut rows, mut is_disturbed) = (gpus(&plan), Vec::new(), false);
    for order in orders(arguments.problem.is_ordered(), order, grain) {
        let found = costs_of(&mut cache, &plan, Source::Mesh(&mesh), order, &machine)
            .and_then(|costs| of_order(&mut cache, &plan, &mesh, order, (&machine, &costs, &gpus), arguments));
        is_disturbed |= cache.is_disturbed::<Costs>(&name(&plan, Source::Mesh(&mesh), order));
        match found {
            Ok(found) => rows.extend(found),
            // The order that a run would take comes first.
            Err(error) if rows.is_empty() => return Err(error),
            Err(error) => writeln!(console.err, "{order} is left out: {error:#}")?,
        }
    }
    cache.save();
    if is_disturbed {
        let note = "other programs had the cores meanwhile: threads may do more than is told here; plan measures again the next time";
        writeln!(console.err, "note: {note}")?;
    }
    if arguments.measure {
        measure(&mut rows, &plan, &mesh)?;
    }
    rows.sort_by(|a, b| a.prediction.round_s().total_cmp(&b.prediction.round_s()));
    let table = Table { plan: &plan, vertices: mesh.points().len(), machine, rows, order };
    match arguments.json {
        true => table.print_json(console)?,
        false => table.print(console)?,
    }
    let files = table.draw(&arguments.folder()?)?;
    if !arguments.json {
        writeln!(console.out, "\nwrote {}", files.map(|path| path.display().to_string()).join("  "))?;
    }
    Ok(Outcome::Done)
}

/// The orders of the table: the one that was named, or all keys along the same curve, blocks in several sizes.
fn orders(is_named: bool, order: Order, grain: u32) -> Vec<Order> {
    if is_named {
        return vec![order];
    }
    let keys = Order::ALL.into_iter().map(|key| key.along(order.curve).resolved(grain));
    let blocks = [512, 1024, 2048, 4096, 8192].map(|size| Order::blocked(size).along(order.curve));
    let mut all: Vec<Order> = keys.chain(blocks).collect();
    all.sort_by_key(|&other| (other != order, other.to_string()));
    all.dedup();
    all
}

/// The rows of an order: threads of this machine, and hosts.
fn of_order(
    cache: &mut Cache,
    plan: &Plan,
    mesh: &Mesh,
    order: Order,
    (machine, costs, gpus): (&Machine, &Costs, &[Gpu]),
    arguments: &Arguments,
) -> Result<Vec<Row>> {
    let run = trial::start(plan, mesh, order, Backend::Cpu { threads: machine.threads })?;
    let mut rows = on_threads(&run, machine.threads, (machine, costs))?;
    #[cfg(feature = "cluster")]
    for &hosts in &arguments.share_among {
        let place =
            Place { hosts: hosts as usize, link: arguments.link, is_one_machine: false, ..here(machine.threads) };
        let (work, how) = (run.workload(machine.threads, &vec![1.0; place.hosts])?, arguments.problem.compress());
        let packed = match how {
            Compress::Never => None,
            _ => Some(cache.costs(&name(plan, Source::Mesh(mesh), order), || trial::packed(plan, mesh, order))?),
        };
        rows.push(Row::on_hosts(&work, place, (machine, costs), (packed, how)));
    }
    rows.extend(rows::alone(cache, plan, (Source::Mesh(mesh), &run), order, gpus)?);
    #[cfg(feature = "cluster")]
    rows.extend(rows::beside(cache, plan, (Source::Mesh(mesh), &run), (machine, costs), gpus)?);
    #[cfg(not(feature = "cluster"))]
    let _ = arguments;
    Ok(rows)
}

/// Runs all configurations of this machine, in turns that are far apart: what disturbs one try may last for a second.
fn measure(rows: &mut [Row], plan: &Plan, mesh: &Mesh) -> Result<()> {
    for _ in 0..trial::TURNS {
        for row in rows.iter_mut().filter(|row| row.place.hosts == 1) {
            let round_s = trial::round_s(&mut trial::start(plan, mesh, row.order, row.backend()?)?)?;
            row.measured_s = Some(row.measured_s.map_or(round_s, |least| least.min(round_s)));
        }
    }
    Ok(())
}
