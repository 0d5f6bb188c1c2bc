// Walks tasks, a workgroup each: tile after tile, in a tile run after run; backward the other way round. The vertices of a run
// are updated together, a barrier separates runs. Tasks of one dispatch are no neighbors, so no workgroup waits for another.
// Oracle: runtime/src/engine/serial.rs.

fn tile_at(number: u32) -> Tile {
    let at = range.tiles + number * TILE_WORDS;
    return Tile(
        words[at], words[at + 1u], words[at + 2u], words[at + 3u], words[at + 4u], words[at + 5u], words[at + 6u], 0u
    );
}

// Number i of count, counted from the other end if the sweep goes backward.
fn from_end(i: u32, count: u32) -> u32 {
    return select(i, count - 1u - i, range.backward != 0u);
}

fn walk_task(task: u32, thread: u32) {
    let first = words[range.tasks + task];
    let count = words[range.tasks + task + 1u] - first;
    for (var i = 0u; i < count; i++) {
        let tile = tile_at(first + from_end(i, count));
        enter_tile(tile, thread);
        if DOUBLE {
            // All read what nobody writes: there is nothing to wait for.
            visit_run(tile, tile.first, words[tile.runs + tile.run_count], thread);
        } else {
            for (var j = 0u; j < tile.run_count; j++) {
                let run = tile.runs + from_end(j, tile.run_count);
                visit_run(tile, words[run], words[run + 1u], thread);
                end_run();
            }
        }
        // The next tile fills the same table, and reads what this one wrote.
        workgroupBarrier();
        storageBarrier();
    }
}

fn visit_run(tile: Tile, first: u32, end: u32, thread: u32) {
    for (var slot = first + thread; slot < end; slot += WALK_SIZE) {
        var place = place_of(slot);
        place.here = select(ALONE, slot - tile.first, tile.wide != 0u);
        visit(place);
    }
}
