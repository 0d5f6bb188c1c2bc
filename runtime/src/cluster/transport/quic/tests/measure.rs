//! Throughput, latency and processor time on loopback: run by hand, for docs/perf/notes.md, as
//! `MTU=1452,4000 cargo test --release -p meshweft --lib measure::loopback -- --ignored --nocapture`.

use super::{SOON, inbox, quic, settings};
use crate::cluster::transport::quic::Settings;
use crate::cluster::transport::{Event, Sink, Transport};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Seconds of processor time that this process took, in all threads.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

#[test]
#[ignore = "a measurement"]
fn loopback() {
    let sizes = std::env::var("MTU").unwrap_or("1452,2500,4000,6500,8900".into());
    for mtu in sizes.split(',').map(|mtu| mtu.parse().unwrap()) {
        for bytes in [64, 1 << 10, 64 << 10, 1 << 20] {
            let received = Arc::<AtomicU64>::default();
            let counter = received.clone();
            let sink: Sink = Arc::new(move |event| {
                if let Event::Message { bytes, .. } = event {
                    counter.fetch_add(bytes.len() as u64, Relaxed);
                }
            });
            let hosts = quic(vec![inbox().sink(), sink], &Settings { mtu: Some(mtu), ..settings() });
            let total: u64 = if bytes < 1000 { 40 << 20 } else { 800 << 20 };
            let (begun, cpu) = (Instant::now(), cpu_s());
            for _ in 0..total / bytes {
                if !hosts[0].wait_for_room(1, 4 << 20, Instant::now() + SOON) {
                    panic!("lost");
                }
                hosts[0].send(1, vec![1; bytes as usize]);
            }
            while received.load(Relaxed) < total / bytes * bytes {
                std::thread::sleep(Duration::from_micros(100));
            }
            let (seconds, cpu) = (begun.elapsed().as_secs_f64(), cpu_s() - cpu);
            let (rate, each) = (total as f64 / seconds / 1e6, cpu / total as f64 * 1e9);
            println!("mtu {mtu:5}  {bytes:8} B  {rate:7.0} MB/s  {each:6.2} ns of processor time a byte");
        }
        println!("mtu {mtu:5}  echo of 1 KiB: {:?}", echo(mtu, 1 << 10));
        println!("mtu {mtu:5}  echo of 64 KiB: {:?}", echo(mtu, 64 << 10));
    }
}

/// How long a message takes there and back: median and 99 of 100.
fn echo(mtu: u16, bytes: usize) -> (Duration, Duration) {
    let (told, hear) = mpsc::channel();
    let told = Mutex::new(told);
    let home: Sink = Arc::new(move |event| drop(told.lock().unwrap().send(event)));
    let (away, hear_away) = mpsc::channel();
    let away = Mutex::new(away);
    let other: Sink = Arc::new(move |event| drop(away.lock().unwrap().send(event)));
    let mut hosts = quic(vec![home, other], &Settings { mtu: Some(mtu), ..settings() });
    let worker = hosts.pop().unwrap();
    let driver = hosts.pop().unwrap();
    let answering = std::thread::spawn(move || {
        while let Ok(Event::Message { bytes, .. }) = hear_away.recv() {
            worker.send(0, bytes);
        }
    });
    let mut times = Vec::new();
    for _ in 0..2000 {
        let begun = Instant::now();
        driver.send(1, vec![1; bytes]);
        hear.recv().unwrap();
        times.push(begun.elapsed());
    }
    drop(driver);
    answering.join().unwrap();
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}
