//! Free space on the disks of mirrors and workspaces.

use std::path::Path;

/// Space on a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Space that this user can still fill, in bytes.
    pub free: u64,
    /// Space that is used, in bytes.
    pub used: u64,
}

impl DiskRoom {
    /// Measures the disk that holds a folder; `None` when it cannot be read.
    pub fn measure(folder: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(folder).ok()?;
        // `f_frsize` is the unit of the block counts; `f_bavail` leaves out the blocks that only root may
        // use.
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Self {
            free: bytes(disk.f_bavail),
            used: bytes(disk.f_blocks.saturating_sub(disk.f_bfree)),
        })
    }
}

/// Recognizes a full disk by an error message: programs like `git` pass no error code.
pub fn is_about_full_disk(words: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|full| words.contains(full))
}
