//! Requests and answers of a search.

use crate::{
    caps::{MAX_CHUNKS, MAX_IN_MODULE},
    file::BlobId,
    module::ModuleFolders,
    query::SearchQuery,
};

/// Kind of the requested chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChunkKind {
    /// Any chunk; code ranks before tests and prose.
    #[default]
    Any,
    /// Chunks that define a name.
    Definition,
    /// Chunks that use a name.
    Usage,
    /// Chunks of tests.
    Test,
    /// Chunks of prose.
    Docs,
}

/// Function that reads a content; `None` when it cannot be read.
pub type ReadContent<'a> = &'a dyn Fn(BlobId) -> Option<Vec<u8>>;

/// Request to search a tree.
pub struct SearchRequest<'a> {
    /// Search terms.
    pub query: &'a SearchQuery,
    /// Kind of the requested chunks.
    pub kind: ChunkKind,
    /// Filter of paths; absent: all paths.
    pub scope: Option<&'a dyn Fn(&str) -> bool>,
    /// Modules to search, which also limit the number of chunks. Empty: all packages of the tree.
    pub modules: &'a ModuleFolders,
    /// Maximum number of chunks in the answer.
    pub max: usize,
    /// Maximum number of chunks of one module in the answer.
    pub max_in_module: usize,
    /// Number of further candidates that the caller ranks again.
    pub candidates: usize,
}

impl<'a> SearchRequest<'a> {
    /// Request with the default limits for a ticket.
    #[must_use]
    pub const fn new(query: &'a SearchQuery, modules: &'a ModuleFolders) -> Self {
        Self {
            query,
            kind: ChunkKind::Any,
            scope: None,
            modules,
            max: MAX_CHUNKS,
            max_in_module: MAX_IN_MODULE,
            candidates: 0,
        }
    }
}

/// Chunk in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundChunk {
    /// Path of its file.
    pub path: String,
    /// Content of its file.
    pub blob: BlobId,
    /// First line, from 1.
    pub start: u32,
    /// Last line, from 1.
    pub end: u32,
    /// Name that fits the query best, or a heading; may be empty.
    pub symbol: String,
    /// Score between 0 and 1; comparable within one answer only.
    pub score: f32,
    /// Reason for the match, as a phrase.
    pub reason: String,
    /// True when the file belongs to the tests.
    pub is_test: bool,
}

/// Chunk for callers that rank again.
#[derive(Clone, Debug, PartialEq)]
pub struct RankCandidate {
    /// Chunk; its reason is empty.
    pub found: FoundChunk,
    /// Text of its lines.
    pub text: String,
}

/// Answer of a search. It is empty without a confident match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchAnswer {
    /// Chunks, best first.
    pub found: Vec<FoundChunk>,
    /// Candidates, best first, as many as the request asks for.
    pub candidates: Vec<RankCandidate>,
    /// True when more chunks matched than the answer contains.
    pub is_truncated: bool,
}
