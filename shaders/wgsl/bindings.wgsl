// What every kernel of a program is given: one bind group a chunk, the same for all kernels.
//
// Vertices lie in groups of WIDTH; the place of a vertex among all lanes is its slot. A chunk is a run of whole groups whose
// arrays fit into one binding each; shared state alone covers all slots, because neighbors read it at random.

// What one dispatch works on, and where the arrays of its chunk start. Offsets count words, or reals, of the chunk.
struct Range {
    // Slots, or tasks of the chunk: from first to before end.
    first: u32,
    end: u32,
    // The first slot of the chunk.
    slot0: u32,
    // Vertices of each group: the other lanes are clones of the last.
    counts: u32,
    // Where the tiles of each task start.
    tasks: u32,
    // Tile after tile.
    tiles: u32,
    // Which of the two lists of ready tasks is read, and the rounds of the sweep.
    parity: u32,
    rounds: u32,
    // Where the graph of tasks starts.
    graph: u32,
    // For each star: columns, degrees, names, data; then of vertices by themselves: rows, names, data, nothing.
    stars: array<vec4u, STAR_WORDS>,
}

struct Status {
    // Not zero once an update came to something that is not finite.
    spoilt: atomic<u32>,
    // Not zero from the step after that on: nothing changes any more.
    frozen: u32,
    // Steps that were begun before the state was frozen.
    steps: u32,
    // Counts every step, frozen or not: what is read back is as old as this says.
    canary: u32,
    // Tasks that were run from lists of ready ones.
    tasks: atomic<u32>,
}

@group(0) @binding(0) var<uniform> range: Range;
@group(0) @binding(1) var<uniform> raw_parameters: array<Scalar4, PARAMETER_QUADS>;
@group(0) @binding(2) var<storage, read_write> shared_state: array<Quad>;
@group(0) @binding(3) var<storage, read_write> shared_next: array<Quad>;
@group(0) @binding(4) var<storage, read_write> private_state: array<Scalar>;
@group(0) @binding(5) var<storage, read> words: array<u32>;
@group(0) @binding(6) var<storage, read> reals: array<Scalar>;
@group(0) @binding(7) var<storage, read_write> status: Status;
@group(0) @binding(8) var<storage, read_write> values: array<Scalar>;
@group(0) @binding(9) var<storage, read_write> frontier: array<atomic<u32>>;

// Where the vertex lies that is being updated.
struct Place {
    slot: u32,
    // Its group in the chunk, and its lane there.
    group: u32,
    lane: u32,
    // Its place in the table of the tile.
    here: u32,
}

fn place_of(slot: u32) -> Place {
    let local = slot - range.slot0;
    return Place(slot, local / WIDTH, local % WIDTH, 0u);
}

// The things of one star around a vertex: thing j has its names from names + j others step on, and so its data.
struct Things {
    names: u32,
    data: u32,
    step: u32,
    count: u32,
    // Whether the vertex is updated by itself: its names are slots then.
    alone: bool,
}

fn half_word(at: u32) -> u32 {
    return (words[at >> 1u] >> (16u * (at & 1u))) & 0xffffu;
}

// star: which one; others: other vertices of a thing; reals_each: reals of its data.
fn things_of(place: Place, star: u32, others: u32, reals_each: u32) -> Things {
    let arrays = range.stars[2u * star];
    let column = words[arrays.x + place.group];
    if ROWS && (column >> 31u) != 0u {
        let rows = range.stars[2u * star + 1u];
        let at = rows.x + 2u * ((column & 0x7fffffffu) + place.lane);
        let first = words[at];
        return Things(rows.y + first * others, rows.z + first * reals_each, 1u, words[at + 1u], true);
    }
    let degree = half_word(2u * arrays.y + place.group * WIDTH + place.lane);
    let names = arrays.z + column * others * WIDTH + place.lane;
    return Things(names, arrays.w + column * reals_each * WIDTH + place.lane, WIDTH, degree, false);
}

fn finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

fn workgroup_number(group: vec3u, groups: vec3u) -> u32 {
    return group.y * groups.x + group.x;
}
