// Tiles without a table: what a run wrote is seen by the next one, because both are of one workgroup.

fn enter_tile(tile: Tile, thread: u32) {
}

fn end_run() {
    storageBarrier();
}
