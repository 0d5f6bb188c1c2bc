//! The kernels of a program, one after the other.

use super::{Kernels, Map, Project, Reduce, Relax, Scalar, Test, Update};

/// Receives the kernels of a program, each once.
pub trait KernelList<P: Kernels> {
    /// A map.
    fn map<K: Map<P>>(&mut self);
    /// An update.
    fn update<K: Update<P>>(&mut self);
    /// A relaxation, which is an update too.
    fn relax<K: Relax<P>>(&mut self) {
        self.update::<K>();
    }
    /// A projection of elements.
    fn project<K: Project<P>>(&mut self);
    /// A measure.
    fn reduce<K: Reduce<P>>(&mut self);
    /// A computation of globals.
    fn scalar<K: Scalar<P>>(&mut self);
    /// A test of globals.
    fn test<K: Test<P>>(&mut self);
}
