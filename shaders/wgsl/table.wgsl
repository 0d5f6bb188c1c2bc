// Neighbors are named by 16-bit places in a table of the tile's own slots and its halo, in workgroup memory. The halo is
// written by no task that may run at the same time.

var<workgroup> table: array<Scalar, TABLE_REALS>;

fn enter_tile(tile: Tile, thread: u32) {
    if tile.wide == 0u {
        return;
    }
    for (var i = thread; i < tile.own + tile.outside; i += WALK_SIZE) {
        var slot = tile.first + i;
        if i >= tile.own {
            slot = words[tile.halo + i - tile.own];
        }
        write_table(i, read_shared(slot));
    }
    workgroupBarrier();
}

fn end_run() {
    if ROWS {
        storageBarrier();
    }
    workgroupBarrier();
}

fn read_own(place: Place) -> Shared {
    if ROWS && place.here == ALONE {
        return read_shared(place.slot);
    }
    return read_table(place.here);
}

fn write_own(place: Place, own: Shared) {
    if !DOUBLE && (!ROWS || place.here != ALONE) {
        write_table(place.here, own);
    }
    write_shared(place.slot, own);
}

fn read_other(things: Things, at: u32) -> Shared {
    if ROWS && things.alone {
        return read_shared(words[at]);
    }
    return read_table(half_word(at));
}
