// Visits the slots of a phase, an invocation each. Dispatch: as many groups of PHASE_SIZE as hold end - first slots, in two
// dimensions past 65,535. No race: no two vertices of a phase are neighbors, or neighbors are read from another array than
// is written.
// Oracle: runtime/src/engine/serial.rs.

@compute @workgroup_size(PHASE_SIZE)
fn phase(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) thread: u32,
) {
    if is_over() {
        return;
    }
    let slot = range.first + workgroup_number(group, groups) * PHASE_SIZE + thread;
    if slot < range.end {
        visit(place_of(slot));
    }
}
