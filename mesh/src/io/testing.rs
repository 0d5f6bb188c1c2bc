//! Help for the tests of the formats: samples, failing texts and mutations.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{Format, draft, parse};
use crate::cell::{CellKind, Cells};
use crate::mesh::{Field, Group, Mesh};

/// Reads a file called `a` that must be right.
#[track_caller]
pub(super) fn parsed(format: Format, bytes: impl AsRef<[u8]>) -> Mesh {
    parse(format, Path::new("a"), bytes.as_ref()).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads a file called `a` that must be right, and returns what is said about it, too.
#[track_caller]
pub(super) fn noted(format: Format, bytes: impl AsRef<[u8]>) -> (Mesh, Vec<String>) {
    let (name, mut notes) = (Path::new("a"), Vec::new());
    let draft = draft(format, name, bytes.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    let mesh = draft.finish(name, &mut |note| notes.push(note.to_owned())).unwrap_or_else(|error| panic!("{error}"));
    (mesh, notes)
}

/// Reads a file called `a` that must be wrong in the way `start` says.
#[track_caller]
pub(super) fn fails(format: Format, bytes: impl AsRef<[u8]>, start: &str) {
    let error = parse(format, Path::new("a"), bytes.as_ref()).expect_err(start).to_string();
    assert!(error.starts_with(start), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

/// Cuts and mutates a valid file; whatever comes out, no panic and no hang may follow.
#[track_caller]
pub(super) fn fuzz(format: Format, bytes: &[u8]) {
    mutations(bytes, |bytes| parse(format, Path::new("a"), bytes).is_ok());
}

/// Calls `read` with `bytes` as they are (which must succeed), cut at every byte, and changed in some thousand ways.
#[track_caller]
pub(super) fn mutations(bytes: &[u8], read: impl Fn(&[u8]) -> bool) {
    assert!(read(bytes), "the sample itself is wrong");
    let timed = |bytes: &[u8]| {
        let start = Instant::now();
        read(bytes);
        // A few hundred bytes take microseconds; a second means that a count of the file drives a loop.
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", String::from_utf8_lossy(bytes));
    };
    (0..bytes.len()).for_each(|end| timed(&bytes[..end]));
    // Numbers that break counts and indices when they replace one of a text.
    const NASTY: [&str; 8] =
        ["-1", "0", "2147483648", "4294967295", "9223372036854775807", "9223372036854775808", "nan", "1e999"];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4000 {
        let mut mutated = bytes.to_vec();
        for _ in 0..1 + random.below(3) {
            let at = random.below(mutated.len());
            match random.below(6) {
                0 => mutated[at] ^= 1 << random.below(8),
                1 => mutated[at] = random.below(256) as u8,
                2 => mutated[at..].iter_mut().take(8).for_each(|b| *b = 0xff),
                3 => drop(mutated.remove(at)),
                4 => mutated.insert(at, b"0123456789-.e \n<>/\"="[random.below(20)]),
                _ => {
                    let is_digit = |&b: &u8| b.is_ascii_digit();
                    if let Some(start) = mutated[at..].iter().position(is_digit).map(|k| at + k) {
                        let length = mutated[start..].iter().take_while(|b| is_digit(b)).count();
                        mutated.splice(start..start + length, NASTY[random.below(NASTY.len())].bytes());
                    }
                }
            }
            if mutated.is_empty() {
                break;
            }
        }
        timed(&mutated);
    }
}

/// Marsaglia's xorshift: the same mutations on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// A triangle, a quad and an edge with fields of odd names and values, and a group.
pub(super) fn mixed_surface() -> Mesh {
    let points = vec![[0.0, 0.1, -0.0], [1.0 / 3.0, 1e-300, 1e300], [2.0, 1.0, 0.5], [1.0, 2.0, 0.0], [0.0, 1.0, 7.0]];
    let mut cells = Cells::new();
    cells.push(CellKind::Triangle, &[0, 1, 2]);
    cells.push(CellKind::Quad, &[0, 2, 3, 4]);
    cells.push(CellKind::Edge, &[4, 0]);
    let mut mesh = Mesh::new(points, cells).unwrap();
    let heat = vec![0.1, f64::MAX, f64::MIN_POSITIVE, -0.0, 5.0];
    mesh.set_point_field(Field { name: "heat".into(), components: 1, values: heat }).unwrap();
    let wind = (0..15).map(f64::from).collect();
    mesh.set_point_field(Field { name: "wind speed".into(), components: 3, values: wind }).unwrap();
    let cost = vec![1.0, 2.0, 3.0];
    mesh.set_cell_field(Field { name: "a<b & \"c\"'".into(), components: 1, values: cost }).unwrap();
    mesh.add_group(Group { name: "rim".into(), dimension: 1, cells: vec![2] }).unwrap();
    mesh
}
