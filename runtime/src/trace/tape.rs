//! The tape: every value that an update computes, once.
//!
//! One for a shader is of a precision: what is known is worked out, and what changes nothing but the sign of a zero is left out. An
//! *exact* one is of any precision, and has every operation of the program: run with numbers it has its bits.

use crate::number::{Int, Integer, Real};
use meshweft_shaders::Scalar;
use std::collections::BTreeMap;

/// The place of a node on the tape.
pub(crate) type Id = u32;

/// What a value is. Where the reals of a program are integers, its integers are [`Type::Real`] too.
#[cfg_attr(feature = "cluster", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// A number of the program's precision.
    Real,
    /// One of 32 bits.
    Integer,
    /// True or false.
    Truth,
}

impl Type {
    /// As messages say it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Real => "a real",
            Type::Integer => "an integer",
            Type::Truth => "a truth value",
        }
    }
}

/// One value. Those that it is computed from are earlier on the tape.
#[cfg_attr(feature = "cluster", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    /// A constant, by its bits: two zeros are two constants.
    Literal(Type, u32),
    /// A constant of an exact tape, by the bits of its 64: each precision rounds it.
    Number(u64),
    Truth(bool),
    /// Real `k` of what is given.
    Input(Input, usize),
    /// What fold number `fold` has gathered so far: real `k`.
    Gathered {
        fold: usize,
        k: usize,
    },
    /// What it has gathered in the end.
    Result {
        fold: usize,
        k: usize,
    },
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    Select {
        mask: Id,
        yes: Id,
        no: Id,
    },
}

/// What a kernel is given.
#[cfg_attr(feature = "cluster", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Input {
    /// Parameters of the program.
    Parameters,
    /// What earlier stages measured and computed.
    Globals,
    /// Settings of the kernel.
    Settings,
    /// The number of the vertex along the curve, as a real holds an integer.
    Vertex,
    /// Steps taken so far, likewise.
    Step,
    /// What random numbers are drawn by, likewise.
    Draw,
    /// What neighbors read of the vertex.
    Shared,
    /// The rest of its state.
    Private,
    /// Shared state of the other vertex number `other` of the present element.
    Other {
        /// The fold.
        fold: usize,
        /// Which vertex.
        other: usize,
    },
    /// Data of the present element.
    Data {
        /// The fold.
        fold: usize,
    },
}

/// A function of one value.
#[allow(missing_docs, reason = "functions have the names of their methods in `Real` and `Integer`")]
#[cfg_attr(feature = "cluster", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unary {
    Neg,
    Not,
    Sqrt,
    Abs,
    Floor,
    Exp,
    Ln,
    Sin,
    Cos,
    Acos,
    Tanh,
    /// The real nearest to an integer.
    FromInt,
    /// The integer of a real.
    ToInt,
    /// An integer put into the slot of a real.
    Hold,
    /// The integer in the slot of a real.
    Held,
    ShiftLeft(u8),
    ShiftRight(u8),
    ShiftRightLogical(u8),
}

/// A function of two values.
#[allow(missing_docs, reason = "functions have the names of their methods in `Real` and `Integer`")]
#[cfg_attr(feature = "cluster", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Atan2,
    Rem,
    Less,
    AtMost,
    Equals,
    BitAnd,
    BitOr,
    BitXor,
}

/// A loop over the elements around the vertex.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fold {
    /// Which star, and the name of its type.
    pub(crate) star: usize,
    pub(super) name: String,
    /// Other vertices of each element.
    pub(crate) others: usize,
    /// Names of the leaves that are gathered.
    pub(super) names: Vec<String>,
    /// What they are.
    pub(super) types: Vec<Type>,
    pub(crate) init: Vec<Id>,
    /// What is gathered after the present element.
    pub(crate) next: Vec<Id>,
    /// The fold inside of which this one stands.
    pub(crate) parent: Option<usize>,
    /// Nodes on the tape when it was closed: all that its body needs comes before.
    pub(crate) end: Id,
}

/// All values of one update, each once: an equal node is the same node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tape {
    /// What its numbers are, unless it is exact.
    pub(super) scalar: Scalar,
    is_exact: bool,
    nodes: Vec<Node>,
    types: Vec<Type>,
    /// The innermost fold whose present element a value depends on.
    scopes: Vec<Option<usize>>,
    places: BTreeMap<Node, Id>,
    pub(crate) folds: Vec<Fold>,
    /// Folds whose body is being recorded, outermost first.
    open: Vec<usize>,
    /// What the program must not do, if it did.
    fault: Option<&'static str>,
}

/// A number that a literal can be.
trait Constant: Real<Mask = bool, Int = Int> + PartialEq {
    fn bits(self) -> u32;
    fn of_bits(bits: u32) -> Self;
}

impl Constant for f32 {
    fn bits(self) -> u32 {
        self.to_bits()
    }
    fn of_bits(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
}

impl Constant for Int {
    fn bits(self) -> u32 {
        self.0.cast_unsigned()
    }
    fn of_bits(bits: u32) -> Int {
        Int(bits.cast_signed())
    }
}

impl Node {
    fn value<C: Constant>(self) -> Option<C> {
        match self {
            Node::Literal(_, bits) => Some(C::of_bits(bits)),
            _ => None,
        }
    }

    /// The values it is computed from, without those that pass through a fold.
    pub(crate) fn operands(self) -> impl Iterator<Item = Id> {
        let operands = match self {
            Node::Unary(_, a) => [Some(a), None, None],
            Node::Binary(_, a, b) => [Some(a), Some(b), None],
            Node::Select { mask, yes, no } => [Some(mask), Some(yes), Some(no)],
            _ => [None; 3],
        };
        operands.into_iter().flatten()
    }
}

impl Tape {
    pub(super) fn new(scalar: Scalar) -> Tape {
        Tape {
            scalar,
            is_exact: false,
            nodes: Vec::new(),
            types: Vec::new(),
            scopes: Vec::new(),
            places: BTreeMap::new(),
            folds: Vec::new(),
            open: Vec::new(),
            fault: None,
        }
    }

    /// An exact one.
    pub(crate) fn exact() -> Tape {
        // Integers beside reals: where those are integers too, slots are what holds both.
        Tape { is_exact: true, ..Tape::new(Scalar::F32) }
    }

    /// The constant `value`, as a node.
    pub(super) fn literal(&self, value: f64) -> Node {
        if self.is_exact {
            return Node::Number(value.to_bits());
        }
        let bits = match self.scalar {
            Scalar::F32 => (value as f32).bits(),
            Scalar::I32 => <Int as Real>::lit(value).bits(),
        };
        Node::Literal(Type::Real, bits)
    }

    /// The integer `value`, as a node.
    pub(super) fn integer(&self, value: i32) -> Node {
        Node::Literal(self.integers(), value.cast_unsigned())
    }

    /// The type of integers.
    pub(super) fn integers(&self) -> Type {
        match self.scalar {
            Scalar::F32 => Type::Integer,
            Scalar::I32 => Type::Real,
        }
    }

    /// Whether two reals are the same literal. That nothing else can be compared is a fault.
    pub(super) fn are_equal(&mut self, a: Id, b: Id) -> bool {
        let values = [a, b].map(|id| self.node(id));
        if let [Node::Number(a), Node::Number(b)] = values {
            return f64::from_bits(a) == f64::from_bits(b);
        }
        if !values.iter().all(|node| matches!(node, Node::Literal(..))) {
            self.fault = Some("it compares reals with == or is_zero(): write R::equals and R::select");
        }
        match self.scalar {
            Scalar::F32 => values[0].value::<f32>() == values[1].value() && values[0].value::<f32>().is_some(),
            Scalar::I32 => values[0] == values[1],
        }
    }

    /// Whether some values depend on a node of some kind.
    pub(super) fn reads(&self, of: &[Id], is_wanted: impl Fn(Node) -> bool) -> bool {
        let (mut is_seen, mut open) = (vec![false; self.nodes.len()], of.to_vec());
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut is_seen[id as usize], true) {
                continue;
            }
            let node = self.node(id);
            if is_wanted(node) {
                return true;
            }
            match node {
                Node::Gathered { fold, k } | Node::Result { fold, k } => {
                    open.extend([&self.folds[fold].init, &self.folds[fold].next].iter().filter_map(|ids| ids.get(k)));
                }
                node => open.extend(node.operands()),
            }
        }
        false
    }

    /// What the program did that it must not do.
    pub(super) fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    pub(crate) fn node(&self, id: Id) -> Node {
        self.nodes[id as usize]
    }

    pub(crate) fn type_of(&self, id: Id) -> Type {
        self.types[id as usize]
    }

    pub(crate) fn len(&self) -> Id {
        self.nodes.len() as Id
    }

    pub(crate) fn scope(&self, id: Id) -> Option<usize> {
        self.scopes[id as usize]
    }

    /// Folds around a scope, the scope itself included.
    pub(super) fn depth(&self, scope: Option<usize>) -> usize {
        std::iter::successors(scope, |&fold| self.folds[fold].parent).count()
    }

    /// Puts a node onto the tape, or finds it or a simpler one of equal value there.
    pub(super) fn put(&mut self, node: Node) -> Id {
        let is_real = node.operands().last().is_none_or(|id| self.type_of(id) != Type::Integer);
        let simpler = match self.scalar {
            _ if self.is_exact => None,
            Scalar::F32 if is_real => self.simpler::<f32>(node),
            _ => self.simpler::<Int>(node),
        };
        if let Some(id) = simpler {
            return id;
        }
        if let Some(&id) = self.places.get(&node) {
            return id;
        }
        let scope = match node {
            Node::Input(Input::Other { fold, .. } | Input::Data { fold }, _) | Node::Gathered { fold, .. } => {
                Some(fold)
            }
            Node::Result { fold, .. } => self.folds[fold].parent,
            _ => node.operands().map(|id| self.scope(id)).max_by_key(|&scope| self.depth(scope)).flatten(),
        };
        let kind = self.type_of_node(node);
        self.nodes.push(node);
        self.types.push(kind);
        self.scopes.push(scope);
        let id = self.nodes.len() as Id - 1;
        self.places.insert(node, id);
        id
    }

    fn type_of_node(&self, node: Node) -> Type {
        match node {
            Node::Literal(kind, _) => kind,
            Node::Truth(_) | Node::Binary(Binary::Less | Binary::AtMost | Binary::Equals, ..) => Type::Truth,
            Node::Number(_) | Node::Input(..) | Node::Unary(Unary::FromInt | Unary::Hold, _) => Type::Real,
            Node::Unary(Unary::ToInt | Unary::Held, _) => Type::Integer,
            Node::Gathered { fold, k } | Node::Result { fold, k } => self.folds[fold].types[k],
            Node::Unary(_, a) | Node::Binary(_, a, _) | Node::Select { yes: a, .. } => self.type_of(a),
        }
    }

    /// What a node comes to when it is known now, or when an operand is the literal zero or one. Sums and products with
    /// literals are the ones that `nalgebra` makes; a product with the literal zero is zero. `C`: what its operands are.
    fn simpler<C: Constant>(&mut self, node: Node) -> Option<Id> {
        match node {
            Node::Unary(op, a) => self.simpler_unary::<C>(op, a),
            Node::Select { mask, yes, no } => match self.truth(mask) {
                Some(truth) => Some(if truth { yes } else { no }),
                None => (yes == no).then_some(yes),
            },
            Node::Binary(op @ (Binary::BitAnd | Binary::BitOr), a, b) if self.type_of(b) == Type::Truth => {
                let decides = op == Binary::BitOr;
                match (self.truth(a), self.truth(b)) {
                    (Some(x), _) if x == decides => Some(a),
                    (_, Some(y)) if y == decides => Some(b),
                    (Some(_), _) => Some(b),
                    (_, Some(_)) => Some(a),
                    _ => None,
                }
            }
            Node::Binary(op, a, b) => self.simpler_binary::<C>(op, a, b),
            _ => None,
        }
    }

    fn truth(&self, id: Id) -> Option<bool> {
        match self.node(id) {
            Node::Truth(truth) => Some(truth),
            _ => None,
        }
    }

    fn simpler_unary<C: Constant>(&mut self, op: Unary, a: Id) -> Option<Id> {
        let kind = self.type_of(a);
        let value = || self.node(a).value::<C>();
        let literal = |value: C| Node::Literal(kind, value.bits());
        let simpler = match (op, self.node(a)) {
            (Unary::Neg, Node::Unary(Unary::Neg, b)) => return Some(b),
            (Unary::Neg, _) => literal(-value()?),
            (Unary::Not, _) => Node::Truth(!self.truth(a)?),
            // Integers that go into the slot of a real and come out again are those that they were.
            (Unary::Hold, Node::Unary(Unary::Held, slot)) => return Some(slot),
            (Unary::Hold, _) => return (self.scalar == Scalar::I32).then_some(a),
            (Unary::Held, Node::Unary(Unary::Hold, integer)) => return Some(integer),
            // What a fold gathers is kept as what it is.
            (Unary::Held, _) => return (kind == self.integers()).then_some(a),
            (Unary::FromInt | Unary::ToInt, _) if self.scalar == Scalar::I32 => return Some(a),
            (Unary::FromInt, _) => self.literal(value()?.to_int().0.into()),
            (Unary::ToInt, _) => self.integer(value()?.to_int().0),
            (Unary::ShiftLeft(0) | Unary::ShiftRight(0) | Unary::ShiftRightLogical(0), _) => return Some(a),
            (Unary::ShiftLeft(bits), _) => self.integer(value()?.to_int().shift_left(bits.into()).0),
            (Unary::ShiftRight(bits), _) => self.integer(value()?.to_int().shift_right(bits.into()).0),
            (Unary::ShiftRightLogical(bits), _) => self.integer(value()?.to_int().shift_right_logical(bits.into()).0),
            (Unary::Sqrt, _) => literal(Real::sqrt(value()?)),
            (Unary::Abs, _) => literal(Real::abs(value()?)),
            (Unary::Floor, _) => literal(Real::floor(value()?)),
            (Unary::Exp, _) => literal(Real::exp(value()?)),
            (Unary::Ln, _) => literal(Real::ln(value()?)),
            (Unary::Sin, _) => literal(Real::sin(value()?)),
            (Unary::Cos, _) => literal(Real::cos(value()?)),
            (Unary::Acos, _) => literal(Real::acos(value()?)),
            (Unary::Tanh, _) => literal(Real::tanh(value()?)),
        };
        Some(self.put(simpler))
    }

    fn simpler_binary<C: Constant>(&mut self, op: Binary, a: Id, b: Id) -> Option<Id> {
        // The type of the operands, and of the result of arithmetic.
        let kind = self.type_of(b);
        let value = |id| self.node(id).value::<C>();
        let is = |x: Option<C>, number: f64| x == Some(C::lit(number));
        let literal = |value: C| Node::Literal(kind, value.bits());
        let simpler = match (op, value(a), value(b)) {
            (Binary::Add, Some(x), Some(y)) => literal(x + y),
            (Binary::Sub, Some(x), Some(y)) => literal(x - y),
            (Binary::Mul, Some(x), Some(y)) => literal(x * y),
            (Binary::Div, Some(x), Some(y)) => literal(x / y),
            (Binary::Pow, Some(x), Some(y)) => literal(Real::pow(x, y)),
            (Binary::Atan2, Some(x), Some(y)) => literal(Real::atan2(x, y)),
            (Binary::Rem, Some(x), Some(y)) => literal(Real::rem(x, y)),
            (Binary::Less, Some(x), Some(y)) => Node::Truth(Real::less(x, y)),
            (Binary::AtMost, Some(x), Some(y)) => Node::Truth(Real::at_most(x, y)),
            (Binary::Equals, Some(x), Some(y)) => Node::Truth(Real::equals(x, y)),
            (Binary::BitAnd, Some(x), Some(y)) => Node::Literal(kind, x.bits() & y.bits()),
            (Binary::BitOr, Some(x), Some(y)) => Node::Literal(kind, x.bits() | y.bits()),
            (Binary::BitXor, Some(x), Some(y)) => Node::Literal(kind, x.bits() ^ y.bits()),
            (Binary::Add, x, _) if is(x, 0.0) => return Some(b),
            (Binary::Mul, x, _) if is(x, 1.0) => return Some(b),
            (Binary::Add | Binary::Sub, _, y) if is(y, 0.0) => return Some(a),
            (Binary::Mul | Binary::Div, _, y) if is(y, 1.0) => return Some(a),
            (Binary::Mul, x, y) if is(x, 0.0) || is(y, 0.0) => literal(C::lit(0.0)),
            (Binary::Sub, x, _) if is(x, 0.0) => Node::Unary(Unary::Neg, b),
            _ => return None,
        };
        Some(self.put(simpler))
    }

    /// Starts a fold inside of those that are open, and returns its number.
    pub(super) fn open(&mut self, fold: Fold) -> usize {
        self.folds.push(Fold { parent: self.open.last().copied(), ..fold });
        let number = self.folds.len() - 1;
        self.folds[number].init = self.unpacked(number, self.folds[number].init.clone());
        self.open.push(number);
        number
    }

    /// What a fold gathers, integers taken out of the slots of reals: a variable of a shader keeps them as they are.
    fn unpacked(&mut self, fold: usize, leaves: Vec<Id>) -> Vec<Id> {
        if self.is_exact {
            self.folds[fold].types.fill(Type::Real);
        }
        let unpack = |(k, id)| match self.folds[fold].types[k] {
            Type::Integer => self.put(Node::Unary(Unary::Held, id)),
            _ => id,
        };
        leaves.into_iter().enumerate().map(unpack).collect()
    }

    /// Ends the innermost fold.
    pub(super) fn close(&mut self, next: Vec<Id>) {
        let fold = self.open.pop().expect("a fold is open");
        let next = self.unpacked(fold, next);
        (self.folds[fold].next, self.folds[fold].end) = (next, self.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_node_and_literals_fold() {
        let mut tape = Tape::new(Scalar::F32);
        let [x, y] = [0, 1].map(|k| tape.put(Node::Input(Input::Shared, k)));
        let [zero, one, two] = [0.0, 1.0, 2.0].map(|value| {
            let literal = tape.literal(value);
            tape.put(literal)
        });
        let known = tape.len();
        let mut binary = |op, a, b| tape.put(Node::Binary(op, a, b));
        assert_eq!(binary(Binary::Add, zero, x), x);
        assert_eq!(binary(Binary::Mul, y, one), y);
        assert_eq!(binary(Binary::Mul, y, zero), zero);
        assert_eq!(binary(Binary::Sub, two, one), one);
        let sum = binary(Binary::Add, x, y);
        assert_eq!(binary(Binary::Add, x, y), sum);
        assert_eq!(tape.len(), known + 1);
        let truth = tape.put(Node::Binary(Binary::Less, one, two));
        assert_eq!(tape.put(Node::Select { mask: truth, yes: x, no: y }), x);
        let minus = tape.put(Node::Binary(Binary::Sub, zero, x));
        assert_eq!(tape.put(Node::Unary(Unary::Neg, minus)), x);
        // A quotient of zeros is NaN: not folded away.
        assert!(tape.put(Node::Binary(Binary::Div, zero, x)) > minus);
    }
}
