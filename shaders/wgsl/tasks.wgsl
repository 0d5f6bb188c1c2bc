// Walks the tasks from first to before end, or those that the list names there, a workgroup each. Dispatch: end - first groups,
// in two dimensions past 65,535.

var<workgroup> is_over_here: u32;

@compute @workgroup_size(WALK_SIZE)
fn tasks(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    if given.levels != 0u {
        // Barriers follow: all invocations must decide alike.
        if thread == 0u {
            is_over_here = status.done & given.levels;
        }
        if workgroupUniformLoad(&is_over_here) != 0u {
            return;
        }
    }
    let at = range.first + workgroup_number(group, groups);
    if at < range.end {
        var task = at;
        if range.listed != 0u {
            task = list[at];
        }
        walk_task(task, thread);
    }
}
