//! Random graphs and steps on several hosts in one process: the bits are those of the oracle.

use super::children::Children;
use super::codec::Form;
use super::driver::{self, Driver};
use super::exchange::Exchange;
use super::message::{self, Begin, Control};
use super::packing::Compress;
use super::peer::{Identity, Network, Peer};
use super::simulated::{Crash, Faults, Simulated};
use super::stream::Incoming;
use super::transport::{Host, memory};
use super::values;
use super::worker;
use crate::engine::cpu::stress::{Case, Mixing, Random, SPREAD, STIR, words};
use crate::engine::{Engine, HostReport, Interpreter, Serial, Table};
use crate::error::{Error, Result};
use crate::layout::{Domain, Layout, Share, State, ViewMut};
use crate::number::Int;
use crate::schedule::{Order, Rule};
use crate::step::{Stage, Step};
use std::sync::Arc;
use std::time::Duration;

/// A host of which nothing is heard for that long is lost.
const DEAD: Duration = Duration::from_secs(10);

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
    let network = Network::Lossy { resend: Duration::from_millis(20), dead: DEAD };
    let world = Simulated::new(hosts, seed, faults);
    let ends: Vec<_> = (0..hosts).map(|host| world.host(host)).collect();
    let exchanges: Vec<_> = ends.iter().map(|end| Exchange::in_time(end.clone())).collect();
    world.begin(exchanges.clone());
    for (host, (exchange, end)) in (0..).zip(exchanges.iter().zip(ends)) {
        exchange.connect(Peer::new(Identity { run: 7, incarnation: 1, host }, hosts, network), end);
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
    let mut ended = Duration::ZERO;
    let result = std::thread::scope(|scope| {
        for (host, exchange) in (1..).zip(exchanges.split_off(1)) {
            let world = world.clone();
            scope.spawn(move || {
                let work = || worker::work::<Mixing, Int>(&exchange, &worker::begin(&exchange)?);
                // The driver hears of what goes wrong.
                let _ = lives(world.as_deref(), host, work);
                exchange.transport().close();
            });
        }
        let begin = driver::begin::<Mixing, Int>(&table, &layout.stars, &globals, threads);
        // At least one of them.
        let on_gpu = |i: usize| (has_gpus && (i == 0 || seed >> i & 1 == 1)).then_some(0);
        let compress = Random(seed ^ 0xc0de).one_of(&[Compress::Auto, Compress::Always, Compress::Never]);
        let begin = Begin { gpus: (0..workers).map(on_gpu).collect(), compress, ..begin };
        let drive = || {
            let exchange = exchanges.remove(0);
            let mut driver = Driver::new(exchange, layout.clone(), owners, &state, &begin, Children::none())?;
            let (plain, state) = case.laid_out(1);
            let mut oracle = Interpreter::new(Serial::new(plain.domain.clone(), state), table.clone(), globals.clone());
            let gpus = driver.facts().hosts.iter().filter(|host| !host.gpu.is_empty()).count();
            assert_eq!(gpus > 0, has_gpus, "{gpus} GPUs");
            for (i, step) in steps.iter().enumerate() {
                driver.step(step)?;
                oracle.step(step)?;
                match random.below(4) {
                    0 => {
                        let (v, word) = (random.below(n) as u32, Int(random.below(1 << 20) as i32));
                        let set = |layout: &Layout<Int>, state: &mut ViewMut<Int>| {
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
                    _ => {}
                }
            }
            assert_eq!(words(&layout, driver.state()?), words(&plain, oracle.state()?));
            assert_eq!(driver.globals()?, oracle.globals()?);
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
fn simulated_loss_duplication_delay_and_reordering_change_nothing() {
    each_seed(200, |seed| {
        let random = &mut Random(seed ^ 0x5eed);
        let faults = Faults {
            lost: random.below(200) as u64,
            twice: random.below(200) as u64,
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
            ..Faults::default()
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
    let (table, globals) = (Arc::new(Table::<Int>::of::<Mixing>()), vec![Int(0); 2]);
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
                        return worker::work::<Mixing, Int>(&exchange, &begin);
                    }
                    let mut from = Incoming::new(&exchange, 0);
                    let domain = Domain::<Int>::read(&mut from, message::stars(&begin.stars)?)?;
                    State::<Int>::empty(domain.slots(), domain.shape).read(0..domain.slots(), &mut from)?;
                    exchange.set_share(&domain, begin.compress);
                    exchange.send(0, Control::Ready(String::new()).encode());
                    // Until the driver has enough of it.
                    loop {
                        let found = exchange
                            .receive(DEAD, |_, message| matches!(Control::decode(message), Ok(Control::End)))?;
                        if found.is_some() {
                            return Ok(());
                        }
                    }
                };
                lives(Some(world), host, work)
            });
        }
        let begin = driver::begin::<Mixing, Int>(&table, &layout.stars, &globals, 1);
        let drive = || {
            let exchange = exchanges.remove(0);
            let mut driver = Driver::new(exchange, layout.clone(), owners, &state, &begin, Children::none())?;
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

/// A run on two workers that pass messages through memory, each with half of the tasks. `work`: what a worker does.
fn on_two<A>(
    case: &Case,
    compress: Compress,
    work: impl Fn(Host, &Arc<Exchange>) -> Result<()> + Sync,
    drive: impl FnOnce(&mut Driver<Int>) -> Result<A>,
) -> Result<A> {
    let (table, (layout, state)) = (Arc::new(Table::<Int>::of::<Mixing>()), case.laid_out(8));
    let tasks = case.schedule.graph().len() as u32;
    let owners: Vec<u32> = (0..tasks).map(|t| u32::from(2 * t >= tasks)).collect();
    let (mut exchanges, work) = (exchanges(3), &work);
    std::thread::scope(|scope| {
        for (host, exchange) in (1..).zip(exchanges.split_off(1)) {
            scope.spawn(move || {
                // The driver hears of what goes wrong.
                let _ = work(host, &exchange);
                exchange.transport().close();
            });
        }
        let begin = Begin { compress, ..driver::begin::<Mixing, Int>(&table, &layout.stars, &[Int(0); 2], 1) };
        let mut driver = Driver::new(exchanges.remove(0), layout, owners, &state, &begin, Children::none())?;
        drive(&mut driver)
    })
}

/// A worker as it should be.
fn honest(_: Host, exchange: &Arc<Exchange>) -> Result<()> {
    worker::work::<Mixing, Int>(exchange, &worker::begin(exchange)?)
}

/// A square of vertices, its graph cut in blocks of `grain` vertices.
fn square(side: u32, grain: u32) -> Case {
    let at = |x: u32, y: u32| x + side * y;
    let along = (0..side).flat_map(|y| (1..side).map(move |x| [at(x - 1, y), at(x, y)]));
    let across = (1..side).flat_map(|y| (0..side).map(move |x| [at(x, y - 1), at(x, y)]));
    Case::new((side * side) as usize, along.chain(across).collect(), Order::BLOCKED, grain)
}

/// A stage that runs `kernel` of [`Mixing`].
fn update(kernel: usize, rule: Rule, rounds: u32) -> Stage {
    Stage::Update { kernel, settings: [0.0; 4], rule, rounds }
}

#[test]
fn a_host_is_not_sent_again_what_has_not_changed() {
    let case = square(40, 32);
    for rule in [Rule::InOrder, Rule::AtOnce] {
        let step = |number, rounds| Step { number, parameters: Vec::new(), stages: vec![update(SPREAD, rule, rounds)] };
        let steps = [step(0, 6), step(1, 200), step(2, 6)];
        let (plain, state) = case.laid_out(1);
        let table = Arc::new(Table::<Int>::of::<Mixing>());
        let mut oracle = Interpreter::new(Serial::new(plain.domain.clone(), state), table, vec![Int(0); 2]);
        let layout = case.laid_out(8).0;
        let drive = |driver: &mut Driver<Int>| {
            let mut sent = Vec::new();
            for step in &steps {
                driver.step(step)?;
                oracle.step(step)?;
                driver.settle()?;
                sent.push(driver.facts().hosts.iter().map(|host| host.sent_bytes).sum::<u64>());
            }
            assert_eq!(words(&layout, driver.state()?), words(&plain, oracle.state()?));
            Ok(sent)
        };
        let sent = on_two(&case, Compress::Never, honest, drive).unwrap();
        let (lively, calm) = (sent[0], sent[2] - sent[1]);
        assert!(calm > 0 && 2 * calm < lively, "{rule:?}: {calm} bytes of a state at rest, {lively} at first");
    }
}

#[test]
fn packed_values_are_fewer_bytes_and_the_same_bits() {
    let case = square(64, 512);
    let step = |number, stages| Step { number, parameters: Vec::new(), stages };
    // Hashes do not get smaller, so bytes are counted before there are any.
    let first = step(0, vec![update(SPREAD, Rule::InOrder, 3)]);
    let second = step(1, vec![update(STIR, Rule::Backward, 2), update(SPREAD, Rule::AtOnce, 3)]);
    let run = |compress| {
        let layout = case.laid_out(8).0;
        let drive = |driver: &mut Driver<Int>| {
            driver.step(&first)?;
            driver.settle()?;
            let hosts = driver.facts().hosts;
            let sum = |of: fn(&HostReport) -> u64| hosts.iter().map(of).sum::<u64>();
            let bytes = [sum(|host| host.value_bytes), sum(|host| host.value_bytes_sent)];
            driver.step(&second)?;
            Ok((words(&layout, driver.state()?), bytes))
        };
        on_two(&case, compress, honest, drive).unwrap()
    };
    let [never, always, auto] = [Compress::Never, Compress::Always, Compress::Auto].map(run);
    assert!(always.0 == never.0 && auto.0 == never.0);
    let [before, after] = always.1;
    assert!(after < before, "{before} bytes, {after} packed");
    assert!(never.1[0] == never.1[1] && auto.1[0] == auto.1[1], "memory is fast");
    let (layout, state) = case.laid_out(1);
    let table = Arc::new(Table::<Int>::of::<Mixing>());
    let mut oracle = Interpreter::new(Serial::new(layout.domain.clone(), state), table, vec![Int(0); 2]);
    [first, second].iter().for_each(|step| oracle.step(step).unwrap());
    assert_eq!(never.0, words(&layout, oracle.state().unwrap()));
}

/// What a worker says that is sent `message` by the other one, which has `share`, in the first step of a run.
fn answer(kernel: usize, message: impl Fn(&Share) -> Vec<u8> + Sync) -> Control {
    let other = |host, exchange: &Arc<Exchange>| {
        if host == 1 {
            return honest(host, exchange);
        }
        let begin = worker::begin(exchange)?;
        let mut from = Incoming::new(exchange, 0);
        let domain = Domain::<Int>::read(&mut from, message::stars(&begin.stars)?)?;
        State::<Int>::empty(domain.slots(), domain.shape).read(0..domain.slots(), &mut from)?;
        exchange.set_share(&domain, begin.compress);
        exchange.send(0, Control::Ready(String::new()).encode());
        let is_step = |_: Host, message: &[u8]| matches!(Control::decode(message), Ok(Control::Step { .. }));
        exchange.receive(DEAD, is_step)?;
        exchange.send(1, message(domain.share.as_ref().expect("it was read as one")));
        // It stays whatever becomes of the other one.
        let is_end = |_: Host, message: &[u8]| matches!(Control::decode(message), Ok(Control::End));
        while exchange.try_receive(is_end).is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    let drive = |driver: &mut Driver<Int>| {
        let stages = vec![update(kernel, Rule::AtOnce, 1)];
        driver.step(&Step { number: 0, parameters: Vec::new(), stages })?;
        let wants = |from: Host, message: &[u8]| {
            from == 1 && matches!(Control::decode(message), Ok(Control::Progress { .. } | Control::Failed(_)))
        };
        // Whoever fails says so first and then leaves.
        driver.exchange().receive(DEAD, wants).or_else(|_| Ok(driver.exchange().try_receive(wants)))
    };
    let said = on_two(&square(20, 32), Compress::Never, other, drive).unwrap().expect("worker 1 says something");
    Control::decode(&said.1).unwrap()
}

/// A message about all tasks of a share that the other worker reads, with `bits` of each.
fn about_all(share: &Share, bits: impl Fn(&[u32]) -> Vec<u8>) -> Vec<u8> {
    let mut message = values::begin(1);
    for (t, slots) in &share.links[0].sent {
        values::add(&mut message, share.names[*t as usize], |message| message.extend(bits(slots)));
    }
    message
}

#[test]
fn nothing_about_a_task_that_may_have_changed_ends_the_run() {
    // Worker 2 says of all its tasks that they have come to the first round, as they were.
    let nothing = |share: &Share| about_all(share, |_| Vec::new());
    assert!(matches!(answer(SPREAD, nothing), Control::Progress { .. }), "it is taken at its word");
    let Control::Failed(why) = answer(STIR, nothing) else {
        panic!("a task that may have changed was taken as it was")
    };
    assert!(why.contains("its kernel is not quiet"), "{why}");
}

#[test]
fn values_that_make_no_sense_end_the_run_and_say_whose_they_are() {
    let form = Form { bytes: 4, reals: 1 };
    let ones = |share: &Share| about_all(share, |slots| [1; 4].repeat(slots.len()));
    assert!(matches!(answer(STIR, ones), Control::Progress { .. }));
    assert!(
        matches!(answer(STIR, |share| values::pack(form, &ones(share))), Control::Progress { .. }),
        "packed or not"
    );
    let breach = |message: &(dyn Fn(&Share) -> Vec<u8> + Sync)| match answer(STIR, message) {
        Control::Failed(why) => why,
        other => panic!("{other:?}"),
    };
    let more = |share: &Share| about_all(share, |slots| [1; 4].repeat(slots.len() + 1));
    for why in [breach(&more), breach(&|share| values::pack(form, &more(share)))] {
        assert!(why.contains("host 2") && why.contains("more or less of a task than is read here"), "{why}");
    }
    let cut = |packed: bool| {
        move |share: &Share| {
            let message = if packed { values::pack(form, &ones(share)) } else { ones(share) };
            message[..message.len() - 1].to_vec()
        }
    };
    assert!(breach(&cut(false)).contains("cut short"));
    assert!(breach(&cut(true)).contains("badly packed"));
}
