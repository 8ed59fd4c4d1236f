//! Files of the user: their folders by the XDG Base Directory Specification, and atomic replacement.

use std::{
    fs::{File, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

#[cfg(feature = "local")]
use anyhow::Context;
use tempfile::NamedTempFile;

const PRODUCT: &str = "journeyman";

/// `$XDG_STATE_HOME/journeyman`, by default `~/.local/state/journeyman`.
///
/// # Errors
/// When neither variable nor `HOME` is set.
#[cfg(feature = "local")]
pub(crate) fn find_state_folder() -> anyhow::Result<PathBuf> {
    let home = find_xdg_folder("XDG_STATE_HOME", ".local/state");
    home.context("HOME is not set: name a folder for data with --data")
}

/// `$XDG_CONFIG_HOME/journeyman`, by default `~/.config/journeyman`; `None` when neither variable nor
/// `HOME` is set.
pub(crate) fn find_config_folder() -> Option<PathBuf> {
    find_xdg_folder("XDG_CONFIG_HOME", ".config")
}

fn find_xdg_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| {
        // The specification treats an empty variable like a missing one.
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        // The specification declares relative paths invalid.
        value.map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let folder = set(variable).or_else(|| Some(set("HOME")?.join(below_home)))?;
    Some(folder.join(PRODUCT))
}

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
