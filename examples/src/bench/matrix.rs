//! `bench --all`: which measurements there are, one after the other.
//!
//! The design is a star, not the full product, which would take days: from one center, the defaults of the command on a
//! mesh of about a million vertices, one thing at a time is changed. Everything is measured on one thread and on all.
//!
//! | what changes | to | of |
//! |---|---|---|
//! | size | `box:22` to `box:215`: 10^4 to 10^7 vertices | `spring`, `heat` |
//! | order | each of the six | `spring`, `heat` |
//! | numbering | `morton`, `hilbert`, `random`, each under `blocked` and `color` | `spring`, `heat` |
//! | precision | 64 bits | `spring`, `heat` |
//! | size | `sheet:100` to `sheet:1000`: 10^4 to 10^6 vertices | `cloth` |
//! | order, method, precision, as time to tolerance | each of the six; four; both | one implicit step of heat |

use super::pages::{self, Results};
use super::tolerance::{self, Problem};
use anyhow::{Context, Result};
use meshweft::{Backend, Order};
use meshweft_command::cli::bench::{Report, TRIAL_S, Trials, measure};
use meshweft_command::cli::probe::{self, Machine, Sizes};
use meshweft_command::cli::system::free_memory;
use meshweft_command::cli::{Console, Programs, Scale, text};
use meshweft_command::{Options, Precision, output};
use meshweft_mesh::{Curve, generate};
use std::path::Path;
use std::time::Instant;

/// Sides of the boxes, and which of them is the center.
fn boxes(scale: Scale) -> (&'static [usize], usize) {
    match scale {
        Scale::Full => (&[22, 46, 100, 128, 215], 100),
        Scale::Quick => (&[22, 46], 46),
        Scale::Tiny => (&[4, 6], 6),
    }
}

/// Sides of the sheets.
fn sheets(scale: Scale) -> &'static [usize] {
    match scale {
        Scale::Full => &[100, 316, 1000],
        Scale::Quick => &[100, 316],
        Scale::Tiny => &[6],
    }
}

fn trials(scale: Scale) -> Trials {
    match scale {
        Scale::Full => Trials { count: 3, steps: None, seconds: TRIAL_S },
        Scale::Quick => Trials { count: 3, steps: None, seconds: 0.05 },
        Scale::Tiny => Trials { count: 1, steps: Some(1), seconds: 0.0 },
    }
}

fn sizes(scale: Scale) -> Sizes {
    if scale == Scale::Tiny { Sizes::tiny() } else { Sizes::of_this_machine() }
}

/// One measurement to be made.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    example: &'static str,
    mesh: String,
    vertices: usize,
    order: Order,
    precision: Precision,
    threads: usize,
}

/// Bytes a vertex that must be free: with room to spare, since a process that is killed in the middle has measured nothing. At the peak of setting
/// up, `heat` on `box:80` took 1.0 kB; `cloth` took 1.7 kB, but its largest mesh is a tenth of the largest box.
const SETUP_BYTES: usize = 1500;

/// Measures the matrix and writes its pages.
pub(crate) fn run(programs: &Programs, scale: Scale, folder: Option<&Path>, console: &mut Console) -> Result<()> {
    let folder = folder.unwrap_or(Path::new("docs/perf"));
    output::check(folder)?;
    let clock = Instant::now();
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let counts: &[usize] = if all == 1 { &[1] } else { &[1, all] };
    let center = format!("box:{}", boxes(scale).1);
    let probes = |console: &mut Console| {
        let threads: Vec<_> = counts.iter().map(|&n| text::counted(n, "thread", "threads")).collect();
        let _ = writeln!(console.err, "probing the machine on {}", threads.join(" and "));
        counts.iter().map(|&threads| probe::probe(threads, sizes(scale))).collect::<Result<Vec<_>>>()
    };
    let before = probes(console)?;

    let points = points(scale, counts);
    let mut left = Left::new(points.iter().map(|p| p.cost(scale)).sum::<f64>() + tolerance_cost(scale));
    let (mut reports, mut skipped) = (Vec::new(), Vec::new());
    for (i, point) in points.iter().enumerate() {
        let label = format!("{}/{}  {}", i + 1, points.len(), point.label());
        if free_memory().is_some_and(|free| free.bytes < SETUP_BYTES * point.vertices) {
            let _ = writeln!(console.err, "{label}: left out, for want of memory");
            skipped.push(point.label());
            left.skip(point.cost(scale));
            continue;
        }
        let report = point.measure(programs, scale).with_context(|| format!("cannot measure {}", point.label()))?;
        let left = left.after(point.cost(scale));
        let _ = writeln!(console.err, "{label}: {:.2} ns an update, {left}", report.ns_per_update);
        reports.push(report);
    }
    let mesh = generate::generate(&center, 1)?;
    let (mut arrivals, ways) = (Vec::new(), tolerance::ways());
    let mut problem = Problem::new(&mesh)?;
    for way in &ways {
        let arrived = problem.arrive(*way, counts)?;
        let left = left.after(tolerance_cost(scale) / ways.len() as f64);
        let reached = arrived[0].reached.map(|reached| reached.map_or("not reached".to_string(), |r| r.0.to_string()));
        let what = format!("{}, {}, {}", way.name, way.order, way.precision.name());
        let _ = writeln!(console.err, "tolerance, {center}, {what}: {} rounds, {left}", reached.join(" and "));
        arrivals.extend(arrived);
    }
    drop(problem);
    drop(mesh);

    let machines: Vec<[Machine; 2]> = before.into_iter().zip(probes(console)?).map(|(a, b)| [a, b]).collect();
    let on_its_machine = |report: Report| {
        // The better of both probes: whatever disturbed one did not make the machine faster.
        match machines.iter().find(|probes| probes[0].threads == report.threads) {
            Some([before, after]) => report.on(&before.clone().or_better(after)),
            None => report,
        }
    };
    let reports = reports.into_iter().map(on_its_machine).collect();
    let results = Results { scale, center, machines, reports, arrivals, skipped };
    let files = pages::write(folder, &results)?;
    let [measurements, time] = [text::count(results.reports.len()), text::seconds(clock.elapsed().as_secs_f64())];
    writeln!(console.out, "{measurements} measurements in {time}; wrote {} to {}", files.join("  "), folder.display())?;
    Ok(())
}

/// The arms of the star: see the module's documentation.
fn points(scale: Scale, threads: &[usize]) -> Vec<Point> {
    let (sides, center) = boxes(scale);
    let mut all: Vec<Point> = Vec::new();
    let mut add = |point: &Point| {
        for &threads in threads {
            let point = Point { threads, ..point.clone() };
            if !all.contains(&point) {
                all.push(point);
            }
        }
    };
    let at = |example, (mesh, vertices)| Point {
        example,
        mesh,
        vertices,
        order: Order::default(),
        precision: Precision::default(),
        threads: 0,
    };
    let cube = |side: usize| (format!("box:{side}"), side.pow(3));
    for example in ["spring", "heat"] {
        let center = at(example, cube(center));
        sides.iter().for_each(|&side| add(&at(example, cube(side))));
        Order::ALL.into_iter().for_each(|order| add(&Point { order, ..center.clone() }));
        for order in [Order::BLOCKED, Order::COLOR] {
            [Curve::Morton, Curve::Hilbert, Curve::Random]
                .into_iter()
                .for_each(|curve| add(&Point { order: order.along(curve), ..center.clone() }));
        }
        add(&Point { precision: Precision::F64, ..center });
    }
    sheets(scale).iter().for_each(|&side| add(&at("cloth", (format!("sheet:{side}"), side.pow(2)))));
    all
}

impl Point {
    fn label(&self) -> String {
        let threads = text::counted(self.threads, "thread", "threads");
        let precision = if self.precision == Precision::F64 { ", f64" } else { "" };
        format!("{}, {}, {}, {threads}{precision}", self.example, self.mesh, self.order)
    }

    fn measure(&self, programs: &Programs, scale: Scale) -> Result<Report> {
        let options = Options {
            order: self.order,
            backend: Backend::Cpu { threads: self.threads },
            precision: self.precision,
            ..Options::default()
        };
        measure(programs.find(self.example)?, &self.mesh, super::sweeps_alone(self.example), options, trials(scale))
    }

    /// What the measurement takes, in seconds of some machine.
    fn cost(&self, scale: Scale) -> f64 {
        let Trials { count, seconds, .. } = trials(scale);
        f64::from(count + 1) * seconds + 4e-6 * self.vertices as f64
    }
}

/// What the times to tolerance take, in the same seconds.
fn tolerance_cost(scale: Scale) -> f64 {
    tolerance::ways().len() as f64 * 1e-5 * (boxes(scale).1.pow(3) as f64)
}

/// Guesses the time left from the time that passed.
struct Left {
    start: Instant,
    done: f64,
    total: f64,
}

impl Left {
    fn new(total: f64) -> Left {
        Left { start: Instant::now(), done: 0.0, total }
    }

    fn skip(&mut self, cost: f64) {
        self.total -= cost;
    }

    /// What to say when work of this cost is done.
    fn after(&mut self, cost: f64) -> String {
        self.done += cost;
        let share = (self.total - self.done).max(0.0) / self.done.max(f64::MIN_POSITIVE);
        match self.start.elapsed().as_secs_f64() * share {
            s if s < 1.0 => "almost done".to_string(),
            s if s < 90.0 => format!("about {s:.0} s left"),
            s => format!("about {:.0} min left", s / 60.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft::Key;

    #[test]
    fn the_star_changes_one_thing_at_a_time() {
        let points = points(Scale::Full, &[1, 8]);
        let spring: Vec<_> = points.iter().filter(|p| p.example == "spring" && p.threads == 8).collect();
        // Four sizes, five orders, two numberings under two orders and one precision around the center.
        assert_eq!(spring.len(), 1 + 4 + 5 + 4 + 1);
        for p in &spring {
            let changed = [
                p.mesh != "box:100",
                p.order.key != Order::BLOCKED.key,
                p.order.curve != Curve::Morton,
                p.precision != Precision::F32,
            ];
            let count = changed.into_iter().filter(|&c| c).count();
            assert!(
                count <= 1 || (count == 2 && p.order.key == Key::Color && p.order.curve != Curve::Morton),
                "{}",
                p.label()
            );
        }
        assert_eq!(points.len(), 2 * (2 * spring.len() + 3));
    }
}
