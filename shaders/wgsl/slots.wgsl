// Neighbors are named by slot and read where they lie.

fn read_own(place: Place) -> Shared {
    return read_shared(place.slot);
}

fn write_own(place: Place, own: Shared) {
    write_shared(place.slot, own);
}

fn read_other(things: Things, at: u32) -> Shared {
    return read_shared(words[at]);
}
