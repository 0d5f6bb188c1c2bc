//! A number type that computes nothing and records everything: what shaders will be traced with.

use meshweft::Real;
use num_traits::{One, Zero};
use std::cell::RefCell;
use std::ops::{Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign};

thread_local! { static TAPE: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) } }

/// A line of the tape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Symbol(u32);

impl Symbol {
    /// Appends a line.
    pub fn record(text: String) -> Symbol {
        TAPE.with_borrow_mut(|tape| {
            tape.push(text);
            Symbol(tape.len() as u32 - 1)
        })
    }

    /// The name under which later lines know this one.
    pub fn name(self) -> String {
        format!("e{}", self.0)
    }
}

/// Takes the tape: line `k` defines the symbol `ek`.
pub fn take_tape() -> Vec<String> {
    TAPE.take()
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:literal),*) => {$(
        impl $trait for Symbol {
            type Output = Symbol;
            fn $method(self, other: Symbol) -> Symbol {
                Symbol::record(format!("{} {} {}", self.name(), $op, other.name()))
            }
        }
    )*};
    (assign $($trait:ident $method:ident $op:tt),*) => {$(
        impl $trait for Symbol {
            fn $method(&mut self, other: Symbol) {
                *self = *self $op other;
            }
        }
    )*};
}
operators!(Add add "+", Sub sub "-", Mul mul "*", Div div "/", BitAnd bitand "&", BitOr bitor "|");
operators!(assign AddAssign add_assign +, SubAssign sub_assign -, MulAssign mul_assign *, DivAssign div_assign /);

impl Neg for Symbol {
    type Output = Symbol;
    fn neg(self) -> Symbol {
        Symbol::record(format!("-{}", self.name()))
    }
}

impl Not for Symbol {
    type Output = Symbol;
    fn not(self) -> Symbol {
        Symbol::record(format!("!{}", self.name()))
    }
}

impl Zero for Symbol {
    fn zero() -> Symbol {
        Symbol::lit(0.0)
    }
    /// `nalgebra` asks this before it reads what it has not written yet: the literal zero must say so.
    fn is_zero(&self) -> bool {
        TAPE.with_borrow(|tape| tape[self.0 as usize] == "0.0")
    }
}

impl One for Symbol {
    fn one() -> Symbol {
        Symbol::lit(1.0)
    }
}

impl Real for Symbol {
    type Mask = Symbol;
    fn lit(value: f64) -> Symbol {
        Symbol::record(format!("{value:?}"))
    }
    fn sqrt(self) -> Symbol {
        Symbol::record(format!("sqrt({})", self.name()))
    }
    fn abs(self) -> Symbol {
        Symbol::record(format!("abs({})", self.name()))
    }
    fn exp(self) -> Symbol {
        Symbol::record(format!("exp({})", self.name()))
    }
    fn sin(self) -> Symbol {
        Symbol::record(format!("sin({})", self.name()))
    }
    fn cos(self) -> Symbol {
        Symbol::record(format!("cos({})", self.name()))
    }
    fn less(self, other: Symbol) -> Symbol {
        Symbol::record(format!("{} < {}", self.name(), other.name()))
    }
    fn select(mask: Symbol, yes: Symbol, no: Symbol) -> Symbol {
        Symbol::record(format!("select({}, {}, {})", no.name(), yes.name(), mask.name()))
    }
}
