//! Values of four or eight vertices in registers of 128 bits, and what is computed with them.
//!
//! Of four vertices a real is one register in 32 bits and two in 64; an integer or a truth is one. Each operation is that of
//! [`Real`](crate::number::Real), rounded alike; functions are those of `libm`, lane by lane.

use super::functions;
use crate::trace::{Binary, Type as Kinds, Unary};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::V128Imm;
use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, ConstantData, Endianness, InstBuilder, MemFlagsData, Signature, Type, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilder;

/// The registers of a value: as many as its lanes fill.
pub(super) type Parts = Vec<Value>;

/// Two lists of lanes interleaved, and pieces of them, as bytes of both.
const LOW: [u8; 4] = [0, 4, 1, 5];
const HIGH: [u8; 4] = [2, 6, 3, 7];
const LOW_HALVES: [u8; 4] = [0, 1, 4, 5];
const HIGH_HALVES: [u8; 4] = [2, 3, 6, 7];
const EVEN: [u8; 4] = [0, 2, 4, 6];
const FIRST_TWICE: [u8; 4] = [0, 0, 1, 1];
const LAST_TWICE: [u8; 4] = [2, 2, 3, 3];

/// Of what is read and written: places that are there, at any alignment.
pub(super) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// Of what nobody writes while a group is under way: lists of the tile, and the state of others, of which none is in the group.
pub(super) fn at_rest() -> MemFlagsData {
    flags().with_readonly().with_can_move()
}

/// What a block is given.
pub(super) fn args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().map(|&value| value.into()).collect()
}

/// Writes what is done with registers.
pub(super) struct Registers<'f> {
    pub(super) b: FunctionBuilder<'f>,
    pub(super) is_double: bool,
    /// Vertices at a time: four or eight.
    pub(super) lanes: usize,
    pub(super) call: CallConv,
}

impl Registers<'_> {
    pub(super) fn size(&self) -> usize {
        if self.is_double { 8 } else { 4 }
    }

    pub(super) fn scalar(&self) -> Type {
        if self.is_double { F64 } else { F32 }
    }

    pub(super) fn vector(&self) -> Type {
        if self.is_double { F64X2 } else { F32X4 }
    }

    /// Registers of a real.
    pub(super) fn parts(&self) -> usize {
        self.lanes / self.each()
    }

    /// Lanes of one of them.
    fn each(&self) -> usize {
        if self.is_double { 2 } else { 4 }
    }

    pub(super) fn jump(&mut self, to: Block, values: &[Value]) {
        self.b.ins().jump(to, &args(values));
    }

    /// `base + index bytes`.
    pub(super) fn at(&mut self, base: Value, index: Value, bytes: usize) -> Value {
        let offset = self.b.ins().imul_imm_s(index, bytes as i64);
        self.b.ins().iadd(base, offset)
    }

    pub(super) fn load(&mut self, of: Type, how: MemFlagsData, at: Value, offset: i32) -> Value {
        self.b.ins().load(of, how, at, offset)
    }

    pub(super) fn cast(&mut self, to: Type, x: Value) -> Value {
        if self.b.func.dfg.value_type(x) == to {
            return x;
        }
        self.b.ins().bitcast(to, MemFlagsData::new().with_endianness(Endianness::Little), x)
    }

    /// Four words of two registers of four: words 4 to 7 are those of the second.
    pub(super) fn words(&mut self, a: Value, b: Value, words: [u8; 4]) -> Value {
        let kind = self.b.func.dfg.value_type(a);
        let [a, b] = [a, b].map(|x| self.cast(I8X16, x));
        let bytes: Vec<u8> = words.iter().flat_map(|word| (0..4).map(move |byte| 4 * word + byte)).collect();
        let mask = self.b.func.dfg.immediates.push(ConstantData::from(bytes));
        let words = self.b.ins().shuffle(a, b, mask);
        self.cast(kind, words)
    }

    pub(super) fn constant(&mut self, kind: Type, bytes: [u8; 16]) -> Value {
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(V128Imm(bytes)));
        self.b.ins().vconst(kind, constant)
    }

    pub(super) fn real_number(&mut self, x: f64) -> Parts {
        let kind = self.vector();
        let bytes = match self.is_double {
            true => [x.to_bits(); 2].map(u64::to_le_bytes).concat(),
            false => [(x as f32).to_bits(); 4].map(u32::to_le_bytes).concat(),
        };
        vec![self.constant(kind, bytes.try_into().expect("sixteen bytes")); self.parts()]
    }

    pub(super) fn int_number(&mut self, x: i32) -> Parts {
        let bytes = [x; 4].map(i32::to_le_bytes).concat();
        vec![self.constant(I32X4, bytes.try_into().expect("sixteen bytes")); self.lanes / 4]
    }

    /// A number from memory in all lanes.
    pub(super) fn splat(&mut self, at: Value, offset: i32) -> Parts {
        let (scalar, vector) = (self.scalar(), self.vector());
        let x = self.load(scalar, at_rest(), at, offset);
        vec![self.b.ins().splat(vector, x); self.parts()]
    }

    /// Lanes of a real, side by side.
    pub(super) fn load_lanes(&mut self, how: MemFlagsData, at: Value, offset: i32) -> Parts {
        let vector = self.vector();
        (0..self.parts()).map(|part| self.load(vector, how, at, offset + 16 * part as i32)).collect()
    }

    /// Four reals that lie together.
    pub(super) fn load_four(&mut self, how: MemFlagsData, at: Value, offset: i32) -> Parts {
        let vector = self.vector();
        (0..4 / self.each()).map(|part| self.load(vector, how, at, offset + 16 * part as i32)).collect()
    }

    pub(super) fn store_lanes(&mut self, parts: &[Value], at: Value, offset: i32) {
        for (i, &part) in parts.iter().enumerate() {
            self.b.ins().store(flags(), part, at, offset + 16 * i as i32);
        }
    }

    /// A real of lanes, each computed right before it goes to its place.
    pub(super) fn join(&mut self, mut lane: impl FnMut(&mut Self, usize) -> Value) -> Parts {
        let (vector, each) = (self.vector(), self.each());
        let mut parts = Vec::new();
        for first in (0..self.lanes).step_by(each) {
            let x = lane(self, first);
            let mut part = self.b.ins().splat(vector, x);
            for i in 1..each {
                let x = lane(self, first + i);
                part = self.b.ins().insertlane(part, x, i as u8);
            }
            parts.push(part);
        }
        parts
    }

    /// The lanes of a real or an integer.
    pub(super) fn apart(&mut self, parts: &[Value]) -> Vec<Value> {
        let each = self.lanes / parts.len();
        (0..self.lanes).map(|i| self.b.ins().extractlane(parts[i / each], (i % each) as u8)).collect()
    }

    /// An integer of lanes.
    pub(super) fn join_ints(&mut self, lanes: &[Value]) -> Parts {
        let four = |four: &[Value]| {
            let first = self.b.ins().scalar_to_vector(I32X4, four[0]);
            (1..4).fold(first, |ints, i| self.b.ins().insertlane(ints, four[i], i as u8))
        };
        lanes.chunks(4).map(four).collect()
    }

    /// Four records of four reals as four reals of as many records, or back. `of[i]`: the registers of four lanes.
    pub(super) fn transpose(&mut self, of: [&[Value]; 4]) -> [Parts; 4] {
        if self.is_double {
            let mut pair = |a: usize, b: usize, part: usize, words| self.words(of[a][part], of[b][part], words);
            return [(0, LOW_HALVES), (0, HIGH_HALVES), (1, LOW_HALVES), (1, HIGH_HALVES)]
                .map(|(part, words)| vec![pair(0, 1, part, words), pair(2, 3, part, words)]);
        }
        let [a, b, c, d] = of.map(|parts| parts[0]);
        let (low, high) =
            ([self.words(a, b, LOW), self.words(c, d, LOW)], [self.words(a, b, HIGH), self.words(c, d, HIGH)]);
        [(low, LOW_HALVES), (low, HIGH_HALVES), (high, LOW_HALVES), (high, HIGH_HALVES)]
            .map(|([first, last], words)| vec![self.words(first, last, words)])
    }

    /// A truth as masks of the registers of a real.
    pub(super) fn masks(&mut self, truth: &[Value]) -> Parts {
        if !self.is_double {
            return truth.to_vec();
        }
        let twice = |&four: &Value| [FIRST_TWICE, LAST_TWICE].map(|words| self.words(four, four, words));
        truth.iter().flat_map(twice).collect()
    }

    /// Bits of one register or another.
    pub(super) fn choose(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        let kind = self.b.func.dfg.value_type(yes);
        let mask = self.cast(kind, mask);
        self.b.ins().bitselect(mask, yes, no)
    }

    /// A function of each lane.
    pub(super) fn call(&mut self, function: usize, arguments: &[&Parts]) -> Parts {
        let scalar = self.scalar();
        let mut signature = Signature::new(self.call);
        signature.params.extend(arguments.iter().map(|_| AbiParam::new(scalar)));
        signature.returns.push(AbiParam::new(scalar));
        let signature = self.b.import_signature(signature);
        let address = self.b.ins().iconst(I64, function as i64);
        let lanes: Vec<Vec<Value>> = arguments.iter().map(|parts| self.apart(parts)).collect();
        let result = |lane| {
            let arguments: Vec<Value> = lanes.iter().map(|lanes| lanes[lane]).collect();
            let call = self.b.ins().call_indirect(signature, address, &arguments);
            self.b.inst_results(call)[0]
        };
        let results: Vec<Value> = (0..self.lanes).map(result).collect();
        self.join(|_, lane| results[lane])
    }

    pub(super) fn real_of_int(&mut self, a: &Parts) -> Parts {
        if !self.is_double {
            return a.iter().map(|&a| self.b.ins().fcvt_from_sint(F32X4, a)).collect();
        }
        let lanes = self.apart(a);
        self.join(|own, lane| own.b.ins().fcvt_from_sint(F64, lanes[lane]))
    }

    pub(super) fn int_of_real(&mut self, a: &Parts) -> Parts {
        if !self.is_double {
            return a.iter().map(|&a| self.b.ins().fcvt_to_sint_sat(I32X4, a)).collect();
        }
        let lanes = self.apart(a);
        let lanes: Vec<Value> = lanes.iter().map(|&lane| self.b.ins().fcvt_to_sint_sat(I32, lane)).collect();
        self.join_ints(&lanes)
    }

    /// Integers in the slots of reals: their bits in 32 bits, their values in 64.
    pub(super) fn hold(&mut self, a: Parts) -> Parts {
        match self.is_double {
            true => self.real_of_int(&a),
            false => a.iter().map(|&a| self.cast(F32X4, a)).collect(),
        }
    }

    pub(super) fn unary(&mut self, op: Unary, kind: Kinds, a: &Parts) -> Parts {
        let function = match op {
            Unary::Exp => functions::EXP,
            Unary::Ln => functions::LN,
            Unary::Sin => functions::SIN,
            Unary::Cos => functions::COS,
            Unary::Acos => functions::ACOS,
            Unary::Tanh => functions::TANH,
            Unary::FromInt => return self.real_of_int(a),
            Unary::Hold => return self.hold(a.clone()),
            Unary::ToInt => return self.int_of_real(a),
            Unary::Held if self.is_double => return self.int_of_real(a),
            Unary::Held => return a.iter().map(|&a| self.cast(I32X4, a)).collect(),
            _ => {
                let each = |&x: &Value| match op {
                    Unary::Neg if kind == Kinds::Integer => self.b.ins().ineg(x),
                    Unary::Neg => self.b.ins().fneg(x),
                    Unary::Sqrt => self.b.ins().sqrt(x),
                    Unary::Abs => self.b.ins().fabs(x),
                    Unary::Floor => self.b.ins().floor(x),
                    Unary::Not => self.b.ins().bnot(x),
                    Unary::ShiftLeft(bits) => self.b.ins().ishl_imm_u(x, i64::from(bits)),
                    Unary::ShiftRight(bits) => self.b.ins().sshr_imm_u(x, i64::from(bits)),
                    Unary::ShiftRightLogical(bits) => self.b.ins().ushr_imm_u(x, i64::from(bits)),
                    _ => unreachable!("{op:?} is written above"),
                };
                return a.iter().map(each).collect();
            }
        };
        self.call(function[usize::from(self.is_double)](), &[a])
    }

    pub(super) fn binary(&mut self, op: Binary, kind: Kinds, a: &Parts, b: &Parts) -> Parts {
        let function = match op {
            Binary::Pow => functions::POW,
            Binary::Atan2 => functions::ATAN2,
            Binary::Rem => functions::REM,
            _ => {
                let is_real = kind == Kinds::Real;
                let each = |(&x, &y): (&Value, &Value)| match op {
                    Binary::Add if is_real => self.b.ins().fadd(x, y),
                    Binary::Sub if is_real => self.b.ins().fsub(x, y),
                    Binary::Mul if is_real => self.b.ins().fmul(x, y),
                    Binary::Div => self.b.ins().fdiv(x, y),
                    Binary::Add => self.b.ins().iadd(x, y),
                    Binary::Sub => self.b.ins().isub(x, y),
                    Binary::Mul => self.b.ins().imul(x, y),
                    Binary::BitAnd => self.b.ins().band(x, y),
                    Binary::BitOr => self.b.ins().bor(x, y),
                    Binary::BitXor => self.b.ins().bxor(x, y),
                    Binary::Less if is_real => self.b.ins().fcmp(FloatCC::LessThan, x, y),
                    Binary::AtMost if is_real => self.b.ins().fcmp(FloatCC::LessThanOrEqual, x, y),
                    Binary::Equals if is_real => self.b.ins().fcmp(FloatCC::Equal, x, y),
                    Binary::Less => self.b.ins().icmp(IntCC::SignedLessThan, x, y),
                    Binary::AtMost => self.b.ins().icmp(IntCC::SignedLessThanOrEqual, x, y),
                    Binary::Equals => self.b.ins().icmp(IntCC::Equal, x, y),
                    _ => unreachable!("{op:?} is written above"),
                };
                let parts: Parts = a.iter().zip(b).map(each).collect();
                let compares = matches!(op, Binary::Less | Binary::AtMost | Binary::Equals);
                if !(compares && is_real && self.is_double) {
                    return parts;
                }
                // The masks of two registers as words of one.
                let one = |two: &[Value]| {
                    let [first, last] = [two[0], two[1]].map(|mask| self.cast(I32X4, mask));
                    self.words(first, last, EVEN)
                };
                return parts.chunks(2).map(one).collect();
            }
        };
        self.call(function[usize::from(self.is_double)](), &[a, b])
    }
}
