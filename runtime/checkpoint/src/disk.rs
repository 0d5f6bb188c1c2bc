//! What checkpoints ask of a disk.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// Fills a file.
pub(crate) type Fill<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// A disk, of which tests have one that forgets what was not synchronized.
pub(crate) trait Disk: Sync {
    /// Makes a folder that only its owner may look into, and those above it, if they are not there; returns once their names would
    /// survive a loss of power.
    fn make(&self, folder: &Path) -> io::Result<()>;

    /// Fills a file that is not there yet, and returns once its bytes would survive that. Its name may not.
    fn write(&self, file: &Path, fill: Fill) -> io::Result<()>;

    /// Returns once the names in a folder would survive that.
    fn sync(&self, folder: &Path) -> io::Result<()>;

    /// Gives a folder another name beside it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a folder and what is in it, never what links in it lead to.
    fn remove(&self, folder: &Path) -> io::Result<()>;

    /// Names of the folders in a folder, links left out.
    fn folders(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Reads a plain file of at most so many bytes.
    fn read(&self, file: &Path, most: u64) -> io::Result<Vec<u8>>;
}

/// That of this machine.
pub(crate) struct System;

impl Disk for System {
    fn make(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        let above = folder.parent().filter(|above| *above != Path::new("")).unwrap_or(Path::new("."));
        self.make(above)?;
        #[cfg_attr(not(unix), expect(unused_mut, reason = "elsewhere folders have no mode"))]
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists || !folder.is_dir() => Err(error),
            _ => self.sync(above),
        }
    }

    fn write(&self, path: &Path, fill: Fill) -> io::Result<()> {
        // Never through a link, nor over anything. After a failed `sync_all` the file is given up: asked again, the system may
        // say that all is well (Rebello et al., ATC 2020).
        let mut file = File::options().write(true).create_new(true).open(path)?;
        fill(&mut file)?;
        file.sync_all()
    }

    fn sync(&self, folder: &Path) -> io::Result<()> {
        // Elsewhere a folder is no file, and names are kept without being asked.
        if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir_all(folder)
    }

    fn folders(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if let (true, Ok(name)) = (entry.file_type()?.is_dir(), entry.file_name().into_string()) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        // Before it is opened: opening a pipe would wait for its other end.
        let found = fs::symlink_metadata(path)?;
        if !found.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        if found.len() > most {
            return Err(io::Error::other(format!(
                "it has {} bytes, which is more than the {most} there were",
                found.len()
            )));
        }
        let mut bytes = Vec::with_capacity(found.len() as usize);
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
