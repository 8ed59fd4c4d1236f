//! What is asked of a search, and what comes back.

use crate::{
    caps::{MAX_CHUNKS, MAX_IN_MODULE},
    file::BlobId,
    module::Modules,
    query::Query,
};

/// What kind of chunks are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Any; code before tests and prose.
    #[default]
    Any,
    /// Where something is defined.
    Definition,
    /// Where a name is used.
    Usage,
    /// Tests only.
    Test,
    /// Prose only.
    Docs,
}

/// A file's content; nothing when it cannot be read.
pub type Read<'a> = &'a dyn Fn(BlobId) -> Option<Vec<u8>>;

/// A search.
pub struct Request<'a> {
    /// What to look for.
    pub query: &'a Query,
    /// What kind of chunks.
    pub kind: Kind,
    /// Which paths; absent: all.
    pub scope: Option<&'a dyn Fn(&str) -> bool>,
    /// The modules that matter, and by which chunks are capped; empty: all, as packages show them.
    pub modules: &'a Modules,
    /// Chunks at most, in all and of one module.
    pub max: usize,
    /// See above.
    pub max_in_module: usize,
    /// Further candidates to be ranked again by somebody else.
    pub candidates: usize,
}

impl<'a> Request<'a> {
    /// The usual search for a ticket.
    #[must_use]
    pub const fn new(query: &'a Query, modules: &'a Modules) -> Self {
        Self {
            query,
            kind: Kind::Any,
            scope: None,
            modules,
            max: MAX_CHUNKS,
            max_in_module: MAX_IN_MODULE,
            candidates: 0,
        }
    }
}

/// A chunk that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Where it is.
    pub path: String,
    /// Its file's content.
    pub blob: BlobId,
    /// First line, from 1.
    pub start: u32,
    /// Last line.
    pub end: u32,
    /// The name that fits best, or a heading; may be empty.
    pub symbol: String,
    /// Between 0 and 1; only to be compared within one answer.
    pub score: f32,
    /// Why it is here, in words.
    pub reason: String,
    /// Whether it is of a test.
    pub is_test: bool,
}

/// A chunk for somebody who ranks again.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The chunk; its reason is empty.
    pub found: Found,
    /// Its lines.
    pub text: String,
}

/// What a search came to. Nothing found: no confident match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The best first.
    pub found: Vec<Found>,
    /// More of them, the best first, when asked for.
    pub candidates: Vec<Candidate>,
    /// Whether more fitted than are shown.
    pub is_cut: bool,
}
