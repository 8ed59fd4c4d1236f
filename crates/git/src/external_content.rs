//! Content that a commit refers to without containing it: submodules, and files in Git LFS.

use std::{collections::HashMap, path::Path, rc::Rc};

use git2::{ObjectType, Tree};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{
    Error,
    lfs_pointer::{LfsFile, LfsPointer, MAX_POINTER},
};

// Maximum number of listed paths of each kind.
const MAX_PATHS: usize = 1_000;
// Maximum number of tree entries to inspect.
const MAX_ENTRIES: usize = 1_000_000;
// Larger `.gitattributes` files are ignored, in bytes.
const MAX_ATTRIBUTES: usize = 256 * 1024;
// Maximum number of rules of one file; further rules are ignored.
const MAX_RULES: usize = 2_000;
// Maximum number of Git LFS files whose pointers are read.
const MAX_POINTERS: usize = 20_000;
const ATTRIBUTES: &str = ".gitattributes";

/// Paths of a commit whose content is stored in another place; at most 1,000 of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalContent {
    /// Submodules, whose content is in another repository.
    pub submodules: Vec<String>,
    /// Files of which the commit contains only a Git LFS pointer.
    pub lfs_files: Vec<String>,
}

/// True for the pointer that Git LFS commits instead of a file.
pub fn is_lfs_pointer(content: &[u8]) -> bool {
    content.len() <= MAX_POINTER && content.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// Attributes of one tree that assign paths to Git LFS.
pub(crate) struct LfsAttributes<'a> {
    git: &'a git2::Repository,
    tree: &'a Tree<'a>,
    /// Rules by folder; the root is "".
    levels: HashMap<String, Option<Rc<FolderAttributes>>>,
}

/// Rules of one folder's file, in their order.
#[derive(Default)]
struct FolderAttributes {
    patterns: GlobSet,
    is_lfs: Vec<bool>,
}

impl<'a> LfsAttributes<'a> {
    pub(crate) fn new(git: &'a git2::Repository, tree: &'a Tree<'a>) -> Self {
        Self {
            git,
            tree,
            levels: HashMap::new(),
        }
    }

    /// True when Git LFS stores the path. The nearest file with a matching rule decides, and within it the
    /// last one.
    pub(crate) fn is_lfs(&mut self, path: &str) -> bool {
        let mut folder = find_parent_folder(path);
        loop {
            if let Some(level) = self.level(folder) {
                let inside = path[folder.len()..].trim_start_matches('/');
                if let Some(last) = level.patterns.matches(inside).into_iter().max() {
                    return level.is_lfs.get(last).copied().unwrap_or_default();
                }
            }
            if folder.is_empty() {
                return false;
            }
            folder = find_parent_folder(folder);
        }
    }

    fn level(&mut self, folder: &str) -> Option<Rc<FolderAttributes>> {
        if let Some(known) = self.levels.get(folder) {
            return known.clone();
        }
        let level = self.read(folder).map(|text| Rc::new(parse_attributes(&text)));
        self.levels.insert(folder.to_owned(), level.clone());
        level
    }

    fn read(&self, folder: &str) -> Option<String> {
        let entry = self.tree.get_path(&Path::new(folder).join(ATTRIBUTES)).ok()?;
        let is_file = entry.kind() == Some(ObjectType::Blob) && entry.filemode() != 0o120_000;
        let size = self.git.odb().ok()?.read_header(entry.id()).ok()?.0;
        if !is_file || size > MAX_ATTRIBUTES {
            return None;
        }
        let blob = self.git.find_blob(entry.id()).ok()?;
        Some(String::from_utf8_lossy(blob.content()).into_owned())
    }
}

/// Walks a whole tree and collects the paths without content.
pub(crate) fn find_external_content(
    git: &git2::Repository,
    tree: &Tree<'_>,
) -> Result<ExternalContent, Error> {
    let mut found = ExternalContent::default();
    walk_external_entries(git, tree, &mut |path, kind, _| {
        let paths = match kind {
            ExternalKind::Submodule => &mut found.submodules,
            ExternalKind::LfsFile => &mut found.lfs_files,
        };
        if paths.len() < MAX_PATHS {
            paths.push(path);
        }
        Ok(())
    })?;
    found.submodules.sort();
    found.lfs_files.sort();
    Ok(found)
}

/// Collects the Git LFS files of a tree whose pointers follow the specification; at most 20,000.
pub(crate) fn find_lfs_files(git: &git2::Repository, tree: &Tree<'_>) -> Result<Vec<LfsFile>, Error> {
    let mut found = Vec::new();
    walk_external_entries(git, tree, &mut |path, kind, id| {
        let is_read = matches!(kind, ExternalKind::LfsFile) && found.len() < MAX_POINTERS;
        let pointer = is_read.then(|| git.find_blob(id)).transpose()?;
        if let Some(pointer) = pointer.and_then(|blob| LfsPointer::parse(blob.content())) {
            found.push(LfsFile { path, pointer });
        }
        Ok(())
    })?;
    found.sort();
    Ok(found)
}

/// Kind of a tree entry without content.
#[derive(Clone, Copy)]
enum ExternalKind {
    Submodule,
    LfsFile,
}

fn walk_external_entries(
    git: &git2::Repository,
    tree: &Tree<'_>,
    visit: &mut dyn FnMut(String, ExternalKind, git2::Oid) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut attributes = LfsAttributes::new(git, tree);
    let (mut has_attributes, mut entries) = (false, 0);
    let mut queue = vec![(String::new(), git.find_tree(tree.id())?)];
    while let Some((folder, tree)) = queue.pop() {
        // A folder is read before its children, so that the rules above a file are known.
        has_attributes |= tree.get_name(ATTRIBUTES).is_some();
        entries += tree.len();
        if entries > MAX_ENTRIES {
            break;
        }
        for entry in &tree {
            let name = String::from_utf8_lossy(entry.name_bytes());
            let path = if folder.is_empty() {
                name.into_owned()
            } else {
                format!("{folder}/{name}")
            };
            match entry.kind() {
                Some(ObjectType::Tree) => queue.push((path, git.find_tree(entry.id())?)),
                Some(ObjectType::Commit) => visit(path, ExternalKind::Submodule, entry.id())?,
                Some(ObjectType::Blob)
                    if has_attributes && attributes.is_lfs(&path) && is_pointer_blob(git, entry.id())? =>
                {
                    visit(path, ExternalKind::LfsFile, entry.id())?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// True when a blob is a Git LFS pointer.
pub(crate) fn is_pointer_blob(git: &git2::Repository, blob: git2::Oid) -> Result<bool, Error> {
    let (size, kind) = git.odb()?.read_header(blob)?;
    Ok(kind == ObjectType::Blob && size <= MAX_POINTER && is_lfs_pointer(git.find_blob(blob)?.content()))
}

fn find_parent_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Parses the rules about `filter`, including macros. A pattern that is not a valid glob matches nothing.
fn parse_attributes(text: &str) -> FolderAttributes {
    let mut macros: HashMap<&str, bool> = HashMap::new();
    let (mut patterns, mut is_lfs) = (GlobSetBuilder::new(), Vec::new());
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let Some((pattern, words)) = split_rule(line) else {
            continue;
        };
        let Some(value) = parse_filter(words, &macros) else {
            continue;
        };
        if let Some(name) = pattern.strip_prefix("[attr]") {
            macros.insert(name, value);
        } else if let Some(glob) = compile_glob(pattern).filter(|_| is_lfs.len() < MAX_RULES) {
            patterns.add(glob);
            is_lfs.push(value);
        }
    }
    let patterns = patterns.build().unwrap_or_default();
    FolderAttributes { patterns, is_lfs }
}

/// Splits a line into its pattern and attributes; a pattern with spaces is quoted.
fn split_rule(line: &str) -> Option<(&str, &str)> {
    match line.strip_prefix('"') {
        Some(rest) => rest.split_once('"'),
        None => line.split_once([' ', '\t']),
    }
}

/// Value of a rule for `filter`: whether it is Git LFS; `None` for rules about other attributes.
fn parse_filter(words: &str, macros: &HashMap<&str, bool>) -> Option<bool> {
    words.split_whitespace().fold(None, |before, word| match word {
        "filter=lfs" => Some(true),
        "filter" | "-filter" | "!filter" => Some(false),
        word if word.starts_with("filter=") => Some(false),
        word => macros.get(word).copied().or(before),
    })
}

fn compile_glob(pattern: &str) -> Option<globset::Glob> {
    // git treats braces as ordinary characters, globset as alternatives.
    let plain = pattern.replace('{', "\\{").replace('}', "\\}");
    // The rule of gitignore: a pattern with a slash is relative to the file's folder, another one matches at each
    // depth.
    let anchored = match plain.strip_prefix('/') {
        Some(rest) => rest.to_owned(),
        None if plain.contains('/') => plain,
        None => format!("**/{plain}"),
    };
    GlobBuilder::new(&anchored).literal_separator(true).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_lfs(text: &str, path: &str) -> bool {
        let level = parse_attributes(text);
        let last = level.patterns.matches(path).into_iter().max();
        last.is_some_and(|last| level.is_lfs[last])
    }

    #[test]
    fn rules_are_read_as_git_reads_them() {
        let text = "# *.txt filter=lfs\n*.bin filter=lfs diff=lfs merge=lfs -text\n/top.dat filter=lfs\nassets/** filter=lfs\n\
                    assets/*.md -filter\n\"with space.psd\" filter=lfs\n[attr]big filter=lfs -text\n*.raw big\n*.c filter=indent\n\
                    *.{a,b} filter=lfs\n";
        for (path, expected) in [
            ("a.bin", true),
            ("deep/er/a.bin", true),
            ("top.dat", true),
            ("deep/top.dat", false),
            ("assets/x/y.png", true),
            ("assets/note.md", false),
            ("deep/with space.psd", true),
            ("a.raw", true),
            ("a.c", false),
            ("a.txt", false),
            ("x.a", false),
        ] {
            assert_eq!(is_lfs(text, path), expected, "{path}");
        }
    }

    #[test]
    fn invalid_globs_match_nothing_and_are_skipped() {
        assert!(is_lfs("[ filter=lfs\n\n*.bin filter=lfs\n", "a.bin"));
        assert!(!is_lfs("[ filter=lfs\n", "["));
    }
}
