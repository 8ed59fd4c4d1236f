//! Atomic replacement of files.

use std::{
    fs::{File, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
};

use tempfile::NamedTempFile;

/// Replaces a file in one step, so that a crash leaves the old or the new content.
pub(crate) fn replace_file(path: &Path, content: &[u8], mode: u32) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // A rename is atomic only within one file system, so the temporary file is in the same folder.
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    // Without this sync, a crash after the rename could leave an empty file.
    file.as_file().sync_all()?;
    file.persist(path)?;
    // The rename is durable only after a sync of the folder.
    File::open(folder)?.sync_all()
}
