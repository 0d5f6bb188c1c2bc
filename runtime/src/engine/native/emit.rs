//! Writes a tape as instructions.

use super::registers::{Parts, Registers, args, at_rest, flags};
use super::{Frame, Shape, StarFrame};
use crate::number::Kind;
use crate::trace::{Event, Fold, Id, Input, Node, Order, Tape, Type as Kinds};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I32X4, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, Value};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::FunctionBuilder;
use std::collections::BTreeMap;
use std::mem::offset_of;

/// Places of the records of lanes: an address, and how many bytes behind it.
type Places = Vec<(Value, i32)>;

pub(super) struct Emit<'a, 'f> {
    r: Registers<'f>,
    tape: &'a Tape,
    outputs: &'a [Id],
    order: &'a Order<'a>,
    shape: &'a Shape,
    of: Vec<Option<Parts>>,
    /// What each loop has gathered so far, or in the end.
    gathered: Vec<Vec<Parts>>,
    frame: Value,
    /// The present group of the tile, and the first of its lanes that are under way.
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
        let r = Registers { b, is_double: shape.is_double, lanes: shape.lanes, call: config.default_call_conv };
        let (of, gathered) = (vec![None; tape.len() as usize], vec![Vec::new(); tape.folds.len()]);
        let nowhere = Value::from_u32(0);
        let mut emit =
            Emit { r, tape, outputs, order, shape, of, gathered, frame: nowhere, group: nowhere, lane: nowhere };
        let entry = emit.r.b.create_block();
        emit.r.b.append_block_params_for_function_params(entry);
        emit.r.b.switch_to_block(entry);
        let &[frame, first, count, step] = emit.r.b.block_params(entry) else { unreachable!("it has four") };
        emit.frame = frame;
        for &id in &order.once {
            emit.value(id);
        }
        let [groups, inside, lanes, next, done] = [(); 5].map(|()| emit.r.b.create_block());
        let [group, left] = [(); 2].map(|()| emit.r.b.append_block_param(groups, I64));
        let lane = emit.r.b.append_block_param(lanes, I64);
        emit.r.jump(groups, &[first, count]);
        emit.r.b.switch_to_block(groups);
        emit.r.b.ins().brif(left, inside, &[], done, &[]);
        emit.r.b.switch_to_block(inside);
        let zero = emit.r.b.ins().iconst(I64, 0);
        emit.r.jump(lanes, &[zero]);
        emit.r.b.switch_to_block(lanes);
        (emit.group, emit.lane) = (group, lane);
        emit.own();
        emit.events(&order.body);
        emit.results();
        let more = emit.r.b.ins().iadd_imm_s(lane, shape.lanes as i64);
        let is_more = emit.r.b.ins().icmp_imm_s(IntCC::SignedLessThan, more, shape.width as i64);
        emit.r.b.ins().brif(is_more, lanes, &[BlockArg::Value(more)], next, &[]);
        emit.r.b.switch_to_block(next);
        let (group, left) = (emit.r.b.ins().iadd(group, step), emit.r.b.ins().iadd_imm_s(left, -1));
        emit.r.jump(groups, &[group, left]);
        emit.r.b.switch_to_block(done);
        emit.r.b.ins().return_(&[]);
        emit.r.b.seal_all_blocks();
        emit.r.b.finalize(config);
    }

    /// A pointer of the frame.
    fn field(&mut self, offset: usize) -> Value {
        let frame = self.frame;
        self.r.b.ins().load(I64, at_rest(), frame, offset as i32)
    }

    /// Some reals of the records of lanes.
    fn records(&mut self, how: MemFlagsData, places: &Places, wanted: &[usize]) -> Vec<Parts> {
        let (scalar, size, stride) = (self.r.scalar(), self.r.size() as i32, self.shape.stride);
        let mut quads = BTreeMap::new();
        if stride >= 4 {
            let count = |quad| wanted.iter().filter(|&&k| k / 4 == quad).count();
            for quad in (0..stride / 4).filter(|&quad| count(quad) > 1) {
                let mut reals = [const { Vec::new() }; 4];
                for four in places.chunks(4) {
                    let row = |&(at, offset): &(Value, i32)| self.r.load_four(how, at, offset + 4 * quad as i32 * size);
                    let rows: Vec<Parts> = four.iter().map(row).collect();
                    let columns = self.r.transpose(std::array::from_fn(|i| &rows[i][..]));
                    reals.iter_mut().zip(columns).for_each(|(real, parts)| real.extend(parts));
                }
                quads.insert(quad, reals);
            }
        }
        let real = |&k: &usize| match quads.get(&(k / 4)) {
            Some(quad) => quad[k % 4].clone(),
            None => self.r.join(|r, lane| r.load(scalar, how, places[lane].0, places[lane].1 + k as i32 * size)),
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

    /// The address of what the lanes have, of so many bytes a vertex.
    fn address(&mut self, field: usize, bytes: usize) -> Value {
        let base = self.field(field);
        let slot = self.r.at(self.lane, self.group, self.shape.width);
        self.r.at(base, slot, bytes)
    }

    /// Their own shared reals.
    fn own_places(&mut self, field: usize) -> Places {
        let bytes = self.shape.stride * self.r.size();
        let at = self.address(field, bytes);
        (0..self.shape.lanes).map(|i| (at, (i * bytes) as i32)).collect()
    }

    /// Where real 0 of their private state is, and bytes to the next real.
    fn own_private(&mut self, field: usize) -> (Value, i32) {
        let (size, width, reals) = (self.r.size(), self.shape.width, self.shape.private());
        let base = self.field(field);
        let at = self.r.at(base, self.group, reals * width * size);
        (self.r.at(at, self.lane, size), (width * size) as i32)
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
                self.of[id as usize] = Some(self.r.load_lanes(flags(), at, k as i32 * next));
            }
        }
        for (id, _) in self.wanted(|input, k| (input == Input::Vertex).then_some(k)) {
            let at = self.address(offset_of!(Frame, numbers), 4);
            let ints = (0..self.shape.lanes / 4).map(|i| self.r.load(I32X4, at_rest(), at, 16 * i as i32)).collect();
            self.of[id as usize] = Some(self.r.hold(ints));
        }
    }

    fn own_shared(&mut self, wanted: &[usize]) -> Vec<Parts> {
        let places = self.own_places(offset_of!(Frame, shared));
        match self.shape.stride {
            1 => wanted.iter().map(|_| self.r.load_lanes(flags(), places[0].0, 0)).collect(),
            _ => self.records(flags(), &places, wanted),
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
        let (size, width, name) = (self.r.size(), self.shape.width, self.shape.name_bytes);
        let stars = self.field(offset_of!(Frame, stars));
        let mut of_star = |field: usize| {
            let offset = star * size_of::<StarFrame>() + field;
            self.r.b.ins().load(I64, at_rest(), stars, offset as i32)
        };
        let columns = of_star(offset_of!(StarFrame, columns));
        let full = of_star(offset_of!(StarFrame, full));
        let degrees = of_star(offset_of!(StarFrame, degrees));
        let names = of_star(offset_of!(StarFrame, others));
        let data = of_star(offset_of!(StarFrame, data));
        let data_step = of_star(offset_of!(StarFrame, data_step));
        let others_step = others * width * name;
        let (group, lane) = (self.group, self.lane);
        let at = self.r.at(columns, group, 4);
        let [start, end] = [0, 4].map(|offset| self.r.b.ins().uload32(flags(), at, offset));
        let at = self.r.at(full, group, 2);
        let full = self.r.b.ins().uload16(I64, flags(), at, 0);
        let count = self.r.b.ins().isub(end, start);
        let names = self.r.at(names, start, others_step);
        let names = self.r.at(names, lane, name);
        let offset = self.r.b.ins().imul(start, data_step);
        let data = self.r.b.ins().iadd(data, offset);
        let data = self.r.at(data, lane, size);
        let degrees = self.r.at(degrees, group, 2 * width);
        let degrees = self.r.at(degrees, lane, 2);

        // element(j, names, data, gathered...) ─▶ broken(next...) or whole ─▶ gone(gathered...) ─▶ element, or end(gathered...)
        let [element, broken, gone, end] = [(); 4].map(|()| self.r.b.create_block());
        let kind = self.r.vector();
        let reals = init.len() * self.r.parts();
        let [j, names_now, data_now] = [(); 3].map(|()| self.r.b.append_block_param(element, I64));
        let [gathered, kept, result] = [element, gone, end]
            .map(|block| (0..reals).map(|_| self.r.b.append_block_param(block, kind)).collect::<Vec<Value>>());
        let begin: Vec<Value> = init.iter().flat_map(|&id| self.get(id)).collect();
        let zero = self.r.b.ins().iconst(I64, 0);
        let first = [&[zero, names, data], &begin[..]].concat();
        self.r.b.ins().brif(count, element, &args(&first), end, &args(&begin));

        self.r.b.switch_to_block(element);
        self.gathered[number] = gathered.chunks(self.r.parts()).map(<[Value]>::to_vec).collect();
        self.elements(number, *others, names_now, data_now);
        self.events(inner);
        let new: Vec<Value> = next.iter().flat_map(|&id| self.get(id)).collect();
        let is_whole = self.r.b.ins().icmp(IntCC::UnsignedLessThan, j, full);
        self.r.b.ins().brif(is_whole, gone, &args(&new), broken, &[]);

        // Some vertices have no more: what they gathered stays as it is.
        self.r.b.set_cold_block(broken);
        self.r.b.switch_to_block(broken);
        let fours = 0..self.shape.lanes / 4;
        let degrees: Parts = fours.map(|i| self.r.b.ins().uload16x4(flags(), degrees, 8 * i as i32)).collect();
        let j_here = self.r.b.ins().ireduce(I32, j);
        let j_here = self.r.b.ins().splat(I32X4, j_here);
        let has = degrees.iter().map(|&degrees| self.r.b.ins().icmp(IntCC::SignedLessThan, j_here, degrees));
        let has: Parts = has.collect();
        let masks = self.r.masks(&has);
        let parts = self.r.parts();
        let chosen: Vec<Value> = (0..reals).map(|i| self.r.choose(masks[i % parts], new[i], gathered[i])).collect();
        self.r.jump(gone, &chosen);

        self.r.b.switch_to_block(gone);
        let j = self.r.b.ins().iadd_imm_s(j, 1);
        let names = self.r.b.ins().iadd_imm_s(names_now, others_step as i64);
        let data = self.r.b.ins().iadd(data_now, data_step);
        let is_more = self.r.b.ins().icmp(IntCC::UnsignedLessThan, j, count);
        let more = [&[j, names, data], &kept[..]].concat();
        self.r.b.ins().brif(is_more, element, &args(&more), end, &args(&kept));

        self.r.b.switch_to_block(end);
        self.gathered[number] = result.chunks(self.r.parts()).map(<[Value]>::to_vec).collect();
    }

    /// Reads what the body of a loop wants of the present element.
    fn elements(&mut self, number: usize, others: usize, names: Value, data: Value) {
        let (size, width, name) = (self.r.size(), self.shape.width, self.shape.name_bytes);
        for other in 0..others {
            let wanted = self.wanted(|input, k| (input == Input::Other { fold: number, other }).then_some(k));
            if wanted.is_empty() {
                continue;
            }
            let table = self.field(offset_of!(Frame, table));
            let place = |lane: usize| {
                let offset = ((other * width + lane) * name) as i32;
                let place = match name {
                    2 => self.r.b.ins().uload16(I64, flags(), names, offset),
                    _ => self.r.b.ins().uload32(flags(), names, offset),
                };
                (self.r.at(table, place, self.shape.stride * size), 0)
            };
            let places: Places = (0..self.shape.lanes).map(place).collect();
            let reals = self.records(at_rest(), &places, &wanted.iter().map(|&(_, k)| k).collect::<Vec<_>>());
            wanted.iter().zip(reals).for_each(|(&(id, _), real)| self.of[id as usize] = Some(real));
        }
        for (id, k) in self.wanted(|input, k| (input == Input::Data { fold: number }).then_some(k)) {
            self.of[id as usize] = Some(self.r.load_lanes(at_rest(), data, (k * width * size) as i32));
        }
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
            (Node::Number(bits), _) => self.r.real_number(f64::from_bits(bits)),
            (Node::Literal(_, bits), _) => self.r.int_number(bits.cast_signed()),
            (Node::Truth(value), _) => self.r.int_number(if value { -1 } else { 0 }),
            (Node::Input(input, k), _) => {
                let (field, k) = match input {
                    Input::Parameters => (offset_of!(Frame, parameters), k),
                    Input::Globals => (offset_of!(Frame, globals), k),
                    Input::Settings => (offset_of!(Frame, settings), k),
                    Input::Step => (offset_of!(Frame, counters), 0),
                    Input::Draw => (offset_of!(Frame, counters), 1),
                    _ => unreachable!("what vertices read is read ahead"),
                };
                let (at, size) = (self.field(field), self.r.size());
                self.r.splat(at, (k * size) as i32)
            }
            (Node::Unary(op, _), [a]) => self.r.unary(op, kind, a),
            (Node::Binary(op, ..), [a, b]) => self.r.binary(op, kind, a, b),
            (Node::Select { .. }, [mask, yes, no]) => {
                let masks = if kind == Kinds::Real { self.r.masks(mask) } else { mask.clone() };
                (0..yes.len()).map(|i| self.r.choose(masks[i], yes[i], no[i])).collect()
            }
            _ => unreachable!("a loop is no value by itself"),
        };
        self.of[id as usize] = Some(parts);
    }

    /// Writes what it came to.
    fn results(&mut self) {
        let values: Vec<Parts> = self.outputs.iter().map(|&id| self.get(id)).collect();
        if self.shape.is_measure {
            let size = self.r.size();
            let at = self.address(offset_of!(Frame, values), size);
            return self.r.store_lanes(&values[0], at, 0);
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
                self.r.store_lanes(parts, at, k as i32 * next);
            }
        }
    }

    /// The new values, or the old ones in lanes of vertices that are fixed.
    fn keep_fixed(&mut self, values: Vec<Parts>) -> Vec<Parts> {
        let [some, go_on] = [(); 2].map(|()| self.r.b.create_block());
        let (kind, parts) = (self.r.vector(), self.r.parts());
        let kept: Vec<Value> = (0..values.len() * parts).map(|_| self.r.b.append_block_param(go_on, kind)).collect();
        let fixed = self.field(offset_of!(Frame, fixed));
        self.r.b.ins().brif(fixed, some, &[], go_on, &args(&values.concat()));
        self.r.b.set_cold_block(some);
        self.r.b.switch_to_block(some);
        let at = self.address(offset_of!(Frame, fixed), 1);
        let lanes = (0..self.shape.lanes).map(|lane| self.r.b.ins().uload8(I32, flags(), at, lane as i32));
        let lanes: Vec<Value> = lanes.collect();
        let fixed = self.r.join_ints(&lanes);
        let is_fixed: Parts = fixed.iter().map(|&fixed| self.r.b.ins().ineg(fixed)).collect();
        let masks = self.r.masks(&is_fixed);
        let mut old = self.own_shared(&(0..self.shape.shared).collect::<Vec<_>>());
        let (at, next) = self.own_private(offset_of!(Frame, private));
        old.extend((0..self.shape.private()).map(|k| self.r.load_lanes(flags(), at, k as i32 * next)));
        let chosen: Vec<Value> = (0..values.len() * parts)
            .map(|i| self.r.choose(masks[i % parts], old[i / parts][i % parts], values[i / parts][i % parts]))
            .collect();
        self.r.jump(go_on, &chosen);
        self.r.b.switch_to_block(go_on);
        kept.chunks(parts).map(<[Value]>::to_vec).collect()
    }

    /// Adds zero times all reals to what is zero as long as all are finite.
    fn probe(&mut self, values: &[Parts]) {
        let (probe, vector) = (self.field(offset_of!(Frame, probe)), self.r.vector());
        let zero = self.r.real_number(0.0)[0];
        let reals = values.iter().zip(&self.shape.kinds).filter(|&(_, &kind)| kind == Kind::Real);
        // By itself first: what waits for the last sum is one addition.
        let mut sum = None;
        for &part in reals.flat_map(|(parts, _)| parts) {
            let product = self.r.b.ins().fmul(part, zero);
            sum = Some(sum.map_or(product, |sum| self.r.b.ins().fadd(sum, product)));
        }
        if let Some(sum) = sum {
            let before = self.r.load(vector, flags(), probe, 0);
            let sum = self.r.b.ins().fadd(before, sum);
            self.r.store_lanes(&[sum], probe, 0);
        }
    }

    fn store_shared(&mut self, values: &[Parts]) {
        let (size, stride) = (self.r.size() as i32, self.shape.stride);
        let places = self.own_places(offset_of!(Frame, to_shared));
        if stride == 1 {
            return self.r.store_lanes(&values[0], places[0].0, 0);
        }
        if stride < 4 {
            for (k, parts) in values.iter().enumerate() {
                for (x, (at, offset)) in self.r.apart(parts).into_iter().zip(&places) {
                    self.r.b.ins().store(flags(), x, *at, offset + k as i32 * size);
                }
            }
            return;
        }
        let each = self.r.parts() * 4 / self.shape.lanes;
        for (quad, reals) in values.chunks(4).enumerate() {
            let mut reals = reals.to_vec();
            let zero = self.r.real_number(0.0);
            reals.resize(4, zero);
            for (i, four) in places.chunks(4).enumerate() {
                let rows = self.r.transpose(std::array::from_fn(|k| &reals[k][i * each..][..each]));
                for (row, (at, offset)) in rows.iter().zip(four) {
                    self.r.store_lanes(row, *at, offset + 4 * quad as i32 * size);
                }
            }
        }
    }
}
