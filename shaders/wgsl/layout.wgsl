// What the host writes and kernels read, and what comes back. Every module begins with it; shaders/src/layout.rs is its twin
// on the host, and a test there compares both, field by field.

// The mark of a column of high-degree vertices, and of a vertex that lies in no table.
const ALONE: u32 = 0x80000000u;

// Where the arrays of one star lie in a chunk.
struct Star {
    // Of groups of vertices side by side: the first column of each, the degrees of their slots, names and data.
    columns: u32,
    degrees: u32,
    names: u32,
    data: u32,
    // Of high-degree vertices: pairs of first element and number of elements, names, data.
    rows: u32,
    row_names: u32,
    row_data: u32,
    unused: u32,
}

// What one dispatch works on, and where the arrays of its chunk start. Offsets count words, or reals, of the chunk.
struct Range {
    // Slots, tasks of the chunk, or entries of the list of tasks: from first to before end.
    first: u32,
    end: u32,
    // Whether tasks are taken from the list, and whether each is walked from its end to its start.
    listed: u32,
    backward: u32,
    // The first slot of the chunk.
    slot0: u32,
    // Vertices of each group: the other lanes are padding, copies of the last.
    counts: u32,
    // Where the tiles of each task start.
    tasks: u32,
    // Tile after tile.
    tiles: u32,
    // The number of the vertex in each slot, if some kernel asks for it.
    numbers: u32,
    // A bit for each slot: whether its vertex keeps its state; if some vertex does.
    fixed: u32,
    @align(16) stars: array<Star, STARS>,
}

// What one stage is given.
struct Given {
    // Steps taken before this one, modulo 2^32.
    step: u32,
    // A bit for each loop that the stage lies in.
    levels: u32,
    // Of a test: whether its loop begins here.
    begins: u32,
    // What random numbers are drawn by: it tells stages and rounds apart.
    draw: u32,
    settings: vec4<Scalar>,
    parameters: array<vec4<Scalar>, PARAMETER_QUADS>,
}

struct Tile {
    // Its slots.
    first: u32,
    own: u32,
    // Slots that it reads outside: where their list starts, and how many.
    halo: u32,
    outside: u32,
    // Where the list of the first slots of its runs starts, and how many there are.
    runs: u32,
    run_count: u32,
    // Whether its vertices are updated side by side, from a table.
    wide: u32,
    unused: u32,
}

struct Status {
    // Not zero once an update came to something that is not finite.
    non_finite: atomic<u32>,
    // Not zero from the step after that on: nothing changes any more.
    frozen: u32,
    // Steps that were begun before the state was frozen.
    steps: u32,
    // Counts every step, frozen or not: what is read back is as old as this says.
    canary: u32,
    // A bit for each loop that has ended, and how often each went round.
    done: u32,
    iterations: array<u32, 4>,
    globals: array<Scalar>,
}

// What a reduction combines.
struct Reduction {
    // Number of values.
    count: u32,
    // 0 a sum, 1 the smallest, 2 the largest.
    how: u32,
    // The global that takes the result.
    into: u32,
    // As of `Given`.
    levels: u32,
    // The bits of what it comes to without values.
    empty: u32,
}

