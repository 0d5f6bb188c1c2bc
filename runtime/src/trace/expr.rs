//! A number that is not known yet: what arithmetic on it did is on the tape.

use super::tape::{Binary, Id, Node, Tape, Unary};
use crate::program::Real;
use meshweft_shaders::Scalar;
use num_traits::{One, Zero};
use std::cell::RefCell;
use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

thread_local! { static TAPE: RefCell<Tape> = RefCell::new(Tape::new(Scalar::F32)) }

/// A value on the tape of this thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Expr(pub(super) Id);

/// A truth value on the tape of this thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Test(Id);

/// Works on the tape of this thread.
pub(super) fn with_tape<A>(work: impl FnOnce(&mut Tape) -> A) -> A {
    TAPE.with_borrow_mut(work)
}

/// Puts a node onto the tape, or finds it there.
pub(super) fn put(node: Node) -> Expr {
    Expr(with_tape(|tape| tape.put(node)))
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:tt, $assign:ident $assign_method:ident;)*) => {$(
        impl $trait for Expr {
            type Output = Expr;
            fn $method(self, other: Expr) -> Expr {
                put(Node::Binary(Binary::$trait, self.0, other.0))
            }
        }
        impl $assign for Expr {
            fn $assign_method(&mut self, other: Expr) {
                *self = *self $op other;
            }
        }
    )*};
}
operators! {
    Add add +, AddAssign add_assign;
    Sub sub -, SubAssign sub_assign;
    Mul mul *, MulAssign mul_assign;
    Div div /, DivAssign div_assign;
}

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        put(Node::Unary(Unary::Neg, self.0))
    }
}

impl BitAnd for Test {
    type Output = Test;
    fn bitand(self, other: Test) -> Test {
        Test(put(Node::Binary(Binary::And, self.0, other.0)).0)
    }
}

impl BitOr for Test {
    type Output = Test;
    fn bitor(self, other: Test) -> Test {
        Test(put(Node::Binary(Binary::Or, self.0, other.0)).0)
    }
}

impl Not for Test {
    type Output = Test;
    fn not(self) -> Test {
        Test(put(Node::Unary(Unary::Not, self.0)).0)
    }
}

impl Zero for Expr {
    fn zero() -> Expr {
        Expr::lit(0.0)
    }
    /// `nalgebra` asks this before it reads what it has not written yet: the literal zero must say so.
    fn is_zero(&self) -> bool {
        with_tape(|tape| tape.node(self.0) == tape.literal(0.0))
    }
}

impl One for Expr {
    fn one() -> Expr {
        Expr::lit(1.0)
    }
}

impl Real for Expr {
    type Mask = Test;
    fn lit(value: f64) -> Expr {
        Expr(with_tape(|tape| {
            let literal = tape.literal(value);
            tape.put(literal)
        }))
    }
    fn sqrt(self) -> Expr {
        put(Node::Unary(Unary::Sqrt, self.0))
    }
    fn abs(self) -> Expr {
        put(Node::Unary(Unary::Abs, self.0))
    }
    fn exp(self) -> Expr {
        put(Node::Unary(Unary::Exp, self.0))
    }
    fn sin(self) -> Expr {
        put(Node::Unary(Unary::Sin, self.0))
    }
    fn cos(self) -> Expr {
        put(Node::Unary(Unary::Cos, self.0))
    }
    fn less(self, other: Expr) -> Test {
        Test(put(Node::Binary(Binary::Less, self.0, other.0)).0)
    }
    fn select(mask: Test, yes: Expr, no: Expr) -> Expr {
        put(Node::Select { mask: mask.0, yes: yes.0, no: no.0 })
    }
}
