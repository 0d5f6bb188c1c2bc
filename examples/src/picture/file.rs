//! Files that are there as a whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file next to `path` and moves it there once it is whole. Errors name the path.
pub(super) fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let attempt = || {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".picture-");
        // Readable like any other file: by default a temporary file is its owner's alone.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder)?;
        let mut writer = BufWriter::new(&mut file);
        fill(&mut writer)?;
        writer.flush()?;
        drop(writer);
        file.persist(path)?;
        Ok(())
    };
    attempt().map_err(|e: io::Error| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display())))
}
