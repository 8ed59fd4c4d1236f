//! Reads the files of a mirror for the index: trees and contents from git, definitions from the parser.

use std::{collections::HashMap, path::Path};

use domain::CommitId;
use git2::{ObjectType, Oid, Repository};
use retrieval::{
    AttributeRules, BlobId, CodeDefinition, ContentSource, MAX_FILE_BYTES, SharedReadFailure, TreeFile,
};
use tokio_util::sync::CancellationToken;

use crate::parser::{GrammarLanguage, ParseFailure, ParserClient};

/// Limits of a tree: files and nested folders. Further ones are not indexed.
const MAX_FILES: usize = 500_000;
const MAX_DEPTH: usize = 100;
/// Limits of `.gitattributes`: number of files, and bytes of each.
const MAX_ATTRIBUTES: usize = 50;
const MAX_ATTRIBUTES_BYTES: u64 = 64 * 1024;
// After this number of failed or slow parses, further files are split by lines.
const MAX_FAILURES: usize = 20;
/// Limit of the contents that are cached during one search, in bytes.
const MAX_KEPT: usize = 16 << 20;

/// Returns the regular files of a commit, and its `.gitattributes`. Symbolic links and submodules are not
/// regular files.
pub(super) fn list_commit_files(
    git: &Repository,
    commit: &CommitId,
) -> Result<(Vec<TreeFile>, AttributeRules), git2::Error> {
    let root = git.find_commit(Oid::from_str(commit.as_str())?)?.tree_id();
    let mut files = Vec::new();
    let mut rules = Vec::new();
    let mut queue = vec![(String::new(), root, 0)];
    while let Some((folder, id, depth)) = queue.pop() {
        let tree = git.find_tree(id)?;
        for entry in &tree {
            let Ok(name) = entry.name() else { continue };
            let path = if folder.is_empty() {
                name.to_owned()
            } else {
                format!("{folder}/{name}")
            };
            match entry.kind() {
                Some(ObjectType::Tree) if depth < MAX_DEPTH => queue.push((path, entry.id(), depth + 1)),
                Some(ObjectType::Blob)
                    if entry.filemode() & 0o170_000 == 0o100_000 && files.len() < MAX_FILES =>
                {
                    if name == ".gitattributes" && rules.len() < MAX_ATTRIBUTES {
                        rules.push((folder.clone(), entry.id()));
                    }
                    files.push(TreeFile {
                        path,
                        blob: blob_id(entry.id()),
                    });
                }
                _ => {}
            }
        }
    }
    Ok((files, read_attributes(git, rules)))
}

fn read_attributes(git: &Repository, mut rules: Vec<(String, Oid)>) -> AttributeRules {
    // Rules of inner folders override those of outer ones, so outer folders are added first.
    rules.sort_by_key(|(folder, _)| (folder.matches('/').count(), folder.clone()));
    let mut attributes = AttributeRules::default();
    for (folder, id) in rules {
        if let Ok(content) = read_content(git, id, MAX_ATTRIBUTES_BYTES) {
            attributes.add(&folder, &String::from_utf8_lossy(&content));
        }
    }
    attributes
}

fn read_content(git: &Repository, id: Oid, max: u64) -> Result<Vec<u8>, SharedReadFailure> {
    let objects = git.odb().map_err(|_| SharedReadFailure::Missing)?;
    let (size, _) = objects.read_header(id).map_err(|_| SharedReadFailure::Missing)?;
    if size as u64 > max {
        return Err(SharedReadFailure::TooLarge);
    }
    let blob = git.find_blob(id).map_err(|_| SharedReadFailure::Missing)?;
    Ok(blob.content().to_vec())
}

fn blob_id(id: Oid) -> BlobId {
    let mut bytes = [0; 20];
    for (to, from) in bytes.iter_mut().zip(id.as_bytes()) {
        *to = *from;
    }
    BlobId(bytes)
}

/// Contents of a mirror, cached so that each is read once.
pub(super) struct BlobCache {
    git: git::BareRepository,
    kept: HashMap<BlobId, Vec<u8>>,
    bytes: usize,
}

impl BlobCache {
    pub(super) fn open(mirror: &Path) -> Result<Self, git::Error> {
        Ok(Self {
            git: git::BareRepository::open(mirror)?,
            kept: HashMap::new(),
            bytes: 0,
        })
    }

    pub(super) fn content(&mut self, blob: BlobId) -> Option<Vec<u8>> {
        if let Some(content) = self.kept.get(&blob) {
            return Some(content.clone());
        }
        let id = Oid::from_bytes(&blob.0).ok()?;
        let content = read_content(self.git.objects(), id, MAX_FILE_BYTES).ok()?;
        // Beyond the limit, contents are read again instead of being cached.
        if self.bytes + content.len() <= MAX_KEPT {
            self.bytes += content.len();
            self.kept.insert(blob, content.clone());
        }
        Some(content)
    }
}

/// Source that an index update reads from.
pub(super) struct MirrorSource<'a> {
    git: &'a Repository,
    parser: &'a ParserClient,
    cancel: &'a CancellationToken,
    failures: usize,
}

impl<'a> MirrorSource<'a> {
    pub(super) const fn new(
        git: &'a Repository,
        parser: &'a ParserClient,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            git,
            parser,
            cancel,
            failures: 0,
        }
    }
}

impl ContentSource for MirrorSource<'_> {
    fn read(&mut self, blob: BlobId, max: u64) -> Result<Vec<u8>, SharedReadFailure> {
        let id = Oid::from_bytes(&blob.0).map_err(|_| SharedReadFailure::Missing)?;
        read_content(self.git, id, max)
    }

    fn outline(&mut self, path: &str, text: &str) -> Vec<CodeDefinition> {
        if self.failures >= MAX_FAILURES {
            return Vec::new();
        }
        find_definitions(self.parser, path, text, self.cancel).unwrap_or_else(|why| {
            self.failures += 1;
            tracing::debug!(path, %why, "a file is indexed without its definitions");
            Vec::new()
        })
    }
}

/// Returns the definitions in a text; none in an unknown language.
pub(super) fn find_definitions(
    parser: &ParserClient,
    path: &str,
    text: &str,
    cancel: &CancellationToken,
) -> Result<Vec<CodeDefinition>, ParseFailure> {
    let language = GrammarLanguage::of(Path::new(path)).filter(|language| language.has_symbols());
    let Some(language) = language else {
        return Ok(Vec::new());
    };
    let symbols = parser.symbols(language, text.to_owned(), cancel)?;
    Ok(symbols.into_iter().map(convert_symbol).collect())
}

fn convert_symbol(symbol: crate::parser::SourceSymbol) -> CodeDefinition {
    CodeDefinition {
        name: symbol.name,
        line: symbol.line,
        end: symbol.end,
        depth: symbol.depth,
        signature: symbol.text,
    }
}
