//! The edges of a search, cut in two directions.
//!
//! Hosts stand in a *grid*. Edges along which only relaxations look go to the host in whose column the vertex is owned that they come
//! from, and in whose row the one is that they lead to. So a host hears of vertices from the hosts of its column alone, and tells the
//! hosts of its row alone what it has found for theirs: of P hosts about 2 √P instead of all.
//!
//! A vertex has a number among those of its owner, along the curve; in a row and in a column the owners' vertices follow each other.
//!
//! Source: Buluç and Madduri, "Parallel breadth-first search on distributed memory systems", 2011.

use super::data::Data;
use super::ell::Ell;
use super::sound::cuts;
use super::wire::{get, nonsense, put};
use super::{Form, Layout};
use crate::error::Result;
use crate::number::Precision;
use crate::program::StarShape;
use std::io::{Read, Write};

/// What a host of a grid has of the stars that are only searched along.
pub(crate) struct Blocks {
    /// Rows and columns of hosts.
    pub(crate) grid: [u32; 2],
    /// Where the vertices of each host of its column start among those of the column, and the end.
    pub(crate) column: Vec<u32>,
    /// The same of its row.
    pub(crate) row: Vec<u32>,
    /// Numbers along the curve of the vertices of the column.
    pub(crate) numbers: Vec<u32>,
    /// Of each star the edges to every vertex of the row from vertices of the column, in the order of these along the curve.
    pub(crate) stars: Vec<(usize, Ell<u32>)>,
}

/// Where the vertices of all hosts of a grid are.
pub(super) struct Places {
    grid: [u32; 2],
    /// By slot: its owner, and which of the owner's vertices it is.
    of: Vec<(u32, u32)>,
    /// Slots of the vertices of each host, along the curve.
    slots: Vec<Vec<u32>>,
}

impl Places {
    /// `owners`: the host of each task. Cost O(slots).
    pub(super) fn new(layout: &Layout, owners: &[u32], grid: [u32; 2]) -> Places {
        let (mut of, mut slots) = (vec![(0, 0); layout.slots()], vec![Vec::new(); (grid[0] * grid[1]) as usize]);
        let mut hosts = vec![0; layout.slots()];
        for (t, &host) in owners.iter().enumerate() {
            hosts[layout.slots_of_tiles(layout.tiles_of(t..t + 1))].fill(host);
        }
        for &slot in &layout.along_curve {
            let host = hosts[slot as usize];
            of[slot as usize] = (host, slots[host as usize].len() as u32);
            slots[host as usize].push(slot);
        }
        Places { grid, of, slots }
    }

    /// The hosts of the column, or of the row, of a host.
    fn line(&self, host: u32, is_row: bool) -> Vec<u32> {
        let [rows, columns] = self.grid;
        match is_row {
            true => (0..columns).map(|column| host / columns * columns + column).collect(),
            false => (0..rows).map(|row| row * columns + host % columns).collect(),
        }
    }

    fn starts(&self, hosts: &[u32]) -> Vec<u32> {
        let mut starts = vec![0];
        starts.extend(hosts.iter().scan(0, |end, &host| {
            *end += self.slots[host as usize].len() as u32;
            Some(*end)
        }));
        starts
    }

    /// The blocks of a host. Cost O(edges to the vertices of its row).
    pub(super) fn blocks(&self, layout: &Layout, host: u32) -> Blocks {
        let (row, column) = (self.line(host, true), self.line(host, false));
        let starts = self.starts(&column);
        let columns = self.grid[1];
        // Which vertex of the column, if it is there.
        let name = |slot: u32| {
            let (owner, i) = self.of[slot as usize];
            (owner % columns == host % columns).then(|| starts[(owner / columns) as usize] + i)
        };
        let of_star = |&star: &usize| {
            let (_, len) = layout.stars[star].lengths();
            let (mut offsets, mut others, mut runs) = (vec![0], Vec::new(), Vec::new());
            for &slot in row.iter().flat_map(|&host| &self.slots[host as usize]) {
                let t = layout.tiles.partition_point(|tile| tile.slots.end <= slot);
                let Form::Rows { stars, .. } = &layout.tiles[t].form else {
                    unreachable!("no vertex is searched wide")
                };
                let (rows, i) = (&stars[star], (slot - layout.tiles[t].slots.start) as usize);
                for e in rows.row(i) {
                    if let Some(name) = name(rows.others[e]) {
                        others.push(name);
                        runs.push((&rows.data, e * len..(e + 1) * len));
                    }
                }
                offsets.push(others.len() as u32);
            }
            (star, Ell::rows((1, len), offsets, others, Data::gather(layout.precision, runs.into_iter())))
        };
        let order = layout.schedule.permutation().order();
        let number = |&slot: &u32| order[layout.place(slot as usize)];
        Blocks {
            grid: self.grid,
            column: starts.clone(),
            row: self.starts(&row),
            numbers: column.iter().flat_map(|&host| &self.slots[host as usize]).map(number).collect(),
            stars: layout.searched.iter().map(of_star).collect(),
        }
    }
}

impl Blocks {
    /// The edges of a star, if they are here.
    pub(crate) fn star(&self, star: usize) -> Option<&Ell<u32>> {
        self.stars.iter().find(|known| known.0 == star).map(|known| &known.1)
    }

    /// # Errors
    /// Those of `out`.
    pub(crate) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        put(out, &self.grid)?;
        put(out, &self.column)?;
        put(out, &self.row)?;
        put(out, &self.numbers)?;
        put(out, &self.stars.iter().map(|(star, _)| *star as u32).collect::<Vec<u32>>())?;
        self.stars.iter().try_for_each(|(_, rows)| {
            put(out, &rows.columns)?;
            put(out, &rows.others)?;
            rows.data.write(out)
        })
    }

    /// Reads what [`Blocks::write`] wrote. `share`: the number of this one, from 0; `own`: how many vertices it has.
    ///
    /// # Errors
    /// It is cut short, or no blocks that could be searched.
    pub(crate) fn read(
        from: &mut dyn Read,
        precision: Precision,
        stars: &[StarShape],
        share: u32,
        own: usize,
    ) -> Result<Blocks> {
        let grid: Vec<u32> = get(from)?;
        let &[rows, columns] = &grid[..] else { return nonsense("a grid") };
        let (column, row, numbers): (Vec<u32>, Vec<u32>, Vec<u32>) = (get(from)?, get(from)?, get(from)?);
        let is_line = |starts: &[u32], hosts: u32, own_at: u32| {
            starts.len() as u64 == u64::from(hosts) + 1
                && starts.first() == Some(&0)
                && starts.is_sorted()
                && starts
                    .get(own_at as usize..own_at as usize + 2)
                    .is_some_and(|own_of| (own_of[1] - own_of[0]) as usize == own)
        };
        let is_there = columns > 0 && rows > 0 && share / columns < rows;
        if !is_there || !is_line(&column, rows, share / columns) || !is_line(&row, columns, share % columns) {
            return nonsense("a line of a grid");
        }
        let [sources, targets] = [&column, &row].map(|starts| starts[starts.len() - 1]);
        let ascend = column
            .windows(2)
            .all(|own| numbers.get(own[0] as usize..own[1] as usize).is_some_and(|own| own.is_sorted_by(|a, b| a < b)));
        if numbers.len() != sources as usize || !ascend {
            return nonsense("numbers of a column");
        }
        let names: Vec<u32> = get(from)?;
        let mut found = Vec::new();
        for star in names {
            let Some(shape) = stars.get(star as usize) else { return nonsense("a star in blocks") };
            let (others, len) = shape.lengths();
            let (offsets, ends, data): (Vec<u32>, Vec<u32>, Data) =
                (get(from)?, get(from)?, Data::read(from, precision)?);
            let is_sound = others == 1
                && offsets.len() == targets as usize + 1
                && cuts(&offsets, ends.len())
                && Some(data.len()) == ends.len().checked_mul(len)
                && ends.iter().all(|&end| end < sources);
            if !is_sound {
                return nonsense("edges of a block");
            }
            found.push((star as usize, Ell::rows((1, len), offsets, ends, data)));
        }
        Ok(Blocks { grid: [rows, columns], column, row, numbers, stars: found })
    }
}
