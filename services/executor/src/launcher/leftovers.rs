//! State that commands leave outside of their workspace: detected in namespaces that the next command would share, and
//! removed where commands have none.

use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

use rustix::fs::llistxattr_query;

use crate::{
    root::private_folders,
    sys::{self, SystemVKind},
};

const MEMORY: &str = "/dev/shm";
/// Limit of entries that are compared; beyond it the namespaces are not reused.
const MAX_LEFT: usize = 1000;

/// Entry of a private folder. For a mount point only the path counts: the mounted content does not belong to
/// the namespaces.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LeftEntry {
    path: PathBuf,
    mode: u32,
    /// Total length of the names of its extended attributes.
    attributes: usize,
}

impl LeftEntry {
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
pub(crate) fn list_leftovers() -> Option<Vec<LeftEntry>> {
    let mut found = Vec::new();
    for folder in private_folders() {
        let device = folder.metadata().ok()?.dev();
        let mut queue = vec![folder];
        while let Some(path) = queue.pop() {
            let (left, is_folder) = LeftEntry::find(path, device)?;
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

/// Removes this user's files in `/dev/shm` and its System V objects. The runner's user runs nothing but
/// commands, so all of them are leftovers.
pub(crate) fn remove_leftovers() {
    let user = rustix::process::getuid().as_raw();
    for entry in fs::read_dir(MEMORY).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        let is_ours = |metadata: fs::Metadata| metadata.uid() == user;
        if entry.metadata().is_ok_and(is_ours) {
            // The error is ignored: an undeletable file is visible only to commands of this user.
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
    // System V objects have no file, so the kernel's tables are the only list of them.
    for kind in SystemVKind::ALL {
        let table = fs::read_to_string(kind.table()).unwrap_or_default();
        for id in ids_of(&table, user) {
            sys::remove_shared(kind, id);
        }
    }
}

/// Returns the ids of a user's objects in one of the kernel's tables. The second column is the id.
fn ids_of(table: &str, user: u32) -> Vec<i32> {
    let mut lines = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let heading = lines.next().unwrap_or_default();
    let Some(column) = heading.iter().position(|name| *name == "uid") else {
        return Vec::new();
    };
    let user = user.to_string();
    lines
        .filter(|fields| fields.get(column).is_some_and(|uid| *uid == user))
        .filter_map(|fields| fields.get(1)?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_users_own_objects_are_found() {
        let table = "       key      semid perms      nsems   uid   gid\n\
                              0          3   600          1  1000  1000\n\
                     1094795585          4   666          2     0     0\n";
        assert_eq!(ids_of(table, 1000), [3]);
        assert_eq!(ids_of(table, 0), [4]);
        assert!(ids_of(table, 7).is_empty() && ids_of("", 0).is_empty());
    }
}
