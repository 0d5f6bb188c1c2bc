//! Values on their way: those that have not changed, packed ones, and malformed ones.

use super::*;
use crate::cluster::values;
use crate::engine::HostReport;
use crate::engine::cpu::stress::{SPREAD, STIR};
use crate::layout::Share;
use crate::step::Stage;
use meshweft_net::codec::Form;
use meshweft_schedule::Rule;

/// A run on two workers that pass messages through memory, each with half of the tasks. `work`: what a worker does.
fn on_two<A>(
    case: &Case,
    compress: Compress,
    work: impl Fn(Host, &Arc<Exchange>) -> Result<()> + Sync,
    drive: impl FnOnce(&mut Driver<Int>) -> Result<A>,
) -> Result<A> {
    let (table, (layout, state)) = (Arc::new(traced_table()), case.laid_out(8));
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
        let begin = Begin { compress, ..driver::begin(&table, &layout.stars, &[Int(0); 2], 1) };
        let mut driver = Driver::new(exchanges.remove(0), layout, owners, &state, &begin)?;
        drive(&mut driver)
    })
}

/// A worker as it should be.
fn honest(_: Host, exchange: &Arc<Exchange>) -> Result<()> {
    worker::work(exchange, &worker::begin(exchange)?, traced_table(), None)
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
    Stage::Update { kernel, part: None, settings: [0.0; 4], rule, rounds }
}

#[test]
fn a_host_is_not_sent_again_what_has_not_changed() {
    let case = square(40, 32);
    for rule in [Rule::InOrder, Rule::AtOnce] {
        let step = |number, rounds| Step { number, parameters: Vec::new(), stages: vec![update(SPREAD, rule, rounds)] };
        let steps = [step(0, 6), step(1, 200), step(2, 6)];
        let (plain, state) = case.laid_out(1);
        let table = Arc::new(traced_table());
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
    let table = Arc::new(traced_table());
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
        let domain = Domain::read(&mut from, Precision::I32, message::stars(&begin.stars)?)?;
        State::<Int>::zeros(domain.slots(), domain.shape).read(0..domain.slots(), &mut from)?;
        exchange.set_share(&domain, begin.compress);
        exchange.send(0, Control::Ready(String::new()).encode());
        let is_step = |_: Host, message: &[u8]| matches!(Control::decode(message), Ok(Control::Step { .. }));
        exchange.receive(DEAD, is_step)?;
        exchange.send(1, message(domain.share.as_ref().expect("it was read as one")));
        // It stays whatever becomes of the other one.
        let is_end = |_: Host, message: &[u8]| matches!(Control::decode(message), Ok(Control::End { .. }));
        while exchange.try_receive(is_end).is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    };
    let drive = |driver: &mut Driver<Int>| {
        // Not with `Driver::step`, which takes in the report that is waited for here if it has come by then.
        let stages = vec![update(kernel, Rule::AtOnce, 1)];
        let step = Step::<Int> { number: 0, parameters: Vec::new(), stages };
        driver.workers().for_each(|to| driver.exchange().send(to, message::of_step(&step).encode()));
        let wants = |from: Host, message: &[u8]| {
            from == 1 && matches!(Control::decode(message), Ok(Control::Progress { .. } | Control::Failed(_)))
        };
        // A worker that fails says so first and then leaves.
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
    // Worker 2 says of all its tasks that they have done the first round, and are as they were.
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
