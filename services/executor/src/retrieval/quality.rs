//! Tests that texts like tickets find the right files of this repository.

use std::{
    collections::HashMap,
    fs,
    ops::ControlFlow,
    path::Path,
    sync::{Arc, LazyLock},
};

use git2::{ObjectType, Oid};
use ignore::WalkBuilder;
use retrieval::{
    AttributeRules, BlobId, CodeDefinition, CodeIndex, ContentSource, IndexedTree, ModuleFolders,
    SearchAnswer, SearchQuery, SearchRequest, SharedReadFailure, TreeFile,
};
use tokio_util::sync::CancellationToken;

use super::source::find_definitions;
use crate::parser::ParserClient;

/// Index of the sources of this repository.
struct IndexedSources {
    contents: HashMap<BlobId, Vec<u8>>,
    index: CodeIndex,
    tree: Arc<IndexedTree>,
    _folder: tempfile::TempDir,
}

struct SourceContents<'a>(&'a HashMap<BlobId, Vec<u8>>);

impl ContentSource for SourceContents<'_> {
    fn read(&mut self, blob: BlobId, _max: u64) -> Result<Vec<u8>, SharedReadFailure> {
        self.0.get(&blob).cloned().ok_or(SharedReadFailure::Missing)
    }

    fn outline(&mut self, path: &str, text: &str) -> Vec<CodeDefinition> {
        find_definitions(&ParserClient::default(), path, text, &CancellationToken::new()).unwrap_or_default()
    }
}

static WORLD: LazyLock<IndexedSources> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut contents, mut files) = (HashMap::new(), Vec::new());
    // This file contains the queries and would match all of them.
    let is_wanted = |path: &str| {
        let folder = path.split('/').next().unwrap();
        let ours = [
            "crates", "services", "cli", "proto", "docs", "e2e", "k8s", "configs",
        ];
        ours.contains(&folder) && !path.ends_with("retrieval/quality.rs")
    };
    for entry in WalkBuilder::new(&root).build().filter_map(Result::ok) {
        let path = entry
            .path()
            .strip_prefix(&root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        if entry.file_type().is_some_and(|kind| kind.is_file()) && is_wanted(&path) {
            let content = fs::read(entry.path()).unwrap();
            let id = Oid::hash_object(ObjectType::Blob, &content).unwrap();
            let blob = BlobId(id.as_bytes().try_into().unwrap());
            contents.insert(blob, content);
            files.push(TreeFile { path, blob });
        }
    }
    let folder = tempfile::TempDir::new().unwrap();
    let index = CodeIndex::open(folder.path()).unwrap();
    let go_on = &mut |_| ControlFlow::Continue(());
    let updated = index.update(
        &files,
        &AttributeRules::default(),
        &mut SourceContents(&contents),
        go_on,
    );
    let (tree, _) = updated.unwrap();
    index.connect(&tree).unwrap();
    IndexedSources {
        contents,
        index,
        tree,
        _folder: folder,
    }
});

fn search_repository(text: &str) -> SearchAnswer {
    let (query, modules) = (SearchQuery::from_text(text), ModuleFolders::default());
    let read = |blob: BlobId| WORLD.contents.get(&blob).cloned();
    WORLD
        .index
        .search(&WORLD.tree, &SearchRequest::new(&query, &modules), &read)
        .unwrap()
}

/// Texts in the style of tickets, each with the file that must change.
const TICKETS: [(&str, &str); 10] = [
    (
        "Workspaces are closed too early\n\nWhen the model thinks for a long time the idle workspace is closed after five \
         minutes although a keepalive was sent. The reaper should look at the last keepalive.",
        "services/executor/src/service/",
    ),
    (
        "edit_file: SEARCH block not found with typographic quotes\n\nThe tool refuses a block when the file has curly quotes.",
        "services/executor/src/tools/text/lines.rs",
    ),
    (
        "Error when opening a repository on a full disk\n\nThe mirror that was used the longest ago should be removed first when \
         the disk has less free than the floor.",
        "crates/git/src/mirrors.rs",
    ),
    (
        "Grant with an expired signature gives 500 instead of 401 when the `Verifier` checks it",
        "crates/grant/src/lib.rs",
    ),
    (
        "Repeated call id runs the command again\n\nIf the planner asks twice with the same call id, `CallMemory` should give the \
         stored result.",
        "services/executor/src/service/calls.rs",
    ),
    (
        "Egress proxy lets a connection through although the TLS server name is not allowed. The hello of the client should be \
         compared with the hosts of the grant.",
        "services/egress/src/",
    ),
    (
        "I see this in the log:\n\n    ERROR a workspace's folder stays behind\n\nafter Go's module cache made folders read only.",
        "services/executor/src/workspace/disk.rs",
    ),
    (
        "search_content shows whole minified lines; cut long lines around the match",
        "services/executor/src/tools/search_content.rs",
    ),
    (
        "thread 'main' panicked at services/executor/src/setup/pool.rs:52:17:\nready checkout is taken twice",
        "services/executor/src/setup/pool.rs",
    ),
    (
        "Deliveries of Jira webhooks with a wrong signature should be answered 401 and counted",
        "services/ingest/src/",
    ),
];

#[test]
fn ticket_text_finds_file_to_change() {
    let mut missed = Vec::new();
    for (text, wanted) in TICKETS {
        let found = search_repository(text).found;
        assert!(found.len() <= retrieval::MAX_CHUNKS);
        if !found.iter().any(|found| found.path.starts_with(wanted)) {
            let found: Vec<String> = found
                .iter()
                .map(|found| {
                    format!(
                        "{}:{} {:.2} {}",
                        found.path, found.start, found.score, found.reason
                    )
                })
                .collect();
            missed.push(format!("{wanted}\n  {}", found.join("\n  ")));
        }
    }
    assert!(
        missed.len() <= 2,
        "missed {}:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn a_text_about_something_else_finds_nothing() {
    let answer = search_repository("Photosynthesis of tropical orchids under artificial moonlight");
    assert_eq!(answer.found, []);
}

#[test]
fn function_is_chunk_under_its_name() {
    let answer = search_repository("`take_slot`");
    let first = answer.found.first().unwrap();
    assert_eq!(first.path, "services/executor/src/service/readiness.rs");
    assert_eq!(first.symbol, "take_slot");
}
