//! Examination of single paths of a worktree: reads files that changed and stores their contents.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use git2::{ObjectType, Oid};

use super::{
    byproduct,
    change_size::{ChangeSize, FileFit, UnstoredFiles},
    conversion::{ScanAttributes, StoredContent},
    folder_stats::FolderStats,
    omissions::OmittedPaths,
    root::{FileKind, FileStat, WorkspaceRoot},
    stat_cache::{KnownFile, StatCache},
    tracked_files::TreeFile,
};

/// Limit of a file in a tree, in bytes. A tracked file that grows beyond it keeps its committed content.
pub(super) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Limit of omitted files that are recorded by path.
const MAX_OMITTED: usize = 1000;

/// Reason why a file is not in the tree.
pub(super) enum ReadFailure {
    File(io::Error),
    Git(git2::Error),
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<git2::Error> for ReadFailure {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

/// Scan of some files.
pub(super) struct FileScan<'a> {
    root: &'a WorkspaceRoot,
    stats: FolderStats<'a>,
    git: &'a git2::Repository,
    attributes: ScanAttributes,
    old: &'a StatCache,
    size: ChangeSize,
    found: FileFindings,
}

/// Findings of a scan of some files.
#[derive(Default)]
pub(super) struct FileFindings {
    /// States and contents of the files.
    pub(super) cache: StatCache,
    /// All omitted paths, in the order of the scan.
    pub(super) omitted: OmittedPaths,
    /// Files whose state alone is the reason of their omission.
    pub(super) omitted_files: BTreeMap<PathBuf, String>,
    /// Bytes that each changed file adds to the workspace's own objects.
    pub(super) weights: BTreeMap<PathBuf, u64>,
    /// True when a file was omitted for another reason than its own state, or too many were.
    pub(super) is_obstructed: bool,
    /// Files that were not stored, because the change is too large.
    pub(super) unstored: UnstoredFiles,
}

impl<'a> FileScan<'a> {
    pub(super) fn new(
        root: &'a WorkspaceRoot,
        git: &'a git2::Repository,
        attributes: ScanAttributes,
        (old, size): (&'a StatCache, ChangeSize),
    ) -> Self {
        Self {
            root,
            stats: FolderStats::new(root),
            git,
            attributes,
            old,
            size,
            found: FileFindings::default(),
        }
    }

    /// Returns the findings about all examined paths.
    pub(super) fn finish(self) -> FileFindings {
        FileFindings {
            unstored: self.size.into_unstored(),
            ..self.found
        }
    }

    /// Records a path that is omitted for another reason than its state.
    pub(super) fn omit_path(&mut self, path: &Path, why: &str) {
        self.found.omitted.add(path, why);
        self.found.is_obstructed = true;
    }

    /// Records a file that is omitted as long as its state is the same.
    fn omit_file(&mut self, path: &Path, stat: FileStat, why: &str) {
        self.found.omitted.add(path, why);
        self.found.cache.note(path, stat, KnownFile::Omitted);
        if self.found.omitted_files.len() == MAX_OMITTED {
            self.found.is_obstructed = true;
        } else {
            self.found.omitted_files.insert(path.to_owned(), why.to_owned());
        }
    }

    /// Stores the content of a file, if it fits the limits. `None` means that only the size of the whole
    /// change prevents it.
    fn store(&self, content: &[u8]) -> Result<Option<KnownFile>, git2::Error> {
        let fit = self.size.fit(content);
        match fit {
            FileFit::Fits => {}
            FileFit::Exceeds => return Ok(None),
            FileFit::TooLarge => {
                // A large file of the base that was only moved adds no object.
                let id = Oid::hash_object(ObjectType::Blob, content)?;
                let is_there = self.git.odb()?.exists(id) && self.size.weight(id) == 0;
                let known = if is_there {
                    KnownFile::Stored(id, 0)
                } else {
                    KnownFile::TooLarge
                };
                return Ok(Some(known));
            }
        }
        let id = self.git.blob(content)?;
        Ok(Some(KnownFile::Stored(id, self.size.weight(id))))
    }

    /// Examines one path. `tracked` is its entry in the last commit, which an unreadable file keeps.
    pub(super) fn examine(
        &mut self,
        path: &Path,
        tracked: Option<TreeFile>,
    ) -> Result<Option<TreeFile>, ReadFailure> {
        let Some(stat) = self.stats.stat(path)? else {
            return Ok(None);
        };
        let mode = match stat.kind {
            FileKind::File { executable: true } => 0o100_755,
            FileKind::File { executable: false } => 0o100_644,
            FileKind::Link => 0o120_000,
            // A submodule keeps its committed id.
            FileKind::Folder => return Ok(tracked.filter(|(_, mode)| *mode == 0o160_000)),
            FileKind::Other => {
                self.omit_file(path, stat, "neither a file nor a link");
                return Ok(None);
            }
        };
        if stat.size > MAX_FILE_BYTES {
            let why = format!("larger than {} MiB", MAX_FILE_BYTES >> 20);
            self.omit_file(path, stat, &why);
            return Ok(tracked);
        }
        let known = match self.old.get(path, &stat) {
            Some(known) => known,
            None if stat.kind == FileKind::Link => {
                KnownFile::Stored(self.git.blob(&self.root.read_link(path)?)?, 0)
            }
            None => {
                let content = self.root.read(path, MAX_FILE_BYTES)?;
                // A new executable binary is a build result that a compiler wrote next to the sources.
                let is_made = tracked.is_none() && mode == 0o100_755 && byproduct::is_program(&content);
                if is_made {
                    self.omit_file(path, stat, byproduct::WHY);
                    return Ok(None);
                }
                match self.attributes.convert(self.git, path, &content, tracked) {
                    Ok(StoredContent::Unchanged(id)) => KnownFile::Stored(id, 0),
                    Ok(StoredContent::Bytes(bytes)) => {
                        let Some(known) = self.store(&bytes)? else {
                            self.size.refuse(path, stat.size);
                            return Ok(tracked);
                        };
                        known
                    }
                    Err(refusal) => {
                        self.omit_file(path, stat, &refusal.to_string());
                        return Ok(tracked);
                    }
                }
            }
        };
        self.found.cache.note(path, stat, known);
        let KnownFile::Stored(id, weight) = known else {
            self.size.refuse(path, stat.size);
            return Ok(tracked);
        };
        if tracked.is_none_or(|(old, _)| old != id) {
            self.size.add(path, stat.size, weight);
            if weight > 0 {
                self.found.weights.insert(path.to_owned(), weight);
            }
        }
        Ok(Some((id, mode)))
    }
}
