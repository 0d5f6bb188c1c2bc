// Copies quads: what the memory of a device can do. Dispatch: any number of groups of 256, which stride through all quads.
// Reads: source. Writes: target, each quad by one invocation.

@group(0) @binding(0) var<storage, read> source: array<vec4u>;
@group(0) @binding(1) var<storage, read_write> target_: array<vec4u>;

@compute @workgroup_size(256)
fn copy(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
    for (var i = id.x; i < arrayLength(&source); i += groups.x * 256u) {
        target_[i] = source[i];
    }
}
