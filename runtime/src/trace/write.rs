//! From the tape to the text of a WGSL function.

use super::tape::{Binary, Id, Input, Node, Tape, Type, Unary};
use meshweft_shaders::{Physics, Scalar, identifier};
use std::collections::BTreeSet;

/// Writes what is needed of a tape, statement by statement.
///
/// A value that is used once stands where it is used; one that is used more often, or inside of a loop that it does not
/// depend on, gets a name before.
pub(super) struct Writer<'a> {
    tape: &'a Tape,
    physics: &'a Physics,
    /// How often a value is needed; zero of those that are not.
    uses: Vec<u32>,
    /// Whether a value is used in a deeper loop than the one it belongs to.
    hoisted: Vec<bool>,
    names: Vec<Option<String>>,
    /// The variables of each fold.
    variables: Vec<Vec<String>>,
    /// Accumulators that are needed, for each fold.
    gathered: Vec<BTreeSet<usize>>,
    text: String,
    indent: usize,
    /// Values that were named so far.
    named: usize,
    /// What cannot be written.
    fault: Option<String>,
}

/// A longer expression is cut into named parts.
const LONG: usize = 96;

/// How tightly an expression holds together, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Grip {
    Relation,
    Sum,
    Product,
    Prefix,
    Whole,
}

impl<'a> Writer<'a> {
    pub(super) fn new(tape: &'a Tape, physics: &'a Physics, outputs: &[Id]) -> Writer<'a> {
        let n = tape.len() as usize;
        let mut writer = Writer {
            tape,
            physics,
            uses: vec![0; n],
            hoisted: vec![false; n],
            names: vec![None; n],
            variables: vec![Vec::new(); tape.folds.len()],
            gathered: vec![BTreeSet::new(); tape.folds.len()],
            text: String::new(),
            indent: 1,
            named: 0,
            fault: None,
        };
        for &id in outputs {
            writer.need(id, None);
        }
        writer.name_variables();
        writer
    }

    /// Counts a use of a value in a scope, and at the first one the uses of what it is computed from. A chain of values may be long: no calls
    /// inside of calls.
    fn need(&mut self, id: Id, scope: Option<usize>) {
        let mut open = vec![(id, scope)];
        while let Some((id, scope)) = open.pop() {
            let own = self.tape.scope(id);
            if own != scope {
                self.hoisted[id as usize] = true;
            }
            self.uses[id as usize] += 1;
            if self.uses[id as usize] > 1 {
                continue;
            }
            match self.tape.node(id) {
                Node::Gathered { fold, k } | Node::Result { fold, k } => {
                    if self.gathered[fold].insert(k) {
                        let of = &self.tape.folds[fold];
                        open.extend([(of.init[k], of.parent), (of.next[k], Some(fold))]);
                    }
                }
                node => open.extend(node.operands().map(|operand| (operand, own))),
            }
        }
    }

    /// Names every needed accumulator after its part of the record that is gathered.
    fn name_variables(&mut self) {
        let mut taken = BTreeSet::new();
        for (fold, of) in self.tape.folds.iter().enumerate() {
            for name in &of.names {
                // A name of its own kind: never one of ours, never a function's.
                let base = match identifier(name) {
                    unnamed if name == "value" || name.starts_with("value_") => {
                        format!("gathered{}", unnamed.trim_start_matches("value").trim_end_matches('_'))
                    }
                    named => format!("gathered_{named}"),
                };
                let free = (1..).map(|i| if i == 1 { base.clone() } else { format!("{base}_{i}") });
                let name = free.into_iter().find(|name| !taken.contains(name)).expect("numbers do not end");
                taken.insert(name.clone());
                self.variables[fold].push(name);
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.text.extend(std::iter::repeat_n("    ", self.indent));
        self.text += line;
        self.text.push('\n');
    }

    /// Writes all statements of a scope before tape position `end`, folds inside of it included.
    fn scope(&mut self, scope: Option<usize>, end: Id) {
        let inside = |fold: &usize| self.tape.folds[*fold].parent == scope && !self.gathered[*fold].is_empty();
        let folds: Vec<usize> = (0..self.tape.folds.len()).filter(inside).collect();
        let mut folds = folds.into_iter().peekable();
        for id in 0..end {
            while let Some(fold) = folds.next_if(|&fold| self.tape.folds[fold].end <= id) {
                self.fold(fold);
            }
            if self.tape.scope(id) == scope {
                self.name(id);
            }
        }
        folds.filter(|&fold| self.tape.folds[fold].end <= end).for_each(|fold| self.fold(fold));
    }

    /// Gives a value a name if it needs one.
    fn name(&mut self, id: Id) {
        let uses = self.uses[id as usize];
        let leaf = self.tape.node(id).operands().next().is_none();
        if uses == 0 || leaf {
            return;
        }
        let (text, _) = self.expression(id);
        if uses > 1 || self.hoisted[id as usize] || text.len() > LONG {
            self.named += 1;
            let name = format!("e{}", self.named);
            self.line(&format!("let {name} = {text};"));
            self.names[id as usize] = Some(name);
        }
    }

    fn fold(&mut self, fold: usize) {
        let of = self.tape.folds[fold].clone();
        let gathered: Vec<usize> = self.gathered[fold].iter().copied().collect();
        for &k in &gathered {
            let init = self.expression(of.init[k]).0;
            let declaration = format!("var {} = {init};", self.variables[fold][k]);
            self.line(&declaration);
        }
        let things = format!("things{fold}");
        self.line(&format!("let {things} = things_{}(place);", of.star));
        self.line(&format!("for (var j{fold} = 0u; j{fold} < {things}.count; j{fold}++) {{ // {}", of.name));
        self.indent += 1;
        let needed: BTreeSet<Input> = (0..self.tape.len())
            .filter(|&id| self.uses[id as usize] > 0)
            .filter_map(|id| if let Node::Input(input, _) = self.tape.node(id) { Some(input) } else { None })
            .collect();
        for other in (0..of.others).filter(|&other| needed.contains(&Input::Other { fold, other })) {
            let name = self.other(fold, other);
            self.line(&format!("let {name} = other_{}({things}, j{fold}, {other}u);", of.star));
        }
        if needed.contains(&Input::Data { fold }) {
            self.line(&format!("let data{fold} = data_{}({things}, j{fold});", of.star));
        }
        self.scope(Some(fold), of.end);
        // All that later assignments read must not have been assigned before.
        for (i, &k) in gathered.iter().enumerate() {
            let next = of.next[k];
            let overwrites = gathered[i + 1..].iter().any(|&later| self.reads(of.next[later], fold, k));
            if overwrites {
                // Those values are computed now.
                for &later in &gathered[i + 1..] {
                    let id = of.next[later];
                    if self.names[id as usize].is_none() && self.reads(id, fold, k) {
                        let name = format!("next_{}", self.variables[fold][later]);
                        let text = self.expression(id).0;
                        self.line(&format!("let {name} = {text};"));
                        self.names[id as usize] = Some(name);
                    }
                }
            }
            let (variable, text) = (self.variables[fold][k].clone(), self.expression(next).0);
            if variable != text {
                self.line(&format!("{variable} = {text};"));
            }
        }
        self.indent -= 1;
        self.line("}");
    }

    /// Whether the expression of a value, as it would be written now, mentions accumulator `k` of a fold.
    fn reads(&self, id: Id, fold: usize, k: usize) -> bool {
        if self.names[id as usize].is_some() {
            return false;
        }
        match self.tape.node(id) {
            Node::Gathered { fold: of, k: real } => (of, real) == (fold, k),
            node => node.operands().any(|operand| self.reads(operand, fold, k)),
        }
    }

    fn other(&self, fold: usize, other: usize) -> String {
        format!("other{fold}{}", char::from(b'a' + other as u8))
    }

    /// The expression of a value: its name if it has one.
    fn expression(&mut self, id: Id) -> (String, Grip) {
        if let Some(name) = &self.names[id as usize] {
            return (name.clone(), Grip::Whole);
        }
        match self.tape.node(id) {
            Node::Literal(kind, bits) => match self.tape.scalar {
                Scalar::F32 if kind == Type::Real => self.literal(f32::from_bits(bits)),
                _ => integer(bits.cast_signed()),
            },
            Node::Number(bits) => self.literal(f64::from_bits(bits) as f32),
            Node::Truth(truth) => (truth.to_string(), Grip::Whole),
            Node::Input(input, k) => (self.input(input, k), Grip::Whole),
            Node::Gathered { fold, k } | Node::Result { fold, k } => (self.variables[fold][k].clone(), Grip::Whole),
            Node::Unary(op, a) => self.unary(op, a),
            Node::Binary(op, a, b) => self.binary(op, a, b),
            Node::Select { mask, yes, no } => {
                let [no, yes, mask] = [no, yes, mask].map(|id| self.expression(id).0);
                (format!("select({no}, {yes}, {mask})"), Grip::Whole)
            }
        }
    }

    fn literal(&mut self, value: f32) -> (String, Grip) {
        if !value.is_finite() {
            self.fault.get_or_insert(format!("it needs the constant {value}, which WGSL cannot write"));
        }
        // Rust's shortest form that reads back as the same float; WGSL knows it with the suffix of its type.
        let text = format!("{value:?}f");
        (text, if value.is_sign_negative() { Grip::Prefix } else { Grip::Whole })
    }

    fn input(&self, input: Input, k: usize) -> String {
        match input {
            Input::Parameters => self.physics.parameters.real("p", k),
            Input::Globals => self.physics.globals.real("g", k),
            Input::Settings => format!("settings()[{k}]"),
            Input::Vertex => "vertex(place)".into(),
            Input::Step => "step()".into(),
            Input::Draw => "draw()".into(),
            Input::Shared => self.physics.shared.real("own", k),
            Input::Private => self.physics.private.real("body", k),
            Input::Other { fold, other } => self.physics.shared.real(&self.other(fold, other), k),
            Input::Data { fold } => self.physics.stars[self.tape.folds[fold].star].data.real(&format!("data{fold}"), k),
        }
    }

    fn unary(&mut self, op: Unary, a: Id) -> (String, Grip) {
        let (text, grip) = self.expression(a);
        let on_integers = self.tape.scalar == Scalar::I32;
        let atom = if grip == Grip::Whole { text.clone() } else { format!("({text})") };
        let function = match op {
            Unary::Neg if grip > Grip::Prefix => return (format!("-{text}"), Grip::Prefix),
            Unary::Neg => return (format!("-({text})"), Grip::Prefix),
            Unary::Not if grip > Grip::Prefix => return (format!("!{text}"), Grip::Prefix),
            Unary::Not => return (format!("!({text})"), Grip::Prefix),
            Unary::ShiftLeft(bits) => return (format!("{atom} << {bits}u"), Grip::Relation),
            Unary::ShiftRight(bits) => return (format!("{atom} >> {bits}u"), Grip::Relation),
            Unary::ShiftRightLogical(bits) => {
                return (format!("bitcast<i32>(bitcast<u32>({text}) >> {bits}u)"), Grip::Whole);
            }
            Unary::Sqrt if on_integers => "sqrt_integer",
            Unary::Floor if on_integers => return (text, grip),
            Unary::Sqrt => "sqrt",
            Unary::Abs => "abs",
            Unary::Floor => "floor",
            Unary::Exp => self.exact("exp"),
            Unary::Ln => self.exact("ln"),
            Unary::Sin => self.exact("sin"),
            Unary::Cos => self.exact("cos"),
            Unary::Acos => self.exact("acos"),
            Unary::Tanh => self.exact("tanh"),
            Unary::FromInt => "f32",
            Unary::ToInt => "integer_of",
            // A function, since a literal with the bits of NaN cannot be converted where it stands.
            Unary::Hold => "slot_of",
            Unary::Held => "bitcast<i32>",
        };
        (format!("{function}({text})"), Grip::Whole)
    }

    /// The function of floats that is exact to a few roundings; integers have none.
    fn exact(&mut self, name: &'static str) -> &'static str {
        if self.tape.scalar == Scalar::I32 {
            self.fault.get_or_insert(format!("it needs {name} of integers, which shaders have not"));
        }
        match name {
            "exp" => "exp_exact",
            "ln" => "ln_exact",
            "sin" => "sin_exact",
            "cos" => "cos_exact",
            "acos" => "acos_exact",
            "tanh" => "tanh_exact",
            "pow" => "pow_exact",
            _ => "atan2_exact",
        }
    }

    fn binary(&mut self, op: Binary, a: Id, b: Id) -> (String, Grip) {
        let (word, grip) = match op {
            Binary::Add => ("+", Grip::Sum),
            Binary::Sub => ("-", Grip::Sum),
            Binary::Mul => ("*", Grip::Product),
            Binary::Div => ("/", Grip::Product),
            Binary::Less => ("<", Grip::Relation),
            Binary::AtMost => ("<=", Grip::Relation),
            Binary::Equals => ("==", Grip::Relation),
            Binary::BitAnd => ("&", Grip::Relation),
            Binary::BitOr => ("|", Grip::Relation),
            Binary::BitXor => ("^", Grip::Relation),
            Binary::Pow => (self.exact("pow"), Grip::Whole),
            Binary::Atan2 => (self.exact("atan2"), Grip::Whole),
            Binary::Rem if self.tape.scalar == Scalar::I32 => ("rem_integer", Grip::Whole),
            Binary::Rem => ("rem_exact", Grip::Whole),
        };
        let [(left, left_grip), (right, right_grip)] = [a, b].map(|id| self.expression(id));
        if grip == Grip::Whole {
            return (format!("{word}({left}, {right})"), grip);
        }
        // From left to right is how the program added; anything else is put into parentheses. Operands of operators on bits
        // must not be sums or products.
        let least = match op {
            Binary::BitAnd | Binary::BitOr | Binary::BitXor => Grip::Prefix,
            Binary::Less | Binary::AtMost | Binary::Equals => Grip::Sum,
            _ => grip,
        };
        let left = if left_grip < least { format!("({left})") } else { left };
        let right = if right_grip <= grip || right_grip < least { format!("({right})") } else { right };
        (format!("{left} {word} {right}"), grip)
    }

    /// Writes the body of a function that returns the record or number that `result` makes of the outputs.
    ///
    /// # Errors
    /// What cannot be written.
    pub(super) fn body(mut self, outputs: &[Id], result: impl FnOnce(&[String]) -> String) -> Result<String, String> {
        for (input, line) in [(Input::Parameters, "let p = parameters();"), (Input::Globals, "let g = globals();")] {
            let is_needed =
                |id: Id| self.uses[id as usize] > 0 && matches!(self.tape.node(id), Node::Input(of, _) if of == input);
            if (0..self.tape.len()).any(is_needed) {
                self.line(line);
            }
        }
        self.scope(None, self.tape.len());
        let outputs: Vec<String> = outputs.iter().map(|&id| self.expression(id).0).collect();
        self.line(&format!("return {};", result(&outputs)));
        match self.fault {
            None => Ok(self.text),
            Some(fault) => Err(fault),
        }
    }
}

/// An integer. The lowest has no literal of its own: a minus stands before one that does not exist.
fn integer(value: i32) -> (String, Grip) {
    match value {
        i32::MIN => ("i32(-2147483648)".into(), Grip::Whole),
        _ => (format!("{value}i"), if value < 0 { Grip::Prefix } else { Grip::Whole }),
    }
}
