// Begins a step: if the last one came to something that is not finite, nothing changes from here on. Dispatch: one group of
// one.

@group(0) @binding(0) var<storage, read_write> status: Status;

@compute @workgroup_size(1)
fn tick() {
    if atomicLoad(&status.non_finite) != 0u {
        status.frozen = 1u;
    }
    if status.frozen == 0u {
        status.steps += 1u;
    }
    status.canary += 1u;
}
