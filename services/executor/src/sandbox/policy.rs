//! What the launcher is told on its standard input, a socket: a frame with the policy, then for each command a frame
//! with its words and, beside it, the descriptor that its output goes to. A frame is its length (4 bytes, little endian)
//! and so many bytes of JSON. The launcher's answer to a command comes once no process of it is left: its exit code, and
//! [`WAITS_FOR_NEXT`] or, when the launcher ends, 0.

use std::{io, path::PathBuf};

use serde::{Deserialize, Serialize};

/// The largest frame, in bytes.
pub(crate) const MAX_FRAME: usize = 1 << 20;

/// In the place of a program: the launcher itself tries which of the addresses after it (`IP:PORT`) can be reached, and
/// writes those. No program's name holds this character.
pub(crate) const REACH: &str = "\0reach";

/// In the launcher's answer: it waits for the next command.
pub(crate) const WAITS_FOR_NEXT: u8 = 1;

/// Where systems keep their programs, libraries and settings; commands may read there. Of `/sys` no more than what
/// language runtimes look at to size themselves.
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

/// The bounds of one command.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Policy {
    /// Where it starts.
    pub(crate) directory: PathBuf,
    /// Its whole environment.
    pub(crate) environment: Vec<(String, String)>,
    /// Folders that it may write.
    pub(crate) writable: Vec<PathBuf>,
    /// The workspace's own folders that it may read, wherever they are.
    pub(crate) readable: Vec<PathBuf>,
    /// What it may read of the machine. What is not listed does not exist for it, or cannot be opened.
    pub(crate) visible: Vec<PathBuf>,
    /// Folders and files inside visible ones that it may not read.
    pub(crate) hidden: Vec<PathBuf>,
    /// The workspace's folders around the writable ones, each as one mount: a file can be renamed between writable
    /// folders inside the same one.
    pub(crate) exposed: Vec<PathBuf>,
    /// What it sees at another place than it lies, in this order; only with namespaces.
    #[serde(default)]
    pub(crate) covers: Vec<Cover>,
    /// What it may use.
    pub(crate) limits: Limits,
    /// Disk space beside the writable folders that counts with them, in MiB.
    #[serde(default)]
    pub(crate) beside_mib: u64,
    /// What confines it.
    pub(crate) confinement: Confinement,
    /// Where its control group is made; absent: its tree is watched instead.
    pub(crate) cgroup: Option<Cgroup>,
    /// Port on the world's own loopback at which the launcher listens and hands the listener out; absent: none. Only
    /// with namespaces.
    #[serde(default)]
    pub(crate) door: Option<u16>,
    /// The executor's user; the launcher fills it in, because inside namespaces nobody can tell.
    #[serde(default)]
    pub(crate) uid: u32,
}

/// A folder or file that a command sees at the place of another of the same kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cover {
    /// Where it lies.
    pub(crate) from: PathBuf,
    /// Where the command sees it.
    pub(crate) at: PathBuf,
    /// Whether the command may write it.
    pub(crate) writable: bool,
}

/// A value as a frame.
///
/// # Errors
/// A value above the largest frame, or one that is not JSON (a path that is not UTF-8).
pub(crate) fn frame(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(value)?;
    let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_FRAME);
    let length = length.ok_or_else(|| io::Error::other("too long for the launcher"))?;
    Ok([length.to_le_bytes().as_slice(), &body].concat())
}

/// What a command and everything it starts may use.
#[allow(
    unreachable_pub,
    reason = "the executor's settings offer it; the launcher, which has this file too, does not"
)]
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Memory of the whole process tree, in MiB.
    pub memory_mib: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// All files in the folders it may write, and the workspace's git directory, in MiB.
    pub disk_mib: u64,
    /// The largest single file, in MiB.
    pub file_mib: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_mib: 4096,
            processes: 2048,
            disk_mib: 8192,
            file_mib: 4096,
        }
    }
}

/// Which mechanisms of the kernel are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// The Landlock ABI whose rules are used; 0: none. File access from 1, moves between folders 2, truncation 3,
    /// ioctl on devices 5, signals and abstract sockets 6, named sockets 9. TCP rules (4) are not used: they know
    /// ports and no addresses, so they would close the loopback servers of tests as well.
    pub(crate) landlock: u32,
    /// The deny list of system calls.
    pub(crate) seccomp: bool,
    /// User, mount, process, network and IPC namespaces.
    pub(crate) namespaces: bool,
}

impl Confinement {
    /// The oldest Landlock ABI with which nothing is missing: namespaces keep signals and abstract sockets inside by
    /// themselves, but ABI 1 would forbid every move of a file between folders.
    pub(crate) const fn landlock_needed(self) -> u32 {
        if self.namespaces { 2 } else { 6 }
    }
}

/// Where control groups can be made, and what they can limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cgroup {
    /// Groups are made in it.
    pub(crate) folder: PathBuf,
    /// Memory is limited by the kernel.
    pub(crate) memory: bool,
    /// Processes are limited by the kernel.
    pub(crate) processes: bool,
}

/// What the launcher answers when it is asked what this machine offers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Probe {
    /// What works here.
    pub(crate) offers: Confinement,
    /// Version of Landlock in this kernel, 0 when there is none.
    pub(crate) landlock_abi: u32,
    /// Control groups of version 2, where they can be written.
    pub(crate) cgroup: Option<Cgroup>,
    /// Bytes of memory that all commands together may use, with the process that starts them: the limit of its container.
    pub(crate) memory_limit: Option<u64>,
    /// How many processes this process's container may have.
    pub(crate) process_limit: Option<u64>,
    /// Why namespaces are not offered.
    pub(crate) namespaces_problem: Option<String>,
    /// Whether a user-space kernel lies beneath (gVisor).
    pub(crate) gvisor: bool,
    /// User that commands run as, as the machine sees it.
    pub(crate) uid: u32,
    /// What commands find to work with.
    #[serde(default)]
    pub(crate) toolchain: Toolchain,
}

/// What there is to work with where commands run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Toolchain {
    /// The system, as it calls itself; empty: it does not say.
    pub(crate) system: String,
    /// Programs of usual toolchains in the search path, in their order; with the version where the name of the file has it.
    pub(crate) programs: Vec<String>,
}
