//! Structs of a shader, after the records of a program.

use naga::keywords::wgsl::RESERVED;

/// What a real is in WGSL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// A float of 32 bits.
    F32,
    /// An integer of 32 bits that wraps around.
    I32,
}

impl Scalar {
    /// The type of `reals` of them: a scalar, a vector or an array.
    pub fn word(self, reals: usize) -> String {
        let (one, letter) = match self {
            Scalar::F32 => ("f32", "f"),
            Scalar::I32 => ("i32", "i"),
        };
        match reals {
            1 => one.into(),
            2..=4 => format!("vec{reals}{letter}"),
            _ => format!("array<{one}, {reals}>"),
        }
    }
}

/// A struct of numbers: its name in WGSL and its members.
///
/// ```
/// use meshweft_shaders::{Record, Scalar};
/// let record = Record::new("Private", &[("position".into(), 3), ("target.mass".into(), 1)], Scalar::F32);
/// assert_eq!(record.real("body", 1), "body.position.y");
/// assert_eq!(record.real("body", 3), "body.target_mass");
/// assert_eq!(record.build(|k| format!("x{k}")), "Private(vec3f(x0, x1, x2), x3)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Name and number of reals of each member; a struct has at least one.
    members: Vec<(String, usize)>,
    /// Number of reals.
    len: usize,
    scalar: Scalar,
    /// Which reals are the bits of integers; empty if none.
    integers: Vec<bool>,
}

impl Record {
    /// A struct with a member for each part: a float, a vector of 2 to 4, or an array.
    pub fn new(name: &str, parts: &[(String, usize)], scalar: Scalar) -> Record {
        let mut members: Vec<(String, usize)> = Vec::new();
        for (part, reals) in parts.iter().filter(|(_, reals)| *reals > 0) {
            let base = identifier(part);
            let taken = |name: &str| members.iter().any(|(other, _)| other == name);
            let free = (1..).map(|i| if i == 1 { base.clone() } else { format!("{base}_{i}") });
            let name = free.into_iter().find(|name| !taken(name)).expect("numbers do not end");
            members.push((name, *reals));
        }
        let len = members.iter().map(|(_, reals)| reals).sum();
        Record { name: name.into(), members, len, scalar, integers: Vec::new() }
    }

    /// The same struct, some of whose floats hold the bits of integers: `bitcast<i32>` gives them.
    pub fn with_integers(self, integers: Vec<bool>) -> Record {
        Record { integers, ..self }
    }

    /// A struct with the members of several, one after the other.
    pub(crate) fn joined(name: &str, records: &[&Record], scalar: Scalar) -> Record {
        let members: Vec<_> = records.iter().flat_map(|record| record.members.iter().cloned()).collect();
        let integers = records.iter().flat_map(|record| (0..record.len).map(|k| record.is_integer(k)));
        Record::new(name, &members, scalar).with_integers(integers.collect())
    }

    /// Whether real `k` holds the bits of an integer. They may look like those of a NaN.
    pub fn is_integer(&self, k: usize) -> bool {
        self.integers.get(k).is_some_and(|&is_integer| is_integer)
    }

    /// Number of reals.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Real `k` of the value called `of`.
    ///
    /// # Panics
    /// If it has fewer reals.
    pub fn real(&self, of: &str, k: usize) -> String {
        let mut first = 0;
        for (name, reals) in &self.members {
            if k < first + reals {
                return match reals {
                    1 => format!("{of}.{name}"),
                    2..=4 => format!("{of}.{name}.{}", ["x", "y", "z", "w"][k - first]),
                    _ => format!("{of}.{name}[{}]", k - first),
                };
            }
            first += reals;
        }
        panic!("{} has {} reals, not {k}", self.name, self.len)
    }

    /// The expression that puts one together; `leaf(k)` is that of real `k`.
    pub fn build(&self, mut leaf: impl FnMut(usize) -> String) -> String {
        let mut first = 0;
        let mut members = Vec::new();
        for (_, reals) in &self.members {
            let leaves: Vec<String> = (first..first + reals).map(&mut leaf).collect();
            first += reals;
            members.push(match reals {
                1 => leaves[0].clone(),
                _ => format!("{}({})", self.scalar.word(*reals), leaves.join(", ")),
            });
        }
        if members.is_empty() {
            members.push("0u".into());
        }
        format!("{}({})", self.name, members.join(", "))
    }

    /// The declaration.
    pub fn declaration(&self) -> String {
        let mut text = format!("struct {} {{\n", self.name);
        for (name, reals) in &self.members {
            let kind = self.scalar.word(*reals);
            text += &format!("    {name}: {kind},\n");
        }
        if self.members.is_empty() {
            text += "    nothing: u32,\n";
        }
        text + "}\n"
    }
}

/// A name that WGSL takes, as close to `name` as can be: dots become underscores, words of the language get one more.
///
/// ```
/// use meshweft_shaders::identifier;
/// assert_eq!(["spin.x", "target", "0", "_1", "φ"].map(identifier), ["spin_x", "target_", "r0", "r1", "r"]);
/// ```
pub fn identifier(name: &str) -> String {
    let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut word = word.trim_start_matches('_').to_string();
    if word.starts_with(|c: char| c.is_ascii_digit()) || word.is_empty() {
        word.insert(0, 'r');
    }
    // Words of ours, so that a member never hides what a shader says.
    let ours = ["value", "place", "own", "body", "p"];
    match RESERVED.contains(&&word[..]) || ours.contains(&&word[..]) {
        true => word + "_",
        false => word,
    }
}
