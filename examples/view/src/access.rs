//! Who may look: who knows the token, and asks as the page itself does.
//!
//! A page of another site can have a browser send requests to this machine, even under a name that it lets point here. It can neither
//! know the token nor choose what the browser says in `Host` and `Origin`: the name of the site is no address, and so is refused.

use crate::error::{Error, Result};
use std::net::{IpAddr, SocketAddr};

/// Who may look.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    token: String,
    /// Whether only this machine is listened to.
    is_loopback: bool,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Host,
    Origin,
    Token,
}

impl Refusal {
    /// The reason, for who sent it.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Refusal::Host => {
                "this view is asked for under a name that is not its own: open the address that the run has printed"
            }
            Refusal::Origin => "a page of another site asks for this view",
            Refusal::Token => "this address has no valid token: open the one that the run has printed",
        }
    }
}

impl Access {
    /// Of a view that listens there, with a new token of 128 random bits.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new(address: SocketAddr) -> Result<Access> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| Error::Start(std::io::Error::other(error)))?;
        let token = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Access { token, is_loopback: address.ip().is_loopback() })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Judges a request by its path and what it says of itself.
    pub(crate) fn judge(
        &self,
        path: &str,
        host: Option<&str>,
        origin: Option<&str>,
    ) -> std::result::Result<(), Refusal> {
        let host = host.filter(|host| self.is_own(host)).ok_or(Refusal::Host)?;
        if origin.is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
            return Err(Refusal::Origin);
        }
        let token = path.strip_prefix('/').and_then(|path| path.split('/').next()).unwrap_or_default();
        if is_same(token.as_bytes(), self.token.as_bytes()) { Ok(()) } else { Err(Refusal::Token) }
    }

    /// Whether a name is one under which a view is reached. Ports may differ: one may be forwarded to another.
    fn is_own(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let address = name.parse::<IpAddr>();
        name == "localhost" || address.is_ok_and(|address| !self.is_loopback || address.is_loopback())
    }
}

/// Whether two texts are the same, in a time that tells nothing of where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_names_origins_and_tokens_are_refused() {
        let access = Access::new(([127, 0, 0, 1], 4000).into()).unwrap();
        let other = Access::new(([127, 0, 0, 1], 4000).into()).unwrap();
        assert!(access.token.len() == 32 && access.token != other.token);
        let path = format!("/{}/view.js", access.token);
        let judge = |host, origin| access.judge(&path, host, origin);
        assert_eq!(judge(Some("127.0.0.1:4000"), None), Ok(()));
        assert_eq!(judge(Some("localhost:4000"), Some("http://localhost:4000")), Ok(()));
        assert_eq!(judge(Some("[::1]:4000"), Some("http://[::1]:4000")), Ok(()));
        for host in
            [None, Some(""), Some("evil.example:4000"), Some("192.168.0.7:4000"), Some("127.0.0.1.evil.example")]
        {
            assert_eq!(judge(host, None), Err(Refusal::Host), "{host:?}");
        }
        for origin in
            ["null", "http://evil.example", "https://127.0.0.1:4000", "http://127.0.0.1:80", "http://127.0.0.1"]
        {
            assert_eq!(judge(Some("127.0.0.1:4000"), Some(origin)), Err(Refusal::Origin), "{origin}");
        }
        for path in ["", "/", "//", "/view.js", &format!("/{}", &access.token[1..]), &format!("/x/{}", access.token)] {
            assert_eq!(access.judge(path, Some("localhost"), None), Err(Refusal::Token), "{path}");
        }
        // One that others may reach is asked for by its address there, and still by no name.
        let open = Access::new(([0, 0, 0, 0], 4000).into()).unwrap();
        let path = format!("/{}/", open.token);
        assert_eq!(open.judge(&path, Some("192.168.0.7:4000"), None), Ok(()));
        assert_eq!(open.judge(&path, Some("evil.example:4000"), None), Err(Refusal::Host));
    }
}
