// Combines 4096 consecutive values a workgroup: the leaves of a fixed tree. Dispatch: ceil(count / 4096) groups of 256, in
// two dimensions past 65,535. Reads: values. Writes: leaves, one a workgroup. No race: each invocation writes its own slot
// of workgroup memory, a barrier separates the levels, and one invocation writes the leaf. The order depends on count
// alone, so the same device gives the same bits every time.
// Oracle: runtime/src/engine/reduce.rs, whose leaves add one value after the other, in 64 bits.

struct Range {
    count: u32,
    // 0 a sum, 1 the smallest, 2 the largest.
    how: u32,
}

@group(0) @binding(0) var<uniform> range: Range;
@group(0) @binding(1) var<storage, read> values: array<f32>;
@group(0) @binding(2) var<storage, read_write> leaves: array<f32>;

const THREADS: u32 = 256u;
const EACH: u32 = 16u;

var<workgroup> partial: array<f32, THREADS>;

fn combine(a: f32, b: f32) -> f32 {
    if range.how == 0u {
        return a + b;
    }
    // Spelled out: what is no number never replaces one that is.
    let replaces = select(a < b, b < a, range.how == 1u);
    return select(a, b, replaces);
}

@compute @workgroup_size(THREADS)
fn reduce(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    let leaf = group.y * groups.x + group.x;
    let first = leaf * THREADS * EACH + thread;
    // The identity of all three: the first value there is, or nothing to add.
    var found = 0.0;
    if range.how != 0u && leaf * THREADS * EACH < range.count {
        found = values[leaf * THREADS * EACH];
    }
    for (var k = 0u; k < EACH; k++) {
        if first + k * THREADS < range.count {
            found = combine(found, values[first + k * THREADS]);
        }
    }
    partial[thread] = found;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if thread < half {
            partial[thread] = combine(partial[thread], partial[thread + half]);
        }
    }
    if thread == 0u && leaf * THREADS * EACH < range.count {
        leaves[leaf] = partial[0];
    }
}
