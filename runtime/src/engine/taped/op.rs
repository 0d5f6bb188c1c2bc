//! What an interpreter does, operation by operation.

use crate::trace::{Binary, Unary};

/// The number of a register: reals, integers and truths have registers of their own.
pub(super) type Register = u16;

/// One operation, of which most write register `to`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Number {
        to: Register,
        value: f64,
    },
    Int {
        to: Register,
        value: i32,
    },
    Truth {
        to: Register,
        value: bool,
    },
    /// What is the same for all vertices.
    Given {
        to: Register,
        what: Given,
        k: u16,
    },
    Vertex {
        to: Register,
    },
    Shared {
        to: Register,
        k: u16,
    },
    Private {
        to: Register,
        k: u16,
    },
    /// Real `k` of vertex `other` of the present element of a loop.
    Other {
        to: Register,
        of: u16,
        other: u8,
        k: u16,
    },
    /// Four reals of it, from real `4 quad` on, which go to registers side by side.
    Quad {
        to: Register,
        of: u16,
        other: u8,
        quad: u8,
    },
    Data {
        to: Register,
        of: u16,
        k: u16,
    },
    Copy {
        to: Register,
        from: Register,
    },
    Real {
        op: Unary,
        to: Register,
        a: Register,
    },
    Add {
        to: Register,
        a: Register,
        b: Register,
    },
    Sub {
        to: Register,
        a: Register,
        b: Register,
    },
    Mul {
        to: Register,
        a: Register,
        b: Register,
    },
    Div {
        to: Register,
        a: Register,
        b: Register,
    },
    /// `a b + c`, rounded twice.
    MulAdd {
        to: Register,
        a: Register,
        b: Register,
        c: Register,
    },
    /// `c + a b`.
    AddMul {
        to: Register,
        a: Register,
        b: Register,
        c: Register,
    },
    /// `a b - c`.
    MulSub {
        to: Register,
        a: Register,
        b: Register,
        c: Register,
    },
    /// `c - a b`.
    SubMul {
        to: Register,
        a: Register,
        b: Register,
        c: Register,
    },
    /// Any other of two reals.
    Reals {
        op: Binary,
        to: Register,
        a: Register,
        b: Register,
    },
    Less {
        to: Register,
        a: Register,
        b: Register,
    },
    AtMost {
        to: Register,
        a: Register,
        b: Register,
    },
    Equals {
        to: Register,
        a: Register,
        b: Register,
    },
    Select {
        to: Register,
        mask: Register,
        yes: Register,
        no: Register,
    },
    /// From an integer to a real.
    FromInt {
        to: Register,
        a: Register,
    },
    Hold {
        to: Register,
        a: Register,
    },
    /// Of integers.
    IntUnary {
        op: Unary,
        to: Register,
        a: Register,
    },
    IntBinary {
        op: Binary,
        to: Register,
        a: Register,
        b: Register,
    },
    IntCompare {
        op: Binary,
        to: Register,
        a: Register,
        b: Register,
    },
    IntSelect {
        to: Register,
        mask: Register,
        yes: Register,
        no: Register,
    },
    Not {
        to: Register,
        a: Register,
    },
    And {
        to: Register,
        a: Register,
        b: Register,
    },
    Or {
        to: Register,
        a: Register,
        b: Register,
    },
    /// Loop number `of` begins; the operations of its body follow.
    Fold {
        of: u16,
    },
    /// They end: the next element, if there is one.
    Next {
        of: u16,
    },
}

impl Op {
    /// The real register that it writes, if it writes one.
    pub(super) fn real_to(&mut self) -> Option<&mut Register> {
        match self {
            Op::Real { op: Unary::ToInt | Unary::Held, .. } => None,
            Op::Real { to, .. }
            | Op::Number { to, .. }
            | Op::Given { to, .. }
            | Op::Vertex { to }
            | Op::Shared { to, .. }
            | Op::Private { to, .. }
            | Op::Other { to, .. }
            | Op::Data { to, .. }
            | Op::Copy { to, .. }
            | Op::Add { to, .. }
            | Op::Sub { to, .. }
            | Op::Mul { to, .. }
            | Op::Div { to, .. }
            | Op::MulAdd { to, .. }
            | Op::AddMul { to, .. }
            | Op::MulSub { to, .. }
            | Op::SubMul { to, .. }
            | Op::Reals { to, .. }
            | Op::Select { to, .. }
            | Op::FromInt { to, .. }
            | Op::Hold { to, .. } => Some(to),
            _ => None,
        }
    }

    /// Whether it writes a real register.
    pub(super) fn writes(&mut self, real: Register) -> bool {
        match *self {
            Op::Quad { to, .. } => (to..to + 4).contains(&real),
            _ => self.real_to().is_some_and(|to| *to == real),
        }
    }

    /// Whether it reads a real register; of a loop that is not known here.
    pub(super) fn may_read(&self, real: Register) -> bool {
        match *self {
            Op::Fold { .. } | Op::Next { .. } => true,
            Op::Copy { from, .. } => from == real,
            Op::Real { a, .. } => a == real,
            Op::Add { a, b, .. }
            | Op::Sub { a, b, .. }
            | Op::Mul { a, b, .. }
            | Op::Div { a, b, .. }
            | Op::Reals { a, b, .. }
            | Op::Less { a, b, .. }
            | Op::AtMost { a, b, .. }
            | Op::Equals { a, b, .. } => a == real || b == real,
            Op::MulAdd { a, b, c, .. }
            | Op::AddMul { a, b, c, .. }
            | Op::MulSub { a, b, c, .. }
            | Op::SubMul { a, b, c, .. } => a == real || b == real || c == real,
            Op::Select { yes, no, .. } => yes == real || no == real,
            _ => false,
        }
    }
}

/// What a kernel is given for all vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Given {
    Parameters,
    Globals,
    Settings,
    Step,
    Draw,
}

/// A loop over the elements around a vertex.
#[derive(Clone, Debug, Default)]
pub(super) struct Loop {
    pub(super) star: usize,
    /// Other vertices of an element.
    pub(super) others: usize,
    /// Where it gathers, what it begins with, and what is gathered after an element.
    pub(super) gathered: Vec<Register>,
    pub(super) init: Vec<Register>,
    pub(super) next: Vec<Register>,
    /// Where what it had gathered is kept from elements that some vertices do not have.
    pub(super) kept: Vec<Register>,
    /// The first operation of its body, and the one behind it.
    pub(super) begin: usize,
    pub(super) end: usize,
}
