//! Resource usage of a process tree, read from `/proc`.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::{fs::statvfs, process::Pid};

use crate::sys::SystemVKind;

/// Limit of files that are counted one by one.
const MAX_ENTRIES: usize = 2_000_000;
/// Estimated kernel memory of a file in memory in addition to its content, in bytes.
const FILE_COST: u64 = 1024;
/// Names of mappings that are also counted by other means: by open descriptors, and by the System V table.
const IN_MEMORY: &str = "/memfd:";
const SYSTEM_V: &str = "/SYSV";

/// Returns a field of `/proc/<pid>/stat`, counted from the field after the process name.
pub(crate) fn stat_field(pid: Pid, index: usize) -> Option<u64> {
    let stat = fs::read_to_string(process_file(pid, "stat")).ok()?;
    // The process name may contain spaces and parentheses, so the fields begin after the last parenthesis.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(index)?
        .parse()
        .ok()
}

fn process_file(pid: Pid, name: &str) -> String {
    format!("/proc/{}/{name}", pid.as_raw_nonzero())
}

pub(crate) fn count_threads(pid: Pid) -> Option<u64> {
    stat_field(pid, 17)
}

/// Number of processes and threads of a user.
pub(crate) fn count_user_threads(user: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let own = entries.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == user));
    let numbers = own.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter_map(|number| count_threads(Pid::from_raw(number)?))
        .sum()
}

/// Resident memory of a process in bytes. Shared pages count for each process that maps them.
pub(crate) fn resident_bytes(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(process_file(pid, "statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Identity of a file, independent of its name: device and inode.
pub(crate) type FileId = (u64, u64);

/// Memory of a process in bytes, with its share of shared pages.
///
/// Mappings of files in memory that are counted elsewhere are left out: those in `counted`, System V objects,
/// and all files on the devices of `folders`.
pub(crate) fn own_memory(pid: Pid, counted: &HashSet<FileId>, folders: &HashSet<u64>) -> Option<u64> {
    let text = fs::read_to_string(process_file(pid, "smaps")).ok()?;
    Some(sum_mappings(&text, |mapping| {
        mapping.name.starts_with(SYSTEM_V)
            || folders.contains(&mapping.file.0)
            || (mapping.name.starts_with(IN_MEMORY) && counted.contains(&mapping.file))
    }))
}

struct MemoryMapping<'a> {
    file: FileId,
    name: &'a str,
}

impl<'a> MemoryMapping<'a> {
    /// Parses a heading of `/proc/<pid>/smaps`: `start-end rights offset major:minor inode   name`.
    fn parse(line: &'a str) -> Option<Self> {
        // The lines below a heading begin with an uppercase letter; the heading begins with a hexadecimal
        // address.
        line.split_once('-')
            .filter(|_| !line.starts_with(char::is_uppercase))?;
        let mut fields = line.split_ascii_whitespace().skip(3);
        let (major, minor) = fields.next()?.split_once(':')?;
        let number = |text| u32::from_str_radix(text, 16).ok();
        let device = rustix::fs::makedev(number(major)?, number(minor)?);
        Some(Self {
            file: (device, fields.next()?.parse().ok()?),
            name: fields.next().unwrap_or_default(),
        })
    }
}

/// Sums the proportional set sizes of the mappings for which `is_left_out` is false, in bytes.
fn sum_mappings(text: &str, is_left_out: impl Fn(&MemoryMapping<'_>) -> bool) -> u64 {
    let (mut total, mut counts) = (0, true);
    for line in text.lines() {
        if let Some(size) = line.strip_prefix("Pss:") {
            let kib: Option<u64> = size
                .trim()
                .strip_suffix("kB")
                .and_then(|kib| kib.trim().parse().ok());
            total += kib.filter(|_| counts).unwrap_or(0) * 1024;
        } else if let Some(mapping) = MemoryMapping::parse(line) {
            counts = !is_left_out(&mapping);
        }
    }
    total
}

/// Files without a name that a process tree holds open.
#[derive(Default)]
pub(crate) struct UnnamedFiles {
    /// Bytes of files in memory (`memfd_create`), and their identities.
    pub(crate) memory: u64,
    pub(crate) in_memory: HashSet<FileId>,
    /// Device and bytes of each deleted file.
    deleted: Vec<(u64, u64)>,
}

impl UnnamedFiles {
    pub(crate) fn find(tree: &[Pid]) -> Self {
        let (mut found, mut seen) = (Self::default(), HashSet::new());
        for pid in tree {
            for entry in fs::read_dir(process_file(*pid, "fd"))
                .into_iter()
                .flatten()
                .filter_map(Result::ok)
            {
                // `metadata` follows the link to the open file.
                let Ok(file) = entry.path().metadata() else {
                    continue;
                };
                let id = (file.dev(), file.ino());
                // The walk over its folder counts a file that still has a name.
                if file.nlink() > 0 || !file.is_file() || !seen.insert(id) {
                    continue;
                }
                // `st_blocks` counts units of 512 bytes, whatever the block size (stat(2)).
                let bytes = file.blocks() * 512;
                let name = fs::read_link(entry.path()).unwrap_or_default();
                if name.to_string_lossy().starts_with(IN_MEMORY) {
                    found.memory += bytes;
                    found.in_memory.insert(id);
                } else {
                    found.deleted.push((file.dev(), bytes));
                }
            }
        }
        found
    }

    /// Bytes of deleted files on these devices.
    pub(crate) fn deleted_on(&self, devices: &HashSet<u64>) -> u64 {
        let on = self.deleted.iter().filter(|(device, _)| devices.contains(device));
        on.map(|(_, bytes)| bytes).sum()
    }
}

/// Devices on which the folders lie.
pub(crate) fn folder_devices(folders: &[PathBuf]) -> HashSet<u64> {
    let found = folders.iter().filter_map(|folder| folder.metadata().ok());
    found.map(|metadata| metadata.dev()).collect()
}

/// Bytes that whole file systems in memory take, including their inodes.
pub(crate) fn filesystem_usage(folders: &[PathBuf]) -> u64 {
    let taken = folders
        .iter()
        .filter_map(|folder| statvfs(folder).ok())
        .map(|disk| {
            let blocks = disk.f_blocks.saturating_sub(disk.f_bfree) * disk.f_frsize;
            blocks + disk.f_files.saturating_sub(disk.f_ffree) * FILE_COST
        });
    taken.sum()
}

/// System V shared memory: id and resident bytes of each object. With `user`, only objects that this user
/// created.
pub(crate) fn system_v(user: Option<u32>) -> Vec<(i32, u64)> {
    let table = fs::read_to_string(SystemVKind::Memory.table()).unwrap_or_default();
    parse_shared_memory(&table, user)
}

fn parse_shared_memory(table: &str, user: Option<u32>) -> Vec<(i32, u64)> {
    let mut lines = table
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let heading = lines.next().unwrap_or_default();
    let column = |name: &str| heading.iter().position(|found| *found == name);
    let (Some(id), Some(owner), Some(bytes)) = (column("shmid"), column("cuid"), column("rss")) else {
        return Vec::new();
    };
    let user = user.map(|user| user.to_string());
    lines
        .filter(|fields| {
            user.as_deref()
                .is_none_or(|user| fields.get(owner) == Some(&user))
        })
        .filter_map(|fields| Some((fields.get(id)?.parse().ok()?, fields.get(bytes)?.parse().ok()?)))
        .collect()
}

/// Bytes of all files below a folder. With `user`, only files that this user owns.
pub(crate) fn disk_used(folder: &Path, user: Option<u32>) -> u64 {
    let (mut queue, mut used, mut seen) = (vec![folder.to_owned()], 0, 0);
    while let Some(folder) = queue.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            seen += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if user.is_none_or(|user| user == metadata.uid()) {
                used += metadata.blocks() * 512;
            }
            if metadata.is_dir() && seen < MAX_ENTRIES {
                queue.push(entry.path());
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use rustix::fs::{major, minor};

    use super::*;

    /// Formats a device as in `/proc`.
    fn format_device(device: u64) -> String {
        format!("{:02x}:{:02x}", major(device), minor(device))
    }

    #[test]
    fn this_process_has_threads_and_memory() {
        let me = rustix::process::getpid();
        assert!(count_threads(me).unwrap() >= 1);
        assert!(resident_bytes(me).unwrap() > 1 << 19);
        assert!(own_memory(me, &HashSet::new(), &HashSet::new()).unwrap() > 0);
    }

    #[test]
    fn separately_counted_mappings_are_excluded() {
        let device = rustix::fs::makedev(0, 0x2b);
        let heading = |device: u64, inode: u64, name: &str| {
            format!(
                "7f00a000-7f00b000 rw-s 00000000 {} {inode}      {name}\n",
                format_device(device)
            )
        };
        let sizes = "Size:   4096 kB\nPss:    1024 kB\nPss_Dirty:   1024 kB\nVmFlags: rd wr sh\n";
        let text = [
            heading(1, 7, "/memfd:counted (deleted)"),
            heading(1, 8, "/memfd:not-seen (deleted)"),
            heading(1, 9, "/SYSV00000000 (deleted)"),
            heading(device, 3, "/tmp/file"),
            heading(5, 3, "/usr/lib/libc.so.6"),
            heading(0, 0, "[heap]"),
        ]
        .map(|heading| heading + sizes)
        .concat();
        let counted = HashSet::from([(1, 7)]);
        let folders = HashSet::from([device]);
        let found = sum_mappings(&text, |mapping| {
            mapping.name.starts_with(SYSTEM_V)
                || folders.contains(&mapping.file.0)
                || counted.contains(&mapping.file)
        });
        assert_eq!(found, 3 << 20);
    }

    #[test]
    fn system_v_count_includes_only_user() {
        let table = "       key      shmid perms  size  cpid  lpid nattch   uid   gid  cuid  cgid  rss  swap\n\
                              0          3   600  8192    11    12      1  1000  1000  1000  1000 4096     0\n\
                              0          4   666  8192    11    12      0     0     0     0     0 8192     0\n";
        assert_eq!(parse_shared_memory(table, None), [(3, 4096), (4, 8192)]);
        assert_eq!(parse_shared_memory(table, Some(1000)), [(3, 4096)]);
        assert!(parse_shared_memory("", None).is_empty());
    }

    #[test]
    fn open_deleted_file_counts_as_usage() {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 3 << 20]).unwrap();
        let found = UnnamedFiles::find(&[rustix::process::getpid()]);
        let device = HashSet::from([file.metadata().unwrap().dev()]);
        assert!(found.deleted_on(&device) >= 3 << 20);
        drop(file);
        assert!(UnnamedFiles::find(&[rustix::process::getpid()]).deleted_on(&device) < 3 << 20);
    }
}
