//! Offers on their way to the vertices that they are for.

use crate::number::Number;
use crate::program::Record;
use std::cmp::Ordering;

/// The best offer for each of some vertices: of equal ones that of the first along the curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offers<T> {
    /// Whom they are for, ascending, and what is offered.
    pub(crate) ids: Vec<u32>,
    pub(crate) keys: Vec<T>,
    /// Which of the following offers it.
    pub(crate) from: Vec<u32>,
    /// Who offers: their numbers along the curve, ascending, and what neighbors see of them, shape [numbers × reals].
    pub(crate) numbers: Vec<u32>,
    pub(crate) states: Vec<T>,
}

/// Whether one key is less than another.
pub(crate) type Less<T> = fn(T, T) -> bool;

impl<T: Number> Offers<T> {
    /// None yet, with room for so many.
    fn with_room(count: usize) -> Offers<T> {
        let (ids, keys, from) = (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
        Offers { ids, keys, from, numbers: Vec::new(), states: Vec::new() }
    }

    /// Reals of the state of who offers.
    fn reals(&self) -> usize {
        self.states.len().checked_div(self.numbers.len()).unwrap_or(0)
    }

    /// What neighbors see of who makes an offer.
    pub(crate) fn state<A: Record<T>>(&self, offer: usize) -> A {
        let at = self.from[offer] as usize * A::LEN;
        A::build(|k| self.states[at + k])
    }

    /// Without who offers: all offers are those of one.
    pub(crate) fn forgotten(mut self) -> Offers<T> {
        let reals = self.reals();
        self.numbers.truncate(1);
        self.states.truncate(reals);
        self.from.fill(0);
        self
    }

    /// Those for ids below `end`, and the others.
    pub(crate) fn split(mut self, end: u32) -> [Offers<T>; 2] {
        let at = self.ids.partition_point(|&id| id < end);
        let high = Offers {
            ids: self.ids.split_off(at),
            keys: self.keys.split_off(at),
            from: self.from.split_off(at),
            numbers: self.numbers.clone(),
            states: self.states.clone(),
        };
        [self, high]
    }

    /// Without those who offer nothing here.
    pub(crate) fn shrunk(mut self) -> Offers<T> {
        let reals = self.reals();
        let mut is_used = vec![false; self.numbers.len()];
        self.from.iter().for_each(|&by| is_used[by as usize] = true);
        let mut names = vec![0; is_used.len()];
        let mut count = 0;
        for (by, _) in is_used.iter().enumerate().filter(|(_, is_used)| **is_used) {
            names[by] = count as u32;
            self.numbers[count] = self.numbers[by];
            self.states.copy_within(by * reals..(by + 1) * reals, count * reals);
            count += 1;
        }
        self.numbers.truncate(count);
        self.states.truncate(count * reals);
        self.from.iter_mut().for_each(|by| *by = names[*by as usize]);
        self
    }

    /// The better of the two for each vertex.
    pub(crate) fn merged(self, other: Offers<T>, less: Less<T>) -> Offers<T> {
        if other.ids.is_empty() {
            return self;
        }
        if self.ids.is_empty() {
            return other;
        }
        let mut merged = Offers::with_room(self.ids.len().max(other.ids.len()));
        // Who offers: a union, in which they have other places.
        let (mut places, mut others) =
            (Vec::with_capacity(self.numbers.len()), Vec::with_capacity(other.numbers.len()));
        let reals = self.reals();
        while places.len() < self.numbers.len() || others.len() < other.numbers.len() {
            let (i, j) = (places.len(), others.len());
            let place = merged.numbers.len() as u32;
            let order = first(&self.numbers, &other.numbers, i, j);
            let (from, at) = if order == Ordering::Greater { (&other, j) } else { (&self, i) };
            merged.numbers.push(from.numbers[at]);
            merged.states.extend_from_slice(&from.states[at * reals..(at + 1) * reals]);
            if order != Ordering::Greater {
                places.push(place);
            }
            if order != Ordering::Less {
                others.push(place);
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < self.ids.len() || j < other.ids.len() {
            let order = first(&self.ids, &other.ids, i, j);
            let is_other = match order {
                Ordering::Less => false,
                Ordering::Greater => true,
                Ordering::Equal => {
                    let (own, its) = (self.keys[i], other.keys[j]);
                    let is_earlier = others[other.from[j] as usize] < places[self.from[i] as usize];
                    less(its, own) || (!less(own, its) && is_earlier)
                }
            };
            let (id, key, by) = match is_other {
                false => (self.ids[i], self.keys[i], places[self.from[i] as usize]),
                true => (other.ids[j], other.keys[j], others[other.from[j] as usize]),
            };
            merged.ids.push(id);
            merged.keys.push(key);
            merged.from.push(by);
            i += usize::from(order != Ordering::Greater);
            j += usize::from(order != Ordering::Less);
        }
        merged
    }
}

/// Which of two ascending lists goes on with the smaller number; one of them does go on.
#[inline(always)]
fn first(own: &[u32], other: &[u32], i: usize, j: usize) -> Ordering {
    let next = |list: &[u32], at: usize| list.get(at).map_or(u64::MAX, |&number| number.into());
    next(own, i).cmp(&next(other, j))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn less(a: f32, b: f32) -> bool {
        a < b
    }

    /// For each id its offer, and who makes it.
    fn told(offers: &Offers<f32>) -> Vec<(u32, f32, u32, f32)> {
        let of = |i: usize| {
            let by = offers.from[i] as usize;
            (offers.ids[i], offers.keys[i], offers.numbers[by], offers.states[by])
        };
        (0..offers.ids.len()).map(of).collect()
    }

    fn offers(list: &[(u32, f32, u32)]) -> Offers<f32> {
        let mut numbers: Vec<u32> = list.iter().map(|offer| offer.2).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Offers {
            ids: list.iter().map(|offer| offer.0).collect(),
            keys: list.iter().map(|offer| offer.1).collect(),
            from: list.iter().map(|offer| numbers.binary_search(&offer.2).unwrap() as u32).collect(),
            states: numbers.iter().map(|&number| number as f32 * 10.0).collect(),
            numbers,
        }
    }

    #[test]
    fn the_less_is_kept_and_of_equal_ones_that_of_the_first_along_the_curve() {
        let [a, b] =
            [&[(1, 2.0, 9), (4, 1.0, 3), (6, 5.0, 9)][..], &[(4, 1.0, 2), (5, 7.0, 30), (6, 4.0, 30)]].map(offers);
        let expected = [(1, 2.0, 9, 90.0), (4, 1.0, 2, 20.0), (5, 7.0, 30, 300.0), (6, 4.0, 30, 300.0)];
        assert_eq!(told(&a.clone().merged(b.clone(), less)), expected);
        assert_eq!(told(&b.clone().merged(a.clone(), less)), expected, "whichever comes first");
        let nothing = Offers::with_room(0);
        assert_eq!((a.clone().merged(nothing.clone(), less), nothing.merged(b.clone(), less)), (a, b));
    }

    #[test]
    fn a_part_knows_only_who_offers_something_there() {
        let [low, high] = offers(&[(1, 2.0, 9), (4, 1.0, 3), (6, 5.0, 9)]).split(4).map(Offers::shrunk);
        assert_eq!((told(&low), &low.numbers[..]), (vec![(1, 2.0, 9, 90.0)], &[9][..]));
        assert_eq!((told(&high), &high.numbers[..]), (vec![(4, 1.0, 3, 30.0), (6, 5.0, 9, 90.0)], &[3, 9][..]));
    }
}
