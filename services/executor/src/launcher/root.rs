//! File system of a command: a new root with the files that the policy makes visible, private `/dev` and
//! `/proc`, empty private folders, and the workspace. Nothing else of the machine exists in it.

use std::{
    fmt::Display,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount},
    process::{chdir, pivot_root},
};

use crate::{
    mounts::{MountTree, in_memory, seal_mount},
    policy::{LauncherPolicy, PathCover},
};

/// Folders that are empty and private for every command.
pub(crate) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Mount point at which the new root is built. Every machine has it, and this process does not need its
/// content meanwhile.
const STAGE: &str = "/proc";
/// Limit of each private folder in MiB. The memory limit of the command applies if it is lower.
const PRIVATE_MIB: u64 = 1024;
// Each file takes kernel memory that its size does not show.
const PRIVATE_FILES: u64 = 100_000;
/// Stateless devices.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
// The kernel lets the machine's root user write to these settings even without capabilities.
const PROC_READ_ONLY: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];
/// Entries of `/proc` that show information about the whole machine.
const PROC_COVERED: [&str; 7] = [
    "acpi",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
];

/// Replaces the file system of this process with a new one. The process must be alone in its mount namespace.
pub(crate) fn enter_root(policy: &LauncherPolicy) -> Result<(), String> {
    // Unmounts in the machine still propagate into this namespace, but mounts here never propagate out.
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave).map_err(|error| format!("/: {error}"))?;
    // All sources are copied before the root is replaced, because their paths do not exist afterwards.
    let visible = VisiblePath::all(&policy.visible)?;
    let devices = DEVICES.map(|name| Path::new("/dev").join(name));
    let devices = copy_trees(devices.iter().filter(|path| path.exists()), Ok)?;
    let exposed = copy_covers(&policy.exposed)?;
    let readable = copy_trees(&policy.readable, MountTree::read_only)?;
    let covers = copy_covers(&policy.covers)?;
    replace_root().map_err(|error| format!("the new root: {error}"))?;
    let options = private_options(policy.limits.memory_mib);
    for path in PRIVATE.map(Path::new) {
        fs::create_dir_all(path).map_err(path_error(path))?;
        in_memory(path, &options).map_err(path_error(path))?;
    }
    attach_all(devices)?;
    make_devices().map_err(|error| format!("/dev: {error}"))?;
    // After the private folders, because settings may expose a path inside the machine's `/tmp`.
    visible.into_iter().try_for_each(VisiblePath::attach)?;
    limit_processes(policy.limits.processes);
    guard_proc()?;
    let covered = cover_all(policy.hidden.iter().cloned())?;
    attach_all(exposed)?;
    attach_all(readable)?;
    attach_all(covers)?;
    for path in covered.iter().map(PathBuf::as_path).chain([Path::new("/")]) {
        seal_mount(path).map_err(path_error(path))?;
    }
    Ok(())
}

fn path_error<'a, E: Display>(path: &'a Path) -> impl Fn(E) -> String + 'a {
    move |error| format!("{}: {error}", path.display())
}

/// Path of the machine with what it leads to. Each is resolved once, because that reads every part of the path.
struct ResolvedPath<'a> {
    path: &'a Path,
    target: PathBuf,
    /// Content of the path itself, if it is a symbolic link.
    link: Option<PathBuf>,
}

impl<'a> ResolvedPath<'a> {
    /// Resolves a path; `None` if it leads to nothing.
    fn find(path: &'a Path) -> Option<Self> {
        Some(Self {
            path,
            target: path.canonicalize().ok()?,
            link: fs::read_link(path).ok(),
        })
    }
}

/// Part of the machine that commands see.
enum VisiblePath {
    Tree(PathBuf, MountTree),
    /// A symbolic link whose target is visible as well.
    Link(PathBuf, PathBuf),
}

impl VisiblePath {
    /// Collects the visible paths that exist; a machine need not have all of them.
    fn all(paths: &[PathBuf]) -> Result<Vec<Self>, String> {
        let resolved: Vec<ResolvedPath<'_>> =
            paths.iter().filter_map(|path| ResolvedPath::find(path)).collect();
        let is_visible = |target: &Path| {
            let mut places = resolved.iter().filter(|place| place.link.is_none());
            places.any(|place| target.starts_with(&place.target))
        };
        let show = |found: &ResolvedPath<'_>| match &found.link {
            Some(link) if is_visible(&found.target) => Ok(Self::Link(found.path.to_owned(), link.clone())),
            Some(_) | None => {
                let tree = MountTree::copy(&found.target).and_then(MountTree::read_only);
                tree.map(|tree| Self::Tree(found.path.to_owned(), tree))
                    .map_err(path_error(found.path))
            }
        };
        resolved.iter().map(show).collect()
    }

    fn attach(self) -> Result<(), String> {
        let (path, attached) = match self {
            Self::Tree(path, tree) => {
                let attached = tree.attach(&path);
                (path, attached)
            }
            Self::Link(path, target) => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                let made = fs::create_dir_all(parent).and_then(|()| symlink(target, &path));
                (path, made)
            }
        };
        attached.map_err(path_error(&path))
    }
}

type PathTrees<'a> = Vec<(&'a Path, MountTree)>;

fn copy_trees<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    restrict: fn(MountTree) -> io::Result<MountTree>,
) -> Result<PathTrees<'a>, String> {
    let copied = paths.into_iter().map(|path| {
        let tree = MountTree::copy(path).and_then(restrict);
        tree.map(|tree| (path.as_path(), tree)).map_err(path_error(path))
    });
    copied.collect()
}

fn copy_covers(covers: &[PathCover]) -> Result<PathTrees<'_>, String> {
    let copied = covers.iter().map(|cover| {
        let restrict = if cover.writable {
            MountTree::writable
        } else {
            MountTree::read_only
        };
        let tree = MountTree::copy(&cover.from).and_then(restrict);
        tree.map(|tree| (cover.at.as_path(), tree))
            .map_err(path_error(&cover.from))
    });
    copied.collect()
}

fn attach_all(trees: PathTrees<'_>) -> Result<(), String> {
    trees
        .into_iter()
        .try_for_each(|(path, tree)| tree.attach(path).map_err(path_error(path)))
}

/// Replaces the root by an empty one with a `/proc` of the current PID namespace.
fn replace_root() -> io::Result<()> {
    // The root contains only mount points and links, so 4 MiB suffice.
    in_memory(Path::new(STAGE), "size=4m,mode=0755")?;
    chdir(STAGE)?;
    // With equal arguments, `pivot_root` stacks the old root over the new one at the same mount point
    // (pivot_root(2)).
    pivot_root(".", ".")?;
    fs::create_dir("/proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // The old root must still be mounted: an unprivileged process may mount `proc` only while a complete one
    // is visible in its namespace.
    mount("proc", "/proc", "proc", flags, None)?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

fn make_devices() -> io::Result<()> {
    // A new `devpts` instance, because the machine's terminals belong to the same user.
    fs::create_dir_all("/dev/pts")?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount(
        "devpts",
        "/dev/pts",
        "devpts",
        flags,
        c"newinstance,ptmxmode=0666,mode=0620",
    )?;
    DEVICE_LINKS
        .iter()
        .try_for_each(|(name, target)| symlink(target, Path::new("/dev").join(name)))
}

fn private_options(memory_mib: u64) -> String {
    let size = memory_mib.clamp(1, PRIVATE_MIB);
    format!("size={size}m,nr_inodes={PRIVATE_FILES},mode=1777")
}

/// Lowers the highest process id, which a fork bomb cannot exceed. The error is ignored: kernels before 6.14
/// have one value for all namespaces and refuse the write.
fn limit_processes(processes: u64) {
    // The kernel reserves the first 300 ids (`RESERVED_PIDS`) and refuses a lower maximum.
    let _ = fs::write("/proc/sys/kernel/pid_max", processes.max(512).to_string());
}

fn guard_proc() -> Result<(), String> {
    let proc = Path::new("/proc");
    let here = |names: &'static [&'static str]| names.iter().map(|name| proc.join(name));
    for path in here(&PROC_READ_ONLY).filter(|path| path.exists()) {
        let tree = MountTree::copy(&path).and_then(MountTree::read_only);
        tree.and_then(|tree| tree.attach(&path))
            .map_err(path_error(&path))?;
    }
    let covered = cover_all(here(&PROC_COVERED))?;
    covered
        .iter()
        .try_for_each(|path| seal_mount(path).map_err(path_error(path)))
}

/// Covers the paths that exist. Returns the covered folders, which the caller must still make read-only.
fn cover_all(paths: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>, String> {
    let mut folders = Vec::new();
    for path in paths {
        // A missing path was not visible, or its parent is already covered.
        let Ok(metadata) = path.metadata() else { continue };
        if metadata.is_dir() {
            in_memory(&path, "size=1m,mode=0755").map_err(path_error(&path))?;
            folders.push(path);
        } else {
            let covered = MountTree::copy(Path::new("/dev/null")).and_then(|null| null.attach(&path));
            covered.map_err(path_error(&path))?;
        }
    }
    Ok(folders)
}

/// Returns the private folders that exist. In a root made by [`enter_root`] all of them do.
pub(crate) fn private_folders() -> impl Iterator<Item = PathBuf> {
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    PRIVATE.iter().map(PathBuf::from).filter(is_folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolved_path_knows_target_and_link() {
        let folder = tempfile::TempDir::new().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("usr/bin")).unwrap();
        symlink("usr/bin", top.join("bin")).unwrap();
        symlink("nowhere", top.join("dangling")).unwrap();
        let (usr, bin) = (top.join("usr"), top.join("bin"));
        let found = ResolvedPath::find(&usr).unwrap();
        assert_eq!((&found.target, found.link), (&usr, None));
        let found = ResolvedPath::find(&bin).unwrap();
        assert_eq!(found.target, top.join("usr/bin"));
        assert_eq!(found.link, Some(PathBuf::from("usr/bin")));
        for missing in ["dangling", "absent"] {
            assert!(ResolvedPath::find(&top.join(missing)).is_none(), "{missing}");
        }
    }
}
