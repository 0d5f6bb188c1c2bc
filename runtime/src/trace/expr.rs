//! A number that is not known yet: what arithmetic on it did is on the tape.

use super::tape::{Binary, Id, Node, Tape, Unary};
use crate::number::sealed::Sealed;
use crate::number::{Integer, Real, TOO_FAR};
use crate::program::integers;
use meshweft_shaders::Scalar;
use num_traits::{One, Zero};
use std::cell::RefCell;
use std::ops::{Add, AddAssign, BitAnd, BitOr, BitXor, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

thread_local! { static TAPE: RefCell<Tape> = RefCell::new(Tape::new(Scalar::F32)) }

/// A real on the tape of this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expr(pub(super) Id);

/// An integer on the tape of this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntExpr(Id);

/// A truth value on the tape of this thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test(Id);

/// Works on the tape of this thread.
pub(super) fn with_tape<A>(work: impl FnOnce(&mut Tape) -> A) -> A {
    TAPE.with_borrow_mut(work)
}

/// Puts a node onto the tape, or finds it there.
pub(super) fn put(node: Node) -> Expr {
    Expr(id(node))
}

fn id(node: Node) -> Id {
    with_tape(|tape| tape.put(node))
}

macro_rules! operators {
    ($($type:ident: $($trait:ident $method:ident)*;)*) => {$($(
        impl $trait for $type {
            type Output = $type;
            fn $method(self, other: $type) -> $type {
                $type(id(Node::Binary(Binary::$trait, self.0, other.0)))
            }
        }
    )*)*};
}
operators! {
    Expr: Add add Sub sub Mul mul Div div;
    IntExpr: Add add Sub sub Mul mul BitAnd bitand BitOr bitor BitXor bitxor;
    Test: BitAnd bitand BitOr bitor;
}

macro_rules! assignments {
    ($($trait:ident $method:ident $op:tt;)*) => {$(
        impl $trait for Expr {
            fn $method(&mut self, other: Expr) {
                *self = *self $op other;
            }
        }
    )*};
}
assignments! {
    AddAssign add_assign +;
    SubAssign sub_assign -;
    MulAssign mul_assign *;
    DivAssign div_assign /;
}

impl Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        put(Node::Unary(Unary::Neg, self.0))
    }
}

impl Test {
    pub(super) fn id(self) -> Id {
        self.0
    }
}

impl Neg for IntExpr {
    type Output = IntExpr;
    fn neg(self) -> IntExpr {
        IntExpr(id(Node::Unary(Unary::Neg, self.0)))
    }
}

impl Not for Test {
    type Output = Test;
    fn not(self) -> Test {
        Test(id(Node::Unary(Unary::Not, self.0)))
    }
}

/// `nalgebra` needs it of its numbers, but nobody can know whether symbols are equal: only literals are.
impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        with_tape(|tape| tape.are_equal(self.0, other.0))
    }
}

impl Zero for Expr {
    fn zero() -> Expr {
        Expr::lit(0.0)
    }
    /// `nalgebra` asks this before it reads what it has not written yet: the literal zero must say so.
    fn is_zero(&self) -> bool {
        *self == Expr::lit(0.0)
    }
}

impl One for Expr {
    fn one() -> Expr {
        Expr::lit(1.0)
    }
}

impl Sealed for Expr {}
impl Sealed for IntExpr {}

macro_rules! functions {
    ($($function:ident $op:ident)*, $($binary:ident $binary_op:ident)*) => {
        $(fn $function(self) -> Expr {
            put(Node::Unary(Unary::$op, self.0))
        })*
        $(fn $binary(self, other: Expr) -> Expr {
            put(Node::Binary(Binary::$binary_op, self.0, other.0))
        })*
    };
}

macro_rules! comparisons {
    ($($function:ident $op:ident)*) => {
        $(fn $function(self, other: Self) -> Test {
            Test(id(Node::Binary(Binary::$op, self.0, other.0)))
        })*
        fn select(mask: Test, yes: Self, no: Self) -> Self {
            Self(id(Node::Select { mask: mask.0, yes: yes.0, no: no.0 }))
        }
    };
}

impl Real for Expr {
    type Mask = Test;
    type Int = IntExpr;
    fn lit(value: f64) -> Expr {
        Expr(with_tape(|tape| {
            let literal = tape.literal(value);
            tape.put(literal)
        }))
    }
    functions!(
        sqrt Sqrt abs Abs floor Floor exp Exp ln Ln sin Sin cos Cos acos Acos tanh Tanh,
        pow Pow atan2 Atan2 rem Rem
    );
    comparisons!(less Less at_most AtMost equals Equals);
    fn from_int(integer: IntExpr) -> Expr {
        put(Node::Unary(Unary::FromInt, integer.0))
    }
    fn to_int(self) -> IntExpr {
        IntExpr(id(Node::Unary(Unary::ToInt, self.0)))
    }
    fn hold_int(integer: IntExpr) -> Expr {
        put(Node::Unary(Unary::Hold, integer.0))
    }
    fn held_int(self) -> IntExpr {
        IntExpr(id(Node::Unary(Unary::Held, self.0)))
    }
}

integers! { Expr: IntExpr; }

impl Integer for IntExpr {
    type Mask = Test;
    fn lit(value: i32) -> IntExpr {
        IntExpr(with_tape(|tape| {
            let literal = tape.integer(value);
            tape.put(literal)
        }))
    }
    fn shift_left(self, bits: u32) -> IntExpr {
        self.shift(Unary::ShiftLeft, bits)
    }
    fn shift_right(self, bits: u32) -> IntExpr {
        self.shift(Unary::ShiftRight, bits)
    }
    fn shift_right_logical(self, bits: u32) -> IntExpr {
        self.shift(Unary::ShiftRightLogical, bits)
    }
    comparisons!(less Less at_most AtMost equals Equals);
}

impl IntExpr {
    fn shift(self, op: impl Fn(u8) -> Unary, bits: u32) -> IntExpr {
        assert!(bits < 32, "{TOO_FAR}");
        IntExpr(id(Node::Unary(op(bits as u8), self.0)))
    }
}
