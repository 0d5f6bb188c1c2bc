//! How many bytes a second a link carries, by what is acknowledged.
//!
//! Hosts send in bursts, so bytes over time says how much they had to say, and the congestion window over the round trip how much they
//! might; neither is what the link carries. What does say it is how far apart acknowledgements come while there is something to
//! acknowledge: packets of a burst leave together and arrive one after the other, as fast as the slowest piece of the way lets
//! them through. A *burst* begins with the first acknowledgement and ends when less than [`REST`] packets are on their way. Its rate is
//! the bytes that were acknowledged after the first time, over the time since then. Bursts of less than [`LEAST`] packets say
//! nothing: a link that never has one is never busy enough for its rate to matter. Long ones count in parts. Of the last [`BURSTS`] the
//! one in the middle counts: acknowledgements are held up by whatever else the hosts do, and then come all at once.
//!
//! Source: the dispersion of packet trains, Dovrolis, Ramanathan and Moore, "What do packet dispersion techniques measure?", 2001.

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Packets on their way below which a slow link looks like a host with little to say: a receiver may keep back its word on
/// two for a while.
const REST: u64 = 3;
/// Packets of a burst that say something.
const LEAST: u64 = 8;
/// Packets after which a burst counts as another.
const MOST: u64 = 256;
/// Bursts that are remembered.
const BURSTS: usize = 15;

/// Measures a link.
#[derive(Clone, Debug, Default)]
struct Rate {
    /// Bytes of a packet.
    packet: u64,
    /// When the burst under way began.
    began: Option<Instant>,
    /// What was acknowledged since then, and seconds a byte of that.
    bytes: u64,
    burst: Option<f64>,
    /// What was acknowledged just now.
    fresh: u64,
    /// Seconds a byte of the last bursts.
    bursts: VecDeque<f64>,
}

impl Rate {
    fn acknowledged(&mut self, bytes: u64) {
        self.fresh += bytes;
    }

    /// All that came at once was taken in, and so many bytes are still on their way.
    fn end(&mut self, now: Instant, in_flight: u64) {
        let fresh = std::mem::take(&mut self.fresh);
        let began = *self.began.get_or_insert(now);
        // What comes at the very time of the first is part of it.
        if now > began {
            self.bytes += fresh;
        }
        if self.bytes >= LEAST * self.packet {
            self.burst = Some((now - began).as_secs_f64() / self.bytes as f64);
        }
        if in_flight < REST * self.packet {
            (self.began, self.bytes) = (None, 0);
        } else if self.bytes >= MOST * self.packet {
            (self.began, self.bytes) = (Some(now), 0);
        } else {
            return;
        }
        if let Some(burst) = self.burst.take() {
            if self.bursts.len() == BURSTS {
                self.bursts.pop_front();
            }
            self.bursts.push_back(burst);
        }
    }

    /// Bytes a second, once a burst was long enough.
    fn get(&self) -> Option<f64> {
        let mut bursts: Vec<f64> = self.bursts.iter().copied().collect();
        bursts.sort_by(f64::total_cmp);
        bursts.get(bursts.len() / 2).map(|burst| 1.0 / burst)
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
        self.rate.acknowledged(bytes);
        self.control.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.rate.end(now, in_flight);
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

    /// A burst of packets of 1,250 bytes over a link of so many bytes a second, acknowledged by twos; the last one late.
    fn burst(rate: &mut Rate, start: Instant, bytes: u64, speed: f64) -> Instant {
        let (mut left, mut now) = (bytes, start);
        while left > 0 {
            let two = left.min(2500);
            left -= two;
            now += Duration::from_secs_f64(two as f64 / speed);
            if left == 0 {
                now += Duration::from_millis(25);
            }
            rate.acknowledged(two);
            rate.end(now, left);
        }
        now
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
            now = burst(&mut rate, now, 12_500, 125e6);
            rate.acknowledged(2500);
            now += Duration::from_micros(200);
            rate.end(now, 2500);
        }
        assert_eq!(rate.get(), None);
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
        assert!((0.98..1.02).contains(&(rate.get().unwrap() / 1e8)));
        // A thread that was not given a core for a while changes nothing.
        for _ in 0..BURSTS / 2 {
            now = burst(&mut rate, now, 200_000, 1e6);
        }
        assert!((0.98..1.02).contains(&(rate.get().unwrap() / 1e8)));
        // What is acknowledged all at once tells nothing.
        let mut rate = link();
        for left in [150_000, 100_000, 50_000, 0] {
            rate.acknowledged(50_000);
            rate.end(now, left);
        }
        assert_eq!(rate.get(), None);
    }
}
