//! What each host of a run has and has done, for people and for programs.

use super::text;
use anyhow::Result;
use meshweft::HostReport;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::Write;

/// What a host has of the mesh.
pub(super) fn share(host: &HostReport) -> Value {
    let HostReport { host, vertices, tasks, boundary, ghosts, neighbors, .. } = host;
    json!({
        "host": host, "vertices": vertices, "tasks": tasks, "boundary": boundary, "ghosts": ghosts, "neighbors": neighbors,
    })
}

/// That, and more.
fn share_and(host: &HostReport, more: Value) -> Value {
    let both = [share(host), more].into_iter().filter_map(|value| value.as_object().cloned());
    both.flatten().collect::<Map<String, Value>>().into()
}

/// What a host would have, and send in a round.
#[cfg(feature = "cluster")]
pub(super) fn planned(host: &HostReport) -> Value {
    share_and(host, json!({ "messages_a_round": host.round_messages, "bytes_a_round": host.round_bytes }))
}

/// What a host has sent in searches, if hosts stand in a grid: bytes as they would have been and as they went out.
fn search(host: &HostReport) -> Option<Value> {
    let [lists, frontiers, offers, predecessors] = host.search_bytes;
    (frontiers[0] + offers[0] > 0).then(|| {
        json!({
            "ids": host.search_ids,
            "lists_of_ids": lists,
            "frontiers": frontiers,
            "offers": offers,
            "predecessors": predecessors,
        })
    })
}

/// What a host has, and has done.
pub(super) fn done(host: &HostReport, rounds: u64) -> Value {
    let a_round = |x: u64| if rounds > 0 { x as f64 / rounds as f64 } else { 0.0 };
    let figures = json!({
        "gpu": host.gpu,
        "most": host.most,
        "threads": host.threads,
        "updating_s": host.updating_s,
        "waiting_s": host.waiting_s,
        "overlapped": host.overlapped,
        "sent_bytes": host.sent_bytes,
        "sent_messages": host.sent_messages,
        "value_bytes": host.value_bytes,
        "value_bytes_sent": host.value_bytes_sent,
        "bytes_a_round": a_round(host.sent_bytes),
        "messages_a_round": a_round(host.sent_messages),
        "memory_bytes": host.memory_bytes,
        "search": search(host),
    });
    share_and(host, figures)
}

/// A line for each host.
pub(super) fn print(hosts: &[Value], out: &mut dyn Write) -> Result<()> {
    if hosts.is_empty() {
        return Ok(());
    }
    let head = [
        "host",
        "vertices",
        "boundary",
        "ghosts",
        "updating",
        "waiting",
        "overlapped",
        "sent",
        "a round",
        "messages a round",
        "memory",
        "on",
    ];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for host in hosts {
        let number = |key: &str| host[key].as_f64().unwrap_or(0.0);
        let count = |key: &str| text::count(number(key) as usize);
        rows.push(vec![
            count("host"),
            count("vertices"),
            count("boundary"),
            count("ghosts"),
            text::seconds(number("updating_s")),
            text::seconds(number("waiting_s")),
            host["overlapped"].as_f64().map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)),
            text::bytes(number("sent_bytes")),
            text::bytes(number("bytes_a_round")),
            text::number(number("messages_a_round")),
            text::bytes(number("memory_bytes")),
            match host["gpu"].as_str() {
                Some(gpu) if !gpu.is_empty() => gpu.into(),
                _ => text::counted(number("threads") as usize, "thread", "threads"),
            },
        ]);
    }
    writeln!(out)?;
    text::table(out, &rows)?;
    let sum = |key: &str| hosts.iter().filter_map(|host| host[key].as_u64()).sum::<u64>() as f64;
    let (before, after) = (sum("value_bytes"), sum("value_bytes_sent"));
    if after != before {
        let share = 100.0 * after / before;
        let [before, after] = [before, after].map(text::bytes);
        writeln!(out, "values   {before}, packed into {after}: {share:.0} %")?;
    }
    for (key, name) in [("frontiers", "frontiers"), ("offers", "offers"), ("predecessors", "predecessors")] {
        let [before, after] =
            [0, 1].map(|i| hosts.iter().filter_map(|host| host["search"][key][i].as_u64()).sum::<u64>() as f64);
        if before > 0.0 {
            let share = 100.0 * after / before;
            let [before, after] = [before, after].map(text::bytes);
            writeln!(out, "{name:13}{before}, sent as {after}: {share:.0} %")?;
        }
    }
    Ok(())
}

/// How many threads' worth of updates went on at once, on all hosts together, where threads update.
#[derive(Serialize)]
pub(super) struct SpeedUp {
    measured: f64,
    /// If hosts waited for that with the largest share alone.
    predicted: f64,
    threads: usize,
}

impl SpeedUp {
    pub(super) fn of(hosts: &[HostReport]) -> Option<SpeedUp> {
        let most = |of: &dyn Fn(&HostReport) -> f64| {
            hosts.iter().map(|host| of(host) / host.threads as f64).fold(0.0, f64::max)
        };
        let longest = most(&|host| host.updating_s + host.waiting_s);
        let largest = most(&|host| host.vertices as f64);
        let are_threads = hosts.iter().all(|host| host.gpu.is_empty());
        (longest > 0.0 && are_threads).then(|| SpeedUp {
            measured: hosts.iter().map(|host| host.updating_s).sum::<f64>() / longest,
            predicted: hosts.iter().map(|host| host.vertices).sum::<usize>() as f64 / largest,
            threads: hosts.iter().map(|host| host.threads).sum(),
        })
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> Result<()> {
        let SpeedUp { measured, predicted, threads } = self;
        let threads = text::counted(*threads, "thread", "threads");
        writeln!(
            out,
            "speed-up {measured:.2} on {threads}; {predicted:.2} if hosts waited for the largest share alone"
        )?;
        Ok(())
    }
}

/// The share of its time that a host waits.
fn waits(host: &HostReport) -> f64 {
    host.waiting_s / (host.waiting_s + host.updating_s).max(f64::MIN_POSITIVE)
}

/// The host that the others wait for, of several.
fn waited_for(hosts: &[HostReport]) -> Option<&HostReport> {
    let slowest = hosts.iter().filter(|host| host.updating_s > 0.0).min_by(|a, b| waits(a).total_cmp(&waits(b)));
    slowest.filter(|_| hosts.len() > 1)
}

/// The same, while a run goes on.
pub(super) fn slowest(hosts: &[HostReport]) -> String {
    let Some(host) = waited_for(hosts) else { return String::new() };
    let most = hosts.iter().map(waits).fold(0.0, f64::max);
    let (number, own, most) = (host.host, 100.0 * waits(host), 100.0 * most);
    format!(", slowest host {number}: waits {own:.0} % of its time, others up to {most:.0} %")
}

/// A small table of hosts while a run goes on, after so many steps, as of the last report of each.
pub(super) fn now(hosts: &[HostReport], steps: u64) -> Vec<Vec<String>> {
    let slowest = waited_for(hosts).map(|host| host.host);
    let row = |host: &HostReport| {
        let wait = match slowest {
            Some(slowest) if slowest == host.host => format!("{:.0} %, waited for", 100.0 * waits(host)),
            _ => format!("{:.0} %", 100.0 * waits(host)),
        };
        let step = steps.saturating_sub(host.behind);
        vec![host.host.to_string(), text::count(host.vertices), step.to_string(), wait]
    };
    let head = ["host", "vertices", "step", "waits"].map(str::to_string).to_vec();
    std::iter::once(head).chain(hosts.iter().map(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_that_waits_least_is_the_one_that_others_wait_for() {
        let host = |host, waiting_s, behind| HostReport {
            host,
            vertices: 1500,
            updating_s: 2.0,
            waiting_s,
            behind,
            ..HostReport::default()
        };
        let hosts = [host(1, 0.5, 3), host(2, 2.0, 0)];
        let table = now(&hosts, 12);
        assert_eq!(table[1], ["1", "1 500", "9", "20 %, waited for"]);
        assert_eq!(table[2], ["2", "1 500", "12", "50 %"]);
        assert!(slowest(&hosts).starts_with(", slowest host 1: waits 20 % of its time, others up to 50 %"));
        assert_eq!((slowest(&hosts[..1]), now(&hosts[..1], 12)[1][3].as_str()), (String::new(), "20 %"));
    }
}
