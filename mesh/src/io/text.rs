//! A cursor over the words and lines of a text, which knows where it stands when something is wrong.

use std::path::Path;
use std::str::FromStr;

use super::bounds::too_many;
use crate::error::{Error, Place, Result, shown_name};

/// Reads words and numbers from bytes. Lines are counted only for messages, so that the way there costs nothing.
#[derive(Clone)]
pub(super) struct Text<'a> {
    name: &'a Path,
    bytes: &'a [u8],
    at: usize,
    comment: Option<u8>,
    in_bytes: bool,
}

/// What some editors put in front of a text; it has no meaning.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<'a> Text<'a> {
    /// Starts at the first byte of the text.
    pub(super) fn new(name: &'a Path, bytes: &'a [u8]) -> Text<'a> {
        let at = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        Text { name, bytes, at, comment: None, in_bytes: false }
    }

    /// Treats the rest of a line from `sign` on as blank.
    pub(super) fn with_comments(mut self, sign: u8) -> Text<'a> {
        self.comment = Some(sign);
        self
    }

    /// Reports places as bytes from now on: lines have no meaning once binary numbers are mixed in.
    pub(super) fn count_bytes(&mut self) {
        self.in_bytes = true;
    }

    pub(super) fn name(&self) -> &'a Path {
        self.name
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Offset of the next byte to read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn seek(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    /// Number of bytes not yet read.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error at the line of the last word read.
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        let place = match self.in_bytes {
            true => Place::Byte(self.at as u64),
            false => line_of(self.bytes, self.at),
        };
        Error::file(self.name, place, message)
    }

    /// The next word of this line.
    pub(super) fn word_in_line(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let start = rest.iter().position(|&b| b == b'\n' || !b.is_ascii_whitespace())?;
        self.at += start;
        if rest[start] == b'\n' || Some(rest[start]) == self.comment {
            return None;
        }
        let word = &rest[start..];
        let length = word.iter().position(|&b| b.is_ascii_whitespace() || Some(b) == self.comment);
        let word = &word[..length.unwrap_or(word.len())];
        self.at += word.len();
        Some(word)
    }

    /// The next word of this or a later line.
    pub(super) fn word(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Some(word) = self.word_in_line() {
                return Some(word);
            }
            if !self.next_line() {
                return None;
            }
        }
    }

    /// Moves behind the end of this line; false at the end of the text.
    pub(super) fn next_line(&mut self) -> bool {
        let end = self.bytes[self.at..].iter().position(|&b| b == b'\n');
        self.at = end.map_or(self.bytes.len(), |end| self.at + end + 1);
        end.is_some()
    }

    /// What is left of this line, without blanks around it.
    pub(super) fn rest_of_line(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let line = &rest[..rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())];
        self.at += line.len();
        line.trim_ascii()
    }

    /// Refuses more words in this line.
    pub(super) fn end_line(&mut self, what: &str) -> Result<()> {
        match self.word_in_line() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("{} is too much for {what}", shown(word)))),
        }
    }

    /// Refuses more words in this text.
    pub(super) fn end(&mut self, what: &str) -> Result<()> {
        match self.word() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("{} found behind {what}: the count is wrong", shown(word)))),
        }
    }

    /// The next word, which must exist.
    pub(super) fn need(&mut self, what: &str) -> Result<&'a [u8]> {
        self.word().ok_or_else(|| self.error(format!("the file ends where {what} should be: it was cut short")))
    }

    /// The next word as a number.
    pub(super) fn number<T: FromStr>(&mut self, what: &str) -> Result<T> {
        let word = self.need(what)?;
        number(word).ok_or_else(|| self.error(format!("{} is not {what}", shown(word))))
    }

    /// The next word of this line as a number.
    pub(super) fn number_in_line<T: FromStr>(&mut self, what: &str) -> Result<T> {
        let word = self.word_in_line().ok_or_else(|| self.error(format!("the line ends where {what} should be")))?;
        number(word).ok_or_else(|| self.error(format!("{} is not {what}", shown(word))))
    }

    /// The next word as a coordinate: a number that is finite.
    pub(super) fn coordinate(&mut self) -> Result<f64> {
        let x: f64 = self.number("a coordinate")?;
        match x.is_finite() {
            true => Ok(x),
            false => Err(self.error(format!("coordinate {x} is not finite"))),
        }
    }

    /// The next word as a count of items that take at least `bytes_each` bytes each of what is left of the text.
    pub(super) fn count(&mut self, what: &str, bytes_each: usize) -> Result<usize> {
        let count: usize = self.number(&format!("a number of {what}"))?;
        self.check_count(count as u64, what, bytes_each)
    }

    /// Refuses a count of items that what is left of the text cannot hold, before memory is allocated for them.
    pub(super) fn check_count(&self, count: u64, what: &str, bytes_each: usize) -> Result<usize> {
        // The last word needs no blank behind it, hence the one byte more.
        match count.checked_mul(bytes_each as u64) {
            Some(bytes) if bytes <= self.left() as u64 + 1 => Ok(count as usize),
            _ => Err(self.error(too_many(count, what, self.left()))),
        }
    }
}

/// The line that holds the byte at `at`.
pub(super) fn line_of(bytes: &[u8], at: usize) -> Place {
    Place::Line(1 + bytes[..at.min(bytes.len())].iter().filter(|&&b| b == b'\n').count() as u64)
}

/// A word as a number.
pub(super) fn number<T: FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A word as messages show it.
pub(super) fn shown(word: &[u8]) -> String {
    const LONGEST: usize = 200; // more than is shown
    shown_name(&String::from_utf8_lossy(&word[..word.len().min(LONGEST)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lines_and_comments() {
        let mut text = Text::new(Path::new("a.txt"), b"one  two # three\r\n\n four\n").with_comments(b'#');
        assert_eq!(text.word_in_line(), Some(&b"one"[..]));
        assert_eq!(text.word_in_line(), Some(&b"two"[..]));
        assert_eq!(text.word_in_line(), None);
        assert_eq!(text.word(), Some(&b"four"[..]));
        assert_eq!(text.error("no").to_string(), "a.txt:3: no");
        assert!(text.need("five").unwrap_err().to_string().contains("the file ends where five should be"));
    }

    #[test]
    fn counts_are_bounded_by_the_text() {
        for count in ["9223372036854775808", "2147483648", "-1", "4"] {
            let text = format!("{count} a b c");
            let error = Text::new(Path::new("a.txt"), text.as_bytes()).count("items", 2).unwrap_err().to_string();
            assert!(error.starts_with("a.txt:1: "), "{error}");
        }
        assert_eq!(Text::new(Path::new("a.txt"), b"3 a b c").count("items", 2).unwrap(), 3);
    }
}
