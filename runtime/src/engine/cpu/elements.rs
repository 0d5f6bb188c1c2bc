//! What a thread does with a tile of elements.

use super::tile::{AHEAD, Turn, Visit};
use crate::layout::{Ell, Form, OpenEll, Tile};
use crate::number::{Lanes, Number};
use crate::program::{Corners, CornersOf, Kernels, Project, Record, SharedOf, StateOf};

/// Projects the elements of a tile. Tells whether all came out finite.
pub(in crate::engine) fn project<P: Kernels, T: Number, K: Project<P>, L: Lanes<Scalar = T>>(
    visit: &Visit<T>,
    tile: &Tile,
) -> bool {
    let (Form::Rows { stars, .. } | Form::Spread { stars }) = &tile.form else {
        unreachable!("elements name their corners by slots")
    };
    let opened = Ell::open(stars);
    match &tile.form {
        Form::Rows { .. } => project_rows::<P, T, K>(visit, tile, &opened.stars()[0]),
        _ => project_groups::<P, T, K, L>(visit, tile, &opened.stars()[0]),
    }
}

#[inline(never)]
fn project_rows<P: Kernels, T: Number, K: Project<P>>(visit: &Visit<T>, tile: &Tile, star: &OpenEll<u32, T>) -> bool {
    let (cells, vertices) = (visit.cells, visit.vertices);
    let corners = <CornersOf<P, K::Along, T> as Corners<_>>::LEN;
    let mut finite = true;
    for (i, slot) in tile.own().enumerate() {
        let slots = &star.others[i * corners..][..corners];
        visit.before(&Turn::whole(slot..slot + 1));
        vertices.begin_each(slots);
        let old = Corners::build(|k| vertices.look_shared::<SharedOf<P, T>>(slots[k] as usize));
        let ((), own) = cells.load::<(), StateOf<K::Along, T>>(slot);
        let data = Record::build(|k| star.data(i, k, 1)[0]);
        let (new, own) = K::project(&visit.given::<P>(tile, slot), old, own, data);
        let mut probe = own.probe();
        let fixed = tile.fixed_corners(i, corners, 1);
        for (k, corner) in new.as_ref().iter().enumerate() {
            probe += corner.probe();
            if fixed.is_none_or(|fixed| !fixed[k]) {
                vertices.store_one(slots[k] as usize, *corner);
            }
        }
        cells.store(slot, 0..0, (), own);
        vertices.end_each(slots);
        visit.after(&Turn::whole(slot..slot + 1));
        finite &= probe.finite();
    }
    finite
}

#[inline(never)]
fn project_groups<P: Kernels, T: Number, K: Project<P>, L: Lanes<Scalar = T>>(
    visit: &Visit<T>,
    tile: &Tile,
    star: &OpenEll<u32, T>,
) -> bool {
    let (cells, vertices, mut given) = (visit.cells, visit.vertices, visit.uniform.splat::<P, L>(visit.round));
    let (corners, reals) = (<CornersOf<P, K::Along, L> as Corners<_>>::LEN, star.shape.1);
    let own = tile.own();
    let (groups, first_group) = (own.len() / L::WIDTH, own.start / L::WIDTH);
    let mut probe = L::lit(0.0);
    for group in 0..groups {
        let first = own.start + group * L::WIDTH;
        let lanes = first..first + L::WIDTH;
        star.prefetch(group + AHEAD, L::WIDTH);
        let slots = &star.others[group * corners * L::WIDTH..][..corners * L::WIDTH];
        let of_corner = |k: usize| &slots[k * L::WIDTH..][..L::WIDTH];
        visit.before(&Turn::whole(lanes.clone()));
        slots.chunks_exact(L::WIDTH).for_each(|slots| vertices.begin_each(slots));
        let old = Corners::build(|k| vertices.take::<L, SharedOf<P, L>>(of_corner(k)));
        let state = cells.load_private::<L, StateOf<K::Along, L>>(first_group + group);
        let data = &star.data[group * reals * L::WIDTH..][..reals * L::WIDTH];
        let data = Record::build(|k| L::load(&data[k * L::WIDTH..]));
        given.visit(tile.numbers(lanes.clone()));
        let (new, state) = K::project(&given, old, state, data);
        probe += state.probe();
        let fixed = tile.fixed_corners(group, corners, L::WIDTH);
        for (k, corner) in new.as_ref().iter().enumerate() {
            probe += corner.probe();
            match fixed {
                None => vertices.put_each(of_corner(k), *corner),
                Some(fixed) => {
                    let fixed = &fixed[k * L::WIDTH..][..L::WIDTH];
                    let stays = L::from_fn(|lane| T::from_f64(f64::from(u8::from(fixed[lane]))));
                    let stays = L::lit(0.0).less(stays);
                    let corner = old.as_ref()[k].zip(*corner, &mut |old, new| L::select(stays, old, new));
                    vertices.put_each(of_corner(k), corner);
                }
            }
        }
        cells.store_private::<L, _>(first_group + group, state);
        slots.chunks_exact(L::WIDTH).for_each(|slots| vertices.end_each(slots));
        visit.after(&Turn::whole(lanes));
    }
    probe.is_zero()
}
