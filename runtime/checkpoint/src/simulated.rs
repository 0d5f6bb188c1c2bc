//! A disk that forgets: what was not synchronized may be lost, torn or out of order after a crash, and any call may fail.

use super::disk::{Disk, Fill};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// Bytes that a disk writes whole or not.
const SECTOR: usize = 512;

pub(crate) struct Simulated(Mutex<Inner>);

#[derive(Clone, Default)]
struct Inner {
    /// The first is the root.
    folders: Vec<Folder>,
    files: Vec<Contents>,
    calls: u64,
    /// The call that fails, and whether all after it do.
    fault: Option<(u64, bool)>,
}

#[derive(Clone, Copy)]
enum Node {
    Folder(usize),
    File(usize),
}

/// A name that went, and one that came.
type Change = (Option<String>, Option<(String, Node)>);

#[derive(Clone, Default)]
struct Folder {
    names: BTreeMap<String, Node>,
    /// Those that would survive a crash for certain, and changes since.
    kept: BTreeMap<String, Node>,
    changes: Vec<Change>,
}

#[derive(Clone, Default)]
struct Contents {
    bytes: Vec<u8>,
    is_synchronized: bool,
}

impl Folder {
    fn change(&mut self, gone: Option<String>, come: Option<(String, Node)>) {
        apply(&mut self.names, &gone, &come);
        self.changes.push((gone, come));
    }

    /// Makes sure of all names.
    fn keep(&mut self) {
        self.changes.clear();
        self.kept = self.names.clone();
    }
}

fn apply(names: &mut BTreeMap<String, Node>, gone: &Option<String>, come: &Option<(String, Node)>) {
    if let Some(name) = gone {
        names.remove(name);
    }
    if let Some((name, node)) = come {
        names.insert(name.clone(), *node);
    }
}

/// Numbers by chance, as good as a test needs (Knuth's multiplicative generator).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

impl Simulated {
    /// An empty disk. The call of that number fails, and all after it if it is a crash.
    pub(crate) fn new(fault: Option<(u64, bool)>) -> Simulated {
        Simulated(Mutex::new(Inner { folders: vec![Folder::default()], fault, ..Inner::default() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// Calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.inner().calls
    }

    /// What may be left after a loss of power.
    pub(crate) fn after_crash(&self, chance: &mut Chance) -> Simulated {
        let mut inner = self.inner().clone();
        (inner.calls, inner.fault) = (0, None);
        for folder in &mut inner.folders {
            for (gone, come) in std::mem::take(&mut folder.changes) {
                if chance.below(2) == 0 {
                    apply(&mut folder.kept, &gone, &come);
                }
            }
            folder.names = folder.kept.clone();
        }
        for file in inner.files.iter_mut().filter(|file| !file.is_synchronized) {
            file.bytes.truncate(chance.below(file.bytes.len() as u64 + 1) as usize);
            file.bytes.chunks_mut(SECTOR).filter(|_| chance.below(2) == 0).for_each(|sector| sector.fill(0));
        }
        Simulated(Mutex::new(inner))
    }
}

impl Inner {
    /// Counts a call, which may be the one that fails.
    fn call(&mut self) -> io::Result<()> {
        self.calls += 1;
        match self.fault {
            Some((at, is_crash)) if self.calls == at || is_crash && self.calls > at => Err(io::Error::other("a fault")),
            _ => Ok(()),
        }
    }

    fn find(&self, path: &Path) -> io::Result<Node> {
        path.iter().try_fold(Node::Folder(0), |at, name| match at {
            Node::Folder(at) => {
                self.folders[at].names.get(name.to_str().unwrap()).copied().ok_or(io::ErrorKind::NotFound.into())
            }
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        })
    }

    fn folder(&mut self, path: &Path) -> io::Result<&mut Folder> {
        match self.find(path)? {
            Node::Folder(at) => Ok(&mut self.folders[at]),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The folder that a path is in, and its last name.
    fn place(&mut self, path: &Path) -> io::Result<(&mut Folder, String)> {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        Ok((self.folder(path.parent().unwrap())?, name))
    }

    fn put(&mut self, path: &Path, node: Node) -> io::Result<()> {
        let (folder, name) = self.place(path)?;
        if folder.names.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        folder.change(None, Some((name, node)));
        Ok(())
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        if let Node::Folder(at) = self.find(path)? {
            for name in self.folders[at].names.clone().into_keys() {
                self.remove(&path.join(name))?;
            }
        }
        let (folder, name) = self.place(path)?;
        folder.change(Some(name), None);
        Ok(())
    }
}

impl Disk for Simulated {
    fn make(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        inner.call()?;
        if inner.find(path).is_ok() {
            return Ok(());
        }
        inner.folders.push(Folder::default());
        let node = Node::Folder(inner.folders.len() - 1);
        inner.put(path, node)?;
        inner.place(path)?.0.keep();
        Ok(())
    }

    fn write(&self, path: &Path, fill: Fill) -> io::Result<()> {
        struct Out<'a>(&'a Simulated, usize);
        impl Write for Out<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let mut inner = self.0.inner();
                let fault = inner.call();
                // Some of it may have been written.
                let taken = if fault.is_ok() { bytes.len() } else { bytes.len() / 2 };
                inner.files[self.1].bytes.extend_from_slice(&bytes[..taken]);
                fault.map(|()| taken)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut inner = self.inner();
        inner.call()?;
        inner.files.push(Contents::default());
        let file = inner.files.len() - 1;
        inner.put(path, Node::File(file))?;
        drop(inner);
        fill(&mut Out(self, file))?;
        let mut inner = self.inner();
        inner.call()?;
        inner.files[file].is_synchronized = true;
        Ok(())
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        inner.call()?;
        inner.folder(path)?.keep();
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        inner.call()?;
        let node = inner.find(from)?;
        let name = to.file_name().unwrap().to_str().unwrap().to_string();
        let (folder, old) = inner.place(from)?;
        folder.change(Some(old), Some((name, node)));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner();
        inner.call()?;
        inner.remove(path)
    }

    fn folders(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut inner = self.inner();
        inner.call()?;
        let folder = inner.folder(path)?;
        let is_folder = |node: &Node| matches!(node, Node::Folder(_));
        Ok(folder.names.iter().filter(|(_, node)| is_folder(node)).map(|(name, _)| name.clone()).collect())
    }

    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut inner = self.inner();
        inner.call()?;
        match inner.find(path)? {
            Node::File(file) if inner.files[file].bytes.len() as u64 <= most => Ok(inner.files[file].bytes.clone()),
            _ => Err(io::Error::other("no plain file of that length")),
        }
    }
}
