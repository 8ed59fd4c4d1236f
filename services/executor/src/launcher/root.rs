//! The file system of a command: a root of its own that holds what the policy makes visible, a `/dev` and a `/proc` of
//! its own, empty private folders and the workspace. Nothing else of the machine exists in it.

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
    mounts::{Tree, in_memory, seal},
    policy::{Cover, Policy},
};

/// Folders that every command gets empty and for itself.
pub(crate) const PRIVATE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Where the new root is put together; every machine has it, and nothing in it is needed meanwhile.
const STAGE: &str = "/proc";
/// What one private folder may hold at most, in MiB; less where a command's memory is less.
const PRIVATE_MIB: u64 = 1024;
/// Each takes kernel memory that no file size tells.
const PRIVATE_FILES: u64 = 100_000;
/// Devices without a state of their own.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Settings of the whole machine, which the kernel lets its root user write without any capability.
const PROC_READ_ONLY: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];
/// What tells of the whole machine.
const PROC_COVERED: [&str; 7] = [
    "acpi",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
];

/// Leaves the caller's file system for one of its own, in a mount namespace that this process has to itself.
pub(crate) fn enter(policy: &Policy) -> Result<(), String> {
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave).map_err(|error| format!("/: {error}"))?;
    let visible = Piece::all(&policy.visible)?;
    let devices = DEVICES.map(|name| Path::new("/dev").join(name));
    let devices = trees(devices.iter().filter(|path| path.exists()), Ok)?;
    let exposed = trees(&policy.exposed, Tree::writable)?;
    let readable = trees(&policy.readable, Tree::read_only)?;
    let covers = covers(&policy.covers)?;
    replace_root().map_err(|error| format!("the new root: {error}"))?;
    let options = private_options(policy.limits.memory_mib);
    for path in PRIVATE.map(Path::new) {
        fs::create_dir_all(path).map_err(told(path))?;
        in_memory(path, &options).map_err(told(path))?;
    }
    attach_all(devices)?;
    make_devices().map_err(|error| format!("/dev: {error}"))?;
    // After the private folders: settings may expose something inside the machine's own.
    visible.into_iter().try_for_each(Piece::attach)?;
    limit_processes(policy.limits.processes);
    guard_proc()?;
    let covered = cover_all(policy.hidden.iter().cloned())?;
    attach_all(exposed)?;
    attach_all(readable)?;
    attach_all(covers)?;
    for path in covered.iter().map(PathBuf::as_path).chain([Path::new("/")]) {
        seal(path).map_err(told(path))?;
    }
    Ok(())
}

fn told<'a, E: Display>(path: &'a Path) -> impl Fn(E) -> String + 'a {
    move |error| format!("{}: {error}", path.display())
}

/// Something of the machine as commands see it.
enum Piece {
    Tree(PathBuf, Tree),
    /// A link into something else that is visible.
    Link(PathBuf, PathBuf),
}

impl Piece {
    /// Those that are here; a machine need not have them all.
    fn all(paths: &[PathBuf]) -> Result<Vec<Self>, String> {
        let places = paths.iter().filter(|path| !path.is_symlink());
        let places: Vec<PathBuf> = places.filter_map(|path| path.canonicalize().ok()).collect();
        let is_visible = |target: &Path| places.iter().any(|place| target.starts_with(place));
        let mut found = Vec::new();
        for path in paths {
            let Ok(target) = path.canonicalize() else { continue };
            let link = fs::read_link(path).ok().filter(|_| is_visible(&target));
            found.push(match link {
                Some(link) => Self::Link(path.clone(), link),
                None => {
                    let tree = Tree::copy(&target).and_then(Tree::read_only);
                    Self::Tree(path.clone(), tree.map_err(told(path))?)
                }
            });
        }
        Ok(found)
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
        attached.map_err(told(&path))
    }
}

type Trees<'a> = Vec<(&'a Path, Tree)>;

fn trees<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    restrict: fn(Tree) -> io::Result<Tree>,
) -> Result<Trees<'a>, String> {
    let copied = paths.into_iter().map(|path| {
        let tree = Tree::copy(path).and_then(restrict);
        tree.map(|tree| (path.as_path(), tree)).map_err(told(path))
    });
    copied.collect()
}

fn covers(covers: &[Cover]) -> Result<Trees<'_>, String> {
    let copied = covers.iter().map(|cover| {
        let restrict = if cover.writable {
            Tree::writable
        } else {
            Tree::read_only
        };
        let tree = Tree::copy(&cover.from).and_then(restrict);
        tree.map(|tree| (cover.at.as_path(), tree))
            .map_err(told(&cover.from))
    });
    copied.collect()
}

fn attach_all(trees: Trees<'_>) -> Result<(), String> {
    trees
        .into_iter()
        .try_for_each(|(path, tree)| tree.attach(path).map_err(told(path)))
}

/// From here on this process sees an empty root and, in it, the processes of its own namespace.
fn replace_root() -> io::Result<()> {
    in_memory(Path::new(STAGE), "size=4m,mode=0755")?;
    chdir(STAGE)?;
    // The old root comes to lie over the new one, at the same place.
    pivot_root(".", ".")?;
    fs::create_dir("/proc")?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // Before the old one goes: the kernel gives a new one to those alone who see one in full.
    mount("proc", "/proc", "proc", flags, None)?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

fn make_devices() -> io::Result<()> {
    // Terminals of its own: those of the machine belong to the same user.
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

/// Fewer process numbers are a limit that a fork bomb cannot outrun; kernels before 6.14 have one for all namespaces
/// and refuse.
fn limit_processes(processes: u64) {
    let _ = fs::write("/proc/sys/kernel/pid_max", processes.max(512).to_string());
}

fn guard_proc() -> Result<(), String> {
    let proc = Path::new("/proc");
    let here = |names: &'static [&'static str]| {
        let paths = names.iter().map(|name| proc.join(name));
        paths.filter(|path| path.exists())
    };
    for path in here(&PROC_READ_ONLY) {
        let tree = Tree::copy(&path).and_then(Tree::read_only);
        tree.and_then(|tree| tree.attach(&path)).map_err(told(&path))?;
    }
    let covered = cover_all(here(&PROC_COVERED))?;
    covered.iter().try_for_each(|path| seal(path).map_err(told(path)))
}

/// Covers what is there; the folders among it, which are still to be sealed.
fn cover_all(paths: impl Iterator<Item = PathBuf>) -> Result<Vec<PathBuf>, String> {
    let mut folders = Vec::new();
    // Not there: not visible in the first place, or inside one that is covered already.
    for path in paths.filter(|path| path.exists()) {
        cover(&path).map_err(told(&path))?;
        if path.is_dir() {
            folders.push(path);
        }
    }
    Ok(folders)
}

fn cover(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        in_memory(path, "size=1m,mode=0755")
    } else {
        Tree::copy(Path::new("/dev/null"))?.attach(path)
    }
}

/// The private folders that are here: all of them in a root of this kind.
pub(crate) fn private_folders() -> impl Iterator<Item = PathBuf> {
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    PRIVATE.iter().map(PathBuf::from).filter(is_folder)
}
