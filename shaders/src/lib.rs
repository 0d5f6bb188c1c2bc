//! WGSL of the kernels that surround a traced program. Text and facts about it: no device, no mesh.
//!
//! So far it holds the reduction; the kernels that walk schedules join it with the GPU engine.
//!
//! ```
//! let reduce = meshweft_shaders::KERNELS.iter().find(|k| k.name == "reduce").unwrap();
//! assert!(reduce.source.contains("@workgroup_size(256)"));
//! ```

#![forbid(unsafe_code)]

/// One compute kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of the file and of the entry point.
    pub name: &'static str,
    /// The whole module.
    pub source: &'static str,
    /// Invocations a workgroup.
    pub workgroup_size: u32,
}

/// All kernels.
pub const KERNELS: &[Kernel] =
    &[Kernel { name: "reduce", source: include_str!("../wgsl/reduce.wgsl"), workgroup_size: 256 }];

#[cfg(test)]
mod tests {
    use super::*;
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    #[test]
    fn every_kernel_is_valid_and_is_what_the_table_says() {
        for kernel in KERNELS {
            let module = naga::front::wgsl::parse_str(kernel.source)
                .unwrap_or_else(|e| panic!("{}", e.emit_to_string(kernel.source)));
            Validator::new(ValidationFlags::all(), Capabilities::empty()).validate(&module).unwrap();
            let [entry] = &module.entry_points[..] else { panic!("{} has one entry point", kernel.name) };
            assert_eq!((&entry.name[..], entry.workgroup_size), (kernel.name, [kernel.workgroup_size, 1, 1]));
        }
    }

    #[test]
    fn nonsense_is_not_valid() {
        assert!(naga::front::wgsl::parse_str("fn f() -> f32 { return 1u + ; }").is_err());
    }
}
