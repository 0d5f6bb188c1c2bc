// Walks the ready tasks, a workgroup each, and makes the list of those that are ready after them. Dispatch: indirect, as
// many groups as publish.wgsl wrote. A task is ready in a round once its predecessors have done that round and its
// successors the one before. Never more than one wave at a time runs, and nothing spins.
//
// Words of the frontier: number of ready tasks; number of those that will be; two lists of tasks; for each task how many
// neighbors it waits for; for each task the rounds it has done. The neighbors of a task lie among the chunk's words, from
// range.graph on: first the offsets, then the neighbors.
//
// A task that ends waits for all of its neighbors: its predecessors in the next round, its successors in this one. None of
// them can have counted itself off before, because each of them waits for this task. After the last round every task has
// been counted off by its successors and waits for its predecessors, as in the beginning.

var<workgroup> chosen: u32;

@compute @workgroup_size(WALK_SIZE)
fn ready(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    let all = range.end;
    let input = 2u + range.parity * all;
    let output = 2u + (1u - range.parity) * all;
    let number = workgroup_number(group, groups);
    if thread == 0u {
        chosen = all;
        if number < atomicLoad(&frontier[0]) {
            chosen = atomicLoad(&frontier[input + number]);
        }
    }
    let task = workgroupUniformLoad(&chosen);
    if task >= all {
        return;
    }
    walk_task(task, thread);
    if thread == 0u {
        atomicAdd(&status.tasks, 1u);
        let waits = 2u + 2u * all;
        let done = waits + all;
        let rounds = atomicAdd(&frontier[done + task], 1u) + 1u;
        let neighbors = range.graph + all + 1u;
        let first = words[range.graph + task];
        let end = words[range.graph + task + 1u];
        atomicStore(&frontier[waits + task], end - first);
        if first == end && rounds < range.rounds {
            atomicStore(&frontier[output + atomicAdd(&frontier[1], 1u)], task);
        }
        for (var i = first; i < end; i++) {
            let other = words[neighbors + i];
            let left = atomicSub(&frontier[waits + other], 1u) - 1u;
            if left == 0u && atomicLoad(&frontier[done + other]) < range.rounds {
                atomicStore(&frontier[output + atomicAdd(&frontier[1], 1u)], other);
            }
        }
    }
}
