//! The table of `meshweft plan`.

use super::row::Row;
use crate::cli::console::Console;
use crate::cli::options::Plan;
use crate::cli::text;
use anyhow::{Context, Result};
use meshweft::Order;
use meshweft::model::{Cost, Machine, Place};
use serde_json::{Map, Value, json};

/// All rows, and what they were worked out from.
pub(super) struct Table<'a> {
    pub(super) plan: &'a Plan,
    pub(super) vertices: usize,
    pub(super) machine: Machine,
    pub(super) rows: Vec<Row>,
    /// The order that a run takes.
    pub(super) order: Order,
}

impl Row {
    /// What was predicted over what was measured, less one.
    fn error(&self) -> Option<f64> {
        Some(self.prediction.round_s() / self.measured_s? - 1.0)
    }
}

impl Table<'_> {
    fn ns(&self, round_s: f64) -> f64 {
        1e9 * round_s / self.vertices as f64
    }

    /// The row of the order that a run takes, on all threads of this machine.
    fn default_row(&self) -> Option<&Row> {
        let here = |row: &&Row| row.order == self.order && row.place.hosts == 1 && row.gpu.is_none();
        self.rows.iter().filter(here).max_by_key(|row| row.place.threads)
    }

    pub(super) fn print(&self, console: &mut Console) -> Result<()> {
        let is_measured = self.rows.iter().any(|row| row.measured_s.is_some());
        let mut head = vec!["order", "where", "ns an update", "a step", "limit"];
        head.extend(if is_measured { &["measured", "error"][..] } else { &[] });
        head.push("of which, ns an update");
        let mut rows = vec![head.into_iter().map(str::to_string).collect::<Vec<_>>()];
        for row in &self.rows {
            let prediction = &row.prediction;
            let mut cells = vec![
                row.order.to_string(),
                row.place(),
                format!("{:.2}", self.ns(prediction.round_s())),
                text::seconds(prediction.step_s()),
                prediction.limit().name().to_string(),
            ];
            if is_measured {
                cells.push(row.measured_s.map_or(String::new(), |s| format!("{:.2}", self.ns(s))));
                cells.push(row.error().map_or(String::new(), |error| format!("{:+.0} %", 100.0 * error)));
            }
            let rounds = f64::from(prediction.rounds.max(1));
            let term = |&(cost, s): &(Cost, f64)| format!("{} {:.2}", cost.name(), self.ns(s / rounds));
            cells.push(prediction.terms.iter().map(term).collect::<Vec<_>>().join(" + "));
            rows.push(cells);
        }
        text::table(console.out, &rows)?;
        writeln!(console.out)?;
        let mut pairs = vec![("machine", machine(&self.machine))];
        pairs.extend(self.advice().into_iter().map(|line| ("", line)));
        pairs.extend(self.judgement().map(|line| ("measured", line)));
        Ok(text::pairs(console.out, &pairs)?)
    }

    /// What would make the default configuration faster.
    fn advice(&self) -> Vec<String> {
        let Some(own) = self.default_row() else { return Vec::new() };
        let limit = own.prediction.limit();
        let (order, place) = (own.order, own.place());
        let mut lines = vec![format!("{order} on {place} is limited by {}: {}", limit.name(), limit.formula())];
        let best = self.rows.iter().filter(|row| row.place.hosts == 1).min_by(|a, b| self.faster(a, b));
        if let Some(best) = best.filter(|best| best.order != own.order) {
            let times = own.prediction.round_s() / best.prediction.round_s();
            lines.push(format!("{} on {} is {times:.2} times as fast, and another result", best.order, best.place()));
        }
        let hosts = self.rows.iter().filter(|row| row.order == own.order && row.place.hosts > 1);
        lines.extend(hosts.map(|row| {
            let times = own.prediction.round_s() / row.prediction.round_s();
            format!("{} would be {times:.2} times as fast, limited by {}", row.place(), row.prediction.limit().name())
        }));
        lines
    }

    fn faster(&self, a: &Row, b: &Row) -> std::cmp::Ordering {
        a.prediction.round_s().total_cmp(&b.prediction.round_s())
    }

    /// How good the predictions are, if something was measured: the mean and the largest error, and how far the choice is from the best.
    fn judgement(&self) -> Option<String> {
        let errors: Vec<f64> = self.rows.iter().filter_map(Row::error).map(f64::abs).collect();
        let measured = || self.rows.iter().filter_map(|row| Some((row, row.measured_s?)));
        let best = measured().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let choice = measured().min_by(|a, b| self.faster(a.0, b.0))?;
        let mean = 100.0 * errors.iter().sum::<f64>() / errors.len() as f64;
        let largest = 100.0 * errors.iter().copied().fold(0.0, f64::max);
        Some(format!(
            "error {mean:.0} % in the mean, {largest:.0} % at most; the choice, {} on {}, is {:.0} % from the best, {} on {}",
            choice.0.order,
            choice.0.place(),
            100.0 * (choice.1 / best.1 - 1.0),
            best.0.order,
            best.0.place()
        ))
    }

    pub(super) fn print_json(&self, console: &mut Console) -> Result<()> {
        let row = |row: &Row| {
            let Place { hosts, threads, link, .. } = row.place;
            let rounds = f64::from(row.prediction.rounds.max(1));
            let terms: Map<String, Value> =
                row.prediction.terms.iter().map(|(cost, s)| (cost.name().to_string(), (s / rounds).into())).collect();
            json!({
                "order": row.order.to_string(),
                "hosts": hosts,
                "threads": threads,
                "gpu": row.gpu.as_ref().map(|gpu| json!({ "name": gpu.name, "software": gpu.is_software })),
                "share": row.share,
                "packed": row.is_packed,
                "link": link.map(|link| json!({ "latency_s": link.latency_s, "bytes_per_s": link.bytes_per_s })),
                "step_s": row.prediction.step_s(),
                "rounds": row.prediction.rounds,
                "ns_per_update": self.ns(row.prediction.round_s()),
                "limit": row.prediction.limit().name(),
                "terms_s": terms,
                "bytes": row.bytes,
                "reads_per_update": row.reads_per_update,
                "measured_ns_per_update": row.measured_s.map(|s| self.ns(s)),
                "error": row.error(),
            })
        };
        let rows: Vec<Value> = self.rows.iter().map(row).collect();
        let all = json!({
            "example": self.plan.entry.info.name,
            "mesh": self.plan.mesh.to_string_lossy(),
            "vertices": self.vertices,
            "precision": self.plan.precision(),
            "order": self.order.to_string(),
            "configurations": rows,
        });
        let text = serde_json::to_string(&all).context("cannot print the plan")?;
        Ok(writeln!(console.out, "{text}")?)
    }
}

/// The machine in a line.
fn machine(machine: &Machine) -> String {
    let rate = |threads: usize, bytes: f64| 1e-9 / machine.byte_s(threads, bytes);
    let of = |threads: usize| {
        let [cache, memory] = [2e6, 1e12].map(|bytes| rate(threads, bytes));
        format!("{}: {cache:.0} GB/s in a cache, {memory:.0} from memory", text::counted(threads, "thread", "threads"))
    };
    let counts = if machine.threads > 1 { vec![1, machine.threads] } else { vec![1] };
    counts.into_iter().map(of).collect::<Vec<_>>().join("; ")
}
