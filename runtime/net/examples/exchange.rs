//! What messages cost: two threads of this process, each a host of a run, that answer each other's messages over QUIC on loopback.
//!
//! ```text
//! cargo run --release -p meshweft-net --example exchange [ROUNDS]
//! ```
//!
//! Each round both send a message and wait for the other's. Printed are microseconds a round, microseconds of processor time of each of
//! the two threads and of all others, and the same of a turn of the network in which nothing has come.

use meshweft_net::quic::{Listening, Quic, Settings, join};
use meshweft_net::{Event, Sink, Transport};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(20_000), |rounds| rounds.parse::<u64>())?;
    let came = [Arc::<AtomicU64>::default(), Arc::default()];
    let [first, second] = connect(&came)?;
    println!("{:>9} {:>10} {:>14} {:>8}", "bytes", "us a round", "cpu a thread", "others");
    for bytes in [64, 1 << 10, 16 << 10, 64 << 10] {
        let rounds = rounds.min((1 << 30) / bytes as u64);
        let start = (of_process(), Instant::now());
        let barrier = Barrier::new(2);
        let own = std::thread::scope(|scope| {
            let other = scope.spawn(|| speak(&second, 0, &came[1], bytes, rounds, &barrier));
            speak(&first, 1, &came[0], bytes, rounds, &barrier) + other.join().expect("no end of it panics")
        });
        let (all, wall) = (of_process() - start.0, start.1.elapsed());
        let a_round = |time: Duration| time.as_secs_f64() * 1e6 / rounds as f64;
        println!(
            "{bytes:>9} {:>10.1} {:>14.1} {:>8.1}",
            a_round(wall),
            a_round(own) / 2.0,
            a_round(all.saturating_sub(own))
        );
    }
    let (turns, start) = (100_000, Instant::now());
    let had = (0..turns).filter(|_| first.turn()).count();
    println!(
        "an idle turn: {:.2} us, {had} of {turns} had the network",
        start.elapsed().as_secs_f64() * 1e6 / f64::from(turns)
    );
    std::thread::scope(|scope| {
        scope.spawn(|| second.close());
        first.close();
    });
    Ok(())
}

/// Two hosts that are connected. `came`: counts what has come to each.
fn connect(came: &[Arc<AtomicU64>; 2]) -> Result<[Quic; 2], Box<dyn std::error::Error>> {
    let settings = Settings { listen: (Ipv4Addr::LOCALHOST, 0).into(), ..Settings::default() };
    let sink = |came: &Arc<AtomicU64>| -> Sink {
        let came = came.clone();
        Arc::new(move |event| match event {
            Event::Message { .. } => _ = came.fetch_add(1, Ordering::Release),
            Event::Lost { why, .. } => panic!("{why}"),
        })
    };
    let listening = Listening::start(1, settings.clone(), sink(&came[0]))?;
    let (token, second) = (listening.token().clone(), sink(&came[1]));
    let joining = std::thread::spawn(move || join(&token, settings, second));
    let first = listening.wait_for_workers(Instant::now() + PATIENCE, |_| {}, || Ok(()))?;
    Ok([first, joining.join().expect("a worker does not panic")?])
}

/// Sends and waits in turns. Returns the processor time of this thread.
fn speak(own: &Quic, other: u32, came: &AtomicU64, bytes: usize, rounds: u64, barrier: &Barrier) -> Duration {
    let before = came.load(Ordering::Acquire);
    barrier.wait();
    let start = of_thread("/proc/thread-self".as_ref());
    for round in 1..=rounds {
        own.send(other, vec![7; bytes]);
        let deadline = Instant::now() + PATIENCE;
        while came.load(Ordering::Acquire) < before + round {
            assert!(Instant::now() < deadline, "message {round} of {bytes} bytes is lost");
            if !own.rest(Duration::from_millis(1), &|| came.load(Ordering::Acquire) >= before + round) {
                std::hint::spin_loop();
            }
        }
    }
    of_thread("/proc/thread-self".as_ref()) - start
}

/// Processor time of all threads of this process.
fn of_process() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    threads.map(|thread| of_thread(&thread.path())).sum()
}

/// Processor time of the thread with this folder in `/proc`. Zero where the system does not tell.
fn of_thread(folder: &Path) -> Duration {
    let told = std::fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0))
}
