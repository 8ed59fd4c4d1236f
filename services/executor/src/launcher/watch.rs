//! Watching what a process tree uses, where the kernel keeps no count of it.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

use crate::{
    group::Group,
    policy::{Cgroup, Limits, Policy},
};

/// Rounds between two measurements of the disk: it takes a walk over all files.
const DISK_EVERY: u32 = 20;
const MIB: u64 = 1 << 20;
/// Files beyond this are not counted one by one.
const MAX_ENTRIES: usize = 2_000_000;

/// What one tree may use, and what it used before.
pub(crate) struct Watch {
    limits: Limits,
    folders: Vec<PathBuf>,
    /// Counts some of it exactly.
    group: Option<(Group, Cgroup)>,
    round: Cell<u32>,
    disk: Cell<u64>,
}

impl Watch {
    pub(crate) fn new(policy: Policy, group: Option<Group>) -> Self {
        Self {
            group: group.zip(policy.cgroup),
            limits: policy.limits,
            folders: policy.writable,
            round: Cell::new(0),
            disk: Cell::new(0),
        }
    }

    /// What the tree uses too much of, as a text for who reads the output.
    pub(crate) fn breach(&self, tree: &[Pid]) -> Option<String> {
        self.round.set(self.round.get().wrapping_add(1));
        let by_kernel = |counts: fn(&Cgroup) -> bool| {
            let group = self.group.as_ref();
            group.is_some_and(|(_, cgroup)| counts(cgroup))
        };
        let mut breach = None;
        if !by_kernel(|cgroup| cgroup.processes) {
            breach = self.processes(tree);
        }
        if breach.is_none() && !by_kernel(|cgroup| cgroup.memory) {
            breach = self.memory(tree);
        }
        breach.or_else(|| self.disk())
    }

    /// Kills what the kernel counts as this tree.
    pub(crate) fn kill(&self) {
        if let Some((group, _)) = &self.group {
            group.kill();
        }
    }

    /// What the kernel ended the tree for.
    pub(crate) fn kernels_breach(&self) -> Option<String> {
        let (group, _) = self.group.as_ref()?;
        group.ran_out_of_memory().then(|| self.too_much_memory())
    }

    fn too_much_memory(&self) -> String {
        format!("it used more than {} MiB of memory", self.limits.memory_mib)
    }

    fn processes(&self, tree: &[Pid]) -> Option<String> {
        let threads: u64 = tree.iter().filter_map(|pid| threads(*pid)).sum();
        (threads > self.limits.processes)
            .then(|| format!("it ran more than {} processes and threads", self.limits.processes))
    }

    fn memory(&self, tree: &[Pid]) -> Option<String> {
        let limit = self.limits.memory_mib.saturating_mul(MIB);
        // Shared pages are counted once a process here; only when that is too much a closer look is worth its cost.
        let rough: u64 = tree.iter().filter_map(|pid| resident(*pid)).sum();
        if rough <= limit {
            return None;
        }
        let exact: u64 = tree
            .iter()
            .map(|pid| proportional(*pid).or_else(|| resident(*pid)).unwrap_or(0))
            .sum();
        (exact > limit).then(|| self.too_much_memory())
    }

    /// Only what grows is stopped: a command that deletes must be able to run.
    fn disk(&self) -> Option<String> {
        if !self.round.get().is_multiple_of(DISK_EVERY) {
            return None;
        }
        let used = self.folders.iter().map(|folder| disk_used(folder)).sum();
        let before = self.disk.replace(used);
        let limit = self.limits.disk_mib.saturating_mul(MIB);
        (used > limit && used > before).then(|| {
            format!(
                "the workspace holds more than {} MiB of files; delete some first",
                self.limits.disk_mib
            )
        })
    }
}

fn threads(pid: Pid) -> Option<u64> {
    stat_field(pid, 17)
}

/// A field of `/proc/<pid>/stat`, counted from the one after the name.
pub(crate) fn stat_field(pid: Pid, index: usize) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(index)?
        .parse()
        .ok()
}

fn resident(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn proportional(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn disk_used(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let (mut queue, mut used, mut seen) = (vec![folder.to_owned()], 0, 0);
    while let Some(folder) = queue.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            seen += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            used += metadata.blocks() * 512;
            if metadata.is_dir() && seen < MAX_ENTRIES {
                queue.push(entry.path());
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_threads_and_memory() {
        let me = rustix::process::getpid();
        assert!(threads(me).unwrap() >= 1);
        assert!(resident(me).unwrap() > MIB / 2);
        assert!(proportional(me).unwrap() > 0);
    }

    #[test]
    fn what_grows_beyond_the_quota_is_a_breach_and_what_shrinks_is_none() {
        let folder = std::env::temp_dir().join(format!("watch-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("big"), vec![1; 3 << 20]).unwrap();
        let limits = Limits {
            disk_mib: 1,
            ..Limits::default()
        };
        let watch = Watch::new(
            Policy {
                writable: vec![folder.clone()],
                limits,
                ..Policy::default()
            },
            None,
        );
        let round = || (0..DISK_EVERY).find_map(|_| watch.breach(&[]));
        assert!(round().unwrap().contains("1 MiB of files"));
        assert_eq!(round(), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
