//! Search for the code that a text is about.
//!
//! Files are divided into chunks (definitions, headings, windows of lines), which are indexed once per
//! content and path. A query built from a ticket's text ranks them in several ways and fuses the ranks.
//!
//! The crate does not use git, a network or an async runtime. The caller supplies files ([`Source`]) and
//! displays the results.

mod attributes;
mod caps;
mod catalog;
mod chunk;
mod connect;
mod definition;
mod error;
mod file;
mod fusion;
mod graph;
mod index;
mod judge;
mod lists;
mod markdown;
mod module;
mod paths;
mod piece;
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

pub use attributes::Attributes;
pub use caps::{MAX_CHUNKS, MAX_IN_MODULE};
pub use chunk::chunks;
pub use definition::Definition;
pub use error::Error;
pub use file::{BlobId, Source, TreeFile, Unread};
pub use index::Index;
pub use module::Modules;
pub use paths::match_paths;
pub use piece::Chunk;
pub use query::{PathMention, Query};
pub use request::{Answer, Candidate, Found, Kind, Read, Request};
pub use skip::{MAX_FILE_BYTES, Skip, is_test};
pub use text::quoted_in;
pub use tokens::tokens;
pub use tree::Tree;
pub use update::{Progress, Updated};
