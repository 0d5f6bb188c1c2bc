//! Numbers, packed without loss.
//!
//! The values of a message are those of vertices that follow a curve, so the same real of the next vertex is mostly close by. Each
//! real of a vertex is packed by itself: the first as it is, then differences. A difference is that of the bits, taken as whole
//! numbers that are ordered as the floating-point numbers are, so that a small change is a small number, also across zero; its
//! sign goes into the last bit. The differences of 128 vertices take as many bits each as the largest of them needs. Numbers of 64
//! bits are packed as two times 32, the low half first.
//!
//! ```text
//! real 0:  first number | width, differences of 128 vertices | ... | width, differences of the last ones
//! real 1:  the same
//! ```
//!
//! Every bit comes back, of NaN too: nothing here computes with what the bits stand for. Widths stand in one byte each; 128 numbers
//! are packed by the crate `bitpacking`, whose bytes are the same with SSE3, NEON or neither, fewer than that bit after bit.
//!
//! Source: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015 (the packing of 128);
//! Lindstrom and Isenburg, "Fast and efficient compression of floating-point data", 2006 (order-preserving integers).

use crate::wire::Reader;
use bitpacking::{BitPacker, BitPacker4x};

/// Numbers that are packed at once.
pub(crate) const BLOCK: usize = BitPacker4x::BLOCK_LEN;

/// How the numbers of a message lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Bytes of a number: 4 or 8.
    pub bytes: usize,
    /// Numbers of a vertex.
    pub reals: usize,
}

impl Form {
    /// Returns the bytes of a vertex.
    pub fn vertex(self) -> usize {
        self.bytes * self.reals
    }
}

/// Appends the packed `values` to `packed`.
///
/// # Panics
/// If they are not those of whole vertices, or numbers do not have 4 or 8 bytes.
pub fn pack(form: Form, values: &[u8], packed: &mut Vec<u8>) {
    assert!(values.len().is_multiple_of(form.vertex()), "values are those of whole vertices");
    match form.bytes {
        4 => pack_words::<u32>(form, values, packed),
        8 => pack_words::<u64>(form, values, packed),
        bytes => unreachable!("no number has {bytes} bytes"),
    }
}

/// Fills `values` with what [`pack`] packed, and goes on behind it. None if that is malformed, or not so many bytes.
#[must_use]
pub fn unpack(form: Form, from: &mut Reader, values: &mut [u8]) -> Option<()> {
    if !values.len().is_multiple_of(form.vertex()) {
        return None;
    }
    match form.bytes {
        4 => unpack_words::<u32>(form, from, values),
        8 => unpack_words::<u64>(form, from, values),
        _ => None,
    }
}

/// The bits of a number.
trait Word: Copy + Default {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    /// Its place in the order of floating-point numbers, as an integer with a sign; and the number at a place.
    fn rank(self) -> Self;
    /// How far a place is from another, with the sign in the last bit.
    fn apart(self, before: Self) -> Self;
    /// The place that is so far from another.
    fn beyond(self, before: Self) -> Self;
    /// Its 32 bits of the low half, or of the high one.
    fn half(self, which: usize) -> u32;
    fn with(self, which: usize, half: u32) -> Self;
}

macro_rules! word {
    ($word:ty, $signed:ty, $double:ty) => {
        impl Word for $word {
            const BYTES: usize = size_of::<$word>();

            fn read(bytes: &[u8]) -> $word {
                <$word>::from_le_bytes(bytes.try_into().expect("as many bytes as it has"))
            }

            fn write(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }

            fn rank(self) -> $word {
                // Negative numbers are ordered the other way round; done twice it changes nothing.
                self ^ ((self as $signed >> (<$word>::BITS - 1)) as $word >> 1)
            }

            fn apart(self, before: $word) -> $word {
                let difference = self.wrapping_sub(before);
                difference << 1 ^ (difference as $signed >> (<$word>::BITS - 1)) as $word
            }

            fn beyond(self, before: $word) -> $word {
                before.wrapping_add(self >> 1 ^ (self & 1).wrapping_neg())
            }

            fn half(self, which: usize) -> u32 {
                (self as $double >> (32 * which)) as u32
            }

            fn with(self, which: usize, half: u32) -> $word {
                self | (<$double>::from(half) << (32 * which)) as $word
            }
        }
    };
}

word!(u32, i32, u64);
word!(u64, i64, u64);

fn pack_words<W: Word>(form: Form, values: &[u8], packed: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    for real in 0..form.reals {
        let at = real * W::BYTES..(real + 1) * W::BYTES;
        packed.extend_from_slice(&values[at.clone()]);
        let mut before = W::read(&values[at.clone()]).rank();
        for vertices in values.chunks(BLOCK * form.vertex()) {
            let count = vertices.len() / form.vertex();
            let mut words = [W::default(); BLOCK];
            for (word, vertex) in words.iter_mut().zip(vertices.chunks_exact(form.vertex())) {
                let own = W::read(&vertex[at.clone()]).rank();
                *word = own.apart(before);
                before = own;
            }
            for half in 0..W::BYTES / 4 {
                let halves = words.map(|word| word.half(half));
                pack_block(&halves[..count], packed);
            }
        }
    }
}

fn unpack_words<W: Word>(form: Form, from: &mut Reader, values: &mut [u8]) -> Option<()> {
    if values.is_empty() {
        return Some(());
    }
    for real in 0..form.reals {
        let at = real * W::BYTES..(real + 1) * W::BYTES;
        let mut before = W::read(from.bytes(W::BYTES)?).rank();
        for vertices in values.chunks_mut(BLOCK * form.vertex()) {
            let count = vertices.len() / form.vertex();
            let (mut words, mut halves) = ([W::default(); BLOCK], [0; BLOCK]);
            for half in 0..W::BYTES / 4 {
                unpack_block(from, &mut halves[..count])?;
                words.iter_mut().zip(halves).for_each(|(word, bits)| *word = word.with(half, bits));
            }
            for (word, vertex) in words.into_iter().zip(vertices.chunks_exact_mut(form.vertex())) {
                before = word.beyond(before);
                before.rank().write(&mut vertex[at.clone()]);
            }
        }
    }
    Some(())
}

/// Packs a block, or the rest of one, with the width that it takes in front.
fn pack_block(words: &[u32], packed: &mut Vec<u8>) {
    let width = 32 - words.iter().fold(0, |all, word| all | word).leading_zeros();
    packed.push(width as u8);
    pack_bits(words, width, packed);
}

/// Packs numbers of at most `width` bits: a block, or fewer.
pub(crate) fn pack_bits(words: &[u32], width: u32, packed: &mut Vec<u8>) {
    let start = packed.len();
    packed.resize(start + bytes_of(words.len(), width as usize), 0);
    if words.len() == BLOCK {
        BitPacker4x::new().compress(words, &mut packed[start..], width as u8);
        return;
    }
    let (mut bits, mut filled) = (0, 0);
    let mut bytes = packed[start..].iter_mut();
    for &word in words {
        bits |= u64::from(word) << filled;
        filled += width;
        while filled >= 8 {
            *bytes.next().expect("a byte for every eight bits") = bits as u8;
            (bits, filled) = (bits >> 8, filled - 8);
        }
    }
    bytes.for_each(|byte| *byte = bits as u8);
}

/// Unpacks a block. None if it is cut short, or no width is in front.
fn unpack_block(from: &mut Reader, words: &mut [u32]) -> Option<()> {
    let width = from.byte().filter(|width| *width <= 32)?;
    unpack_bits(from.bytes(bytes_of(words.len(), width.into()))?, width.into(), words)
}

/// Unpacks as many numbers of `width` bits, 32 at most, as there is room for: a block, or fewer. None if there are not as many.
pub(crate) fn unpack_bits(packed: &[u8], width: u32, words: &mut [u32]) -> Option<()> {
    if words.len() == BLOCK {
        let packed = packed.get(..bytes_of(BLOCK, width as usize))?;
        BitPacker4x::new().decompress(packed, words, width as u8);
        return Some(());
    }
    let (mut bits, mut filled, mut bytes) = (0u64, 0, packed.iter());
    for word in words {
        while filled < width {
            bits |= u64::from(*bytes.next()?) << filled;
            filled += 8;
        }
        *word = (bits & ((1 << width) - 1)) as u32;
        (bits, filled) = (bits >> width, filled - width);
    }
    Some(())
}

/// Bytes of so many numbers of so many bits.
fn bytes_of(count: usize, width: usize) -> usize {
    (count * width).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn form(random: &mut Random) -> Form {
        Form { bytes: random.one_of(&[4, 8]), reals: 1 + random.below(7) }
    }

    /// Whether all of `packed` unpacks to so many values.
    fn unpacks(form: Form, packed: &[u8], values: &mut [u8]) -> bool {
        let mut from = Reader(packed);
        unpack(form, &mut from, values).and_then(|()| from.end()).is_some()
    }

    /// Packs and unpacks: every bit must come back. Returns how many bytes it took.
    fn check(form: Form, values: &[u8]) -> usize {
        let mut packed = vec![7];
        pack(form, values, &mut packed);
        assert_eq!(packed[0], 7, "it is appended");
        let mut back = vec![0xaa; values.len()];
        assert!(unpacks(form, &packed[1..], &mut back), "{form:?}, {} bytes", values.len());
        assert!(back == values, "{form:?}, {} bytes", values.len());
        packed.len() - 1
    }

    /// Numbers of one kind, as bytes: anything, what floating point has at its edges, what varies little, or integers.
    fn numbers(random: &mut Random, bytes: usize, count: usize) -> Vec<u8> {
        const SINGLE: [u32; 9] =
            [0, 1 << 31, 1, 0x8000_0001, 0x7f80_0000, 0xff80_0000, 0x7fc0_0001, 0xffa0_beef, 0x7f7f_ffff];
        const DOUBLE: [u64; 7] =
            [0, 1 << 63, 1, 0x7ff0_0000_0000_0000, 0xfff8_dead_beef_0001, 0x7ff0_0000_0000_0001, !0];
        let kind = random.below(4);
        let mut walk = random.below(2000) as f64 - 1000.0;
        let mut number = || -> u64 {
            walk += (random.below(1001) as f64 - 500.0) * 1e-3;
            match (kind, bytes) {
                (0, _) => (random.below(1 << 32) as u64) << 32 | random.below(1 << 32) as u64,
                (1, 4) => random.one_of(&SINGLE).into(),
                (1, _) => random.one_of(&DOUBLE),
                (2, 4) => (walk as f32).to_bits().into(),
                (2, _) => walk.to_bits(),
                _ => walk as i64 as u64,
            }
        };
        (0..count).flat_map(|_| number().to_le_bytes()[..bytes].to_vec()).collect()
    }

    #[test]
    fn every_bit_comes_back_whatever_is_packed() {
        let random = &mut Random(11);
        for round in 0..600 {
            let form = form(random);
            let vertices = if round < 12 { round } else { random.below(1000) };
            check(form, &numbers(random, form.bytes, vertices * form.reals));
        }
        for vertices in [127, 128, 129, 256, 257] {
            check(Form { bytes: 4, reals: 1 }, &numbers(random, 4, vertices));
        }
        assert_eq!(check(Form { bytes: 4, reals: 0 }, &[]), 0);
    }

    #[test]
    fn what_varies_little_takes_fewer_bits() {
        let values = |step: f64| (0..4096).flat_map(move |i| (300.0 + (f64::from(i) * step).sin()).to_le_bytes());
        let single =
            |step: f64| (0..4096).flat_map(move |i| (300.0 + (f64::from(i) * step).sin() as f32).to_le_bytes());
        let taken = |form: Form, values: &[u8]| check(form, values) as f64 / values.len() as f64;
        let [one, three] = [1, 3].map(|reals| Form { bytes: 4, reals });
        let smooth: Vec<u8> = single(1e-3).collect();
        assert!(taken(one, &smooth) < 0.25, "{}", taken(one, &smooth));
        let of_vertices: Vec<u8> = smooth[..4095 * 4].to_vec();
        assert!(taken(three, &of_vertices) < 0.35, "{}", taken(three, &of_vertices));
        assert!(taken(Form { bytes: 8, reals: 1 }, &values(1e-3).collect::<Vec<_>>()) < 0.75);
        // All the same, but for the sign of zero: two bits each, then one byte a block.
        let zeros: Vec<u8> = (0..256).flat_map(|i| (if i % 2 == 0 { 0.0f32 } else { -0.0 }).to_le_bytes()).collect();
        assert_eq!(check(one, &zeros), 4 + 2 * (1 + 2 * 128 / 8));
        assert_eq!(check(one, &[5; 4 * 256]), 4 + 2);
        // Noise takes a byte a block more than it has, and its first number twice.
        let mut random = Random(5);
        let noise: Vec<u8> = (0..1024).map(|_| random.below(256) as u8).collect();
        assert!(check(one, &noise) <= noise.len() + 4 + 2);
    }

    #[test]
    fn bytes_are_the_same_on_every_machine() {
        let random = &mut Random(8);
        for width in 0..=32 {
            let words: Vec<u32> =
                (0..BLOCK).map(|_| (random.below(1 << 32) as u64 >> (32 - width)) as u32 | 1).collect();
            let words: Vec<u32> = words.iter().map(|&word| if width == 0 { 0 } else { word }).collect();
            // Four numbers side by side, bit after bit in words of 32 bits.
            let mut plain = vec![0u32; 4 * width];
            for (i, word) in words.iter().enumerate() {
                for bit in (0..width).filter(|bit| word >> bit & 1 == 1) {
                    let at = i / 4 * width + bit;
                    plain[at / 32 * 4 + i % 4] |= 1 << (at % 32);
                }
            }
            let mut packed = Vec::new();
            pack_block(&words, &mut packed);
            let used = 32 - words.iter().fold(0, |all, word| all | word).leading_zeros();
            assert_eq!(used as usize, width, "a random number has all bits");
            assert_eq!(
                packed[1..],
                plain.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()[..],
                "{width} bits"
            );
        }
    }

    #[test]
    fn what_is_cut_short_or_malformed_is_refused_and_panics_nowhere() {
        let random = &mut Random(3);
        for _ in 0..400 {
            let form = form(random);
            let count = random.below(400) * form.reals;
            let values = numbers(random, form.bytes, count);
            let mut packed = Vec::new();
            pack(form, &values, &mut packed);
            let mut back = vec![0; values.len()];
            if !packed.is_empty() {
                let end = random.below(packed.len());
                assert!(!unpacks(form, &packed[..end], &mut back), "cut short");
            }
            assert!(!unpacks(form, &[&packed[..], &[0]].concat(), &mut back), "a byte behind the end");
            assert!(!unpacks(form, &packed, &mut vec![0; values.len() + 1]), "no whole number");
            assert!(!unpacks(Form { bytes: 5, ..form }, &packed, &mut vec![0; 10 * form.reals]), "no number");
            // Other bytes may be other numbers; they are all that is touched.
            for _ in 0..1 + random.below(4) {
                let at = random.below(packed.len().max(1));
                if let Some(byte) = packed.get_mut(at) {
                    *byte = random.below(256) as u8;
                }
            }
            let _ = unpacks(form, &packed, &mut back);
            let junk: Vec<u8> = (0..random.below(300)).map(|_| random.below(256) as u8).collect();
            let _ = unpacks(form, &junk, &mut back);
        }
        assert!(!unpacks(Form { bytes: 4, reals: 1 }, &[0, 0, 0, 0, 33], &mut [0; 4]), "no width");
    }
}
