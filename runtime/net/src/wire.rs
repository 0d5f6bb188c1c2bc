//! Fields of messages as bytes: numbers in little-endian order, texts and lists behind their lengths.

/// Writes fields one after the other.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

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
    /// Reads a byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.fixed().map(|[byte]| byte)
    }

    /// Reads a number of four bytes.
    pub fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.fixed()?))
    }

    /// Reads a number of eight bytes.
    pub fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.fixed()?))
    }

    /// Reads as many bytes as both sides know that there are.
    pub fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads so many bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads bytes behind their number.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let count = self.number()? as usize;
        self.bytes(count)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_they_are_written_and_no_further() {
        let bytes = Writer::default().number(7).fixed(&[3, 4]).text(b"ab");
        let bytes = bytes.list(&[5, 6], |writer, item| writer.number(*item)).0;
        let read = |bytes: &[u8]| {
            let mut reader = Reader(bytes);
            let numbers = (reader.number()?, reader.byte()?, reader.fixed::<1>()?);
            let rest = (reader.text()?.to_vec(), reader.list(2, Reader::number)?);
            reader.end().map(|()| (numbers, rest))
        };
        assert_eq!(read(&bytes), Some(((7, 3, [4]), (b"ab".to_vec(), vec![5, 6]))));
        assert!((0..bytes.len()).all(|end| read(&bytes[..end]).is_none()), "cut short");
        assert_eq!(read(&[&bytes[..], &[0]].concat()), None, "a byte behind the end");
        assert!(Reader(&9u32.to_le_bytes()).list(2, Reader::number).is_none(), "more items than there may be");
    }
}
