//! Lists of ids in every form, and malformed ones.

use super::*;
use crate::list_cost::{entropy, list_costs};
use crate::random::Random;

/// Some ids below `end`: anywhere, in a run, thick in one place, or all but some.
fn list(random: &mut Random, end: u32) -> Vec<u32> {
    let of = 1 + random.below(40);
    let (kind, middle) = (random.below(4), random.below(end as usize + 1) as u32);
    let is_in = |id: u32, random: &mut Random| match kind {
        0 => random.below(of) == 0,
        1 => id >= middle && id < middle.saturating_add(300),
        2 => random.below(1 + id.abs_diff(middle) as usize / 64) == 0,
        _ => random.below(of) > 0,
    };
    (0..end).filter(|&id| is_in(id, random)).collect()
}

#[test]
fn a_list_comes_back_in_every_form_and_takes_what_was_said() {
    let random = &mut Random(1);
    for round in 0..300 {
        let end = if round < 30 { round } else { random.below(20_000) as u32 };
        let ids = list(random, end);
        let list = List::new(&ids, end);
        for form in Form::ALL {
            let mut out = vec![9];
            list.write(form, &mut out);
            assert_eq!(out.len() - 1, list.bytes[form as usize], "{form:?} of {} below {end}", ids.len());
            out.push(7);
            let mut rest = Reader(&out[1..]);
            assert_eq!(read(&mut rest, end), Some((form, ids.clone())), "{form:?} of {} below {end}", ids.len());
            assert_eq!(rest.0, [7], "it ends where it ends");
        }
    }
    // Far apart, up to the last number that there is.
    for ids in [&[0, 1 << 31, u32::MAX - 1][..], &[u32::MAX - 1], &[5]] {
        let list = List::new(ids, u32::MAX);
        for form in [Form::Plain, Form::Packed, Form::Rice] {
            let mut out = Vec::new();
            list.write(form, &mut out);
            assert_eq!(read(&mut Reader(&out), u32::MAX), Some((form, ids.to_vec())), "{form:?}");
        }
    }
}

/// The plan's bound for lists that chance has made, whose gaps are as far from regular as any.
#[test]
fn lists_take_less_than_1_05_times_the_entropy_of_their_gaps() {
    let random = &mut Random(2);
    for of in [2, 3, 5, 10, 30, 100] {
        let ids: Vec<u32> = (0..of * 40_000).filter(|_| random.below(of as usize) == 0).collect();
        let bytes = *List::new(&ids, of * 40_000).bytes.iter().min().unwrap();
        let (bits, least) = (8.0 * bytes as f64 / ids.len() as f64, entropy(&ids));
        assert!(bits < 1.05 * least, "one of {of}: {bits:.3} bits an id, entropy {least:.3}");
    }
}

#[test]
fn numbers_come_back_and_a_few_large_ones_cost_the_others_nothing() {
    let random = &mut Random(7);
    for _ in 0..300 {
        let bits = random.below(33);
        let numbers: Vec<u32> =
            (0..random.below(2000)).map(|_| (random.below(1 << 32) as u64 >> (32 - bits)) as u32).collect();
        let mut out = Vec::new();
        write_numbers(&numbers, &mut out);
        assert!(
            out.len() <= numbers.len() * bits / 8 + numbers.len() / 100 + 5,
            "{} of {bits} bits in {}",
            numbers.len(),
            out.len()
        );
        let (mut back, cut) = (vec![0; numbers.len()], random.below(out.len().max(1)));
        let mut rest = Reader(&out);
        assert_eq!((read_numbers(&mut rest, &mut back), rest.0.len()), (Some(()), 0));
        assert_eq!(back, numbers);
        assert!(out.is_empty() || read_numbers(&mut Reader(&out[..cut]), &mut back).is_none(), "cut short");
    }
    let few: Vec<u32> = (0..5120).map(|i| if i % 100 == 0 { 40 } else { i % 7 }).collect();
    let mut out = Vec::new();
    write_numbers(&few, &mut out);
    assert!(out.len() < few.len() * 5 / 8, "{} bytes", out.len());
}

#[test]
fn a_malformed_list_is_refused_and_panics_nowhere() {
    let random = &mut Random(3);
    for _ in 0..1000 {
        let end = 1 + random.below(3000) as u32;
        let ids = list(random, end);
        let mut out = Vec::new();
        List::new(&ids, end).write(random.one_of(&Form::ALL), &mut out);
        let cut = random.below(out.len());
        assert_eq!(read(&mut Reader(&out[..cut]), end), None, "cut short");
        for _ in 0..1 + random.below(3) {
            let at = random.below(out.len());
            out[at] ^= 1 << random.below(8);
        }
        if let Some((_, ids)) = read(&mut Reader(&out), end) {
            assert!(ids.is_sorted_by(|a, b| a < b) && ids.last().is_none_or(|&last| last < end));
        }
    }
    // More than there are.
    let huge = [&[Form::Packed as u8][..], &u32::MAX.to_le_bytes(), &[0; 64]].concat();
    assert_eq!(read(&mut Reader(&huge), 1000), None);
}

#[test]
fn costs_of_a_list_are_those_of_its_forms() {
    let random = &mut Random(5);
    for end in [0, 1, 300, 20_000] {
        let ids = list(random, end);
        let (bits, costs) = list_costs(&ids, end, 2).unwrap();
        let bytes: Vec<usize> = costs.iter().map(|cost| cost.bytes).collect();
        assert_eq!(bytes, List::new(&ids, end).bytes, "{} below {end}", ids.len());
        assert!(costs.iter().all(|cost| cost.write_s < 1.0 && cost.read_s < 1.0), "{costs:?}");
        assert!((0.0..=32.0).contains(&bits) && bits.is_sign_positive(), "{bits}");
    }
    // Gaps of 0 and of 1, as often: a bit each. One gap alone: nothing.
    assert!((entropy(&[0, 2, 3, 5, 6, 8, 9, 11]) - 1.0).abs() < 1e-12);
    assert_eq!(entropy(&(0..900).collect::<Vec<u32>>()), 0.0);
    for (ids, end) in [(&[3, 3][..], 9), (&[4, 2], 9), (&[9], 9)] {
        assert!(list_costs(ids, end, 1).is_err(), "{ids:?}");
    }
}
