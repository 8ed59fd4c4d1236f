//! Errors of an index.

use std::io;

/// Reason why an index cannot be used or updated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of the index cannot be read or written.
    #[error("the index's folder cannot be used")]
    Folder(#[from] io::Error),
    /// The index is damaged or the disk failed.
    #[error("the index cannot be used")]
    Index(#[from] tantivy::TantivyError),
    /// The caller interrupted the update.
    #[error("indexing was interrupted")]
    Interrupted,
}
