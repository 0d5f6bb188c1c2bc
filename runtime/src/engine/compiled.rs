//! The kernels of a program, compiled for a number type.

use super::code::{Code, Compiled, Relaxation, Sight, is_built};
use super::cpu::tile::Visit;
use super::cpu::{elements, relaxation, taped, tile};
use super::one;
use super::taped::Taped;
use super::touches::Touches;
use crate::error::{Error, Result};
use crate::layout::Tile;
#[cfg(any(test, feature = "all-widths"))]
use crate::number::Lanes;
use crate::number::{Int, Number, Widest};
use crate::program::{
    Elements, Fields, Given, Kernel, KernelId, KernelList, Kernels, Kind, Map, Project, Record, Records, Reduce, Relax,
    Scalar, Star, StarShape, Test, Uniform, Update, lengths,
};
use crate::trace::{self, Expr, Formula, Id, Role, Script, Tape, Traced};
use meshweft_shaders::Physics;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// What a program computes, whatever its type: its records, and all kernels in the order in which it names them.
#[derive(Clone)]
pub(crate) struct Table<T> {
    /// The name of its type.
    pub(crate) program: &'static str,
    pub(crate) records: Records,
    pub(crate) kernels: Vec<Compiled<T>>,
    /// What each of the globals is.
    pub(crate) globals: Vec<Kind>,
    /// Stars along which something relaxes.
    pub(crate) relaxed: Vec<usize>,
    /// Stars whose elements are projected, with what those have as state.
    pub(crate) projected: BTreeMap<usize, Fields>,
    /// All of it as bytes, for hosts that have never seen it; empty if it is compiled.
    pub(crate) data: Arc<[u8]>,
}

impl<T: Number> Table<T> {
    /// That of a program which is data. `kernels`: each with the label and unit of a metric.
    ///
    /// # Errors
    /// A kernel with more values at a time than an interpreter has registers.
    pub(crate) fn of_formulas(
        program: &'static str,
        records: Records,
        kernels: impl Iterator<Item = (&'static str, Role, Arc<Formula>, Option<(&'static str, &'static str)>)>,
    ) -> Result<Table<T>> {
        let compile = |(at, (name, role, formula, metric)): (usize, (_, _, Arc<Formula>, _))| {
            let taped = taped(name, role, &formula.tape, &formula.outputs, &records)?;
            let (id, code) = (KernelId::At(at), taped_code(taped, role, Sight::Around));
            Ok(Compiled { name, id, metric, code, script: Script::formula(name, role, formula) })
        };
        let kernels = kernels.enumerate().map(compile).collect::<Result<_>>()?;
        let globals = records.globals.kinds();
        let (relaxed, projected) = Default::default();
        Ok(Table { program, records, kernels, globals, relaxed, projected, data: Arc::default() })
    }

    pub(crate) fn of<P: Kernels>() -> Table<T> {
        let others = [
            lengths::<P, f32>(),
            lengths::<P, f64>(),
            lengths::<P, Int>(),
            lengths::<P, T::Half>(),
            lengths::<P, T::Full>(),
            lengths::<P, Expr>(),
        ];
        let records = Records::of::<P, T>(&others);
        let (globals, program) = (records.globals.kinds(), std::any::type_name::<P>());
        let (kernels, (relaxed, projected)) = Default::default();
        let table = Table { program, records, kernels, globals, relaxed, projected, data: Arc::default() };
        let mut list = List { table, program: PhantomData::<P> };
        P::list(&mut list);
        list.table
    }

    /// Runs all kernels on symbols, and notes how far measures look and what updates touch. `stars`: what the elements of each have in common.
    ///
    /// # Errors
    /// A record or kernel that breaks the rules of programs.
    pub(crate) fn trace(&mut self, physics: &Physics, stars: &[StarShape]) -> Result<Vec<Traced>> {
        if let Some(fault) = &self.records.fault {
            return Err(Error::Program(fault.clone()));
        }
        let traced = trace::kernels(self.kernels.iter().map(|kernel| &kernel.script), physics, stars)?;
        for (kernel, traced) in self.kernels.iter_mut().zip(&traced) {
            match &mut kernel.code {
                Code::Measure { sight, .. } => {
                    *sight = match (traced.stars.is_empty(), traced.reads_globals) {
                        (false, _) => Sight::Around,
                        (true, true) => Sight::Globals,
                        (true, false) => Sight::Own,
                    };
                }
                Code::Vertex { touches, .. } => {
                    *touches = Touches::of(traced.stars.iter().copied(), traced.private.iter().copied());
                }
                _ => {}
            }
        }
        Ok(traced)
    }

    /// Runs all kernels as tapes from here on. After [`Table::trace`].
    ///
    /// # Errors
    /// A kernel with more values at a time than an interpreter has registers, or one that projects elements.
    pub(crate) fn interpret(&mut self, stars: &[StarShape]) -> Result<()> {
        for kernel in &mut self.kernels {
            if matches!(kernel.script.role, Role::Project { .. }) {
                return Err(Error::Program(format!(
                    "kernel {} projects elements and cannot run as a tape",
                    kernel.name
                )));
            }
            let (tape, outputs) = kernel.script.tape(stars);
            let taped = taped(kernel.name, kernel.script.role, &tape, &outputs, &self.records)?;
            let (sight, touched) = (kernel.code.sight(), kernel.code.touches());
            kernel.code = taped_code(taped, kernel.script.role, sight);
            if let Code::Vertex { touches, .. } = &mut kernel.code {
                *touches = touched;
            }
        }
        self.relaxed.clear();
        Ok(())
    }

    /// Whether some globals are finite.
    pub(crate) fn is_finite(&self, globals: &[T]) -> bool {
        globals.iter().zip(&self.globals).all(|(x, &kind)| kind == Kind::Integer || x.finite())
    }

    /// Identities, by number.
    pub(crate) fn ids(&self) -> Vec<KernelId> {
        self.kernels.iter().map(|kernel| kernel.id).collect()
    }

    /// What tells the program from others of its name: the shapes of its records and the names of its kernels.
    pub(crate) fn fingerprint(&self) -> String {
        let kernels: Vec<&str> = self.kernels.iter().map(|kernel| kernel.name).collect();
        let [shared, private, parameters, globals] = self.records.lengths();
        format!(
            "{shared} shared and {private} private numbers a vertex, {parameters} parameters, {globals} globals, kernels {}",
            kernels.join(" ")
        )
    }
}

/// A function of tiles, for each number of lanes that kernels are compiled for.
macro_rules! by_width {
    ($of:ident, $what:ident, $p:ty, $t:ty, $k:ty, |$visit:ident $(, $more:ident)*|) => {
        Arc::new(|$visit: &Visit<$t> $(, $more: by_width!(@ $more, $t))*| {
            #[cfg(any(test, feature = "all-widths"))]
            if $visit.domain.width == <crate::number::Other<$t> as Lanes>::WIDTH {
                return $of::$what::<$p, $t, $k, crate::number::Other<$t>>($visit $(, $more)*);
            }
            debug_assert!(is_built::<$t>($visit.domain.width), "kernels are compiled for other groups");
            $of::$what::<$p, $t, $k, Widest<$t>>($visit $(, $more)*)
        })
    };
    (@ tile, $t:ty) => { &Tile };
    (@ values, $t:ty) => { &mut [$t] };
}

/// The same of a tape.
macro_rules! taped_by_width {
    ($what:ident, $t:ty, $kernel:ident, |$visit:ident $(, $more:ident)*|) => {
        Arc::new(move |$visit: &Visit<$t> $(, $more: by_width!(@ $more, $t))*| {
            #[cfg(any(test, feature = "all-widths"))]
            if $visit.domain.width == <crate::number::Other<$t> as Lanes>::WIDTH {
                return taped::$what::<$t, crate::number::Other<$t>>(&$kernel, $visit $(, $more)*);
            }
            taped::$what::<$t, Widest<$t>>(&$kernel, $visit $(, $more)*)
        })
    };
}

/// A tape as what interprets it.
fn taped(name: &str, role: Role, tape: &Tape, outputs: &[Id], records: &Records) -> Result<Arc<Taped>> {
    let taped =
        Taped::new(tape, outputs, role, records).map_err(|why| Error::Program(format!("kernel {name} {why}")))?;
    Ok(Arc::new(taped))
}

/// The functions of a kernel that is a tape. `sight`: how far it looks, if it measures.
fn taped_code<T: Number>(kernel: Arc<Taped>, role: Role, sight: Sight) -> Code<T> {
    let (one, of) = (kernel.clone(), kernel);
    match role {
        Role::Map => Code::Vertex {
            one: Arc::new(move |vertex, reals| one::taped_update(&one, vertex, reals)),
            tile: taped_by_width!(map, T, of, |visit, tile|),
            touches: Touches::ALL,
            is_quiet: false,
            relax: None,
        },
        Role::Update { is_quiet } => Code::Vertex {
            one: Arc::new(move |vertex, reals| one::taped_update(&one, vertex, reals)),
            tile: taped_by_width!(update, T, of, |visit, tile|),
            touches: Touches::ALL,
            is_quiet,
            relax: None,
        },
        Role::Project { .. } => unreachable!("a projection is no tape"),
        Role::Measure(how) => Code::Measure {
            how,
            sight,
            one: Arc::new(move |vertex| one::taped_measure(&one, vertex)),
            tile: taped_by_width!(measure, T, of, |visit, tile, values|),
        },
        Role::Scalar => Code::Scalar(Arc::new(move |uniform| of.scalars(uniform))),
        Role::Test => Code::Test(Arc::new(move |uniform| of.holds(uniform))),
    }
}

struct List<P, T> {
    table: Table<T>,
    program: PhantomData<P>,
}

impl<P: Kernels, T: Number> List<P, T> {
    fn push<K: Kernel>(&mut self, metric: Option<(&'static str, &'static str)>, script: Script, code: Code<T>) {
        self.table.kernels.push(Compiled { name: K::NAME, id: KernelId::of::<K>(), metric, code, script });
    }

    fn push_update<K: Update<P>>(&mut self, script: Script, relax: Option<Relaxation<T>>) {
        let (one, tile) = (Arc::new(one::update::<P, T, K>), by_width!(tile, update, P, T, K, |visit, tile|));
        let code = Code::Vertex { one, tile, touches: Touches::ALL, is_quiet: K::QUIET, relax };
        self.push::<K>(None, script, code);
    }
}

impl<P: Kernels, T: Number> KernelList<P> for List<P, T> {
    fn map<K: Map<P>>(&mut self) {
        let (one, tile) = (Arc::new(one::map::<P, T, K>), by_width!(tile, map, P, T, K, |visit, tile|));
        let code = Code::Vertex { one, tile, touches: Touches::ALL, is_quiet: false, relax: None };
        self.push::<K>(None, Script::map::<P, K>(), code);
    }

    fn update<K: Update<P>>(&mut self) {
        self.push_update::<K>(Script::update::<P, K>(), None);
    }

    fn relax<K: Relax<P>>(&mut self) {
        let star = <K::Along as Star<1>>::INDEX;
        let relax = Relaxation {
            star,
            here: relaxation::fixpoint::<P, T, K>,
            #[cfg(feature = "cluster")]
            in_grid: super::grid::fixpoint::<P, T, K>,
        };
        self.push_update::<K>(Script::relax::<P, K>(), Some(relax));
        self.table.relaxed.push(star);
    }

    fn project<K: Project<P>>(&mut self) {
        let star = <K::Along as Elements>::INDEX;
        let (one, tile) = (Arc::new(one::project::<P, T, K>), by_width!(elements, project, P, T, K, |visit, tile|));
        self.push::<K>(None, Script::project::<P, K>(), Code::Project { star, one, tile });
        self.table.projected.insert(star, Fields::of::<<K::Along as Elements>::State<T>, T>());
    }

    fn reduce<K: Reduce<P>>(&mut self) {
        let code = Code::Measure {
            how: K::COMBINE,
            sight: Sight::Around,
            one: Arc::new(one::measure::<P, T, K>),
            tile: by_width!(tile, measure, P, T, K, |visit, tile, values|),
        };
        self.push::<K>(K::METRIC, Script::measure::<P, K>(), code);
    }

    fn scalar<K: Scalar<P>>(&mut self) {
        self.push::<K>(None, Script::scalar::<P, K>(), Code::Scalar(Arc::new(compute::<P, T, K>)));
    }

    fn test<K: Test<P>>(&mut self) {
        self.push::<K>(
            None,
            Script::test::<P, K>(),
            Code::Test(Arc::new(|uniform| K::test(&uniform.given::<P>(0, 0)))),
        );
    }
}

fn compute<P: Kernels, T: Number, K: Scalar<P>>(uniform: &Uniform<T>) -> Vec<T> {
    let given: Given<P, T> = uniform.given(0, 0);
    let mut reals = Vec::with_capacity(uniform.globals.len());
    K::compute(&given).each(|_, x| reals.push(x));
    reals
}
