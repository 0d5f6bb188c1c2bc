//! Whether what is to be done fits into memory: a program that asks for more than there is, is killed.

use super::system::{Free, free_memory};
use super::text;
use anyhow::{Result, bail};
use meshweft_mesh::Mesh;
use meshweft_mesh::generate::Size;

/// The memory that something takes of a mesh, at least, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// What it is, for messages.
    what: &'static str,
    vertex: usize,
    /// Of each corner of each cell.
    corner: usize,
}

/// The mesh alone: three doubles a point; a cell has its corners, their end and its kind.
pub(super) const MESH: Cost = Cost { what: "the mesh", vertex: 24, corner: 5 };

/// Setting up a run, at its peak. Measured, and 20 MB less, which any run takes: programs with three reals a vertex took 330 to 420
/// bytes a vertex of box:80, 350 of hexes:60, 220 of sheet:700, 300 of random:200000, 130 of chain:800000; one with hinges took 930 of
/// sheet:700. No more is asked for than is certainly needed.
pub(super) const SET_UP: Cost = Cost { what: "setting up a run", vertex: 120, corner: 6 };

impl Cost {
    /// Checks that there is enough for a mesh that is yet to be made.
    ///
    /// # Errors
    /// There is less; the message says how much, what bounds it, and what to do.
    pub(super) fn check(self, name: &str, size: Size) -> Result<()> {
        self.check_within(name, self.bytes(size.vertices, size.corners), free_memory())
    }

    /// The same for as many at a time.
    ///
    /// # Errors
    /// As [`Cost::check`].
    pub(super) fn check_times(self, name: &str, size: Size, times: usize) -> Result<()> {
        self.check_within(name, self.bytes(size.vertices, size.corners).saturating_mul(times), free_memory())
    }

    /// The same for a mesh that is there.
    ///
    /// # Errors
    /// As [`Cost::check`].
    pub(super) fn check_beside(self, name: &str, mesh: &Mesh) -> Result<()> {
        let of = |cost: Cost| cost.bytes(mesh.points().len(), mesh.cells().all_corners().len());
        self.check_within(name, of(self).saturating_sub(of(MESH)), free_memory())
    }

    /// The same for a file that is to be read, by its length: it is held in memory.
    ///
    /// # Errors
    /// As [`Cost::check`].
    pub(super) fn check_file(self, name: &str, length: u64) -> Result<()> {
        self.check_within(name, usize::try_from(length).unwrap_or(usize::MAX), free_memory())
    }

    fn bytes(self, vertices: usize, corners: usize) -> usize {
        vertices.saturating_mul(self.vertex).saturating_add(corners.saturating_mul(self.corner))
    }

    fn check_within(self, name: &str, needed: usize, free: Option<Free>) -> Result<()> {
        match free {
            Some(Free { bytes, bound, way_out }) if bytes < needed => {
                let [needed, left] = [needed, bytes].map(|n| text::bytes(n as f64));
                bail!(
                    "{name}: {} needs at least {needed} of memory, and {bound} leaves {left}: take a smaller mesh, {way_out}",
                    self.what
                )
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshweft_mesh::generate;

    #[test]
    fn what_does_not_fit_is_refused_with_both_amounts_and_a_way_out() {
        let free = |bytes| Some(Free { bytes, bound: "this machine", way_out: "or another machine" });
        let size = generate::size("box:200").unwrap();
        let needed = SET_UP.bytes(size.vertices, size.corners);
        let check = |free| SET_UP.check_within("box:200", needed, free);
        assert!(check(None).is_ok() && check(free(needed)).is_ok());
        assert_eq!(
            check(free(2_000_000_000)).unwrap_err().to_string(),
            "box:200: setting up a run needs at least 2.09 GB of memory, and this machine leaves 2.00 GB: take a smaller mesh, \
             or another machine"
        );
        assert!(MESH.check_within("box:200", MESH.bytes(size.vertices, size.corners), free(2_000_000_000)).is_ok());
    }
}
