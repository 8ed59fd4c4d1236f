//! Detects state that a command leaves behind in its namespaces.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use rustix::fs::llistxattr_query;

use crate::{root::private_folders, sys::SystemVKind};

/// Limit of entries that are compared; beyond it the namespaces are not reused.
const MAX_LEFT: usize = 1000;

/// Entry of a private folder. For a mount point only the path counts: the mounted content does not belong to
/// the namespaces.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TraceEntry {
    path: PathBuf,
    mode: u32,
    /// Total length of the names of its extended attributes.
    attributes: usize,
}

impl TraceEntry {
    /// Reads an entry. The flag is true for a folder whose content belongs to the namespaces.
    fn find(path: PathBuf, device: u64) -> Option<(Self, bool)> {
        let metadata = path.symlink_metadata().ok()?;
        // A mount inside a private folder, such as an exposed toolchain, has another device.
        let is_mounted_on = metadata.dev() != device;
        let (mode, attributes) = if is_mounted_on {
            (0, 0)
        } else {
            // A file system without extended attributes returns an error, which counts as none.
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

/// Lists the state that outlives a command in these namespaces: the private folders with their entries, and
/// shared memory. `None` when the state cannot be read or exceeds the limit.
pub(crate) fn left_behind() -> Option<Vec<TraceEntry>> {
    let mut found = Vec::new();
    for folder in private_folders() {
        let device = folder.metadata().ok()?.dev();
        let mut queue = vec![folder];
        while let Some(path) = queue.pop() {
            let (left, is_folder) = TraceEntry::find(path, device)?;
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
    // An empty table consists of its heading.
    let is_empty = |table: &str| fs::read_to_string(table).map_or(true, |text| text.lines().count() <= 1);
    let is_clean = SystemVKind::ALL.iter().all(|kind| is_empty(kind.table()));
    is_clean.then_some(found)
}
