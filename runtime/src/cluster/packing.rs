//! Whether values go out packed, link by link.
//!
//! Packing costs the sender time and the receiver too, and saves some of the time that the bytes take on the link. Of each byte of
//! values a link to another host
//!
//! - saves `(1 - share) / rate` seconds: `share` is what is left of a byte once it is packed, `rate` the bytes a second that the link
//!   carries, as the transport measures it ([`Traffic::rate`](meshweft_net::Traffic::rate));
//! - costs `pack + unpack` seconds, measured on this host, for which the receiver's is taken too.
//!
//! A link packs when it saves more than it costs, by a quarter, and stops when it costs more than it saves by as much, so that it does
//! not flap. A link whose rate is not known yet packs nothing, nor does memory, whose rate is infinite. Share and times
//! come from *probes*: messages that are packed and unpacked on the side. These are the first, second, fourth, eighth and so on, then
//! one in 256. Of the last eight the quickest counts: what was slower was interrupted.
//!
//! Nothing here changes a result: packing is without loss, and a message says itself whether it is packed.
//!
//! Source: Young, Romera, Hauck and Fröning, "Optimizing Communication for a 2D-Partitioned Scalable BFS", 2016: what they exchanged, packed,
//! made runs on Ethernet 76 to 93 % shorter, and runs on InfiniBand 5 to 24 % longer. Our figures: docs/perf/decisions/packing.md.

use super::values;
use crate::error::Result;
use crate::layout::{Layout, Shares, View};
use crate::number::Number;
use meshweft_mesh::Cut;
use meshweft_model::Packed;
use meshweft_net::Host;
use meshweft_net::codec::Form;
use rkyv::{Archive, Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One message in so many is a probe.
const PROBE: u64 = 256;
/// Probes that are remembered.
const REMEMBERED: usize = 8;

/// How the values pack that two hosts with a half of a layout each would send each other now. Takes some milliseconds.
///
/// # Errors
/// None that a layout can have.
pub(crate) fn tried<T: Number>(layout: &Layout, state: View<'_, T>) -> Result<Packed> {
    /// Bytes that tell how others pack.
    const ENOUGH: usize = 1 << 20;
    let owners = super::partition::partition(layout, &[], &[0.5; 2], Cut::Curve)?;
    let shares = Shares::new(layout, &owners, 2, None);
    let (domain, own) = (shares.domain(0), shares.state(0, state));
    let form = Form { bytes: T::BYTES, reals: domain.shape.shared };
    let bits = |slots: &[u32], message: &mut Vec<u8>| {
        let reals = slots.iter().flat_map(|&slot| (0..form.reals).map(move |k| (slot as usize, k)));
        reals.for_each(|(slot, k)| message.extend_from_slice(bytemuck::bytes_of(&own.view().real(slot, k))));
    };
    let mut plain = values::begin(0);
    let links = domain.share.iter().flat_map(|share| &share.links);
    for (name, slots) in links.flat_map(|link| &link.sent) {
        values::add(&mut plain, *name, |message| bits(slots, message));
        if plain.len() > ENOUGH {
            break;
        }
    }
    // The quickest of some: what was slower was interrupted.
    let mut best = Packed { share: 1.0, byte_s: f64::INFINITY };
    for _ in 0..REMEMBERED {
        let clock = Instant::now();
        let packed = values::pack(form, &plain);
        let is_same = values::unpack(form, &packed).is_some_and(|back| *back == plain);
        assert!(is_same, "packing is without loss");
        best.byte_s = best.byte_s.min(clock.elapsed().as_secs_f64() / plain.len() as f64);
        best.share = packed.len() as f64 / plain.len() as f64;
    }
    Ok(best)
}

/// Whether the hosts of a run pack the values that they send each other, without loss. No result depends on it.
///
/// ```
/// # use meshweft::{Cluster, Compress};
/// let cluster = Cluster::inside(2)?.compress(Compress::Never);
/// # Ok::<(), meshweft::Error>(())
/// ```
#[derive(Archive, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compress {
    /// Each link by itself, where that is quicker by what was measured.
    #[default]
    Auto,
    /// All values.
    Always,
    /// None.
    Never,
}

/// What a host knows of its links.
pub(super) struct Packing {
    form: Form,
    how: Compress,
    /// By number of the host at the other end.
    links: Vec<Mutex<Balance>>,
    before: AtomicU64,
    after: AtomicU64,
}

/// What one message was like, packed.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    pub(super) before: usize,
    pub(super) after: usize,
    /// Seconds a byte.
    pub(super) pack: f64,
    pub(super) unpack: f64,
}

/// Whether values for one other host, in one direction, are worth packing.
#[derive(Default)]
pub(super) struct Balance {
    messages: u64,
    pub(super) packs: bool,
    probes: VecDeque<Probe>,
}

impl Balance {
    /// Whether the next message is a probe.
    pub(super) fn probes(&mut self) -> bool {
        self.messages += 1;
        self.messages.is_power_of_two() || self.messages.is_multiple_of(PROBE)
    }

    /// Takes note of a probe, and decides anew. `rate`: bytes a second of the link, if it was measured. Says why, if that changed.
    pub(super) fn decide(&mut self, probe: Probe, rate: Option<f64>) -> Option<String> {
        if self.probes.len() == REMEMBERED {
            self.probes.pop_front();
        }
        self.probes.push_back(probe);
        let rate = rate.filter(|rate| *rate > 0.0)?;
        let sum = |of: fn(&Probe) -> usize| self.probes.iter().map(of).sum::<usize>() as f64;
        let least = |of: fn(&Probe) -> f64| self.probes.iter().map(of).fold(f64::INFINITY, f64::min);
        let share = sum(|probe| probe.after) / sum(|probe| probe.before);
        let (pack, unpack) = (least(|probe| probe.pack), least(|probe| probe.unpack));
        let (saves, costs) = ((1.0 - share) / rate, pack + unpack);
        let packs = if self.packs { saves * Packed::MARGIN > costs } else { saves > Packed::MARGIN * costs };
        if std::mem::replace(&mut self.packs, packs) == packs {
            return None;
        }
        let million = |rate: f64| format!("{:.*} MB/s", if rate < 1e7 { 2 } else { 0 }, rate / 1e6);
        Some(format!(
            "the link carries {}, packed values take {:.0} % of their bytes, packing goes at {}, unpacking at {}",
            million(rate),
            100.0 * share,
            million(1.0 / pack),
            million(1.0 / unpack)
        ))
    }
}

impl Packing {
    /// For a run of so many hosts whose values lie like this.
    pub(super) fn new(form: Form, how: Compress, hosts: u32) -> Packing {
        let links = (0..hosts).map(|_| Mutex::default()).collect();
        Packing { form, how, links, before: AtomicU64::new(0), after: AtomicU64::new(0) }
    }

    /// How values lie.
    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Bytes of messages of values as they would have been, and as they went out.
    pub(super) fn bytes(&self) -> [u64; 2] {
        [&self.before, &self.after].map(|bytes| bytes.load(Ordering::Relaxed))
    }

    /// A message of values as it is to go out to a host, and what there is to say if the link to it has just changed its way. `rate`: bytes a second
    /// of the link; `now`: what a clock shows.
    pub(super) fn prepare(
        &self,
        to: Host,
        message: Vec<u8>,
        rate: impl FnOnce() -> Option<f64>,
        now: impl Fn() -> Duration,
    ) -> (Vec<u8>, Option<String>) {
        let before = message.len();
        let (message, said) = match self.how {
            Compress::Always => (values::pack(self.form, &message), None),
            Compress::Auto if before >= Packed::SMALL => self.weigh(to, message, rate, now),
            _ => (message, None),
        };
        self.before.fetch_add(before as u64, Ordering::Relaxed);
        self.after.fetch_add(message.len() as u64, Ordering::Relaxed);
        (message, said)
    }

    fn weigh(
        &self,
        to: Host,
        message: Vec<u8>,
        rate: impl FnOnce() -> Option<f64>,
        now: impl Fn() -> Duration,
    ) -> (Vec<u8>, Option<String>) {
        let link = || self.links[to as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let (is_probe, packs) = {
            let mut link = link();
            (link.probes(), link.packs)
        };
        if !is_probe && !packs {
            return (message, None);
        }
        let start = now();
        let packed = values::pack(self.form, &message);
        let (mut said, mut packs) = (None, packs);
        if is_probe {
            let between = now();
            let is_same = values::unpack(self.form, &packed).is_some_and(|back| *back == message);
            assert!(is_same, "packing is without loss");
            let a_byte = |took: Duration| took.as_secs_f64() / message.len() as f64;
            let (pack, unpack) = (a_byte(between - start), a_byte(now() - between));
            let mut link = link();
            said = link.decide(Probe { before: message.len(), after: packed.len(), pack, unpack }, rate());
            packs = link.packs;
        }
        let way = if packs { "packs the values" } else { "no longer packs the values" };
        let said = said.map(|why| format!("{way} for host {to}: {why}"));
        (if packs && packed.len() < message.len() { packed } else { message }, said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form { bytes: 4, reals: 1 };
    /// A gigabit, and ten, a second.
    const SLOW: f64 = 125e6;
    const FAST: f64 = 1250e6;

    fn probe(share: f64, speed: f64) -> Probe {
        Probe { before: 1000, after: (1000.0 * share) as usize, pack: 1.0 / speed, unpack: 1.0 / speed }
    }

    #[test]
    fn a_link_packs_where_bytes_take_longer_than_packing() {
        // A quarter is saved: 2 ns a byte at a gigabit, 0.2 ns at ten. Packing and unpacking take 1 ns together.
        for (rate, packs) in [(Some(SLOW), true), (Some(FAST), false), (None, false), (Some(f64::INFINITY), false)] {
            let mut balance = Balance::default();
            let said = balance.decide(probe(0.75, 2e9), rate);
            assert_eq!((balance.packs, said.is_some()), (packs, packs), "{rate:?}");
        }
        let mut balance = Balance::default();
        let said = balance.decide(probe(0.75, 2e9), Some(SLOW)).unwrap();
        assert_eq!(
            said,
            "the link carries 125 MB/s, packed values take 75 % of their bytes, packing goes at 2000 MB/s, unpacking at 2000 MB/s"
        );
        // What does not get smaller never pays.
        assert_eq!(Balance::default().decide(probe(1.0, f64::INFINITY), Some(1.0)), None);
        // Nor does what takes long to pack.
        assert_eq!(Balance::default().decide(probe(0.75, 1e8), Some(SLOW)), None);
    }

    #[test]
    fn a_link_near_the_balance_does_not_flap() {
        // It pays below 250 MB/s.
        let mut balance = Balance::default();
        let mut packs = |rate: f64| {
            let said = balance.decide(probe(0.75, 2e9), Some(rate)).is_some();
            (balance.packs, said)
        };
        assert_eq!(packs(249e6), (false, false), "by too little");
        assert_eq!(packs(190e6), (true, true));
        assert_eq!([240e6, 260e6, 300e6].map(&mut packs), [(true, false); 3]);
        assert_eq!(packs(320e6), (false, true));
        assert_eq!([260e6, 240e6, 210e6].map(&mut packs), [(false, false); 3]);
    }

    #[test]
    fn one_interrupted_probe_changes_nothing() {
        let mut balance = Balance::default();
        balance.decide(probe(0.75, 2e9), Some(SLOW));
        for _ in 0..REMEMBERED - 1 {
            assert_eq!(balance.decide(probe(0.75, 1e6), Some(SLOW)), None, "the quickest counts");
        }
        assert!(balance.packs);
        assert!(balance.decide(probe(0.75, 1e6), Some(SLOW)).is_some() && !balance.packs, "until it is long ago");
    }

    /// A message about one task whose values are all the same.
    fn smooth(vertices: usize) -> Vec<u8> {
        let mut message = values::begin(1);
        values::add(&mut message, 0, |bits| bits.extend([1; 4].repeat(vertices)));
        message
    }

    #[test]
    fn messages_are_packed_as_the_run_was_told_and_counted() {
        let clock = std::cell::Cell::new(0);
        // Each look at it takes a nanosecond.
        let now = || Duration::from_nanos(clock.replace(clock.get() + 1));
        let message = smooth(1000);
        let len = message.len() as u64;
        for (how, rate, packs) in [
            (Compress::Never, Some(1.0), false),
            (Compress::Always, None, true),
            (Compress::Auto, None, false),
            (Compress::Auto, Some(SLOW), true),
        ] {
            let packing = Packing::new(FORM, how, 3);
            let (sent, said) = packing.prepare(2, message.clone(), || rate, now);
            assert_eq!(sent != message, packs, "{how:?} {rate:?}");
            assert_eq!(values::unpack(FORM, &sent).unwrap(), message);
            assert_eq!(packing.bytes(), [len, sent.len() as u64]);
            assert_eq!(said.is_some(), how == Compress::Auto && packs);
            assert!(
                said.is_none_or(|said| said.starts_with("packs the values for host 2: the link carries 125 MB/s,"))
            );
        }
        // One link is not another, and small messages are let be.
        let packing = Packing::new(FORM, Compress::Auto, 3);
        packing.prepare(2, message.clone(), || Some(SLOW), now);
        assert_eq!(packing.prepare(2, smooth(9), || Some(SLOW), now).0, smooth(9));
        assert_eq!(packing.prepare(1, message.clone(), || None, now).0, message);
    }

    #[test]
    fn probes_are_frequent_at_first_and_rare_later() {
        let mut balance = Balance::default();
        let probes: Vec<u64> = (1..1100).filter(|_| balance.probes()).collect();
        assert_eq!(probes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024]);
    }
}
