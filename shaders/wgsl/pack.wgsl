// Copies the shared state of some slots into a row, or back: boundary values that go to another host, or come from one. As words,
// whatever numbers they are: a float may lose the bits of a NaN. Dispatch: ceil(count / 256) groups, in two dimensions past
// 65,535. pack writes one place of the row an invocation; unpack one slot, and the list names none twice.

struct List {
    // Number of slots in the list, and words from one slot to the next.
    count: u32,
    stride: u32,
}

@group(0) @binding(0) var<uniform> list: List;
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<storage, read_write> shared_words: array<u32>;
@group(0) @binding(3) var<storage, read_write> row: array<u32>;

fn number(group: vec3u, groups: vec3u, thread: u32) -> u32 {
    return (group.y * groups.x + group.x) * 256u + thread;
}

@compute @workgroup_size(256)
fn pack(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    let i = number(group, groups, thread);
    if i < list.count {
        for (var k = 0u; k < list.stride; k++) {
            row[i * list.stride + k] = shared_words[slots[i] * list.stride + k];
        }
    }
}

@compute @workgroup_size(256)
fn unpack(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    let i = number(group, groups, thread);
    if i < list.count {
        for (var k = 0u; k < list.stride; k++) {
            shared_words[slots[i] * list.stride + k] = row[i * list.stride + k];
        }
    }
}
