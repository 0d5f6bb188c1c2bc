// Walks tasks, a workgroup each: tile after tile, in a tile run after run. The vertices of a run are updated together, a
// barrier separates runs. Tasks of one dispatch have no neighbors in common that are written, so no workgroup waits for
// another.
// Oracle: runtime/src/engine/serial.rs.

const TILE_WORDS: u32 = 8u;

struct Tile {
    // Its slots.
    first: u32,
    own: u32,
    // Slots that it reads outside: where their list starts, and how many.
    halo: u32,
    outside: u32,
    // Where the list of the first slots of its runs starts, and how many there are.
    runs: u32,
    run_count: u32,
    // Whether it has a table.
    wide: u32,
}

fn walk_task(task: u32, thread: u32) {
    let last = words[range.tasks + task + 1u];
    for (var number = words[range.tasks + task]; number < last; number++) {
        let at = range.tiles + number * TILE_WORDS;
        let tile = Tile(
            words[at], words[at + 1u], words[at + 2u], words[at + 3u], words[at + 4u], words[at + 5u], words[at + 6u]
        );
        enter_tile(tile, thread);
        if DOUBLE {
            // All read what nobody writes: there is nothing to wait for.
            visit_run(tile, tile.first, words[tile.runs + tile.run_count], thread);
        } else {
            for (var run = 0u; run < tile.run_count; run++) {
                visit_run(tile, words[tile.runs + run], words[tile.runs + run + 1u], thread);
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
