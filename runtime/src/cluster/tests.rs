//! Random graphs and steps on several hosts in one process: the bits are those of the oracle.

use super::children::Children;
use super::driver::{self, Driver};
use super::exchange::Exchange;
use super::peer::{Identity, Network, Peer};
use super::simulated::{Faults, Simulated};
use super::transport::memory;
use super::worker;
use crate::engine::cpu::stress::{Case, Mixing, Random, words};
use crate::engine::{Engine, Interpreter, Serial, Table};
use crate::layout::{Layout, ViewMut};
use crate::number::Int;
use crate::schedule::Order;
use crate::step::Step;
use std::sync::Arc;
use std::time::Duration;

/// Exchanges of hosts that pass messages through memory.
fn exchanges(hosts: u32) -> Vec<Arc<Exchange>> {
    let peer = |host| Peer::new(Identity { run: 7, incarnation: 1, host }, hosts, Network::Reliable);
    let exchanges: Vec<_> = (0..hosts).map(|_| Exchange::new()).collect();
    let transports = memory::hosts(exchanges.iter().map(Exchange::sink).collect());
    for (host, (exchange, transport)) in (0..).zip(exchanges.iter().zip(transports)) {
        exchange.connect(peer(host), Arc::new(transport));
    }
    exchanges
}

/// A world in which a seed decides what happens to frames, and the exchanges of its hosts.
fn simulated(hosts: u32, seed: u64, faults: Faults) -> (Arc<Simulated>, Vec<Arc<Exchange>>) {
    let network = Network::Lossy { resend: Duration::from_millis(20), dead: Duration::from_secs(10) };
    let world = Simulated::new(hosts, seed, faults);
    let ends: Vec<_> = (0..hosts).map(|host| world.host(host)).collect();
    let exchanges: Vec<_> = ends.iter().map(|end| Exchange::in_time(end.clone())).collect();
    world.begin(exchanges.clone());
    for (host, (exchange, end)) in (0..).zip(exchanges.iter().zip(ends)) {
        exchange.connect(Peer::new(Identity { run: 7, incarnation: 1, host }, hosts, network), end);
    }
    (world, exchanges)
}

/// One random case. Returns the trace of the simulation, if there is one, and how long it is.
fn check(seed: u64, faults: Option<Faults>) -> Option<(String, u64)> {
    let random = &mut Random(seed);
    let n = 1 + random.below(300);
    let (order, grain) = (random.one_of(&Order::ALL), 1 + random.below(40) as u32);
    let (width, threads) = (random.one_of(&[1, 8, 16]), 1 + random.below(3));
    let workers = 1 + random.below(5);
    let (edges, is_calm) = (random.edges(n), random.below(2) == 0);
    let steps: Vec<Step<Int>> = (0..1 + random.below(6) as u32)
        .map(|number| Step { number, parameters: Vec::new(), stages: random.stages(order, is_calm, 2) })
        .collect();
    let case = Case::new(n, edges, order, grain);
    let (table, globals) = (Arc::new(Table::<Int>::of::<Mixing>()), vec![Int(0); 2]);
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
    std::thread::scope(|scope| {
        for (host, exchange) in (1..).zip(exchanges.split_off(1)) {
            let world = world.clone();
            scope.spawn(move || {
                world.iter().for_each(|world| world.enter(host));
                let begin = worker::begin(&exchange).unwrap();
                worker::work::<Mixing, Int>(&exchange, &begin).unwrap();
                world.iter().for_each(|world| world.leave(host));
                exchange.transport().close();
            });
        }
        let begin = driver::begin::<Mixing, Int>(&table, 1, &globals, threads);
        let children = Children::none();
        let mut driver = Driver::new(exchanges.remove(0), layout.clone(), owners, &state, &begin, children).unwrap();
        let (plain, state) = case.laid_out(1);
        let mut oracle = Interpreter::new(Serial::new(plain.domain.clone(), state), table.clone(), globals.clone());
        for (i, step) in steps.iter().enumerate() {
            driver.step(step).unwrap();
            oracle.step(step).unwrap();
            match random.below(4) {
                0 => {
                    let (v, word) = (random.below(n) as u32, Int(random.below(1 << 20) as i32));
                    let set = |layout: &Layout<Int>, state: &mut ViewMut<Int>| {
                        layout.slots_of(v).for_each(|slot| state.set(slot, 0, word));
                    };
                    driver.edit(&mut |mut state| set(&layout, &mut state)).unwrap();
                    oracle.edit(&mut |mut state| set(&plain, &mut state)).unwrap();
                }
                1 => assert_eq!(driver.globals().unwrap(), oracle.globals().unwrap(), "after step {i}"),
                2 => {
                    let measure =
                        |engine: &mut dyn Engine<Int>| engine.measure(2, &Default::default(), &[], 0).unwrap();
                    assert_eq!(measure(&mut driver), measure(&mut oracle), "after step {i}");
                }
                _ => {}
            }
        }
        assert_eq!(words(&layout, driver.state().unwrap()), words(&plain, oracle.state().unwrap()));
        assert_eq!(driver.globals().unwrap(), oracle.globals().unwrap());
        drop(driver);
        world.iter().for_each(|world| world.leave(0));
    });
    world.map(|world| world.trace())
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

/// `SEEDS=10000 cargo test simulated` tries more.
#[test]
fn simulated_loss_duplication_delay_and_reordering_change_nothing() {
    each_seed(200, |seed| {
        let random = &mut Random(seed ^ 0x5eed);
        let faults = Faults {
            lost: random.below(200) as u64,
            twice: random.below(200) as u64,
            delay: Duration::from_micros(random.below(50_000) as u64),
            crash: None,
            cut: None,
        };
        let [first, second] = [0, 1].map(|_| check(seed, Some(faults)).unwrap());
        assert_eq!(first, second, "a seed is a run");
        assert!(first.1 > 0);
    });
}
