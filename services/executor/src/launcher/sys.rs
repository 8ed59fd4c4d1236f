//! System calls without a safe wrapper.
#![expect(
    unsafe_code,
    reason = "they take plain numbers, or a structure that outlives the call; each is checked by a test of the sandbox"
)]

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::process::Pid;

/// Forks this process. Returns the child's process id in the parent, and `None` in the child.
pub(crate) fn fork_process() -> io::Result<Option<Pid>> {
    // SAFETY: this program never starts a thread, so no lock is held forever in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Kills every process of the PID namespace except this one, which must be process 1.
pub(crate) fn kill_everything_else() {
    // SAFETY: two plain numbers. The result is ignored: no process may be left.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Kinds of System V objects, which outlive the processes that use them.
#[derive(Clone, Copy)]
pub(crate) enum SystemVKind {
    Memory,
    Semaphores,
    Messages,
}

impl SystemVKind {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Semaphores, Self::Messages];

    /// Path of the kernel's table of these objects.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Memory => "/proc/sysvipc/shm",
            Self::Semaphores => "/proc/sysvipc/sem",
            Self::Messages => "/proc/sysvipc/msg",
        }
    }
}

/// Removes an object. The error is ignored: the object may already be removed.
pub(crate) fn remove_shared(kind: SystemVKind, id: i32) {
    // SAFETY: plain numbers; `IPC_RMID` reads no structure.
    unsafe {
        match kind {
            SystemVKind::Memory => libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()),
            SystemVKind::Semaphores => libc::semctl(id, 0, libc::IPC_RMID),
            SystemVKind::Messages => libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()),
        }
    };
}

/// Marks every descriptor from 3 upward as close-on-exec. Closing them here would invalidate descriptors that
/// live objects own.
pub(crate) fn close_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: three plain numbers, no memory is touched.
    check_result(unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, flags) })
}

/// Sets attributes (`MOUNT_ATTR_…`) on the mount of a descriptor and on all mounts below it.
pub(crate) fn set_mount_attributes(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: path and attributes outlive the call, and the size is that of the attributes.
    check_result(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
}

/// Returns the user of a socket's peer. For a peer in another PID namespace the kernel returns process id 0,
/// which a safe wrapper treats as an error, so only the user is read.
pub(crate) fn peer_user(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).map_err(io::Error::other)?;
    // SAFETY: the structure and its length outlive the call, which writes at most that length.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    check_result(result.into()).map(|()| peer.uid)
}

/// Stop signals (SIGTERM, SIGINT), blocked in this thread and in every thread that it starts.
pub(crate) struct StopSignals(libc::sigset_t);

impl StopSignals {
    pub(crate) fn hold() -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the first call initializes the set before the others use it; no other memory is touched.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Self(set)
        }
    }

    /// Unblocks the signals in a process whose parent blocked them.
    pub(crate) fn release() {
        let held = Self::hold();
        // SAFETY: the set outlives the call.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const held.0, std::ptr::null_mut()) };
    }

    /// Blocks until one of the signals arrives. This also works for process 1 of a PID namespace, for which
    /// the kernel discards signals without a handler.
    pub(crate) fn wait(&self) {
        let mut signal = 0;
        // SAFETY: both outlive the call, which fails only for an invalid set.
        unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
    }
}

fn check_result(result: libc::c_long) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
