//! Writes a tape as instructions: four vertices at a time, in registers of 128 bits.
//!
//! A real is one register in 32 bits and two in 64; an integer or a truth is one. Each operation is that of
//! [`Real`](crate::number::Real), rounded alike; functions are those of `libm`, lane by lane.

use super::{Frame, Shape, StarFrame, functions};
use crate::engine::taped::{Event, Order};
use crate::number::Kind;
use crate::trace::{Binary, Fold, Id, Input, Node, Tape, Type as Kinds, Unary};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::V128Imm;
use cranelift_codegen::ir::types::{F32, F32X4, F64, F64X2, I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, ConstantData, Endianness, InstBuilder, MemFlagsData, Signature, Type, Value,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::FunctionBuilder;
use std::collections::BTreeMap;
use std::mem::offset_of;

/// Vertices at a time.
const LANES: usize = 4;

/// The registers of a value.
type Parts = Vec<Value>;

/// Places of four records: an address, and how many bytes behind it.
type Places = [(Value, i32); LANES];

/// Two lists of lanes interleaved, and pieces of them, as bytes of both.
const LOW: [u8; 4] = [0, 4, 1, 5];
const HIGH: [u8; 4] = [2, 6, 3, 7];
const LOW_HALVES: [u8; 4] = [0, 1, 4, 5];
const HIGH_HALVES: [u8; 4] = [2, 3, 6, 7];
const EVEN: [u8; 4] = [0, 2, 4, 6];
const FIRST_TWICE: [u8; 4] = [0, 0, 1, 1];
const LAST_TWICE: [u8; 4] = [2, 2, 3, 3];

/// Of what is read and written: places that are there, at any alignment.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

pub(super) struct Emit<'a, 'f> {
    b: FunctionBuilder<'f>,
    tape: &'a Tape,
    outputs: &'a [Id],
    order: &'a Order<'a>,
    shape: &'a Shape,
    call: CallConv,
    of: Vec<Option<Parts>>,
    /// What each loop has gathered so far, or in the end.
    gathered: Vec<Vec<Parts>>,
    frame: Value,
    /// The present group of the tile, and the first of the four lanes of it.
    group: Value,
    lane: Value,
}

impl<'a, 'f> Emit<'a, 'f> {
    /// Writes a function of a frame, the first group, how many groups, and one or minus one from a group to the next.
    pub(super) fn function(
        b: FunctionBuilder<'f>,
        (tape, outputs): (&'a Tape, &'a [Id]),
        order: &'a Order<'a>,
        shape: &'a Shape,
        config: TargetFrontendConfig,
    ) {
        let call = config.default_call_conv;
        let (of, gathered) = (vec![None; tape.len() as usize], vec![Vec::new(); tape.folds.len()]);
        let nowhere = Value::from_u32(0);
        let mut emit =
            Emit { b, tape, outputs, order, shape, call, of, gathered, frame: nowhere, group: nowhere, lane: nowhere };
        let entry = emit.b.create_block();
        emit.b.append_block_params_for_function_params(entry);
        emit.b.switch_to_block(entry);
        let &[frame, first, count, step] = emit.b.block_params(entry) else { unreachable!("it has four") };
        emit.frame = frame;
        for &id in &order.once {
            emit.value(id);
        }
        let [groups, inside, lanes, next, done] = [(); 5].map(|()| emit.b.create_block());
        let [group, left] = [(); 2].map(|()| emit.b.append_block_param(groups, I64));
        let lane = emit.b.append_block_param(lanes, I64);
        emit.jump(groups, &[first, count]);
        emit.b.switch_to_block(groups);
        emit.b.ins().brif(left, inside, &[], done, &[]);
        emit.b.switch_to_block(inside);
        let zero = emit.b.ins().iconst(I64, 0);
        emit.jump(lanes, &[zero]);
        emit.b.switch_to_block(lanes);
        (emit.group, emit.lane) = (group, lane);
        emit.own();
        emit.events(&order.body);
        emit.results();
        let more = emit.b.ins().iadd_imm_s(lane, LANES as i64);
        let is_more = emit.b.ins().icmp_imm_s(IntCC::SignedLessThan, more, shape.width as i64);
        emit.b.ins().brif(is_more, lanes, &[BlockArg::Value(more)], next, &[]);
        emit.b.switch_to_block(next);
        let (group, left) = (emit.b.ins().iadd(group, step), emit.b.ins().iadd_imm_s(left, -1));
        emit.jump(groups, &[group, left]);
        emit.b.switch_to_block(done);
        emit.b.ins().return_(&[]);
        emit.b.seal_all_blocks();
        emit.b.finalize(config);
    }

    fn size(&self) -> usize {
        if self.shape.is_double { 8 } else { 4 }
    }

    fn scalar(&self) -> Type {
        if self.shape.is_double { F64 } else { F32 }
    }

    fn vector(&self) -> Type {
        if self.shape.is_double { F64X2 } else { F32X4 }
    }

    /// Registers of a real.
    fn parts(&self) -> usize {
        if self.shape.is_double { 2 } else { 1 }
    }

    fn jump(&mut self, to: Block, values: &[Value]) {
        let values: Vec<BlockArg> = values.iter().map(|&value| value.into()).collect();
        self.b.ins().jump(to, &values);
    }

    fn load(&mut self, of: Type, at: Value, offset: i32) -> Value {
        self.b.ins().load(of, flags(), at, offset)
    }

    /// A pointer of the frame.
    fn field(&mut self, offset: usize) -> Value {
        let frame = self.frame;
        self.b.ins().load(I64, flags().with_readonly(), frame, offset as i32)
    }

    fn cast(&mut self, to: Type, x: Value) -> Value {
        if self.b.func.dfg.value_type(x) == to {
            return x;
        }
        self.b.ins().bitcast(to, MemFlagsData::new().with_endianness(Endianness::Little), x)
    }

    /// Four words of two registers of four: words 4 to 7 are those of the second.
    fn words(&mut self, a: Value, b: Value, words: [u8; 4]) -> Value {
        let kind = self.b.func.dfg.value_type(a);
        let [a, b] = [a, b].map(|x| self.cast(I8X16, x));
        let bytes: Vec<u8> = words.iter().flat_map(|word| (0..4).map(move |byte| 4 * word + byte)).collect();
        let mask = self.b.func.dfg.immediates.push(ConstantData::from(bytes));
        let words = self.b.ins().shuffle(a, b, mask);
        self.cast(kind, words)
    }

    fn constant(&mut self, kind: Type, bytes: [u8; 16]) -> Value {
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(V128Imm(bytes)));
        self.b.ins().vconst(kind, constant)
    }

    fn real_number(&mut self, x: f64) -> Parts {
        let kind = self.vector();
        let bytes = match self.shape.is_double {
            true => [x.to_bits(); 2].map(u64::to_le_bytes).concat(),
            false => [(x as f32).to_bits(); 4].map(u32::to_le_bytes).concat(),
        };
        vec![self.constant(kind, bytes.try_into().expect("sixteen bytes")); self.parts()]
    }

    fn int_number(&mut self, x: i32) -> Parts {
        let bytes = [x; 4].map(i32::to_le_bytes).concat();
        vec![self.constant(I32X4, bytes.try_into().expect("sixteen bytes"))]
    }

    /// A number from memory in all lanes.
    fn splat(&mut self, at: Value, offset: i32) -> Parts {
        let (scalar, vector) = (self.scalar(), self.vector());
        let x = self.load(scalar, at, offset);
        vec![self.b.ins().splat(vector, x); self.parts()]
    }

    /// Lanes of a real, side by side.
    fn load_lanes(&mut self, at: Value, offset: i32) -> Parts {
        let vector = self.vector();
        (0..self.parts()).map(|part| self.load(vector, at, offset + 16 * part as i32)).collect()
    }

    fn store_lanes(&mut self, parts: &[Value], at: Value, offset: i32) {
        for (i, &part) in parts.iter().enumerate() {
            self.b.ins().store(flags(), part, at, offset + 16 * i as i32);
        }
    }

    /// A real of four lanes.
    fn join(&mut self, lanes: [Value; LANES]) -> Parts {
        let vector = self.vector();
        let mut parts = Vec::new();
        for lanes in lanes.chunks(LANES / self.parts()) {
            let mut part = self.b.ins().scalar_to_vector(vector, lanes[0]);
            for (i, &lane) in lanes.iter().enumerate().skip(1) {
                part = self.b.ins().insertlane(part, lane, i as u8);
            }
            parts.push(part);
        }
        parts
    }

    fn lanes(&mut self, parts: &[Value]) -> [Value; LANES] {
        let each = LANES / self.parts();
        std::array::from_fn(|i| self.b.ins().extractlane(parts[i / each], (i % each) as u8))
    }

    fn join_ints(&mut self, lanes: [Value; LANES]) -> Parts {
        let mut ints = self.b.ins().scalar_to_vector(I32X4, lanes[0]);
        for i in 1..LANES {
            ints = self.b.ins().insertlane(ints, lanes[i], i as u8);
        }
        vec![ints]
    }

    fn int_lanes(&mut self, ints: &[Value]) -> [Value; LANES] {
        std::array::from_fn(|i| self.b.ins().extractlane(ints[0], i as u8))
    }

    /// Four records of four reals as four reals of as many records, or back: `of[i]` are the registers of one.
    fn transpose(&mut self, of: [Parts; 4]) -> [Parts; 4] {
        if self.shape.is_double {
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

    /// Some reals of four records.
    fn records(&mut self, places: &Places, wanted: &[usize]) -> Vec<Parts> {
        let (scalar, size, stride) = (self.scalar(), self.size() as i32, self.shape.stride);
        let mut quads = BTreeMap::new();
        if stride >= 4 {
            let count = |quad| wanted.iter().filter(|&&k| k / 4 == quad).count();
            for quad in (0..stride / 4).filter(|&quad| count(quad) > 1) {
                let rows = places.map(|(at, offset)| self.load_lanes(at, offset + 4 * quad as i32 * size));
                quads.insert(quad, self.transpose(rows));
            }
        }
        let real = |&k: &usize| match quads.get(&(k / 4)) {
            Some(quad) => quad[k % 4].clone(),
            None => {
                let lanes = places.map(|(at, offset)| self.load(scalar, at, offset + k as i32 * size));
                self.join(lanes)
            }
        };
        wanted.iter().map(real).collect()
    }

    /// Inputs that are wanted of those that `which` gives the number of the real of.
    fn wanted(&self, which: impl Fn(Input, usize) -> Option<usize>) -> Vec<(Id, usize)> {
        let input = |id| match self.tape.node(id) {
            Node::Input(input, k) if self.order.is_wanted[id as usize] => which(input, k).map(|k| (id, k)),
            _ => None,
        };
        (0..self.tape.len()).filter_map(input).collect()
    }

    /// The address of what the four lanes have, of `reals` reals a vertex.
    fn address(&mut self, field: usize, bytes: usize) -> Value {
        let (base, width) = (self.field(field), self.shape.width as i64);
        let first = self.b.ins().imul_imm_s(self.group, width);
        let slot = self.b.ins().iadd(first, self.lane);
        let offset = self.b.ins().imul_imm_s(slot, bytes as i64);
        self.b.ins().iadd(base, offset)
    }

    /// Their own shared reals.
    fn own_places(&mut self, field: usize) -> Places {
        let bytes = self.shape.stride * self.size();
        let at = self.address(field, bytes);
        std::array::from_fn(|i| (at, (i * bytes) as i32))
    }

    /// Where real 0 of their private state is, and bytes to the next real.
    fn own_private(&mut self, field: usize) -> (Value, i32) {
        let (size, width, reals) = (self.size(), self.shape.width, self.shape.private());
        let base = self.field(field);
        let group = self.b.ins().imul_imm_s(self.group, (reals * width * size) as i64);
        let lane = self.b.ins().imul_imm_s(self.lane, size as i64);
        let at = self.b.ins().iadd(base, group);
        (self.b.ins().iadd(at, lane), (width * size) as i32)
    }

    /// Reads what the vertices have themselves.
    fn own(&mut self) {
        let shared = self.wanted(|input, k| (input == Input::Shared).then_some(k));
        if !shared.is_empty() {
            let reals = self.own_shared(&shared.iter().map(|&(_, k)| k).collect::<Vec<_>>());
            shared.iter().zip(reals).for_each(|(&(id, _), real)| self.of[id as usize] = Some(real));
        }
        let private = self.wanted(|input, k| (input == Input::Private).then_some(k));
        if !private.is_empty() {
            let (at, next) = self.own_private(offset_of!(Frame, private));
            for (id, k) in private {
                self.of[id as usize] = Some(self.load_lanes(at, k as i32 * next));
            }
        }
        for (id, _) in self.wanted(|input, k| (input == Input::Vertex).then_some(k)) {
            let at = self.address(offset_of!(Frame, numbers), 4);
            let ints = self.load(I32X4, at, 0);
            self.of[id as usize] = Some(self.hold(vec![ints]));
        }
    }

    fn own_shared(&mut self, wanted: &[usize]) -> Vec<Parts> {
        let places = self.own_places(offset_of!(Frame, shared));
        match self.shape.stride {
            1 => wanted.iter().map(|_| self.load_lanes(places[0].0, 0)).collect(),
            _ => self.records(&places, wanted),
        }
    }

    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event {
                &Event::Value(id) => self.value(id),
                Event::Fold(fold, inner) => self.fold(*fold, inner),
            }
        }
    }

    fn fold(&mut self, number: usize, inner: &[Event]) {
        let tape = self.tape;
        let Fold { star, others, init, next, .. } = &tape.folds[number];
        let (size, width, name) = (self.size(), self.shape.width, self.shape.name_bytes);
        let stars = self.field(offset_of!(Frame, stars));
        let mut of_star = |field: usize| {
            let offset = star * size_of::<StarFrame>() + field;
            self.b.ins().load(I64, flags().with_readonly(), stars, offset as i32)
        };
        let columns = of_star(offset_of!(StarFrame, columns));
        let full = of_star(offset_of!(StarFrame, full));
        let degrees = of_star(offset_of!(StarFrame, degrees));
        let names = of_star(offset_of!(StarFrame, others));
        let data = of_star(offset_of!(StarFrame, data));
        let data_step = of_star(offset_of!(StarFrame, data_step));
        let others_step = (others * width * name) as i64;
        let (trusted, group, lane) = (flags(), self.group, self.lane);
        let at = self.b.ins().ishl_imm_u(group, 2);
        let at = self.b.ins().iadd(columns, at);
        let [start, end] = [0, 4].map(|offset| self.b.ins().uload32(trusted, at, offset));
        let at = self.b.ins().ishl_imm_u(group, 1);
        let at = self.b.ins().iadd(full, at);
        let full = self.b.ins().uload16(I64, trusted, at, 0);
        let count = self.b.ins().isub(end, start);
        let offset = self.b.ins().imul_imm_s(start, others_step);
        let lane_offset = self.b.ins().imul_imm_s(lane, name as i64);
        let names = self.b.ins().iadd(names, offset);
        let names = self.b.ins().iadd(names, lane_offset);
        let offset = self.b.ins().imul(start, data_step);
        let lane_offset = self.b.ins().imul_imm_s(lane, size as i64);
        let data = self.b.ins().iadd(data, offset);
        let data = self.b.ins().iadd(data, lane_offset);
        let at = self.b.ins().imul_imm_s(group, 2 * width as i64);
        let degrees = self.b.ins().iadd(degrees, at);
        let at = self.b.ins().imul_imm_s(lane, 2);
        let degrees = self.b.ins().iadd(degrees, at);

        // element(j, names, data, gathered...) ─▶ broken(next...) or whole ─▶ gone(gathered...) ─▶ element, or end(gathered...)
        let [element, broken, gone, end] = [(); 4].map(|()| self.b.create_block());
        let kind = self.vector();
        let reals = init.len() * self.parts();
        let [j, names_now, data_now] = [(); 3].map(|()| self.b.append_block_param(element, I64));
        let [gathered, kept, result] =
            [element, gone, end].map(|block| (0..reals).map(|_| self.b.append_block_param(block, kind)).collect());
        let [gathered, kept, result]: [Vec<Value>; 3] = [gathered, kept, result];
        let begin: Vec<Value> = init.iter().flat_map(|&id| self.get(id)).collect();
        let zero = self.b.ins().iconst(I64, 0);
        let first = [&[zero, names, data], &begin[..]].concat();
        let [first, nothing] = [&first, &begin].map(|values| values.iter().map(|&value| value.into()).collect());
        let [first, nothing]: [Vec<BlockArg>; 2] = [first, nothing];
        self.b.ins().brif(count, element, &first, end, &nothing);

        self.b.switch_to_block(element);
        self.gathered[number] = gathered.chunks(self.parts()).map(<[Value]>::to_vec).collect();
        self.elements(number, *others, names_now, data_now);
        self.events(inner);
        let new: Vec<Value> = next.iter().flat_map(|&id| self.get(id)).collect();
        let is_whole = self.b.ins().icmp(IntCC::UnsignedLessThan, j, full);
        let args: Vec<BlockArg> = new.iter().map(|&value| value.into()).collect();
        self.b.ins().brif(is_whole, gone, &args, broken, &[]);

        // Some vertices have no more: what they gathered stays as it is.
        self.b.switch_to_block(broken);
        let degrees = self.b.ins().uload16x4(trusted, degrees, 0);
        let j_here = self.b.ins().ireduce(I32, j);
        let j_here = self.b.ins().splat(I32X4, j_here);
        let has = self.b.ins().icmp(IntCC::SignedLessThan, j_here, degrees);
        let masks = self.masks(has);
        let parts = self.parts();
        let chosen: Vec<Value> = (0..reals).map(|i| self.choose(masks[i % parts], new[i], gathered[i])).collect();
        self.jump(gone, &chosen);

        self.b.switch_to_block(gone);
        let j = self.b.ins().iadd_imm_s(j, 1);
        let names = self.b.ins().iadd_imm_s(names_now, others_step);
        let data = self.b.ins().iadd(data_now, data_step);
        let is_more = self.b.ins().icmp(IntCC::UnsignedLessThan, j, count);
        let more = [&[j, names, data], &kept[..]].concat();
        let [more, last] = [&more, &kept].map(|values| values.iter().map(|&value| value.into()).collect());
        let [more, last]: [Vec<BlockArg>; 2] = [more, last];
        self.b.ins().brif(is_more, element, &more, end, &last);

        self.b.switch_to_block(end);
        self.gathered[number] = result.chunks(self.parts()).map(<[Value]>::to_vec).collect();
    }

    /// Reads what the body of a loop wants of the present element.
    fn elements(&mut self, number: usize, others: usize, names: Value, data: Value) {
        let (size, width, name) = (self.size(), self.shape.width, self.shape.name_bytes);
        let trusted = flags();
        for other in 0..others {
            let wanted = self.wanted(|input, k| (input == Input::Other { fold: number, other }).then_some(k));
            if wanted.is_empty() {
                continue;
            }
            let (table, record) = (self.field(offset_of!(Frame, table)), (self.shape.stride * size) as i64);
            let places = std::array::from_fn(|lane| {
                let offset = ((other * width + lane) * name) as i32;
                let place = match name {
                    2 => self.b.ins().uload16(I64, trusted, names, offset),
                    _ => self.b.ins().uload32(trusted, names, offset),
                };
                let bytes = self.b.ins().imul_imm_s(place, record);
                (self.b.ins().iadd(table, bytes), 0)
            });
            let reals = self.records(&places, &wanted.iter().map(|&(_, k)| k).collect::<Vec<_>>());
            wanted.iter().zip(reals).for_each(|(&(id, _), real)| self.of[id as usize] = Some(real));
        }
        for (id, k) in self.wanted(|input, k| (input == Input::Data { fold: number }).then_some(k)) {
            self.of[id as usize] = Some(self.load_lanes(data, (k * width * size) as i32));
        }
    }

    /// A truth as masks of the registers of a real.
    fn masks(&mut self, truth: Value) -> Parts {
        match self.shape.is_double {
            false => vec![truth],
            true => [FIRST_TWICE, LAST_TWICE].map(|words| self.words(truth, truth, words)).into(),
        }
    }

    /// Bits of one register or another.
    fn choose(&mut self, mask: Value, yes: Value, no: Value) -> Value {
        let kind = self.b.func.dfg.value_type(yes);
        let mask = self.cast(kind, mask);
        self.b.ins().bitselect(mask, yes, no)
    }

    fn get(&self, id: Id) -> Parts {
        match self.tape.node(id) {
            Node::Gathered { fold, k } | Node::Result { fold, k } => self.gathered[fold][k].clone(),
            _ => self.of[id as usize].clone().expect("a value is computed before it is used"),
        }
    }

    fn value(&mut self, id: Id) {
        if self.of[id as usize].is_some() {
            return;
        }
        let node = self.tape.node(id);
        let operands: Vec<Parts> = node.operands().map(|operand| self.get(operand)).collect();
        let kind = node.operands().last().map_or(Kinds::Real, |operand| self.tape.type_of(operand));
        let parts = match (node, &operands[..]) {
            (Node::Number(bits), _) => self.real_number(f64::from_bits(bits)),
            (Node::Literal(_, bits), _) => self.int_number(bits.cast_signed()),
            (Node::Truth(value), _) => self.int_number(if value { -1 } else { 0 }),
            (Node::Input(input, k), _) => {
                let (field, k) = match input {
                    Input::Parameters => (offset_of!(Frame, parameters), k),
                    Input::Globals => (offset_of!(Frame, globals), k),
                    Input::Settings => (offset_of!(Frame, settings), k),
                    Input::Step => (offset_of!(Frame, counters), 0),
                    Input::Draw => (offset_of!(Frame, counters), 1),
                    _ => unreachable!("what vertices read is read ahead"),
                };
                let (at, size) = (self.field(field), self.size());
                self.splat(at, (k * size) as i32)
            }
            (Node::Unary(op, _), [a]) => self.unary(op, kind, a),
            (Node::Binary(op, ..), [a, b]) => self.binary(op, kind, a, b),
            (Node::Select { .. }, [mask, yes, no]) => {
                let masks = if kind == Kinds::Real { self.masks(mask[0]) } else { mask.clone() };
                (0..yes.len()).map(|i| self.choose(masks[i], yes[i], no[i])).collect()
            }
            _ => unreachable!("a loop is no value by itself"),
        };
        self.of[id as usize] = Some(parts);
    }

    /// A function of each lane.
    fn call(&mut self, function: usize, arguments: &[&Parts]) -> Parts {
        let scalar = self.scalar();
        let mut signature = Signature::new(self.call);
        signature.params.extend(arguments.iter().map(|_| AbiParam::new(scalar)));
        signature.returns.push(AbiParam::new(scalar));
        let signature = self.b.import_signature(signature);
        let address = self.b.ins().iconst(I64, function as i64);
        let lanes: Vec<[Value; LANES]> = arguments.iter().map(|parts| self.lanes(parts)).collect();
        let results = std::array::from_fn(|lane| {
            let arguments: Vec<Value> = lanes.iter().map(|lanes| lanes[lane]).collect();
            let call = self.b.ins().call_indirect(signature, address, &arguments);
            self.b.inst_results(call)[0]
        });
        self.join(results)
    }

    fn from_int(&mut self, a: &Parts) -> Parts {
        if !self.shape.is_double {
            return vec![self.b.ins().fcvt_from_sint(F32X4, a[0])];
        }
        let lanes = self.int_lanes(a).map(|lane| self.b.ins().fcvt_from_sint(F64, lane));
        self.join(lanes)
    }

    fn to_int(&mut self, a: &Parts) -> Parts {
        if !self.shape.is_double {
            return vec![self.b.ins().fcvt_to_sint_sat(I32X4, a[0])];
        }
        let lanes = self.lanes(a).map(|lane| self.b.ins().fcvt_to_sint_sat(I32, lane));
        self.join_ints(lanes)
    }

    /// Integers in the slots of reals: their bits in 32 bits, their values in 64.
    fn hold(&mut self, a: Parts) -> Parts {
        match self.shape.is_double {
            true => self.from_int(&a),
            false => vec![self.cast(F32X4, a[0])],
        }
    }

    fn unary(&mut self, op: Unary, kind: Kinds, a: &Parts) -> Parts {
        let function = match op {
            Unary::Exp => functions::EXP,
            Unary::Ln => functions::LN,
            Unary::Sin => functions::SIN,
            Unary::Cos => functions::COS,
            Unary::Acos => functions::ACOS,
            Unary::Tanh => functions::TANH,
            Unary::FromInt => return self.from_int(a),
            Unary::Hold => return self.hold(a.clone()),
            Unary::ToInt => return self.to_int(a),
            Unary::Held if self.shape.is_double => return self.to_int(a),
            Unary::Held => return vec![self.cast(I32X4, a[0])],
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
        self.call(function[usize::from(self.shape.is_double)](), &[a])
    }

    fn binary(&mut self, op: Binary, kind: Kinds, a: &Parts, b: &Parts) -> Parts {
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
                return match parts[..] {
                    // The masks of two registers as words of one.
                    [first, last] if matches!(op, Binary::Less | Binary::AtMost | Binary::Equals) => {
                        let [first, last] = [first, last].map(|mask| self.cast(I32X4, mask));
                        vec![self.words(first, last, EVEN)]
                    }
                    _ => parts,
                };
            }
        };
        self.call(function[usize::from(self.shape.is_double)](), &[a, b])
    }

    /// Writes what it came to.
    fn results(&mut self) {
        let values: Vec<Parts> = self.outputs.iter().map(|&id| self.get(id)).collect();
        if self.shape.is_measure {
            let size = self.size();
            let at = self.address(offset_of!(Frame, values), size);
            return self.store_lanes(&values[0], at, 0);
        }
        let values = self.keep_fixed(values);
        let (shared, private) = values.split_at(self.shape.shared);
        self.probe(&values);
        self.store_shared(shared);
        let (at, next) = self.own_private(offset_of!(Frame, to_private));
        for (k, parts) in private.iter().enumerate() {
            let is_same = self.tape.node(self.outputs[self.shape.shared + k]) == Node::Input(Input::Private, k);
            // What did not change is not written at all.
            if !is_same {
                self.store_lanes(parts, at, k as i32 * next);
            }
        }
    }

    /// The new values, or the old ones in lanes of vertices that are fixed.
    fn keep_fixed(&mut self, values: Vec<Parts>) -> Vec<Parts> {
        let [some, go_on] = [(); 2].map(|()| self.b.create_block());
        let (kind, parts) = (self.vector(), self.parts());
        let kept: Vec<Value> = (0..values.len() * parts).map(|_| self.b.append_block_param(go_on, kind)).collect();
        let fixed = self.field(offset_of!(Frame, fixed));
        let args: Vec<BlockArg> = values.iter().flatten().map(|&value| value.into()).collect();
        self.b.ins().brif(fixed, some, &[], go_on, &args);
        self.b.switch_to_block(some);
        let at = self.address(offset_of!(Frame, fixed), 1);
        let trusted = flags();
        let lanes = std::array::from_fn(|lane| self.b.ins().uload8(I32, trusted, at, lane as i32));
        let fixed = self.join_ints(lanes)[0];
        let is_fixed = self.b.ins().ineg(fixed);
        let masks = self.masks(is_fixed);
        let mut old = self.own_shared(&(0..self.shape.shared).collect::<Vec<_>>());
        let (at, next) = self.own_private(offset_of!(Frame, private));
        old.extend((0..self.shape.private()).map(|k| self.load_lanes(at, k as i32 * next)));
        let chosen: Vec<Value> = (0..values.len() * parts)
            .map(|i| self.choose(masks[i % parts], old[i / parts][i % parts], values[i / parts][i % parts]))
            .collect();
        self.jump(go_on, &chosen);
        self.b.switch_to_block(go_on);
        kept.chunks(parts).map(<[Value]>::to_vec).collect()
    }

    /// Adds zero times all reals to what is zero as long as all are finite.
    fn probe(&mut self, values: &[Parts]) {
        let (probe, vector) = (self.field(offset_of!(Frame, probe)), self.vector());
        let zero = self.real_number(0.0)[0];
        let mut sum = self.load(vector, probe, 0);
        for (parts, _) in values.iter().zip(&self.shape.kinds).filter(|&(_, &kind)| kind == Kind::Real) {
            for &part in parts {
                let product = self.b.ins().fmul(part, zero);
                sum = self.b.ins().fadd(sum, product);
            }
        }
        self.store_lanes(&[sum], probe, 0);
    }

    fn store_shared(&mut self, values: &[Parts]) {
        let (size, stride) = (self.size() as i32, self.shape.stride);
        let places = self.own_places(offset_of!(Frame, to_shared));
        if stride == 1 {
            return self.store_lanes(&values[0], places[0].0, 0);
        }
        if stride < 4 {
            for (k, parts) in values.iter().enumerate() {
                for (x, (at, offset)) in self.lanes(parts).into_iter().zip(places) {
                    self.b.ins().store(flags(), x, at, offset + k as i32 * size);
                }
            }
            return;
        }
        for (quad, reals) in values.chunks(4).enumerate() {
            let mut reals = reals.to_vec();
            let zero = self.real_number(0.0);
            reals.resize(4, zero);
            let rows = self.transpose(reals.try_into().expect("a quad is four reals"));
            for (row, (at, offset)) in rows.iter().zip(places) {
                self.store_lanes(row, at, offset + 4 * quad as i32 * size);
            }
        }
    }
}
