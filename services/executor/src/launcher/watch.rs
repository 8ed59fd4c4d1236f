//! Watches that a process tree stays within its limits, where no cgroup enforces them.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    group::CommandCgroup,
    policy::{CgroupSupport, CommandLimits, LauncherPolicy},
    root::PRIVATE,
    usage::{self, UnnamedFiles},
};

/// Rounds between two measurements of the disk. A measurement walks over all files.
const DISK_EVERY: u32 = 20;
// Rounds between two scans of open files. A scan reads the descriptors of every process, so it is rarer in a
// large tree.
const FILES_EVERY: u32 = 3;
const FILES_EVERY_OF_MANY: u32 = 20;
const MANY: usize = 64;
const MIB: u64 = 1 << 20;
/// Folder of files in memory on a machine without namespaces.
const SHARED_MEMORY: &str = "/dev/shm";

/// Limits of a process tree, with its usage before and during the command.
pub(crate) struct UsageWatch {
    limits: CommandLimits,
    /// Bytes outside of `folders` that count towards the disk limit. They do not grow while the tree lives.
    beside: u64,
    folders: Vec<PathBuf>,
    /// Control group, which counts some resources exactly.
    group: Option<(CommandCgroup, CgroupSupport)>,
    shared: SharedMemory,
    round: Cell<u32>,
    disk: Cell<u64>,
    nameless: RefCell<UnnamedFiles>,
}

/// Memory that belongs to no process: files in memory and System V objects.
enum SharedMemory {
    /// All shared memory of these namespaces belongs to the tree.
    Own,
    /// Shared memory of the user. What existed before the command does not count.
    OfUser {
        user: u32,
        files: u64,
        objects: HashMap<i32, u64>,
    },
}

impl SharedMemory {
    fn of(policy: &LauncherPolicy) -> Self {
        if policy.confinement.namespaces {
            return Self::Own;
        }
        Self::OfUser {
            user: policy.uid,
            files: usage::disk_used(Path::new(SHARED_MEMORY), Some(policy.uid)),
            objects: usage::system_v(Some(policy.uid)).into_iter().collect(),
        }
    }

    /// Returns the folders of files in memory, as this process sees them: through the root of a process of
    /// the tree. Process 1 is not dumpable, so its root cannot be read.
    fn folders(&self, tree: &[Pid]) -> Vec<PathBuf> {
        let seen_by = |pid: &Pid| {
            let root = format!("/proc/{}/root", pid.as_raw_nonzero());
            PRIVATE.map(|folder| PathBuf::from(format!("{root}{folder}")))
        };
        match self {
            Self::Own => {
                let mut views = tree.iter().map(seen_by);
                let view = views.find(|folders| folders.iter().all(|folder| folder.exists()));
                view.map(Vec::from).unwrap_or_default()
            }
            Self::OfUser { .. } => vec![SHARED_MEMORY.into()],
        }
    }

    /// Returns the used bytes. What existed before the command does not count.
    fn used(&self, folders: &[PathBuf], nameless: &UnnamedFiles) -> u64 {
        match self {
            Self::Own => {
                let objects: u64 = usage::system_v(None).iter().map(|(_, bytes)| bytes).sum();
                usage::filesystem_usage(folders) + objects
            }
            Self::OfUser { user, files, objects } => {
                let named: u64 = folders
                    .iter()
                    .map(|folder| usage::disk_used(folder, Some(*user)))
                    .sum();
                let objects_now = usage::system_v(Some(*user)).into_iter();
                let grown = objects_now
                    .map(|(id, bytes)| bytes.saturating_sub(objects.get(&id).copied().unwrap_or(0)));
                named.saturating_sub(*files)
                    + nameless.deleted_on(&usage::folder_devices(folders))
                    + grown.sum::<u64>()
            }
        }
    }
}

impl UsageWatch {
    pub(crate) fn new(policy: LauncherPolicy, group: Option<CommandCgroup>) -> Self {
        Self {
            shared: SharedMemory::of(&policy),
            group: group.zip(policy.cgroup),
            limits: policy.limits,
            beside: policy.beside_mib.saturating_mul(MIB),
            folders: policy.measured,
            round: Cell::new(0),
            disk: Cell::new(0),
            nameless: RefCell::default(),
        }
    }

    /// Returns the exceeded limit, as text for the reader of the output.
    pub(crate) fn find_breach(&self, tree: &[Pid]) -> Option<String> {
        let round = self.round.get().wrapping_add(1);
        self.round.set(round);
        let by_kernel = |counts: fn(&CgroupSupport) -> bool| {
            let group = self.group.as_ref();
            group.is_some_and(|(_, cgroup)| counts(cgroup))
        };
        let rounds_between_scans = if tree.len() > MANY {
            FILES_EVERY_OF_MANY
        } else {
            FILES_EVERY
        };
        // The measurement of the disk counts deleted files that are still open, so it needs a fresh scan
        // too.
        if round.is_multiple_of(rounds_between_scans) || round.is_multiple_of(DISK_EVERY) {
            self.nameless.replace(UnnamedFiles::find(tree));
        }
        let mut breach = None;
        if !by_kernel(|cgroup| cgroup.processes) {
            breach = self.check_processes(tree);
        }
        if breach.is_none() && !by_kernel(|cgroup| cgroup.memory) {
            breach = self.check_memory(tree);
        }
        // No cgroup controller limits disk space, so it is always measured.
        breach.or_else(|| self.check_disk())
    }

    /// Kills the processes of the cgroup, and the whole PID namespace if `first` is its process 1.
    pub(crate) fn kill(&self, first: Pid) {
        if matches!(self.shared, SharedMemory::Own) {
            // The error is ignored: the process may already have ended.
            let _ = kill_process(first, Signal::KILL);
        }
        if let Some((group, _)) = &self.group {
            group.kill();
        }
    }

    /// Returns the limit for which the kernel ended a process.
    pub(crate) fn find_kernel_breach(&self) -> Option<String> {
        let (group, _) = self.group.as_ref()?;
        group.ran_out_of_memory().then(|| self.describe_memory_breach())
    }

    fn describe_memory_breach(&self) -> String {
        format!("it used more than {} MiB of memory", self.limits.memory_mib)
    }

    fn check_processes(&self, tree: &[Pid]) -> Option<String> {
        let threads: u64 = tree.iter().filter_map(|pid| usage::count_threads(*pid)).sum();
        (threads > self.limits.processes)
            .then(|| format!("it ran more than {} processes and threads", self.limits.processes))
    }

    fn check_memory(&self, tree: &[Pid]) -> Option<String> {
        let limit = self.limits.memory_mib.saturating_mul(MIB);
        let nameless = self.nameless.borrow();
        let folders = self.shared.folders(tree);
        let shared = self.shared.used(&folders, &nameless) + nameless.memory;
        // This sum counts shared pages once per process. Only if it exceeds the limit does the slower reading
        // of `smaps` follow.
        let rough: u64 = tree.iter().filter_map(|pid| usage::resident_bytes(*pid)).sum();
        if rough + shared <= limit {
            return None;
        }
        let devices: HashSet<u64> = usage::folder_devices(&folders);
        let own = |pid: &Pid| {
            usage::own_memory(*pid, &nameless.in_memory, &devices)
                .or_else(|| usage::resident_bytes(*pid))
                .unwrap_or(0)
        };
        let exact: u64 = tree.iter().map(own).sum();
        (exact + shared > limit).then(|| self.describe_memory_breach())
    }

    /// Reports a breach only while the usage grows, because a command that deletes files must be able to run.
    fn check_disk(&self) -> Option<String> {
        if !self.round.get().is_multiple_of(DISK_EVERY) {
            return None;
        }
        let named: u64 = self
            .folders
            .iter()
            .map(|folder| usage::disk_used(folder, None))
            .sum();
        let devices = usage::folder_devices(&self.folders);
        let used = self.beside + named + self.nameless.borrow().deleted_on(&devices);
        // The disk is measured rarely, so the previous value is that of 20 rounds before.
        let previous = self.disk.replace(used);
        let limit = self.limits.disk_mib.saturating_mul(MIB);
        (used > limit && used > previous).then(|| {
            format!(
                "the workspace holds more than {} MiB of files, its git objects and deleted files that are still open included; \
                 delete some first",
                self.limits.disk_mib
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_growing_disk_usage_is_breach() {
        let folder = std::env::temp_dir().join(format!("watch-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("big"), vec![1; 3 << 20]).unwrap();
        let limits = CommandLimits {
            disk_mib: 1,
            ..CommandLimits::default()
        };
        let watch = UsageWatch::new(
            LauncherPolicy {
                measured: vec![folder.clone()],
                limits,
                ..LauncherPolicy::default()
            },
            None,
        );
        let round = || (0..DISK_EVERY).find_map(|_| watch.find_breach(&[]));
        assert!(round().unwrap().contains("1 MiB of files"));
        assert_eq!(round(), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn bytes_outside_folders_count_for_disk() {
        let folder = std::env::temp_dir().join(format!("watch-beside-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("small"), vec![1; 1 << 20]).unwrap();
        let breach = |beside_mib| {
            let limits = CommandLimits {
                disk_mib: 4,
                ..CommandLimits::default()
            };
            let policy = LauncherPolicy {
                measured: vec![folder.clone()],
                limits,
                beside_mib,
                ..LauncherPolicy::default()
            };
            let watch = UsageWatch::new(policy, None);
            (0..DISK_EVERY).find_map(|_| watch.find_breach(&[]))
        };
        assert_eq!(breach(2), None);
        assert!(breach(4).unwrap().contains("4 MiB of files"));
        fs::remove_dir_all(folder).unwrap();
    }
}
