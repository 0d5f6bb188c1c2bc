//! What a kernel is given besides the vertex: parameters, globals, its own settings, and counters for random numbers.

use super::{Kernels, Record};
use crate::number::{Int, Integer, Lanes, Number, Real, array, random};
use crate::step::SETTINGS;
use std::ops::Deref;

/// What a kernel reads besides the vertex. It derefs to the program's parameters: `p.dt` is a parameter, `p.globals.residual`
/// a global, `p.uniform(SEED)` a random number.
#[derive(Clone, Copy, Debug)]
pub struct Given<P: Kernels, R: Real> {
    parameters: P::Parameters<R>,
    /// What earlier stages measured and computed.
    pub globals: P::Globals<R>,
    settings: [R; SETTINGS],
    step: R::Int,
    vertex: R::Int,
    /// Tells the stages of a step and their rounds apart.
    draw: R::Int,
}

impl<P: Kernels, R: Real> Deref for Given<P, R> {
    type Target = P::Parameters<R>;

    #[inline(always)]
    fn deref(&self) -> &P::Parameters<R> {
        &self.parameters
    }
}

impl<P: Kernels, R: Real> Given<P, R> {
    /// What a kernel is given, for tests of a kernel by itself: settings and counters are zero.
    pub fn new(parameters: P::Parameters<R>, globals: P::Globals<R>) -> Self {
        let zero = R::lit(0.0);
        Given {
            parameters,
            globals,
            settings: [zero; SETTINGS],
            step: R::Int::lit(0),
            vertex: R::Int::lit(0),
            draw: R::Int::lit(0),
        }
    }

    /// The settings of the kernel that runs, in the order in which they were declared.
    #[inline(always)]
    pub fn settings<const N: usize>(&self) -> [R; N] {
        array(R::lit(0.0), |i| self.settings[i])
    }

    /// Steps taken before this one.
    #[inline(always)]
    pub fn step(&self) -> R::Int {
        self.step
    }

    /// The number of the vertex along the curve: it depends on where the vertex lies, not on its name or on the order.
    #[inline(always)]
    pub fn vertex(&self) -> R::Int {
        self.vertex
    }

    /// A random number, uniform in [0, 1), another for every vertex, step, stage, round and seed: the same on every engine. A
    /// kernel that draws several numbers takes another seed for each. See [`random`].
    #[inline(always)]
    pub fn uniform(&self, seed: i32) -> R {
        random::uniform(self.counters(seed))
    }

    /// A random number, normal with mean 0 and variance 1, likewise.
    #[inline(always)]
    pub fn normal(&self, seed: i32) -> R {
        random::normal(self.counters(seed))
    }

    #[inline(always)]
    fn counters(&self, seed: i32) -> [R::Int; 4] {
        [self.vertex, self.step, R::Int::lit(seed), self.draw]
    }

    /// Puts it together from reals: of parameters, globals and settings; vertex, step and draw as a real holds them.
    pub(crate) fn build(
        parameters: impl FnMut(usize) -> R,
        globals: impl FnMut(usize) -> R,
        settings: impl FnMut(usize) -> R,
        [vertex, step, draw]: [R; 3],
    ) -> Self {
        Given {
            parameters: Record::build(parameters),
            globals: Record::build(globals),
            settings: array(R::lit(0.0), settings),
            step: step.held_int(),
            vertex: vertex.held_int(),
            draw: draw.held_int(),
        }
    }
}

/// The same as plain numbers, whatever the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Uniform<T> {
    pub(crate) parameters: Vec<T>,
    pub(crate) globals: Vec<T>,
    pub(crate) settings: [T; SETTINGS],
    pub(crate) step: u32,
    /// What its stage draws random numbers by; each round adds one.
    pub(crate) draw: u32,
}

impl<T: Number> Uniform<T> {
    /// Step and draw of a round, as a real holds an integer.
    pub(crate) fn counters(&self, round: u32) -> [T; 2] {
        [self.step, self.draw.wrapping_add(round)].map(hold)
    }

    /// As the kernels of a program read it at one vertex. `vertex`: its number along the curve; `round`: of the stage.
    #[inline(always)]
    pub(crate) fn given<P: Kernels>(&self, vertex: u32, round: u32) -> Given<P, T> {
        let counters = [vertex, self.step, self.draw.wrapping_add(round)].map(hold);
        Given::build(|k| self.parameters[k], |k| self.globals[k], |k| self.settings[k], counters)
    }

    /// The same numbers in every lane.
    #[inline(always)]
    pub(crate) fn splat<P: Kernels, L: Lanes<Scalar = T>>(&self, round: u32) -> Given<P, L> {
        let all = |x: T| L::from_fn(|_| x);
        let counters = [0, self.step, self.draw.wrapping_add(round)].map(|x| all(hold(x)));
        Given::build(|k| all(self.parameters[k]), |k| all(self.globals[k]), |k| all(self.settings[k]), counters)
    }
}

impl<P: Kernels, L: Lanes> Given<P, L> {
    /// Goes on to other vertices. `numbers`: along the curve; empty where no kernel asks for them.
    #[inline(always)]
    pub(crate) fn visit(&mut self, numbers: &[u32]) {
        if !numbers.is_empty() {
            self.vertex = L::from_fn(|lane| hold(numbers[lane])).held_int();
        }
    }
}

/// A counter as a real holds an integer.
#[inline(always)]
pub(crate) fn hold<T: Number>(counter: u32) -> T {
    T::hold_int(Int(counter.cast_signed()))
}
