//! A folder belongs to one run at a time.

use anyhow::{Context, Result, bail};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The name of the file that is locked.
const NAME: &str = ".meshweft.lock";

/// The right to write to a folder, until it is dropped. The system takes it back when the process ends, however that happens.
pub(super) struct Lock {
    path: PathBuf,
    /// None where the file system knows no locks: there no run is kept out.
    file: Option<File>,
}

impl Lock {
    /// Takes a folder, which must be there.
    ///
    /// # Errors
    /// Another process has it; a file that cannot be made in it.
    pub(super) fn take(folder: &Path) -> Result<Lock> {
        let path = folder.join(NAME);
        let failed = || format!("cannot lock the folder {} (choose another with --out)", folder.display());
        loop {
            let open = File::options().create(true).truncate(false).write(true).open(&path);
            let file = open.with_context(failed)?;
            match file.try_lock() {
                // The run that had the folder may have removed the file since it was opened here: others would not meet it there.
                Ok(()) if is_removed(&file).with_context(failed)? => {}
                Ok(()) => return Ok(Lock { path, file: Some(file) }),
                Err(TryLockError::WouldBlock) => bail!(
                    "another run writes to {}: wait until it has ended, or choose another folder with --out",
                    folder.display()
                ),
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                    return Ok(Lock { path, file: None });
                }
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
            }
        }
    }

    /// Whether no other run writes to the folder.
    pub(super) fn is_held(&self) -> bool {
        self.file.is_some()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is still locked. If it stays it is in no run's way.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_removed(file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink() == 0)
}

/// Elsewhere a file that is open cannot be removed.
#[cfg(not(unix))]
fn is_removed(_: &File) -> std::io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_folder_has_one_owner_and_no_trace_of_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        let error = Lock::take(folder.path()).err().unwrap().to_string();
        assert!(error.contains("another run writes to ") && error.contains("--out"), "{error}");
        drop(lock);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // What a killed process leaves is a file that no process holds.
        std::fs::write(folder.path().join(NAME), "").unwrap();
        assert!(Lock::take(folder.path()).unwrap().is_held());
    }

    #[test]
    fn of_many_that_come_and_go_at_once_one_has_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (owners, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let come_and_go = || {
            for _ in 0..300 {
                let Ok(lock) = Lock::take(folder.path()) else { continue };
                assert_eq!(owners.fetch_add(1, Ordering::SeqCst), 0, "two have it");
                taken.fetch_add(1, Ordering::SeqCst);
                std::thread::yield_now();
                owners.fetch_sub(1, Ordering::SeqCst);
                drop(lock);
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(come_and_go))));
        assert!(taken.into_inner() > 0);
    }
}
