//! Machine code of kernels that are tapes, made by Cranelift when they first run.
//!
//! ```text
//!   exact tape ─▶ Emit: instructions on four vertices at a time ─▶ Native: a function of a frame, and of groups of a tile
//! ```
//!
//! The operations are those of the interpreter in the same order, so the bits are the same. What cannot be translated is interpreted.

#![expect(unsafe_code, reason = "machine code is called by its address")]

mod emit;
mod functions;
mod registers;

use crate::layout::shared_stride;
use crate::number::{Kind, Precision};
use crate::step::SETTINGS;
use crate::trace::{Id, Input, Node, Order, Tape};
use cranelift_codegen::ir::{AbiParam, UserFuncName, types::I64};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use emit::Emit;
use std::sync::{Mutex, OnceLock};

/// What machine code reads and writes: places of numbers of its precision, if nothing else is said.
#[repr(C)]
pub(crate) struct Frame {
    pub(crate) parameters: *const u8,
    pub(crate) globals: *const u8,
    pub(crate) settings: *const u8,
    /// Step and draw, as a real holds integers.
    pub(crate) counters: *const u8,
    /// Shared reals by the names of vertices.
    pub(crate) table: *const u8,
    pub(crate) stars: *const StarFrame,
    /// Of the first group of the tile: shared rows and private reals, before and after.
    pub(crate) shared: *const u8,
    pub(crate) to_shared: *mut u8,
    pub(crate) private: *const u8,
    pub(crate) to_private: *mut u8,
    /// Two or four numbers that are zero as long as all results are finite.
    pub(crate) probe: *mut u8,
    /// What is measured.
    pub(crate) values: *mut u8,
    /// Numbers of vertices along the curve.
    pub(crate) numbers: *const u32,
    /// Which vertices are fixed; null if none is.
    pub(crate) fixed: *const bool,
}

/// The lists of a star.
#[repr(C)]
pub(crate) struct StarFrame {
    pub(crate) columns: *const u32,
    pub(crate) full: *const u16,
    pub(crate) degrees: *const u16,
    pub(crate) others: *const u8,
    pub(crate) data: *const u8,
    /// Bytes of data of a column.
    pub(crate) data_step: u64,
}

/// What a kernel is made for.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    is_double: bool,
    /// Vertices of a group: a multiple of four.
    width: usize,
    /// Vertices at a time: four or eight.
    lanes: usize,
    /// Bytes of the name of another vertex: two or four.
    name_bytes: usize,
    /// Shared reals, and from those of one vertex to the next.
    shared: usize,
    stride: usize,
    /// What the reals of a vertex are, shared ones first.
    kinds: Vec<Kind>,
    /// Whether it measures, rather than updates.
    is_measure: bool,
}

impl Shape {
    fn private(&self) -> usize {
        self.kinds.len() - self.shared
    }
}

/// Values of a kernel beyond which it would take a second and more to translate.
const LONGEST: Id = 10_000;

/// Whether this machine has the instructions that kernels are translated to.
fn is_there() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("sse4.1");
    #[cfg(not(target_arch = "x86_64"))]
    cfg!(target_arch = "aarch64")
}

/// A kernel as machine code, for each precision, width and form of names that was asked for.
pub(crate) struct Natives {
    tape: Tape,
    outputs: Vec<Id>,
    is_measure: bool,
    is_small: bool,
    made: [OnceLock<Option<Native>>; 8],
}

impl Natives {
    pub(crate) fn new(tape: &Tape, outputs: &[Id], is_measure: bool) -> Natives {
        // What a loop has at a time: of eight vertices it fills twice as many of sixteen registers.
        let live = |fold: usize| {
            let its = |input| matches!(input, Input::Other { fold: of, .. } | Input::Data { fold: of } if of == fold);
            let inputs = (0..tape.len()).filter(|&id| matches!(tape.node(id), Node::Input(input, _) if its(input)));
            inputs.count() + tape.folds[fold].init.len()
        };
        let is_small = (0..tape.folds.len()).all(|fold| live(fold) <= 6);
        Natives { tape: tape.clone(), outputs: outputs.to_vec(), is_measure, is_small, made: Default::default() }
    }

    /// `kinds`: of the reals of a vertex, of which so many are shared. The first call for some numbers translates it, some milliseconds.
    pub(crate) fn get(
        &self,
        precision: Precision,
        width: usize,
        name_bytes: usize,
        (shared, kinds): (usize, &[Kind]),
    ) -> Option<&Native> {
        let is_double = precision == Precision::F64;
        let widest = if is_double { 8 } else { 16 };
        let is_known = precision != Precision::I32 && (width == widest || width == widest / 2);
        if !is_known || !is_there() || self.tape.len() > LONGEST {
            return None;
        }
        let which = usize::from(is_double) * 4 + usize::from(width == widest) * 2 + usize::from(name_bytes == 2);
        let (stride, is_measure) = (shared_stride(shared), self.is_measure);
        let lanes = if !is_double && self.is_small { 8 } else { 4 };
        let shape = || Shape { is_double, width, lanes, name_bytes, shared, stride, kinds: kinds.to_vec(), is_measure };
        let made = self.made[which].get_or_init(|| Native::new(&self.tape, &self.outputs, &shape())).as_ref();
        assert!(made.is_some() || !cfg!(test), "tests are of machine code, where it is asked for");
        made
    }
}

/// Least lengths of what it reads.
#[derive(Default)]
pub(crate) struct Needs {
    pub(crate) parameters: usize,
    pub(crate) globals: usize,
    /// Whether it asks for the numbers of vertices.
    pub(crate) numbers: bool,
    /// By star: other vertices of its elements, and least reals of their data; none if it is not looked at.
    pub(crate) stars: Vec<Option<(usize, usize)>>,
}

/// A kernel as machine code.
pub(crate) struct Native {
    entry: unsafe extern "C" fn(*const Frame, i64, i64, i64),
    pub(crate) needs: Needs,
    /// Owns it. Whoever drops it has the last reference to the kernel.
    module: Mutex<Option<JITModule>>,
}

impl Native {
    /// None if it cannot be translated for this machine: then it is interpreted.
    pub(crate) fn new(tape: &Tape, outputs: &[Id], shape: &Shape) -> Option<Native> {
        let order = Order::of(tape, outputs);
        let needs = Needs::of(tape, &order, shape)?;
        let mut flags = settings::builder();
        let verify = if cfg!(any(test, debug_assertions)) { "true" } else { "false" };
        for (name, value) in [("opt_level", "speed"), ("enable_verifier", verify)] {
            flags.set(name, value).ok()?;
        }
        let isa = cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()?;
        let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
        let mut context = module.make_context();
        context.func.signature.params.extend([AbiParam::new(I64); 4]);
        context.func.name = UserFuncName::user(0, 0);
        let mut scratch = FunctionBuilderContext::new();
        let builder = FunctionBuilder::new(&mut context.func, &mut scratch);
        Emit::function(builder, (tape, outputs), &order, shape, module.target_config());
        let id = module.declare_function("kernel", Linkage::Local, &context.func.signature).ok()?;
        module.define_function(id, &mut context).ok()?;
        module.finalize_definitions().ok()?;
        let entry = module.get_finalized_function(id);
        // SAFETY: the function was declared with these parameters and the calling convention of C of this machine.
        let entry =
            unsafe { std::mem::transmute::<*const u8, unsafe extern "C" fn(*const Frame, i64, i64, i64)>(entry) };
        Some(Native { entry, needs, module: Mutex::new(Some(module)) })
    }

    /// Runs it on `count` groups of a tile from `first` on, each `step` behind the one before.
    ///
    /// # Safety
    /// All that the frame points to is there for these groups, as long as [`Native::needs`] asks and of the precision that this was made
    /// for: names of others lie in the table; nobody else writes what is read, or reads or writes what is written, meanwhile.
    pub(crate) unsafe fn run(&self, frame: &Frame, first: usize, count: usize, step: i64) {
        // SAFETY: by the caller's promise, and the module is alive as long as `self` is.
        unsafe { (self.entry)(frame, first as i64, count as i64, step) }
    }
}

impl Drop for Native {
    fn drop(&mut self) {
        let module = self.module.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        // SAFETY: nobody runs a kernel that nobody has.
        module.into_iter().for_each(|module| unsafe { module.free_memory() });
    }
}

impl Needs {
    fn of(tape: &Tape, order: &Order, shape: &Shape) -> Option<Needs> {
        let mut needs = Needs::default();
        for fold in &tape.folds {
            if needs.stars.len() <= fold.star {
                needs.stars.resize(fold.star + 1, None);
            }
            match &mut needs.stars[fold.star] {
                Some((others, _)) if *others != fold.others => return None,
                star => *star = Some((fold.others, star.map_or(0, |(_, reals)| reals))),
            }
        }
        for id in (0..tape.len()).filter(|&id| order.is_wanted[id as usize]) {
            let Node::Input(input, k) = tape.node(id) else { continue };
            let is_there = match input {
                Input::Parameters => {
                    needs.parameters = needs.parameters.max(k + 1);
                    true
                }
                Input::Globals => {
                    needs.globals = needs.globals.max(k + 1);
                    true
                }
                Input::Data { fold } => {
                    let (_, reals) = needs.stars[tape.folds[fold].star].as_mut()?;
                    *reals = (*reals).max(k + 1);
                    true
                }
                Input::Settings => k < SETTINGS,
                Input::Shared => k < shape.shared,
                Input::Other { fold, other } => k < shape.shared && other < tape.folds[fold].others,
                Input::Private => k < shape.private(),
                Input::Vertex => {
                    needs.numbers = true;
                    true
                }
                Input::Step | Input::Draw => true,
            };
            if !is_there {
                return None;
            }
        }
        Some(needs)
    }
}
