//! A run in which no host moves.
//!
//! A host that is gone is noticed by the network. A host that answers and does nothing, or two that wait for each other, are not:
//! so a driver that has waited for long asks all workers how they stand, and ends the run if none has moved since it last asked.

use super::exchange::Exchange;
use super::kind::{CONTROL, WATCH};
use super::message::{Control, Standing};
use crate::error::{Error, Result};
use meshweft_net::Host;
use std::fmt::Write;
use std::time::Duration;

/// How long a driver waits for word of a worker before it asks. A task takes milliseconds.
pub(crate) const LONG: Duration = Duration::from_secs(30);
/// How long a network's thread may take to answer.
const ANSWER: Duration = Duration::from_secs(15);
/// Waits of a host that are told, at most.
const TOLD: usize = 4;

/// Watches over a run, for a driver that waits.
#[derive(Default)]
pub(crate) struct Watch {
    last: Option<Vec<Standing>>,
}

impl Watch {
    /// Asks all workers how they stand.
    ///
    /// # Errors
    /// None has moved since they were last asked: it says who waits for whom. One does not answer, or was lost.
    pub(crate) fn look(&mut self, exchange: &Exchange) -> Result<()> {
        let workers = 1..exchange.transport().hosts();
        workers.clone().for_each(|to| exchange.send(to, vec![WATCH]));
        let mut standings = Vec::new();
        for host in workers {
            let is_answer = |from: Host, message: &[u8]| {
                let is_control = from == host && message.first() == Some(&CONTROL);
                is_control && matches!(Control::decode(message), Ok(Control::Standing(_)))
            };
            let answer = exchange.receive(ANSWER, is_answer)?;
            match answer.map(|(_, message)| Control::decode(&message)).transpose()? {
                Some(Control::Standing(standing)) => standings.push(standing),
                _ => return Err(Error::Lost(format!("host {host} does not answer"))),
            }
        }
        if self.last.as_ref() == Some(&standings) {
            return Err(stalled(&standings));
        }
        self.last = Some(standings);
        Ok(())
    }
}

/// Who waits for whom.
fn stalled(standings: &[Standing]) -> Error {
    let mut text = format!("no worker has moved for {} s, so the run would not end", LONG.as_secs());
    for (host, standing) in (1..).zip(standings) {
        let _ = write!(text, "; host {host} ");
        if standing.waits.is_empty() {
            text += "waits for no task";
        }
        for (i, (task, epoch, of, owner)) in standing.waits.iter().take(TOLD).enumerate() {
            let and = if i > 0 { ", " } else { "" };
            let _ = write!(text, "{and}waits in round {epoch} with task {task} for task {of} of host {owner}");
        }
    }
    Error::Cluster(text)
}
