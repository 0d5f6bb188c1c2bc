//! What a certificate says: which run, which host of it, which incarnation.

use crate::error::{Error, Result};
use crate::transport::Host;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

/// Tells runs apart: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId(pub(super) [u8; 16]);

impl RunId {
    pub(super) fn random() -> Result<RunId> {
        random().map(RunId)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The name of a host, written into its certificate as `meshweft://run/<id>/host/<n>/incarnation/<k>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    pub(crate) run: RunId,
    pub(crate) host: Host,
    /// How often the run was begun: a host of an earlier one is not let in.
    pub(crate) incarnation: u32,
}

impl Name {
    /// Reads a name. It must be written as [`Name`] writes it, to the letter.
    pub(super) fn parse(uri: &str) -> Option<Name> {
        let mut parts = uri.strip_prefix("meshweft://run/")?.split('/');
        let run = RunId(hex(parts.next()?)?);
        let host = (parts.next()? == "host").then(|| parts.next())??.parse().ok()?;
        let incarnation = (parts.next()? == "incarnation").then(|| parts.next())??.parse().ok()?;
        let name = Name { run, host, incarnation };
        (name.to_string() == uri).then_some(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "meshweft://run/{}/host/{}/incarnation/{}", self.run, self.host, self.incarnation)
    }
}

/// Draws N random bytes from the system.
pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let failed = |_| Error::Secret("the system gives no random numbers, so there can be no keys".into());
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Reads N bytes in hexadecimal, in lower case.
pub(super) fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut bytes = [0; N];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written() {
        let name = Name { run: RunId([7; 16]), host: 3, incarnation: 2 };
        assert_eq!(Name::parse(&name.to_string()), Some(name));
        let run = "07".repeat(16);
        for other in [
            "",
            "meshweft://run/07/host/3/incarnation/2",
            &format!("meshweft://run/{run}/host/3"),
            &format!("meshweft://run/{run}/host/03/incarnation/2"),
            &format!("meshweft://run/{run}/host/+3/incarnation/2"),
            &format!("meshweft://run/{run}/host/3/incarnation/2/"),
            &format!("meshweft://run/{run}/worker/3/incarnation/2"),
            &format!("meshweft://run/{}/host/3/incarnation/2", "0G".repeat(16)),
            &format!("https://run/{run}/host/3/incarnation/2"),
        ] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
