//! Numbers and texts in the few frames by which a run is put together: little-endian, each text with its length.

/// Writes fields one after the other.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn number(mut self, number: u32) -> Writer {
        self.0.extend(number.to_le_bytes());
        self
    }

    /// Bytes whose number both sides know.
    pub(super) fn fixed(mut self, bytes: &[u8]) -> Writer {
        self.0.extend(bytes);
        self
    }

    pub(super) fn text(self, bytes: &[u8]) -> Writer {
        self.number(bytes.len() as u32).fixed(bytes)
    }

    pub(super) fn list<T>(self, items: &[T], each: impl Fn(Writer, &T) -> Writer) -> Writer {
        items.iter().fold(self.number(items.len() as u32), each)
    }
}

/// Reads them back. `None`: there is less than was announced.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.fixed()?))
    }

    pub(super) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    /// Reads a list of `most` items at most.
    pub(super) fn list<T>(&mut self, most: u32, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        if count > most {
            return None;
        }
        (0..count).map(|_| each(self)).collect()
    }

    /// Whether all was read.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
