//! Reals of the vertices of a list.
//!
//! What the other end knows already is not said again, and what is the same for all is said once: of a breadth-first search nothing is
//! left. The rest goes out vertex after vertex, as it is or packed ([`codec`]).
//!
//! ```text
//! how each real stands | those that are the same for all | whether the rest is packed | the rest
//! ```

use crate::number::Number;
use meshweft_net::codec;
use meshweft_net::wire::Reader;

const VARYING: u8 = 0;
const SAME: u8 = 1;
const KNOWN: u8 = 2;

/// What is to be said of the reals of some vertices.
pub(super) struct Reals<T> {
    head: Vec<u8>,
    /// Reals that vary, vertex after vertex, and how many those are.
    rest: Vec<T>,
    varying: usize,
}

impl<T: Number> Reals<T> {
    /// `values`: shape [vertices × reals]; `known`: what the other end has, if it has anything.
    pub(super) fn new(values: &[T], reals: usize, known: Option<&[T]>) -> Reals<T> {
        let vertices = values.len() / reals.max(1);
        let real = |all: &[T], i: usize, k: usize| all[i * reals + k];
        let is_same = |a: T, b: T| bytemuck::bytes_of(&a) == bytemuck::bytes_of(&b);
        let (mut head, mut same, mut varying) = (Vec::with_capacity(reals), Vec::new(), Vec::new());
        for k in 0..reals {
            let is_known =
                known.is_some_and(|known| (0..vertices).all(|i| is_same(real(values, i, k), real(known, i, k))));
            head.push(if is_known {
                KNOWN
            } else if vertices > 0 && (1..vertices).all(|i| is_same(real(values, i, k), real(values, 0, k))) {
                same.extend_from_slice(bytemuck::bytes_of(&values[k]));
                SAME
            } else {
                varying.push(k);
                VARYING
            });
        }
        head.extend(same);
        let mut rest = Vec::with_capacity(vertices * varying.len());
        for i in 0..vertices {
            varying.iter().for_each(|&k| rest.push(real(values, i, k)));
        }
        Reals { head, rest, varying: varying.len() }
    }

    /// Bytes as it is.
    pub(super) fn bytes(&self) -> usize {
        self.head.len() + 1 + self.rest.len() * T::BYTES
    }

    /// Appends it.
    pub(super) fn write(&self, packs: bool, out: &mut Vec<u8>) {
        out.extend(&self.head);
        out.push(packs.into());
        match packs {
            true => codec::pack(form::<T>(self.varying), bytemuck::cast_slice(&self.rest), out),
            false => out.extend_from_slice(bytemuck::cast_slice(&self.rest)),
        }
    }
}

fn form<T: Number>(reals: usize) -> codec::Form {
    codec::Form { bytes: T::BYTES, reals }
}

/// Reads the reals of so many vertices, and goes on behind them: shape [vertices × reals]. `known`: real `k` of the `i`-th of them, if
/// anything is. None if they are malformed.
pub(super) fn read<T: Number>(
    from: &mut Reader,
    vertices: usize,
    reals: usize,
    known: Option<&dyn Fn(usize, usize) -> T>,
) -> Option<Vec<T>> {
    let how = from.bytes(reals)?;
    let count = |kind| how.iter().filter(|how| **how == kind).count();
    let (varying, is_known) = (count(VARYING), count(KNOWN));
    if count(SAME) + varying + is_known != reals || (is_known > 0 && known.is_none()) {
        return None;
    }
    let same = from.bytes(count(SAME) * T::BYTES)?;
    let packs = from.byte()?;
    let bytes = vertices.checked_mul(varying * T::BYTES)?;
    let mut values = vec![0; bytes];
    match packs {
        0 => values.copy_from_slice(from.bytes(bytes)?),
        1 => codec::unpack(form::<T>(varying), from, &mut values)?,
        _ => return None,
    }
    let (same, values): (Vec<T>, Vec<T>) = (bytemuck::pod_collect_to_vec(same), bytemuck::pod_collect_to_vec(&values));
    let mut all = vec![T::from_f64(0.0); vertices * reals];
    let (mut same, mut column) = (same.into_iter(), 0);
    for (k, how) in how.iter().enumerate() {
        let own = all.iter_mut().skip(k).step_by(reals);
        match *how {
            KNOWN => {
                let known = known?;
                own.enumerate().for_each(|(i, x)| *x = known(i, k));
            }
            SAME => {
                let value = same.next()?;
                own.for_each(|x| *x = value);
            }
            _ => {
                own.enumerate().for_each(|(i, x)| *x = values[i * varying + column]);
                column += 1;
            }
        }
    }
    Some(all)
}
