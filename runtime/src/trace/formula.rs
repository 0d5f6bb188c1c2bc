//! A kernel that is written down value by value: what other languages build, and hosts send to each other.

use super::expr::with_tape;
use super::tape::{Binary, Fold, Id, Input, Node, Tape, Type, Unary};
use crate::names::lasting;
use crate::number::Kind;

/// A value of a [`Formula`]; of no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(Id);

impl Value {
    pub(crate) fn of(id: Id) -> Value {
        Value(id)
    }

    pub(crate) fn id(self) -> Id {
        self.0
    }
}

/// One number that a fold gathers.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Its name, for shaders.
    pub name: String,
    /// What it is: a real, or an integer, which is held in the place of one ([`Unary::Hold`]).
    pub kind: Kind,
    /// What it starts from.
    pub start: Value,
}

/// A line of a formula.
pub(crate) enum Line<'a> {
    Node(Node),
    /// A fold begins; what it has gathered follows.
    Open(&'a Along, Vec<Leaf>),
    /// The innermost ends; what it comes to follows.
    Close(&'a [Id]),
}

/// Folds inside of folds, at most.
const DEEPEST: usize = 16;
/// Folds of a formula, numbers that one gathers, and values of a formula, at most: what is built of them takes time that grows faster.
const FOLDS: usize = 1 << 10;
const LEAVES: usize = 1 << 8;
const VALUES: Id = 1 << 18;

/// The star that a fold runs along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Along {
    pub(crate) star: usize,
    pub(crate) name: &'static str,
    /// Other vertices of an element, and reals of its data.
    pub(crate) lengths: (usize, usize),
}

/// What a kernel computes, value by value: every operation is done as it is written, in 32 or 64 bits or on integers, so the bits are those of
/// the same program in Rust. Nothing in it is evaluated.
///
/// A value is computed from values before it. What depends on the present element of a fold can be used inside of that fold alone.
///
/// ```
/// use meshweft::tapes::{Binary, Formula, Input};
/// let mut double = Formula::default();
/// let own = double.input(Input::Shared, 0);
/// let sum = double.binary(Binary::Add, own, own)?;
/// double.finish(vec![sum])?;
/// assert!(Formula::default().finish(vec![sum]).is_err(), "it is a value of another formula");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    pub(crate) tape: Tape,
    pub(crate) outputs: Vec<Id>,
    folds: Vec<Gathers>,
    /// Folds that are open, outermost first.
    open: Vec<usize>,
}

/// What is known of a fold besides.
#[derive(Clone, Debug, PartialEq)]
struct Gathers {
    along: Along,
    kinds: Vec<Kind>,
    /// Nodes on the tape when it was opened.
    begin: Id,
}

impl Along {
    /// The star of that number and name, whose elements have so many other vertices and reals of data.
    pub fn new(star: usize, name: &str, others: usize, reals: usize) -> Along {
        Along { star, name: lasting(name), lengths: (others, reals) }
    }
}

impl Default for Formula {
    fn default() -> Formula {
        Formula { tape: Tape::exact(), outputs: Vec::new(), folds: Vec::new(), open: Vec::new() }
    }
}

impl Formula {
    /// Real `k` of what is given. [`Formula::other`] and [`Formula::data`] are for what lies around.
    ///
    /// # Panics
    /// For those two inputs.
    pub fn input(&mut self, input: Input, k: usize) -> Value {
        assert!(!matches!(input, Input::Other { .. } | Input::Data { .. }), "they belong to a fold");
        Value(self.tape.put(Node::Input(input, k)))
    }

    /// A real, which each precision rounds.
    pub fn real(&mut self, value: f64) -> Value {
        Value(self.tape.put(Node::Number(value.to_bits())))
    }

    /// An integer.
    pub fn integer(&mut self, value: i32) -> Value {
        let node = self.tape.integer(value);
        Value(self.tape.put(node))
    }

    /// A truth value.
    pub fn truth(&mut self, value: bool) -> Value {
        Value(self.tape.put(Node::Truth(value)))
    }

    /// What a value is.
    ///
    /// # Errors
    /// It is none of this formula, or depends on an element of a fold that is closed.
    pub fn type_of(&self, value: Value) -> Result<Type, String> {
        if value.0 >= self.tape.len() {
            return Err("a value of another formula is used".into());
        }
        match self.tape.scope(value.0) {
            Some(fold) if !self.open.contains(&fold) => Err(
                "a value that depends on one element is used outside of the loop over elements: return it from there"
                    .into(),
            ),
            _ => Ok(self.tape.type_of(value.0)),
        }
    }

    /// A function of one value.
    ///
    /// # Errors
    /// A value of another type, or one that cannot be seen here.
    pub fn unary(&mut self, op: Unary, a: Value) -> Result<Value, String> {
        let kind = self.type_of(a)?;
        let fits = match op {
            Unary::Neg => kind != Type::Truth,
            Unary::Not => kind == Type::Truth,
            Unary::FromInt | Unary::Hold => kind == Type::Integer,
            Unary::ShiftLeft(bits) | Unary::ShiftRight(bits) | Unary::ShiftRightLogical(bits) => {
                kind == Type::Integer && bits < 32
            }
            _ => kind == Type::Real,
        };
        match fits {
            true => Ok(Value(self.tape.put(Node::Unary(op, a.0)))),
            false => Err(format!("{op:?} of {}", kind.name())),
        }
    }

    /// A function of two values.
    ///
    /// # Errors
    /// As [`Formula::unary`].
    pub fn binary(&mut self, op: Binary, a: Value, b: Value) -> Result<Value, String> {
        let kinds = (self.type_of(a)?, self.type_of(b)?);
        let fits = kinds.0 == kinds.1
            && match op {
                Binary::Add | Binary::Sub | Binary::Mul | Binary::Less | Binary::AtMost | Binary::Equals => {
                    kinds.0 != Type::Truth
                }
                Binary::Div | Binary::Pow | Binary::Atan2 | Binary::Rem => kinds.0 == Type::Real,
                Binary::BitAnd | Binary::BitOr => kinds.0 != Type::Real,
                Binary::BitXor => kinds.0 == Type::Integer,
            };
        match fits {
            true => Ok(Value(self.tape.put(Node::Binary(op, a.0, b.0)))),
            false => Err(format!("{op:?} of {} and {}", kinds.0.name(), kinds.1.name())),
        }
    }

    /// One of two values.
    ///
    /// # Errors
    /// As [`Formula::unary`].
    pub fn select(&mut self, mask: Value, yes: Value, no: Value) -> Result<Value, String> {
        let (mask_type, kinds) = (self.type_of(mask)?, (self.type_of(yes)?, self.type_of(no)?));
        match mask_type == Type::Truth && kinds.0 == kinds.1 && kinds.0 != Type::Truth {
            true => Ok(Value(self.tape.put(Node::Select { mask: mask.0, yes: yes.0, no: no.0 }))),
            false => Err(format!("a choice by {} between {} and {}", mask_type.name(), kinds.0.name(), kinds.1.name())),
        }
    }

    /// Begins a fold over the incident elements of a star, inside of those that are open. Returns what it has gathered so far, leaf by leaf, as
    /// the formula of one element sees it.
    ///
    /// # Errors
    /// Nothing to gather, or more than 256 numbers; 1,024 folds before, or 16 around it; a value that is no real, or cannot be seen here.
    pub fn open(&mut self, along: Along, leaves: Vec<Leaf>) -> Result<Vec<Value>, String> {
        if leaves.is_empty() {
            return Err("a loop over elements gathers nothing".into());
        }
        if self.open.len() == DEEPEST {
            return Err(format!("loops over elements lie more than {DEEPEST} deep in each other"));
        }
        if self.folds.len() == FOLDS || leaves.len() > LEAVES {
            return Err(format!(
                "more than {FOLDS} loops over elements, or one that gathers more than {LEAVES} numbers"
            ));
        }
        for leaf in &leaves {
            self.must_be_real(leaf.start)?;
        }
        let (names, kinds) = leaves.iter().map(|leaf| (leaf.name.clone(), leaf.kind)).unzip();
        let fold = Fold {
            star: along.star,
            name: along.name.into(),
            others: along.lengths.0,
            names,
            types: vec![Type::Real; leaves.len()],
            init: leaves.iter().map(|leaf| leaf.start.0).collect(),
            next: Vec::new(),
            parent: None,
            end: 0,
        };
        let begin = self.tape.len();
        let number = self.tape.open(fold);
        self.folds.push(Gathers { along, kinds, begin });
        self.open.push(number);
        Ok((0..leaves.len()).map(|k| Value(self.tape.put(Node::Gathered { fold: number, k }))).collect())
    }

    /// Shared real `k` of vertex `other` of the present element of the innermost fold.
    ///
    /// # Errors
    /// No fold is open; the element has fewer others.
    pub fn other(&mut self, other: usize, k: usize) -> Result<Value, String> {
        let fold = self.innermost()?;
        self.other_of(fold, other, k)
    }

    /// The same of a fold that is open.
    pub(crate) fn other_of(&mut self, fold: usize, other: usize, k: usize) -> Result<Value, String> {
        self.must_be_open(fold)?;
        match other < self.folds[fold].along.lengths.0 {
            true => Ok(Value(self.tape.put(Node::Input(Input::Other { fold, other }, k)))),
            false => Err(format!("an element of star {} has no vertex {other} besides", self.folds[fold].along.name)),
        }
    }

    /// Real `k` of the data of the present element of the innermost fold.
    ///
    /// # Errors
    /// No fold is open; the element has less data.
    pub fn data(&mut self, k: usize) -> Result<Value, String> {
        let fold = self.innermost()?;
        self.data_of(fold, k)
    }

    /// The same of a fold that is open.
    pub(crate) fn data_of(&mut self, fold: usize, k: usize) -> Result<Value, String> {
        self.must_be_open(fold)?;
        match k < self.folds[fold].along.lengths.1 {
            true => Ok(Value(self.tape.put(Node::Input(Input::Data { fold }, k)))),
            false => Err(format!("an element of star {} has no real {k} of data", self.folds[fold].along.name)),
        }
    }

    fn must_be_open(&self, fold: usize) -> Result<(), String> {
        if self.open.contains(&fold) { Ok(()) } else { Err(format!("loop {fold} over elements is not open")) }
    }

    /// Whether a fold has not ended.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    fn innermost(&self) -> Result<usize, String> {
        self.open.last().copied().ok_or_else(|| "no loop over elements is open".into())
    }

    /// Ends the innermost fold. `next`: what is gathered after the present element. Returns what is gathered in the end.
    ///
    /// # Errors
    /// No fold is open; as many values as it does not gather; a value that is no real, or cannot be seen here.
    pub fn close(&mut self, next: Vec<Value>) -> Result<Vec<Value>, String> {
        let fold = self.innermost()?;
        let leaves = self.folds[fold].kinds.len();
        if next.len() != leaves {
            return Err(format!("a loop over elements that gathers {leaves} numbers ends with {}", next.len()));
        }
        for &value in &next {
            self.must_be_real(value)?;
        }
        self.tape.close(next.into_iter().map(|value| value.0).collect());
        self.open.pop();
        Ok((0..leaves).map(|k| Value(self.tape.put(Node::Result { fold, k }))).collect())
    }

    fn must_be_real(&self, value: Value) -> Result<(), String> {
        match self.type_of(value)? {
            Type::Real => Ok(()),
            other => Err(format!("{} is gathered where a real is", other.name())),
        }
    }

    /// Says what it comes to: of a vertex all reals, shared ones first.
    ///
    /// # Errors
    /// A fold that is open; a value that cannot be seen here; more than 262,144 values.
    pub fn finish(&mut self, outputs: Vec<Value>) -> Result<(), String> {
        if self.is_open() {
            return Err("a loop over elements does not end".into());
        }
        if self.tape.len() > VALUES {
            return Err(format!("a kernel of {} values: at most {VALUES}", self.tape.len()));
        }
        outputs.iter().try_for_each(|&value| self.type_of(value).map(drop))?;
        self.outputs = outputs.into_iter().map(|value| value.0).collect();
        Ok(())
    }

    /// What it takes to write it down again, in order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let (mut at, mut begun, mut open): (Id, usize, Vec<usize>) = Default::default();
        std::iter::from_fn(move || {
            loop {
                if let Some(&fold) = open.last()
                    && self.tape.folds[fold].end == at
                {
                    open.pop();
                    return Some(Line::Close(&self.tape.folds[fold].next));
                }
                if let Some(gathers) = self.folds.get(begun).filter(|gathers| gathers.begin == at) {
                    let fold = &self.tape.folds[begun];
                    let leaves = fold.names.iter().zip(&gathers.kinds).zip(&fold.init);
                    let leaf = |((name, &kind), &start): ((&String, _), _)| Leaf {
                        name: name.clone(),
                        kind,
                        start: Value(start),
                    };
                    open.push(begun);
                    begun += 1;
                    return Some(Line::Open(&gathers.along, leaves.map(leaf).collect()));
                }
                if at == self.tape.len() {
                    return None;
                }
                at += 1;
                // What a fold gathers is there with it.
                let node = self.tape.node(at - 1);
                if !matches!(node, Node::Gathered { .. } | Node::Result { .. }) {
                    return Some(Line::Node(node));
                }
            }
        })
    }

    /// Puts all of it onto the tape of this thread. `look`: hears of each fold.
    pub(crate) fn replay(&self, look: &dyn Fn(&Along)) -> Vec<Id> {
        with_tape(|to| {
            let (mut ids, mut folds, mut open): (Vec<Id>, Vec<usize>, Vec<usize>) = Default::default();
            for line in self.lines() {
                match line {
                    Line::Node(node) => {
                        let node = moved(node, to, &ids, &folds);
                        ids.push(to.put(node));
                    }
                    Line::Open(along, leaves) => {
                        look(along);
                        let integers = to.integers();
                        let fold = Fold {
                            types: leaves
                                .iter()
                                .map(|leaf| if leaf.kind == Kind::Integer { integers } else { Type::Real })
                                .collect(),
                            init: leaves.iter().map(|leaf| ids[leaf.start.0 as usize]).collect(),
                            next: Vec::new(),
                            parent: None,
                            ..self.tape.folds[folds.len()].clone()
                        };
                        open.push(folds.len());
                        folds.push(to.open(fold));
                        let fold = folds[folds.len() - 1];
                        ids.extend((0..leaves.len()).map(|k| to.put(Node::Gathered { fold, k })));
                    }
                    Line::Close(next) => {
                        to.close(next.iter().map(|&id| ids[id as usize]).collect());
                        let fold = folds[open.pop().expect("a fold is closed once")];
                        ids.extend((0..next.len()).map(|k| to.put(Node::Result { fold, k })));
                    }
                }
            }
            self.outputs.iter().map(|&id| ids[id as usize]).collect()
        })
    }
}

/// A node of one tape on another.
fn moved(node: Node, to: &Tape, ids: &[Id], folds: &[usize]) -> Node {
    let new = |id: Id| ids[id as usize];
    match node {
        Node::Number(bits) => to.literal(f64::from_bits(bits)),
        Node::Literal(_, bits) => to.integer(bits.cast_signed()),
        Node::Input(Input::Other { fold, other }, k) => Node::Input(Input::Other { fold: folds[fold], other }, k),
        Node::Input(Input::Data { fold }, k) => Node::Input(Input::Data { fold: folds[fold] }, k),
        Node::Unary(op, a) => Node::Unary(op, new(a)),
        Node::Binary(op, a, b) => Node::Binary(op, new(a), new(b)),
        Node::Select { mask, yes, no } => Node::Select { mask: new(mask), yes: new(yes), no: new(no) },
        node @ (Node::Truth(_) | Node::Input(..)) => node,
        Node::Gathered { .. } | Node::Result { .. } => unreachable!("folds put them"),
    }
}
