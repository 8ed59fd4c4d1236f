//! Attributes for a checkout, from the tree, and for a scan, from the worktree.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use git2::{ObjectType, Oid, Repository, Tree};

use super::{
    attributes::{ATTRIBUTES, AttributeFiles, AttributeSearch, MAX_FILE_BYTES},
    file_conversion::{ConversionRefusal, FileConversion},
};
use crate::{
    lfs_contents::LfsContents,
    workspace::root::{FileKind, WorkspaceRoot},
};

/// File mode of a symbolic link in a tree.
const LINK: i32 = 0o120_000;

/// Adds the `.gitattributes` file of a tree. Git does not read one that is a symbolic link.
fn add_blob(files: &mut AttributeFiles, git: &Repository, path: &Path, (id, mode): (Oid, i32)) {
    let is_file = matches!(mode, 0o100_644 | 0o100_755 | 0o100_664);
    let size = git.odb().and_then(|odb| odb.read_header(id));
    let is_read =
        is_file && size.is_ok_and(|(size, kind)| size <= MAX_FILE_BYTES && kind == ObjectType::Blob);
    let content = if is_read {
        git.find_blob(id).ok().map(|blob| blob.content().to_vec())
    } else {
        None
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let is_added = content.is_some_and(|content| files.add(folder, content));
    if !is_added {
        tracing::warn!(path = %path.display(), "a file of attributes in the repository has no effect");
    }
}

/// Reads the `.gitattributes` among these files of a tree.
pub(in crate::workspace) fn read_attributes<'a>(
    git: &Repository,
    files: impl Iterator<Item = (&'a Path, (Oid, i32))>,
) -> AttributeFiles {
    let mut found = AttributeFiles::default();
    for (path, file) in files.filter(|(path, _)| path.ends_with(ATTRIBUTES)) {
        add_blob(&mut found, git, path, file);
    }
    found
}

/// Attribute files of a worktree, each with the id of its content; `None` for one that has no effect in git because it is
/// missing, a link, unreadable or too large.
pub(in crate::workspace) type AttributeIds = Vec<(PathBuf, Option<Oid>)>;

/// Returns the ids of attribute files as [`ScanAttributes::ids`] has them.
pub(in crate::workspace) fn hash_attributes(root: &WorkspaceRoot, paths: &[PathBuf]) -> AttributeIds {
    let hash = |path: &PathBuf| read_file(root, path).as_deref().and_then(hash_content);
    paths.iter().map(|path| (path.clone(), hash(path))).collect()
}

fn read_file(root: &WorkspaceRoot, path: &Path) -> Option<Vec<u8>> {
    let stat = root.stat(path).ok().flatten();
    let is_file = stat.is_some_and(|stat| matches!(stat.kind, FileKind::File { .. }));
    is_file
        .then(|| root.read(path, MAX_FILE_BYTES as u64).ok())
        .flatten()
}

fn hash_content(content: &[u8]) -> Option<Oid> {
    Oid::hash_object(ObjectType::Blob, content).ok()
}

/// Returns the conversion that the attribute files of the worktree demand for one path; `None` if the file stays as it
/// is.
pub(in crate::workspace) fn find_worktree_conversion(
    root: &WorkspaceRoot,
    path: &Path,
) -> Option<FileConversion> {
    let mut files = AttributeFiles::default();
    for folder in path.ancestors().skip(1) {
        if let Some(content) = read_file(root, &folder.join(ATTRIBUTES)) {
            // The result is ignored: a file above the limits has no effect, and a scan logs it.
            let _ = files.add(folder, content);
        }
    }
    files.search()?.find(path)
}

/// Attributes of the files that a checkout writes.
pub(in crate::workspace) struct CheckoutAttributes {
    search: Option<AttributeSearch>,
    lfs: LfsContents,
}

impl CheckoutAttributes {
    pub(in crate::workspace) fn new(files: &AttributeFiles, lfs: &LfsContents) -> Self {
        Self {
            search: files.search(),
            lfs: lfs.clone(),
        }
    }

    /// Reads the attributes of a tree that concern these paths.
    pub(in crate::workspace) fn of_paths<'a>(
        git: &Repository,
        tree: &Tree<'_>,
        paths: impl Iterator<Item = &'a Path>,
        lfs: &LfsContents,
    ) -> Self {
        let mut folders = BTreeSet::new();
        for path in paths {
            for folder in path.ancestors().skip(1) {
                // The folders above a known one are known too.
                if !folders.insert(folder.to_owned()) {
                    break;
                }
            }
        }
        let mut files = AttributeFiles::default();
        for folder in folders {
            let path = folder.join(ATTRIBUTES);
            if let Ok(entry) = tree.get_path(&path) {
                add_blob(&mut files, git, &path, (entry.id(), entry.filemode()));
            }
        }
        Self::new(&files, lfs)
    }

    /// Returns the conversion of a file; `None` if it stays as it is.
    pub(in crate::workspace) fn find(&mut self, path: &Path) -> Option<FileConversion> {
        self.search.as_mut()?.find(path)
    }

    /// Returns the bytes that a checkout writes for a file or link of a tree.
    pub(in crate::workspace) fn convert<'a>(
        &mut self,
        path: &Path,
        content: &'a [u8],
        (id, mode): (Oid, i32),
    ) -> Cow<'a, [u8]> {
        if mode == LINK {
            return Cow::Borrowed(content);
        }
        match self.find(path) {
            Some(conversion) => conversion.to_worktree(content, &self.lfs, id),
            None => Cow::Borrowed(content),
        }
    }
}

/// Content of a file for a tree.
pub(in crate::workspace) enum StoredContent<'a> {
    /// The file is as its checkout wrote it, and keeps its object.
    Unchanged(Oid),
    Bytes(Cow<'a, [u8]>),
}

/// Attributes of the files that a scan reads.
pub(in crate::workspace) struct ScanAttributes {
    /// Attributes of the worktree.
    current: Option<AttributeSearch>,
    /// Attributes of the last commit.
    committed: CheckoutAttributes,
    ids: AttributeIds,
}

impl ScanAttributes {
    /// Reads the attributes of the worktree. Where a tracked file is missing, the committed one counts, as in
    /// git.
    pub(in crate::workspace) fn read(
        root: &WorkspaceRoot,
        git: &Repository,
        tracked: &BTreeMap<PathBuf, (Oid, i32)>,
        paths: &[PathBuf],
        lfs: &LfsContents,
    ) -> Self {
        let committed = read_attributes(git, tracked.iter().map(|(path, file)| (path.as_path(), *file)));
        let mut current = AttributeFiles::default();
        let mut ids = AttributeIds::new();
        for path in paths.iter().filter(|path| path.ends_with(ATTRIBUTES)) {
            // One read for both, so that the ids are those of the attributes in use.
            let content = read_file(root, path);
            ids.push((path.clone(), content.as_deref().and_then(hash_content)));
            match (content, tracked.get(path)) {
                (Some(content), _) => {
                    let folder = path.parent().unwrap_or(Path::new(""));
                    if !current.add(folder, content) {
                        tracing::warn!(path = %path.display(), "a file of attributes in the worktree has no effect");
                    }
                }
                (None, Some(file)) => add_blob(&mut current, git, path, *file),
                (None, None) => {}
            }
        }
        Self {
            current: current.search(),
            committed: CheckoutAttributes::new(&committed, lfs),
            ids,
        }
    }

    /// Returns the ids of the attribute files in the worktree.
    pub(in crate::workspace) fn ids(&self) -> &AttributeIds {
        &self.ids
    }

    /// Returns what a tree has for a regular file of the worktree. `tracked` is its entry in the last commit.
    pub(in crate::workspace) fn convert<'a>(
        &mut self,
        git: &Repository,
        path: &Path,
        content: &'a [u8],
        tracked: Option<(Oid, i32)>,
    ) -> Result<StoredContent<'a>, ConversionRefusal> {
        let current = self.current.as_mut().and_then(|search| search.find(path));
        let committed = self.committed.find(path);
        if current.is_none() && committed.is_none() {
            return Ok(StoredContent::Bytes(Cow::Borrowed(content)));
        }
        let tracked = tracked.filter(|(_, mode)| *mode != LINK);
        let blob = tracked.and_then(|(id, _)| git.find_blob(id).ok());
        // A text in the tree with other line ends than its attributes demand differs after every conversion. It
        // is a change only if the file changes.
        if let Some(blob) = &blob {
            let written = match &committed {
                Some(committed) => committed.to_worktree(blob.content(), &self.committed.lfs, blob.id()),
                None => Cow::Borrowed(blob.content()),
            };
            if *written == *content {
                return Ok(StoredContent::Unchanged(blob.id()));
            }
        }
        let Some(current) = current else {
            return Ok(StoredContent::Bytes(Cow::Borrowed(content)));
        };
        let read_indexed = || blob.as_ref().map(|blob| blob.content().to_vec());
        current
            .to_tree(content, &self.committed.lfs, &read_indexed)
            .map(StoredContent::Bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn scan_hashes_attributes_as_checkout_does() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        fs::create_dir_all(tree.join("large")).unwrap();
        fs::create_dir_all(tree.join("link")).unwrap();
        fs::write(tree.join(ATTRIBUTES), "*.txt text\n").unwrap();
        fs::write(
            tree.join("large").join(ATTRIBUTES),
            "#".repeat(MAX_FILE_BYTES + 1),
        )
        .unwrap();
        std::os::unix::fs::symlink("../.gitattributes", tree.join("link").join(ATTRIBUTES)).unwrap();
        let git = Repository::init_bare(place.path().join("git")).unwrap();
        let root = WorkspaceRoot::open(&tree).unwrap();
        let paths = ["", "large", "link", "missing"].map(|folder| Path::new(folder).join(ATTRIBUTES));
        let scanned = ScanAttributes::read(&root, &git, &BTreeMap::new(), &paths, &LfsContents::default());
        assert_eq!(*scanned.ids(), hash_attributes(&root, &paths));
        let is_read: Vec<bool> = scanned.ids().iter().map(|(_, id)| id.is_some()).collect();
        assert_eq!(is_read, [true, false, false, false]);
    }
}
