//! Whole modules: a program's structs and update, between the kernels that walk a schedule.

use crate::LAYOUT;
use crate::layout::Tile;
use crate::record::{Record, Scalar};
use std::fmt::Write;

/// The records of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Physics {
    /// What all of them consist of.
    pub scalar: Scalar,
    /// Numbers that all vertices read.
    pub parameters: Record,
    /// Numbers that stages of a step write, and all vertices read.
    pub globals: Record,
    /// What neighbors read.
    pub shared: Record,
    /// What only the vertex reads.
    pub private: Record,
    /// Things around a vertex.
    pub stars: Vec<Star>,
}

impl Physics {
    /// What the projection of an element of a star works on, in the place of a vertex: as shared state that of all its corners, as
    /// private state its own and its data.
    pub fn of_projection(&self, star: usize) -> Physics {
        let Star { others, data, state, .. } = &self.stars[star];
        let corners = vec![&self.shared; others + 1];
        Physics {
            shared: Record::joined("Corners", &corners, self.scalar),
            private: Record::joined("Element", &[state, data], self.scalar),
            ..self.clone()
        }
    }

    /// What a projection of an element of a star comes to, from the reals of its corners and then of its state.
    pub fn moved(&self, star: usize, reals: &[String]) -> String {
        let (corners, len) = (self.of_projection(star).shared, self.shared.len() * (self.stars[star].others + 1));
        let state = self.of_elements(star).private.build(|k| reals[len + k].clone());
        format!("Moved({}, {state})", corners.build(|k| reals[k].clone()))
    }

    /// What elements of a star are where they lie as vertices do: each with one thing around it, itself.
    fn of_elements(&self, star: usize) -> Physics {
        let Star { name, others, data, state } = self.stars[star].clone();
        let private = Record::joined("Private", &[&state], self.scalar);
        let itself = Star { name, others: others + 1, data, state: Record::new("Nothing", &[], self.scalar) };
        Physics { private, stars: vec![itself], ..self.clone() }
    }

    /// The structs of all records that a kernel sees, and of what it comes to.
    pub fn declarations_for(&self, body: &Body) -> String {
        let Some(star) = body.star() else { return self.declarations() };
        let Physics { shared: corners, private: element, .. } = self.of_projection(star);
        let moved = "struct Moved {\n    own: Corners,\n    body: Private,\n}\n";
        self.of_elements(star).declarations() + &corners.declaration() + &element.declaration() + moved
    }

    /// The structs of all records, and of a vertex's new state.
    fn declarations(&self) -> String {
        let records = [&self.parameters, &self.globals, &self.shared, &self.private].into_iter();
        let mut text: String =
            records.chain(self.stars.iter().map(|star| &star.data)).map(Record::declaration).collect();
        text += "struct New {\n    own: Shared,\n    body: Private,\n}\n";
        text
    }
}

/// One kind of things around a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Star {
    /// Its name in the program.
    pub name: String,
    /// Other vertices of a thing.
    pub others: usize,
    /// Data of a thing.
    pub data: Record,
    /// State of a thing, if it is projected.
    pub state: Record,
}

/// How vertices lie, and how many are updated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Harness {
    /// Vertices of a group: a power of two.
    pub width: u32,
    /// Whether some vertices are updated by themselves, from rows.
    pub rows: bool,
    /// Whether some vertices keep their state.
    pub fixed: bool,
    /// Slots of the largest tile and its halo, if neighbors are read from a table in workgroup memory.
    pub table: Option<u32>,
    /// Invocations of a workgroup that visits a phase.
    pub phase_size: u32,
    /// Invocations of a workgroup that walks a task.
    pub walk_size: u32,
}

/// What a vertex is visited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// The function `update` or `measure`.
    function: String,
    result: Visit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Visit {
    /// A new state: whether shared state changes, and which private reals do.
    Update { shared: bool, private: Vec<bool> },
    /// A number. In a sum, padding lanes do not count.
    Measure { is_sum: bool },
    /// The new state of an element of a star and of its corners: which of those change.
    Project { star: usize, corners: Vec<bool> },
    /// New globals, once.
    Scalar,
    /// A truth value, once.
    Test,
}

impl Body {
    /// An update, from the statements of its function.
    pub fn update(statements: String, shared: bool, private: Vec<bool>) -> Body {
        let function = format!("fn update(place: Place, own: Shared, body: Private) -> New {{\n{statements}}}\n");
        Body { function, result: Visit::Update { shared, private } }
    }

    /// A measure, from the statements of its function. `is_sum`: whether values are added up.
    pub fn measure(statements: String, is_sum: bool) -> Body {
        let function = format!("fn measure(place: Place, own: Shared, body: Private) -> Scalar {{\n{statements}}}\n");
        Body { function, result: Visit::Measure { is_sum } }
    }

    /// The projection of an element of a star, from the statements of its function. `corners`: which of them change.
    pub fn project(statements: String, star: usize, corners: Vec<bool>) -> Body {
        let function = format!("fn project(place: Place, own: Corners, body: Element) -> Moved {{\n{statements}}}\n");
        Body { function, result: Visit::Project { star, corners } }
    }

    /// New globals, from the statements of their function.
    pub fn scalar(statements: String) -> Body {
        Body { function: format!("fn compute() -> Globals {{\n{statements}}}\n"), result: Visit::Scalar }
    }

    /// A test, from the statements of its function.
    pub fn test(statements: String) -> Body {
        Body { function: format!("fn test() -> bool {{\n{statements}}}\n"), result: Visit::Test }
    }

    /// The star whose elements it projects, if it does.
    fn star(&self) -> Option<usize> {
        match self.result {
            Visit::Project { star, .. } => Some(star),
            _ => None,
        }
    }

    /// The function, without what surrounds it.
    pub fn function(&self) -> &str {
        &self.function
    }
}

/// How vertices are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// An invocation a slot.
    Phase,
    /// A workgroup a task.
    Tasks,
    /// One invocation for the whole mesh: new globals, or a test.
    Once,
}

impl Entry {
    /// The name of the entry point.
    pub fn name(self) -> &'static str {
        match self {
            Entry::Phase => "phase",
            Entry::Tasks => "tasks",
            Entry::Once => "once",
        }
    }
}

/// The module that visits vertices with `body`. `double`: neighbors are read from another array than is written.
pub fn module(physics: &Physics, harness: &Harness, body: &Body, entry: Entry, double: bool) -> String {
    let table = harness.table.filter(|_| entry == Entry::Tasks);
    let mut text = String::new();
    let elements = body.star().map(|star| physics.of_elements(star));
    let declarations = physics.declarations_for(body);
    let (all, physics) = (physics, elements.as_ref().unwrap_or(physics));
    constants(&mut text, physics, harness, table, double);
    text += LAYOUT;
    text += &declarations;
    text.push('\n');
    text += &body.function;
    text.push('\n');
    text += &functions(&body.function);
    text += include_str!("../wgsl/bindings.wgsl");
    inputs(&mut text, physics);
    if entry == Entry::Once {
        once(&mut text, physics, body);
        return text;
    }
    match &body.result {
        Visit::Project { star, corners } => visit_element(&mut text, physics, &all.of_projection(*star), corners),
        _ => visit(&mut text, physics, body),
    }
    accessors(&mut text, physics, double);
    if let Some(capacity) = table {
        let real = |k: usize| format!("table[{}u + i]", k * capacity as usize);
        let build = physics.shared.build(real);
        let writes: String = (0..physics.shared.len())
            .map(|k| format!("    {} = {};\n", real(k), physics.shared.real("own", k)))
            .collect();
        let _ = write!(text, "fn read_table(i: u32) -> Shared {{\n    return {build};\n}}\n");
        let _ = write!(text, "fn write_table(i: u32, own: Shared) {{\n{writes}}}\n");
        text += include_str!("../wgsl/table.wgsl");
    } else {
        text += include_str!("../wgsl/slots.wgsl");
        if entry == Entry::Tasks {
            text += include_str!("../wgsl/untabled.wgsl");
        }
    }
    if entry == Entry::Tasks {
        text += include_str!("../wgsl/walk.wgsl");
        text += include_str!("../wgsl/tasks.wgsl");
    } else {
        text += include_str!("../wgsl/phase.wgsl");
    }
    text
}

/// Functions that `body` names and WGSL has not, or not exact to a few roundings: `ln_exact`, `pow_exact` and such.
///
/// They are the paragraphs of `math.wgsl` that declare a word which the body, or a later paragraph that is taken, has.
///
/// ```
/// let text = meshweft_shaders::functions("tanh_exact(x)");
/// assert!(text.contains("fn tanh_exact(") && text.contains("fn exp_exact(") && !text.contains("fn sin_exact("));
/// ```
pub fn functions(body: &str) -> String {
    let mut taken = Vec::new();
    for paragraph in include_str!("../wgsl/math.wgsl").split("\n\n").collect::<Vec<_>>().into_iter().rev() {
        let declared = paragraph.lines().filter_map(|line| {
            let rest = ["fn ", "struct ", "const "].iter().find_map(|word| line.strip_prefix(word))?;
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
        });
        let is_named = |name: &str| std::iter::once(&body).chain(&taken).any(|text| text.contains(name));
        if declared.into_iter().any(is_named) {
            taken.push(paragraph);
        }
    }
    taken.into_iter().rev().flat_map(|paragraph| [paragraph, "\n\n"]).collect()
}

/// Reals from one vertex's shared state to the next: three and more take a multiple of four.
fn stride(len: usize) -> usize {
    if len <= 2 { len } else { len.next_multiple_of(4) }
}

fn constants(text: &mut String, physics: &Physics, harness: &Harness, table: Option<u32>, double: bool) {
    let one = physics.scalar.word(1);
    let quad = physics.scalar.word(stride(physics.shared.len()).clamp(1, 4));
    let quads = physics.parameters.len().div_ceil(4).max(1);
    let table_reals = table.map_or(1, |slots| slots as usize * physics.shared.len().max(1));
    let _ = write!(
        text,
        "alias Quad = {quad};\n\
         alias Scalar = {one};\n\
         const WIDTH: u32 = {}u;\n\
         const ROWS: bool = {};\n\
         const DOUBLE: bool = {double};\n\
         const FIXED: bool = {};\n\
         const PHASE_SIZE: u32 = {}u;\n\
         const WALK_SIZE: u32 = {}u;\n\
         const TABLE_REALS: u32 = {table_reals}u;\n\
         const PARAMETER_QUADS: u32 = {quads}u;\n\
         const STARS: u32 = {}u;\n\
         const TILE_WORDS: u32 = {}u;\n\n",
        harness.width,
        harness.rows,
        harness.fixed,
        harness.phase_size,
        harness.walk_size,
        physics.stars.len().max(1),
        Tile::WORDS
    );
}

/// The function that visits one vertex.
fn visit(text: &mut String, physics: &Physics, body: &Body) {
    *text += "fn visit(place: Place) {\n    let own = read_own(place);\n    let body = read_private(place);\n";
    match &body.result {
        Visit::Project { .. } | Visit::Scalar | Visit::Test => {}
        Visit::Measure { is_sum: false } => *text += "    values[place.slot] = measure(place, own, body);\n",
        Visit::Measure { is_sum: true } => {
            *text += "    // The last lanes of a group may be padding, copies of its last vertex: it counts once.\n";
            *text += "    let is_padding = place.lane >= words[range.counts + place.group];\n";
            *text += "    values[place.slot] = select(measure(place, own, body), Scalar(), is_padding);\n";
        }
        Visit::Update { shared, private } => {
            *text += "    if FIXED && is_fixed(place) {\n        if DOUBLE {\n            write_own(place, own);\n        }\n";
            *text += "        return;\n    }\n";
            *text += "    var next = update(place, own, body);\n";
            let kept = (0..physics.private.len()).filter(|&k| private[k]);
            let shown = (0..physics.shared.len()).filter(|_| *shared);
            look(
                text,
                physics.scalar,
                &[floats(&physics.shared, "next.own", shown), floats(&physics.private, "next.body", kept.clone())],
            );
            *text += "    if status.frozen != 0u {\n        next = New(own, body);\n    }\n";
            if private.iter().any(|&changes| changes) {
                *text += "    let at = private_at(place);\n";
            }
            for k in kept {
                let _ =
                    writeln!(text, "    private_state[at + {k}u * WIDTH] = {};", physics.private.real("next.body", k));
            }
            if *shared {
                *text += "    write_own(place, next.own);\n";
            } else {
                // Double-buffered, what does not change must still be passed on.
                *text += "    if DOUBLE {\n        write_own(place, own);\n    }\n";
            }
        }
    }
    *text += "}\n\n";
}

/// Some reals of a record that are no integers.
fn floats(record: &Record, name: &str, reals: impl Iterator<Item = usize>) -> Vec<String> {
    reals.filter(|&k| !record.is_integer(k)).map(|k| record.real(name, k)).collect()
}

/// Looks whether floats that change are finite.
fn look(text: &mut String, scalar: Scalar, changed: &[Vec<String>]) {
    let all: Vec<String> = changed.iter().flatten().map(|real| format!("finite({real})")).collect();
    if !all.is_empty() && scalar == Scalar::F32 {
        let _ = writeln!(text, "    if !({}) {{", all.join(" && "));
        *text += "        atomicOr(&status.non_finite, 1u);\n    }\n";
    }
}

/// The function that visits one element. `elements`: as they lie; `corners`: which of them change.
fn visit_element(text: &mut String, elements: &Physics, projection: &Physics, corners: &[bool]) {
    let (len, state, count) = (elements.shared.len(), elements.private.len(), corners.len());
    *text +=
        "fn visit(place: Place) {\n    // A padding lane is a copy of an element: it would move the same corners.\n";
    *text +=
        "    if status.frozen != 0u || place.lane >= words[range.counts + place.group] {\n        return;\n    }\n";
    *text +=
        "    let itself = things_0(place);\n    let data = data_0(itself, 0u);\n    let state = read_private(place);\n";
    for corner in 0..count {
        let _ = writeln!(text, "    let corner{corner} = other_0(itself, 0u, {corner}u);");
    }
    let own = projection.shared.build(|k| elements.shared.real(&format!("corner{}", k / len), k % len));
    let body = projection.private.build(|k| match k.checked_sub(state) {
        None => elements.private.real("state", k),
        Some(k) => elements.stars[0].data.real("data", k),
    });
    let _ = writeln!(text, "    let next = project(place, {own}, {body});");
    let moved = (0..count * len).filter(|k| corners[k / len]);
    look(
        text,
        elements.scalar,
        &[floats(&projection.shared, "next.own", moved), floats(&elements.private, "next.body", 0..state)],
    );
    *text += "    let at = private_at(place);\n";
    for k in 0..state {
        let _ = writeln!(text, "    private_state[at + {k}u * WIDTH] = {};", elements.private.real("next.body", k));
    }
    for corner in (0..count).filter(|&corner| corners[corner]) {
        let new = elements.shared.build(|k| projection.shared.real("next.own", corner * len + k));
        let _ = write!(
            text,
            "    if !FIXED || !is_marked((place.group * {count}u + {corner}u) * WIDTH + place.lane) {{\n        \
             write_shared(words[itself.names + {corner}u * WIDTH], {new});\n    }}\n"
        );
    }
    *text += "}\n\n";
}

/// The kernel of one invocation that computes new globals, or tests them.
fn once(text: &mut String, physics: &Physics, body: &Body) {
    // There is no vertex here: as on the CPU, one that asks for its number is told 0.
    let text_of = match &body.result {
        Visit::Test => "    let level = countOneBits(given.levels);\n    let bit = 1u << level;\n    \
             if given.begins != 0u {\n        status.done &= ~bit;\n        status.iterations[level] = 0u;\n    }\n    \
             if (status.done & bit) != 0u {\n        return;\n    }\n    \
             if test() {\n        status.done |= bit;\n    } else {\n        status.iterations[level] += 1u;\n    }\n"
            .to_string(),
        _ => {
            let write = |k: usize| format!("    status.globals[{k}] = {};\n", physics.globals.real("new_globals", k));
            let writes: String = (0..physics.globals.len()).map(write).collect();
            format!("    let new_globals = compute();\n{writes}")
        }
    };
    let _ = write!(
        text,
        "const place = Place();\n\n@compute @workgroup_size(1)\nfn once() {{\n    \
         if status.frozen != 0u || is_over() {{\n        return;\n    }}\n{text_of}}}\n"
    );
}

/// Functions that read parameters and globals.
fn inputs(text: &mut String, physics: &Physics) {
    let parameter = |k: usize| format!("given.parameters[{}].{}", k / 4, ["x", "y", "z", "w"][k % 4]);
    let _ = write!(
        text,
        "\nfn parameters() -> Parameters {{\n    return {};\n}}\n\
         fn globals() -> Globals {{\n    return {};\n}}\n\n",
        physics.parameters.build(parameter),
        physics.globals.build(|k| format!("status.globals[{k}]")),
    );
}

/// Functions that read and write state and stars.
fn accessors(text: &mut String, physics: &Physics, double: bool) {
    let len = physics.shared.len();
    let quads = stride(len) / 4;
    let quad_real = |k: usize| match stride(len) {
        1 => "q0".to_string(),
        2 => format!("q0.{}", ["x", "y"][k]),
        _ => format!("q{}.{}", k / 4, ["x", "y", "z", "w"][k % 4]),
    };
    let target = if double { "shared_next" } else { "shared_state" };
    let reads: String = match quads {
        0 if len == 0 => String::new(),
        0 => "    let q0 = shared_state[slot];\n".into(),
        _ => (0..quads).map(|q| format!("    let q{q} = shared_state[{quads}u * slot + {q}u];\n")).collect(),
    };
    let own = |k: usize| if k < len { physics.shared.real("own", k) } else { "Scalar()".into() };
    let writes: String = match (len, quads) {
        (0, _) => String::new(),
        (1, _) => format!("    {target}[slot] = {};\n", own(0)),
        (2, _) => format!("    {target}[slot] = Quad({}, {});\n", own(0), own(1)),
        _ => (0..quads)
            .map(|q| {
                let reals: Vec<String> = (4 * q..4 * q + 4).map(own).collect();
                format!("    {target}[{quads}u * slot + {q}u] = Quad({});\n", reals.join(", "))
            })
            .collect(),
    };
    let private_len = physics.private.len();
    let _ = write!(
        text,
        "\nfn read_shared(slot: u32) -> Shared {{\n{reads}    return {};\n}}\n\
         fn write_shared(slot: u32, own: Shared) {{\n{writes}}}\n\
         fn private_at(place: Place) -> u32 {{\n    return place.group * {private_len}u * WIDTH + place.lane;\n}}\n\
         fn read_private(place: Place) -> Private {{\n    let at = private_at(place);\n    return {};\n}}\n",
        physics.shared.build(quad_real),
        physics.private.build(|k| format!("private_state[at + {k}u * WIDTH]")),
    );
    for (s, star) in physics.stars.iter().enumerate() {
        let (others, reals) = (star.others, star.data.len());
        let data = star.data.build(|k| format!("reals[at + {k}u * things.step]"));
        let record = &star.data.name;
        let _ = write!(
            text,
            "\n// {}\n\
             fn things_{s}(place: Place) -> Things {{\n    return things_of(place, {s}u, {others}u, {reals}u);\n}}\n\
             fn other_{s}(things: Things, j: u32, i: u32) -> Shared {{\n    \
             return read_other(things, things.names + (j * {others}u + i) * things.step);\n}}\n\
             fn data_{s}(things: Things, j: u32) -> {record} {{\n    \
             let at = things.data + j * {reals}u * things.step;\n    return {data};\n}}\n",
            star.name
        );
    }
    text.push('\n');
}
