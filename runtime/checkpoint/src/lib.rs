//! Checkpoints in a folder: each is there whole or not at all, and the newest whole one is found.
//!
//! ```text
//! out/cloth/checkpoint/
//!   epoch-00000000000000000006/
//!     shard-000000     numbers of the state, as many files as suit
//!     shard-000001
//!     MANIFEST         what the state is of, and the length and the hash of each shard; the last line is its own hash
//!   epoch-00000000000000000007/
//!   epoch-00000000000000000008.partial/     one that is being written
//! ```
//!
//! What the numbers mean is not known here: shards are bytes, and a manifest is a list of [`Facts`] that the writer states.
//!
//! # Guarantee
//!
//! Whatever ends a process, a machine or its power at whatever moment: a checkpoint whose [`Draft::commit`] has returned is found
//! again with every bit, or a newer one is. A file that was changed since, by a single bit, is refused, and the checkpoint before is
//! taken instead.
//!
//! # How
//!
//! Shards are written to new files of a folder that nobody takes for a checkpoint, and synchronized; then the manifest, with their
//! hashes; then the names in the folder; then the folder gets its name, and the names around it are synchronized. Only after that
//! older ones go. So a crash leaves the checkpoints before, and at most a partial one, which the next run removes. Whoever looks for
//! a checkpoint goes from the newest back to the first whose manifest is sound and all of whose shards have their hashes (BLAKE3).
//!
//! # What it does not do
//!
//! Keep two runs apart that write to one folder, or tell a forged checkpoint from a true one: who may write to the folder may
//! write anything. Hashes find accidents.
//!
//! Source: the protocol is that of `rename` and `fsync` as in Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014.

mod disk;
mod error;
mod manifest;
#[cfg(test)]
mod simulated;

use disk::{Disk, System};
pub use error::{Error, Result};
use manifest::Manifest;
pub use manifest::{Facts, MOST_SHARD, Shard};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Checkpoints that are kept.
pub const KEPT: usize = 3;
/// The file that makes a folder a checkpoint.
const MANIFEST: &str = "MANIFEST";
/// What the name of a checkpoint ends with until it is one.
const PARTIAL: &str = ".partial";
/// Bytes that are hashed and written at once.
const PIECE: usize = 1 << 20;

/// A checkpoint that is being written: removed again when it is dropped, unless it was [committed](Draft::commit).
pub struct Draft<'a> {
    root: PathBuf,
    epoch: u64,
    disk: &'a dyn Disk,
    is_done: bool,
}

impl Draft<'_> {
    /// Begins a checkpoint behind those that are in a folder, which is made if need be. What others have left unfinished is removed.
    ///
    /// # Errors
    /// A folder that cannot be made or written to.
    pub fn begin(root: &Path) -> Result<Draft<'static>> {
        Draft::on(&System, root)
    }

    fn on<'a>(disk: &'a dyn Disk, root: &Path) -> Result<Draft<'a>> {
        disk.make(root).map_err(Error::write(root))?;
        let mut epochs = Vec::new();
        for name in disk.folders(root).map_err(Error::write(root))? {
            let Some((epoch, is_whole)) = parse(&name) else { continue };
            epochs.push(epoch);
            if !is_whole {
                let stale = root.join(name);
                disk.remove(&stale).map_err(Error::write(&stale))?;
            }
        }
        let epoch = epochs.into_iter().max().map_or(0, |last| last + 1);
        let draft = Draft { root: root.to_owned(), epoch, disk, is_done: false };
        disk.make(&draft.folder()).map_err(Error::write(&draft.folder()))?;
        Ok(draft)
    }

    /// Where its shards go.
    pub fn folder(&self) -> PathBuf {
        self.root.join(name(self.epoch) + PARTIAL)
    }

    /// Writes a shard. Several threads may do so at the same time, with numbers of their own.
    ///
    /// # Errors
    /// A file that cannot be written, or more than [`MOST_SHARD`] bytes.
    pub fn shard(&self, number: u64, fill: impl FnMut(&mut dyn Write) -> io::Result<()>) -> Result<Shard> {
        shard(self.disk, &self.folder(), number, fill)
    }

    /// Makes it a checkpoint: once this returns it stays one, whatever happens. Of those before, the newest two are kept.
    ///
    /// # Errors
    /// A file that cannot be written, or facts of more than 16 MiB, which nobody would read. What had been written of it is removed then.
    pub fn commit(mut self, facts: Facts, shards: Vec<Shard>) -> Result<Committed> {
        let (disk, partial, whole) = (self.disk, self.folder(), self.root.join(name(self.epoch)));
        let bytes = shards.iter().map(|shard| shard.bytes).sum();
        let text = Manifest { epoch: self.epoch, facts, shards }.to_text();
        let path = partial.join(MANIFEST);
        if text.len() as u64 > manifest::MOST {
            let what = format!("a manifest of {} bytes: {} are read at most", text.len(), manifest::MOST);
            return Err(Error::write(&path)(io::Error::new(io::ErrorKind::FileTooLarge, what)));
        }
        disk.write(&path, &mut |out| out.write_all(text.as_bytes())).map_err(Error::write(&path))?;
        disk.sync(&partial).map_err(Error::write(&partial))?;
        disk.rename(&partial, &whole).map_err(Error::write(&whole))?;
        self.is_done = true;
        disk.sync(&self.root).map_err(Error::write(&self.root))?;
        // That an old one stays is no reason to give this one up.
        let mut epochs = epochs(disk, &self.root).unwrap_or_default();
        epochs.drain(..KEPT.min(epochs.len()));
        epochs.into_iter().for_each(|epoch| drop(disk.remove(&self.root.join(name(epoch)))));
        Ok(Committed { epoch: self.epoch, bytes })
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // If it stays the next draft removes it.
            let _ = self.disk.remove(&self.folder());
        }
    }
}

/// A checkpoint that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its number: they count up.
    pub epoch: u64,
    /// Bytes of its shards.
    pub bytes: u64,
}

/// Whether there are checkpoints in a folder, sound or not.
pub fn is_any(root: &Path) -> bool {
    epochs(&System, root).is_ok_and(|epochs| !epochs.is_empty())
}

/// Removes all checkpoints of a folder, whole ones and others, and nothing else of it.
///
/// # Errors
/// What the system says; a folder that is not there is none.
pub fn remove_all(root: &Path) -> io::Result<()> {
    let names = match System.folders(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        names => names?,
    };
    names.iter().filter(|name| parse(name).is_some()).try_for_each(|name| System.remove(&root.join(name)))
}

/// Writes a checkpoint of the shards that `fill` writes, by their numbers, on two threads: one fills a shard while that of the other is
/// on its way to the disk.
///
/// ```
/// use meshweft_checkpoint::{Checkpoint, write};
/// let folder = tempfile::tempdir()?;
/// let facts = vec![("steps".to_string(), "12".to_string())];
/// write(folder.path(), facts, 3, |shard, out| out.write_all(&[shard as u8; 5]))?;
/// let newest = Checkpoint::newest(folder.path())?;
/// assert_eq!((newest.fact("steps"), newest.fact("time")), (Some("12"), None));
/// assert_eq!(newest.read(2)?, [2; 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// A folder that cannot be written to: what was there is as it was.
pub fn write(
    root: &Path,
    facts: Facts,
    shards: u64,
    fill: impl Fn(u64, &mut dyn Write) -> io::Result<()> + Sync,
) -> Result<Committed> {
    let draft = Draft::begin(root)?;
    let odd = |parity: u64| -> Result<Vec<Shard>> {
        (parity..shards).step_by(2).map(|i| draft.shard(i, |out| fill(i, out))).collect()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let other = (shards > 1).then(|| scope.spawn(|| odd(1)));
        (
            odd(0),
            other.map_or(Ok(Vec::new()), |other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        )
    });
    let mut written = even?;
    written.extend(odd?);
    written.sort_unstable_by_key(|shard| shard.number);
    draft.commit(facts, written)
}

fn shard(
    disk: &dyn Disk,
    folder: &Path,
    number: u64,
    mut fill: impl FnMut(&mut dyn Write) -> io::Result<()>,
) -> Result<Shard> {
    let path = folder.join(file(number));
    let mut found = None;
    let written = disk.write(&path, &mut |out| {
        let mut hashed = BufWriter::with_capacity(PIECE, Hashed { out, hasher: blake3::Hasher::new(), bytes: 0 });
        fill(&mut hashed)?;
        let Hashed { hasher, bytes, .. } = hashed.into_inner().map_err(io::IntoInnerError::into_error)?;
        found = Some(Shard { number, bytes, hash: hasher.finalize() });
        Ok(())
    });
    written.map_err(Error::write(&path))?;
    let shard = found.expect("what was written was hashed");
    match shard.bytes <= MOST_SHARD {
        true => Ok(shard),
        false => Err(Error::damaged(&path, format!("a shard has {MOST_SHARD} bytes at most, not {}", shard.bytes))),
    }
}

/// Hashes what goes through it.
struct Hashed<'a> {
    out: &'a mut dyn Write,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A checkpoint that was found whole.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    manifest: Manifest,
    /// Newer ones that are not whole, and why, the newest first.
    passed_over: Vec<String>,
}

impl Checkpoint {
    /// Finds the newest checkpoint of a folder that is whole: all of it is read.
    ///
    /// # Errors
    /// There is none: it says what is wrong with those there are.
    pub fn newest(root: &Path) -> Result<Checkpoint> {
        Checkpoint::on(&System, root)
    }

    fn on(disk: &dyn Disk, root: &Path) -> Result<Checkpoint> {
        let missing = |passed_over| Error::Missing { folder: root.to_owned(), passed_over };
        let mut passed_over = Vec::new();
        for epoch in epochs(disk, root).map_err(|error| missing(vec![error.to_string()]))? {
            match Checkpoint::load(disk, root, epoch) {
                Ok(found) => return Ok(Checkpoint { passed_over, ..found }),
                Err(error) => passed_over.push(error.to_string()),
            }
        }
        Err(missing(passed_over))
    }

    fn load(disk: &dyn Disk, root: &Path, epoch: u64) -> Result<Checkpoint> {
        let folder = root.join(name(epoch));
        let path = folder.join(MANIFEST);
        let bytes = disk.read(&path, manifest::MOST).map_err(|error| Error::damaged(&path, error.to_string()))?;
        let manifest = Manifest::parse(&bytes).map_err(|what| Error::damaged(&path, what))?;
        if manifest.epoch != epoch {
            return Err(Error::damaged(&path, format!("it is the manifest of epoch {}", manifest.epoch)));
        }
        let found = Checkpoint { folder, manifest, passed_over: Vec::new() };
        (0..found.shards().len()).try_for_each(|i| found.read_on(disk, i).map(drop))?;
        Ok(found)
    }

    /// Its number among those of the folder.
    pub fn epoch(&self) -> u64 {
        self.manifest.epoch
    }

    /// What its writer stated under that name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.manifest.facts.iter().find(|fact| fact.0 == name).map(|fact| &*fact.1)
    }

    /// Its shards.
    pub fn shards(&self) -> &[Shard] {
        &self.manifest.shards
    }

    /// Newer ones that are not whole, and what is wrong with each.
    pub fn passed_over(&self) -> &[String] {
        &self.passed_over
    }

    /// Reads the `i`-th shard.
    ///
    /// # Errors
    /// A file that cannot be read, or has changed.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn read(&self, i: usize) -> Result<Vec<u8>> {
        self.read_on(&System, i)
    }

    fn read_on(&self, disk: &dyn Disk, i: usize) -> Result<Vec<u8>> {
        let shard = self.manifest.shards[i];
        let path = self.folder.join(file(shard.number));
        let bytes = disk.read(&path, shard.bytes).map_err(|error| Error::damaged(&path, error.to_string()))?;
        if bytes.len() as u64 != shard.bytes {
            return Err(Error::damaged(&path, format!("it has {} bytes of {}", bytes.len(), shard.bytes)));
        }
        match blake3::hash(&bytes) == shard.hash {
            true => Ok(bytes),
            false => Err(Error::damaged(&path, "it is not what was written")),
        }
    }
}

fn name(epoch: u64) -> String {
    format!("epoch-{epoch:020}")
}

fn file(shard: u64) -> String {
    format!("shard-{shard:06}")
}

/// The number that the name of a folder states, and whether it is a whole checkpoint.
fn parse(name: &str) -> Option<(u64, bool)> {
    let digits = name.strip_prefix("epoch-")?;
    let (digits, is_whole) = digits.strip_suffix(PARTIAL).map_or((digits, true), |digits| (digits, false));
    let is_number = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    Some((digits.parse().ok().filter(|&epoch| is_number && epoch < u64::MAX)?, is_whole))
}

/// Checkpoints in a folder, the newest first.
fn epochs(disk: &dyn Disk, root: &Path) -> io::Result<Vec<u64>> {
    let names = disk.folders(root)?;
    let mut epochs: Vec<u64> =
        names.iter().filter_map(|name| parse(name)).filter(|found| found.1).map(|found| found.0).collect();
    epochs.sort_unstable_by(|a, b| b.cmp(a));
    Ok(epochs)
}

#[cfg(test)]
mod tests;
