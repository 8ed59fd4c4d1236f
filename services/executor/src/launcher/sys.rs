//! The system calls that no safe wrapper offers.
#![expect(
    unsafe_code,
    reason = "they take plain numbers, or a structure that outlives the call; each is checked by a test of the sandbox"
)]

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use rustix::process::Pid;

/// Splits this process; the child's number, nothing in the child.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this program never starts a thread, so the child finds no lock that nobody will open.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Kills every process of this world but this one, its first.
pub(crate) fn kill_everything_else() {
    // SAFETY: two plain numbers. That nothing was there to be killed is as good.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Objects of System V, which outlive the processes that share them.
#[derive(Clone, Copy)]
pub(crate) enum Shared {
    Memory,
    Semaphores,
    Messages,
}

impl Shared {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Semaphores, Self::Messages];

    /// Where the kernel lists them.
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Memory => "/proc/sysvipc/shm",
            Self::Semaphores => "/proc/sysvipc/sem",
            Self::Messages => "/proc/sysvipc/msg",
        }
    }
}

/// Takes one away; that it has gone already is as good.
pub(crate) fn remove_shared(kind: Shared, id: i32) {
    // SAFETY: plain numbers; removing takes no structure.
    unsafe {
        match kind {
            Shared::Memory => libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()),
            Shared::Semaphores => libc::semctl(id, 0, libc::IPC_RMID),
            Shared::Messages => libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()),
        }
    };
}

/// Makes every descriptor from 3 on close when this process becomes another program. Closing them here instead would
/// pull descriptors from under their owners.
pub(crate) fn close_on_exec() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: three plain numbers, no memory is touched.
    checked(unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, flags) })
}

/// Sets attributes (`MOUNT_ATTR_…`) on a mount that is held by a descriptor, and on all beneath it.
pub(crate) fn set_mount_attributes(mount: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: path and attributes live across the call, and the size is theirs.
    checked(unsafe {
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

fn checked(result: libc::c_long) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
