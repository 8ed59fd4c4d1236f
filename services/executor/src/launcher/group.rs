//! Control groups (cgroup v2), where this user may create them: exact limits for a launcher's commands, and
//! their end with a single write.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::process::{WaitOptions, getpid, getppid, waitpid};

use crate::{
    policy::{CgroupSupport, CommandLimits},
    sys,
};

/// Prefix of the group names.
const PREFIX: &str = "journeyman-";
// Without a limit, cgroup v1 reports the largest multiple of a page (2^63 rounded down).
const UNLIMITED: u64 = 1 << 60;
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Control group for the commands of one launcher.
pub(crate) struct CommandCgroup {
    folder: PathBuf,
    members: File,
    kill: File,
}

impl CommandCgroup {
    /// Creates a group in the folder that the probe found. Returns `None` on failure; commands then run
    /// without a group.
    pub(crate) fn make(cgroup: &CgroupSupport, limits: &CommandLimits) -> Option<Self> {
        Self::at(&cgroup.folder, limits).ok()
    }

    fn at(folder: &Path, limits: &CommandLimits) -> io::Result<Self> {
        // By the process id in the name, `remove_leftovers` recognizes groups whose launcher is gone.
        let folder = folder.join(format!("{PREFIX}{}", getpid().as_raw_nonzero()));
        fs::create_dir(&folder)?;
        let open = |name: &str| File::options().write(true).open(folder.join(name));
        let opened = open("cgroup.procs").and_then(|members| Ok((members, open("cgroup.kill")?)));
        let opened = opened.and_then(|opened| set_limits(&folder, limits).map(|()| opened));
        match opened {
            Ok((members, kill)) => Ok(Self {
                folder,
                members,
                kill,
            }),
            Err(error) => {
                // The error is ignored: the next probe removes the group.
                let _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    /// Moves this process into the group. Processes that it starts later inherit the group.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // The kernel reads 0 as the writing process.
        (&self.members).write_all(b"0")
    }

    /// Kills all processes of the group.
    pub(crate) fn kill(&self) {
        // The error is ignored: the supervisor kills remaining processes one by one.
        let _ = (&self.kill).write_all(b"1");
    }

    /// Returns true when the kernel killed a process of the group for lack of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|count| count != "0")
    }
}

impl Drop for CommandCgroup {
    fn drop(&mut self) {
        // The error is ignored: the next probe removes a group that is not empty yet.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Writes the limits of the controllers that are available.
fn set_limits(folder: &Path, limits: &CommandLimits) -> io::Result<()> {
    let settings = [
        ("memory.max", limits.memory_mib.saturating_mul(1 << 20)),
        // Swap would let a command exceed its limit and slow down the machine.
        ("memory.swap.max", 0),
        // The kernel kills the whole group: a command without some of its processes could hang.
        ("memory.oom.group", 1),
        ("pids.max", limits.processes),
    ];
    for (name, value) in settings {
        let file = folder.join(name);
        if file.exists() {
            fs::write(file, value.to_string())?;
        }
    }
    Ok(())
}

/// Tests whether this user can create groups, and which limits they enforce.
pub(crate) fn probe_cgroup() -> Option<CgroupSupport> {
    let folder = own_folder()?;
    remove_leftovers(&folder);
    let controls = CONTROLLERS.map(|name| enable_controller(&folder, name));
    let group = CommandCgroup::at(&folder, &CommandLimits::default()).ok()?;
    let [memory, processes] = controls;
    can_enter(&group).then_some(CgroupSupport {
        folder,
        memory,
        processes,
    })
}

/// Memory limit of this process's container in bytes.
pub(crate) fn memory_limit() -> Option<u64> {
    limit_around("memory", "memory.max", "memory.limit_in_bytes")
}

/// Process limit of this process's container.
pub(crate) fn process_limit() -> Option<u64> {
    limit_around("pids", "pids.max", "pids.max")
}

/// Returns the lowest limit of this process's group and its ancestors. Each version of cgroups has its own
/// file name for the limit.
fn limit_around(controller: &str, second_file: &str, first_file: &str) -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let second = locate_group(&groups, "0::", &mounts, |mount| mount.contains(" - cgroup2 "));
    let first = locate_group(&groups, &format!(":{controller}:"), &mounts, |mount| {
        mount.contains(" - cgroup ")
            && mount
                .rsplit(' ')
                .next()
                .is_some_and(|options| options.split(',').any(|name| name == controller))
    });
    let limits = [(second, second_file), (first, first_file)];
    limits
        .into_iter()
        .filter_map(|(place, file)| lowest_limit(&place?, file))
        .min()
}

/// Returns the lowest limit of a group and its ancestors. A file without a limit contains `max` or a number
/// of at least [`UNLIMITED`].
fn lowest_limit((mount, group): &(PathBuf, PathBuf), file: &str) -> Option<u64> {
    let around = group.ancestors().take_while(|folder| folder.starts_with(mount));
    let limits = around.filter_map(|folder| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok());
    limits.filter(|limit| *limit < UNLIMITED).min()
}

/// Folder of this process's cgroup v2 group.
fn own_folder() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (_, own) = locate_group(&groups, "0::", &mounts, |mount| mount.contains(" - cgroup2 "))?;
    Some(own)
}

/// Returns the mount point of a hierarchy, and the group in it that a line of `/proc/self/cgroup` names after
/// `mark`.
fn locate_group(
    groups: &str,
    mark: &str,
    mounts: &str,
    is_it: impl Fn(&str) -> bool,
) -> Option<(PathBuf, PathBuf)> {
    let own = groups.lines().find_map(|line| Some(line.split_once(mark)?.1))?;
    let mount = mounts.lines().find(|line| is_it(line))?;
    let mut fields = mount.split(' ').skip(3);
    let root = fields.next()?;
    let own = Path::new(own).strip_prefix(root).ok()?;
    let mount = PathBuf::from(fields.next()?);
    let group = mount.join(own);
    Some((mount, group))
}

/// Enables a controller for groups inside the folder.
///
/// A group with such child groups must not contain processes itself (cgroup v2), so this process and its
/// parent move into a child group, provided that no other process is in the folder.
fn enable_controller(folder: &Path, controller: &str) -> bool {
    let turn_on = || fs::write(folder.join("cgroup.subtree_control"), format!("+{controller}"));
    let is_on = || {
        let on = fs::read_to_string(folder.join("cgroup.subtree_control"));
        on.is_ok_and(|on| on.split_whitespace().any(|name| name == controller))
    };
    is_on() || turn_on().is_ok() || (move_aside(folder).is_ok() && turn_on().is_ok())
}

fn move_aside(folder: &Path) -> io::Result<()> {
    let ours: Vec<_> = [Some(getpid()), getppid()].into_iter().flatten().collect();
    let ours: Vec<_> = ours.iter().map(|pid| pid.as_raw_nonzero().to_string()).collect();
    let all = fs::read_to_string(folder.join("cgroup.procs"))?;
    if !all.lines().all(|pid| ours.iter().any(|own| own == pid)) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let aside = folder.join("journeyman");
    fs::create_dir_all(&aside)?;
    ours.iter()
        .try_for_each(|pid| fs::write(aside.join("cgroup.procs"), pid))
}

/// Removes the groups of launchers that were killed.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name();
        let launcher = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if launcher.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // The error is ignored: a group that still contains a process cannot be removed.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Tests the group with a child process that exits at once.
fn can_enter(group: &CommandCgroup) -> bool {
    // This process stays in its own group, so a child tries to enter.
    match sys::fork_process() {
        Ok(None) => std::process::exit(i32::from(group.enter().is_err())),
        Ok(Some(child)) => {
            let waited = waitpid(Some(child), WaitOptions::empty());
            waited.is_ok_and(|waited| waited.is_some_and(|(_, status)| status.exit_status() == Some(0)))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_is_located_on_host_and_container() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\
                      31 24 0:27 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let second = locate_group("0::/user/x\n", "0::", mounts, |mount| {
            mount.contains(" - cgroup2 ")
        })
        .unwrap();
        assert_eq!(second, ("/sys/fs/cgroup".into(), "/sys/fs/cgroup/user/x".into()));
        let groups = "5:cpu:/x\n4:memory:/docker/ab/c\n0::/\n";
        let first = locate_group(groups, ":memory:", mounts, |mount| mount.contains(" - cgroup ")).unwrap();
        assert_eq!(
            first,
            ("/sys/fs/cgroup/memory".into(), "/sys/fs/cgroup/memory/c".into())
        );
    }

    #[test]
    fn the_lowest_limit_around_a_group_counts() {
        let folder = tempfile::TempDir::new().unwrap();
        let group = folder.path().join("a/b");
        fs::create_dir_all(&group).unwrap();
        let place = (folder.path().to_owned(), group.clone());
        assert_eq!(lowest_limit(&place, "memory.max"), None);
        fs::write(group.join("memory.max"), "max\n").unwrap();
        fs::write(folder.path().join("memory.max"), "9223372036854771712\n").unwrap();
        assert_eq!(lowest_limit(&place, "memory.max"), None);
        fs::write(folder.path().join("a/memory.max"), "4294967296\n").unwrap();
        assert_eq!(lowest_limit(&place, "memory.max"), Some(4 << 30));
    }

    #[test]
    fn cgroup_limits_follow_available_controllers() {
        let folder = std::env::temp_dir().join(format!("group-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["memory.max", "memory.oom.group", "cgroup.procs"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let limits = CommandLimits {
            memory_mib: 64,
            processes: 20,
            ..CommandLimits::default()
        };
        set_limits(&folder, &limits).unwrap();
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        assert_eq!(read("memory.max").unwrap(), (64 << 20).to_string());
        assert_eq!(read("memory.oom.group").unwrap(), "1");
        assert_eq!((read("pids.max"), read("memory.swap.max")), (None, None));
        fs::remove_dir_all(folder).unwrap();
    }
}
