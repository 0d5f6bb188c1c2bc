//! Whether hosts agree about what they share: the values at a border are with their owner and, as ghosts, with those who read them.
//!
//! When all steps are done, both are the same bits. A bit that a memory or a network has changed on one side shows then. So with every
//! state that workers send, each sends digests of what others have of it and of what it has of others; a state of which two of them differ is not
//! kept, and the run goes back to the one before. What is changed before it is used for the next time is found; what has gone into
//! other values by then is not.

use crate::error::{Error, Result};
use crate::layout::{Domain, View};
use crate::number::Number;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::Range;

/// Bytes of a digest.
const BYTES: usize = 16;
type Digest = [u8; BYTES];

/// What a host says of the others that it exchanges values with: the share of each, the digest of what it has sent there, and of what it
/// has got from there.
type Copies = Vec<(u32, Digest, Digest)>;

fn of_host<T: Number>(domain: &Domain, view: View<'_, T>) -> Copies {
    let share = domain.share.as_ref().expect("a host has a share");
    // Tasks in any order: their digests are added up.
    let add = |sum: &mut Digest, task: u32, slots: &mut dyn Iterator<Item = u32>| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&share.names[task as usize].to_le_bytes());
        for slot in slots {
            let first = view.shape.shared_index(slot as usize, 0);
            hasher.update(bytemuck::cast_slice(&view.shared[first..first + view.shape.shared]));
        }
        let mut own = Digest::default();
        own.copy_from_slice(&hasher.finalize().as_bytes()[..BYTES]);
        *sum = u128::from_le_bytes(*sum).wrapping_add(u128::from_le_bytes(own)).to_le_bytes();
    };
    let copies = share.links.iter().map(|link| {
        let (mut sent, mut got) = (Digest::default(), Digest::default());
        link.sent.iter().for_each(|(task, slots)| add(&mut sent, *task, &mut slots.iter().copied()));
        let ghost = |task: u32| -> Range<u32> { share.ghosts[task as usize].clone() };
        link.received.iter().for_each(|&task| add(&mut got, task, &mut ghost(task)));
        (link.with, sent, got)
    });
    copies.collect()
}

/// Writes what a host says, behind its state.
pub(super) fn write<T: Number>(domain: &Domain, view: View<'_, T>, out: &mut dyn Write) -> io::Result<()> {
    let copies = of_host(domain, view);
    out.write_all(&(copies.len() as u32).to_le_bytes())?;
    for (with, sent, got) in copies {
        out.write_all(&with.to_le_bytes())?;
        out.write_all(&sent)?;
        out.write_all(&got)?;
    }
    Ok(())
}

/// What all hosts say.
#[derive(Default)]
pub(super) struct Agreement {
    /// By the shares of who has sent and who has got: digests of both.
    pairs: BTreeMap<(u32, u32), [Option<Digest>; 2]>,
}

impl Agreement {
    /// Reads what the host of a share says, one of so many.
    ///
    /// # Errors
    /// It is cut short, or malformed.
    pub(super) fn read(&mut self, share: u32, shares: u32, from: &mut dyn Read) -> io::Result<()> {
        fn next<const N: usize>(from: &mut dyn Read) -> io::Result<[u8; N]> {
            let mut bytes = [0; N];
            from.read_exact(&mut bytes).map(|()| bytes)
        }
        let count = u32::from_le_bytes(next(from)?);
        if count >= shares {
            return Err(io::Error::other("more copies than there are hosts"));
        }
        for _ in 0..count {
            let (with, sent, got) = (u32::from_le_bytes(next(from)?), next(from)?, next(from)?);
            self.pairs.entry((share, with)).or_default()[0] = Some(sent);
            self.pairs.entry((with, share)).or_default()[1] = Some(got);
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::Lost`] names two hosts that have not the same.
    pub(super) fn check(&self) -> Result<()> {
        match self.pairs.iter().find(|(_, [sent, got])| sent != got) {
            None => Ok(()),
            Some(((owner, reader), _)) => Err(Error::Lost(format!(
                "what host {} has of host {}'s values is not what host {} has: a memory or a network has changed a bit",
                reader + 1,
                owner + 1,
                owner + 1
            ))),
        }
    }
}
