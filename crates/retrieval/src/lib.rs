//! Search for the code that a text is about.
//!
//! Files are divided into chunks (definitions, headings, windows of lines), which are indexed once per
//! content and path. A query built from a ticket's text ranks them in several ways and fuses the ranks.
//!
//! The crate does not use git, a network or an async runtime. The caller supplies files ([`ContentSource`]) and
//! displays the results.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod attributes;
mod caps;
mod catalog;
mod chunk;
mod code_chunk;
mod error;
mod file;
mod fusion;
mod graph;
mod index;
#[cfg(test)]
mod index_tests;
mod judge;
mod lists;
mod module;
mod name_links;
mod paths;
mod query;
mod ranking;
mod request;
mod schema;
mod search;
mod skip;
mod stop_words;
mod text;
mod tokens;
mod tree;
mod update;

pub use attributes::AttributeRules;
pub use caps::{MAX_CHUNKS, MAX_IN_MODULE};
pub use chunk::divide_file;
pub use code_chunk::CodeChunk;
pub use error::Error;
pub use file::{BlobId, CodeDefinition, ContentSource, SharedReadFailure, TreeFile};
pub use index::CodeIndex;
pub use module::ModuleFolders;
pub use paths::match_paths;
pub use query::{PathMention, SearchQuery};
pub use request::{ChunkKind, FoundChunk, RankCandidate, ReadContent, SearchAnswer, SearchRequest};
pub use skip::{IndexSkip, MAX_FILE_BYTES, find_foreign_part, is_test};
pub use text::quoted_in;
pub use tokens::collect_words;
pub use tree::IndexedTree;
pub use update::{UpdateProgress, UpdateSummary};
