//! Protocol of the launcher on its standard input, a socket. The first frame is the policy. Each further
//! frame is a command, together with the descriptor of its output.
//!
//! A frame is a length (4 bytes, little endian) and a body of that many bytes of JSON. The launcher answers
//! when no process of the command is left: with the exit code, and with [`WAITS_FOR_NEXT`], or 0 when the
//! launcher ends.

use std::{io, path::PathBuf};

use serde::{Deserialize, Serialize};

/// Limit of a frame in bytes.
pub(crate) const MAX_FRAME: usize = 1 << 20;

/// Pseudo program: the launcher itself tests which of the following addresses (`IP:PORT`) it can reach, and
/// writes those. A program's name cannot contain this character.
pub(crate) const REACH: &str = "\0reach";

/// Pseudo program: the descriptor of the frame is a socket, which the command that follows gets as standard input
/// and output. Its standard error is the launcher's. A program's name cannot contain this character.
pub(crate) const DIALOG: &str = "\0dialog";

/// Second byte of the launcher's answer: it waits for the next command.
pub(crate) const WAITS_FOR_NEXT: u8 = 1;

/// Folders with programs, libraries and settings of the system, which commands may read. Of `/sys` only the
/// parts that language runtimes read to size themselves.
pub(crate) const SYSTEM: [&str; 15] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/etc",
    "/nix",
    "/gnu",
    "/snap",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
];

/// Confinement and context of one command.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LauncherPolicy {
    /// Working directory.
    pub(crate) directory: PathBuf,
    /// Complete environment of the command.
    pub(crate) environment: Vec<(String, String)>,
    /// Folders that the command may write to.
    pub(crate) writable: Vec<PathBuf>,
    /// Folders of the workspace that the command may read, at any path.
    pub(crate) readable: Vec<PathBuf>,
    /// Paths of the machine that the command may read. Other paths do not exist for it or cannot be opened.
    pub(crate) visible: Vec<PathBuf>,
    /// Folders and files inside visible ones that the command must not read.
    pub(crate) hidden: Vec<PathBuf>,
    /// Folders around the writable ones, each as one mount: a rename works only within one mount, so writable
    /// folders of the same workspace share it. A check sees its own folder in place of the workspace's.
    pub(crate) exposed: Vec<PathCover>,
    /// Folders that count towards the disk limit, as they are called outside of the mount namespace.
    pub(crate) measured: Vec<PathBuf>,
    /// Files and folders that the command sees at another path, in this order. Only with namespaces.
    #[serde(default)]
    pub(crate) covers: Vec<PathCover>,
    /// Resource limits.
    pub(crate) limits: CommandLimits,
    /// Disk space outside of the writable folders that counts towards their limit, in MiB.
    #[serde(default)]
    pub(crate) beside_mib: u64,
    /// Mechanisms of confinement.
    pub(crate) confinement: KernelConfinement,
    /// Folder for the control group; `None` to watch the process tree instead.
    pub(crate) cgroup: Option<CgroupSupport>,
    /// Port on the loopback interface of the namespace at which the launcher listens; it sends the listener
    /// to the executor. `None` for no port. Only with namespaces.
    #[serde(default, rename = "door")]
    pub(crate) egress_port: Option<u16>,
    /// User of the executor. The launcher sets it, because the user cannot be determined inside of
    /// namespaces.
    #[serde(default)]
    pub(crate) uid: u32,
}

/// A folder or file that a command sees in place of another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathCover {
    /// Path of the source.
    pub(crate) from: PathBuf,
    /// Path at which the command sees it.
    pub(crate) at: PathBuf,
    /// True when the command may write to it.
    pub(crate) writable: bool,
}

/// Encodes a value as a frame.
///
/// # Errors
/// Fails for a value above the limit, or one that is not JSON (a path that is not UTF-8).
pub(crate) fn encode_frame(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(value)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_FRAME);
    let length = length.ok_or_else(|| io::Error::other("too long for the launcher"))?;
    Ok([length.to_le_bytes().as_slice(), &body].concat())
}

/// Resource limits of a command with all of its descendants.
#[allow(
    unreachable_pub,
    reason = "the executor's settings offer it; the launcher, which has this file too, does not"
)]
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandLimits {
    /// Limit for the memory of the whole process tree, in MiB.
    pub memory_mib: u64,
    /// Limit of simultaneous processes and threads.
    pub processes: u64,
    /// Limit for all files in the writable folders and the workspace's git directory, in MiB.
    pub disk_mib: u64,
    /// Limit for a single file, in MiB.
    pub file_mib: u64,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self {
            memory_mib: 4096,
            processes: 2048,
            disk_mib: 8192,
            file_mib: 4096,
        }
    }
}

/// Kernel mechanisms in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelConfinement {
    /// Landlock ABI in use; 0 for none.
    ///
    /// The versions add: file access 1, moves between folders 2, truncation 3, ioctl on devices 5, signals
    /// and abstract sockets 6, named sockets 9. TCP rules (4) are not used: they match ports without
    /// addresses, so they would also block the loopback servers of tests.
    pub(crate) landlock: u32,
    /// Deny list of system calls.
    pub(crate) seccomp: bool,
    /// User, mount, process, network, IPC and host name namespaces.
    pub(crate) namespaces: bool,
}

impl KernelConfinement {
    /// Returns the oldest sufficient Landlock ABI. Namespaces isolate signals and abstract sockets, so ABI 2
    /// suffices with them; ABI 1 would forbid every move of a file between folders.
    pub(crate) const fn landlock_needed(self) -> u32 {
        if self.namespaces { 2 } else { 6 }
    }
}

/// Location of control groups, with the limits that they enforce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupSupport {
    /// Parent folder of the groups.
    pub(crate) folder: PathBuf,
    /// True when the kernel limits memory.
    pub(crate) memory: bool,
    /// True when the kernel limits the number of processes.
    pub(crate) processes: bool,
}

/// Result of probing this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SandboxProbe {
    /// Mechanisms that work.
    pub(crate) offers: KernelConfinement,
    /// Landlock version of the kernel; 0 for none.
    pub(crate) landlock_abi: u32,
    /// Writable cgroup v2 folder, if any.
    pub(crate) cgroup: Option<CgroupSupport>,
    /// Memory limit in bytes of the container, which all commands and the process that starts them share.
    pub(crate) memory_limit: Option<u64>,
    /// Process limit of this process's container.
    pub(crate) process_limit: Option<u64>,
    /// Reason why namespaces do not work.
    pub(crate) namespaces_problem: Option<String>,
    /// True when the kernel is gVisor.
    pub(crate) gvisor: bool,
    /// User of commands, as seen on the machine.
    pub(crate) uid: u32,
    /// Toolchains that commands can use.
    #[serde(default)]
    pub(crate) toolchain: InstalledToolchain,
}

/// Toolchains that commands can use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InstalledToolchain {
    /// Name of the operating system from `/etc/os-release`; empty if unknown.
    pub(crate) system: String,
    /// Names of common toolchain programs in the search path, sorted, with the version if the file's name
    /// contains it.
    pub(crate) programs: Vec<String>,
}
