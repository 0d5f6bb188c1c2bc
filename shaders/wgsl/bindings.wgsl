// What every kernel of a program is given: one bind group a chunk, the same for all kernels.
//
// Vertices lie in groups of WIDTH; the place of a vertex among all lanes is its slot. A chunk is a run of whole groups whose
// arrays fit into one binding each; shared state alone covers all slots, because neighbors read it at random.

@group(0) @binding(0) var<uniform> range: Range;
@group(0) @binding(1) var<uniform> given: Given;
@group(0) @binding(2) var<storage, read_write> shared_state: array<Quad>;
@group(0) @binding(3) var<storage, read_write> shared_next: array<Quad>;
@group(0) @binding(4) var<storage, read_write> private_state: array<Scalar>;
@group(0) @binding(5) var<storage, read> words: array<u32>;
@group(0) @binding(6) var<storage, read> reals: array<Scalar>;
@group(0) @binding(7) var<storage, read_write> status: Status;
@group(0) @binding(8) var<storage, read_write> values: array<Scalar>;
@group(0) @binding(9) var<storage, read> list: array<u32>;

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

// The elements of one star around a vertex: element j has its names from names + j others step on, and so its data.
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

// star: which one; others: other vertices of an element; reals_each: reals of its data.
fn things_of(place: Place, star: u32, others: u32, reals_each: u32) -> Things {
    let arrays = range.stars[star];
    let column = words[arrays.columns + place.group];
    if ROWS && (column & ALONE) != 0u {
        let at = arrays.rows + 2u * ((column & ~ALONE) + place.lane);
        let first = words[at];
        return Things(arrays.row_names + first * others, arrays.row_data + first * reals_each, 1u, words[at + 1u], true);
    }
    let degree = half_word(2u * arrays.degrees + place.group * WIDTH + place.lane);
    let names = arrays.names + column * others * WIDTH + place.lane;
    return Things(names, arrays.data + column * reals_each * WIDTH + place.lane, WIDTH, degree, false);
}

// The number of the vertex along the curve, as a real holds an integer.
fn vertex(place: Place) -> Scalar {
    return bitcast<Scalar>(words[range.numbers + place.slot - range.slot0]);
}

fn is_fixed(place: Place) -> bool {
    return is_marked(place.slot - range.slot0);
}

// Mark number at of what is fixed.
fn is_marked(at: u32) -> bool {
    return ((words[range.fixed + (at >> 5u)] >> (at & 31u)) & 1u) != 0u;
}

fn finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

fn workgroup_number(group: vec3u, groups: vec3u) -> u32 {
    return group.y * groups.x + group.x;
}

// Whether a loop has ended that the stage lies in: its kernels then return at once.
fn is_over() -> bool {
    return given.levels != 0u && (status.done & given.levels) != 0u;
}

fn settings() -> vec4<Scalar> {
    return given.settings;
}

fn step() -> Scalar {
    return bitcast<Scalar>(given.step);
}

fn draw() -> Scalar {
    return bitcast<Scalar>(given.draw);
}
