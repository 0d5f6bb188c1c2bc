//! WGSL of programs: text and facts about it. No device, no mesh.
//!
//! [`module`] puts together what runs a program on a GPU: structs after its records, its update as it was traced, and the
//! kernels in `wgsl/` that walk a schedule. [`check`] tells whether a GPU would take it. [`KERNELS`] are those that need
//! no program.
//!
//! ```
//! use meshweft_shaders::{Body, Entry, Harness, Physics, Record, Scalar, check, module};
//! let record = |name: &str, parts: &[(&str, usize)]| {
//!     let parts: Vec<_> = parts.iter().map(|&(part, reals)| (part.to_string(), reals)).collect();
//!     Record::new(name, &parts, Scalar::F32)
//! };
//! let physics = Physics {
//!     scalar: Scalar::F32,
//!     parameters: record("Parameters", &[("dt", 1)]),
//!     globals: record("Globals", &[]),
//!     shared: record("Shared", &[("position", 3)]),
//!     private: record("Private", &[("velocity", 3)]),
//!     stars: vec![],
//! };
//! let fall = "    return New(Shared(own.position + body.velocity * parameters().dt), body);\n";
//! let harness = Harness { width: 32, rows: false, fixed: false, table: None, phase_size: 128, walk_size: 128 };
//! let text = module(&physics, &harness, &Body::update(fall.into(), true, vec![false; 3]), Entry::Phase, false);
//! check(&text)?;
//! # Ok::<(), String>(())
//! ```

#![forbid(unsafe_code)]

pub mod layout;
mod module;
mod record;

pub use module::{Body, Entry, Harness, Physics, Star, functions, module};
pub use record::{Record, Scalar, identifier};

use naga::Module;
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};

/// One compute kernel that needs no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of the entry point.
    pub name: &'static str,
    /// The whole module.
    pub source: &'static str,
    /// Invocations a workgroup.
    pub workgroup_size: u32,
}

/// What every module begins with: the structs that host and kernels share.
const LAYOUT: &str = include_str!("../wgsl/layout.wgsl");

/// A kernel over the structs of `layout.wgsl`, in floats.
macro_rules! kernel {
    ($name:literal, $file:literal, $size:literal) => {
        Kernel {
            name: $name,
            source: concat!(
                "alias Scalar = f32;\nconst STARS: u32 = 1u;\nconst PARAMETER_QUADS: u32 = 1u;\n\n",
                include_str!("../wgsl/layout.wgsl"),
                include_str!($file)
            ),
            workgroup_size: $size,
        }
    };
}

impl Kernel {
    /// Its text for numbers of another kind.
    pub fn source_for(&self, scalar: Scalar) -> String {
        self.source.replacen("alias Scalar = f32;", &format!("alias Scalar = {};", scalar.word(1)), 1)
    }
}

/// Begins a step.
pub const TICK: Kernel = kernel!("tick", "../wgsl/tick.wgsl", 1);
/// Leaves of a fixed tree of sums, smallest or largest values: [`LEAF`] values a workgroup.
pub const REDUCE: Kernel = kernel!("reduce", "../wgsl/reduce.wgsl", 256);
/// The rest of the tree, and its result into a global.
pub const FINISH: Kernel = kernel!("finish", "../wgsl/reduce.wgsl", 256);
/// Shared state of some slots into a row.
pub const PACK: Kernel = Kernel { name: "pack", source: include_str!("../wgsl/pack.wgsl"), workgroup_size: 256 };
/// And back.
pub const UNPACK: Kernel = Kernel { name: "unpack", source: include_str!("../wgsl/pack.wgsl"), workgroup_size: 256 };
/// Shared state of vertices to their padding.
pub const PAD: Kernel = Kernel { name: "pad", source: include_str!("../wgsl/pad.wgsl"), workgroup_size: 256 };

/// Quads from one array to another.
pub const COPY: Kernel = Kernel { name: "copy", source: include_str!("../wgsl/copy.wgsl"), workgroup_size: 256 };

/// All of them.
pub const KERNELS: &[Kernel] = &[TICK, REDUCE, FINISH, PACK, UNPACK, PAD, COPY];

/// Values that a workgroup of [`REDUCE`] combines.
pub const LEAF: usize = 4096;

/// Parses and validates a module as a GPU's compiler would.
///
/// # Errors
/// What is wrong, with the line.
pub fn check(source: &str) -> Result<(), String> {
    validated(source).map(|_| ())
}

fn validated(source: &str) -> Result<(Module, ModuleInfo), String> {
    let module = naga::front::wgsl::parse_str(source).map_err(|e| e.emit_to_string(source))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    let info = validator.validate(&module).map_err(|e| e.emit_to_string(source))?;
    Ok((module, info))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a module, and translates it as each system wants it if the feature `translate` brings what that takes.
    fn check(source: &str) -> Result<Module, String> {
        let valid = validated(source)?;
        #[cfg(feature = "translate")]
        translate(&valid)?;
        Ok(valid.0)
    }

    #[cfg(feature = "translate")]
    fn translate((module, info): &(Module, ModuleInfo)) -> Result<(), String> {
        use naga::back::{hlsl, msl, spv};
        let (options, pipeline) = (hlsl::Options::default(), hlsl::PipelineOptions::default());
        let mut text = String::new();
        let mut writer = hlsl::Writer::new(&mut text, &options, &pipeline);
        writer.write(module, info, None).map_err(|e| format!("Direct3D: {e}"))?;
        msl::write_string(module, info, &Default::default(), &Default::default()).map_err(|e| format!("Metal: {e}"))?;
        spv::write_vec(module, info, &Default::default(), None).map_err(|e| format!("Vulkan: {e}"))?;
        Ok(())
    }

    #[test]
    fn every_kernel_is_valid_and_is_what_the_table_says() {
        for kernel in KERNELS {
            let module = check(kernel.source).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
            let entry = module.entry_points.iter().find(|entry| entry.name == kernel.name).unwrap();
            assert_eq!(entry.workgroup_size, [kernel.workgroup_size, 1, 1], "{}", kernel.name);
            check(&kernel.source_for(Scalar::I32)).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        let error = check("fn f() -> f32 {\n    return 1u + ;\n}").unwrap_err();
        assert!(error.contains("2"), "{error}");
        check("fn f() -> f32 {\n    return 1u;\n}").unwrap_err();
    }

    fn physics(shared: usize, private: usize, scalar: Scalar) -> Physics {
        let record = |name: &str, reals: usize| Record::new(name, &[("x".into(), reals)], scalar);
        Physics {
            scalar,
            parameters: record("Parameters", 5),
            globals: record("Globals", 3),
            shared: record("Shared", shared),
            private: record("Private", private),
            stars: vec![
                Star { name: "Edges".into(), others: 1, data: record("Data0", 0), state: record("State0", 0) },
                Star { name: "Tets".into(), others: 3, data: record("Data1", 2), state: record("State1", private) },
            ],
        }
    }

    #[test]
    fn modules_of_every_shape_are_valid() {
        for shared in [0, 1, 2, 3, 4, 5, 9, 37] {
            for (private, scalar) in [(0, Scalar::F32), (1, Scalar::I32), (3, Scalar::F32), (12, Scalar::I32)] {
                let physics = physics(shared, private, scalar);
                let update = Body::update("    return New(own, body);\n".into(), true, vec![true; private]);
                let sum =
                    ["exp", "sin", "cos", "ln", "acos", "tanh"].map(|name| format!("{name}_exact(x)")).join(" + ");
                let more = ["pow", "atan2", "rem"].map(|name| format!("{name}_exact(x, 2.0f)")).join(" + ");
                let integers = "rem_integer(integer_of(x), sqrt_integer(5i))";
                let lines =
                    ["let x = slot_of(7i);".into(), format!("let y = {sum} + {more};"), format!("let i = {integers};")];
                let functions = format!("    {}\n    return New(own, body);\n", lines.join("\n    "));
                let functions = Body::update(functions, true, vec![true; private]);
                let measure = |is_sum| {
                    Body::measure("    let t = things_1(place);\n    return Scalar(t.count);\n".into(), is_sum)
                };
                let scalar = Body::scalar(
                    "    let g = globals();\n    return Globals(g.x * settings()[0] + vertex(place));\n".into(),
                );
                let test = Body::test("    return globals().x.y < step();\n".into());
                let project = |star: usize, is_moved: bool| {
                    let Physics { shared: corners, private: element, .. } = physics.of_projection(star);
                    let state = 0..physics.stars[star].state.len();
                    let reals: Vec<String> = (0..corners.len())
                        .map(|k| corners.real("own", k))
                        .chain(state.map(|k| element.real("body", k)))
                        .collect();
                    let moved = format!("    return {};\n", physics.moved(star, &reals));
                    Body::project(moved, star, vec![is_moved; 2 + 2 * star])
                };
                let projections = [project(0, true), project(1, true), project(1, false)];
                for body in [update, functions, measure(true), measure(false)].into_iter().chain(projections) {
                    for (entry, table) in [(Entry::Phase, None), (Entry::Tasks, None), (Entry::Tasks, Some(70))] {
                        for (rows, double) in [(false, false), (true, false), (true, true)] {
                            let harness = Harness { width: 8, rows, fixed: rows, table, phase_size: 64, walk_size: 64 };
                            let text = module(&physics, &harness, &body, entry, double);
                            check(&text).unwrap_or_else(|e| panic!("{shared} {private} {entry:?} {table:?}: {e}"));
                        }
                    }
                }
                for body in [scalar, test] {
                    let harness =
                        Harness { width: 8, rows: true, fixed: true, table: None, phase_size: 64, walk_size: 64 };
                    check(&module(&physics, &harness, &body, Entry::Once, false)).unwrap_or_else(|e| panic!("{e}"));
                }
            }
        }
    }
}
