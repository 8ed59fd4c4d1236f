//! What a command leaves in its namespaces where the next one would find it.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use rustix::fs::llistxattr_query;

use crate::{root::private_folders, sys::Shared};

/// Entries that are looked at one by one.
const MAX_LEFT: usize = 1000;

/// An entry of a private folder. Of one that something is mounted on, only the name counts: the rest is not the world's.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Left {
    path: PathBuf,
    mode: u32,
    /// Length of its attributes' names.
    attributes: usize,
}

impl Left {
    /// With whether it is a folder to look into.
    fn find(path: PathBuf, device: u64) -> Option<(Self, bool)> {
        let metadata = path.symlink_metadata().ok()?;
        let is_mounted_on = metadata.dev() != device;
        let (mode, attributes) = if is_mounted_on {
            (0, 0)
        } else {
            // Where there can be none, there are none.
            (metadata.mode(), llistxattr_query(&path).unwrap_or(0))
        };
        let left = Self {
            path,
            mode,
            attributes,
        };
        Some((left, metadata.is_dir() && !is_mounted_on))
    }
}

/// What outlives a command in this world: the private folders and their entries, and shared memory. `None` when it
/// cannot be told, or is too much to look at.
pub(crate) fn left_behind() -> Option<Vec<Left>> {
    let mut found = Vec::new();
    for folder in private_folders() {
        let device = folder.metadata().ok()?.dev();
        let mut queue = vec![folder];
        while let Some(path) = queue.pop() {
            let (left, is_folder) = Left::find(path, device)?;
            if is_folder {
                for entry in fs::read_dir(&left.path).ok()? {
                    queue.push(entry.ok()?.path());
                }
            }
            found.push(left);
            if found.len() + queue.len() > MAX_LEFT {
                return None;
            }
        }
    }
    found.sort();
    // A heading, and a line for each piece.
    let is_empty = |table: &str| fs::read_to_string(table).map_or(true, |text| text.lines().count() <= 1);
    let is_clean = Shared::ALL.iter().all(|kind| is_empty(kind.table()));
    is_clean.then_some(found)
}
