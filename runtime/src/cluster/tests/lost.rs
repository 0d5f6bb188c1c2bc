//! Workers that are lost at any call, and bits that change: the run goes on, with the bits of the oracle [C8].

use crate::cluster::hurt::{HURTS, Hurt};
use crate::mesh::generate::generate;
use crate::simulation::tests::changing::restless;
use crate::simulation::tests::elements::{tangled, woven};
use crate::toy::Mixing;
use crate::{Backend, Cluster, Order, Result, Simulation};
use std::sync::atomic::Ordering;

/// Runs something while workers are hurt. Returns what it returns, and how often it came to what `hurts` says.
fn hurt<A>(hurts: &[Hurt], run: impl FnOnce() -> A) -> (A, u64) {
    HURTS.set((hurts.to_vec(), Default::default()));
    let done = run();
    (done, HURTS.take().1.load(Ordering::Relaxed))
}

fn two_workers() -> Result<Backend> {
    Ok(Backend::Cluster(Cluster::inside(2)?))
}

/// The digest of a short run on two workers in which everything is asked for once: a state in the middle, a measure of globals none.
fn mix() -> Result<String> {
    let builder = Simulation::builder(generate("sheet:9", 1)?, Mixing).order(Order::blocked(16));
    let mut mixing = builder.backend(two_workers()?).build()?;
    for step in 0..6 {
        mixing.step()?;
        match step {
            1 => drop(mixing.snapshot()?.fields()?),
            2 => mixing.set_field("value", &[1.0; 81])?,
            3 => _ = mixing.digest()?,
            _ => {}
        }
    }
    mixing.wait()?;
    mixing.digest()
}

/// Kills either worker of a run at each of its calls, one after the other: the digest that it returns stays.
fn killed_at_each_call(run: impl Fn() -> Result<String>) {
    let expected = run().unwrap();
    let mut calls = 0;
    for host in [1, 2] {
        for at in 1.. {
            let (digest, count) = hurt(&[Hurt::Dies { host, at }], &run);
            if count == 0 {
                break;
            }
            assert_eq!(digest.unwrap(), expected, "host {host} dies at call {at}");
            calls += 1;
        }
    }
    assert!(calls > 30, "{calls} calls");
}

#[test]
fn a_worker_that_dies_at_any_call_changes_no_bit() {
    killed_at_each_call(mix);
}

#[test]
fn a_worker_that_dies_while_elements_are_projected_changes_no_bit() {
    killed_at_each_call(|| {
        let mut woven = woven(90, Order::blocked(8), two_workers()?)?;
        (0..3).try_for_each(|_| woven.step())?;
        woven.digest()
    });
    killed_at_each_call(|| {
        let mut tangled = tangled(60, Order::blocked(8), two_workers()?)?;
        (0..2).try_for_each(|_| tangled.step())?;
        tangled.digest()
    });
}

#[test]
fn a_worker_that_dies_while_elements_come_and_go_changes_no_bit() {
    killed_at_each_call(|| {
        let mut restless = restless(two_workers()?)?;
        (0..4).try_for_each(|_| restless.step())?;
        restless.digest()
    });
}

#[test]
fn workers_that_die_while_a_run_begins_again_change_no_bit() {
    let expected = mix().unwrap();
    let mut twice = 0;
    for first in (1..40).step_by(3) {
        for second in 1..6 {
            let (digest, count) = hurt(&[Hurt::Dies { host: 1, at: first }, Hurt::Dies { host: 2, at: second }], mix);
            assert_eq!(digest.unwrap(), expected, "calls {first} and {second}");
            twice += u64::from(count == 2);
        }
    }
    assert!(twice > 20, "{twice} times");
}

#[test]
fn a_bit_that_changes_in_what_a_host_has_of_another_is_found() {
    let expected = mix().unwrap();
    for host in [1, 2] {
        for case in 0..100 {
            let (digest, count) = hurt(&[Hurt::Flips { host, slot: case / 3, bit: case as u32 * 7 }], mix);
            assert_eq!(count, 1);
            assert_eq!(digest.unwrap(), expected, "host {host}, case {case}");
        }
    }
}

#[test]
fn a_state_that_follows_a_changed_bit_is_not_taken_for_sound() {
    let run = || {
        let builder = Simulation::builder(generate("sheet:9", 1).unwrap(), Mixing).order(Order::blocked(16));
        let mut mixing = builder.backend(two_workers().unwrap()).build().unwrap();
        mixing.step().unwrap();
        // Nobody has looked at the first when the second is asked for, which has the same bits everywhere again.
        let first = mixing.snapshot().unwrap();
        mixing.step().unwrap();
        let second = mixing.snapshot().unwrap();
        mixing.step().unwrap();
        let states = [second, first].map(|snapshot| snapshot.fields().unwrap());
        (states, mixing.digest().unwrap())
    };
    let expected = run();
    for (host, case) in [1, 2].into_iter().flat_map(|host| (0..20).map(move |case| (host, case))) {
        let (own, count) = hurt(&[Hurt::Flips { host, slot: case, bit: case as u32 * 5 }], run);
        assert_eq!(count, 1);
        assert!(own == expected, "host {host}, case {case}");
    }
}
