// Adds 4096 consecutive values a workgroup: one level of the fixed tree. Dispatch: ceil(count / 4096) groups of 256, in
// two dimensions past 65,535. Reads: values. Writes: sums, one a workgroup. No race: each invocation writes its own slot
// of workgroup memory, a barrier separates the levels, and one invocation writes the sum. The order of additions depends
// on count alone, so the same device gives the same bits every time.
// Oracle: the leaves of runtime/src/engine/reduce.rs, which adds one value after the other.

struct Range {
    count: u32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
@group(0) @binding(2) var<uniform> range: Range;

const THREADS: u32 = 256u;
const EACH: u32 = 16u;

var<workgroup> partial: array<f32, THREADS>;

@compute @workgroup_size(256)
fn reduce(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let leaf = group.y * groups.x + group.x;
    let first = leaf * THREADS * EACH + thread * EACH;
    var sum = 0.0;
    for (var k = 0u; k < EACH; k++) {
        if first + k < range.count {
            sum += values[first + k];
        }
    }
    partial[thread] = sum;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if thread < half {
            partial[thread] += partial[thread + half];
        }
    }
    if thread == 0u && leaf * THREADS * EACH < range.count {
        sums[leaf] = partial[0];
    }
}
