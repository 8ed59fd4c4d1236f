//! A world of its own for one command: processes, network, users, and a file system in which what is hidden is not
//! there and what is not the command's is read-only.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, llistxattr_query, open},
    mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change},
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink::SocketAddrNetlink, recv,
        sendto, socket_with,
    },
    thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities},
};

use crate::{
    policy::Policy,
    sys::{self, Shared},
};

/// Folders that every command gets empty and for itself.
const PRIVATE: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];
/// Entries that are looked at one by one.
const MAX_LEFT: usize = 1000;
/// Where sockets of the machine's services lie.
const SERVICES: &str = "/run";
/// What a private folder in memory may hold.
const PRIVATE_SIZE: &str = "size=1g,mode=1777";
/// A user that a command is when the executor is root: it owns the same files and can do nothing more.
const ORDINARY_USER: u32 = 1000;

/// Leaves the caller's world, except for its files: the next child is the first process of a new one.
pub(crate) fn leave() -> io::Result<()> {
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    unshare(
        UnshareFlags::NEWUSER
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS
            | UnshareFlags::NEWNET,
    )?;
    map_user((0, uid), (0, gid))
}

/// Arranges files and loopback, by the first process of the new world, then gives up the right to do so again.
pub(crate) fn settle(policy: &Policy, uid: u32) -> Result<(), String> {
    let at = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    unshare(UnshareFlags::NEWNS).map_err(at("mount namespace"))?;
    arrange(policy)?;
    raise_loopback().map_err(at("loopback"))?;
    // Fewer process numbers are a limit that a fork bomb cannot outrun; kernels before 6.14 have one for all.
    let _ = fs::write(
        "/proc/sys/kernel/pid_max",
        policy.limits.processes.max(512).to_string(),
    );
    unshare(UnshareFlags::NEWUSER).map_err(at("user namespace"))?;
    let user = if uid == 0 { ORDINARY_USER } else { uid };
    map_user((user, 0), (user, 0)).map_err(at("user"))?;
    give_up_capabilities().map_err(|error| format!("capabilities: {error}"))
}

/// From here on this process has no power beyond its user's.
pub(crate) fn give_up_capabilities() -> rustix::io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none)
}

#[expect(
    deprecated,
    reason = "its safe form; what it warns of is sharing file descriptors, which is not asked for here"
)]
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

fn map_user(user: (u32, u32), group: (u32, u32)) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{} {} 1", user.0, user.1))?;
    fs::write("/proc/self/gid_map", format!("{} {} 1", group.0, group.1))
}

/// Opened before anything is covered, so that it can be put back.
struct Kept {
    path: PathBuf,
    folder: OwnedFd,
}

fn keep<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<Kept>, String> {
    let opened = paths.into_iter().map(|path| {
        let folder = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        folder
            .map(|folder| Kept {
                path: path.clone(),
                folder,
            })
            .map_err(|error| format!("{}: {error}", path.display()))
    });
    opened.collect()
}

fn arrange(policy: &Policy) -> Result<(), String> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", slave).map_err(|error| failed(Path::new("/"), &error))?;
    let exposed = keep(&policy.exposed)?;
    let readable = keep(&policy.readable)?;
    let proc_flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", proc_flags, None).map_err(|error| failed(Path::new("/proc"), &error))?;
    for path in private_folders() {
        cover(&path, true).map_err(|error| failed(&path, &error))?;
    }
    for path in services(policy).iter().chain(&policy.hidden) {
        // Not there, or inside one that is covered already.
        if path.exists() {
            cover(path, false).map_err(|error| failed(path, &error))?;
        }
    }
    for kept in exposed.iter().chain(&readable) {
        put_back(kept).map_err(|error| failed(&kept.path, &error))?;
    }
    sys::set_read_only(Path::new("/"), true).map_err(|error| failed(Path::new("/"), &error))?;
    let writable = exposed
        .iter()
        .map(|kept| kept.path.clone())
        .chain(private_folders());
    for path in writable.chain(["/proc".into()]) {
        sys::set_read_only(&path, false).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

/// Those that are here and are folders of their own.
pub(crate) fn private_folders() -> impl Iterator<Item = PathBuf> {
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    PRIVATE.iter().map(PathBuf::from).filter(is_folder)
}

/// Some systems keep their programs there as well; then it stays.
fn services(policy: &Policy) -> Option<PathBuf> {
    let path = policy.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or("", |(_, value)| value);
    let has_programs = std::env::split_paths(path).any(|folder| {
        folder
            .canonicalize()
            .is_ok_and(|folder| folder.starts_with(SERVICES))
    });
    (!has_programs).then(|| PathBuf::from(SERVICES))
}

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

fn cover(path: &Path, is_private: bool) -> io::Result<()> {
    if path.is_dir() {
        let options = if is_private {
            PRIVATE_SIZE
        } else {
            "size=1m,mode=0755"
        };
        let options = std::ffi::CString::new(options)?;
        Ok(mount(
            "tmpfs",
            path,
            "tmpfs",
            MountFlags::NOSUID | MountFlags::NODEV,
            &*options,
        )?)
    } else {
        Ok(mount_bind("/dev/null", path)?)
    }
}

fn put_back(kept: &Kept) -> io::Result<()> {
    // Nothing stands there any more when a folder around it was covered.
    if !kept.path.exists() {
        fs::create_dir_all(&kept.path)?;
    }
    let source = format!("/proc/self/fd/{}", kept.folder.as_raw_fd());
    Ok(mount_bind_recursive(source, &kept.path)?)
}

/// `RTM_NEWLINK` for the first interface, up. The route protocol is the first and needs no name.
fn raise_loopback() -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut message = Vec::new();
    // Length, type, request + acknowledge, sequence, sender.
    message.extend(32_u32.to_ne_bytes());
    message.extend(16_u16.to_ne_bytes());
    message.extend(5_u16.to_ne_bytes());
    message.extend([0; 8]);
    // Family and kind, interface 1, flags: up, mask: up.
    message.extend([0; 4]);
    message.extend([1_u32, 1, 1].map(u32::to_ne_bytes).concat());
    sendto(
        &socket,
        &message,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut answer = [0; 64];
    let (count, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    let code = answer
        .get(16..20)
        .filter(|_| count >= 20)
        .and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Makes the kernel choose this process and its children first when memory runs out.
pub(crate) fn prefer_to_kill() {
    // Without it the limits of the pod decide alone.
    let _ = File::options()
        .write(true)
        .open("/proc/self/oom_score_adj")
        .and_then(|mut file| file.write_all(b"900"));
}
