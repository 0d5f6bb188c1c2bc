// Makes padding lanes copies of their vertices again, once elements have moved those. As words, whatever numbers they are. Dispatch:
// ceil(count / 256) groups, in two dimensions past 65,535. No race: what is written is padding, what is read is not.

// Number of pairs that follow, and words from one slot to the next; then pairs of a padding slot and that of its vertex.
@group(0) @binding(0) var<storage, read> pairs: array<vec2u>;
@group(0) @binding(1) var<storage, read_write> shared_words: array<u32>;

@compute @workgroup_size(256)
fn pad(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    let i = (group.y * groups.x + group.x) * 256u + thread;
    let count = pairs[0].x;
    let stride = pairs[0].y;
    if i < count {
        let pair = pairs[i + 1u];
        for (var k = 0u; k < stride; k++) {
            shared_words[pair.x * stride + k] = shared_words[pair.y * stride + k];
        }
    }
}
