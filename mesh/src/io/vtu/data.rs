//! The arrays of a VTU file: base64 or raw bytes, behind headers, perhaps in compressed blocks.
//!
//! An uncompressed array is its number of bytes and then the bytes. A compressed one is the number of blocks, the size of
//! a block, the size of the last block (0: full), the compressed size of each block, and then the blocks. In base64 the
//! headers may end with padding, so that decoding starts anew behind them; both ways are found in files.
//!
//! The mesh says how many bytes an array must have. Nothing larger is ever decoded. Before anything is, what the tags
//! promise is held against what a file of this size may become: see `bounds`.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::ZlibDecoder;

use super::super::binary::Order;
use super::super::bounds::{Budget, FIELDS, SKELETON, too_many};
use super::super::text::line_of;
use super::outline::{Array, Compressor, Data, Encoding, Section, Storage};
use crate::error::{Error, Place, Result, shown_name};

/// The most that one byte can become: 1032 in zlib, 255 in lz4.
const MAX_RATIO: u64 = 1040;

/// Decodes the arrays of a file.
pub(super) struct Store<'a> {
    name: &'a Path,
    file: &'a [u8],
    storage: Storage,
    /// Numbers that may still be made: of points and cells, and of fields.
    budgets: [Budget; 2],
}

impl<'a> Store<'a> {
    pub(super) fn new(name: &'a Path, file: &'a [u8], storage: Storage) -> Store<'a> {
        Store { name, file, storage, budgets: [SKELETON, FIELDS].map(|allowance| allowance.of(file.len())) }
    }

    pub(super) fn name(&self) -> &'a Path {
        self.name
    }

    pub(super) fn file(&self) -> &'a [u8] {
        self.file
    }

    pub(super) fn order(&self) -> Order {
        self.storage.order
    }

    /// An error at the line of the tag that starts at `at`.
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> Error {
        Error::file(self.name, line_of(self.file, at), message)
    }

    /// The bytes of an array of `count` numbers.
    pub(super) fn bytes(&mut self, array: &Array, count: u64) -> Result<Cow<'a, [u8]>> {
        let name = shown_name(&array.name);
        if count == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let kind = usize::from(matches!(array.section, Section::PointData | Section::CellData));
        let room = self.budgets[kind].take(count, "numbers", "save it uncompressed");
        let what = |message: String| self.error(array.at, format!("array {name}: {message}"));
        room.map_err(what)?;
        let size = count * array.scalar.size() as u64;
        let (mut stream, place) = match &array.data {
            Data::Inline(range) | Data::Ascii(range) => {
                (Stream::base64(self.file[range.clone()].trim_ascii()), Err(range.start))
            }
            &Data::Appended(offset) => {
                let (encoding, start) =
                    self.storage.appended.ok_or_else(|| what("the file has no appended data".into()))?;
                let place = (start as u64).saturating_add(offset);
                let rest = usize::try_from(place).ok().and_then(|at| self.file.get(at..)).ok_or_else(|| {
                    what(format!("offset {offset} lies behind the end of the file: it was cut short"))
                })?;
                let stream = match encoding {
                    Encoding::Raw => Stream::Raw(rest),
                    Encoding::Base64 => Stream::Base64 { text: Cow::Borrowed(rest), at: 0, spare: Vec::new() },
                };
                (stream, Ok(Place::Byte(place)))
            }
        };
        let decoded = match self.storage.compressor {
            None => self.plain(&mut stream, size),
            Some(compressor) => self.blocks(&mut stream, size, compressor),
        };
        let decoded = decoded.map_err(|message| {
            let place = place.unwrap_or_else(|start| line_of(self.file, start));
            Error::file(self.name, place, format!("array {name}: {message}"))
        })?;
        Ok(decoded)
    }

    fn plain(&self, stream: &mut Stream<'a>, size: u64) -> Result<Cow<'a, [u8]>, String> {
        let said = self.headers(stream, 1)?[0];
        match said == size {
            true => stream.take(size),
            false => Err(format!("its header says {said} bytes, but the mesh needs {size}")),
        }
    }

    fn blocks(&self, stream: &mut Stream<'a>, size: u64, compressor: Compressor) -> Result<Cow<'a, [u8]>, String> {
        let [count, full, last] = self.headers(stream, 3)?[..] else { return Err("no header".into()) };
        let sizes = self.headers(stream, count)?;
        let last = if last == 0 { full } else { last };
        let total = count.checked_sub(1).and_then(|n| n.checked_mul(full)).and_then(|n| n.checked_add(last));
        if total.unwrap_or(0) != size {
            let total = total.unwrap_or(0);
            return Err(format!("its {count} blocks hold {total} bytes, but the mesh needs {size}"));
        }
        let mut bytes = Vec::new();
        for (block, &packed_size) in sizes.iter().enumerate() {
            let length = if block + 1 == sizes.len() { last } else { full };
            let packed = stream.take(packed_size)?;
            let plausible = (packed.len() as u64).saturating_mul(MAX_RATIO);
            if length > plausible {
                return Err(format!("block {block}: {packed_size} bytes cannot become {length}"));
            }
            let start = bytes.len();
            let unpacked = match compressor {
                Compressor::Zlib => {
                    let mut decoder = ZlibDecoder::new(&packed[..]).take(length + 1);
                    decoder.read_to_end(&mut bytes).map_err(|error| format!("block {block}: {error}"))?
                }
                Compressor::Lz4 => {
                    bytes.resize(start + length as usize, 0);
                    let decoded = lz4_flex::block::decompress_into(&packed, &mut bytes[start..]);
                    decoded.map_err(|error| format!("block {block}: {error}"))?
                }
            };
            if unpacked as u64 != length {
                return Err(format!("block {block} does not become its {length} bytes"));
            }
        }
        Ok(Cow::Owned(bytes))
    }

    fn headers(&self, stream: &mut Stream<'a>, count: u64) -> Result<Vec<u64>, String> {
        let size = count.checked_mul(self.storage.header.size() as u64);
        let bytes = stream.take(size.ok_or_else(|| format!("{count} blocks do not fit in any file"))?)?;
        Ok(self.storage.header.integers(self.storage.order, &bytes).into_iter().map(|x| x as u64).collect())
    }
}

/// Bytes one after the other.
enum Stream<'a> {
    Raw(&'a [u8]),
    Base64 {
        text: Cow<'a, [u8]>,
        at: usize,
        /// Up to two bytes that were decoded but not asked for.
        spare: Vec<u8>,
    },
}

impl<'a> Stream<'a> {
    fn base64(text: &'a [u8]) -> Stream<'a> {
        let text = match text.iter().any(u8::is_ascii_whitespace) {
            true => Cow::Owned(text.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect()),
            false => Cow::Borrowed(text),
        };
        Stream::Base64 { text, at: 0, spare: Vec::new() }
    }

    fn take(&mut self, count: u64) -> Result<Cow<'a, [u8]>, String> {
        match self {
            Stream::Raw(rest) => {
                let cut = usize::try_from(count).ok().and_then(|n| rest.split_at_checked(n));
                let (taken, others) = cut.ok_or_else(|| too_many(count, "bytes", rest.len()))?;
                *rest = others;
                Ok(Cow::Borrowed(taken))
            }
            Stream::Base64 { text, at, spare } => {
                let short = || too_many(count, "bytes of base64", text.len() - *at);
                let missing = count.saturating_sub(spare.len() as u64);
                let length = missing.div_ceil(3).checked_mul(4).and_then(|n| usize::try_from(n).ok());
                let digits = length.and_then(|n| text[*at..].get(..n)).ok_or_else(short)?;
                let mut bytes = std::mem::take(spare);
                STANDARD.decode_vec(digits, &mut bytes).map_err(|error| format!("broken base64: {error}"))?;
                if (bytes.len() as u64) < count {
                    return Err(short());
                }
                *at += digits.len();
                // Behind padding nothing is left over: the next bytes are encoded on their own.
                let rest = bytes.split_off(count as usize);
                *spare = rest;
                Ok(Cow::Owned(bytes))
            }
        }
    }
}
