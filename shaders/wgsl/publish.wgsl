// Between two waves of ready tasks: what will be ready becomes what is, and how many workgroups that takes. Dispatch: one
// group of one.

@group(0) @binding(0) var<storage, read_write> frontier: array<u32>;
@group(0) @binding(1) var<storage, read_write> groups: array<u32>;

const MOST: u32 = 65535u;

@compute @workgroup_size(1)
fn publish() {
    let count = frontier[1];
    frontier[0] = count;
    frontier[1] = 0u;
    groups[0] = min(count, MOST);
    groups[1] = (count + MOST - 1u) / MOST;
    groups[2] = 1u;
}
