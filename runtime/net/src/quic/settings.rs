//! How a host takes part in a run.

use crate::error::{Error, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How a host takes part in a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen. Port 0: any free one.
    pub listen: SocketAddr,
    /// Where others reach this host. None: found out.
    pub addresses: Vec<SocketAddr>,
    /// A host of which nothing is heard for so long is lost.
    pub dead_timeout: Duration,
    /// How long a worker tries to reach the driver and to be let in.
    pub join_deadline: Duration,
    /// How long a goodbye may take.
    pub goodbye: Duration,
    /// How long the run may take at most: certificates and token expire after it, though they end with the driver anyway. The driver's
    /// alone.
    pub run_length: Duration,
    /// Bytes of a packet, where the network is known to carry more than 1,452. None: 6,500 within one machine, else found out.
    pub mtu: Option<u16>,
}

/// A year: keys should not live longer, and clocks do not jump further.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: (Ipv4Addr::UNSPECIFIED, 0).into(),
            addresses: Vec::new(),
            dead_timeout: Duration::from_secs(10),
            join_deadline: Duration::from_secs(60),
            goodbye: Duration::from_secs(10),
            run_length: LONGEST,
            mtu: None,
        }
    }
}

impl Settings {
    /// Refuses what cannot work.
    pub(super) fn check(&self) -> Result<()> {
        let range = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);
        for (name, time) in
            [("dead-timeout", self.dead_timeout), ("join deadline", self.join_deadline), ("goodbye", self.goodbye)]
        {
            if !range.contains(&time) {
                return Err(Error::Hosts(format!("a {name} of {time:?} cannot work: take 100 ms to 24 h")));
            }
        }
        if self.run_length > LONGEST {
            return Err(Error::Hosts("a run may last a year at most: its keys should not live longer".into()));
        }
        Ok(())
    }
}
