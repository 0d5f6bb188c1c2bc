//! The tape: every value that an update computes, once.

use crate::program::{Int, Real};
use meshweft_shaders::Scalar;
use std::collections::BTreeMap;

/// The place of a node on the tape.
pub(super) type Id = u32;

/// One value. Those that it is computed from are earlier on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    /// A constant, by its bits: two zeros are two constants.
    Literal(u32),
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

/// What an update is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Input {
    Parameters,
    Shared,
    Private,
    /// Shared state of the other vertex number `other` of the present thing.
    Other {
        fold: usize,
        other: usize,
    },
    /// Data of the present thing.
    Data {
        fold: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unary {
    Neg,
    Not,
    Sqrt,
    Abs,
    Exp,
    Sin,
    Cos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Less,
    And,
    Or,
}

/// A loop over the things around the vertex.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    /// Which star, and the name of its type.
    pub(super) star: usize,
    pub(super) name: String,
    /// Other vertices of each thing.
    pub(super) others: usize,
    /// Names of the reals that are gathered.
    pub(super) names: Vec<String>,
    pub(super) init: Vec<Id>,
    /// What is gathered after the present thing.
    pub(super) next: Vec<Id>,
    /// The fold inside of which this one stands.
    pub(super) parent: Option<usize>,
    /// Nodes on the tape when it was closed: all that its body needs comes before.
    pub(super) end: Id,
}

/// All values of one update, each once: an equal node is the same node.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    /// What its numbers are.
    pub(super) scalar: Scalar,
    nodes: Vec<Node>,
    /// The innermost fold whose present thing a value depends on.
    scopes: Vec<Option<usize>>,
    places: BTreeMap<Node, Id>,
    pub(super) folds: Vec<Fold>,
    /// Folds whose body is being recorded, outermost first.
    open: Vec<usize>,
}

/// A number that a literal can be.
trait Constant: Real<Mask = bool> + PartialEq {
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
    fn literal(value: impl Constant) -> Node {
        Node::Literal(value.bits())
    }

    fn value<C: Constant>(self) -> Option<C> {
        match self {
            Node::Literal(bits) => Some(C::of_bits(bits)),
            _ => None,
        }
    }

    /// The values it is computed from, without those that pass through a fold.
    pub(super) fn operands(self) -> impl Iterator<Item = Id> {
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
            nodes: Vec::new(),
            scopes: Vec::new(),
            places: BTreeMap::new(),
            folds: Vec::new(),
            open: Vec::new(),
        }
    }

    /// The constant `value`, as a node.
    pub(super) fn literal(&self, value: f64) -> Node {
        match self.scalar {
            Scalar::F32 => Node::literal(value as f32),
            Scalar::I32 => Node::literal(Int::lit(value)),
        }
    }

    pub(super) fn node(&self, id: Id) -> Node {
        self.nodes[id as usize]
    }

    pub(super) fn len(&self) -> Id {
        self.nodes.len() as Id
    }

    pub(super) fn scope(&self, id: Id) -> Option<usize> {
        self.scopes[id as usize]
    }

    /// Folds around a scope, the scope itself included.
    pub(super) fn depth(&self, scope: Option<usize>) -> usize {
        std::iter::successors(scope, |&fold| self.folds[fold].parent).count()
    }

    /// Puts a node onto the tape, or finds it or something simpler of equal value there.
    pub(super) fn put(&mut self, node: Node) -> Id {
        let simpler = match self.scalar {
            Scalar::F32 => self.simpler::<f32>(node),
            Scalar::I32 => self.simpler::<Int>(node),
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
        self.nodes.push(node);
        self.scopes.push(scope);
        let id = self.nodes.len() as Id - 1;
        self.places.insert(node, id);
        id
    }

    /// What a node comes to when it is known now, or when an operand is the literal zero or one. Sums and products with
    /// literals are the ones that `nalgebra` makes; a product with the literal zero is zero.
    fn simpler<C: Constant>(&mut self, node: Node) -> Option<Id> {
        let value = |id| self.node(id).value::<C>();
        let is = |x: Option<C>, number: f64| x == Some(C::lit(number));
        let truth = |id| match self.node(id) {
            Node::Truth(truth) => Some(truth),
            _ => None,
        };
        let constant = match node {
            Node::Unary(Unary::Neg, a) => match self.node(a) {
                Node::Unary(Unary::Neg, b) => return Some(b),
                _ => Node::literal(-value(a)?),
            },
            Node::Unary(Unary::Sqrt, a) => Node::literal(Real::sqrt(value(a)?)),
            Node::Unary(Unary::Abs, a) => Node::literal(Real::abs(value(a)?)),
            Node::Unary(Unary::Exp, a) => Node::literal(Real::exp(value(a)?)),
            Node::Unary(Unary::Sin, a) => Node::literal(Real::sin(value(a)?)),
            Node::Unary(Unary::Cos, a) => Node::literal(Real::cos(value(a)?)),
            Node::Unary(Unary::Not, a) => Node::Truth(!truth(a)?),
            Node::Select { mask, yes, no } => match truth(mask) {
                Some(truth) => return Some(if truth { yes } else { no }),
                None if yes == no => return Some(yes),
                None => return None,
            },
            Node::Binary(op, a, b) => match (op, value(a), value(b)) {
                (Binary::Add, Some(x), Some(y)) => Node::literal(x + y),
                (Binary::Sub, Some(x), Some(y)) => Node::literal(x - y),
                (Binary::Mul, Some(x), Some(y)) => Node::literal(x * y),
                (Binary::Div, Some(x), Some(y)) => Node::literal(x / y),
                (Binary::Less, Some(x), Some(y)) => Node::Truth(x.less(y)),
                (Binary::Add, x, _) if is(x, 0.0) => return Some(b),
                (Binary::Mul, x, _) if is(x, 1.0) => return Some(b),
                (Binary::Add | Binary::Sub, _, y) if is(y, 0.0) => return Some(a),
                (Binary::Mul | Binary::Div, _, y) if is(y, 1.0) => return Some(a),
                (Binary::Mul, x, y) if is(x, 0.0) || is(y, 0.0) => Node::literal(C::lit(0.0)),
                (Binary::Sub, x, _) if is(x, 0.0) => Node::Unary(Unary::Neg, b),
                (Binary::And | Binary::Or, ..) => {
                    let decides = op == Binary::Or;
                    return match (truth(a), truth(b)) {
                        (Some(x), _) if x == decides => Some(a),
                        (_, Some(y)) if y == decides => Some(b),
                        (Some(_), _) => Some(b),
                        (_, Some(_)) => Some(a),
                        _ => None,
                    };
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(self.put(constant))
    }

    /// Starts a fold inside of those that are open, and returns its number.
    pub(super) fn open(&mut self, fold: Fold) -> usize {
        self.folds.push(Fold { parent: self.open.last().copied(), ..fold });
        self.open.push(self.folds.len() - 1);
        self.folds.len() - 1
    }

    /// Ends the innermost fold.
    pub(super) fn close(&mut self, next: Vec<Id>) {
        let fold = self.open.pop().expect("a fold is open");
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
        let [zero, one, two] = [0.0f32, 1.0, 2.0].map(|value| tape.put(Node::literal(value)));
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
        // A quotient of zeros is no number: not folded away.
        assert!(tape.put(Node::Binary(Binary::Div, zero, x)) > minus);
    }
}
