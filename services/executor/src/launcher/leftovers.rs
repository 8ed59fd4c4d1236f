//! Removes objects that commands without namespaces leave outside of their workspace and that a later command
//! of the same user would find.

use std::{fs, os::unix::fs::MetadataExt};

use crate::sys::{self, SystemVKind};

const MEMORY: &str = "/dev/shm";

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
