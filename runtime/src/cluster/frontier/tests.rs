//! Lists of ids in every form, offers, and bytes that make no sense.

use super::measure::entropy;
use super::*;
use crate::engine::cpu::stress::Random;

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
            let mut rest = &out[1..];
            assert_eq!(ids::read(&mut rest, end), Some((form, ids.clone())), "{form:?} of {} below {end}", ids.len());
            assert_eq!(rest, [7], "it ends where it ends");
        }
    }
    // Far apart, up to the last number that there is.
    for ids in [&[0, 1 << 31, u32::MAX - 1][..], &[u32::MAX - 1], &[5]] {
        let list = List::new(ids, u32::MAX);
        for form in [Form::Plain, Form::Packed, Form::Rice] {
            let mut out = Vec::new();
            list.write(form, &mut out);
            assert_eq!(ids::read(&mut &out[..], u32::MAX), Some((form, ids.to_vec())), "{form:?}");
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
        ids::write_numbers(&numbers, &mut out);
        assert!(
            out.len() <= numbers.len() * bits / 8 + numbers.len() / 100 + 5,
            "{} of {bits} bits in {}",
            numbers.len(),
            out.len()
        );
        let (mut back, cut) = (vec![0; numbers.len()], random.below(out.len().max(1)));
        let mut rest = &out[..];
        assert_eq!((ids::read_numbers(&mut rest, &mut back), rest.len()), (Some(()), 0));
        assert_eq!(back, numbers);
        assert!(out.is_empty() || ids::read_numbers(&mut &out[..cut], &mut back).is_none(), "cut short");
    }
    let few: Vec<u32> = (0..5120).map(|i| if i % 100 == 0 { 40 } else { i % 7 }).collect();
    let mut out = Vec::new();
    ids::write_numbers(&few, &mut out);
    assert!(out.len() < few.len() * 5 / 8, "{} bytes", out.len());
}

#[test]
fn a_list_that_makes_no_sense_is_refused_and_panics_nowhere() {
    let random = &mut Random(3);
    for _ in 0..1000 {
        let end = 1 + random.below(3000) as u32;
        let ids = list(random, end);
        let mut out = Vec::new();
        List::new(&ids, end).write(random.one_of(&Form::ALL), &mut out);
        let cut = random.below(out.len());
        assert_eq!(ids::read(&mut &out[..cut], end), None, "cut short");
        for _ in 0..1 + random.below(3) {
            let at = random.below(out.len());
            out[at] ^= 1 << random.below(8);
        }
        if let Some((_, ids)) = ids::read(&mut &out[..], end) {
            assert!(ids.is_sorted_by(|a, b| a < b) && ids.last().is_none_or(|&last| last < end));
        }
    }
    // As many as nobody has.
    let huge = [&[Form::Packed as u8][..], &u32::MAX.to_le_bytes(), &[0; 64]].concat();
    assert_eq!(ids::read(&mut &huge[..], 1000), None);
}

fn packer(compress: Compress) -> Packer<fn() -> Duration> {
    Packer::new(compress, || Duration::ZERO)
}

const TO: To = To { hosts: 1, rate: Some(1e7) };

fn offers(random: &mut Random) -> Offers<f32> {
    let numbers = list(random, 900);
    let count = if numbers.is_empty() { 0 } else { 400 };
    let ids: Vec<u32> = list(random, count).iter().map(|id| 1000 + id).collect();
    let is_same = random.below(2) == 0;
    Offers {
        keys: ids.iter().map(|&id| if is_same { 3.0 } else { id as f32 * 0.1 }).collect(),
        from: ids.iter().map(|_| random.below(numbers.len()) as u32).collect(),
        states: numbers.iter().flat_map(|&number| [number as f32, 2.0]).collect(),
        numbers,
        ids,
    }
}

#[test]
fn messages_say_what_was_said_whether_packed_or_not() {
    let random = &mut Random(4);
    for _ in 0..200 {
        for compress in [Compress::Auto, Compress::Always, Compress::Never] {
            let mut packer = packer(compress);
            let said = offers(random);
            let message = packer.offers(&said, 1000..1400, 900, TO);
            assert_eq!(packer.read_offers(&message, 1000..1400, 900, 2), Some(said), "{compress:?}");
            let ids = list(random, 700);
            // The first real has changed here and there, the second nowhere.
            let known = |id: u32, k: usize| if k == 0 { id as f32 } else { -1.0 };
            let states: Vec<f32> = ids.iter().flat_map(|&id| [known(id, 0) + (id % 2) as f32, known(id, 1)]).collect();
            let before: Vec<f32> = ids.iter().flat_map(|&id| [known(id, 0), known(id, 1)]).collect();
            let message = packer.frontier(&ids, 700, &states, &before, TO);
            assert_eq!(packer.read_frontier(&message, 700, 2, known), Some((ids, states)), "{compress:?}");
        }
    }
}

#[test]
fn levels_of_a_search_are_ids_alone() {
    let ids: Vec<u32> = (0..1000).map(|i| 3 * i).collect();
    let states: Vec<f32> = ids.iter().flat_map(|&id| [4.0, id as f32]).collect();
    let before: Vec<f32> = ids.iter().flat_map(|&id| [9.0, id as f32]).collect();
    let plain = packer(Compress::Never).frontier(&ids, 3000, &states, &before, TO);
    assert_eq!(
        plain.len(),
        HEAD + ID * ids.len() + 2 + 4 + 1,
        "how each real stands, the level, and that nothing is packed"
    );
    let mut packer = packer(Compress::Always);
    let packed = packer.frontier(&ids, 3000, &states, &before, TO);
    assert!(packed.len() * 8 < plain.len(), "{} of {}", packed.len(), plain.len());
    assert_eq!(packer.sent.frontiers, [plain.len() as u64, packed.len() as u64]);
}

#[test]
fn messages_that_make_no_sense_are_refused_and_panic_nowhere() {
    let random = &mut Random(5);
    for _ in 0..600 {
        let mut packer = packer(random.one_of(&[Compress::Always, Compress::Never]));
        let said = offers(random);
        let mut message = packer.offers(&said, 1000..1400, 900, TO);
        let cut = random.below(message.len());
        assert_eq!(packer.read_offers::<f32>(&message[..cut], 1000..1400, 900, 2), None, "cut short");
        let at = random.below(message.len());
        message[at] ^= 1 << random.below(8);
        if let Some(read) = packer.read_offers::<f32>(&message, 1000..1400, 900, 2) {
            assert!(read.ids.iter().all(|id| (1000..1400).contains(id)) && read.states.len() == 2 * read.numbers.len());
            assert!(read.from.iter().all(|&by| (by as usize) < read.numbers.len()));
        }
    }
}

#[test]
fn a_list_is_packed_where_bytes_take_longer_than_packing() {
    let random = &mut Random(6);
    let ids: Vec<u32> = (0..1 << 20).filter(|_| random.below(20) == 0).collect();
    let list = List::new(&ids, 1 << 20);
    let form = |compress, rate: Option<f64>| {
        let costs = Costs::new(compress);
        if costs.weighs(ids.len(), rate) { costs.form(&list, ids.len(), rate) } else { Form::Plain }
    };
    let [plain, _, packed, rice] = list.bytes;
    assert!(rice < packed && packed < plain);
    // A slow link, one as fast as memory, and one between.
    assert_eq!(
        [Some(1e6), None, Some(1e12)].map(|rate| form(Compress::Auto, rate)),
        [Form::Rice, Form::Plain, Form::Plain]
    );
    assert!(
        [Form::Packed, Form::Bitmap].contains(&form(Compress::Auto, Some(8e8))),
        "{:?}",
        form(Compress::Auto, Some(8e8))
    );
    assert_eq!((form(Compress::Always, None), form(Compress::Never, Some(1.0))), (Form::Rice, Form::Plain));
    // What was measured counts.
    let mut costs = Costs::new(Compress::Auto);
    (0..8).for_each(|_| costs.note(Form::Rice, Way::Read, 10_000, Duration::from_secs(1)));
    assert_eq!(costs.form(&list, ids.len(), Some(1e6)), Form::Packed);
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
