//! What a checkpoint says of itself: lines of text, the last of which is the hash of all before.

use std::fmt::Write;

/// The first line.
const FIRST: &str = "meshweft checkpoint ";
/// What there is in this version of the format.
const FORMAT: &str = "1";
/// Bytes of a manifest at most.
pub(crate) const MOST: u64 = 16 << 20;
/// Bytes of a shard at most, so that no manifest has much memory set aside.
pub const MOST_SHARD: u64 = 1 << 30;

/// What is known of a state besides its numbers: a name and a value each, in the order in which they were told.
pub type Facts = Vec<(String, String)>;

/// A file with a part of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number, which is its name.
    pub number: u64,
    /// Its length.
    pub bytes: u64,
    /// Of all of them.
    pub hash: blake3::Hash,
}

/// What stands in a manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) epoch: u64,
    pub(crate) facts: Facts,
    pub(crate) shards: Vec<Shard>,
}

impl Manifest {
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!("{FIRST}{FORMAT}\nepoch {}\n", self.epoch);
        for (name, value) in &self.facts {
            let value = value.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r");
            let _ = writeln!(text, "{name} {value}");
        }
        for Shard { number, bytes, hash } in &self.shards {
            let _ = writeln!(text, "shard {number} {bytes} {}", hash.to_hex());
        }
        let hash = blake3::hash(text.as_bytes()).to_hex();
        let _ = writeln!(text, "end {hash}");
        text
    }

    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Manifest, String> {
        let text = str::from_utf8(bytes).map_err(|_| "the manifest is not text")?;
        let format = text.strip_prefix(FIRST).and_then(|rest| rest.split_once('\n')).map(|(format, _)| format);
        match format {
            Some(FORMAT) => {}
            Some(other) if !other.is_empty() && other.len() < 20 && other.bytes().all(|b| b.is_ascii_digit()) => {
                return Err(format!("it is in format {other} of checkpoints, and this version reads format {FORMAT}"));
            }
            _ => return Err("this is no manifest of a checkpoint".into()),
        }
        let sealed =
            text.strip_suffix('\n').and_then(|text| text.rsplit_once('\n')).map(|(before, _)| before.len() + 1);
        let (body, end) = text.split_at(sealed.unwrap_or(0));
        if end != format!("end {}\n", blake3::hash(body.as_bytes()).to_hex()) {
            return Err("the manifest is not what was written".into());
        }
        // From here on it is as some version of this crate wrote it, or as somebody did who knows how to hash.
        let malformed = || "the manifest is malformed".to_string();
        let mut lines = body.lines().skip(1).map(|line| line.split_once(' ').unwrap_or((line, "")));
        let epoch = lines.next().filter(|line| line.0 == "epoch").and_then(|line| line.1.parse().ok());
        let mut manifest = Manifest { epoch: epoch.ok_or_else(malformed)?, facts: Vec::new(), shards: Vec::new() };
        for (name, value) in lines {
            if name == "shard" {
                let mut words = value.split(' ');
                let mut word = || words.next().ok_or_else(malformed);
                let (number, bytes, hash) = (word()?, word()?, word()?);
                let number = number.parse().map_err(|_| malformed())?;
                let bytes = bytes.parse().ok().filter(|&bytes| bytes <= MOST_SHARD).ok_or_else(malformed)?;
                let hash = blake3::Hash::from_hex(hash).map_err(|_| malformed())?;
                manifest.shards.push(Shard { number, bytes, hash });
            } else if manifest.facts.iter().any(|fact| fact.0 == name) {
                return Err(malformed());
            } else {
                manifest.facts.push((name.into(), unescaped(value)));
            }
        }
        Ok(manifest)
    }
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                _ => '\\',
            },
            other => other,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let facts = [("program", "heat"), ("note", "a\nb\\n \\\\ ü\r"), ("empty", "")];
        let shard = |number| Shard { number, bytes: 7 * number, hash: blake3::hash(&[number as u8]) };
        let facts = facts.map(|(name, value)| (name.to_string(), value.to_string())).into();
        Manifest { epoch: 12, facts, shards: vec![shard(0), shard(5)] }
    }

    #[test]
    fn a_manifest_says_what_was_told() {
        let manifest = manifest();
        assert_eq!(Manifest::parse(manifest.to_text().as_bytes()), Ok(manifest));
    }

    #[test]
    fn every_bit_and_every_byte_of_a_manifest_counts() {
        let text = manifest().to_text().into_bytes();
        for bit in 0..8 * text.len() {
            let mut other = text.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::parse(&other).is_err(), "bit {bit}");
        }
        for length in 0..text.len() {
            assert!(Manifest::parse(&text[..length]).is_err(), "{length} bytes");
        }
        let longer = [&text[..], b"x"].concat();
        assert!(Manifest::parse(&longer).is_err());
    }

    #[test]
    fn another_format_is_refused_by_its_number() {
        let error = Manifest::parse(b"meshweft checkpoint 27\n").unwrap_err();
        assert!(error.contains("format 27") && error.contains("reads format 1"), "{error}");
    }

    #[test]
    fn a_manifest_of_the_right_hash_and_the_wrong_lines_is_refused() {
        for body in
            ["epoch x", "epoch 1\na b\na c", "epoch 1\nshard 1", "epoch 1\nshard 1 99999999999 00", "program heat"]
        {
            let text = format!("{FIRST}{FORMAT}\n{body}\n");
            let hash = blake3::hash(text.as_bytes()).to_hex();
            let sealed = format!("{text}end {hash}\n");
            assert_eq!(Manifest::parse(sealed.as_bytes()), Err("the manifest is malformed".into()), "{body}");
        }
    }
}
