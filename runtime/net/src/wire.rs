//! Fields of messages as bytes: numbers in little-endian order, texts and lists behind their lengths.

/// Writes fields one after the other.
#[derive(Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Appends a number of four bytes.
    pub fn number(self, number: u32) -> Writer {
        self.fixed(&number.to_le_bytes())
    }

    /// Appends bytes whose number both sides know.
    pub fn fixed(mut self, bytes: &[u8]) -> Writer {
        self.0.extend(bytes);
        self
    }

    /// Appends bytes behind their number.
    pub fn text(self, bytes: &[u8]) -> Writer {
        self.number(bytes.len() as u32).fixed(bytes)
    }

    /// Appends items behind their number.
    pub fn list<T>(self, items: &[T], each: impl Fn(Writer, &T) -> Writer) -> Writer {
        items.iter().fold(self.number(items.len() as u32), each)
    }
}

/// Reads fields back. `None`: there is less than was announced.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Reads a number of four bytes.
    pub fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.fixed()?))
    }

    /// Reads as many bytes as both sides know that there are.
    pub fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads bytes behind their number.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    /// Reads a list of `most` items at most.
    pub fn list<T>(&mut self, most: u32, mut each: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        if count > most {
            return None;
        }
        (0..count).map(|_| each(self)).collect()
    }

    /// Whether all was read.
    pub fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
