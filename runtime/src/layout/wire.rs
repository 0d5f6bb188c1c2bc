//! A share of a mesh as bytes: how it gets from the host that planned the run to the one that walks it.
//!
//! Little-endian arrays, each behind its length, read in pieces: what is claimed never decides what is allocated. What was read is
//! checked before anybody walks it, because the walk's memory safety rests on it.

use super::changing::Changing;
use super::data::Data;
use super::domain::{Domain, Link, Share};
use super::ell::Ell;
use super::reach::corners_of;
use super::tile::{Form, Tile};
use super::{PACKED, Shape, State, View, shared_stride};
use crate::error::{Error, Result};
use crate::number::lanes::TABLE;
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
        let of_elements = |elements: &Arc<Domain>| elements.fault(Some(&domain));
        let fault = domain.fault(None).or_else(|| domain.elements.values().find_map(of_elements));
        let parts = [&domain].into_iter().chain(domain.elements.values().map(|elements| &**elements));
        let shares = parts.filter_map(|part| part.share.as_ref());
        let ascend = shares.flat_map(|share| &share.names).is_sorted_by(|a, b| a < b);
        match fault.or((!ascend).then_some("numbers of tasks")) {
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
        let (tasks, runs): (Vec<u32>, Vec<u32>) = (get(from)?, get(from)?);
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
            runs,
            place_of,
            along_curve,
            depths,
            share,
            elements,
        })
    }

    /// What of a share that was read cannot be walked. `vertices`: of a share of elements, that of their corners.
    fn fault(&self, vertices: Option<&Domain>) -> Option<&'static str> {
        let Share { numbers, names, ghosts, corners, links, .. } = self.share.as_ref()?;
        let (tasks, slots) = (self.graph.len(), self.place_of.len() as u32);
        if [self.depths.len(), names.len(), ghosts.len()] != [tasks; 3] || numbers.len() != self.along_curve.len() {
            return Some("lengths");
        }
        if !cuts(&self.tasks, self.tiles.len()) || self.tasks.len() != tasks + 1 || !names.is_sorted_by(|a, b| a < b) {
            return Some("tasks");
        }
        // Slots of the tasks, one after the other.
        let (mut start, mut starts) = (0u32, Vec::with_capacity(tasks));
        for t in 0..tasks {
            starts.push(start);
            let own = &self.tiles[self.tiles_of(t..t + 1)];
            let ghost = &ghosts[t];
            if own.is_empty() != (ghost.start < ghost.end) || (!own.is_empty() && *ghost != (0..0)) {
                return Some("ghosts");
            }
            if own.is_empty() {
                let (expected, most) = vertices.map_or((start, slots), |_| (ghost.start, corners.len() as u32));
                if ghost.start != expected || ghost.end > most {
                    return Some("slots of a ghost");
                }
                if vertices.is_none() {
                    start = ghost.end.next_multiple_of(self.width as u32);
                }
            }
            for tile in own {
                if tile.slots.start != start || tile.slots.end <= start || tile.slots.end % self.width as u32 != 0 {
                    return Some("slots of a tile");
                }
                start = tile.slots.end;
            }
        }
        if !self.runs.is_sorted_by(|a, b| a < b) || self.runs.last() != Some(&slots) {
            return Some("runs");
        }
        if start != slots || self.along_curve.iter().any(|&slot| slot >= slots) {
            return Some("slots");
        }
        if !numbers.is_sorted_by(|a, b| a < b) {
            return Some("numbers along the curve");
        }
        let is_ghost = |&t: &u32| (t as usize) < tasks && self.is_ghost(t);
        for Link { sent, received, .. } in links {
            let is_own = |(t, _): &(u32, _)| (*t as usize) < tasks && !self.is_ghost(*t);
            let ascend = sent.is_sorted_by(|a, b| a.0 < b.0) && received.is_sorted_by(|a, b| a < b);
            if !sent.iter().all(is_own) || !received.iter().all(is_ghost) || !ascend {
                return Some("a link");
            }
        }
        match vertices {
            None => self.fault_of_vertices(&starts),
            Some(vertices) => self.fault_of_elements(vertices),
        }
    }

    /// What else cannot be walked where tasks update vertices, whose slots start there.
    fn fault_of_vertices(&self, starts: &[u32]) -> Option<&'static str> {
        let (tasks, slots) = (self.graph.len(), self.place_of.len() as u32);
        let task = |slot: u32| starts.partition_point(|&start| start <= slot) as u32 - 1;
        for t in 0..tasks {
            // A task reads itself and its neighbors in the graph: what the walk's inequality is about.
            let reads = |slot: u32| {
                slot < slots
                    && (task(slot) == t as u32 || self.graph.neighbors(t as u32).binary_search(&task(slot)).is_ok())
            };
            if !self.tiles[self.tiles_of(t..t + 1)]
                .iter()
                .all(|tile| tile.is_sound(self.width, tile.slots.len(), &reads))
            {
                return Some("a tile");
            }
        }
        if self.along_curve.iter().any(|&slot| self.is_ghost(task(slot))) {
            return Some("numbers along the curve");
        }
        let owns = |(t, read): &(u32, Vec<u32>)| read.iter().all(|&slot| slot < slots && task(slot) == *t);
        let mut sent = self.share.iter().flat_map(|share| &share.links).flat_map(|link| &link.sent);
        if sent.all(owns) { None } else { Some("a link") }
    }

    /// What else cannot be walked where tasks project elements of these vertices.
    fn fault_of_elements(&self, vertices: &Domain) -> Option<&'static str> {
        let Share { ghosts, corners, links, .. } = self.share.as_ref()?;
        // Which task reaches which slot.
        let mut reached: Vec<(u32, u32)> = Vec::new();
        for t in 0..self.graph.len() as u32 {
            let tiles = &self.tiles[self.tiles_of(t as usize..t as usize + 1)];
            if !tiles.iter().all(|tile| tile.is_sound_of_elements(self.width)) {
                return Some("a tile of elements");
            }
            let ghost = &ghosts[t as usize];
            let of_ghost = &corners[ghost.start as usize..ghost.end as usize];
            let start = reached.len();
            reached.extend(tiles.iter().flat_map(corners_of).chain(of_ghost).map(|&slot| (slot, t)));
            reached[start..].sort_unstable();
        }
        reached.sort_unstable();
        reached.dedup();
        if reached.last().is_some_and(|last| last.0 as usize >= vertices.slots()) {
            return Some("a corner");
        }
        // No two of them at a time: what the walk's inequality is about.
        let is_apart = |&(_, a): &(u32, u32), &(_, b): &(u32, u32)| self.graph.neighbors(a).binary_search(&b).is_ok();
        let are_apart = |tasks: &[(u32, u32)]| {
            // So many cannot all be neighbors.
            let are_few = tasks.len() <= self.graph.neighbors(tasks[0].1).len() + 1;
            are_few && (0..tasks.len()).all(|i| tasks[..i].iter().all(|before| is_apart(&tasks[i], before)))
        };
        if !reached.chunk_by(|a, b| a.0 == b.0).all(are_apart) {
            return Some("tasks of elements");
        }
        let owns = |(t, told): &(u32, Vec<u32>)| told.iter().all(|&slot| reached.binary_search(&(slot, *t)).is_ok());
        if links.iter().flat_map(|link| &link.sent).all(owns) { None } else { Some("a link") }
    }
}

/// What tiles that are updated side by side have in place of the number of their vertices.
const WIDE: u32 = u32::MAX;
const SPREAD: u32 = u32::MAX - 1;

impl Tile {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
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

    fn read(from: &mut dyn Read, precision: Precision, stars: &[(usize, usize)]) -> Result<Tile> {
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

    /// Whether a projection of it stays within its corners.
    fn is_sound_of_elements(&self, width: usize) -> bool {
        let (own, wide) = match &self.form {
            Form::Wide { .. } => return false,
            Form::Spread { .. } => (self.slots.len(), width),
            Form::Rows { vertices, .. } => (*vertices as usize, 1),
        };
        let (Form::Rows { stars, .. } | Form::Spread { stars }) = &self.form else { return false };
        let [star] = &stars[..] else { return false };
        let has_one_each = star.columns.len() * wide == own + wide && star.columns.windows(2).all(|w| w[1] == w[0] + 1);
        self.is_sound(width, star.others.len(), &|_| true) && has_one_each && self.changing.is_none() && wide == width
    }

    /// Whether an update of it stays within what it says it reads. `fixed`: of how many it may say that they are; `reads`: whether it may read a
    /// slot.
    fn is_sound(&self, width: usize, fixed: usize, reads: &impl Fn(u32) -> bool) -> bool {
        let own = self.slots.len();
        let of_slots = |len: usize| len == 0 || len == own;
        [0, fixed].contains(&self.fixed.len())
            && of_slots(self.numbers.len())
            && self.changing.as_ref().is_none_or(|changing| {
                let (own, width) = if self.is_wide() { (own, width) } else { (self.updated(), 1) };
                of_slots(changing.turns.len()) && changing.stars().all(|(_, star)| star.is_sound(own, width, reads))
            })
            && match &self.form {
                Form::Wide { halo, stars } => {
                    width > 1
                        && own + halo.len() <= TABLE
                        && halo.iter().all(|&slot| reads(slot) && !self.slots.contains(&slot))
                        && stars.iter().all(|star| star.is_sound(own, width, |name| (name as usize) < own + halo.len()))
                }
                Form::Spread { stars } => width > 1 && stars.iter().all(|star| star.is_sound(own, width, reads)),
                Form::Rows { vertices, stars } => {
                    let vertices = *vertices as usize;
                    (1..=own).contains(&vertices)
                        && own == vertices.next_multiple_of(width)
                        && stars.iter().all(|star| star.is_sound(vertices, 1, reads))
                }
            }
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

impl<N: Pod + Default + Send + Into<u32>> Ell<N> {
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

    /// `own`: slots of the tile, in groups of `width`; `reads`: whether it may read what has a name.
    fn is_sound(&self, own: usize, width: usize, reads: impl Fn(u32) -> bool) -> bool {
        let (others, data) = self.shape;
        let columns = self.columns.last().map_or(0, |&end| end as usize);
        let groups = own / width;
        let group = |g: usize| {
            let degrees = &self.degrees[g * width..(g + 1) * width];
            let most = (self.columns[g + 1] - self.columns[g]) as usize;
            degrees.iter().all(|&degree| (self.full[g] as usize..=most).contains(&(degree as usize)))
        };
        let (counted, slots) = if width == 1 { (0, 0) } else { (groups, own) };
        self.columns.len() == groups + 1
            && cuts(&self.columns, columns)
            && self.full.len() == counted
            && self.degrees.len() == slots
            && columns.checked_mul(others * width) == Some(self.others.len())
            && columns.checked_mul(data * width) == Some(self.data.len())
            && self.others.iter().all(|&name| reads(name.into()))
            && (0..counted).all(group)
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

/// Whether some ends cut a list of `len` into pieces.
pub(super) fn cuts(ends: &[u32], len: usize) -> bool {
    ends.first() == Some(&0) && ends.last().is_some_and(|&end| end as usize == len) && ends.is_sorted()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of two vertices in three columns, one neighbor and one real an element.
    fn wide() -> Ell<u16> {
        let data = Data::of(vec![1.0f32; 6]);
        Ell::of((1, 1), vec![0, 1, 3], [vec![1, 1], vec![1, 1, 2, 1]], vec![0, 1, 2, 3, 0, 3], data)
    }

    /// Two vertices, of one element and of two.
    fn rows() -> Ell<u32> {
        Ell::rows((1, 1), vec![0, 1, 3], vec![4, 0, 5], Data::of(vec![1.0f64; 3]))
    }

    #[test]
    fn a_star_is_sound_until_anything_of_it_is_changed() {
        let named = |names: u32| move |name: u32| name < names;
        assert!(wide().is_sound(4, 2, named(4)));
        assert!(!wide().is_sound(4, 2, named(3)), "a name that nobody has");
        assert!(!wide().is_sound(6, 2, named(4)) && !wide().is_sound(2, 2, named(4)), "other groups");
        let spoil: [fn(&mut Ell<u16>); 6] = [
            |star| star.columns = vec![0, 2, 3].into(),
            |star| star.columns = vec![0, 1, 2].into(),
            |star| star.full = vec![1, 2].into(),
            |star| star.degrees = vec![1, 1, 3, 1].into(),
            |star| star.others = vec![0; 5].into(),
            |star| star.data = Data::of(vec![1.0f32; 5]),
        ];
        for (i, spoil) in spoil.iter().enumerate() {
            let mut star = wide();
            spoil(&mut star);
            assert!(!star.is_sound(4, 2, named(4)), "change {i}");
        }
        assert!(
            rows().is_sound(2, 1, named(6)) && !rows().is_sound(2, 1, named(5)) && !rows().is_sound(1, 1, named(6))
        );
        let counted = Ell { full: vec![1, 2].into(), degrees: vec![1, 2].into(), ..rows() };
        assert!(!counted.is_sound(2, 1, named(6)), "rows count nothing twice");
    }

    #[test]
    fn elements_that_come_and_go_are_sound_until_anything_of_them_is_changed() {
        // One element around the first vertex, whose other one is the last.
        let far =
            || Ell::of((1, 1), vec![0, 1, 1], [vec![0; 2], vec![1, 0, 0, 0]], vec![3; 2], Data::of(vec![1.0f32; 2]));
        let sent = |changing: Changing| {
            let form = Form::Wide { halo: Vec::new().into(), stars: vec![wide()] };
            let (fixed, numbers, changing) = (Vec::new(), Vec::new(), Some(Arc::new(changing)));
            let mut bytes = Vec::new();
            Tile { slots: 0..4, fixed, numbers, form, changing }.write(&mut bytes).unwrap();
            Tile::read(&mut &bytes[..], Precision::F32, &[(1, 1)])
        };
        let nothing = || Changing { stars: vec![Ell::nothing(Precision::F32)], turns: Vec::new() };
        let tile = sent(Changing { stars: vec![far()], turns: vec![0; 4] }).unwrap();
        assert!(
            tile.is_sound(2, 4, &|slot| slot < 4) && !tile.is_sound(2, 4, &|slot| slot < 3),
            "a slot that is not read"
        );
        assert_eq!(tile.changing.unwrap().stars[0].others[..], [3; 2]);
        assert!(sent(nothing()).unwrap().changing.is_none());
        let spoilt = [
            Changing { stars: vec![far()], turns: vec![0; 3] },
            Changing { stars: vec![Ell { degrees: vec![2, 0, 0, 0].into(), ..far() }], turns: Vec::new() },
            Changing { stars: vec![Ell { columns: vec![0, 1].into(), ..far() }], turns: Vec::new() },
        ];
        for changing in spoilt {
            assert!(!sent(changing).unwrap().is_sound(2, 4, &|slot| slot < 4));
        }
        assert!(sent(Changing { stars: vec![Ell::nothing(Precision::F32), far()], turns: Vec::new() }).is_err());
    }

    /// Two vertices, the second of which an edge joins to the ghost of a third, and that edge as an element; another host has one at the
    /// third.
    fn share_with_elements() -> Domain {
        let star =
            |others| StarShape { name: "Rods".into(), is_directed: false, changes: false, others, parts: Vec::new() };
        let none = || Data::of(Vec::<f32>::new());
        let tile = |slots: Range<u32>, star: Ell<u32>| {
            let (vertices, fixed, numbers) = (slots.len() as u32, Vec::new(), Vec::new());
            Tile { slots, fixed, numbers, form: Form::Rows { vertices, stars: vec![star] }, changing: None }
        };
        let link = |slot| Link { with: 1, sent: vec![(0, vec![slot])], received: vec![1] };
        let domain = |stars, tile: Tile, share: Share, private| Domain {
            precision: Precision::F32,
            shape: Shape { width: 1, shared: 1 - private, private },
            width: 1,
            graph: Graph::from_edges(2, &[[0, 1]]).unwrap(),
            order: Order::COLOR,
            stars,
            runs: vec![0, tile.slots.end + 1 - private as u32],
            place_of: (0..tile.slots.end + 1 - private as u32).collect(),
            tiles: vec![tile],
            tasks: vec![0, 1, 1],
            along_curve: share.numbers.clone(),
            depths: vec![0, 1],
            share: Some(share),
            elements: BTreeMap::new(),
        };
        let of_vertices = Share {
            vertices: 3,
            numbers: vec![0, 1],
            names: vec![0, 1],
            ghosts: vec![0..0, 2..3],
            corners: Vec::new(),
            links: vec![link(1)],
        };
        let of_elements = Share {
            vertices: 2,
            numbers: Vec::new(),
            names: vec![2, 3],
            ghosts: vec![0..0, 0..1],
            corners: vec![2],
            links: vec![link(2)],
        };
        let rows = Ell::rows((1, 0), vec![0, 0, 1], vec![2], none());
        let rod = Ell::rows((2, 0), vec![0, 1], vec![1, 2], none());
        let elements = domain(vec![star(2)], tile(0..1, rod), of_elements, 1);
        let vertices = domain(vec![star(1)], tile(0..2, rows), of_vertices, 0);
        Domain { elements: BTreeMap::from([(0, Arc::new(elements))]), ..vertices }
    }

    #[test]
    fn elements_that_are_projected_are_sound_until_anything_of_them_is_changed() {
        let read = |share: &Domain| {
            let mut bytes = Vec::new();
            share.write(&mut bytes).unwrap();
            Domain::read(&mut &bytes[..], Precision::F32, share.stars.clone()).map(|read| (read, bytes))
        };
        let (again, bytes) = read(&share_with_elements()).unwrap();
        assert_eq!(read(&again).unwrap().1, bytes);
        fn spoil(change: impl FnOnce(&mut Domain)) -> Domain {
            let mut share = share_with_elements();
            change(Arc::get_mut(share.elements.get_mut(&0).unwrap()).unwrap());
            share
        }
        let corners = |corners: Vec<u32>, share: &mut Domain| {
            let Form::Rows { stars, .. } = &mut share.tiles[0].form else { unreachable!() };
            stars[0].others = corners.into();
        };
        fn known(share: &mut Domain) -> &mut Share {
            share.share.as_mut().unwrap()
        }
        let spoilt = [
            ("tasks of elements", spoil(|share| share.graph = Graph::from_edges(2, &[]).unwrap())),
            ("a corner", spoil(|share| corners(vec![1, 3], share))),
            ("a corner", spoil(|share| known(share).corners = vec![3])),
            ("slots of a ghost", spoil(|share| known(share).ghosts[1] = 0..2)),
            ("ghosts", spoil(|share| known(share).ghosts[1] = 0..0)),
            ("a tile of elements", spoil(|share| corners(vec![1, 2, 1, 2], share))),
            ("a tile of elements", spoil(|share| share.tiles[0].fixed = vec![true])),
            (
                "a tile of elements",
                spoil(|share| {
                    let Form::Rows { stars, .. } = &mut share.tiles[0].form else { unreachable!() };
                    stars[0].columns = vec![1, 1].into();
                }),
            ),
            ("a link", spoil(|share| known(share).links[0].sent[0].1 = vec![0])),
            ("a link", spoil(|share| known(share).links[0].sent[0].0 = 1)),
            ("a link", spoil(|share| known(share).links[0].received = vec![0])),
            ("lengths", spoil(|share| known(share).names.truncate(1))),
            ("numbers of tasks", spoil(|share| known(share).names = vec![1, 2])),
            ("elements that are projected", {
                let mut share = share_with_elements();
                let elements = share.elements.remove(&0).unwrap();
                share.elements.insert(1, elements);
                share
            }),
            (
                "elements that are projected",
                spoil(|share| _ = share.elements.insert(0, Arc::new(share_with_elements()))),
            ),
        ];
        for (what, share) in spoilt {
            let why = read(&share).err().map(|error| error.to_string());
            assert!(why.as_ref().is_some_and(|why| why.ends_with(what)), "{what}: {why:?}");
        }
    }

    #[test]
    fn a_tile_is_updated_side_by_side_only_in_groups_of_several() {
        let tile = |form| Tile { slots: 0..4, fixed: Vec::new(), numbers: Vec::new(), form, changing: None };
        let reads = |slot: u32| slot < 4;
        let wide = tile(Form::Wide { halo: Vec::new().into(), stars: vec![wide()] });
        assert!(wide.is_sound(2, 4, &reads) && !wide.is_sound(1, 4, &reads));
        let none = Ell::of((1, 0), vec![0; 5], Default::default(), Vec::new(), Data::of(Vec::<f32>::new()));
        for form in [Form::Wide { halo: Vec::new().into(), stars: Vec::new() }, Form::Spread { stars: vec![none] }] {
            assert!(!tile(form).is_sound(1, 4, &reads));
        }
    }
}
