//! Memory limit of this process's container.

use std::{fs, path::Path};

// Mounts of control groups version 2, and of version 1 for memory.
const SECOND: &str = "/sys/fs/cgroup";
const FIRST: &str = "/sys/fs/cgroup/memory";
// Without a limit, version 1 reports the largest multiple of the page size below 2^63.
const UNLIMITED: u64 = 1 << 50;

/// Lowest memory limit of this process's control group and its parents, in bytes; `None` without a limit.
pub fn container_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group_of = |mark: &str| {
        groups
            .lines()
            .find_map(|line| Some(line.split_once(mark)?.1.to_owned()))
    };
    let second = group_of("0::").and_then(|group| find_lowest_limit(Path::new(SECOND), &group, "memory.max"));
    let first = group_of(":memory:")
        .and_then(|group| find_lowest_limit(Path::new(FIRST), &group, "memory.limit_in_bytes"));
    second.into_iter().chain(first).min()
}

/// Lowest limit between a group and the mount.
///
/// A container that sees its own group as the root finds the limit there.
fn find_lowest_limit(mount: &Path, group: &str, file: &str) -> Option<u64> {
    let own = mount.join(group.trim_start_matches('/'));
    let around = own.ancestors().take_while(|folder| folder.starts_with(mount));
    // In version 2, a group without a limit contains the word `max`, and the root group has no such file.
    let limits = around.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok());
    limits.filter(|limit| *limit < UNLIMITED).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_limit_around_a_group_counts() {
        let mount = tempfile::TempDir::new().unwrap();
        let group = mount.path().join("pods/one");
        fs::create_dir_all(&group).unwrap();
        let found = || find_lowest_limit(mount.path(), "/pods/one", "memory.max");
        fs::write(group.join("memory.max"), "max\n").unwrap();
        assert_eq!(found(), None);
        fs::write(mount.path().join("pods/memory.max"), "1073741824\n").unwrap();
        assert_eq!(found(), Some(1 << 30));
        fs::write(group.join("memory.max"), "536870912\n").unwrap();
        assert_eq!(found(), Some(512 << 20));
        // The process does not see this group. The root of the visible tree has its limit.
        fs::write(mount.path().join("memory.max"), "268435456\n").unwrap();
        assert_eq!(
            find_lowest_limit(mount.path(), "/../elsewhere", "memory.max"),
            Some(256 << 20)
        );
    }
}
