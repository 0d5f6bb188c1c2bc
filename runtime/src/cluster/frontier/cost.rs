//! In which form a list of ids takes the least time.
//!
//! A list takes `bytes / rate + ids * (write + read)` seconds: `rate` is what the transport measures of the slowest link that it goes
//! along, the times are what this host took last, and the other end's are taken for the same. Until something was measured they are
//! those of docs/seeds/tables.md.

use super::super::packing::Compress;
use meshweft_net::ids::{Form, List};
use std::time::Duration;

/// Lists that are too short to measure times on.
const SHORT: usize = 1 << 10;
/// Times that are remembered: of these the least counts, since what was slower was interrupted.
const REMEMBERED: usize = 8;

/// Seconds that an id takes to be written and to be read, by form.
pub(super) struct Costs {
    compress: Compress,
    times: [[Recent; 2]; Form::ALL.len()],
}

/// The last times, in a ring.
#[derive(Clone, Copy)]
struct Recent {
    times: [f64; REMEMBERED],
    next: usize,
}

impl Recent {
    fn least(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// What was timed.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Write,
    Read,
}

impl Costs {
    pub(super) fn new(compress: Compress) -> Costs {
        let times = [[0.1e-9, 0.6e-9], [3e-9, 2e-9], [3e-9, 0.9e-9], [5e-9, 2e-9]];
        let recent = |time| Recent { times: [time; REMEMBERED], next: 0 };
        Costs { compress, times: times.map(|ways| ways.map(recent)) }
    }

    /// Takes note of how long some ids took.
    pub(super) fn note(&mut self, form: Form, way: Way, ids: usize, took: Duration) {
        if ids >= SHORT && !took.is_zero() {
            let recent = &mut self.times[form as usize][way as usize];
            recent.times[recent.next] = took.as_secs_f64() / ids as f64;
            recent.next = (recent.next + 1) % REMEMBERED;
        }
    }

    fn time(&self, form: Form) -> f64 {
        self.times[form as usize].iter().map(Recent::least).sum()
    }

    /// Whether a list of so many ids may be worth more than four bytes each on a link of so many bytes a second.
    pub(super) fn weighs(&self, ids: usize, rate: Option<f64>) -> bool {
        let least = Form::ALL[1..].iter().map(|&form| self.time(form)).fold(f64::INFINITY, f64::min);
        match (self.compress, rate) {
            (Compress::Never, _) | (Compress::Auto, None) => false,
            (Compress::Always, _) => true,
            (Compress::Auto, Some(rate)) => ids > 0 && 4.0 / rate > least - self.time(Form::Plain),
        }
    }

    /// The form of a list that is worth a thought.
    pub(super) fn form(&self, list: &List, ids: usize, rate: Option<f64>) -> Form {
        let seconds = |form: Form| match (self.compress, rate) {
            (Compress::Auto, Some(rate)) => list.bytes[form as usize] as f64 / rate + ids as f64 * self.time(form),
            _ => list.bytes[form as usize] as f64,
        };
        let best = Form::ALL.into_iter().min_by(|a, b| seconds(*a).total_cmp(&seconds(*b)));
        best.expect("there are forms")
    }
}
