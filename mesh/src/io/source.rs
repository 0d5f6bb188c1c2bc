//! What mesh files are loaded from: files, and pipes, which may be silent or endless; no devices.

use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

#[cfg(unix)]
use crate::error::{Error, Place, Result, shown_path};
use crate::parallel;
use memmap2::MmapMut;

/// More than this is too much for a pipe, whose length is not known before its end.
const MAX_PIPE: u64 = 1 << 30;
/// How long a pipe may be silent before a note says what the reader waits for.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a path leads to.
enum Kind {
    File,
    Folder,
    Pipe,
    Device,
    /// `/dev/null`.
    Nothing,
}

/// What a file held when it was read.
pub(super) enum Content {
    Small(Vec<u8>),
    Large(MmapMut),
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Content::Small(bytes) => bytes,
            Content::Large(bytes) => bytes,
        }
    }
}

/// The bytes at `path`; `say` gets a note if a pipe is silent.
pub(super) fn load(path: &Path, say: &mut dyn FnMut(&str)) -> Result<Content> {
    let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
    match kind(&metadata) {
        Kind::File => load_file(path, metadata.len()).map_err(|error| Error::io(path, error)),
        Kind::Pipe => load_pipe(path, MAX_PIPE, PATIENCE, say).map(Content::Small),
        Kind::Nothing => Ok(Content::Small(Vec::new())),
        Kind::Folder => Err(Error::file(path, Place::Whole, "a folder is no mesh file")),
        Kind::Device => Err(Error::file(path, Place::Whole, "a device is no mesh file")),
    }
}

fn kind(metadata: &Metadata) -> Kind {
    let file_type = metadata.file_type();
    match file_type {
        _ if file_type.is_dir() => Kind::Folder,
        _ if file_type.is_file() => Kind::File,
        _ if is_null(metadata) => Kind::Nothing,
        _ if is_device(file_type) => Kind::Device,
        _ => Kind::Pipe,
    }
}

#[cfg(unix)]
fn is_device(file_type: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    file_type.is_char_device() || file_type.is_block_device()
}

#[cfg(unix)]
fn is_null(metadata: &Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let null = std::fs::metadata("/dev/null");
    metadata.file_type().is_char_device() && null.is_ok_and(|null| null.rdev() == metadata.rdev())
}

#[cfg(not(unix))]
fn is_device(_: FileType) -> bool {
    false
}

#[cfg(not(unix))]
fn is_null(_: &Metadata) -> bool {
    false
}

/// Reads a file of `len` bytes: a large one by several threads, since fresh pages take as long as the copy itself. Into a mapping,
/// which is zero without being written to, and refused where there is no memory for it.
fn load_file(path: &Path, len: u64) -> io::Result<Content> {
    /// Less is not worth a mapping.
    const LARGE: u64 = 8 << 20;
    if len < LARGE {
        return std::fs::read(path).map(Content::Small);
    }
    let file = File::open(path)?;
    let mut bytes = MmapMut::map_anon(usize::try_from(len).map_err(io::Error::other)?)?;
    read_exact(file, &mut bytes)?;
    Ok(Content::Large(bytes))
}

#[cfg(unix)]
fn read_exact(file: File, bytes: &mut [u8]) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    /// What a thread reads at a time.
    const PART: usize = 4 << 20;
    let read = |(part, bytes): (usize, &mut [u8])| file.read_exact_at(bytes, (part * PART) as u64);
    parallel::map(bytes.chunks_mut(PART).enumerate(), read).into_iter().collect()
}

#[cfg(not(unix))]
fn read_exact(mut file: File, bytes: &mut [u8]) -> io::Result<()> {
    file.read_exact(bytes)
}

/// Reads up to `most` bytes on another thread: opening a pipe waits for a writer, and reading for its
/// bytes.
fn load_pipe(path: &Path, most: u64, patience: Duration, say: &mut dyn FnMut(&str)) -> Result<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let owned = path.to_owned();
    let reading = std::thread::spawn(move || -> io::Result<Vec<u8>> {
        let mut pipe = File::open(owned)?.take(most + 1);
        let mut bytes = Vec::new();
        pipe.by_ref().take(1).read_to_end(&mut bytes)?;
        drop(sender); // something has come, or the end
        pipe.read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    if receiver.recv_timeout(patience) == Err::<(), _>(RecvTimeoutError::Timeout) {
        say(&format!("{}: waiting for another program to write to this pipe", shown_path(path)));
    }
    let bytes = reading.join().expect("a thread that reads does not panic").map_err(|error| Error::io(path, error))?;
    match bytes.len() as u64 > most {
        true => Err(Error::file(
            path,
            Place::Whole,
            format!("a pipe gave more than {most} bytes: write them to a file, and read that"),
        )),
        false => Ok(bytes),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::Command;

    const TRIANGLE: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";

    #[test]
    fn large_files_are_read_to_their_last_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        for len in [0, 5, (8 << 20) - 1, 8 << 20, (12 << 20) + 3] {
            let bytes: Vec<u8> = (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            assert!(*load(&path, &mut |_| {}).unwrap() == bytes[..], "{len}");
        }
        let cut_short = load_file(&path, 13 << 20).map(|_| ()).unwrap_err();
        assert_eq!(cut_short.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_pipe_is_read_to_its_end_and_no_further_than_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.obj");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let write = |text: &'static str| {
            let path = path.clone();
            std::thread::spawn(move || drop(std::fs::write(path, text)))
        };
        let writer = write(TRIANGLE);
        assert_eq!(*load(&path, &mut |_| {}).unwrap(), *TRIANGLE.as_bytes());
        writer.join().unwrap();
        let writer = write(TRIANGLE);
        let error = load_pipe(&path, 20, PATIENCE, &mut |_| {}).unwrap_err().to_string();
        assert!(
            error.ends_with("a.obj: a pipe gave more than 20 bytes: write them to a file, and read that"),
            "{error}"
        );
        writer.join().unwrap();
        let writer = write("");
        assert_eq!(load_pipe(&path, 20, PATIENCE, &mut |_| {}).unwrap(), b"");
        writer.join().unwrap();
    }
}
