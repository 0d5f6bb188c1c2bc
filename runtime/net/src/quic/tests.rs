//! QUIC alone: losses, peers that break the rules, and intruders.

mod intruders;
mod violations;

use super::network::Network;
use super::worker::{Arrived, Joining};
use super::{Listening, Progress, Settings, join};
use crate::Result;
use crate::identity::{Credentials, Token};
use crate::random::Random;
use crate::tests::{Inbox, SOON, exchange, gather, quic, settings};
use crate::transport::{Event, Transport};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

fn inbox() -> Arc<Inbox> {
    Arc::default()
}

#[test]
fn who_vanishes_is_lost_within_twice_the_timeout() {
    let dead_timeout = Duration::from_millis(1500);
    let settings = Settings { dead_timeout, ..settings() };
    let (inbox, other) = (inbox(), inbox());
    let mut hosts = quic(vec![inbox.sink(), other.sink(), other.sink()], &settings);
    hosts[0].send(1, vec![1]);
    // Nothing is sent for longer than the timeout, and no host is lost: they show that they are alive.
    assert_eq!(inbox.next(2 * dead_timeout), None);
    let gone = hosts.remove(1);
    let begun = Instant::now();
    gone.vanish();
    let (host, why) = inbox.lost(2 * dead_timeout);
    assert_eq!(host, 1);
    assert!(why.contains("host 1 at 127.0.0.1:") && why.contains("nothing was heard"), "{why}");
    assert!(begun.elapsed() > dead_timeout / 2, "it could have been asleep");
    assert!(!hosts[0].wait_for_room(1, 0, Instant::now() + SOON));
    hosts[0].send(2, vec![2]);
    assert_eq!(inbox.next(Duration::from_millis(100)), None, "a loss is told once");
}

#[test]
fn a_link_tells_what_it_carries_once_it_was_busy() {
    let hosts = quic(vec![inbox().sink(), inbox().sink(), inbox().sink()], &settings());
    let send = |bytes| {
        hosts[0].send(1, vec![1; bytes]);
        // What fits into windows is not yet acknowledged.
        assert!(hosts[0].wait_for_room(1, 0, Instant::now() + SOON));
    };
    send(100);
    assert_eq!(hosts[0].measured_rate(1), None, "a hundred bytes tell nothing");
    (0..20).for_each(|_| send(1 << 20));
    let found = hosts[0].measured_rate(1);
    assert!(found.is_some_and(|found| (1e5..1e12).contains(&found)), "{found:?} bytes a second");
    assert_eq!(hosts[0].measured_rate(2), None, "nothing went there");
}

#[test]
fn messages_arrive_whichever_thread_moves_the_network() {
    let inboxes = [inbox(), inbox()];
    let hosts = quic(inboxes.iter().map(|inbox| inbox.sink()).collect(), &settings());
    let mut moved = 0;
    for message in 0..200 {
        hosts[0].send(1, vec![message]);
        let deadline = Instant::now() + SOON;
        let event = loop {
            moved += u32::from(hosts[0].turn()) + u32::from(hosts[1].rest(Duration::from_millis(1), &|| false));
            match inboxes[1].next(Duration::ZERO) {
                Some(event) => break event,
                None => assert!(Instant::now() < deadline, "message {message} is lost"),
            }
        };
        assert_eq!(event, Event::Message { from: 0, bytes: vec![message] });
    }
    assert!(moved > 20, "{moved} turns for 200 messages: others move the network");
    // Where nobody does.
    hosts[0].send(1, vec![1, 2]);
    assert_eq!(inboxes[1].next(SOON), Some(Event::Message { from: 0, bytes: vec![1, 2] }));
    // On a thread of another event loop, where no other may be dropped.
    let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
    other.block_on(async {
        hosts[0].send(1, vec![3]);
        assert_eq!(inboxes[1].next(SOON), Some(Event::Message { from: 0, bytes: vec![3] }));
        drop(hosts);
    });
}

#[test]
fn junk_at_the_sockets_does_not_stop_a_run() {
    let inboxes = [inbox(), inbox()];
    let settings = settings();
    let listening = Listening::start(1, settings.clone(), inboxes[0].sink()).unwrap();
    let driver = listening.token().addresses[0];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut random = Random(1);
            while !stop.load(Relaxed) {
                let junk: Vec<u8> = (0..1200).map(|_| random.below(256) as u8).collect();
                for first in [junk[0], 0xc0, 0x40, 0xff] {
                    let packet = [&[first][..], &junk[1..usize::from(junk[1]) * 4 + 2]].concat();
                    let _ = socket.send_to(&packet, driver);
                }
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let hosts = gather(listening, vec![inboxes[1].sink()], &settings);
        exchange(&[&hosts[0], &hosts[1]], &inboxes, 1000);
        std::thread::scope(|scope| hosts.iter().for_each(|host| drop(scope.spawn(|| host.close()))));
        stop.store(true, Relaxed);
    });
}

#[test]
fn a_run_is_begun_again_with_the_same_token_and_the_next_incarnation() {
    let settings = settings();
    let inbox = inbox();
    let mut hosts = quic(vec![inbox.sink(), inbox.sink(), inbox.sink()], &settings);
    let token = hosts[0].run.clone().expect("the driver can").token;
    assert!(Listening::again(&hosts[1], 2, settings.clone(), inbox.sink()).is_err());
    hosts.remove(2).vanish();
    let inboxes = [self::inbox(), self::inbox(), self::inbox()];
    let listening = Listening::again(&hosts[0], 2, settings.clone(), inboxes[0].sink()).unwrap();
    assert_eq!(listening.token().reveal(), token.reveal(), "workers that know the token find the driver with it");
    // A run is begun again once.
    assert!(Listening::again(&hosts[0], 2, settings.clone(), inbox.sink()).is_err());
    drop(hosts);
    let hosts = gather(listening, vec![inboxes[1].sink(), inboxes[2].sink()], &settings);
    hosts[0].send(1, vec![1]);
    hosts[0].send(2, vec![1]);
    for inbox in &inboxes[1..] {
        assert_eq!(inbox.next(SOON), Some(Event::Message { from: 0, bytes: vec![1] }));
    }
}

#[test]
fn a_run_that_is_begun_again_goes_without_workers_that_do_not_come() {
    let settings = settings();
    let inbox = inbox();
    let hosts = quic(vec![inbox.sink(), inbox.sink(), inbox.sink(), inbox.sink()], &settings);
    let inboxes = [self::inbox(), self::inbox(), self::inbox()];
    let listening = Listening::again(&hosts[0], 3, settings.clone(), inboxes[0].sink()).unwrap();
    let token = listening.token().clone();
    // All of them have heard that this was the end.
    for _ in 1..4 {
        assert_eq!(inbox.lost(SOON).0, 0);
    }
    let (first, second, driver) = std::thread::scope(|scope| {
        let workers = [1, 2].map(|i| {
            let (token, settings, sink) = (&token, settings.clone(), inboxes[i].sink());
            scope.spawn(move || join(token, settings, sink).unwrap())
        });
        let driver = listening.wait_for_workers(Instant::now() + SOON, |_| {}, || Ok(())).unwrap();
        let [first, second] = workers.map(|worker| worker.join().unwrap());
        (first, second, driver)
    });
    assert_eq!([first.hosts(), second.hosts(), driver.hosts()], [3; 3]);
    driver.send(2, vec![1]);
    let got = inboxes[1].next(Duration::from_millis(500)).or_else(|| inboxes[2].next(SOON));
    assert_eq!(got, Some(Event::Message { from: 0, bytes: vec![1] }));
}

#[test]
fn a_driver_without_workers_and_a_worker_without_driver_give_up_in_time() {
    let soon = Duration::from_millis(400);
    let listening = Listening::start(2, settings(), inbox().sink()).unwrap();
    let token = listening.token().clone();
    let begun = Instant::now();
    let error = listening.wait_for_workers(begun + soon, |_| {}, || Ok(())).err().expect("no worker came").to_string();
    assert!(error.contains("0 of 2 workers joined before the deadline"), "{error}");
    let impatient = Settings { join_deadline: soon, ..settings() };
    let error = join(&token, impatient, inbox().sink()).err().expect("no driver is there").to_string();
    assert!(error.contains(&format!("no answer from the driver at {}", token.addresses[0])), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn a_worker_that_waits_learns_that_the_driver_gave_up() {
    let listening = Listening::start(2, settings(), inbox().sink()).unwrap();
    let token = listening.token().clone();
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| join(&token, settings(), inbox().sink()).err().expect("the run never began"));
        let mut told = Vec::new();
        let deadline = Instant::now() + Duration::from_secs(2);
        let error = listening
            .wait_for_workers(deadline, |progress| told.push(progress), || Ok(()))
            .err()
            .expect("one is missing");
        assert!(error.to_string().contains("1 of 2 workers"), "{error}");
        assert!(matches!(told[..], [Progress::Joined { host: 1, .. }]), "{told:?}");
        let error = worker.join().unwrap().to_string();
        assert!(error.contains("the driver at 127.0.0.1:") && error.contains("gave up"), "{error}");
    });
}

#[test]
fn the_number_of_a_worker_that_left_before_the_run_began_is_free_again() {
    let settings = settings();
    let inboxes = [inbox(), inbox(), inbox()];
    let listening = Listening::start(2, settings.clone(), inboxes[0].sink()).unwrap();
    let token = listening.token().clone();
    std::thread::scope(|scope| {
        let (told, hear) = std::sync::mpsc::channel();
        let driver = scope.spawn(move || {
            listening.wait_for_workers(Instant::now() + SOON, |progress| drop(told.send(progress)), || Ok(())).unwrap()
        });
        let early = arrive(&token, &settings);
        assert!(matches!(hear.recv().unwrap(), Progress::Joined { host: 1, .. }));
        early.leave();
        assert!(matches!(hear.recv().unwrap(), Progress::Left { host: 1, .. }));
        let workers: Vec<_> = inboxes[1..]
            .iter()
            .map(|inbox| scope.spawn(|| join(&token, settings.clone(), inbox.sink()).unwrap()))
            .collect();
        let mut hosts: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap().host()).collect();
        hosts.sort_unstable();
        assert_eq!(hosts, [1, 2]);
        drop(driver.join().unwrap());
    });
}

#[test]
fn a_third_worker_waits_until_the_run_begins_again_with_it() {
    let settings = settings();
    let inboxes = [inbox(), inbox(), inbox(), inbox()];
    let listening = Listening::start(2, settings.clone(), inboxes[0].sink()).unwrap();
    let token = listening.token().clone();
    let hosts = gather(listening, vec![inboxes[1].sink(), inboxes[2].sink()], &settings);
    assert_eq!(hosts[0].waiting(), 0);
    std::thread::scope(|scope| {
        // A test that fails lets go of them before it waits for the late one, which then gives up.
        let hosts = hosts;
        let late = scope.spawn(|| join(&token, settings.clone(), inboxes[3].sink()).unwrap());
        let begun = Instant::now();
        while hosts[0].waiting() == 0 {
            assert!(begun.elapsed() < SOON, "it does not ask");
            std::thread::sleep(Duration::from_millis(5));
        }
        // Those at work hear nothing of it. Which inbox is whose depends on who came first.
        for worker in [1, 2] {
            hosts[0].send(worker, vec![1]);
        }
        for inbox in &inboxes[1..3] {
            assert_eq!(inbox.next(SOON), Some(Event::Message { from: 0, bytes: vec![1] }));
        }
        let listening = Listening::again(&hosts[0], 3, settings.clone(), inboxes[0].sink()).unwrap();
        let others = [1, 2].map(|i| {
            let (token, settings, sink) = (&token, settings.clone(), inboxes[i].sink());
            scope.spawn(move || join(token, settings, sink).unwrap())
        });
        let driver = listening.wait_for_workers(Instant::now() + SOON, |_| {}, || Ok(())).unwrap();
        assert_eq!((driver.hosts(), driver.waiting()), (4, 0));
        let [one, two] = others.map(|other| other.join().unwrap());
        let mut numbers = [one.host(), two.host(), late.join().unwrap().host()];
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3]);
    });
}

#[test]
fn a_worker_that_is_let_go_of_while_it_asks_asks_again() {
    let settings = settings();
    let inboxes = [inbox(), inbox()];
    let listening = Listening::start(1, settings.clone(), inboxes[0].sink()).unwrap();
    let token = listening.token().clone();
    std::thread::scope(|scope| {
        let listening = listening;
        let worker = scope.spawn(|| join(&token, settings.clone(), inboxes[1].sink()).map(|worker| worker.host()));
        // As a run that begins again does with whoever is at its door: at any moment of the handshake, and after it.
        let lets_go = async {
            for moments in [0, 1, 2, 4, 8, 50] {
                let enters = listening.door.next().await.unwrap().enter(Instant::now() + SOON);
                drop(tokio::time::timeout(Duration::from_millis(moments), enters).await);
            }
        };
        let all = listening.network.handle().block_on(async { tokio::time::timeout(SOON, lets_go).await });
        assert!(all.is_ok(), "it does not call again");
        let _driver = listening.wait_for_workers(Instant::now() + SOON, |_| {}, || Ok(())).unwrap();
        assert_eq!(worker.join().unwrap().unwrap(), 1);
    });
}

/// A worker that the driver knows, and that goes no further by itself.
struct Early {
    network: Network,
    endpoint: quinn::Endpoint,
    arrived: Arrived,
}

impl Early {
    fn leave(self) {
        drop(self.arrived);
        self.network.give_up(self.endpoint).unwrap();
    }
}

fn arrive(token: &Token, settings: &Settings) -> Early {
    let (network, joining) = Joining::prepare(token, settings).unwrap();
    let endpoint = joining.endpoint.clone();
    let arrived = network.run(async move { joining.arrive().await }).unwrap().unwrap();
    Early { network, endpoint, arrived }
}

/// The same without a look at the clock.
fn ask_unchecked(token: &Token, settings: &Settings) -> Result<Credentials> {
    let (network, joining) = Joining::unchecked(token, settings)?;
    network.run(async move { joining.admission().await })?.map(|admission| admission.own)
}

/// Gets a certificate, and does not come back with it.
fn ask(token: &Token, settings: &Settings) -> Credentials {
    let (network, joining) = Joining::prepare(token, settings).unwrap();
    network.run(async move { joining.admission().await }).unwrap().unwrap().own
}
