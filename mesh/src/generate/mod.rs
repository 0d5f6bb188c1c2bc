//! Meshes made from a formula and a seed: for examples, tests and benchmarks, no file needed.
//!
//! [`generate()`] reads a spec such as `box:128` or `sheet:256x256`; [`GENERATORS`] lists what there is. Each generator
//! is also a function ([`sheet`], [`cuboid`], …). Guarantees: the same spec and seed give the same bits on every
//! machine and for any number of threads, since points use only `+ - * /`, square roots and a software sine, and random
//! numbers are a hash of seed and index; solid cells have positive volume, and surfaces are seen from outside (flat
//! ones from above) as counterclockwise; a size that cannot fit is refused before anything is allocated.
//!
//! Lengths are meters: the longest side or diameter is 1. Vertices are numbered in the natural order of the formula,
//! except that those of [`random`] are in no order.
//!
//! ```
//! use meshweft_mesh::generate::generate;
//! let mesh = generate("box:9x9x5", 7)?;
//! assert_eq!(mesh.points().len(), 9 * 9 * 5);
//! assert_eq!(mesh.cells().len(), 6 * 8 * 8 * 4);
//! let error = generate("shet:9", 7).unwrap_err().to_string();
//! assert!(error.contains("did you mean `sheet`?"), "{error}");
//! # Ok::<(), meshweft_mesh::Error>(())
//! ```

mod airfoil;
mod grid;
mod kronecker;
mod plate;
mod round;
mod scatter;
mod size;
mod stream;
#[cfg(test)]
mod tests;

use std::num::IntErrorKind;

use crate::error::{Error, Result};
use crate::mesh::Mesh;

pub use airfoil::airfoil;
pub use grid::{bar, cuboid, grid, hexes, quads, sheet};
pub use kronecker::{kronecker, uniform};
pub use plate::plate;
pub use round::{ball, disk, sphere, torus};
pub use scatter::{chain, random};
pub use size::Size;
use size::Wanted;

/// One row of the table of generators: what help texts show, and how to build.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    /// The word before the colon of a spec.
    pub name: &'static str,
    /// The numbers after the colon, such as `NXxNY`.
    pub form: &'static str,
    /// What it makes, in one line.
    pub about: &'static str,
    /// A spec to copy.
    pub example: &'static str,
    /// The number that the bare name stands for.
    default: usize,
    /// All numbers of the form, from one.
    spread: fn(usize) -> Vec<usize>,
    /// How large it will be, by the numbers of the form.
    wanted: fn(&[usize]) -> Wanted<'_>,
    /// Builds from the numbers of the form and the seed.
    build: fn(&[usize], u64) -> Result<Mesh>,
}

/// Every generator, in the order in which help texts list them.
///
/// In each form a single number may stand for all of them (`box:N` is a cube, `bar:N` is four times as long as wide, `kronecker:SCALE`
/// has 16 edges a vertex), and the numbers may be left out (`sheet`).
///
/// ```
/// use meshweft_mesh::generate::{GENERATORS, generate};
/// assert!(GENERATORS.iter().all(|g| generate(g.name, 0).is_ok()));
/// ```
pub const GENERATORS: &[Generator] = &[
    Generator {
        name: "sheet",
        form: "NXxNY",
        about: "flat sheet of triangles, for cloth; vertices per side, width 1",
        example: "sheet:256x256",
        default: 64,
        spread: |n| vec![n; 2],
        wanted: grid::wanted_sheet,
        build: |n, _| sheet(n[0], n[1]),
    },
    Generator {
        name: "box",
        form: "NXxNYxNZ",
        about: "box of jittered tets, 14 neighbors per inner vertex; vertices per side, longest side 1; uses the seed",
        example: "box:128",
        default: 32,
        spread: |n| vec![n; 3],
        wanted: grid::wanted_cuboid,
        build: |n, seed| cuboid(n[0], n[1], n[2], seed),
    },
    Generator {
        name: "bar",
        form: "NXxNYxNZ",
        about: "beam of tets with end faces in groups left and right; vertices per side, N is 4:1:1, longest side 1",
        example: "bar:65x17x17",
        default: 9,
        // Four times as many steps, not vertices, so that the beam is exactly 4:1:1.
        spread: |n| vec![n.saturating_mul(4).saturating_sub(3), n, n],
        wanted: grid::wanted_bar,
        build: |n, _| bar(n[0], n[1], n[2]),
    },
    Generator {
        name: "ball",
        form: "N",
        about: "solid ball of tets; vertices across, diameter 1",
        example: "ball:33",
        default: 17,
        spread: |n| vec![n],
        wanted: round::wanted_ball,
        build: |n, _| ball(n[0]),
    },
    Generator {
        name: "sphere",
        form: "N",
        about: "surface of a ball, triangles; pieces per icosahedron edge, diameter 1",
        example: "sphere:64",
        default: 16,
        spread: |n| vec![n],
        wanted: round::wanted_sphere,
        build: |n, _| sphere(n[0]),
    },
    Generator {
        name: "disk",
        form: "N",
        about: "flat disk of triangles; rings around the center, diameter 1",
        example: "disk:100",
        default: 32,
        spread: |n| vec![n],
        wanted: round::wanted_disk,
        build: |n, _| disk(n[0]),
    },
    Generator {
        name: "torus",
        form: "NxM",
        about: "surface of a ring, triangles; vertices around the ring and around the tube, diameter 1",
        example: "torus:128x64",
        default: 64,
        // The tube is 3/7 as long around as the middle of the ring: half as many vertices make triangles well shaped.
        spread: |n| vec![n, if n < 6 { n } else { n / 2 }],
        wanted: round::wanted_torus,
        build: |n, _| torus(n[0], n[1]),
    },
    Generator {
        name: "random",
        form: "N",
        about: "points in a unit cube joined to their nearest by edges, about 14 neighbors each; uses the seed",
        example: "random:100000",
        default: 10_000,
        spread: |n| vec![n],
        wanted: scatter::wanted_random,
        build: |n, seed| random(n[0], seed),
    },
    Generator {
        name: "chain",
        form: "N",
        about: "vertices in a line joined by edges, length 1",
        example: "chain:1000",
        default: 1000,
        spread: |n| vec![n],
        wanted: scatter::wanted_chain,
        build: |n, _| chain(n[0]),
    },
    Generator {
        name: "hexes",
        form: "NXxNYxNZ",
        about: "box of hexes; vertices per side, longest side 1",
        example: "hexes:33x17x17",
        default: 16,
        spread: |n| vec![n; 3],
        wanted: grid::wanted_hexes,
        build: |n, _| hexes(n[0], n[1], n[2]),
    },
    Generator {
        name: "quads",
        form: "NXxNY",
        about: "flat sheet of quads; vertices per side, width 1",
        example: "quads:256x256",
        default: 64,
        spread: |n| vec![n; 2],
        wanted: grid::wanted_quads,
        build: |n, _| quads(n[0], n[1]),
    },
    Generator {
        name: "grid",
        form: "NXxNY",
        about: "flat lattice of edges, 4 neighbors per inner vertex; vertices per side, width 1",
        example: "grid:256x256",
        default: 64,
        spread: |n| vec![n; 2],
        wanted: grid::wanted_grid,
        build: |n, _| grid(n[0], n[1]),
    },
    Generator {
        name: "airfoil",
        form: "NxM",
        about: "rings of quads around a NACA 0012 out to 100 chords, edges in groups airfoil and far; quads in a ring and rings, chord 1",
        example: "airfoil:256x128",
        default: 128,
        spread: |n| vec![n, if n < 6 { n } else { n / 2 }],
        wanted: airfoil::wanted_airfoil,
        build: |n, _| airfoil(n[0], n[1]),
    },
    Generator {
        name: "plate",
        form: "NxM",
        about: "square plate with a round hole, edges in groups hole, right, top, left and bottom; quads along a side and from the hole to it, side 1",
        example: "plate:32x48",
        default: 32,
        spread: |n| vec![n; 2],
        wanted: plate::wanted_plate,
        build: |n, _| plate(n[0], n[1]),
    },
    Generator {
        name: "kronecker",
        form: "SCALExEDGES",
        about: "graph of 2^SCALE vertices and EDGES for each, 16 if left out, few with very many, as Graph500 makes them; uses the seed",
        example: "kronecker:16",
        default: 10,
        spread: |n| vec![n, kronecker::EDGES],
        wanted: kronecker::wanted_kronecker,
        build: |n, seed| kronecker(n[0], n[1], seed),
    },
    Generator {
        name: "uniform",
        form: "NxEDGES",
        about: "graph of N vertices and EDGES for each, 16 if left out, between any two of them; uses the seed",
        example: "uniform:65536x8",
        default: 1000,
        spread: |n| vec![n, kronecker::EDGES],
        wanted: kronecker::wanted_uniform,
        build: |n, seed| uniform(n[0], n[1], seed),
    },
];

/// Finds the generator that a spec names, by the word before the colon; `None` if it may be the name of a file instead.
///
/// ```
/// use meshweft_mesh::generate::find;
/// assert_eq!(find("box:128").map(|g| g.form), Some("NXxNYxNZ"));
/// assert!(find("bunny.obj").is_none());
/// ```
pub fn find(spec: &str) -> Option<&'static Generator> {
    let name = spec.split_once(':').map_or(spec, |(name, _)| name);
    GENERATORS.iter().find(|g| g.name == name)
}

/// Makes the mesh of a spec `name:numbers`, such as `sheet`, `sheet:256` or `sheet:256x128`.
///
/// `seed` matters to the generators whose line in [`GENERATORS`] says so. The same spec and seed give the same bits
/// everywhere.
///
/// # Errors
/// No generator of that name (the message lists them all), numbers that do not fit its form, or a mesh that is too
/// large.
pub fn generate(spec: &str, seed: u64) -> Result<Mesh> {
    let (generator, numbers) = parse(spec)?;
    (generator.build)(&numbers, seed)
}

/// How large the mesh of a spec will be, without making it.
///
/// # Errors
/// As [`generate()`].
///
/// ```
/// use meshweft_mesh::generate::size;
/// let tets = size("box:201")?;
/// assert_eq!((tets.vertices, tets.cells, tets.corners), (201 * 201 * 201, 48_000_000, 192_000_000));
/// # Ok::<(), meshweft_mesh::Error>(())
/// ```
pub fn size(spec: &str) -> Result<Size> {
    let (generator, numbers) = parse(spec)?;
    (generator.wanted)(&numbers).check()
}

/// A generator, and all numbers of its form.
fn parse(spec: &str) -> Result<(&'static Generator, Vec<usize>)> {
    let generator = find(spec).ok_or_else(|| unknown(spec))?;
    let numbers = match spec.split_once(':') {
        None => Vec::new(),
        Some((_, text)) => {
            text.split(['x', 'X']).map(|word| number(spec, generator, word)).collect::<Result<Vec<usize>>>()?
        }
    };
    let numbers = match numbers[..] {
        [] => (generator.spread)(generator.default),
        [n] => (generator.spread)(n),
        _ => numbers,
    };
    let wanted = generator.form.split('x').count();
    if numbers.len() != wanted {
        let given = numbers.len();
        let or_one = if wanted > 1 { ", or one for all" } else { "" };
        return Err(invalid(spec, generator, &format!("{given} numbers given, but it takes {wanted}{or_one}")));
    }
    Ok((generator, numbers))
}

fn number(spec: &str, generator: &Generator, word: &str) -> Result<usize> {
    word.parse().map_err(|error: std::num::ParseIntError| {
        let what = match error.kind() {
            IntErrorKind::Empty => "a number is missing".to_owned(),
            IntErrorKind::PosOverflow => format!("{word} is too large"),
            _ => format!("`{word}` is not a positive integer"),
        };
        invalid(spec, generator, &what)
    })
}

fn invalid(spec: &str, generator: &Generator, what: &str) -> Error {
    let Generator { name, form, example, .. } = generator;
    Error::Invalid(format!("mesh `{spec}`: {what}: write {name}:{form}, such as {example}"))
}

fn unknown(spec: &str) -> Error {
    let name = spec.split_once(':').map_or(spec, |(name, _)| name);
    let lower = name.to_lowercase();
    // Two slips of the pen, but fewer than half of the letters: beyond that a suggestion is only noise.
    let close = GENERATORS
        .iter()
        .map(|g| (strsim::levenshtein(&lower, g.name), g.name))
        .filter(|&(distance, known)| distance <= 2 && 2 * distance < known.len())
        .min();
    let hint = close.map_or(String::new(), |(_, known)| format!("did you mean `{known}`? "));
    let all: Vec<String> = GENERATORS.iter().map(|g| format!("{}:{}", g.name, g.form)).collect();
    Error::Invalid(format!("no mesh generator is named `{name}`: {hint}there are {}", all.join(", ")))
}
