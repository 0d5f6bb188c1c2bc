//! What of a share that was read cannot be walked: the walk's memory safety rests on it.

use super::domain::{Domain, Link, Share, task_of};
use super::ell::Ell;
use super::reach::corners_of;
use super::tile::{Form, Tile};
use crate::number::lanes::TABLE;
use bytemuck::Pod;
use std::sync::Arc;

impl Domain {
    /// What of a share that was read cannot be walked, elements included.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let of_elements = |elements: &Arc<Domain>| elements.fault_of_part(Some(self));
        let fault = self.fault_of_part(None).or_else(|| self.elements.values().find_map(of_elements));
        let parts = [self].into_iter().chain(self.elements.values().map(|elements| &**elements));
        let shares = parts.filter_map(|part| part.share.as_ref());
        let ascend = shares.flat_map(|share| &share.names).is_sorted_by(|a, b| a < b);
        fault.or((!ascend).then_some("numbers of tasks"))
    }

    /// The same of vertices or of elements alone. `vertices`: of a share of elements, that of their corners.
    fn fault_of_part(&self, vertices: Option<&Domain>) -> Option<&'static str> {
        let Share { numbers, names, ghosts, corners, links, .. } = self.share.as_ref()?;
        let (tasks, slots) = (self.graph.len(), self.place_of.len() as u32);
        if [self.depths.len(), names.len(), ghosts.len()] != [tasks; 3] || numbers.len() != self.along_curve.len() {
            return Some("lengths");
        }
        if !cuts(&self.tasks, self.tiles.len()) || self.tasks.len() != tasks + 1 || !names.is_sorted_by(|a, b| a < b) {
            return Some("tasks");
        }
        let ends = [tasks as u32, self.vertices() as u32];
        let ascend = self.parts.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1]);
        if self.parts.len() < 2 || self.parts[0] != [0; 2] || self.parts.last() != Some(&ends) || !ascend {
            return Some("parts");
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
        let task = |slot: u32| task_of(starts, slot);
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

impl Tile {
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

impl<N: Pod + Into<u32>> Ell<N> {
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

/// Whether some ends cut a list of `len` into pieces.
pub(super) fn cuts(ends: &[u32], len: usize) -> bool {
    ends.first() == Some(&0) && ends.last().is_some_and(|&end| end as usize == len) && ends.is_sorted()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Changing, Data, Shape};
    use crate::number::Precision;
    use crate::program::StarShape;
    use meshweft_mesh::Graph;
    use meshweft_schedule::Order;
    use std::collections::BTreeMap;
    use std::ops::Range;

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
            parts: vec![[0, 0], [2, share.vertices as u32]],
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
