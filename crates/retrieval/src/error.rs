//! What can go wrong with an index.

use std::io;

/// Why an index cannot be used or brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder cannot be read or written.
    #[error("the index's folder cannot be used")]
    Folder(#[from] io::Error),
    /// The index is broken or the disk is in trouble.
    #[error("the index cannot be used")]
    Index(#[from] tantivy::TantivyError),
    /// Who asked does not want it any more.
    #[error("indexing was cut")]
    Cut,
}
