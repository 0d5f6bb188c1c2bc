//! Arrays made place by place.

/// Place `i` is `f(i)`; `any` is what the places hold before.
///
/// A loop over an array that is there: those of `std::array::from_fn` and `map` call each place through a function that is
/// inlined only where crates or their units are optimized together, which `lto = "off"` forbids. Kernels were four to five
/// times slower by it.
#[inline(always)]
pub(crate) fn array<A: Copy, const N: usize>(any: A, mut f: impl FnMut(usize) -> A) -> [A; N] {
    let mut array = [any; N];
    for (i, place) in array.iter_mut().enumerate() {
        *place = f(i);
    }
    array
}
