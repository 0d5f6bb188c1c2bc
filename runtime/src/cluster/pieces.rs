//! The pieces of a mesh that hosts write, so that no host gathers the state of all of it.
//!
//! A cell belongs to the host of its first corner, and a piece has all corners of its cells. Values of corners that another
//! host owns come from that host, at every file anew: private state is never sent otherwise, and shared state only where an update
//! reads it. So what lies on several pieces has the same bits in each.

use super::exchange::Exchange;
use super::stream::{Incoming, Outgoing};
use crate::error::{Error, Result};
use crate::layout::{Domain, Layout, View, get, put};
use crate::number::{Number, Part};
use crate::piece::{Frame, Piece, file_name};
use meshweft_mesh::Mesh;
use meshweft_mesh::io::{Format, encode, parse};
use meshweft_net::Host;
use std::io::{Read, Write};
use std::path::Path;

/// Tells hosts which piece of the mesh each of them writes.
pub(super) struct Plan<'a> {
    mesh: &'a Mesh,
    layout: &'a Layout,
    /// The host of each vertex.
    owners: Vec<Host>,
    /// For each worker, its vertices and those that its cells need of others, ascending; and its cells.
    vertices: Vec<Vec<u32>>,
    cells: Vec<Vec<u32>>,
}

impl<'a> Plan<'a> {
    /// `owners`: the host of each vertex, one of `1..=workers`.
    pub(super) fn new(mesh: &'a Mesh, layout: &'a Layout, owners: Vec<Host>, workers: usize) -> Plan<'a> {
        let (mut vertices, mut cells) = (vec![Vec::new(); workers], vec![Vec::new(); workers]);
        for (v, &owner) in (0..).zip(&owners) {
            vertices[owner as usize - 1].push(v);
        }
        for (c, (_, corners)) in (0..).zip(mesh.cells().iter()) {
            let owner = owners[corners[0] as usize];
            cells[owner as usize - 1].push(c);
            let lent = corners.iter().filter(|&&v| owners[v as usize] != owner);
            vertices[owner as usize - 1].extend(lent);
        }
        for vertices in &mut vertices {
            vertices.sort_unstable();
            vertices.dedup();
        }
        Plan { mesh, layout, owners, vertices, cells }
    }

    /// Sends a host its piece: the mesh, the owner of each point and its number along the curve, and for each worker the numbers of
    /// those vertices whose values it is to be sent.
    ///
    /// # Errors
    /// A host that takes nothing; fields that no file can hold.
    pub(super) fn send(&self, exchange: &Exchange, to: Host) -> Result<()> {
        let own = &self.vertices[to as usize - 1];
        let piece = Piece::of(self.mesh, own, &self.cells[to as usize - 1])?;
        let mut bytes = Vec::new();
        let mut out = Outgoing::new(exchange, to);
        let mut send = || {
            encode(Format::Vtu, piece.mesh(), &mut bytes)?;
            put(&mut out, &bytes)?;
            put(&mut out, &own.iter().map(|&v| self.owners[v as usize]).collect::<Vec<_>>())?;
            put(&mut out, &self.numbers(own.iter()))?;
            for (with, theirs) in (1..).zip(&self.vertices) {
                let is_lent = |v: &&u32| with != to && self.owners[**v as usize] == to;
                put(&mut out, &self.numbers(theirs.iter().filter(is_lent)))?;
            }
            out.flush()
        };
        send().map_err(|error| exchange.check().err().unwrap_or_else(|| Error::Lost(error.to_string())))
    }

    /// Numbers of vertices along the curve, by which hosts know them.
    fn numbers<'v>(&self, vertices: impl Iterator<Item = &'v u32>) -> Vec<u32> {
        let (places, order) = (self.layout.places.rank(), self.layout.schedule.permutation().order());
        vertices.map(|&v| order[places[v as usize] as usize]).collect()
    }
}

/// The piece of one host.
pub(super) struct OwnPiece {
    piece: Piece,
    sources: Vec<Source>,
    /// Hosts, and the numbers of the own vertices whose values each of them gets.
    lent: Vec<(Host, Vec<u32>)>,
    /// Hosts, and of how many vertices each of them sends values.
    borrowed: Vec<(Host, usize)>,
}

/// Where the state of a point comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The own vertex of a number along the curve.
    Own(u32),
    /// Values that were sent: a place among all of them.
    Sent(u32),
}

impl OwnPiece {
    /// Reads what [`Plan::send`] sent.
    ///
    /// # Errors
    /// It is cut short, or malformed.
    pub(super) fn read(exchange: &Exchange, from: Host, domain: &Domain) -> Result<OwnPiece> {
        let (own, workers) = (exchange.transport().host(), exchange.transport().hosts() - 1);
        let mut from = Incoming::new(exchange, from);
        let bytes: Vec<u8> = get(&mut from)?;
        let mesh = parse(Format::Vtu, Path::new("piece of the mesh"), &bytes)?;
        drop(bytes);
        let (owners, numbers): (Vec<Host>, Vec<u32>) = (get(&mut from)?, get(&mut from)?);
        if [owners.len(), numbers.len()] != [mesh.points().len(); 2] {
            return malformed("points");
        }
        let mut lent = Vec::new();
        for host in 1..=workers {
            let numbers: Vec<u32> = get(&mut from)?;
            numbers.iter().try_for_each(|&number| slot(domain, number).map(drop))?;
            if !numbers.is_empty() {
                lent.push((host, numbers));
            }
        }
        // Values come host by host.
        let count = |host: Host| owners.iter().filter(|&&owner| owner == host && owner != own).count();
        let borrowed: Vec<(Host, usize)> = (1..=workers).map(|host| (host, count(host))).collect();
        let mut next: Vec<u32> = vec![0];
        next.extend(borrowed.iter().scan(0, |end, (_, count)| {
            *end += *count as u32;
            Some(*end)
        }));
        let mut source = |(&owner, &number): (&Host, &u32)| match next.get_mut((owner as usize).wrapping_sub(1)) {
            _ if owner == own => slot(domain, number).map(|_| Source::Own(number)),
            Some(place) if owner <= workers => {
                *place += 1;
                Ok(Source::Sent(*place - 1))
            }
            _ => malformed("hosts"),
        };
        let sources = owners.iter().zip(&numbers).map(&mut source).collect::<Result<_>>()?;
        let borrowed = borrowed.into_iter().filter(|(_, count)| *count > 0).collect();
        Ok(OwnPiece { piece: Piece::from(mesh), sources, lent, borrowed })
    }

    /// Writes the piece with a state. All hosts do so at the same step: each gets values of others.
    ///
    /// # Errors
    /// A host that sends nothing, or was lost; a disk that takes nothing.
    pub(super) fn write<T: Number>(
        &mut self,
        exchange: &Exchange,
        parts: &[Part],
        (domain, view): (&Domain, View<'_, T>),
        frame: &Frame,
    ) -> Result<()> {
        let reals = view.shape.shared + view.shape.private;
        let told = |error: std::io::Error| Error::Lost(format!("values of a piece: {error}"));
        let real = |number: u32, k: usize| slot(domain, number).map(|slot| view.real(slot as usize, k));
        for (host, numbers) in &self.lent {
            let all = numbers.iter().flat_map(|&number| (0..reals).map(move |k| real(number, k)));
            let mut out = Outgoing::new(exchange, *host);
            let values: Vec<T> = all.collect::<Result<_>>()?;
            out.write_all(bytemuck::cast_slice(&values)).and_then(|()| out.flush()).map_err(told)?;
        }
        let mut sent = Vec::new();
        for &(host, count) in &self.borrowed {
            let start = sent.len();
            sent.resize(start + count * reals, T::from_f64(0.0));
            Incoming::new(exchange, host).read_exact(bytemuck::cast_slice_mut(&mut sent[start..])).map_err(told)?;
        }
        // Where slots are depends on the ghosts between them, which come and go.
        let place = |source: &Source| match *source {
            Source::Own(number) => slot(domain, number),
            Source::Sent(place) => Ok(place),
        };
        let places: Vec<u32> = self.sources.iter().map(place).collect::<Result<_>>()?;
        let sources = &self.sources;
        self.piece.fill(parts, frame.placement, |i, k| match sources[i] {
            Source::Own(_) => view.real(places[i] as usize, k),
            Source::Sent(_) => sent[places[i] as usize * reals + k],
        })?;
        let path = frame.folder.join(file_name(frame.name, frame.before.wrapping_add(exchange.transport().host())));
        self.piece.write(&path, &|| exchange.stir())
    }
}

/// The slot of an own vertex by its number along the curve.
fn slot(domain: &Domain, number: u32) -> Result<u32> {
    let share = domain.share.as_ref().expect("a host has a share");
    match share.numbers.binary_search(&number) {
        Ok(i) => Ok(domain.along_curve[i]),
        Err(_) => malformed("a vertex of another host"),
    }
}

fn malformed<A>(what: &str) -> Result<A> {
    Err(Error::Cluster(format!("a malformed piece of the mesh: {what}")))
}
