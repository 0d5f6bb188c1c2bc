//! What an exact tape does, as a list of operations on registers.

use super::op::{Given, Loop, Op, Register};
use crate::trace::{Binary, Event, Fold, Id, Input, Node, Order, Tape, Type, Unary};
use std::collections::BTreeMap;

/// A kernel as operations on registers.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    /// What depends on no vertex.
    pub(super) once: Vec<Op>,
    pub(super) body: Vec<Op>,
    pub(super) loops: Vec<Loop>,
    /// Real registers; of a test a register of truths.
    pub(super) outputs: Vec<Register>,
    /// Registers of reals, integers and truths.
    pub(super) registers: [usize; 3],
}

impl Listing {
    /// What computes `outputs`. `has_quads`: shared reals of a vertex lie in fours.
    ///
    /// # Errors
    /// More values at a time than registers have numbers.
    pub(crate) fn new(tape: &Tape, outputs: &[Id], has_quads: bool) -> Result<Listing, String> {
        let is_far = |id| matches!(tape.node(id), Node::Input(_, k) if k > usize::from(u16::MAX));
        if tape.folds.len() > usize::from(u16::MAX) || (0..tape.len()).any(is_far) {
            return Err("reads numbers, or has loops, beyond those that operations of an interpreter can name".into());
        }
        let mut order = Order::of(tape, outputs);
        order.find_last_uses(outputs);
        let mut writer = Writer::new(&order, has_quads);
        let mut listing = Listing {
            once: Vec::new(),
            body: Vec::new(),
            loops: vec![Loop::default(); tape.folds.len()],
            outputs: Vec::new(),
            registers: [0; 3],
        };
        for &id in &order.once {
            writer.write(id, &mut listing.once);
        }
        writer.events(&order.body, &mut listing.body, &mut listing.loops);
        listing.outputs = outputs.iter().map(|&id| writer.register(id)).collect();
        listing.registers = writer.pools.map(|pool| pool.count);
        match listing.registers.iter().max() {
            Some(&most) if most <= usize::from(Register::MAX) => Ok(listing),
            _ => Err("has more values at a time than an interpreter has registers".into()),
        }
    }
}

impl Listing {
    /// Numbers that it comes to.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs.len()
    }
}

/// Registers of one kind.
#[derive(Default)]
struct Pool {
    free: Vec<Register>,
    count: usize,
}

impl Pool {
    /// Four side by side.
    fn take_four(&mut self) -> Register {
        self.count += 4;
        (self.count - 4).min(usize::from(Register::MAX) - 4) as Register
    }

    fn take(&mut self) -> Register {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            (self.count - 1).min(usize::from(Register::MAX)) as Register
        })
    }
}

/// Has what a loop gathers next written where it is gathered, if nothing behind that reads what was there before.
fn gather_in_place(body: &mut [Op], next: &mut Register, gathered: Register) {
    let Some(at) = body.iter_mut().rposition(|op| op.writes(*next)) else { return };
    if body[at].real_to().is_none() || body[at + 1..].iter().any(|op| op.may_read(gathered) || op.may_read(*next)) {
        return;
    }
    *body[at].real_to().expect("it was found by that") = gathered;
    *next = gathered;
}

/// Gives values registers, and writes operations.
struct Writer<'a> {
    order: &'a Order<'a>,
    /// Values that are reals of one quad of another vertex: by loop, vertex and quad, which of the four each is.
    others: BTreeMap<(usize, usize, usize), Vec<(usize, Id)>>,
    pools: [Pool; 3],
    /// The register of a value that has one.
    of: Vec<Option<Register>>,
    gathered: Vec<Vec<Register>>,
    /// Values, and registers of loops, that hold a register until an event is over.
    held: Vec<(usize, usize, Register)>,
    at: usize,
}

impl<'a> Writer<'a> {
    fn new(order: &'a Order<'a>, has_quads: bool) -> Writer<'a> {
        let mut others = BTreeMap::new();
        for id in (0..order.tape.len()).filter(|&id| has_quads && order.is_wanted[id as usize]) {
            if let Node::Input(Input::Other { fold, other }, k) = order.tape.node(id) {
                others.entry((fold, other, k / 4)).or_insert_with(Vec::new).push((k % 4, id));
            }
        }
        let of = vec![None; order.tape.len() as usize];
        let gathered = vec![Vec::new(); order.tape.folds.len()];
        Writer { order, others, pools: Default::default(), of, gathered, held: Vec::new(), at: 0 }
    }

    fn pool(&self, id: Id) -> usize {
        match self.order.tape.type_of(id) {
            Type::Real => 0,
            Type::Integer => 1,
            Type::Truth => 2,
        }
    }

    fn register(&self, id: Id) -> Register {
        match self.order.tape.node(id) {
            Node::Gathered { fold, k } | Node::Result { fold, k } => self.gathered[fold][k],
            _ => self.of[id as usize].expect("a value is computed before it is used"),
        }
    }

    /// Frees what nobody needs after the present event.
    fn release(&mut self) {
        let (at, pools) = (self.at, &mut self.pools);
        self.held.retain(|&(last, pool, register)| {
            if last <= at {
                pools[pool].free.push(register);
            }
            last > at
        });
    }

    fn events(&mut self, events: &[Event], ops: &mut Vec<Op>, loops: &mut [Loop]) {
        for event in events {
            self.at += 1;
            match event {
                &Event::Value(id) => {
                    self.write(id, ops);
                    self.release();
                }
                Event::Fold(fold, inner) => {
                    let tape = self.order.tape;
                    let its = &tape.folds[*fold];
                    let init = its.init.iter().map(|&id| self.register(id)).collect();
                    let mut take = || -> Vec<Register> { its.init.iter().map(|_| self.pools[0].take()).collect() };
                    let (gathered, kept) = (take(), take());
                    self.gathered[*fold] = gathered.clone();
                    let last = self.order.last_of_fold[*fold];
                    self.held.extend(gathered.iter().map(|&register| (last, 0, register)));
                    ops.push(Op::Fold { of: *fold as u16 });
                    let begin = ops.len();
                    self.events(inner, ops, loops);
                    self.at += 1;
                    self.held.extend(kept.iter().map(|&register| (self.at, 0, register)));
                    // What becomes another of the gathered is saved from being overwritten first.
                    let next = its.next.iter().enumerate().map(|(k, &id)| match tape.node(id) {
                        Node::Gathered { fold: own, k: other } if own == *fold && other != k => {
                            let to = self.pools[0].take();
                            self.held.push((self.at, 0, to));
                            ops.push(Op::Copy { to, from: self.register(id) });
                            to
                        }
                        _ => self.register(id),
                    });
                    let mut next: Vec<Register> = next.collect();
                    for k in 0..next.len() {
                        let is_its_own = tape.scope(its.next[k]) == Some(*fold)
                            && its.next.iter().filter(|&&id| id == its.next[k]).count() == 1;
                        if is_its_own && !matches!(tape.node(its.next[k]), Node::Gathered { .. } | Node::Result { .. })
                        {
                            gather_in_place(&mut ops[begin..], &mut next[k], gathered[k]);
                        }
                    }
                    ops.push(Op::Next { of: *fold as u16 });
                    let end = ops.len();
                    let Fold { star, others, .. } = *its;
                    loops[*fold] = Loop { star, others, gathered, init, next, kept, begin, end };
                    self.release();
                }
            }
        }
    }

    /// Writes the operation of a value, which gets a register.
    fn write(&mut self, id: Id, ops: &mut Vec<Op>) {
        // It came with another of its quad.
        if self.of[id as usize].is_some() {
            return;
        }
        if let Node::Input(Input::Other { fold, other }, k) = self.order.tape.node(id)
            && let Some(parts) = self.others.remove(&(fold, other, k / 4)).filter(|parts| parts.len() > 1)
        {
            let to = self.pools[0].take_four();
            for part in 0..4 {
                let own = parts.iter().find(|(of, _)| *of == part);
                let last = own.map_or(self.at, |&(_, id)| self.order.last[id as usize]);
                self.held.push((last, 0, to + part as Register));
            }
            parts.iter().for_each(|&(part, id)| self.of[id as usize] = Some(to + part as Register));
            return ops.push(Op::Quad { to, of: fold as u16, other: other as u8, quad: (k / 4) as u8 });
        }
        let op = self.operation(id);
        match (op, ops.last().copied()) {
            // A product that only this reads.
            (Op::Add { to, a, b }, Some(Op::Mul { to: product, a: x, b: y }))
            | (Op::Sub { to, a, b }, Some(Op::Mul { to: product, a: x, b: y }))
                if (a == product) != (b == product) && self.is_last_use(product, id) =>
            {
                let c = if a == product { b } else { a };
                let is_sum = matches!(op, Op::Add { .. });
                let (a, b, is_first) = (x, y, a == product);
                ops.pop();
                ops.push(match (is_sum, is_first) {
                    (true, true) => Op::MulAdd { to, a, b, c },
                    (true, false) => Op::AddMul { to, a, b, c },
                    (false, true) => Op::MulSub { to, a, b, c },
                    (false, false) => Op::SubMul { to, a, b, c },
                });
            }
            _ => ops.push(op),
        }
    }

    /// Whether what a register holds is read for the last time by a value, of which it is an operand.
    fn is_last_use(&self, held: Register, by: Id) -> bool {
        let operand = self.order.tape.node(by).operands().find(|&id| self.register(id) == held);
        let is_used_once = |id: Id| self.order.last[id as usize] <= self.at;
        // Uses of what depends on no vertex are not counted.
        !self.order.is_uniform[by as usize] && operand.is_some_and(is_used_once)
    }

    /// The operation of a value, which gets a register.
    fn operation(&mut self, id: Id) -> Op {
        let (node, pool) = (self.order.tape.node(id), self.pool(id));
        let operands: Vec<Register> = node.operands().map(|operand| self.register(operand)).collect();
        let kind = node.operands().last().map_or(Type::Real, |operand| self.order.tape.type_of(operand));
        let to = self.pools[pool].take();
        self.of[id as usize] = Some(to);
        if !self.order.is_uniform[id as usize] {
            self.held.push((self.order.last[id as usize], pool, to));
        }
        let of = |k: usize| k as u16;
        match (node, &operands[..]) {
            (Node::Number(bits), _) => Op::Number { to, value: f64::from_bits(bits) },
            (Node::Literal(_, bits), _) => Op::Int { to, value: bits.cast_signed() },
            (Node::Truth(value), _) => Op::Truth { to, value },
            (Node::Input(input, k), _) => match input {
                Input::Parameters => Op::Given { to, what: Given::Parameters, k: of(k) },
                Input::Globals => Op::Given { to, what: Given::Globals, k: of(k) },
                Input::Settings => Op::Given { to, what: Given::Settings, k: of(k) },
                Input::Step => Op::Given { to, what: Given::Step, k: 0 },
                Input::Draw => Op::Given { to, what: Given::Draw, k: 0 },
                Input::Vertex => Op::Vertex { to },
                Input::Shared => Op::Shared { to, k: of(k) },
                Input::Private => Op::Private { to, k: of(k) },
                Input::Other { fold, other } => Op::Other { to, of: of(fold), other: other as u8, k: of(k) },
                Input::Data { fold } => Op::Data { to, of: of(fold), k: of(k) },
            },
            (Node::Unary(op, _), &[a]) => match (op, kind) {
                (Unary::FromInt, _) => Op::FromInt { to, a },
                (Unary::Hold, _) => Op::Hold { to, a },
                (Unary::Not, _) => Op::Not { to, a },
                (op, Type::Integer) => Op::IntUnary { op, to, a },
                (op, _) => Op::Real { op, to, a },
            },
            (Node::Binary(op, ..), &[a, b]) => match (kind, op) {
                (Type::Truth, Binary::BitOr) => Op::Or { to, a, b },
                (Type::Truth, _) => Op::And { to, a, b },
                (Type::Integer, Binary::Less | Binary::AtMost | Binary::Equals) => Op::IntCompare { op, to, a, b },
                (Type::Integer, op) => Op::IntBinary { op, to, a, b },
                (Type::Real, Binary::Add) => Op::Add { to, a, b },
                (Type::Real, Binary::Sub) => Op::Sub { to, a, b },
                (Type::Real, Binary::Mul) => Op::Mul { to, a, b },
                (Type::Real, Binary::Div) => Op::Div { to, a, b },
                (Type::Real, Binary::Less) => Op::Less { to, a, b },
                (Type::Real, Binary::AtMost) => Op::AtMost { to, a, b },
                (Type::Real, Binary::Equals) => Op::Equals { to, a, b },
                (Type::Real, op) => Op::Reals { op, to, a, b },
            },
            (Node::Select { .. }, &[mask, yes, no]) => match kind {
                Type::Integer => Op::IntSelect { to, mask, yes, no },
                _ => Op::Select { to, mask, yes, no },
            },
            _ => unreachable!("a loop is no value by itself"),
        }
    }
}
