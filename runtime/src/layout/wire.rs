//! A share of a mesh as bytes: how it gets from the host that planned the run to the one that walks it.
//!
//! Little-endian arrays, each behind its length, read in pieces: what is claimed never decides what is allocated. What was read is
//! checked before anybody walks it (`sound.rs`).

use super::changing::Changing;
use super::data::Data;
use super::domain::{Domain, Link, Share};
use super::ell::Ell;
use super::sound::cuts;
use super::tile::{Form, Tile};
use super::{PACKED, Shape, State, View, shared_stride};
use crate::error::{Error, Result};
use crate::number::{Number, Precision, with_number};
use crate::program::StarShape;
use bytemuck::{Pod, Zeroable};
use meshweft_mesh::Graph;
use meshweft_schedule::{Key, Order};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Range;
use std::sync::Arc;

#[cfg(target_endian = "big")]
compile_error!("shares travel in the byte order of their hosts, which is little-endian");

/// Writes values behind their number.
///
/// # Errors
/// Those of `out`.
pub(crate) fn put<A: Pod>(out: &mut dyn Write, values: &[A]) -> std::io::Result<()> {
    out.write_all(&(values.len() as u64).to_le_bytes())?;
    out.write_all(bytemuck::cast_slice(values))
}

/// Reads what [`put`] wrote.
///
/// # Errors
/// It is cut short.
pub(crate) fn get<A: Pod + Zeroable>(from: &mut dyn Read) -> Result<Vec<A>> {
    /// Values that are read at once.
    const PIECE: usize = 1 << 16;
    let mut len = [0; 8];
    from.read_exact(&mut len).map_err(cut_short)?;
    let len = u64::from_le_bytes(len);
    let mut values = Vec::new();
    while (values.len() as u64) < len {
        let start = values.len();
        values.resize(start + PIECE.min((len - start as u64) as usize), A::zeroed());
        from.read_exact(bytemuck::cast_slice_mut(&mut values[start..])).map_err(cut_short)?;
    }
    values.shrink_to_fit();
    Ok(values)
}

impl Data {
    pub(super) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        with_number!(self.precision, T => put(out, self.numbers::<T>()))
    }

    pub(super) fn read(from: &mut dyn Read, precision: Precision) -> Result<Data> {
        Ok(with_number!(precision, T => Data::of::<T>(get(from)?)))
    }
}

/// Slots in pieces of whole groups, so that nobody holds the state of all of them twice.
fn pieces(slots: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    const PIECE: usize = 1 << 14;
    slots.clone().step_by(PIECE).map(move |start| start..slots.end.min(start + PIECE))
}

fn cut_short(error: std::io::Error) -> Error {
    Error::Cluster(format!("a share of the mesh was cut short: {error}"))
}

/// An order by name; that of a host's own key has one that nobody else can ask for.
fn of_order(order: Order) -> String {
    if order.key == Key::Own { order.key.name().into() } else { order.to_string() }
}

fn order_of(name: &str) -> Option<Order> {
    if name == Key::Own.name() { Some(Order { key: Key::Own, ..Order::default() }) } else { name.parse().ok() }
}

/// Puts ranges that follow each other as where they start, and the end.
fn ends<A>(parts: impl IntoIterator<Item = A>, len: impl Fn(A) -> usize) -> Vec<u32> {
    let mut ends = vec![0u32];
    for part in parts {
        ends.push(ends[ends.len() - 1] + len(part) as u32);
    }
    ends
}

impl Domain {
    /// Writes a share.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// If it is a whole mesh.
    pub(crate) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let share = self.share.as_ref().expect("only shares travel");
        let Shape { width, shared, private } = self.shape;
        put(out, &[width, shared, private, share.vertices, self.tiles.len()].map(|x| x as u64))?;
        put(out, of_order(self.order).as_bytes())?;
        put(out, self.graph.offsets())?;
        put(out, &(0..self.graph.len() as u32).flat_map(|t| self.graph.neighbors(t)).copied().collect::<Vec<u32>>())?;
        put(out, &self.tasks)?;
        put(out, self.parts.as_flattened())?;
        put(out, &self.runs)?;
        put(out, &self.place_of)?;
        put(out, &self.along_curve)?;
        put(out, &self.depths)?;
        put(out, &share.numbers)?;
        put(out, &share.names)?;
        put(out, &share.ghosts.iter().flat_map(|ghost| [ghost.start, ghost.end]).collect::<Vec<u32>>())?;
        put(out, &share.corners)?;
        put(out, &[share.links.len() as u64])?;
        for Link { with, sent, received } in &share.links {
            put(out, &[*with])?;
            put(out, &sent.iter().map(|(t, _)| *t).collect::<Vec<u32>>())?;
            put(out, &ends(sent, |(_, slots)| slots.len()))?;
            put(out, &sent.iter().flat_map(|(_, slots)| slots).copied().collect::<Vec<u32>>())?;
            put(out, received)?;
        }
        self.tiles.iter().try_for_each(|tile| tile.write(out))?;
        put(out, &self.elements.keys().map(|&star| star as u32).collect::<Vec<u32>>())?;
        self.elements.values().try_for_each(|elements| elements.write(out))
    }

    /// Reads what [`Domain::write`] wrote. `stars`: those of the program.
    ///
    /// # Errors
    /// It is cut short, or no share that could be walked.
    pub(crate) fn read(from: &mut dyn Read, precision: Precision, stars: Vec<StarShape>) -> Result<Domain> {
        let domain = Domain::part(from, precision, stars, true)?;
        match domain.fault() {
            None => Ok(domain),
            Some(fault) => nonsense(fault),
        }
    }

    /// `has_elements`: whether elements may be projected.
    fn part(from: &mut dyn Read, precision: Precision, stars: Vec<StarShape>, has_elements: bool) -> Result<Domain> {
        let head: Vec<u64> = get(from)?;
        let &[width, shared, private, vertices, tiles] = &head[..] else { return nonsense("head") };
        let order = String::from_utf8(get(from)?).ok().and_then(|order| order_of(&order));
        let Some(order) = order else { return nonsense("order") };
        let limit = |x: u64, most: u64| if x <= most { Ok(x as usize) } else { nonsense("head") };
        let shape = Shape { width: limit(width, 16)?, shared: limit(shared, 4096)?, private: limit(private, 4096)? };
        if ![1, 4, 8, 16].contains(&shape.width) {
            return nonsense("width of groups");
        }
        let (offsets, neighbors): (Vec<u32>, Vec<u32>) = (get(from)?, get(from)?);
        let graph = graph(&offsets, &neighbors)?;
        let (tasks, parts, runs): (Vec<u32>, Vec<u32>, Vec<u32>) = (get(from)?, get(from)?, get(from)?);
        let parts = parts.chunks_exact(2).map(|part| [part[0], part[1]]).collect();
        let (place_of, along_curve, depths) = (get(from)?, get(from)?, get(from)?);
        let (numbers, names): (Vec<u32>, Vec<u32>) = (get(from)?, get(from)?);
        let ghosts: Vec<u32> = get(from)?;
        let ghosts = ghosts.chunks_exact(2).map(|ends| ends[0]..ends[1]).collect();
        let corners = get(from)?;
        let count: Vec<u64> = get(from)?;
        let mut links = Vec::new();
        for _ in 0..count.first().copied().unwrap_or(0) {
            let (with, tasks, ends, slots): (Vec<u32>, Vec<u32>, Vec<u32>, Vec<u32>) =
                (get(from)?, get(from)?, get(from)?, get(from)?);
            let received = get(from)?;
            let (&[with], true) = (&with[..], cuts(&ends, slots.len()) && ends.len() == tasks.len() + 1) else {
                return nonsense("link");
            };
            let slots = ends.windows(2).map(|w| slots[w[0] as usize..w[1] as usize].to_vec());
            links.push(Link { with, sent: tasks.into_iter().zip(slots).collect(), received });
        }
        let lengths: Vec<_> = stars.iter().map(StarShape::lengths).collect();
        let (count, mut tiles) = (tiles, Vec::new());
        let (mut packed, mut slots) = (0, 0);
        for _ in 0..count {
            let tile = Tile::read(from, precision, &lengths)?;
            slots += tile.slots.len();
            tiles.push(tile);
            if slots >= PACKED {
                Tile::pack(tiles[packed..].iter_mut());
                (packed, slots) = (tiles.len(), 0);
            }
        }
        Tile::pack(tiles[packed..].iter_mut());
        let vertices = limit(vertices, u64::from(u32::MAX))?;
        let share = Some(Share { vertices, numbers, names, ghosts, corners, links });
        let mut elements = BTreeMap::new();
        for star in get::<u32>(from)? {
            let (true, Some(shape)) = (has_elements, stars.get(star as usize)) else {
                return nonsense("elements that are projected");
            };
            let around = vec![StarShape { others: shape.others + 1, ..shape.clone() }];
            elements.insert(star as usize, Arc::new(Domain::part(from, precision, around, false)?));
        }
        let width = shape.width;
        Ok(Domain {
            precision,
            shape,
            width,
            graph,
            order,
            stars,
            tiles,
            tasks,
            parts,
            runs,
            place_of,
            along_curve,
            depths,
            share,
            elements,
        })
    }
}

/// What tiles that are updated side by side have in place of the number of their vertices.
const WIDE: u32 = u32::MAX;
const SPREAD: u32 = u32::MAX - 1;

impl Tile {
    pub(super) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        put(out, &[self.slots.start, self.slots.end])?;
        put(out, &self.fixed.iter().map(|&fixed| u8::from(fixed)).collect::<Vec<u8>>())?;
        put(out, &self.numbers)?;
        Changing::write(&self.changing, out)?;
        match &self.form {
            Form::Wide { halo, stars } => {
                put(out, &[WIDE])?;
                put(out, halo)?;
                stars.iter().try_for_each(|star| star.write(out))?;
            }
            Form::Spread { stars } => {
                put(out, &[SPREAD])?;
                stars.iter().try_for_each(|star| star.write(out))?;
            }
            Form::Rows { vertices, stars } => {
                put(out, &[*vertices])?;
                stars.iter().try_for_each(|star| star.write(out))?;
            }
        }
        Ok(())
    }

    pub(super) fn read(from: &mut dyn Read, precision: Precision, stars: &[(usize, usize)]) -> Result<Tile> {
        let slots: Vec<u32> = get(from)?;
        let &[start, end] = &slots[..] else { return nonsense("slots of a tile") };
        let fixed: Vec<u8> = get(from)?;
        let (fixed, numbers) = (fixed.into_iter().map(|fixed| fixed == 1).collect(), get(from)?);
        let changing = Changing::read(from, precision, stars)?;
        let vertices: Vec<u32> = get(from)?;
        let form = match vertices[..] {
            [WIDE] => {
                let halo: Vec<u32> = get(from)?;
                let star = |&shape| Ell::read(from, precision, shape);
                Form::Wide { halo: halo.into(), stars: stars.iter().map(star).collect::<Result<_>>()? }
            }
            [SPREAD] => Form::Spread {
                stars: stars.iter().map(|&shape| Ell::read(from, precision, shape)).collect::<Result<_>>()?,
            },
            [vertices] => {
                let star = |&shape| Ell::read(from, precision, shape);
                Form::Rows { vertices, stars: stars.iter().map(star).collect::<Result<_>>()? }
            }
            _ => return nonsense("vertices of a tile"),
        };
        Ok(Tile { slots: start..end, fixed, numbers, form, changing })
    }
}

impl Changing {
    /// Which stars have elements here, their elements, and turns; the first of a tile without any.
    fn write(changing: &Option<Arc<Changing>>, out: &mut dyn Write) -> std::io::Result<()> {
        let has_some = |changing: &&Arc<Changing>| changing.stars().next().is_some();
        let Some(changing) = changing.as_ref().filter(has_some) else { return put::<u32>(out, &[]) };
        put(out, &changing.stars().map(|(index, _)| index as u32).collect::<Vec<_>>())?;
        changing.stars().try_for_each(|(_, star)| star.write(out))?;
        put(out, &changing.turns)
    }

    fn read(from: &mut dyn Read, precision: Precision, stars: &[(usize, usize)]) -> Result<Option<Arc<Changing>>> {
        let present: Vec<u32> = get(from)?;
        if present.is_empty() {
            return Ok(None);
        }
        let mut changing = Changing::nothing(stars.len(), precision);
        for index in present {
            let Some(&shape) = stars.get(index as usize) else { return nonsense("a star that changes") };
            changing.stars[index as usize] = Ell::read(from, precision, shape)?;
        }
        changing.turns = get(from)?;
        Ok(Some(Arc::new(changing)))
    }
}

impl<N: Pod + Default + Send> Ell<N> {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        put(out, &self.columns)?;
        put(out, &self.full)?;
        put(out, &self.degrees)?;
        put(out, &self.others)?;
        self.data.write(out)
    }

    fn read(from: &mut dyn Read, precision: Precision, shape: (usize, usize)) -> Result<Ell<N>> {
        Ok(Ell::of(shape, get(from)?, [get(from)?, get(from)?], get(from)?, Data::read(from, precision)?))
    }
}

impl<T: Number> View<'_, T> {
    /// Writes what some slots hold, whole groups of them.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write(&self, slots: Range<usize>, out: &mut dyn Write) -> std::io::Result<()> {
        let (stride, private) = (shared_stride(self.shape.shared), self.shape.private);
        pieces(slots).try_for_each(|slots| {
            put(out, &self.shared[slots.start * stride..slots.end * stride])?;
            put(out, &self.private[slots.start * private..slots.end * private])
        })
    }
}

impl<T: Number> State<T> {
    /// Reads what [`View::write`] wrote, into as many slots.
    ///
    /// # Errors
    /// It is cut short, or of other slots.
    pub(crate) fn read(&mut self, slots: Range<usize>, from: &mut dyn Read) -> Result<()> {
        let (stride, private) = (shared_stride(self.shape.shared), self.shape.private);
        pieces(slots).try_for_each(|slots| {
            let (new_shared, new_private): (Vec<T>, Vec<T>) = (get(from)?, get(from)?);
            let shared = &mut self.shared[slots.start * stride..slots.end * stride];
            let private = &mut self.private[slots.start * private..slots.end * private];
            if (shared.len(), private.len()) != (new_shared.len(), new_private.len()) {
                return nonsense("a state of other vertices");
            }
            shared.copy_from_slice(&new_shared);
            private.copy_from_slice(&new_private);
            Ok(())
        })
    }
}

pub(super) fn nonsense<A>(what: &str) -> Result<A> {
    Err(Error::Cluster(format!("a share of the mesh makes no sense: {what}")))
}

/// The graph with these rows.
fn graph(offsets: &[u32], neighbors: &[u32]) -> Result<Graph> {
    let tasks = offsets.len().saturating_sub(1);
    if !cuts(offsets, neighbors.len()) || neighbors.iter().any(|&t| t as usize >= tasks) {
        return nonsense("graph of tasks");
    }
    let row = |t: usize| &neighbors[offsets[t] as usize..offsets[t + 1] as usize];
    let edges: Vec<[u32; 2]> =
        (0..tasks).flat_map(|t| row(t).iter().filter(move |&&u| u as usize > t).map(move |&u| [t as u32, u])).collect();
    Ok(Graph::from_edges(tasks, &edges)?)
}
