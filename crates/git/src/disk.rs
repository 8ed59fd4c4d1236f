//! Room on the disks that hold mirrors and workspaces.

use std::path::Path;

/// Room on a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Room that this user may still fill.
    pub free: u64,
    /// Room that is taken.
    pub used: u64,
}

impl DiskRoom {
    /// Room on the disk that holds a folder; nothing when it cannot be read.
    pub fn measure(folder: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Self {
            free: bytes(disk.f_bavail),
            used: bytes(disk.f_blocks.saturating_sub(disk.f_bfree)),
        })
    }
}

/// Recognizes a full disk by an error's words: programs like `git` pass on no code.
pub fn is_about_full_disk(words: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|full| words.contains(full))
}
