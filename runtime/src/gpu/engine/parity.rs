//! Whether WGSL that somebody wrote computes what its kernel does.

use super::Gpu;
use super::steps::Steps;
use crate::error::{Error, Result};
use crate::layout::{Layout, State, shared_stride};
use crate::program::{Number, PrivateOf, Program, Record, SharedOf};

impl Gpu {
    /// Runs the start of a step up to one round of each kernel that somebody wrote in WGSL, as written and as traced, and
    /// compares. The state of the device is lost.
    ///
    /// # Errors
    /// [`Error::Contract`] names the kernel and the first vertex at which both differ by more than rounding;
    /// [`Error::Invalid`] a name that no kernel has.
    pub(crate) fn parity<P: Program, T: Number>(
        &mut self,
        program: &P,
        parameters: &P::Parameters<T>,
        layout: &Layout<T>,
        state: &State<T>,
    ) -> Result<()> {
        let kernels: Vec<String> = self.written.keys().cloned().collect();
        for kernel in &kernels {
            let mut both = Vec::new();
            for by_hand in [true, false] {
                self.upload(state)?;
                self.set_parameters::<P, T>(parameters)?;
                self.by_hand = by_hand;
                let mut stages = Steps::new(self, &layout.schedule, Some(kernel));
                program.step(&mut stages);
                let Steps { is_found, result, .. } = stages;
                self.by_hand = true;
                result?;
                if !is_found {
                    return Err(Error::Invalid(format!(
                        "WGSL was given for {kernel:?}, but no kernel of a step that reads its neighbors is called so: \
                         `meshweft shader` prints their names"
                    )));
                }
                let mut result = state.clone();
                self.download(&mut result)?;
                both.push(result);
            }
            let [written, traced] = &both[..] else { return Ok(()) };
            let shared = shared_stride(<SharedOf<P, T>>::LEN).max(1);
            let private = <PrivateOf<P, T>>::LEN.max(1);
            let shared_real = |i: usize| (i % shared, i / shared);
            let private_real = |i: usize| {
                let (group, lane) = (i / layout.width / private, i % layout.width);
                (i / layout.width % private, group * layout.width + lane)
            };
            compare(kernel, "shared", (&written.shared, &traced.shared), shared, shared_real, layout)?;
            compare(kernel, "private", (&written.private, &traced.private), private, private_real, layout)?;
        }
        Ok(())
    }
}

/// Compares what a kernel made with what it should have made. `real`: number of a real in its record, and slot.
fn compare<T: Number>(
    kernel: &str,
    what: &str,
    (written, traced): (&[T], &[T]),
    reals: usize,
    real: impl Fn(usize) -> (usize, usize),
    layout: &Layout<T>,
) -> Result<()> {
    /// Rounding of a few hundred operations.
    const BOUND: f64 = 3e-5;
    let mut scales = vec![0.0f64; reals];
    for (i, x) in traced.iter().enumerate() {
        let scale = &mut scales[real(i).0];
        *scale = scale.max(x.to_f64().abs());
    }
    for (i, (a, b)) in written.iter().zip(traced).enumerate() {
        let (k, slot) = real(i);
        // What is no number is not within the bound.
        let is_near = (a.to_f64() - b.to_f64()).abs() <= BOUND * scales[k];
        if !is_near && a.finite() | b.finite() {
            return Err(Error::Contract(format!(
                "the WGSL of kernel {kernel} makes {} of {what} real {k} of vertex {} where its update makes {}",
                a.to_f64(),
                layout.vertex_at(layout.place(slot) as u32),
                b.to_f64()
            )));
        }
    }
    Ok(())
}
