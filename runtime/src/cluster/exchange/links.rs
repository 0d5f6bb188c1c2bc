//! Which tasks of a share are read elsewhere, and which are ghosts of whom.

use crate::error::{Error, Result};
use crate::layout::Domain;
use meshweft_net::Host;
use meshweft_net::codec::Form;
use std::ops::Range;

/// Which tasks of a share are read elsewhere, and which are ghosts of whom: those of vertices, and behind them those of elements, star after
/// star.
pub(super) struct Links {
    /// For each task, the hosts that read it, and its slots that they read.
    pub(super) sent: Vec<Vec<(Host, Vec<u32>)>>,
    /// For each task, the host that owns it, if it is a ghost.
    owners: Vec<Option<Host>>,
    /// For each ghost, the ghosts around it.
    around: Vec<Vec<u32>>,
    /// Numbers of the tasks in the whole mesh.
    names: Vec<u32>,
    /// Bytes of the values of each, if it is a ghost.
    bytes: Vec<usize>,
}

impl Links {
    /// Those of a share.
    pub(super) fn new(domain: &Domain, form: Form) -> Links {
        let mut links =
            Links { sent: Vec::new(), owners: Vec::new(), around: Vec::new(), names: Vec::new(), bytes: Vec::new() };
        links.add(domain, form);
        domain.elements.values().for_each(|elements| links.add(elements, form));
        links
    }

    fn add(&mut self, domain: &Domain, form: Form) {
        let (share, first) = (domain.share.as_ref().expect("a worker has a share"), self.names.len());
        let around = |t: u32| {
            let around = if domain.is_ghost(t) { domain.graph.neighbors(t) } else { &[] };
            around.iter().copied().filter(|&u| domain.is_ghost(u)).map(|u| first as u32 + u).collect()
        };
        self.sent.extend(share.names.iter().map(|_| Vec::new()));
        self.owners.extend(share.names.iter().map(|_| None));
        self.around.extend((0..share.names.len() as u32).map(around));
        self.names.extend(&share.names);
        self.bytes.extend(share.ghosts.iter().map(|slots| slots.len() * form.vertex()));
        for link in &share.links {
            for (t, slots) in &link.sent {
                self.sent[first + *t as usize].push((link.with + 1, slots.clone()));
            }
            for &t in &link.received {
                self.owners[first + t as usize] = Some(link.with + 1);
            }
        }
    }

    /// How many of some tasks are ghosts.
    pub(super) fn ghosts(&self, tasks: Range<u32>) -> usize {
        self.owners[tasks.start as usize..tasks.end as usize].iter().flatten().count()
    }

    /// The number of a task in the whole mesh.
    pub(super) fn name(&self, t: u32) -> u32 {
        self.names[t as usize]
    }

    /// The host of a ghost.
    pub(super) fn owner(&self, t: u32) -> Option<Host> {
        self.owners[t as usize]
    }

    /// The ghosts around a ghost.
    pub(super) fn around(&self, t: u32) -> &[u32] {
        &self.around[t as usize]
    }

    /// The ghost that another host means, which sends so many bytes of it.
    ///
    /// # Errors
    /// It has no such ghost, or another number of bytes.
    pub(super) fn ghost(&self, from: Host, name: u32, bytes: usize) -> Result<u32> {
        let Ok(t) = self.names.binary_search(&name) else { return breach("a task that is not read here") };
        if self.owners[t] != Some(from) {
            return breach("a task of another host");
        }
        if bytes > 0 && bytes != self.bytes[t] {
            return breach("more or less of a task than is read here");
        }
        Ok(t as u32)
    }
}

/// The error of a host that sent values that no worker sends.
///
/// # Errors
/// Always.
pub(super) fn breach<A>(what: &str) -> Result<A> {
    Err(Error::Cluster(format!("it sent malformed values: {what}")))
}
