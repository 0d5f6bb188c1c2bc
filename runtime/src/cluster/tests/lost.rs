//! Workers that are lost at any call, and bits that change: the run goes on, with the bits of the oracle [C8].

use crate::cluster::hurt::{HURTS, Hurt};
use crate::mesh::generate::generate;
use crate::simulation::tests::changing::restless;
use crate::simulation::tests::elements::{tangled, woven};
use crate::toy::Mixing;
use crate::{Backend, Cluster, Order, Result, Simulation};
use std::sync::atomic::Ordering;

/// A short run on two workers in which everything is asked for once: a state in the middle, a measure of globals none. Returns its digest,
/// and how often it came to what `hurts` says.
fn run(hurts: &[Hurt]) -> (Result<String>, u64) {
    HURTS.set((hurts.to_vec(), Default::default()));
    let run = || {
        let builder = Simulation::builder(generate("sheet:9", 1)?, Mixing).order(Order::blocked(16));
        let mut mixing = builder.backend(Backend::Cluster(Cluster::inside(2)?)).build()?;
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
    };
    let digest = run();
    (digest, HURTS.take().1.load(Ordering::Relaxed))
}

/// Kills either worker of a run at each of its calls, one after the other: its digest stays. `run`: as above.
fn killed_at_each_call(run: impl Fn(&[Hurt]) -> (Result<String>, u64)) {
    let expected = run(&[]).0.unwrap();
    let mut calls = 0;
    for host in [1, 2] {
        for at in 1.. {
            let (digest, count) = run(&[Hurt::Dies { host, at }]);
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
    killed_at_each_call(run);
}

#[test]
fn a_worker_that_dies_while_elements_are_projected_changes_no_bit() {
    let run = |hurts: &[Hurt]| {
        HURTS.set((hurts.to_vec(), Default::default()));
        let run = || {
            let mut woven = woven(90, Order::blocked(8), Backend::Cluster(Cluster::inside(2)?))?;
            (0..3).try_for_each(|_| woven.step())?;
            woven.digest()
        };
        let digest = run();
        (digest, HURTS.take().1.load(Ordering::Relaxed))
    };
    killed_at_each_call(run);
    let run = |hurts: &[Hurt]| {
        HURTS.set((hurts.to_vec(), Default::default()));
        let run = || {
            let mut tangled = tangled(60, Order::blocked(8), Backend::Cluster(Cluster::inside(2)?))?;
            (0..2).try_for_each(|_| tangled.step())?;
            tangled.digest()
        };
        let digest = run();
        (digest, HURTS.take().1.load(Ordering::Relaxed))
    };
    killed_at_each_call(run);
}

#[test]
fn a_worker_that_dies_while_elements_come_and_go_changes_no_bit() {
    let run = |hurts: &[Hurt]| {
        HURTS.set((hurts.to_vec(), Default::default()));
        let run = || {
            let mut restless = restless(Backend::Cluster(Cluster::inside(2)?))?;
            (0..4).try_for_each(|_| restless.step())?;
            restless.digest()
        };
        (run(), HURTS.take().1.load(Ordering::Relaxed))
    };
    killed_at_each_call(run);
}

#[test]
fn workers_that_die_while_a_run_begins_again_change_no_bit() {
    let expected = run(&[]).0.unwrap();
    let mut twice = 0;
    for first in (1..40).step_by(3) {
        for second in 1..6 {
            let (digest, count) = run(&[Hurt::Dies { host: 1, at: first }, Hurt::Dies { host: 2, at: second }]);
            assert_eq!(digest.unwrap(), expected, "calls {first} and {second}");
            twice += u64::from(count == 2);
        }
    }
    assert!(twice > 20, "{twice} times");
}

#[test]
fn a_bit_that_changes_in_what_a_host_has_of_another_is_found() {
    let expected = run(&[]).0.unwrap();
    for host in [1, 2] {
        for case in 0..100 {
            let (digest, count) = run(&[Hurt::Flips { host, slot: case / 3, bit: case as u32 * 7 }]);
            assert_eq!(count, 1);
            assert_eq!(digest.unwrap(), expected, "host {host}, case {case}");
        }
    }
}

#[test]
fn a_state_that_follows_a_changed_bit_is_not_taken_for_sound() {
    let run = |hurts: &[Hurt]| {
        HURTS.set((hurts.to_vec(), Default::default()));
        let builder = Simulation::builder(generate("sheet:9", 1).unwrap(), Mixing).order(Order::blocked(16));
        let cluster = Cluster::inside(2).unwrap();
        let mut mixing = builder.backend(Backend::Cluster(cluster)).build().unwrap();
        mixing.step().unwrap();
        // Nobody has looked at the first when the second is asked for, which has the same bits everywhere again.
        let first = mixing.snapshot().unwrap();
        mixing.step().unwrap();
        let second = mixing.snapshot().unwrap();
        mixing.step().unwrap();
        let states = [second, first].map(|snapshot| snapshot.fields().unwrap());
        let digest = mixing.digest().unwrap();
        (states, digest, HURTS.take().1.load(Ordering::Relaxed))
    };
    let (states, digest, _) = run(&[]);
    for (host, case) in [1, 2].into_iter().flat_map(|host| (0..20).map(move |case| (host, case))) {
        let (own_states, own_digest, count) = run(&[Hurt::Flips { host, slot: case, bit: case as u32 * 5 }]);
        assert_eq!(count, 1);
        assert!(own_states == states && own_digest == digest, "host {host}, case {case}");
    }
}
