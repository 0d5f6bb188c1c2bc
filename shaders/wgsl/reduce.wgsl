// Combines 4096 consecutive values a workgroup: the leaves of a fixed tree. Dispatch: ceil(count / 4096) groups of 256, in
// two dimensions past 65,535. Reads: values. Writes: leaves, one a workgroup. No race: each invocation writes its own slot
// of workgroup memory, a barrier separates the levels, and one invocation writes the leaf. The order depends on count
// alone, so the same device gives the same bits every time.
//
// finish combines the leaves in pairs until one is left, the same tree as on the CPU, and writes the result into a global.
// Dispatch: one group. It overwrites the leaves. No race: a barrier separates the levels of the tree.
// Oracle: runtime/src/engine/reduce.rs, whose leaves add one value after the other, in 64 bits.

@group(0) @binding(0) var<uniform> reduction: Reduction;
@group(0) @binding(1) var<storage, read> values: array<Scalar>;
@group(0) @binding(2) var<storage, read_write> leaves: array<Scalar>;
@group(0) @binding(3) var<storage, read_write> status: Status;

const THREADS: u32 = 256u;
const EACH: u32 = 16u;

var<workgroup> partial: array<Scalar, THREADS>;

fn combine(a: Scalar, b: Scalar) -> Scalar {
    if reduction.how == 0u {
        return a + b;
    }
    // Spelled out: NaN never replaces a number.
    let replaces = select(a < b, b < a, reduction.how == 1u);
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
    var found = Scalar();
    if reduction.how != 0u && leaf * THREADS * EACH < reduction.count {
        found = values[leaf * THREADS * EACH];
    }
    for (var k = 0u; k < EACH; k++) {
        if first + k * THREADS < reduction.count {
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
    if thread == 0u && leaf * THREADS * EACH < reduction.count {
        leaves[leaf] = partial[0];
    }
}

@compute @workgroup_size(THREADS)
fn finish(@builtin(local_invocation_index) thread: u32) {
    let count = (reduction.count + THREADS * EACH - 1u) / (THREADS * EACH);
    for (var step = 1u; step < count; step *= 2u) {
        // Pairs of this level: leaf i takes leaf i + step, if there is one.
        for (var i = 2u * step * thread; i + step < count; i += 2u * step * THREADS) {
            leaves[i] = combine(leaves[i], leaves[i + step]);
        }
        storageBarrier();
    }
    let is_over = status.frozen != 0u || (status.done & reduction.levels) != 0u;
    if thread == 0u && !is_over {
        status.globals[reduction.into] = select(leaves[0], bitcast<Scalar>(reduction.empty), count == 0u);
    }
}
