//! Copies between untrusted folders. No symbolic link is followed on either side, and links are copied as
//! links.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::{File, Permissions},
    io::{self, Read},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, PermissionsExt},
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps, mkdirat, openat2, statat, unlinkat},
    io::Errno,
};

use crate::sandbox::PLAIN;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);
/// Limit of nested folders; each level holds a few descriptors.
const MAX_DEPTH: usize = 100;
/// Limit of files and links in one copy.
const MAX_FILES: u64 = 1_000_000;

/// Files that a copy omits, and their folders.
#[derive(Default)]
pub(crate) struct KnownFiles {
    files: HashSet<PathBuf>,
    folders: HashSet<PathBuf>,
}

impl KnownFiles {
    /// Creates the set from paths of files.
    pub(super) fn new<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Self {
        let mut known = Self::default();
        for path in paths {
            let folders = path
                .ancestors()
                .skip(1)
                .take_while(|folder| *folder != Path::new(""));
            for folder in folders {
                if !known.folders.insert(folder.to_owned()) {
                    break;
                }
            }
            known.files.insert(path.clone());
        }
        known
    }
}

/// Number of files and links, without folders, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileAmount {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Entry of a folder to copy.
#[derive(Clone, Copy)]
struct CopyEntry<'e> {
    from: &'e OwnedFd,
    to: &'e OwnedFd,
    name: &'e OsStr,
    path: &'e Path,
    /// True below a folder that existed, so that the entry is a topmost one.
    is_noted: bool,
}

/// Copy of all files in a folder except known ones.
pub(super) struct FolderCopy<'a> {
    pub(super) known: &'a KnownFiles,
    pub(super) max_bytes: u64,
    /// Amount of copied files.
    pub(super) copied: FileAmount,
    /// Amount of omitted files, because they are known.
    pub(super) left_out: FileAmount,
    /// Topmost paths that the copy created.
    pub(super) made: Vec<PathBuf>,
}

impl<'a> FolderCopy<'a> {
    pub(super) fn new(known: &'a KnownFiles, max_bytes: u64) -> Self {
        Self {
            known,
            max_bytes,
            copied: FileAmount::default(),
            left_out: FileAmount::default(),
            made: Vec::new(),
        }
    }

    /// Copies with modes and modification times. Only files, links and folders are copied.
    ///
    /// # Errors
    /// Fails when the disk reports an error, a path exists already, or a limit is exceeded. Files that were
    /// created until then stay; `made` lists them.
    pub(super) fn run(&mut self, from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
        self.folder(from, to, Path::new(""), true, 0)
    }

    fn folder(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &Path,
        is_noted: bool,
        depth: usize,
    ) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::Error::other(format!("{} is nested too deep", path.display())));
        }
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let path = path.join(name);
            let item = CopyEntry {
                from,
                to,
                name,
                path: &path,
                is_noted,
            };
            let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.inner(item, depth)?,
                FileType::RegularFile | FileType::Symlink if self.known.files.contains(&path) => {
                    self.left_out.files += 1;
                    self.left_out.bytes += u64::try_from(stat.st_size).unwrap_or_default();
                }
                FileType::RegularFile => self.file(item)?,
                FileType::Symlink => self.link(item)?,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => {}
            }
        }
        Ok(())
    }

    fn inner(&mut self, item: CopyEntry<'_>, depth: usize) -> io::Result<()> {
        let CopyEntry { to, name, path, .. } = item;
        let inner_from = openat2(item.from, name, FOLDER, Mode::empty(), PLAIN)?;
        // Private and writable until its content is copied; `copy_attributes` sets the final mode.
        let is_new = match mkdirat(to, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        if is_new {
            self.note(item);
        }
        let inner_to = openat2(to, name, FOLDER, Mode::empty(), PLAIN)?;
        let before = self.copied.files;
        self.folder(&inner_from, &inner_to, path, item.is_noted && !is_new, depth + 1)?;
        // A new folder with known files only is not a result of setup, so it is removed.
        if is_new && self.copied.files == before && self.known.folders.contains(path) {
            // The error is ignored: a folder that contains empty folders is kept.
            let _ = unlinkat(to, name, AtFlags::REMOVEDIR);
        } else if is_new {
            copy_attributes(&File::from(inner_to), &File::from(inner_from))?;
        }
        Ok(())
    }

    fn file(&mut self, item: CopyEntry<'_>) -> io::Result<()> {
        let CopyEntry { from, to, name, .. } = item;
        // `O_NONBLOCK`, because a command could replace the file by a pipe in the meantime.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let source = File::from(openat2(from, name, flags, Mode::empty(), PLAIN)?);
        let size = source.metadata()?.len();
        // Counted before the copy, so that one large file cannot exceed the limit.
        self.count(size)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = File::from(openat2(to, name, flags, Mode::from_raw_mode(0o600), PLAIN)?);
        self.note(item);
        // Shares blocks where the file system supports it. A hard link is impossible: a later write would
        // change the original.
        if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
            io::copy(&mut (&source).take(size), &mut &target)?;
        }
        copy_attributes(&target, &source)
    }

    fn link(&mut self, item: CopyEntry<'_>) -> io::Result<()> {
        let target = rustix::fs::readlinkat(item.from, item.name, Vec::new())?;
        self.count(target.as_bytes().len() as u64)?;
        rustix::fs::symlinkat(&target, item.to, item.name)?;
        self.note(item);
        Ok(())
    }

    /// Records a created path if it is a topmost one.
    fn note(&mut self, item: CopyEntry<'_>) {
        if item.is_noted {
            self.made.push(item.path.to_owned());
        }
    }

    fn count(&mut self, bytes: u64) -> io::Result<()> {
        self.copied.files += 1;
        self.copied.bytes += bytes;
        if self.copied.files > MAX_FILES || self.copied.bytes > self.max_bytes {
            return Err(io::Error::other("there is more than may be kept"));
        }
        Ok(())
    }
}

/// Opens a folder to copy from or to.
///
/// # Errors
/// Fails for a path that is not a folder, or is a symbolic link.
pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, FOLDER, Mode::empty())?)
}

/// Copies the mode, without set-user-ID and similar bits, and the modification time, which build tools
/// compare.
fn copy_attributes(target: &File, like: &File) -> io::Result<()> {
    let metadata = like.metadata()?;
    target.set_permissions(Permissions::from_mode(metadata.mode() & 0o777))?;
    let time = Timespec {
        tv_sec: metadata.mtime(),
        tv_nsec: metadata.mtime_nsec(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::futimens(target, &times)?)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use super::*;

    struct World {
        outer: tempfile::TempDir,
        from: OwnedFd,
        to: OwnedFd,
    }

    fn build_world() -> World {
        let outer = tempfile::TempDir::new().unwrap();
        let made = |name: &str| {
            fs::create_dir(outer.path().join(name)).unwrap();
            open_folder(&outer.path().join(name)).unwrap()
        };
        let (from, to) = (made("from"), made("to"));
        World { outer, from, to }
    }

    impl World {
        fn copy(&self, known: &[&str], max_bytes: u64) -> (io::Result<()>, FileAmount, Vec<PathBuf>) {
            let known: Vec<PathBuf> = known.iter().map(PathBuf::from).collect();
            let known = KnownFiles::new(known.iter());
            let mut copy = FolderCopy::new(&known, max_bytes);
            let done = copy.run(&self.from, &self.to);
            (done, copy.copied, copy.made)
        }
    }

    #[test]
    fn copy_keeps_modes_omits_known_files() {
        let world = build_world();
        let (from, to) = (world.outer.path().join("from"), world.outer.path().join("to"));
        fs::create_dir_all(from.join("src/gen/empty")).unwrap();
        fs::create_dir_all(from.join("only/known")).unwrap();
        fs::write(from.join("src/main"), "known").unwrap();
        fs::write(from.join("only/known/file"), "known").unwrap();
        fs::write(from.join("src/gen/tool"), "#!").unwrap();
        fs::set_permissions(from.join("src/gen/tool"), Permissions::from_mode(0o4755)).unwrap();
        symlink("/etc/passwd", from.join("out")).unwrap();
        let old = File::options()
            .write(true)
            .open(from.join("src/gen/tool"))
            .unwrap();
        old.set_modified(std::time::UNIX_EPOCH).unwrap();
        let (done, copied, made) = world.copy(&["src/main", "only/known/file"], 100);
        done.unwrap();
        assert_eq!(copied, FileAmount { files: 2, bytes: 13 });
        assert_eq!(fs::read_link(to.join("out")).unwrap(), Path::new("/etc/passwd"));
        let tool = fs::metadata(to.join("src/gen/tool")).unwrap();
        assert_eq!((tool.mode() & 0o7777, tool.mtime()), (0o755, 0));
        assert!(to.join("src/gen/empty").is_dir() && !to.join("src/main").exists());
        assert!(!to.join("only").exists());
        assert_eq!(made.len(), 3, "{made:?}");
    }

    #[test]
    fn copy_follows_no_folder_link() {
        let world = build_world();
        fs::create_dir(world.outer.path().join("from/dir")).unwrap();
        fs::write(world.outer.path().join("from/dir/file"), "x").unwrap();
        fs::create_dir(world.outer.path().join("elsewhere")).unwrap();
        symlink("../elsewhere", world.outer.path().join("to/dir")).unwrap();
        assert!(world.copy(&[], 100).0.is_err());
        assert_eq!(
            fs::read_dir(world.outer.path().join("elsewhere"))
                .unwrap()
                .count(),
            0
        );
    }

    #[test]
    fn copy_above_limit_lists_created_paths() {
        let world = build_world();
        fs::create_dir(world.outer.path().join("from/dir")).unwrap();
        fs::write(world.outer.path().join("from/dir/file"), "0123456789").unwrap();
        let (done, _, made) = world.copy(&[], 9);
        assert!(done.is_err());
        assert_eq!(made, [PathBuf::from("dir")]);
    }

    #[test]
    fn copy_skips_pipes_without_blocking() {
        let world = build_world();
        let pipe = world.outer.path().join("from/pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        world.copy(&[], 9).0.unwrap();
        assert_eq!(fs::read_dir(world.outer.path().join("to")).unwrap().count(), 0);
    }
}
