//! Contents of Git LFS files beside the mirrors' objects, with a limit for all mirrors together.
//!
//! A content belongs to the mirror of its repository: who can read one repository must not get the contents of another
//! one by their names. It goes with its mirror when the disk is full.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use tempfile::NamedTempFile;

use crate::lfs_pointer::{LfsOid, LfsPointer};

// Folder of unfinished downloads, and the time after which one belongs to a killed process.
const INCOMING: &str = "lfs/incoming";
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
// Folder of the contents, in the layout of git-lfs: `ab/cd/<oid>`.
const OBJECTS: &str = "lfs/objects";

/// Contents of all mirrors below one folder. Its methods block.
#[derive(Debug)]
pub struct LfsStore {
    mirrors: PathBuf,
    max_bytes: u64,
    /// Number of holds by content.
    held: Mutex<HashMap<PathBuf, usize>>,
}

/// Defect of a received content. It is not stored.
#[derive(Debug, thiserror::Error)]
pub enum LfsDefect {
    /// More bytes came than the pointer names.
    #[error("it has more than the {0} bytes of its pointer")]
    TooLong(u64),
    /// The content ended early.
    #[error("it ended after {received} of {size} bytes")]
    TooShort {
        /// Received bytes.
        received: u64,
        /// Bytes that the pointer names.
        size: u64,
    },
    /// The content has another hash than the pointer.
    #[error("its SHA-256 is not that of its pointer")]
    WrongHash,
    /// The disk cannot be written.
    #[error("it cannot be stored")]
    Disk(#[from] io::Error),
}

/// Number and bytes of evicted contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LfsEviction {
    /// Number of contents.
    pub contents: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl LfsStore {
    /// Creates the store of the mirrors below a folder, with a limit for the contents of all of them.
    pub fn new(mirrors: PathBuf, max_bytes: u64) -> Self {
        Self {
            mirrors,
            max_bytes,
            held: Mutex::default(),
        }
    }

    /// Returns the path of a stored content and marks it as used.
    pub fn find(&self, mirror: &Path, pointer: &LfsPointer) -> Option<PathBuf> {
        let path = content_path(mirror, &pointer.oid);
        let is_whole =
            fs::symlink_metadata(&path).is_ok_and(|found| found.is_file() && found.len() == pointer.size);
        if !is_whole {
            return None;
        }
        // A failure only makes an earlier eviction likely.
        let _ = fs::File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(path)
    }

    /// Begins to receive a content.
    ///
    /// # Errors
    /// The disk cannot be written.
    pub fn receive(&self, mirror: &Path, pointer: &LfsPointer) -> io::Result<LfsReceipt> {
        let incoming = mirror.join(INCOMING);
        fs::create_dir_all(&incoming)?;
        Ok(LfsReceipt {
            file: NamedTempFile::new_in(incoming)?,
            hash: Context::new(&SHA256),
            received: 0,
            pointer: pointer.clone(),
            target: content_path(mirror, &pointer.oid),
        })
    }

    /// Keeps contents of a mirror from eviction, also those that arrive later.
    pub fn hold(self: &Arc<Self>, mirror: &Path, pointers: impl IntoIterator<Item = LfsPointer>) -> LfsHold {
        let pointers: BTreeMap<LfsOid, u64> = pointers
            .into_iter()
            .map(|pointer| (pointer.oid, pointer.size))
            .collect();
        let mut held = self.held.lock();
        for oid in pointers.keys() {
            *held.entry(content_path(mirror, oid)).or_default() += 1;
        }
        drop(held);
        LfsHold {
            store: Arc::clone(self),
            mirror: mirror.to_owned(),
            pointers,
        }
    }

    /// Deletes contents that no caller holds, least recently used first, until all of them fit the limit. Deletes
    /// abandoned downloads, too.
    pub fn evict(&self) -> LfsEviction {
        let mut found = Vec::new();
        for mirror in list_folders(&self.mirrors)
            .iter()
            .flat_map(|owner| list_folders(owner))
        {
            remove_abandoned(&mirror.join(INCOMING));
            collect_contents(&mirror, &mut found);
        }
        let mut total: u64 = found.iter().map(|content| content.bytes).sum();
        found.sort_by_key(|content| content.used);
        let mut evicted = LfsEviction::default();
        // Locked until the end, so that no content goes that a caller holds in the meantime.
        let held = self.held.lock();
        for content in found {
            if total <= self.max_bytes {
                break;
            }
            if !held.contains_key(&content.path) && fs::remove_file(&content.path).is_ok() {
                total = total.saturating_sub(content.bytes);
                evicted.contents += 1;
                evicted.bytes += content.bytes;
            }
        }
        evicted
    }
}

/// Content that is being received.
pub struct LfsReceipt {
    file: NamedTempFile,
    hash: Context,
    received: u64,
    pointer: LfsPointer,
    target: PathBuf,
}

impl LfsReceipt {
    /// Appends received bytes. Blocks.
    ///
    /// # Errors
    /// [`LfsDefect`] when the content is longer than its pointer says, or the disk cannot be written.
    pub fn write(&mut self, chunk: &[u8]) -> Result<(), LfsDefect> {
        self.received += chunk.len() as u64;
        if self.received > self.pointer.size {
            return Err(LfsDefect::TooLong(self.pointer.size));
        }
        self.hash.update(chunk);
        Ok(self.file.write_all(chunk)?)
    }

    /// Stores the content if it is the one of its pointer. Blocks.
    ///
    /// # Errors
    /// [`LfsDefect`]; nothing is stored then.
    pub fn finish(self) -> Result<(), LfsDefect> {
        let Self {
            file,
            hash,
            received,
            pointer,
            target,
        } = self;
        let size = pointer.size;
        if received < size {
            return Err(LfsDefect::TooShort { received, size });
        }
        if HEXLOWER.encode(hash.finish().as_ref()) != pointer.oid.as_str() {
            return Err(LfsDefect::WrongHash);
        }
        // A content counts by its name and size, so its bytes must be on the disk before its name.
        file.as_file().sync_all()?;
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Hold on contents. They stay in the store until it is dropped.
#[derive(Debug)]
pub struct LfsHold {
    store: Arc<LfsStore>,
    mirror: PathBuf,
    pointers: BTreeMap<LfsOid, u64>,
}

impl LfsHold {
    /// Returns the names of the held contents that are stored. Blocks.
    pub fn stored(&self) -> BTreeSet<LfsOid> {
        let is_stored = |(oid, size): &(&LfsOid, &u64)| {
            let pointer = LfsPointer {
                oid: (*oid).clone(),
                size: **size,
            };
            self.store.find(&self.mirror, &pointer).is_some()
        };
        self.pointers
            .iter()
            .filter(is_stored)
            .map(|(oid, _)| oid.clone())
            .collect()
    }

    /// Size of a held content; `None` for another one.
    pub fn size_of(&self, oid: &LfsOid) -> Option<u64> {
        self.pointers.get(oid).copied()
    }

    /// Reads a held content. Blocks.
    ///
    /// # Errors
    /// The content is not held, or cannot be read.
    pub fn read(&self, oid: &LfsOid) -> io::Result<Vec<u8>> {
        if self.pointers.contains_key(oid) {
            fs::read(content_path(&self.mirror, oid))
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }
}

impl Drop for LfsHold {
    fn drop(&mut self) {
        let mut held = self.store.held.lock();
        for oid in self.pointers.keys() {
            let path = content_path(&self.mirror, oid);
            if let Some(count) = held.get_mut(&path) {
                *count -= 1;
                if *count == 0 {
                    held.remove(&path);
                }
            }
        }
    }
}

struct StoredContent {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

fn content_path(mirror: &Path, oid: &LfsOid) -> PathBuf {
    let oid = oid.as_str();
    let (first, second) = (
        oid.get(..2).unwrap_or_default(),
        oid.get(2..4).unwrap_or_default(),
    );
    mirror.join(OBJECTS).join(first).join(second).join(oid)
}

fn collect_contents(mirror: &Path, found: &mut Vec<StoredContent>) {
    let folders = list_folders(&mirror.join(OBJECTS));
    for folder in folders.iter().flat_map(|folder| list_folders(folder)) {
        for path in list_entries(&folder) {
            if let Ok(metadata) = fs::symlink_metadata(&path)
                && metadata.is_file()
            {
                found.push(StoredContent {
                    path,
                    bytes: metadata.len(),
                    used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                });
            }
        }
    }
}

fn remove_abandoned(incoming: &Path) {
    for path in list_entries(incoming) {
        let changed = fs::symlink_metadata(&path).and_then(|found| found.modified());
        let is_abandoned = changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > ABANDONED_AFTER));
        if is_abandoned {
            // The next eviction tries again.
            let _ = fs::remove_file(&path);
        }
    }
}

fn list_folders(folder: &Path) -> Vec<PathBuf> {
    let mut found = list_entries(folder);
    found.retain(|path| path.is_dir());
    found
}

/// Entries of a folder; empty when it cannot be read.
fn list_entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer_of(content: &[u8]) -> LfsPointer {
        LfsPointer {
            oid: LfsOid::of(content),
            size: content.len() as u64,
        }
    }

    fn put(store: &LfsStore, mirror: &Path, content: &[u8]) -> LfsPointer {
        let pointer = pointer_of(content);
        let mut receipt = store.receive(mirror, &pointer).unwrap();
        content.chunks(3).for_each(|chunk| receipt.write(chunk).unwrap());
        receipt.finish().unwrap();
        pointer
    }

    #[test]
    fn content_is_stored_for_its_mirror_alone() {
        let folder = tempfile::TempDir::new().unwrap();
        let store = LfsStore::new(folder.path().to_owned(), 100);
        let (shop, other) = (
            folder.path().join("acme/shop.git"),
            folder.path().join("acme/other.git"),
        );
        let pointer = put(&store, &shop, b"content");
        assert_eq!(
            fs::read(store.find(&shop, &pointer).unwrap()).unwrap(),
            b"content"
        );
        assert_eq!(store.find(&other, &pointer), None);
        // A file of another size was damaged.
        fs::write(store.find(&shop, &pointer).unwrap(), b"cont").unwrap();
        assert_eq!(store.find(&shop, &pointer), None);
    }

    #[test]
    fn defective_content_is_not_stored() {
        let folder = tempfile::TempDir::new().unwrap();
        let store = LfsStore::new(folder.path().to_owned(), 100);
        let mirror = folder.path().join("acme/shop.git");
        let pointer = pointer_of(b"content");
        let receive = |content: &[u8]| {
            let mut receipt = store.receive(&mirror, &pointer)?;
            receipt.write(content)?;
            receipt.finish()
        };
        assert!(matches!(receive(b"content!"), Err(LfsDefect::TooLong(7))));
        assert!(matches!(
            receive(b"cont"),
            Err(LfsDefect::TooShort { received: 4, size: 7 })
        ));
        assert!(matches!(receive(b"CONTENT"), Err(LfsDefect::WrongHash)));
        assert_eq!(store.find(&mirror, &pointer), None);
        assert_eq!(list_entries(&mirror.join(INCOMING)), Vec::<PathBuf>::new());
    }

    #[test]
    fn least_recently_used_content_is_evicted() {
        let folder = tempfile::TempDir::new().unwrap();
        let store = Arc::new(LfsStore::new(folder.path().to_owned(), 4));
        let mirror = folder.path().join("acme/shop.git");
        let [old, held, new] = [b"aa", b"bb", b"cc"].map(|content| put(&store, &mirror, content));
        for (at, pointer) in [&held, &old, &new].into_iter().enumerate() {
            let file = fs::File::open(store.find(&mirror, pointer).unwrap()).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(at as u64))
                .unwrap();
        }
        let hold = store.hold(&mirror, [held.clone()]);
        assert_eq!(
            store.evict(),
            LfsEviction {
                contents: 1,
                bytes: 2
            }
        );
        assert!(!content_path(&mirror, &old.oid).exists() && content_path(&mirror, &new.oid).exists());
        assert_eq!(hold.stored(), BTreeSet::from([held.oid.clone()]));
        assert_eq!(hold.read(&held.oid).unwrap(), b"bb");
        assert!(hold.read(&new.oid).is_err());
        drop(hold);
        assert!(store.held.lock().is_empty());
    }
}
