//! Formulas at random: interpreted by one vertex and by lanes, and walked node by node by a kernel that is compiled.

use super::*;
use crate::mesh::generate::generate;
use crate::number::{Integer, Real};
use crate::program::{Given, Neighbors, Program};
use crate::trace::Id;
use crate::{Backend, Builder, Order, Simulation, Stages, kernels, record, stars, vertex};
use nalgebra::{SVector, Vector2, Vector3};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::RwLock;

/// The formula that [`Walk`] runs.
static FORMULA: RwLock<Option<Arc<Formula>>> = RwLock::new(None);
/// Leaves that a fold gathers at most.
const LEAVES: usize = 3;

vertex! { struct Body<R> { shared seen: Vector3<R>, own: Vector2<R> } }
record! { struct Parameters<R> { given: Vector2<R> } }
record! { struct Globals<R> { total: R } }
stars! { Edges[1]: Vector2<R>; }

struct Walk;

kernels! {
    for Walk: Body, Parameters, Globals;
    update Step |p, own, around| {
        let formula = FORMULA.read().unwrap().clone().expect("it is set");
        let walker = Walker { formula: &formula, p, own, around };
        let known = Known::default();
        let new: Vec<R> = formula.outputs.iter().map(|&id| walker.real(id, &known)).collect();
        Body { seen: SVector::from_fn(|i, _| new[i]), own: SVector::from_fn(|i, _| new[3 + i]) }
    };
}

impl Program for Walk {
    fn parameters(&self, _: f64) -> Parameters<f64> {
        Parameters { given: Vector2::new(0.75, -1.5) }
    }
    fn stars(&self, mesh: &Mesh, stars: &mut Stars) -> Result<()> {
        stars.add(Edges, mesh.edges(), |i| data(i.element, i.corner).into());
        Ok(())
    }
    fn initial(&self, _: &Mesh, v: u32) -> Body<f64> {
        let reals = start(v);
        Body { seen: SVector::from_fn(|i, _| reals[i]), own: SVector::from_fn(|i, _| reals[3 + i]) }
    }
    fn step(&self, stages: &mut Stages<Self>) {
        stages.sweep(Step, 2);
        stages.jacobi(Step, 1);
    }
}

fn data(element: usize, corner: usize) -> [f64; 2] {
    [0.25 + (element % 7) as f64 * 0.125, corner as f64 - 0.3]
}

fn start(v: u32) -> [f64; 5] {
    std::array::from_fn(|k| f64::from((v * 37 + k as u32 * 11) % 64) / 16.0 - 2.0)
}

/// One value.
#[derive(Clone, Copy)]
enum Held<R: Real> {
    Real(R),
    Int(R::Int),
    Truth(R::Mask),
}

/// What a fold has gathered, the other vertex, and the data of an element.
type Element<R> = ([R; LEAVES], Vector3<R>, Vector2<R>);

/// What is known at some element: values, what folds came to, and the elements themselves.
#[derive(Clone)]
struct Known<R: Real> {
    values: RefCell<BTreeMap<Id, Held<R>>>,
    results: RefCell<BTreeMap<usize, [R; LEAVES]>>,
    elements: BTreeMap<usize, Element<R>>,
}

impl<R: Real> Default for Known<R> {
    fn default() -> Self {
        Known { values: RefCell::default(), results: RefCell::default(), elements: BTreeMap::new() }
    }
}

struct Walker<'a, R: Real, N> {
    formula: &'a Formula,
    p: &'a Given<Walk, R>,
    own: Body<R>,
    around: &'a N,
}

impl<R: Real, N: Neighbors<Walk, R>> Walker<'_, R, N> {
    fn real(&self, id: Id, known: &Known<R>) -> R {
        match self.value(id, known) {
            Held::Real(x) => x,
            _ => unreachable!("formulas check their types"),
        }
    }

    fn int(&self, id: Id, known: &Known<R>) -> R::Int {
        match self.value(id, known) {
            Held::Int(x) => x,
            _ => unreachable!("formulas check their types"),
        }
    }

    fn truth(&self, id: Id, known: &Known<R>) -> R::Mask {
        match self.value(id, known) {
            Held::Truth(x) => x,
            _ => unreachable!("formulas check their types"),
        }
    }

    fn value(&self, id: Id, known: &Known<R>) -> Held<R> {
        if let Some(&held) = known.values.borrow().get(&id) {
            return held;
        }
        let held = self.compute(id, known);
        known.values.borrow_mut().insert(id, held);
        held
    }

    fn compute(&self, id: Id, known: &Known<R>) -> Held<R> {
        let tape = &self.formula.tape;
        match tape.node(id) {
            Node::Number(bits) => Held::Real(R::lit(f64::from_bits(bits))),
            Node::Literal(_, bits) => Held::Int(Integer::lit(bits.cast_signed())),
            Node::Truth(truth) => {
                let zero = R::lit(0.0);
                Held::Truth(if truth { zero.equals(zero) } else { zero.less(zero) })
            }
            Node::Input(input, k) => Held::Real(match input {
                Input::Parameters => self.p.given[k],
                Input::Globals => self.p.globals.total,
                Input::Settings => self.p.settings::<4>()[k],
                Input::Vertex => R::hold_int(self.p.vertex()),
                Input::Step => R::hold_int(self.p.step()),
                Input::Shared => self.own.seen[k],
                Input::Private => self.own.own[k],
                Input::Other { fold, .. } => known.elements[&fold].1[k],
                Input::Data { fold } => known.elements[&fold].2[k],
                Input::Draw => unreachable!("not asked for"),
            }),
            Node::Gathered { fold, k } => Held::Real(known.elements[&fold].0[k]),
            Node::Result { fold, k } => {
                if let Some(result) = known.results.borrow().get(&fold) {
                    return Held::Real(result[k]);
                }
                let result = self.fold(fold, known);
                known.results.borrow_mut().insert(fold, result);
                Held::Real(result[k])
            }
            Node::Unary(op, a) => match op {
                Unary::Not => Held::Truth(!self.truth(a, known)),
                Unary::FromInt => Held::Real(R::from_int(self.int(a, known))),
                Unary::Hold => Held::Real(R::hold_int(self.int(a, known))),
                Unary::ToInt => Held::Int(self.real(a, known).to_int()),
                Unary::Held => Held::Int(self.real(a, known).held_int()),
                Unary::ShiftLeft(bits) => Held::Int(self.int(a, known).shift_left(bits.into())),
                Unary::ShiftRight(bits) => Held::Int(self.int(a, known).shift_right(bits.into())),
                Unary::ShiftRightLogical(bits) => Held::Int(self.int(a, known).shift_right_logical(bits.into())),
                Unary::Neg if tape.type_of(a) == Type::Integer => Held::Int(-self.int(a, known)),
                _ => {
                    let x = self.real(a, known);
                    Held::Real(match op {
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
                        _ => unreachable!("all others are above"),
                    })
                }
            },
            Node::Binary(op, a, b) => match tape.type_of(a) {
                Type::Truth => {
                    let (a, b) = (self.truth(a, known), self.truth(b, known));
                    Held::Truth(if op == Binary::BitAnd { a & b } else { a | b })
                }
                Type::Integer => {
                    let (a, b) = (self.int(a, known), self.int(b, known));
                    match op {
                        Binary::Less => Held::Truth(a.less(b)),
                        Binary::AtMost => Held::Truth(a.at_most(b)),
                        Binary::Equals => Held::Truth(a.equals(b)),
                        Binary::Add => Held::Int(a + b),
                        Binary::Sub => Held::Int(a - b),
                        Binary::Mul => Held::Int(a * b),
                        Binary::BitAnd => Held::Int(a & b),
                        Binary::BitOr => Held::Int(a | b),
                        Binary::BitXor => Held::Int(a ^ b),
                        _ => unreachable!("formulas check their types"),
                    }
                }
                Type::Real => {
                    let (a, b) = (self.real(a, known), self.real(b, known));
                    match op {
                        Binary::Less => Held::Truth(a.less(b)),
                        Binary::AtMost => Held::Truth(a.at_most(b)),
                        Binary::Equals => Held::Truth(a.equals(b)),
                        Binary::Add => Held::Real(a + b),
                        Binary::Sub => Held::Real(a - b),
                        Binary::Mul => Held::Real(a * b),
                        Binary::Div => Held::Real(a / b),
                        Binary::Pow => Held::Real(a.pow(b)),
                        Binary::Atan2 => Held::Real(a.atan2(b)),
                        Binary::Rem => Held::Real(a.rem(b)),
                        _ => unreachable!("formulas check their types"),
                    }
                }
            },
            Node::Select { mask, yes, no } => {
                let mask = self.truth(mask, known);
                match tape.type_of(yes) {
                    Type::Integer => Held::Int(Integer::select(mask, self.int(yes, known), self.int(no, known))),
                    _ => Held::Real(R::select(mask, self.real(yes, known), self.real(no, known))),
                }
            }
        }
    }

    fn fold(&self, number: usize, known: &Known<R>) -> [R; LEAVES] {
        let fold = &self.formula.tape.folds[number];
        let padded = |ids: &[Id], known: &Known<R>| -> [R; LEAVES] {
            std::array::from_fn(|k| ids.get(k).map_or(R::lit(0.0), |&id| self.real(id, known)))
        };
        let init = padded(&fold.init, known);
        self.around.fold(Edges, init, |gathered: [R; LEAVES], [other], data| {
            let mut inside = known.clone();
            inside.elements.insert(number, (gathered, other.seen, data));
            padded(&fold.next, &inside)
        })
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) as usize) % end
    }
}

/// Values that can be seen, by type.
#[derive(Clone, Default)]
struct Seen {
    reals: Vec<Value>,
    integers: Vec<Value>,
    truths: Vec<Value>,
}

impl Seen {
    fn real(&self, random: &mut Random) -> Value {
        self.reals[random.below(self.reals.len())]
    }

    fn add(&mut self, formula: &Formula, value: Value) {
        match formula.type_of(value).unwrap() {
            Type::Real => self.reals.push(value),
            Type::Integer => self.integers.push(value),
            Type::Truth => self.truths.push(value),
        }
    }
}

/// Some operations, folds among them up to a depth.
fn grow(formula: &mut Formula, random: &mut Random, seen: &mut Seen, operations: usize, depth: usize) {
    const UNARY: [Unary; 9] =
        [Unary::Neg, Unary::Sqrt, Unary::Abs, Unary::Floor, Unary::Exp, Unary::Sin, Unary::Cos, Unary::Tanh, Unary::Ln];
    const BINARY: [Binary; 7] =
        [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Rem, Binary::Atan2, Binary::Add];
    const OF_INTEGERS: [Binary; 6] =
        [Binary::Add, Binary::Sub, Binary::Mul, Binary::BitAnd, Binary::BitOr, Binary::BitXor];
    const COMPARE: [Binary; 3] = [Binary::Less, Binary::AtMost, Binary::Equals];
    for _ in 0..operations {
        let (a, b) = (seen.real(random), seen.real(random));
        let made = match random.below(13) {
            0 | 1 => formula.unary(UNARY[random.below(UNARY.len())], a),
            2..=5 => formula.binary(BINARY[random.below(BINARY.len())], a, b),
            6 => formula.binary(COMPARE[random.below(3)], a, b),
            7 if !seen.truths.is_empty() => {
                let mask = seen.truths[random.below(seen.truths.len())];
                formula.select(mask, a, b)
            }
            8 if !seen.integers.is_empty() => {
                let pick = |random: &mut Random| seen.integers[random.below(seen.integers.len())];
                let (i, j) = (pick(random), pick(random));
                match random.below(5) {
                    0 => formula.unary(Unary::FromInt, i),
                    1 => formula.unary(Unary::ShiftRightLogical(random.below(32) as u8), i),
                    2 => formula.binary(COMPARE[random.below(3)], i, j),
                    3 => formula.unary(Unary::ShiftLeft(random.below(32) as u8), i),
                    _ => formula.binary(OF_INTEGERS[random.below(6)], i, j),
                }
            }
            9 if seen.truths.len() > 1 => {
                let (p, q) = (seen.truths[0], seen.truths[random.below(seen.truths.len())]);
                match random.below(3) {
                    0 => formula.unary(Unary::Not, p),
                    1 => formula.binary(Binary::BitAnd, p, q),
                    _ => formula.binary(Binary::BitOr, p, q),
                }
            }
            10 => Ok(match random.below(3) {
                0 => formula.integer(random.below(1000) as i32 - 500),
                1 => formula.real(random.below(100) as f64 / 7.0 - 5.0),
                _ => formula.unary(Unary::ToInt, a).unwrap(),
            }),
            11 | 12 if depth > 0 => {
                let leaves = 1 + random.below(LEAVES);
                let integer_last = random.below(3) == 0;
                let starts: Vec<Leaf> = (0..leaves)
                    .map(|k| {
                        let is_integer = integer_last && k + 1 == leaves;
                        let start = match is_integer {
                            true => {
                                let i = formula.integer(random.below(5) as i32);
                                formula.unary(Unary::Hold, i).unwrap()
                            }
                            false => seen.real(random),
                        };
                        let kind = if is_integer { Kind::Integer } else { Kind::Real };
                        Leaf { name: format!("leaf{k}"), kind, start }
                    })
                    .collect();
                let gathered = formula.open(Along::new(0, "Edges", 1, 2), starts).unwrap();
                let mut inside = seen.clone();
                let reals = if integer_last { &gathered[..leaves - 1] } else { &gathered[..] };
                inside.reals.extend(reals);
                (0..3).for_each(|k| inside.reals.push(formula.other(0, k).unwrap()));
                (0..2).for_each(|k| inside.reals.push(formula.data(k).unwrap()));
                if integer_last {
                    inside.integers.push(formula.unary(Unary::Held, gathered[leaves - 1]).unwrap());
                }
                let count = 3 + random.below(6);
                grow(formula, random, &mut inside, count, depth - 1);
                let next = (0..leaves)
                    .map(|k| match integer_last && k + 1 == leaves {
                        true => {
                            let i = *inside.integers.last().unwrap();
                            let sum = formula.binary(Binary::Add, i, inside.integers[0]).unwrap();
                            formula.unary(Unary::Hold, sum).unwrap()
                        }
                        false => tamed(formula, *inside.reals.last().unwrap()),
                    })
                    .collect();
                let results = formula.close(next).unwrap();
                if integer_last {
                    let held = formula.unary(Unary::Held, results[leaves - 1]).unwrap();
                    seen.integers.push(held);
                    seen.reals.extend(&results[..leaves - 1]);
                } else {
                    seen.reals.extend(&results);
                }
                continue;
            }
            _ => continue,
        };
        let made = made.unwrap();
        seen.add(formula, made);
    }
}

/// A value that is finite and small: no state may be anything else.
fn tamed(formula: &mut Formula, value: Value) -> Value {
    let size = formula.unary(Unary::Abs, value).unwrap();
    let most = formula.real(1e4);
    let is_small = formula.binary(Binary::Less, size, most).unwrap();
    let other = formula.real(0.375);
    formula.select(is_small, value, other).unwrap()
}

fn random_formula(seed: u64) -> Formula {
    let (mut formula, mut random, mut seen) = (Formula::default(), Random(seed), Seen::default());
    for (input, count) in
        [(Input::Shared, 3), (Input::Private, 2), (Input::Parameters, 2), (Input::Globals, 1), (Input::Settings, 2)]
    {
        (0..count).for_each(|k| seen.reals.push(formula.input(input, k)));
    }
    for input in [Input::Vertex, Input::Step] {
        let held = formula.input(input, 0);
        seen.integers.push(formula.unary(Unary::Held, held).unwrap());
    }
    let operations = 6 + random.below(30);
    grow(&mut formula, &mut random, &mut seen, operations, 2);
    let outputs: Vec<Value> = (0..5).map(|k| seen.reals[seen.reals.len() - 1 - k]).collect();
    let outputs = outputs.into_iter().map(|value| tamed(&mut formula, value)).collect();
    formula.finish(outputs).unwrap();
    formula
}

fn part(name: &str, components: usize) -> Part {
    Part { name: name.into(), components, kind: Kind::Real }
}

fn as_data(formula: Arc<Formula>, mesh: &Mesh) -> TapeProgram {
    let edges = mesh.edges();
    let data = (0..edges.len()).flat_map(|e| [data(e, 0), data(e, 1)]).flatten().collect::<Vec<_>>();
    let purpose = Purpose::Update { quiet: false };
    TapeProgram {
        name: "Walk".into(),
        shared: vec![part("seen", 3)],
        private: vec![part("own", 2)],
        parameters: vec![part("given", 2)],
        globals: vec![part("total", 1)],
        stars: vec![TapeStar {
            name: "Edges".into(),
            elements: edges.into_flattened().into(),
            parts: vec![part("value", 2)],
            data: data.into(),
            ..TapeStar::default()
        }],
        kernels: vec![TapeKernel { name: "Node".into(), purpose, formula }],
        initial: (0..mesh.points().len() as u32).flat_map(start).collect(),
        values: vec![0.75, -1.5],
        step: vec![
            TapeStage::Sweep { kernel: 0, settings: vec![], rounds: 2 },
            TapeStage::Jacobi { kernel: 0, settings: vec![], rounds: 1 },
        ],
        ..TapeProgram::default()
    }
}

/// The state after two steps.
fn outcome(mut simulation: Box<dyn crate::AnySimulation>) -> String {
    (0..2).for_each(|_| simulation.step().unwrap());
    simulation.digest().unwrap()
}

fn check<T: Number>(seed: u64, mesh: &Mesh) {
    let formula = Arc::new(random_formula(seed));
    *FORMULA.write().unwrap() = Some(formula.clone());
    let order = Order::ALL[seed as usize % Order::ALL.len()];
    let on = |backend| Builder::order(Simulation::builder(mesh.clone(), Walk), order).backend(backend).precision::<T>();
    let oracle = outcome(on(Backend::Serial).build().unwrap().into_any());
    let lanes = outcome(on(Backend::Cpu { threads: 1 }).build().unwrap().into_any());
    assert_eq!(lanes, oracle, "seed {seed}: lanes of compiled code");
    let backends = [Backend::Serial, Backend::Cpu { threads: 1 }, Backend::Cpu { threads: 2 }];
    #[cfg(feature = "cluster")]
    let backends = {
        let mut backends = backends.to_vec();
        if seed.is_multiple_of(16) {
            backends.push(Backend::Cluster(crate::Cluster::inside(2).unwrap()));
        }
        let sent = wire::read(&wire::write(&as_data(formula.clone(), mesh))).unwrap();
        assert_eq!(sent.kernels[0].formula, formula, "seed {seed}: written and read again");
        backends
    };
    for backend in backends {
        let program = as_data(formula.clone(), mesh);
        let built = program.builder(mesh.clone()).order(order).backend(backend.clone()).precision::<T>().start();
        assert_eq!(outcome(built.unwrap()), oracle, "seed {seed}: interpreted, {backend:?}");
    }
}

/// `MESHWEFT_FORMULAS=2000` tries as many: docs/claims.md has the last figure.
#[test]
fn formulas_at_random_have_the_bits_of_kernels_that_walk_them() {
    let count = std::env::var("MESHWEFT_FORMULAS").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    let meshes = [generate("sphere:2", 1).unwrap(), generate("sheet:9x7", 1).unwrap()];
    for seed in 0..count {
        match seed % 3 {
            0 => check::<f64>(seed, &meshes[seed as usize % 2]),
            _ => check::<f32>(seed, &meshes[seed as usize % 2]),
        }
    }
}

#[test]
fn what_does_not_fit_together_is_refused_by_name() {
    let mesh = generate("chain:4", 1).unwrap();
    let formula = Arc::new(random_formula(1));
    let refused = |change: &dyn Fn(&mut TapeProgram)| {
        let mut program = as_data(formula.clone(), &mesh);
        change(&mut program);
        program.builder(mesh.clone()).start().err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (change, words) in [
        (&(|program: &mut TapeProgram| program.initial.truncate(3)) as &dyn Fn(&mut TapeProgram), "initial state"),
        (&|program| program.values.push(1.0), "values of parameters"),
        (&|program| program.fixed.push(true), "fixed"),
        (&|program| program.start = vec![0.0; 3], "globals at the start"),
        (&|program| program.stars[0].elements = vec![0, 1, 2].into(), "no elements of 2"),
        (&|program| program.stars[0].elements = vec![0, 9, 1, 2, 2, 3].into(), "9"),
        (&|program| program.stars[0].data = vec![0.0; 3].into(), "3 values"),
        (&|program| program.stars.clear(), "star Edges"),
        (&|program| program.shared[0].components = 2, "Node"),
        (&|program| program.kernels[0].purpose = Purpose::Map, "Node"),
        (&|program| program.kernels[0].purpose = Purpose::Scalar, "Node"),
        (&|program| program.kernels[0].purpose = Purpose::Test, "Node"),
        (&|program| program.step = vec![TapeStage::Map { kernel: 0, settings: vec![] }], "for something else"),
        (&|program| program.step = vec![TapeStage::Scalar { kernel: 7, settings: vec![] }], "number 7"),
        (&|program| program.private[0].name = "seen".into(), "seen"),
        (&|program| program.private[0].components = usize::MAX, "more than 65536 numbers"),
        (&|program| program.globals = vec![part("many", u32::MAX as usize); 100], "more than 65536 numbers"),
        (&|program| program.stars[0].name = "Edges\nfn".into(), "no line can hold"),
        (&|program| program.initial[0] = f64::NAN, "NaN"),
        (&|program| program.values[0] = f64::INFINITY, "given"),
        (&|program| program.step[0] = TapeStage::Sweep { kernel: 0, settings: vec![0.0; 5], rounds: 1 }, "5 settings"),
    ] {
        let said = refused(change);
        assert!(said.contains(words), "{words:?} is not in {said:?}");
    }
}

#[test]
fn formulas_keep_elements_inside_of_their_loop_and_types_apart() {
    let mut formula = Formula::default();
    let (zero, truth, one) = (formula.real(0.0), formula.truth(true), formula.integer(1));
    assert!(formula.binary(Binary::Add, zero, one).is_err());
    assert!(formula.unary(Unary::Sqrt, truth).is_err());
    assert!(formula.unary(Unary::ShiftLeft(32), one).is_err());
    assert!(formula.select(zero, zero, zero).is_err());
    assert!(formula.other(0, 0).is_err() && formula.data(0).is_err() && formula.close(vec![]).is_err());
    let leaf = Leaf { name: "sum".into(), kind: Kind::Real, start: zero };
    assert!(formula.open(Along::new(0, "Edges", 1, 0), vec![]).is_err());
    formula.open(Along::new(0, "Edges", 1, 0), vec![leaf]).unwrap();
    let inside = formula.other(0, 0).unwrap();
    assert!(formula.other(1, 0).is_err() && formula.data(0).is_err());
    assert!(formula.finish(vec![zero]).is_err(), "the loop is open");
    assert!(formula.close(vec![one]).is_err());
    formula.close(vec![inside]).unwrap();
    let outside = formula.binary(Binary::Add, inside, zero);
    assert!(outside.unwrap_err().contains("outside of the loop"));
}

#[test]
#[cfg(feature = "cluster")]
fn bytes_that_are_no_program_are_refused_and_panic_nowhere() {
    let mesh = generate("chain:4", 1).unwrap();
    let mut random = Random(7);
    for seed in 0..20 {
        let whole = wire::write(&as_data(random_formula(seed).into(), &mesh));
        let read = |bytes: &[u8]| {
            if let Ok(program) = wire::read(bytes) {
                drop(program.table::<f32>());
            }
        };
        (0..whole.len()).step_by(37).for_each(|end| read(&whole[..end]));
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = random.below(256) as u8;
            }
            read(&bytes);
        }
    }
    assert!(wire::read(b"no program").is_err());
}

#[test]
fn a_long_chain_of_values_is_computed_and_a_longer_one_refused() {
    let mesh = generate("chain:4", 1).unwrap();
    let chain = |length: usize| {
        let mut formula = Formula::default();
        let own: Vec<Value> = (0..5)
            .map(|k| formula.input(if k < 3 { Input::Shared } else { Input::Private }, if k < 3 { k } else { k - 3 }))
            .collect();
        let parameter = formula.input(Input::Parameters, 0);
        let last = (0..length).fold(own[0], |sum, _| formula.binary(Binary::Add, sum, parameter).unwrap());
        formula.finish([last, own[1], own[2], own[3], own[4]].to_vec()).map(|()| Arc::new(formula))
    };
    let mut long = as_data(chain(150_000).unwrap(), &mesh).builder(mesh.clone()).start().unwrap();
    long.step().unwrap();
    assert!(chain(1 << 18).is_err());
}

/// As the example of `Stages::on`, and a step that lasts as long as a global says.
#[test]
fn data_has_parts_and_steps_that_last_and_are_shortened() {
    let mut sum = Formula::default();
    let zero = sum.real(0.0);
    let along = Along::new(0, "Links", 1, 0);
    let sums = sum.open(along, vec![Leaf { name: "sum".into(), kind: Kind::Real, start: zero }]).unwrap()[0];
    let other = sum.other(0, 0).unwrap();
    let sums = sum.binary(Binary::Add, sums, other).unwrap();
    let sums = sum.close(vec![sums]).unwrap();
    sum.finish(sums).unwrap();
    // The time step as kernels know it, halved.
    let mut choose = Formula::default();
    let [dt, half] = [choose.input(Input::Parameters, 0), choose.real(0.5)];
    let halved = choose.binary(Binary::Mul, dt, half).unwrap();
    choose.finish(vec![halved]).unwrap();
    let program = TapeProgram {
        name: "Two".into(),
        shared: vec![part("value", 1)],
        parameters: vec![part("dt", 1)],
        globals: vec![part("lasts", 1)],
        stars: vec![TapeStar { name: "Links".into(), elements: vec![0, 2, 1, 2].into(), ..TapeStar::default() }],
        kernels: vec![
            TapeKernel { name: "Sum".into(), purpose: Purpose::Update { quiet: false }, formula: sum.into() },
            TapeKernel { name: "Choose".into(), purpose: Purpose::Scalar, formula: choose.into() },
        ],
        parts: vec![vec![[0.5, 0.0, 0.0]]],
        initial: vec![1.0, 10.0, 100.0],
        values: vec![0.25],
        time_step: 0.25,
        time_parameter: Some(0),
        step: vec![
            TapeStage::On { part: 1, stages: vec![TapeStage::Sweep { kernel: 0, settings: vec![], rounds: 1 }] },
            TapeStage::Scalar { kernel: 1, settings: vec![] },
            TapeStage::Lasts { global: 0 },
        ],
        ..TapeProgram::default()
    };
    let mesh = || Mesh::from_graph(2, Vec::new()).unwrap();
    for backend in [Backend::Serial, Backend::Cpu { threads: 2 }] {
        let mut two = program.clone().builder(mesh()).backend(backend).precision::<f64>().start().unwrap();
        two.step().unwrap();
        assert_eq!((two.field("value").unwrap().values, two.time()), (vec![1.0, 10.0], 0.125));
        // What is left is a step of half of what it might be.
        two.step_until(0.2).unwrap();
        assert_eq!(two.time(), 0.125 + 0.5 * (0.2 - 0.125));
        two.step().unwrap();
        assert_eq!(two.time(), 0.1625 + 0.125, "the step after a shortened one is whole again");
    }
    let refused = |change: fn(&mut TapeProgram)| {
        let mut wrong = program.clone();
        change(&mut wrong);
        wrong.builder(mesh()).start().map(drop).unwrap_err().to_string()
    };
    let error = refused(|wrong| wrong.step = vec![TapeStage::On { part: 2, stages: vec![] }]);
    assert!(error.contains("stages are told for part 2, but there are 2"), "{error}");
    let error = refused(|wrong| wrong.step = vec![TapeStage::Lasts { global: 1 }]);
    assert!(error.contains("lasts as long as something says that is no global"), "{error}");
    let error = refused(|wrong| wrong.time_parameter = Some(1));
    assert!(error.contains("the time step is number 1 of the parameters, of which there are 1"), "{error}");
    let error = refused(|wrong| wrong.parts.clear());
    assert!(error.contains("3 values of the initial state were given, 2 are needed"), "{error}");
}
