//! A message of values: the results of tasks at the border.
//!
//! ```text
//! as they are:  VALUES 0 0 0 | epoch | name, length, bits | name, length, bits | ...
//! packed:       VALUES 1 0 0 | epoch | number of tasks | names and lengths of all | bits of all, packed as one
//! ```
//!
//! Numbers have four bytes, the epoch has eight. Tasks are named by their numbers in the whole mesh. No bits: the values are as they
//! were in the epoch before. A message says itself whether it is packed, so both kinds mix, and hosts need not agree on it.

use super::kind::VALUES;
use meshweft_net::MAX_MESSAGE;
use meshweft_net::codec::{self, Form};
use meshweft_net::wire::Reader;
use std::borrow::Cow;

/// Bytes before the first task.
const HEAD: usize = 12;
/// Bytes of the name of a task and the length of its bits.
const ENTRY: usize = 8;
/// Where a message says whether it is packed.
const PACKED: usize = 1;

/// A message about no task yet.
pub(super) fn begin(epoch: u64) -> Vec<u8> {
    [&[VALUES, 0, 0, 0][..], &epoch.to_le_bytes()].concat()
}

/// Adds a task, whose bits `gather` appends.
pub(super) fn add(message: &mut Vec<u8>, name: u32, gather: impl FnOnce(&mut Vec<u8>)) {
    message.extend(name.to_le_bytes());
    let start = message.len();
    message.extend([0; 4]);
    gather(message);
    let len = (message.len() - start - 4) as u32;
    message[start..start + 4].copy_from_slice(&len.to_le_bytes());
}

/// The epoch of a message, if it is long enough for one.
pub(super) fn epoch(message: &[u8]) -> Option<u64> {
    Reader(message.get(4..)?).long()
}

/// Name and bits of each task of a message that is not packed; none where it is cut short, and nothing after that.
pub(super) fn tasks(message: &[u8]) -> impl Iterator<Item = Option<(u32, &[u8])>> {
    let mut rest = Reader(message.get(HEAD..).unwrap_or_default());
    std::iter::from_fn(move || {
        if rest.0.is_empty() {
            return None;
        }
        let mut next = || Some((rest.number()?, rest.text()?));
        let task = next();
        if task.is_none() {
            rest = Reader(&[]);
        }
        Some(task)
    })
}

/// A message with its values packed.
///
/// # Panics
/// If it is packed, or its values are not those of whole vertices.
pub(super) fn pack(form: Form, message: &[u8]) -> Vec<u8> {
    assert!(message[PACKED] == 0, "a message is packed once");
    let (mut packed, mut bits, mut count) = (message[..HEAD].to_vec(), Vec::with_capacity(message.len()), 0u32);
    packed[PACKED] = 1;
    packed.extend([0; 4]);
    for (name, own) in tasks(message).flatten() {
        packed.extend(name.to_le_bytes());
        packed.extend((own.len() as u32).to_le_bytes());
        bits.extend_from_slice(own);
        count += 1;
    }
    packed[HEAD..HEAD + 4].copy_from_slice(&count.to_le_bytes());
    codec::pack(form, &bits, &mut packed);
    packed
}

/// A message with its values as they are, and that itself if they were. None if it is malformed; it takes no more memory than the
/// largest message.
pub(super) fn unpack(form: Form, message: &[u8]) -> Option<Cow<'_, [u8]>> {
    match message.get(PACKED)? {
        0 => return Some(Cow::Borrowed(message)),
        1 => {}
        _ => return None,
    }
    let mut rest = Reader(message.get(HEAD..)?);
    let count = rest.number()? as usize;
    let entries = rest.bytes(count.checked_mul(ENTRY)?)?;
    let lengths = entries.chunks_exact(ENTRY).map(|entry| Reader(&entry[4..]).number().map_or(0, |len| len as usize));
    let total = lengths.clone().try_fold(0usize, |total, len| total.checked_add(len))?;
    if HEAD + entries.len() + total > MAX_MESSAGE {
        return None;
    }
    let mut values = vec![0; total];
    codec::unpack(form, &mut rest, &mut values)?;
    rest.end()?;
    let mut plain = message[..HEAD].to_vec();
    plain.reserve_exact(entries.len() + total);
    plain[PACKED] = 0;
    let mut rest = &values[..];
    for (entry, len) in entries.chunks_exact(ENTRY).zip(lengths) {
        let (own, after) = rest.split_at(len);
        plain.extend_from_slice(entry);
        plain.extend_from_slice(own);
        rest = after;
    }
    Some(Cow::Owned(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::stress::Random;

    const FORM: Form = Form { bytes: 4, reals: 3 };

    /// Bytes of values in a message that is not packed.
    fn bytes(message: &[u8]) -> usize {
        tasks(message).flatten().map(|(_, bits)| bits.len()).sum()
    }

    /// A message about some tasks, one of which has not changed.
    fn message(random: &mut Random) -> Vec<u8> {
        let mut message = begin(1 << 40 | 9);
        for name in 0..random.below(6) as u32 {
            let vertices = if name == 1 { 0 } else { random.below(200) };
            let values = (0..vertices * FORM.reals).flat_map(|i| (1.0 + i as f32 * 1e-4).to_le_bytes());
            add(&mut message, 7 * name, |bits| bits.extend(values));
        }
        message
    }

    #[test]
    fn a_packed_message_says_what_it_said_before() {
        let random = &mut Random(1);
        for _ in 0..200 {
            let plain = message(random);
            assert_eq!(unpack(FORM, &plain).unwrap(), plain);
            let packed = pack(FORM, &plain);
            assert!(bytes(&plain) < 2000 || packed.len() < plain.len() * 3 / 4, "{} of {}", packed.len(), plain.len());
            let back = unpack(FORM, &packed).unwrap();
            assert_eq!(back, plain);
            assert_eq!(epoch(&back), Some(1 << 40 | 9));
            let tasks: Vec<_> = tasks(&back).map(Option::unwrap).collect();
            assert!(tasks.iter().zip(0..).all(|((name, bits), i)| *name == 7 * i && (i != 1 || bits.is_empty())));
            assert_eq!(tasks.iter().map(|(_, bits)| bits.len()).sum::<usize>(), bytes(&plain));
        }
    }

    #[test]
    fn a_message_that_claims_what_it_has_not_is_refused_and_panics_nowhere() {
        let random = &mut Random(2);
        let large = |count: u32, len: u32| {
            let head = [&begin(3)[..], &count.to_le_bytes()].concat();
            let mut message =
                [head, (0..count.min(9)).flat_map(|_| [[0; 4], len.to_le_bytes()].concat()).collect()].concat();
            message[PACKED] = 1;
            message
        };
        for (count, len) in
            [(1, u32::MAX), (2, u32::MAX), (u32::MAX, 0), (9, 1 << 20), (1, MAX_MESSAGE as u32), (1, 12), (1, 5)]
        {
            assert_eq!(unpack(FORM, &large(count, len)), None, "{count} tasks of {len} bytes");
        }
        assert_eq!(unpack(FORM, &[VALUES]), None);
        assert_eq!(unpack(FORM, &[VALUES, 2, 0, 0]), None, "no kind of message");
        for _ in 0..500 {
            let mut packed = pack(FORM, &message(random));
            assert_eq!(unpack(FORM, &packed[..random.below(packed.len())]), None, "cut short");
            for _ in 0..1 + random.below(3) {
                let at = random.below(packed.len());
                packed[at] ^= 1 << random.below(8);
            }
            if let Some(plain) = unpack(FORM, &packed) {
                assert!(plain.len() <= MAX_MESSAGE);
                tasks(&plain).for_each(|_| {});
                let _ = epoch(&plain);
            }
        }
    }
}
