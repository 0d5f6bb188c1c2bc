//! Frontiers and offers, packed or not, and malformed ones.

use super::*;
use crate::engine::cpu::stress::Random;

/// Some ids below `end`, a few or most of them.
fn list(random: &mut Random, end: u32) -> Vec<u32> {
    let of = 1 + random.below(40);
    let is_most = random.below(2) == 0;
    (0..end).filter(|_| (random.below(of) == 0) != is_most).collect()
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
