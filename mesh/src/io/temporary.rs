//! Files that get another name once they are whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

use crate::error::{Error, Result};

/// What their names begin with.
const PREFIX: &str = ".meshweft-";
/// How many letters and digits follow.
const RANDOM: usize = 6;

/// Fills a temporary file beside `path` and then renames it, so that a whole file is there or none; on any error the
/// temporary file is removed. Returns the file, open at its end.
///
/// # Errors
/// [`Error::Io`] with whatever the system says of the folder or of a write.
///
/// ```
/// use meshweft_mesh::io::replace;
/// use std::io::Write;
/// let folder = tempfile::tempdir()?;
/// replace(&folder.path().join("note.txt"), |out| out.write_all(b"whole"))?;
/// assert_eq!(std::fs::read(folder.path().join("note.txt"))?, b"whole");
/// assert!(replace(&folder.path().join("missing/note.txt"), |_| Ok(())).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<File> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let write = || {
        let mut file = create(folder)?;
        let mut out = BufWriter::with_capacity(1 << 20, file.as_file_mut());
        fill(&mut out)?;
        out.flush()?;
        drop(out);
        file.persist(path).map_err(|error| error.error)
    };
    write().map_err(|error| Error::io(path, error))
}

/// Finds out whether files can be made in a folder and written to, and leaves nothing behind.
///
/// # Errors
/// What the system says.
///
/// ```
/// use meshweft_mesh::io::probe;
/// let folder = tempfile::tempdir()?;
/// probe(folder.path())?;
/// assert!(probe(&folder.path().join("missing")).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn probe(folder: &Path) -> io::Result<()> {
    create(folder)?.write_all(b"x")
}

/// Removes the temporary files that programs left in a folder when they were killed. Call it only while no program writes there: its
/// files would be removed, too.
///
/// # Errors
/// What the system says.
///
/// ```
/// use meshweft_mesh::io::sweep;
/// let folder = tempfile::tempdir()?;
/// for name in [".meshweft-a1B2c3", ".meshweft-notes", "a.vtu"] {
///     std::fs::write(folder.path().join(name), "")?;
/// }
/// sweep(folder.path())?;
/// assert!(!folder.path().join(".meshweft-a1B2c3").exists());
/// assert!(folder.path().join(".meshweft-notes").exists() && folder.path().join("a.vtu").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sweep(folder: &Path) -> io::Result<()> {
    let is_ours = |name: &str| {
        let random = name.strip_prefix(PREFIX).unwrap_or_default();
        random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name().to_str().is_some_and(is_ours) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// An empty temporary file.
fn create(folder: &Path) -> io::Result<NamedTempFile> {
    // The library reports its own path, which the user knows, and little else.
    let mut reason = None;
    let open = |path: &Path| {
        let file = File::options().read(true).write(true).create_new(true).open(path);
        file.inspect_err(|error| reason = error.raw_os_error())
    };
    let made = Builder::new().prefix(PREFIX).rand_bytes(RANDOM).make_in(folder, open);
    made.map_err(|error| match (error.kind(), reason) {
        (io::ErrorKind::NotFound, _) => io::Error::new(io::ErrorKind::NotFound, "there is no such folder"),
        (_, Some(code)) => io::Error::from_raw_os_error(code),
        (kind, None) => kind.into(),
    })
}
