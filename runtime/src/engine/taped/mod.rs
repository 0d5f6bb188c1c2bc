//! Kernels as data: a tape, run by an interpreter.
//!
//! ```text
//!   exact tape ─▶ Listing: operations on registers, in order ─▶ Machine: runs it on numbers, or on lanes of them
//! ```
//!
//! A kernel need not be known when Rust is compiled: what its trace left on an [exact tape](crate::trace::Tape) is run with the very
//! operations of [`Real`](crate::number::Real) that a compiled kernel has, in the same order, so its bits are the same. An operation is
//! done for all vertices of a group before the next one, which hides most of what it costs to find out which it is.

mod listing;
mod machine;
mod op;
mod sites;

#[cfg(feature = "jit")]
use super::native::{Native, Natives};
use crate::layout::shared_stride;
#[cfg(feature = "jit")]
use crate::number::Lanes;
use crate::number::{Kind, Number};
use crate::program::{Records, Uniform};
use crate::trace::{Id, Role, Tape};
use listing::Listing;
pub(crate) use machine::Machine;
pub(crate) use sites::{Groups, Single};

/// A kernel as a tape, and what it has to know of the records of its program.
pub(crate) struct Taped {
    pub(crate) listing: Listing,
    /// What the reals of a vertex are, shared ones first.
    pub(crate) kinds: Vec<Kind>,
    /// Shared reals of a vertex, and from one to the next.
    pub(crate) shared: (usize, usize),
    #[cfg(feature = "jit")]
    natives: Natives,
}

impl Taped {
    /// `outputs`: what a kernel of this role comes to.
    ///
    /// # Errors
    /// More values at a time than an interpreter has registers.
    pub(crate) fn new(tape: &Tape, outputs: &[Id], role: Role, records: &Records) -> Result<Taped, String> {
        let (shared, kinds) = (records.shared.len(), records.state().kinds());
        // From three reals on they lie in quads, of which an operation can name 256.
        let listing = Listing::new(tape, outputs, (3..1000).contains(&shared))?;
        #[cfg(feature = "jit")]
        let natives = Natives::new(tape, outputs, matches!(role, Role::Measure(_)));
        #[cfg(not(feature = "jit"))]
        let _ = role;
        Ok(Taped {
            listing,
            kinds,
            shared: (shared, shared_stride(shared)),
            #[cfg(feature = "jit")]
            natives,
        })
    }

    /// It as machine code for groups of so many lanes, which name others in so many bytes. None if it is interpreted.
    #[cfg(feature = "jit")]
    pub(crate) fn native<T: Number, L: Lanes<Scalar = T>>(&self, name_bytes: usize) -> Option<&Native> {
        self.natives.get(T::PRECISION, L::WIDTH, name_bytes, (self.shared.0, &self.kinds))
    }

    /// What a kernel computes that is run once for the whole mesh.
    pub(crate) fn scalars<T: Number>(&self, uniform: &Uniform<T>) -> Vec<T> {
        let machine = self.once(uniform);
        (0..self.listing.outputs()).map(|k| machine.real(k)[0]).collect()
    }

    /// Whether a test holds.
    pub(crate) fn holds<T: Number>(&self, uniform: &Uniform<T>) -> bool {
        self.once(uniform).truth()[0]
    }

    fn once<T: Number>(&self, uniform: &Uniform<T>) -> Machine<'_, T, 1> {
        struct Nowhere;
        impl<T: Number> machine::Site<T, 1> for Nowhere {}
        let mut machine = Machine::new(&self.listing, uniform, 0, |x| x);
        machine.visit(&Nowhere);
        machine
    }

    /// Whether all reals of a vertex are finite.
    pub(crate) fn are_finite<T: Number>(&self, reals: &[T]) -> bool {
        reals.iter().zip(&self.kinds).all(|(x, &kind)| kind == Kind::Integer || x.finite())
    }
}
