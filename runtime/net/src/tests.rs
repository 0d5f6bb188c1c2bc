//! What every transport must keep, tried on each.

use crate::memory;
use crate::quic::{Listening, Quic, Settings, join};
use crate::transport::{Event, Host, MAX_MESSAGE, Sink, Transport};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// What came to a host, for tests that look at it later.
#[derive(Default)]
pub(super) struct Inbox {
    events: Mutex<VecDeque<Event>>,
    changed: Condvar,
}

impl Inbox {
    pub(super) fn sink(self: &Arc<Inbox>) -> Sink {
        let this = self.clone();
        Arc::new(move |event| {
            this.events.lock().unwrap().push_back(event);
            this.changed.notify_all();
        })
    }

    /// Waits for the next event.
    pub(super) fn next(&self, patience: Duration) -> Option<Event> {
        let events = self.events.lock().unwrap();
        let waited = self.changed.wait_timeout_while(events, patience, |events| events.is_empty());
        waited.unwrap().0.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    /// Waits for the loss of a host. Messages before it are dropped.
    pub(super) fn lost(&self, patience: Duration) -> (Host, String) {
        let deadline = Instant::now() + patience;
        loop {
            match self.next(deadline.saturating_duration_since(Instant::now())) {
                Some(Event::Lost { host, why }) => return (host, why),
                Some(_) => {}
                None => panic!("a loss is told within {patience:?}"),
            }
        }
    }
}

/// Settings for hosts on this machine, with little patience.
pub(super) fn settings() -> Settings {
    Settings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        dead_timeout: Duration::from_secs(5),
        join_deadline: Duration::from_secs(20),
        ..Settings::default()
    }
}

pub(super) const SOON: Duration = Duration::from_secs(20);

/// Puts a run together over QUIC: a host for every sink.
pub(super) fn quic(sinks: Vec<Sink>, settings: &Settings) -> Vec<Quic> {
    let mut sinks = sinks.into_iter();
    let driver = sinks.next().expect("a run has a driver");
    let listening = Listening::start(sinks.len() as u32, settings.clone(), driver).unwrap();
    gather(listening, sinks.collect(), settings)
}

/// Lets workers join a driver. They come in any order, and are returned in that of their numbers.
pub(super) fn gather(listening: Listening, sinks: Vec<Sink>, settings: &Settings) -> Vec<Quic> {
    let token = listening.token().clone();
    std::thread::scope(|scope| {
        let joining: Vec<_> =
            sinks.into_iter().map(|sink| scope.spawn(|| join(&token, settings.clone(), sink).unwrap())).collect();
        let mut hosts = vec![listening.wait_for_workers(Instant::now() + SOON, |_| {}, || Ok(())).unwrap()];
        hosts.extend(joining.into_iter().map(|worker| worker.join().unwrap()));
        hosts.sort_by_key(|host| host.host());
        hosts
    })
}

/// Makes hosts of each kind in turn, and tries something on them.
fn on_each(hosts: usize, try_on: impl Fn(Vec<Box<dyn Transport>>, Vec<Arc<Inbox>>)) {
    let inboxes = || (0..hosts).map(|_| Arc::<Inbox>::default()).collect::<Vec<_>>();
    let sinks = |inboxes: &[Arc<Inbox>]| inboxes.iter().map(Inbox::sink).collect();
    let own = inboxes();
    try_on(boxed(memory::hosts(sinks(&own))), own);
    // Over QUIC workers are numbered as they come, so each tells its inbox by its number afterwards.
    let own = inboxes();
    let slots: Vec<Arc<Mutex<Option<Sink>>>> = (0..hosts).map(|_| Arc::default()).collect();
    let early: Arc<Mutex<Vec<(usize, Event)>>> = Arc::default();
    let late = slots.iter().enumerate().map(|(i, slot)| {
        let (slot, early) = (slot.clone(), early.clone());
        let sink: Sink = Arc::new(move |event| match &*slot.lock().unwrap() {
            Some(sink) => sink(event),
            None => early.lock().unwrap().push((i, event)),
        });
        sink
    });
    let made = quic_in_order(late.collect(), &slots, &own);
    assert!(early.lock().unwrap().is_empty(), "no one speaks before all are here");
    try_on(boxed(made), own);
}

/// Puts a run together, and gives every host the inbox of its number.
fn quic_in_order(sinks: Vec<Sink>, slots: &[Arc<Mutex<Option<Sink>>>], inboxes: &[Arc<Inbox>]) -> Vec<Quic> {
    let settings = settings();
    let mut sinks = sinks.into_iter().enumerate();
    let (_, driver) = sinks.next().expect("a run has a driver");
    let listening = Listening::start(sinks.len() as u32, settings.clone(), driver).unwrap();
    let token = listening.token().clone();
    *slots[0].lock().unwrap() = Some(inboxes[0].sink());
    std::thread::scope(|scope| {
        let (token, settings) = (&token, &settings);
        let joining: Vec<_> = sinks
            .map(|(i, sink)| {
                scope.spawn(move || {
                    let host = join(token, settings.clone(), sink).unwrap();
                    *slots[i].lock().unwrap() = Some(inboxes[host.host() as usize].sink());
                    host
                })
            })
            .collect();
        let mut hosts = vec![listening.wait_for_workers(Instant::now() + SOON, |_| {}, || Ok(())).unwrap()];
        hosts.extend(joining.into_iter().map(|worker| worker.join().unwrap()));
        hosts.sort_by_key(|host| host.host());
        hosts
    })
}

fn boxed<T: Transport + 'static>(hosts: Vec<T>) -> Vec<Box<dyn Transport>> {
    hosts.into_iter().map(|host| Box::new(host) as Box<dyn Transport>).collect()
}

/// The k-th message from one host to another: mostly small, sometimes empty, up to a mebibyte.
fn message(from: Host, to: Host, k: u32) -> Vec<u8> {
    let mut state = u64::from(from) << 48 | u64::from(to) << 40 | u64::from(k) << 8 | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..4 {
        next();
    }
    let length = match next() % 500 {
        0 => 1 << 20,
        1..10 => next() % 100_000,
        10..60 => 0,
        60..200 => next() % 9000,
        _ => next() % 64,
    };
    let mut bytes = Vec::with_capacity(length as usize + 8);
    while bytes.len() < length as usize {
        bytes.extend(next().to_le_bytes());
    }
    bytes.truncate(length as usize);
    bytes
}

/// Sends messages between all pairs at once, and looks at each that arrives.
pub(super) fn exchange(hosts: &[&dyn Transport], inboxes: &[Arc<Inbox>], messages: u32) {
    let count = hosts.len() as Host;
    std::thread::scope(|scope| {
        for (host, inbox) in hosts.iter().zip(inboxes) {
            scope.spawn(move || {
                let this = host.host();
                let others = (0..count).filter(|&to| to != this);
                for k in 0..messages {
                    for to in others.clone() {
                        assert!(host.wait_for_room(to, 4 << 20, Instant::now() + SOON), "{this} to {to}");
                        host.send(to, message(this, to, k));
                    }
                }
            });
            scope.spawn(move || {
                let this = host.host();
                let mut next = vec![0; count as usize];
                for _ in 0..messages * (count - 1) {
                    match inbox.next(SOON) {
                        Some(Event::Message { from, bytes }) => {
                            let k = &mut next[from as usize];
                            assert!(bytes == message(from, this, *k), "message {k} from {from} to {this}");
                            *k += 1;
                        }
                        other => panic!("{this} hears {other:?} after {next:?}"),
                    }
                }
                for from in (0..count).filter(|&from| from != this) {
                    assert_eq!(next[from as usize], messages);
                    let traffic = host.traffic(from);
                    assert_eq!(traffic.received_messages, u64::from(messages));
                }
            });
        }
    });
}

fn borrow(hosts: &[Box<dyn Transport>]) -> Vec<&dyn Transport> {
    hosts.iter().map(|host| &**host).collect()
}

#[test]
fn two_hosts_exchange_messages_in_order_and_intact() {
    on_each(2, |hosts, inboxes| exchange(&borrow(&hosts), &inboxes, 10_000));
}

#[test]
fn five_hosts_exchange_messages_in_order_and_intact() {
    // 500 to each of 20 pairs.
    on_each(5, |hosts, inboxes| exchange(&borrow(&hosts), &inboxes, 500));
}

#[test]
fn a_goodbye_loses_nothing() {
    for _ in 0..3 {
        on_each(3, |hosts, inboxes| {
            std::thread::scope(|scope| {
                for host in &hosts {
                    scope.spawn(|| {
                        for k in 0..200 {
                            for to in (0..3).filter(|&to| to != host.host()) {
                                host.send(to, message(host.host(), to, k));
                            }
                        }
                        let begun = Instant::now();
                        host.close();
                        assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?}", begun.elapsed());
                    });
                }
            });
            for (this, inbox) in inboxes.iter().enumerate() {
                assert_eq!(inbox.len(), 2 * 200, "host {this}");
                let mut next = [0; 3];
                while let Some(Event::Message { from, bytes }) = inbox.next(Duration::ZERO) {
                    assert!(bytes == message(from, this as Host, next[from as usize]));
                    next[from as usize] += 1;
                }
                assert_eq!(next.iter().sum::<u32>(), 400, "host {this} heard of no loss");
            }
            // After it nothing is sent, and nothing fails.
            hosts[0].send(1, vec![1]);
            hosts[0].close();
        });
    }
}

#[test]
fn who_goes_without_a_goodbye_is_lost_once() {
    on_each(3, |mut hosts, inboxes| {
        hosts[1].send(0, vec![7]);
        assert_eq!(inboxes[0].next(SOON), Some(Event::Message { from: 1, bytes: vec![7] }));
        drop(hosts.remove(1));
        for this in [0, 2] {
            assert_eq!(inboxes[this].lost(SOON).0, 1);
        }
        // The others go on, and do not wait for it at the end.
        exchange_one(&*hosts[0], &*hosts[1], &inboxes[2]);
        assert!(!hosts[0].wait_for_room(1, 0, Instant::now() + SOON));
        hosts[0].send(1, vec![1]);
        let begun = Instant::now();
        std::thread::scope(|scope| hosts.iter().for_each(|host| drop(scope.spawn(|| host.close()))));
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!((inboxes[0].len(), inboxes[2].len()), (0, 0), "nothing more is told");
    });
}

fn exchange_one(from: &dyn Transport, to: &dyn Transport, inbox: &Inbox) {
    from.send(to.host(), vec![9; 100]);
    assert_eq!(inbox.next(SOON), Some(Event::Message { from: from.host(), bytes: vec![9; 100] }));
}

#[test]
fn a_slow_reader_holds_up_who_sends_to_it() {
    const BYTES: usize = 256 << 10;
    const MESSAGES: u64 = 400;
    const ROOM: usize = 1 << 20;
    let slow = |taken: Arc<Mutex<u64>>| -> Sink {
        Arc::new(move |event| {
            if matches!(event, Event::Message { .. }) {
                std::thread::sleep(Duration::from_millis(2));
                *taken.lock().unwrap() += 1;
            }
        })
    };
    let quiet = || Arc::<Inbox>::default().sink();
    // What the memory of both machines' networks holds besides the queue: both windows.
    for (windows, kind) in [(0, "memory"), (20 << 20, "quic")] {
        let taken = Arc::<Mutex<u64>>::default();
        let sinks = vec![quiet(), slow(taken.clone())];
        let hosts = if kind == "memory" { boxed(memory::hosts(sinks)) } else { boxed(quic(sinks, &settings())) };
        let mut most = 0;
        for sent in 0..MESSAGES {
            assert!(hosts[0].wait_for_room(1, ROOM, Instant::now() + SOON));
            hosts[0].send(1, vec![1; BYTES]);
            most = most.max((sent + 1 - *taken.lock().unwrap()) as usize * BYTES);
        }
        assert!(most <= ROOM + windows + 2 * BYTES, "{kind}: {most} bytes were under way");
        assert!(!hosts[0].wait_for_room(1, 0, Instant::now()), "{kind}: a deadline that has passed is told");
        assert!(hosts[0].wait_for_room(1, 0, Instant::now() + SOON));
    }
}

#[test]
fn memory_carries_anything() {
    let sinks = || vec![Arc::<Inbox>::default().sink(), Arc::<Inbox>::default().sink()];
    for hosts in [boxed(memory::hosts(sinks())), boxed(quic(sinks(), &settings()))] {
        assert_eq!(hosts[0].traffic(1).rate, Some(f64::INFINITY));
    }
}

#[test]
#[should_panic(expected = "was cut into parts")]
fn a_message_that_is_too_long_is_our_own_mistake() {
    let hosts = memory::hosts(vec![Arc::<Inbox>::default().sink(), Arc::<Inbox>::default().sink()]);
    hosts[0].send(1, vec![0; MAX_MESSAGE + 1]);
}
