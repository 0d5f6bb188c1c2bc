//! A cursor over binary numbers of either byte order, which knows where it stands when something is wrong.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use super::bounds::too_many;
use crate::error::{Error, Place, Result};
use crate::parallel;

/// Numbers that are decoded as one piece of work: fewer are not worth another thread, more leave a core's cache.
pub(super) const PIECE: usize = 1 << 14;

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// The type of a stored number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// Runs `$body` with `$T` as the Rust type of the scalar.
macro_rules! with_type {
    ($scalar:expr, $T:ident => $body:expr) => {
        match $scalar {
            Scalar::I8 => with_type!(@ i8, $T, $body),
            Scalar::U8 => with_type!(@ u8, $T, $body),
            Scalar::I16 => with_type!(@ i16, $T, $body),
            Scalar::U16 => with_type!(@ u16, $T, $body),
            Scalar::I32 => with_type!(@ i32, $T, $body),
            Scalar::U32 => with_type!(@ u32, $T, $body),
            Scalar::I64 => with_type!(@ i64, $T, $body),
            Scalar::U64 => with_type!(@ u64, $T, $body),
            Scalar::F32 => with_type!(@ f32, $T, $body),
            Scalar::F64 => with_type!(@ f64, $T, $body),
        }
    };
    (@ $rust:ty, $T:ident, $body:expr) => {{
        type $T = $rust;
        $body
    }};
}

impl Scalar {
    /// Bytes of one number.
    pub(super) fn size(self) -> usize {
        with_type!(self, T => size_of::<T>())
    }

    pub(super) fn is_integer(self) -> bool {
        !matches!(self, Scalar::F32 | Scalar::F64)
    }

    /// All numbers in `bytes` as floats; integers above 2^53 are rounded.
    #[expect(clippy::unnecessary_cast, reason = "one of the ten types needs no cast")]
    pub(super) fn floats(self, order: Order, bytes: &[u8]) -> Vec<f64> {
        with_type!(self, T => decode(order, bytes, T::from_le_bytes, T::from_be_bytes, |x: T| x as f64))
    }

    /// All numbers in `bytes` as integers, those above the range of `i64` as its maximum, which no index reaches.
    #[expect(clippy::unnecessary_cast, reason = "one of the ten types needs no cast")]
    pub(super) fn integers(self, order: Order, bytes: &[u8]) -> Vec<i64> {
        match self {
            Scalar::U64 => {
                decode(order, bytes, u64::from_le_bytes, u64::from_be_bytes, |x| i64::try_from(x).unwrap_or(i64::MAX))
            }
            _ => with_type!(self, T => decode(order, bytes, T::from_le_bytes, T::from_be_bytes, |x: T| x as i64)),
        }
    }
}

fn decode<T, U: Clone + Default + Send, const N: usize>(
    order: Order,
    bytes: &[u8],
    little: impl Fn([u8; N]) -> T + Sync,
    big: impl Fn([u8; N]) -> T + Sync,
    convert: impl Fn(T) -> U + Sync,
) -> Vec<U> {
    let numbers = bytes.as_chunks::<N>().0;
    match order {
        Order::Little => parallel::collect(numbers.len(), |i| convert(little(numbers[i]))),
        Order::Big => parallel::collect(numbers.len(), |i| convert(big(numbers[i]))),
    }
}

/// Numbers as they lie in a file, taken piece by piece: all of them as 64-bit numbers may be twice the file.
pub(super) struct Stored<'a> {
    scalar: Scalar,
    order: Order,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Stored<'a> {
    /// `bytes`: of complete numbers.
    pub(super) fn new(scalar: Scalar, order: Order, bytes: Cow<'a, [u8]>) -> Stored<'a> {
        Stored { scalar, order, bytes }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.scalar.size()
    }

    /// Some of them as [`Scalar::integers`].
    ///
    /// # Panics
    /// If there are not as many.
    pub(super) fn integers(&self, places: Range<usize>) -> Vec<i64> {
        self.scalar.integers(self.order, self.bytes_of(places))
    }

    /// Some of them as [`Scalar::floats`].
    ///
    /// # Panics
    /// If there are not as many.
    pub(super) fn floats(&self, places: Range<usize>) -> Vec<f64> {
        self.scalar.floats(self.order, self.bytes_of(places))
    }

    fn bytes_of(&self, places: Range<usize>) -> &[u8] {
        &self.bytes[places.start * self.scalar.size()..places.end * self.scalar.size()]
    }
}

/// Reads numbers from bytes; nothing is read or set aside beyond their end.
#[derive(Clone)]
pub(super) struct Binary<'a> {
    name: &'a Path,
    bytes: &'a [u8],
    at: usize,
    order: Order,
}

impl<'a> Binary<'a> {
    /// Starts at offset `at` of `bytes`, the whole file.
    pub(super) fn new(name: &'a Path, bytes: &'a [u8], at: usize, order: Order) -> Binary<'a> {
        Binary { name, bytes, at: at.min(bytes.len()), order }
    }

    /// Offset of the next byte to read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Which byte of a number comes first.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Number of bytes not yet read.
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error at the next byte to read.
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::file(self.name, Place::Byte(self.at as u64), message)
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        if count > self.left() {
            let left = self.left();
            return Err(self.error(format!(
                "{what} should take {count} bytes, but the file ends after {left}: it was cut short or a count is wrong"
            )));
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let bytes = self.take(N, what)?;
        let bytes = bytes.try_into().expect("as many bytes as were asked for");
        Ok(match self.order {
            Order::Little => bytes,
            Order::Big => reversed(bytes),
        })
    }

    pub(super) fn i32(&mut self, what: &str) -> Result<i32> {
        self.array(what).map(i32::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    pub(super) fn f64(&mut self, what: &str) -> Result<f64> {
        self.array(what).map(f64::from_le_bytes)
    }

    /// One number of any type as a float.
    #[expect(clippy::unnecessary_cast, reason = "one of the ten types needs no cast")]
    pub(super) fn float(&mut self, scalar: Scalar, what: &str) -> Result<f64> {
        with_type!(scalar, T => self.array(what).map(|b| T::from_le_bytes(b) as f64))
    }

    /// One number of an integer type; see [`Scalar::integers`].
    #[expect(clippy::unnecessary_cast, reason = "one of the ten types needs no cast")]
    pub(super) fn integer(&mut self, scalar: Scalar, what: &str) -> Result<i64> {
        match scalar {
            Scalar::U64 => self.u64(what).map(|x| i64::try_from(x).unwrap_or(i64::MAX)),
            _ => with_type!(scalar, T => self.array(what).map(|b| T::from_le_bytes(b) as i64)),
        }
    }

    /// Refuses a count of items of `bytes_each` bytes that what is left cannot hold.
    pub(super) fn check_count(&self, count: u64, what: &str, bytes_each: usize) -> Result<usize> {
        match count.checked_mul(bytes_each as u64) {
            Some(bytes) if bytes <= self.left() as u64 => Ok(count as usize),
            _ => Err(self.error(too_many(count, what, self.left()))),
        }
    }
}

fn reversed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    bytes.reverse();
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_and_the_end() {
        let bytes = [1, 0, 0, 0, 0, 0, 0, 2, 9];
        let mut little = Binary::new(Path::new("a"), &bytes, 0, Order::Little);
        let mut big = Binary::new(Path::new("a"), &bytes, 0, Order::Big);
        assert_eq!((little.u32("x").unwrap(), big.u32("x").unwrap()), (1, 1 << 24));
        assert_eq!((little.i32("x").unwrap(), big.i32("x").unwrap()), (2 << 24, 2));
        let error = big.u64("a count").unwrap_err().to_string();
        assert!(error.starts_with("a: byte 8: a count should take 8 bytes, but the file ends after 1"), "{error}");
    }

    #[test]
    fn arrays_of_every_type() {
        for scalar in [Scalar::I8, Scalar::U16, Scalar::I32, Scalar::U64] {
            let size = scalar.size();
            let mut bytes = vec![0; 2 * size];
            (bytes[size - 1], bytes[size]) = (7, 5);
            assert_eq!(scalar.integers(Order::Big, &bytes)[0], 7, "{scalar:?}");
            assert_eq!(scalar.floats(Order::Little, &bytes)[1], 5.0, "{scalar:?}");
        }
        assert_eq!(Scalar::U64.integers(Order::Little, &[255; 8]), [i64::MAX]);
        assert_eq!(Scalar::F32.floats(Order::Big, &1.5f32.to_be_bytes()), [1.5]);
    }

    #[test]
    fn numbers_are_taken_piece_by_piece() {
        let bytes: Vec<u8> = [1.5f32, -2.0, 7.0].iter().flat_map(|x| x.to_be_bytes()).collect();
        let stored = Stored::new(Scalar::F32, Order::Big, Cow::Owned(bytes));
        assert_eq!((stored.len(), stored.floats(1..3), stored.integers(0..2)), (3, vec![-2.0, 7.0], vec![1, -2]));
    }

    #[test]
    fn counts_are_bounded_by_the_bytes() {
        let cursor = Binary::new(Path::new("a"), &[0; 16], 0, Order::Little);
        assert_eq!(cursor.check_count(4, "floats", 4).unwrap(), 4);
        assert!(cursor.check_count(5, "floats", 4).is_err());
        assert!(cursor.check_count(u64::MAX / 2, "floats", 4).is_err());
    }
}
