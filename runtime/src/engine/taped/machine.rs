//! Runs a listing on registers.

use super::listing::{Given, Listing, Loop, Op};
use crate::number::{Integer, Number, Real, array};
use crate::program::Uniform;
use crate::trace::{Binary, Unary};

/// Where `B` vertices, or groups of them, of which none reads another, find what they read. A kernel asks for what its role has.
pub(crate) trait Site<R: Real, const B: usize> {
    /// What is the same for all.
    fn given(&self, what: Given, k: usize) -> R {
        unreachable!("real {k} of {what:?} is read once for all vertices")
    }
    /// Real `k` of their own shared state.
    fn shared(&self, k: usize) -> [R; B] {
        unreachable!("{NOWHERE}: shared real {k}")
    }
    /// Of their private state.
    fn private(&self, k: usize) -> [R; B] {
        unreachable!("{NOWHERE}: private real {k}")
    }
    /// Their numbers along the curve, as a real holds them.
    fn vertex(&self) -> [R; B] {
        unreachable!("{NOWHERE}: its number")
    }
    /// Columns of a star, and those in which all vertices have an element. `others`: other vertices of each.
    fn columns(&self, star: usize, others: usize) -> (usize, usize) {
        unreachable!("{NOWHERE}: star {star} of {others} others")
    }
    /// Which vertices have an element `j`.
    fn has(&self, star: usize, j: usize) -> [R::Mask; B] {
        unreachable!("{NOWHERE}: element {j} of star {star}")
    }
    /// Real `k` of other vertex `other` of element `j`; anything where there is none.
    fn other(&self, star: usize, j: usize, other: usize, k: usize) -> [R; B] {
        unreachable!("{NOWHERE}: real {k} of other {other} of element {j} of star {star}")
    }
    /// Real `k` of the data of element `j`; anything where there is none.
    fn data(&self, star: usize, j: usize, k: usize) -> [R; B] {
        unreachable!("{NOWHERE}: datum {k} of element {j} of star {star}")
    }
}

const NOWHERE: &str = "this kernel looks at no vertex";

/// What is given to all vertices. `splat`: a number in every lane.
struct Once<'a, T, F> {
    uniform: &'a Uniform<T>,
    round: u32,
    splat: F,
}

impl<T: Number, R: Real, F: Fn(T) -> R, const B: usize> Site<R, B> for Once<'_, T, F> {
    fn given(&self, what: Given, k: usize) -> R {
        let [step, draw] = self.uniform.counters(self.round);
        (self.splat)(match what {
            Given::Parameters => self.uniform.parameters[k],
            Given::Globals => self.uniform.globals[k],
            Given::Settings => self.uniform.settings[k],
            Given::Step => step,
            Given::Draw => draw,
        })
    }
}

/// Registers of `B` numbers, or packs of them, and what runs on them.
pub(crate) struct Machine<'a, R: Real, const B: usize> {
    listing: &'a Listing,
    reals: Vec<[R; B]>,
    ints: Vec<[R::Int; B]>,
    truths: Vec<[R::Mask; B]>,
    /// The present element of each loop.
    elements: Vec<usize>,
}

impl<'a, R: Real, const B: usize> Machine<'a, R, B> {
    /// One for a listing, which has done what depends on no vertex. `splat`: a number in every lane; `round`: of the stage.
    pub(crate) fn new<T: Number>(
        listing: &'a Listing,
        uniform: &Uniform<T>,
        round: u32,
        splat: impl Fn(T) -> R,
    ) -> Machine<'a, R, B> {
        let [reals, ints, truths] = listing.registers;
        let zero = R::lit(0.0);
        let mut machine = Machine {
            listing,
            reals: vec![[zero; B]; reals],
            ints: vec![[<R::Int as Integer>::lit(0); B]; ints],
            truths: vec![[zero.less(zero); B]; truths],
            elements: vec![0; listing.loops.len()],
        };
        machine.ops(&listing.once, &Once { uniform, round, splat });
        machine
    }

    /// Runs the listing.
    pub(crate) fn visit(&mut self, site: &impl Site<R, B>) {
        self.ops(&self.listing.body, site);
    }

    /// Real `k` of what it came to.
    pub(crate) fn output(&self, k: usize) -> [R; B] {
        self.reals[usize::from(self.listing.outputs[k])]
    }

    /// What a test came to.
    pub(crate) fn truth(&self) -> [R::Mask; B] {
        self.truths[usize::from(self.listing.outputs[0])]
    }

    fn fold(&mut self, number: usize, site: &impl Site<R, B>) {
        let its: &'a Loop = &self.listing.loops[number];
        for (&to, &from) in its.gathered.iter().zip(&its.init) {
            self.reals[usize::from(to)] = self.reals[usize::from(from)];
        }
        let (columns, full) = site.columns(its.star, its.others);
        for j in 0..columns {
            self.elements[number] = j;
            self.ops(&its.body, site);
            let pairs = its.gathered.iter().zip(&its.next);
            if j < full {
                pairs.for_each(|(&to, &from)| self.reals[usize::from(to)] = self.reals[usize::from(from)]);
            } else {
                // Some vertices have no more: what they gathered stays as it is.
                let masks = site.has(its.star, j);
                pairs.for_each(|(&to, &from)| {
                    let [old, new] = [to, from].map(|register| self.reals[usize::from(register)]);
                    self.reals[usize::from(to)] = array(old[0], |i| R::select(masks[i], new[i], old[i]));
                });
            }
        }
    }

    fn ops(&mut self, ops: &'a [Op], site: &impl Site<R, B>) {
        macro_rules! each {
            // What some registers hold, one by one, comes to what another will hold.
            ($to:ident of $file:ident = |$($x:ident of $from:ident),*| $value:expr) => {{
                $(let $x = self.$from[usize::from($x)];)*
                let file = &mut self.$file[usize::from($to)];
                // A loop over what is there: the compiler does not inline the closure of `array::from_fn`.
                for i in 0..B {
                    $(let $x = $x[i];)*
                    file[i] = $value;
                }
            }};
        }
        for &op in ops {
            match op {
                Op::Add { to, a, b } => each!(to of reals = |a of reals, b of reals| a + b),
                Op::Sub { to, a, b } => each!(to of reals = |a of reals, b of reals| a - b),
                Op::Mul { to, a, b } => each!(to of reals = |a of reals, b of reals| a * b),
                Op::Div { to, a, b } => each!(to of reals = |a of reals, b of reals| a / b),
                Op::Other { to, of, other, k } => {
                    let of = usize::from(of);
                    let star = self.listing.loops[of].star;
                    self.reals[usize::from(to)] =
                        site.other(star, self.elements[of], usize::from(other), usize::from(k));
                }
                Op::Data { to, of, k } => {
                    let of = usize::from(of);
                    let star = self.listing.loops[of].star;
                    self.reals[usize::from(to)] = site.data(star, self.elements[of], usize::from(k));
                }
                Op::Select { to, mask, yes, no } => {
                    each!(to of reals = |mask of truths, yes of reals, no of reals| R::select(mask, yes, no));
                }
                Op::Less { to, a, b } => each!(to of truths = |a of reals, b of reals| a.less(b)),
                Op::AtMost { to, a, b } => each!(to of truths = |a of reals, b of reals| a.at_most(b)),
                Op::Equals { to, a, b } => each!(to of truths = |a of reals, b of reals| a.equals(b)),
                Op::Copy { to, from } => self.reals[usize::from(to)] = self.reals[usize::from(from)],
                Op::Number { to, value } => self.reals[usize::from(to)] = [R::lit(value); B],
                Op::Int { to, value } => self.ints[usize::from(to)] = [<R::Int as Integer>::lit(value); B],
                Op::Truth { to, value } => {
                    let zero = R::lit(0.0);
                    self.truths[usize::from(to)] = [if value { zero.equals(zero) } else { zero.less(zero) }; B];
                }
                Op::Given { to, what, k } => self.reals[usize::from(to)] = [site.given(what, usize::from(k)); B],
                Op::Shared { to, k } => self.reals[usize::from(to)] = site.shared(usize::from(k)),
                Op::Private { to, k } => self.reals[usize::from(to)] = site.private(usize::from(k)),
                Op::Vertex { to } => self.reals[usize::from(to)] = site.vertex(),
                Op::FromInt { to, a } => each!(to of reals = |a of ints| R::from_int(a)),
                Op::Hold { to, a } => each!(to of reals = |a of ints| R::hold_int(a)),
                Op::IntSelect { to, mask, yes, no } => {
                    each!(to of ints = |mask of truths, yes of ints, no of ints| Integer::select(mask, yes, no));
                }
                Op::Not { to, a } => each!(to of truths = |a of truths| !a),
                Op::And { to, a, b } => each!(to of truths = |a of truths, b of truths| a & b),
                Op::Or { to, a, b } => each!(to of truths = |a of truths, b of truths| a | b),
                Op::Real { op: Unary::ToInt, to, a } => each!(to of ints = |a of reals| a.to_int()),
                Op::Real { op: Unary::Held, to, a } => each!(to of ints = |a of reals| a.held_int()),
                Op::Real { op: Unary::Neg, to, a } => each!(to of reals = |a of reals| -a),
                Op::Real { op: Unary::Sqrt, to, a } => each!(to of reals = |a of reals| a.sqrt()),
                Op::Real { op, to, a } => each!(to of reals = |a of reals| unary(op, a)),
                Op::Reals { op, to, a, b } => each!(to of reals = |a of reals, b of reals| binary(op, a, b)),
                Op::IntUnary { op, to, a } => each!(to of ints = |a of ints| int_unary(op, a)),
                Op::IntBinary { op, to, a, b } => each!(to of ints = |a of ints, b of ints| int_binary(op, a, b)),
                Op::IntCompare { op, to, a, b } => each!(to of truths = |a of ints, b of ints| int_compare(op, a, b)),
                Op::Fold { of } => self.fold(usize::from(of), site),
            }
        }
    }
}

fn unary<R: Real>(op: Unary, x: R) -> R {
    match op {
        Unary::Neg => -x,
        Unary::Sqrt => x.sqrt(),
        Unary::Abs => x.abs(),
        Unary::Floor => x.floor(),
        Unary::Exp => x.exp(),
        Unary::Ln => x.ln(),
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Acos => x.acos(),
        Unary::Tanh => x.tanh(),
        other => unreachable!("{other:?} is no function of a real"),
    }
}

fn binary<R: Real>(op: Binary, x: R, y: R) -> R {
    match op {
        Binary::Pow => x.pow(y),
        Binary::Atan2 => x.atan2(y),
        Binary::Rem => x.rem(y),
        other => unreachable!("{other:?} is no function of two reals"),
    }
}

fn int_unary<I: Integer>(op: Unary, x: I) -> I {
    match op {
        Unary::Neg => -x,
        Unary::ShiftLeft(bits) => x.shift_left(bits.into()),
        Unary::ShiftRight(bits) => x.shift_right(bits.into()),
        Unary::ShiftRightLogical(bits) => x.shift_right_logical(bits.into()),
        other => unreachable!("{other:?} is no function of an integer"),
    }
}

fn int_binary<I: Integer>(op: Binary, x: I, y: I) -> I {
    match op {
        Binary::Add => x + y,
        Binary::Sub => x - y,
        Binary::Mul => x * y,
        Binary::BitAnd => x & y,
        Binary::BitOr => x | y,
        Binary::BitXor => x ^ y,
        other => unreachable!("{other:?} is no function of two integers"),
    }
}

fn int_compare<I: Integer>(op: Binary, x: I, y: I) -> I::Mask {
    match op {
        Binary::Less => x.less(y),
        Binary::AtMost => x.at_most(y),
        Binary::Equals => x.equals(y),
        other => unreachable!("{other:?} compares nothing"),
    }
}
