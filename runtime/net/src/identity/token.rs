//! What a worker needs to join a run: one line of text.

use super::authority::{Authority, Digest, digest};
use super::name::{RunId, hex, random};
use crate::error::{Error, Result};
use ring::hmac;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lets its holder join one run, as one of so many workers, until it expires.
///
/// As text it is `meshweft1/RUN/AUTHORITY/SECRET/EXPIRY/WORKERS/ADDRESSES/CHECK`: hexadecimal numbers, seconds since 1970, a number,
/// addresses or host names with commas between, and a checksum against typing errors. Its holder can join: keep it in a file that
/// others cannot read, and pass it by a file or the standard input, since others can see the arguments of a command.
#[derive(Clone)]
pub struct Token {
    pub(crate) run: RunId,
    /// Of the certificate of the run's authority.
    pub(crate) authority: Digest,
    secret: [u8; 16],
    /// Seconds since 1970.
    expiry: u64,
    /// How many may join.
    pub(crate) workers: u32,
    /// Where the driver listens.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Where it listens too, as `HOST:PORT`: names that a worker looks up when it joins.
    names: Vec<String>,
}

/// What versions of tokens begin with.
const KIND: &str = "meshweft1";
/// Addresses that a token may have.
const MOST_ADDRESSES: usize = 16;
/// Characters that a token may have: far more than any has.
const LONGEST: usize = 2048;

impl Token {
    /// Where the driver is to be reached, for people: with a comma between each.
    pub fn places(&self) -> String {
        let addresses = self.addresses.iter().map(ToString::to_string);
        addresses.chain(self.names.iter().cloned()).collect::<Vec<_>>().join(", ")
    }

    /// Makes a token for a run.
    pub(crate) fn new(authority: &Authority, workers: u32, addresses: Vec<SocketAddr>) -> Result<Token> {
        let expiry = authority.ends().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let digest = digest(authority.certificate());
        let (secret, names) = (random()?, Vec::new());
        Ok(Token { run: authority.run, authority: digest, secret, expiry, workers, addresses, names })
    }

    /// Writes the token, its secret included.
    pub fn reveal(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let addresses = self.addresses.iter().map(SocketAddr::to_string).chain(self.names.iter().cloned());
        let addresses: Vec<_> = addresses.take(MOST_ADDRESSES).collect();
        let (authority, secret, addresses) = (hex(&self.authority), hex(&self.secret), addresses.join(","));
        let text = format!("{KIND}/{}/{authority}/{secret}/{}/{}/{addresses}", self.run, self.expiry, self.workers);
        format!("{text}/{:08x}", crc32fast::hash(text.as_bytes()))
    }

    /// Reads a token.
    ///
    /// # Errors
    /// A text that is no token, of another version, or altered. Errors say what is wrong with it, and never repeat it.
    pub fn parse(text: &str) -> Result<Token> {
        let wrong = |what: &str| Error::Secret(format!("the join token {what}"));
        let text = text.trim();
        if text.is_empty() {
            return Err(wrong("is empty: pass the line that the driver wrote"));
        }
        if text.len() > LONGEST || !text.is_ascii() || text.contains(char::is_whitespace) {
            return Err(wrong("is not one line of plain text: pass the line that the driver wrote, and nothing else"));
        }
        let parts: Vec<_> = text.split('/').collect();
        if parts[0] != KIND {
            let ours = parts[0].strip_prefix("meshweft").is_some_and(|version| version.parse::<u32>().is_ok());
            return Err(if ours {
                wrong(&format!(
                    "is of version {}, this build reads {KIND}: run the same version on all hosts",
                    parts[0]
                ))
            } else {
                wrong(&format!("does not begin with {KIND}/: is it the line that the driver wrote?"))
            });
        }
        let [_, run, authority, secret, expiry, workers, addresses, check] = parts[..] else {
            return Err(wrong(&format!("has {} parts of 8: was it cut off when it was copied?", parts.len())));
        };
        let body = &text[..text.len() - check.len() - 1];
        if check != format!("{:08x}", crc32fast::hash(body.as_bytes())) {
            return Err(wrong("was altered or cut off when it was copied: its checksum does not fit"));
        }
        let run = RunId(hex(run).ok_or_else(|| wrong("has no run"))?);
        let authority = hex(authority).ok_or_else(|| wrong("has no digest of an authority"))?;
        let secret = hex(secret).ok_or_else(|| wrong("has no secret"))?;
        let expiry = expiry.parse().map_err(|_| wrong("has no time of expiry"))?;
        let workers = workers.parse().map_err(|_| wrong("does not say how many may join"))?;
        let words: Vec<&str> = addresses.split(',').filter(|word| !word.is_empty()).collect();
        if words.len() > MOST_ADDRESSES {
            return Err(wrong("has more addresses than a driver writes"));
        }
        let (addresses, names) = sort(&words).ok_or_else(|| wrong("has an invalid address"))?;
        Ok(Token { run, authority, secret, expiry, workers, addresses, names })
    }

    /// Refuses a token whose time is over.
    pub(crate) fn check_time(&self) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        if now <= self.expiry {
            return Ok(());
        }
        let late = now - self.expiry;
        Err(Error::Secret(format!(
            "the join token expired {late} s ago: start the run again, with a longer time for it if need be, or set the clock right"
        )))
    }

    /// Proves knowledge of the secret in one TLS session, for one key.
    pub(crate) fn prove(&self, session: &[u8; 32], public_key: &[u8; 32]) -> [u8; 32] {
        let tag = hmac::sign(&self.hmac_key(), &[&session[..], public_key].concat());
        tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
    }

    /// Whether a proof fits; takes as long for every wrong one.
    pub(crate) fn verify(&self, session: &[u8; 32], public_key: &[u8; 32], proof: &[u8; 32]) -> bool {
        hmac::verify(&self.hmac_key(), &[&session[..], public_key].concat(), proof).is_ok()
    }

    fn hmac_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.secret)
    }

    /// The same at other addresses.
    pub(crate) fn at(&self, addresses: Vec<SocketAddr>) -> Token {
        Token { addresses, names: Vec::new(), ..self.clone() }
    }

    /// The same at `HOST:PORT`, which may be the name of a host that does not exist yet.
    pub(crate) fn of_driver(&self, driver: &str) -> Result<Token> {
        let (addresses, names) = sort(&[driver])
            .ok_or_else(|| Error::Invalid(format!("{driver:?} is not HOST:PORT of a driver, such as host-a:7777")))?;
        Ok(Token { addresses, names, ..self.clone() })
    }

    /// The same for so many workers.
    pub(crate) fn for_workers(&self, workers: u32) -> Token {
        Token { workers, ..self.clone() }
    }

    /// The port at which the driver is expected, if the token says where it is.
    pub(crate) fn port(&self) -> Option<u16> {
        let named = || self.names.first()?.rsplit_once(':')?.1.parse().ok();
        self.addresses.first().map(SocketAddr::port).or_else(named)
    }

    /// Looks names up until one is known. Returns all addresses.
    pub(crate) fn look_up(&self, deadline: Instant) -> Result<Vec<SocketAddr>> {
        loop {
            let mut found = self.addresses.clone();
            let mut unknown = None;
            for name in &self.names {
                match name.to_socket_addrs() {
                    Ok(addresses) => found.extend(addresses),
                    Err(error) => unknown = Some(format!("{name} is not known: {error}")),
                }
            }
            found.truncate(MOST_ADDRESSES);
            if !found.is_empty() {
                return Ok(found);
            }
            if self.names.is_empty() || Instant::now() > deadline {
                let unknown = unknown.unwrap_or_else(|| "the join token does not say where it is".into());
                let what = format!("the driver cannot be found: {unknown}; name it by MESHWEFT_DRIVER=HOST:PORT");
                return Err(Error::Hosts(what));
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// Tells addresses from names. None: something is neither.
fn sort(words: &[&str]) -> Option<(Vec<SocketAddr>, Vec<String>)> {
    let (mut addresses, mut names) = (Vec::new(), Vec::new());
    for word in words {
        if let Ok(address) = word.parse() {
            addresses.push(address);
            continue;
        }
        let (host, port) = word.rsplit_once(':')?;
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || b".-_".contains(&letter);
        let is_host = (1..=253).contains(&host.len()) && host.bytes().all(is_letter);
        if !is_host || port.parse::<u16>().ok()? == 0 {
            return None;
        }
        names.push(word.to_string());
    }
    Some((addresses, names))
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Token { run, workers, addresses, .. } = self;
        write!(f, "Token {{ run: {run}, secret: hidden, workers: {workers}, addresses: {addresses:?} }}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Token {
        let addresses = vec!["127.0.0.1:4000".parse().unwrap(), "[fe80::1]:4000".parse().unwrap()];
        Token::new(&Authority::new(Duration::from_secs(60)).unwrap(), 3, addresses).unwrap()
    }

    #[test]
    fn a_token_is_read_as_it_is_written() {
        let token = token();
        let text = token.reveal();
        let again = Token::parse(&format!("  {text}\n")).unwrap();
        assert_eq!(again.reveal(), text);
        assert_eq!(again.addresses, token.addresses);
        again.check_time().unwrap();
        let debug = format!("{token:?}");
        assert!(!debug.contains(text.split('/').nth(3).unwrap()), "{debug}");
    }

    #[test]
    fn a_wrong_token_says_what_is_wrong_and_not_its_secret() {
        let text = token().reveal();
        let secret = text.split('/').nth(3).unwrap();
        let with_check = |text: &str| format!("{text}/{:08x}", crc32fast::hash(text.as_bytes()));
        for (wrong, says) in [
            (String::new(), "is empty"),
            ("hello".into(), "does not begin with"),
            (text.replacen("meshweft1", "meshweft7", 1), "is of version meshweft7"),
            (text[..text.len() - 20].to_string(), "parts of 8"),
            (text[..text.len() - 1].to_string(), "cut off"),
            (text.replacen("127", "128", 1), "altered"),
            (format!("{text} {text}"), "one line"),
            (with_check("meshweft1/00/00/00/0/0/x"), "has no run"),
            (
                with_check(&format!("meshweft1/{}/{}/{}/9/1/nowhere", "0".repeat(32), "0".repeat(64), "0".repeat(32))),
                "address",
            ),
            ("meshweft1/".repeat(400), "one line"),
        ] {
            let error = Token::parse(&wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{says}: {error}");
            assert!(!error.contains(secret), "{error}");
        }
    }

    #[test]
    fn a_token_may_name_a_driver_that_is_looked_up() {
        let token = token().of_driver("localhost:4000").unwrap();
        let again = Token::parse(&token.reveal()).unwrap();
        assert_eq!((again.addresses.len(), again.port()), (0, Some(4000)));
        let found = again.look_up(Instant::now() + Duration::from_secs(5)).unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 4000), "{found:?}");
        for wrong in ["", "host", "host:", "host:0", "host:70000", ":4000", "a,b:1", "a/b:1", "a b:1"] {
            assert!(token.of_driver(wrong).is_err(), "{wrong}");
        }
        let nowhere = Token::parse(&token.at(Vec::new()).reveal()).unwrap();
        let error = nowhere.look_up(Instant::now()).unwrap_err().to_string();
        assert!(error.contains("MESHWEFT_DRIVER"), "{error}");
        let unknown = token.of_driver("no-such-host.invalid:1").unwrap().look_up(Instant::now()).unwrap_err();
        assert!(unknown.to_string().contains("no-such-host.invalid:1 is not known"), "{unknown}");
    }

    #[test]
    fn every_altered_letter_of_a_token_is_noticed() {
        let text = token().reveal();
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] ^= 1;
            assert!(Token::parse(&String::from_utf8(other).unwrap()).is_err(), "letter {at}");
        }
    }

    #[test]
    fn an_expired_token_is_refused() {
        let then = SystemTime::now() - Duration::from_secs(7200);
        let authority = Authority::valid(then, then + Duration::from_secs(3660)).unwrap();
        let token = Token::new(&authority, 1, Vec::new()).unwrap();
        assert!(token.check_time().unwrap_err().to_string().contains("expired"));
    }

    #[test]
    fn a_proof_holds_for_one_session_and_one_key() {
        let token = token();
        let proof = token.prove(&[1; 32], &[2; 32]);
        assert!(token.verify(&[1; 32], &[2; 32], &proof));
        assert!(!token.verify(&[3; 32], &[2; 32], &proof));
        assert!(!token.verify(&[1; 32], &[3; 32], &proof));
        assert!(!self::token().verify(&[1; 32], &[2; 32], &proof));
    }
}
