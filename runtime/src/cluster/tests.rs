//! Random graphs and steps on several hosts in one process: the bits are those of the oracle.

mod grid;
mod lost;
mod pieces;
mod values;

use super::driver::{self, Driver};
use super::exchange::Exchange;
use super::message::{self, Begin, Control};
use super::packing::Compress;
use super::simulated::{Crash, DEAD, Faults, Simulated};
use super::stream::Incoming;
use super::worker;
use crate::engine::cpu::stress::{Case, Random, traced_table, words};
use crate::engine::{Engine, Interpreter, Remote, Serial, Table};
use crate::error::{Error, Result};
use crate::layout::{Domain, Forms, Layout, State, ViewMut};
use crate::number::{Int, Precision};
use crate::step::Step;
use meshweft_net::{Host, memory};
use meshweft_schedule::Order;
use std::sync::Arc;
use std::time::Duration;

/// Exchanges of hosts that pass messages through memory.
fn exchanges(hosts: u32) -> Vec<Arc<Exchange>> {
    let exchanges: Vec<_> = (0..hosts).map(|_| Exchange::new()).collect();
    let transports = memory::hosts(exchanges.iter().map(Exchange::sink).collect());
    for (exchange, transport) in exchanges.iter().zip(transports) {
        exchange.connect(Arc::new(transport));
    }
    exchanges
}

/// A world in which a seed decides what happens to frames, and the exchanges of its hosts.
fn simulated(hosts: u32, seed: u64, faults: Faults) -> (Arc<Simulated>, Vec<Arc<Exchange>>) {
    let world = Simulated::new(hosts, seed, faults);
    let ends: Vec<_> = (0..hosts).map(|host| world.host(host)).collect();
    let exchanges: Vec<_> = ends.iter().map(|end| Exchange::in_time(end.clone())).collect();
    world.begin(exchanges.clone());
    for (exchange, end) in exchanges.iter().zip(ends) {
        exchange.connect(end);
    }
    (world, exchanges)
}

/// One random case, which nothing can stop. Returns the trace of the simulation, if there is one, and how long it is.
fn check(seed: u64, faults: Option<Faults>) -> Option<(String, u64)> {
    let (result, _, world) = run(seed, faults, false);
    result.unwrap();
    world.map(|world| world.trace())
}

/// How many workers the case of a seed has.
fn workers(seed: u64) -> usize {
    1 + Random(seed ^ 0x0b05).below(5)
}

/// One random case: an error if the driver ended with one, and when; a panic if anything differs from the oracle. Every worker has
/// ended.
fn run(seed: u64, faults: Option<Faults>, has_gpus: bool) -> (Result<()>, Duration, Option<Arc<Simulated>>) {
    let random = &mut Random(seed);
    let n = 1 + random.below(300);
    let (order, grain) = (random.one_of(&Order::ALL), 1 + random.below(40) as u32);
    let (width, threads) = (random.one_of(&[1, 8, 16]), 1 + random.below(3));
    let workers = workers(seed);
    let (edges, parts, is_calm) = (random.edges(n), random.parts(n), random.below(2) == 0);
    let steps: Vec<Step<Int>> = (0..1 + random.below(6) as u32)
        .map(|number| Step { number, parameters: Vec::new(), stages: random.stages(order, is_calm, 2) })
        .collect();
    let forms =
        if has_gpus { Forms::Tables } else { random.one_of(&[Forms::Any, Forms::Tables, Forms::Spread, Forms::Rows]) };
    let case = Case::in_parts(&parts, edges, order, grain).of(forms);
    let (table, globals) = (Arc::new(traced_table()), vec![Int(0); 2]);
    let (layout, state) = case.laid_out(width);
    let owners: Vec<u32> = (0..case.schedule.graph().len()).map(|_| random.below(workers) as u32).collect();
    let (world, mut exchanges) = match faults {
        None => (None, exchanges(workers as u32 + 1)),
        Some(faults) => {
            let (world, exchanges) = simulated(workers as u32 + 1, seed, faults);
            (Some(world), exchanges)
        }
    };
    let threads = if world.is_some() { 1 } else { threads };
    let mut ended = Duration::ZERO;
    let result = std::thread::scope(|scope| {
        for (host, exchange) in (1..).zip(exchanges.split_off(1)) {
            let world = world.clone();
            scope.spawn(move || {
                let work = || worker::work(&exchange, &worker::begin(&exchange)?, traced_table(), None);
                // The driver hears of what goes wrong.
                let _ = lives(world.as_deref(), host, work);
                exchange.transport().close();
            });
        }
        let begin = driver::begin(&table, &layout.stars, &globals, threads);
        // At least one of them.
        let on_gpu = |i: usize| (has_gpus && (i == 0 || seed >> i & 1 == 1)).then_some(0);
        let compress = Random(seed ^ 0xc0de).one_of(&[Compress::Auto, Compress::Always, Compress::Never]);
        let begin = Begin { gpus: (0..workers).map(on_gpu).collect(), compress, ..begin };
        let drive = || {
            let exchange = exchanges.remove(0);
            let mut driver = Driver::new(exchange, layout.clone(), owners, &state, &begin)?;
            let (plain, state) = case.laid_out(1);
            let mut oracle = Interpreter::new(Serial::new(plain.domain.clone(), state), table.clone(), globals.clone());
            let gpus = driver.facts().hosts.iter().filter(|host| !host.gpu.is_empty()).count();
            assert_eq!(gpus > 0, has_gpus, "{gpus} GPUs");
            let mut snapshots = Vec::new();
            for (i, step) in steps.iter().enumerate() {
                driver.step(step)?;
                oracle.step(step)?;
                match random.below(4) {
                    0 => {
                        let (v, word) = (random.below(n) as u32, Int(random.below(1 << 20) as i32));
                        let set = |layout: &Layout, state: &mut ViewMut<Int>| {
                            layout.slots_of(v).for_each(|slot| state.set(slot, 0, word));
                        };
                        driver.edit(&mut |mut state| set(&layout, &mut state))?;
                        oracle.edit(&mut |mut state| set(&plain, &mut state))?;
                    }
                    1 => assert_eq!(driver.globals()?, oracle.globals()?, "after step {i}"),
                    2 => {
                        let measure = |engine: &mut dyn Engine<Int>| engine.measure(2, &Default::default(), &[], 0);
                        assert_eq!(measure(&mut driver)?, measure(&mut oracle)?, "after step {i}");
                    }
                    // Read when the steps behind it are done.
                    _ => snapshots.push((driver.snapshot()?, words(&plain, oracle.state()?))),
                }
            }
            assert_eq!(words(&layout, driver.state()?), words(&plain, oracle.state()?));
            for (state, expected) in snapshots {
                // None if the driver had it already.
                let state = state.map(|state| state()).transpose()?;
                assert!(state.is_none_or(|state| words(&layout, state.view()) == expected));
            }
            assert_eq!(driver.globals()?, oracle.globals()?);
            // Hosts with GPUs may take more rounds to see that nothing changes.
            let loops = [driver.settle()?.loops, oracle.settle()?.loops];
            assert!(has_gpus || loops[0] == loops[1], "{loops:?}");
            Ok(())
        };
        let drive = || {
            let result = drive();
            ended = world.as_ref().map_or(Duration::ZERO, |world| world.now());
            result
        };
        lives(world.as_deref(), 0, drive)
    });
    (result, ended, world)
}

/// The life of a host's thread: it takes its turns in a simulated world, if there is one, and may crash there.
fn lives(world: Option<&Simulated>, host: Host, life: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some(world) = world else { return life() };
    let all = || {
        world.enter(host);
        life()
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(all)) {
        Ok(result) => {
            world.leave(host);
            result
        }
        Err(panic) if panic.is::<Crash>() => Err(Error::Cluster("crashed".into())),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The seeds to try: that of the environment, or the first so many.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match (number("SEED"), number("SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(count),
    }
}

fn each_seed(count: u64, check: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in seeds(count) {
        if let Err(panic) = std::panic::catch_unwind(|| check(seed)) {
            eprintln!("this case again: SEED={seed} cargo test -p meshweft --lib cluster");
            std::panic::resume_unwind(panic);
        }
    }
}

/// `SEED=17 cargo test cluster` repeats one case.
#[test]
fn any_graph_step_partition_and_number_of_hosts_gives_the_bits_of_the_oracle() {
    each_seed(200, |seed| _ = check(seed, None));
}

/// Some workers on a GPU, the others on their cores. `SEEDS=1000 cargo test hosts_with_gpus` tries more.
#[test]
#[cfg(feature = "gpu")]
fn hosts_with_gpus_have_the_bits_of_the_oracle() {
    if crate::conformance::gpu_or_skip().is_some() {
        each_seed(16, |seed| run(seed, None, true).0.unwrap());
    }
}

/// `SEEDS=10000 cargo test simulated` tries more.
#[test]
fn simulated_delays_and_losses_change_nothing() {
    each_seed(200, |seed| {
        let random = &mut Random(seed ^ 0x5eed);
        let faults = Faults {
            lost: random.below(200) as u64,
            delay: Duration::from_micros(random.below(50_000) as u64),
            ..Faults::default()
        };
        let [first, second] = [0, 1].map(|_| check(seed, Some(faults)).unwrap());
        assert_eq!(first, second, "a seed is a run");
        assert!(first.1 > 0);
    });
}

/// A host that ends without a word, the driver too, and two that cannot hear each other any more: nobody waits for ever, and the
/// driver's error says who was lost [R11].
#[test]
fn a_host_that_crashes_or_is_cut_off_ends_the_run_everywhere_in_time() {
    let failed = std::sync::atomic::AtomicU64::new(0);
    each_seed(100, |seed| {
        let random = &mut Random(seed ^ 0xdead);
        let at = Duration::from_micros(random.below(400_000) as u64);
        let workers = workers(seed);
        let first = random.below(workers + 1) as Host;
        let second = (first + 1 + random.below(workers) as Host) % (workers as Host + 1);
        let crashes = random.below(2) == 0;
        let faults = Faults {
            lost: random.below(100) as u64,
            delay: Duration::from_micros(1 + random.below(20_000) as u64),
            crash: crashes.then_some((first, at)),
            cut: (!crashes).then_some(([first, second], at)),
        };
        let (result, ended, _) = run(seed, Some(faults), false);
        let Err(error) = result else { return };
        failed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let text = error.to_string();
        let names = |host: Host| text.contains(&format!("host {host} "));
        assert!(names(first) || names(second) || text.contains("crashed"), "{faults:?}: {text}");
        // What was under way when it happened may take a while; then twice the time of silence.
        assert!(ended <= at + 2 * DEAD + Duration::from_secs(2), "{faults:?}: {text} after {ended:?}");
    });
    assert!(std::env::var("SEED").is_ok() || failed.into_inner() > 20, "faults come in time");
}

/// A member that answers, but does nothing.
#[test]
fn a_run_in_which_nobody_moves_ends_and_says_who_waits_for_whom() {
    let case = Case::new(64, (0..63).map(|v| [v, v + 1]).collect(), Order::BLOCKED, 8);
    let (table, globals) = (Arc::new(traced_table()), vec![Int(0); 2]);
    let (layout, state) = case.laid_out(8);
    let owners: Vec<u32> = (0..case.schedule.graph().len() as u32).map(|t| t % 2).collect();
    let (world, mut exchanges) = simulated(3, 1, Faults::default());
    let result = std::thread::scope(|scope| {
        for (host, exchange) in (1..).zip(exchanges.split_off(1)) {
            let world = &world;
            scope.spawn(move || {
                let work = || {
                    let begin = worker::begin(&exchange)?;
                    if host == 1 {
                        return worker::work(&exchange, &begin, traced_table(), None);
                    }
                    let mut from = Incoming::new(&exchange, 0);
                    let domain = Domain::read(&mut from, Precision::I32, message::stars(&begin.stars)?)?;
                    State::<Int>::zeros(domain.slots(), domain.shape).read(0..domain.slots(), &mut from)?;
                    exchange.set_share(&domain, begin.compress);
                    exchange.send(0, Control::Ready(String::new()).encode());
                    // Until the driver has enough of it.
                    loop {
                        let found = exchange
                            .receive(DEAD, |_, message| matches!(Control::decode(message), Ok(Control::End { .. })))?;
                        if found.is_some() {
                            return Ok(());
                        }
                    }
                };
                lives(Some(world), host, work)
            });
        }
        let begin = driver::begin(&table, &layout.stars, &globals, 1);
        let drive = || {
            let exchange = exchanges.remove(0);
            let mut driver = Driver::new(exchange, layout.clone(), owners, &state, &begin)?;
            let stages = Random(3).stages(Order::BLOCKED, true, 2);
            driver.step(&Step { number: 0, parameters: Vec::new(), stages })?;
            driver.settle().map(|_| ())
        };
        lives(Some(&world), 0, drive)
    });
    let text = result.unwrap_err().to_string();
    assert!(text.contains("no worker has moved") && text.contains("host 1 waits in round"), "{text}");
    assert!(text.contains("of host 2") && text.contains("; host 2 waits for no task"), "{text}");
}
