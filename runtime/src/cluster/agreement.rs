//! What workers find out together: the first one asks all others, and tells them.

use super::exchange::Exchange;
use super::kind::CONTROL;
use super::message::{Control, unexpected};
use crate::engine::Reduction;
use crate::error::{Error, Result};
use meshweft_net::Host;
use std::time::Duration;

/// The worker that combines what all measure.
pub(super) const FIRST: Host = 1;
/// How long a worker waits for word before it looks again.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Combines what all workers have measured in the tree that one host would use.
///
/// # Errors
/// Another host was lost; vertices that were measured twice, or not at all.
pub(super) fn total(exchange: &Exchange, own: Reduction) -> Result<f64> {
    let Reduction { how, whole, .. } = own;
    let workers = exchange.transport().hosts() - 1;
    if exchange.transport().host() != FIRST {
        exchange.send(FIRST, Control::Leaves { leaves: own.leaves, vertices: own.vertices }.encode());
        return match next(exchange, FIRST)? {
            Control::Total(total) => Ok(total),
            other => unexpected(FIRST, &other),
        };
    }
    let mut all = vec![own];
    for from in FIRST + 1..=workers {
        match next(exchange, from)? {
            Control::Leaves { leaves, vertices } => all.push(Reduction { how, whole, leaves, vertices }),
            other => return unexpected(from, &other),
        }
    }
    let total = Reduction::total(all)
        .ok_or_else(|| Error::Cluster("some vertices were measured twice, or not at all".into()))?;
    (FIRST + 1..=workers).for_each(|to| exchange.send(to, Control::Total(total).encode()));
    Ok(total)
}

/// Whether something holds on any worker.
///
/// # Errors
/// Another host was lost.
pub(super) fn vote(exchange: &Exchange, own: bool) -> Result<bool> {
    let workers = exchange.transport().hosts() - 1;
    let vote = |from| match next(exchange, from)? {
        Control::Vote(vote) => Ok(vote),
        other => unexpected(from, &other),
    };
    if exchange.transport().host() != FIRST {
        exchange.send(FIRST, Control::Vote(own).encode());
        return vote(FIRST);
    }
    let mut any = own;
    for from in FIRST + 1..=workers {
        any |= vote(from)?;
    }
    (FIRST + 1..=workers).for_each(|to| exchange.send(to, Control::Vote(any).encode()));
    Ok(any)
}

/// The next control message of a host.
///
/// # Errors
/// Another host was lost, or the message is malformed.
pub(super) fn next(exchange: &Exchange, from: Host) -> Result<Control> {
    let wants = |sender: Host, message: &[u8]| sender == from && message.first() == Some(&CONTROL);
    loop {
        // Whether there is anything to wait for is the driver's business.
        if let Some((_, message)) = exchange.receive(PATIENCE, wants)? {
            return Control::decode(&message);
        }
    }
}
