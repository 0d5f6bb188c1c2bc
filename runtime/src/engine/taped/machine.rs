//! Runs a listing on registers.

use super::listing::Listing;
use super::op::{Given, Loop, Op, Register};
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
    fn shared(&self, k: usize, to: &mut [R; B]) {
        let _ = to;
        unreachable!("{NOWHERE}: shared real {k}")
    }
    /// Of their private state.
    fn private(&self, k: usize, to: &mut [R; B]) {
        let _ = to;
        unreachable!("{NOWHERE}: private real {k}")
    }
    /// Their numbers along the curve, as a real holds them.
    fn vertex(&self, to: &mut [R; B]) {
        let _ = to;
        unreachable!("{NOWHERE}: its number")
    }
    /// Where the elements of a star begin, how many columns there are, and in how many all vertices have one. `others`: other vertices of each.
    fn begin(&self, star: usize, others: usize) -> (Cursor<B>, usize, usize) {
        unreachable!("{NOWHERE}: star {star} of {others} others")
    }
    /// Which vertices have an element `j`.
    fn has(&self, star: usize, j: usize) -> [R::Mask; B] {
        unreachable!("{NOWHERE}: element {j} of star {star}")
    }
    /// Real `k` of other vertex `other` of element `j`; anything where there is none.
    fn other(&self, star: usize, at: &Cursor<B>, j: usize, (other, k): (usize, usize), to: &mut [R; B]) {
        let _ = (at, to);
        unreachable!("{NOWHERE}: real {k} of other {other} of element {j} of star {star}")
    }
    /// Four reals of it, from real `4 quad` on.
    fn quad(&self, star: usize, at: &Cursor<B>, j: usize, (other, quad): (usize, usize), to: &mut [[R; B]]) {
        let _ = (at, to);
        unreachable!("{NOWHERE}: quad {quad} of other {other} of element {j} of star {star}")
    }
    /// Real `k` of the data of element `j`; anything where there is none.
    fn data(&self, star: usize, at: &Cursor<B>, j: usize, k: usize, to: &mut [R; B]) {
        let _ = (at, to);
        unreachable!("{NOWHERE}: datum {k} of element {j} of star {star}")
    }
}

/// The first column of each group in the lists of a star, and how many it has.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<const B: usize> {
    pub(crate) first: [u32; B],
    pub(crate) columns: [u32; B],
    /// A group that has most.
    pub(crate) longest: usize,
}

impl<const B: usize> Cursor<B> {
    /// The column of element `j` of group `i`; where there is none, that of the group that has most: what is read there is thrown away, but it must
    /// be at rest.
    #[inline(always)]
    pub(crate) fn column(&self, i: usize, j: usize) -> usize {
        let group = if (j as u32) < self.columns[i] { i } else { self.longest };
        self.first[group] as usize + j
    }
}

/// How far a loop is.
#[derive(Clone, Copy)]
struct Turn<const B: usize> {
    at: Cursor<B>,
    /// The present element.
    j: usize,
    columns: usize,
    /// Columns in which all vertices have an element.
    full: usize,
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

impl<const B: usize> Turn<B> {
    fn none() -> Turn<B> {
        Turn { at: Cursor { first: [0; B], columns: [0; B], longest: 0 }, j: 0, columns: 0, full: 0 }
    }
}

/// Registers of `B` numbers, or packs of them, and what runs on them.
pub(crate) struct Machine<'a, R: Real, const B: usize> {
    listing: &'a Listing,
    reals: Vec<[R; B]>,
    ints: Vec<[R::Int; B]>,
    truths: Vec<[R::Mask; B]>,
    turns: Vec<Turn<B>>,
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
            turns: vec![Turn::none(); listing.loops.len()],
        };
        machine.ops(&listing.once, &Once { uniform, round, splat });
        machine
    }

    /// Runs the listing.
    pub(crate) fn visit(&mut self, site: &impl Site<R, B>) {
        self.ops(&self.listing.body, site);
    }

    /// Real `k` of what it came to.
    #[inline(always)]
    pub(crate) fn real(&self, k: usize) -> &[R; B] {
        &self.reals[usize::from(self.listing.outputs[k])]
    }

    /// What a test came to.
    pub(crate) fn truth(&self) -> [R::Mask; B] {
        self.truths[usize::from(self.listing.outputs[0])]
    }

    fn copy(&mut self, to: &[Register], from: &[Register]) {
        for (&to, &from) in to.iter().zip(from) {
            self.reals[usize::from(to)] = self.reals[usize::from(from)];
        }
    }

    /// Begins a loop. Returns the operation to go on with.
    fn begin(&mut self, number: usize, site: &impl Site<R, B>) -> usize {
        let its: &'a Loop = &self.listing.loops[number];
        self.copy(&its.gathered, &its.init);
        let (at, columns, full) = site.begin(its.star, its.others);
        self.turns[number] = Turn { at, j: 0, columns, full };
        if columns == 0 {
            return its.end;
        }
        if full == 0 {
            self.copy(&its.kept, &its.gathered);
        }
        its.begin
    }

    /// Ends an element of a loop. Returns the operation to go on with.
    fn next(&mut self, number: usize, site: &impl Site<R, B>) -> usize {
        let its: &'a Loop = &self.listing.loops[number];
        let Turn { j, columns, full, .. } = self.turns[number];
        if j < full {
            for (&to, &from) in its.gathered.iter().zip(&its.next) {
                if to != from {
                    self.reals[usize::from(to)] = self.reals[usize::from(from)];
                }
            }
        } else {
            // Some vertices have no more: what they gathered stays as it is.
            let masks = site.has(its.star, j);
            for ((&to, &from), &kept) in its.gathered.iter().zip(&its.next).zip(&its.kept) {
                let [old, new] = [kept, from].map(|register| self.reals[usize::from(register)]);
                self.reals[usize::from(to)] = array(old[0], |i| R::select(masks[i], new[i], old[i]));
            }
        }
        self.turns[number].j = j + 1;
        if j + 1 == columns {
            return its.end;
        }
        if j + 1 >= full {
            self.copy(&its.kept, &its.gathered);
        }
        its.begin
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
        let mut at = 0;
        while let Some(&op) = ops.get(at) {
            at += 1;
            match op {
                Op::Add { to, a, b } => each!(to of reals = |a of reals, b of reals| a + b),
                Op::Sub { to, a, b } => each!(to of reals = |a of reals, b of reals| a - b),
                Op::Mul { to, a, b } => each!(to of reals = |a of reals, b of reals| a * b),
                Op::Div { to, a, b } => each!(to of reals = |a of reals, b of reals| a / b),
                Op::MulAdd { to, a, b, c } => each!(to of reals = |a of reals, b of reals, c of reals| a * b + c),
                Op::AddMul { to, a, b, c } => each!(to of reals = |a of reals, b of reals, c of reals| c + a * b),
                Op::MulSub { to, a, b, c } => each!(to of reals = |a of reals, b of reals, c of reals| a * b - c),
                Op::SubMul { to, a, b, c } => each!(to of reals = |a of reals, b of reals, c of reals| c - a * b),
                Op::Other { to, of, other, k } => {
                    let turn = &self.turns[usize::from(of)];
                    let star = self.listing.loops[usize::from(of)].star;
                    let real = (usize::from(other), usize::from(k));
                    site.other(star, &turn.at, turn.j, real, &mut self.reals[usize::from(to)]);
                }
                Op::Quad { to, of, other, quad } => {
                    let turn = &self.turns[usize::from(of)];
                    let star = self.listing.loops[usize::from(of)].star;
                    let quad = (usize::from(other), usize::from(quad));
                    site.quad(star, &turn.at, turn.j, quad, &mut self.reals[usize::from(to)..][..4]);
                }
                Op::Data { to, of, k } => {
                    let turn = &self.turns[usize::from(of)];
                    let star = self.listing.loops[usize::from(of)].star;
                    site.data(star, &turn.at, turn.j, usize::from(k), &mut self.reals[usize::from(to)]);
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
                Op::Shared { to, k } => site.shared(usize::from(k), &mut self.reals[usize::from(to)]),
                Op::Private { to, k } => site.private(usize::from(k), &mut self.reals[usize::from(to)]),
                Op::Vertex { to } => site.vertex(&mut self.reals[usize::from(to)]),
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
                Op::Fold { of } => at = self.begin(usize::from(of), site),
                Op::Next { of } => at = self.next(usize::from(of), site),
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
