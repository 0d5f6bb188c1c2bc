// Walks the tasks from first to before end, a workgroup each. Dispatch: end - first groups, in two dimensions past 65,535.

@compute @workgroup_size(WALK_SIZE)
fn tasks(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    let task = range.first + workgroup_number(group, groups);
    if task < range.end {
        walk_task(task, thread);
    }
}
