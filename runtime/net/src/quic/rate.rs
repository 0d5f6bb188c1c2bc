//! How many bytes a second a link carries, by what is acknowledged.
//!
//! Hosts send in bursts, so bytes over time says how much they had to say, and the congestion window over the round trip how much they
//! might; neither is what the link carries. What does say it is how far apart acknowledgements come of packets that left together: they
//! arrive one after the other, as fast as the slowest piece of the way lets them through. A *train* is what was on its way when the first
//! acknowledgement of it came. Its rate is the bytes that were acknowledged after that time, over the time since then. Trains of less than
//! [`LEAST`] packets say nothing: a link that never has one is never busy enough for its rate to matter. Nor do trains that took as long
//! to leave as to arrive, unless the window held them back: their sender had no more to say.
//!
//! Hosts look for packets between tasks, so acknowledgements may be late by a task, or come all at once. A link then looks as if a train
//! took a task longer, or says nothing; and of the last [`TRAINS`] trains the one in the middle counts.
//!
//! Source: the dispersion of packet trains, Dovrolis, Ramanathan and Moore, "What do packet dispersion techniques measure?", 2001.

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Packets that may come before one goes back that says so. Values go both ways, and say it on the way; a packet that says nothing else
/// costs as much as one with values.
pub(super) const UNACKNOWLEDGED: u32 = 16;
/// Packets on their way below which a train has ended: a receiver may keep back its word on so many for a while.
const REST: u64 = UNACKNOWLEDGED as u64 + 2;
/// Packets of a train that say something.
const LEAST: u64 = 8;
/// A train says something if its acknowledgements took so many times as long as its packets took to leave.
const SPREAD: u32 = 4;
/// Trains that are remembered.
const TRAINS: usize = 15;

/// Measures a link.
#[derive(Clone, Debug, Default)]
struct Rate {
    /// Bytes of a packet.
    packet: u64,
    train: Option<Train>,
    /// Seconds a byte of the last trains.
    trains: VecDeque<f64>,
}

/// What was on its way together.
#[derive(Clone, Debug)]
struct Train {
    /// When the first of it was acknowledged, and the last.
    began: Instant,
    ended: Instant,
    /// When the first of it left, and the last.
    left: (Instant, Instant),
    /// What was acknowledged after the first time.
    bytes: u64,
    /// Whether the sender had no more to say.
    is_all: bool,
}

impl Rate {
    /// A packet was acknowledged. `is_all`: the sender had no more to say than the window let it.
    fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: u64, is_all: bool) {
        match &mut self.train {
            Some(train) if sent <= train.began => {
                // What comes at the very time of the first is part of it.
                if now > train.began {
                    train.bytes += bytes;
                }
                train.ended = now;
                train.left = (train.left.0.min(sent), train.left.1.max(sent));
                train.is_all &= is_all;
            }
            _ => {
                self.end();
                self.train = Some(Train { began: now, ended: now, left: (sent, sent), bytes: 0, is_all });
            }
        }
    }

    /// All that came at once was taken in, and so many bytes are still on their way.
    fn taken_in(&mut self, in_flight: u64) {
        if in_flight < REST * self.packet {
            self.end();
        }
    }

    /// A train has ended.
    fn end(&mut self) {
        let Some(train) = self.train.take() else { return };
        let took = train.ended - train.began;
        let left_at_once = took >= SPREAD * (train.left.1 - train.left.0);
        if train.bytes >= LEAST * self.packet && (left_at_once || !train.is_all) {
            if self.trains.len() == TRAINS {
                self.trains.pop_front();
            }
            self.trains.push_back(took.as_secs_f64() / train.bytes as f64);
        }
    }

    /// Bytes a second, once a train was long enough.
    fn get(&self) -> Option<f64> {
        let mut trains: Vec<f64> = self.trains.iter().copied().collect();
        trains.sort_by(f64::total_cmp);
        trains.get(trains.len() / 2).map(|train| 1.0 / train)
    }
}

/// The congestion control of a connection, which measures beside.
struct Measured {
    control: Box<dyn Controller>,
    rate: Rate,
}

/// What makes the congestion control of connections.
pub(super) struct Measuring(pub(super) CubicConfig);

impl ControllerFactory for Measuring {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let control = Arc::new(self.0.clone()).build(now, mtu);
        Box::new(Measured { control, rate: Rate { packet: mtu.into(), ..Rate::default() } })
    }
}

/// Bytes a second that a connection carries, once it was busy enough to tell.
pub(super) fn of(connection: &quinn::Connection) -> Option<f64> {
    connection.congestion_state().into_any().downcast::<Measured>().ok()?.rate.get()
}

impl Controller for Measured {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.control.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.rate.acknowledged(now, sent, bytes, app_limited);
        self.control.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.rate.taken_in(in_flight);
        self.control.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.control.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.rate.packet = mtu.into();
        self.control.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.control.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.control.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Measured { control: self.control.clone_box(), rate: self.rate.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.control.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn link() -> Rate {
        Rate { packet: 1250, ..Rate::default() }
    }

    /// Packets of 1,250 bytes that leave over some time, on a link of so many bytes a second, acknowledged by sixteens; the last ones late.
    fn train(rate: &mut Rate, start: Instant, bytes: u64, leave: Duration, speed: f64) -> Instant {
        let (mut done, mut now) = (0, start);
        while done < bytes {
            let some = (bytes - done).min(16 * rate.packet);
            let sent = start + leave.mul_f64(done as f64 / bytes as f64);
            now = now.max(sent) + Duration::from_secs_f64(some as f64 / speed);
            done += some;
            if done == bytes {
                now += Duration::from_millis(25);
            }
            rate.acknowledged(now, sent, some, true);
            rate.taken_in(bytes - done);
        }
        now
    }

    /// The same with all of them leaving at once.
    fn burst(rate: &mut Rate, start: Instant, bytes: u64, speed: f64) -> Instant {
        train(rate, start, bytes, Duration::ZERO, speed)
    }

    #[test]
    fn bursts_tell_the_rate_of_a_link_whatever_lies_between_them() {
        for speed in [1e6, 12.5e6, 125e6, 1.25e9] {
            let (mut rate, mut now) = (link(), Instant::now());
            for (bytes, pause) in [(100_000, 1), (80_000, 300), (5_000_000, 2), (500, 1), (100_000, 70)] {
                now = burst(&mut rate, now + Duration::from_millis(pause), bytes, speed);
            }
            let found = rate.get().unwrap();
            assert!((0.98..1.02).contains(&(found / speed)), "{found} for {speed}");
        }
    }

    #[test]
    fn who_says_little_says_nothing_of_the_link() {
        let (mut rate, mut now) = (link(), Instant::now());
        for _ in 0..1000 {
            now = burst(&mut rate, now + Duration::from_millis(1), 8_000, 125e6);
        }
        assert_eq!(rate.get(), None);
        // Nor does who says one thing after the other, however much it is in the end.
        let mut rate = link();
        let leave = Duration::from_millis(200);
        (0..9).fold(now, |now, _| train(&mut rate, now, 200_000, leave, 125e6));
        assert_eq!(rate.get(), None);
        // Even where all of it is on its way together; but then the window may be what spreads it, and that follows the link.
        let far = |is_all| {
            let mut rate = link();
            for sent in (0..100).map(|i| now + Duration::from_millis(i)) {
                rate.acknowledged(sent + Duration::from_millis(200), sent, 20_000, is_all);
            }
            rate.taken_in(0);
            rate.get()
        };
        assert_eq!(far(true), None);
        assert!(far(false).is_some_and(|found| (0.98..1.02).contains(&(found / 20e6))));
    }

    #[test]
    fn a_link_that_becomes_slower_is_found_out() {
        let (mut rate, mut now) = (link(), Instant::now());
        for _ in 0..20 {
            now = burst(&mut rate, now, 200_000, 1e9);
        }
        for _ in 0..40 {
            now = burst(&mut rate, now, 200_000, 1e8);
        }
        assert!((0.98..1.02).contains(&(rate.get().unwrap() / 1e8)), "{:?}", rate.get());
        // A thread that was not given a core for a while changes nothing.
        for _ in 0..TRAINS / 2 {
            now = burst(&mut rate, now, 200_000, 1e6);
        }
        assert!((0.98..1.02).contains(&(rate.get().unwrap() / 1e8)), "{:?}", rate.get());
        // What is acknowledged all at once tells nothing.
        let mut rate = link();
        for i in 0..4 {
            let now = now + Duration::from_millis(i);
            (0..9).for_each(|_| rate.acknowledged(now, now - Duration::from_micros(500), 50_000, true));
            rate.taken_in(0);
        }
        assert_eq!(rate.get(), None);
    }
}
