//! Folders of a user's files, by the XDG Base Directory Specification.

use std::path::PathBuf;

#[cfg(feature = "local")]
use anyhow::Context;

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
