//! A key and a token made before the run, by which its driver and its workers find each other.

use super::authority::{Authority, digest};
use super::name::random;
use super::token::Token;
use crate::error::{Error, Result};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What it takes to begin a run.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) authority: Arc<Authority>,
    pub(crate) token: Token,
    /// Which beginning of it that is: counted from 1, or from any number where one process after another begins it.
    pub(crate) incarnation: u32,
}

/// The authority of a run, made ahead of it: the key is for the driver alone, the token for its workers.
///
/// A scheduler that starts both at once, such as Kubernetes, hands them out as secrets. Runs may use them one after the other until
/// they expire.
///
/// ```
/// use meshweft_net::RunKey;
/// use std::time::Duration;
/// let key = RunKey::new(Some("localhost:7777"), Duration::from_secs(3600))?;
/// assert!(key.token().contains("/localhost:7777/"));
/// let again = RunKey::parse(&key.reveal())?;
/// assert_eq!(again.token(), key.token());
/// # Ok::<(), meshweft_net::Error>(())
/// ```
pub struct RunKey(Run);

/// What versions of keys begin with.
const KIND: &str = "meshweft-key1/";

impl RunKey {
    /// Makes a key that is valid for a time of a minute to a year. `driver`: where workers will find the driver, as `HOST:PORT`;
    /// a name is looked up when they join. Without it they must be told otherwise, by `MESHWEFT_DRIVER`.
    ///
    /// # Errors
    /// A time out of that range; a driver that is not written so.
    pub fn new(driver: Option<&str>, valid: Duration) -> Result<RunKey> {
        const DAY: u64 = 24 * 3600;
        if !(60..=366 * DAY).contains(&valid.as_secs()) {
            return Err(Error::Invalid(format!("a key that is valid for {valid:?}: take a minute to a year")));
        }
        let authority = Arc::new(Authority::new(valid)?);
        let token = Token::new(&authority, 0, Vec::new())?;
        let token = driver.map_or_else(|| Ok(token.clone()), |driver| token.of_driver(driver))?;
        Ok(RunKey(Run { authority, token, incarnation: 1 }))
    }

    /// Returns what workers join with: one line, a secret.
    pub fn token(&self) -> String {
        self.0.token.reveal()
    }

    /// Writes the key, with its token in a second line: its holder can be the driver.
    pub fn reveal(&self) -> String {
        let text = format!("{KIND}{}", self.0.authority.reveal());
        format!("{text}/{:08x}\n{}", crc32fast::hash(text.as_bytes()), self.token())
    }

    /// Reads what [`reveal`](RunKey::reveal) wrote.
    ///
    /// # Errors
    /// A text that is no key, was altered, or has expired. Errors never repeat it.
    pub fn parse(text: &str) -> Result<RunKey> {
        let wrong = |what: &str| Error::Secret(format!("the key {what}: make another with `meshweft cluster token`"));
        let mut lines = text.lines();
        let (key, token) = (lines.next().unwrap_or_default().trim(), lines.next().unwrap_or_default());
        let Some((body, check)) = key.strip_prefix(KIND).and_then(|_| key.rsplit_once('/')) else {
            return Err(wrong("does not begin with meshweft-key1/"));
        };
        if check != format!("{:08x}", crc32fast::hash(body.as_bytes())) {
            return Err(wrong("was altered or cut off: its checksum does not fit"));
        }
        let authority = Authority::parse(&body[KIND.len()..]).ok_or_else(|| wrong("cannot be read"))?;
        let token = Token::parse(token)?;
        if digest(authority.certificate()) != token.authority {
            return Err(wrong("does not belong to its token, or another version made it"));
        }
        token.check_time().map_err(|_| wrong("has expired"))?;
        // What is left of a run of before by this key is no part of the one that begins now.
        let incarnation = u32::from_le_bytes(random()?) >> 1;
        Ok(RunKey(Run { authority: Arc::new(authority), token, incarnation }))
    }

    /// Writes the key and its token to two new files, which only their owner may read.
    ///
    /// # Errors
    /// A file that exists already, or cannot be written.
    pub fn save(&self, key: &Path, token: &Path) -> Result<()> {
        write_secret(token, &self.token())?;
        write_secret(key, &self.reveal())
    }

    /// Writes the key to a file, in the place of what is there, which only its owner may read.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn replace(&self, key: &Path) -> Result<()> {
        // Through no link, and into nothing that others may read: what is there is replaced, not written to.
        let fresh = key.with_extension("key.new");
        let _ = std::fs::remove_file(&fresh);
        write_secret(&fresh, &self.reveal())?;
        let renamed = std::fs::rename(&fresh, key);
        renamed.map_err(|error| Error::Secret(format!("cannot write the key of a run to {}: {error}", key.display())))
    }

    /// Reads the key of a file that [`save`](RunKey::save) wrote.
    ///
    /// # Errors
    /// A file that cannot be read, and those of [`parse`](RunKey::parse).
    pub fn load(key: &Path) -> Result<RunKey> {
        RunKey::parse(&read_secret(key)?)
    }

    pub(crate) fn of(run: Run) -> RunKey {
        RunKey(run)
    }

    pub(crate) fn run(self, workers: u32) -> Run {
        Run { token: self.0.token.for_workers(workers), ..self.0 }
    }

    /// Returns the port at which workers will look for the driver, if the token says where that is.
    pub fn port(&self) -> Option<u16> {
        self.0.token.port()
    }
}

impl std::fmt::Debug for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RunKey").field(&self.0.token).finish()
    }
}

/// Reads a file with a token or a key.
pub(crate) fn read_secret(path: &Path) -> Result<String> {
    /// Longer than any.
    const LONGEST: u64 = 4096;
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    read.map_err(|error| Error::Secret(format!("cannot read {}: {error}", path.display())))?;
    Ok(text)
}

/// Writes a secret to a new file, which only its owner may read.
///
/// # Errors
/// A file that exists already, or cannot be written.
pub fn write_secret(path: &Path, text: &str) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    // Never through a link, and never over something that others may read already.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write = |mut file: std::fs::File| {
        let written = file.write_all(format!("{text}\n").as_bytes());
        // Half a secret is of no use, and in the way of the next.
        written.inspect_err(|_| drop(std::fs::remove_file(path)))
    };
    let written = options.open(path).and_then(write);
    written.map_err(|error| {
        let hint = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; an earlier run may have left it: remove it",
            _ => "",
        };
        Error::Secret(format!("cannot write the secret of a run to {}: {error}{hint}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_authority_when_it_is_read_again() {
        let key = RunKey::new(None, Duration::from_secs(3600)).unwrap();
        let again = RunKey::parse(&key.reveal()).unwrap();
        assert_eq!(again.reveal(), key.reveal());
        assert_eq!(again.0.authority.certificate(), key.0.authority.certificate());
        let secret = key.reveal().split('/').nth(2).unwrap().to_string();
        assert!(!format!("{key:?}").contains(&secret));
    }

    #[test]
    fn a_wrong_key_is_refused_and_not_repeated() {
        let text = RunKey::new(None, Duration::from_secs(3600)).unwrap().reveal();
        let other = RunKey::new(None, Duration::from_secs(3600)).unwrap();
        let secret = text.split('/').nth(2).unwrap();
        let expired = {
            let then = std::time::SystemTime::now() - Duration::from_secs(7200);
            let authority = Arc::new(Authority::valid(then, then + Duration::from_secs(3660)).unwrap());
            let token = Token::new(&authority, 0, Vec::new()).unwrap();
            RunKey(Run { authority, token, incarnation: 1 }).reveal()
        };
        let mixed = format!("{}\n{}", text.lines().next().unwrap(), other.token());
        for (wrong, says) in [
            (String::new(), "does not begin with"),
            (other.token(), "does not begin with"),
            (text.replacen(secret, &secret.replace('3', "4"), 1), "altered"),
            (text.lines().next().unwrap().to_string(), "is empty"),
            (mixed, "does not belong to its token"),
            (expired, "has expired"),
        ] {
            let error = RunKey::parse(&wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{says}: {error}");
            assert!(!error.contains(secret), "{error}");
        }
        assert!(RunKey::new(None, Duration::from_secs(1)).is_err());
        assert!(RunKey::new(Some("nowhere"), Duration::from_secs(3600)).is_err());
    }
}
