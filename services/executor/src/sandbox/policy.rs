//! What the launcher is told about one command: one line of JSON on its standard input.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One command and its bounds. The environment is the launcher's own.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Policy {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Where it starts.
    pub(crate) directory: PathBuf,
    /// Folders that it may write.
    pub(crate) writable: Vec<PathBuf>,
    /// Folders inside hidden ones that it may read.
    pub(crate) readable: Vec<PathBuf>,
    /// Folders that it may not read; everything else it may.
    pub(crate) hidden: Vec<PathBuf>,
    /// Largest file it may write, in bytes.
    pub(crate) max_file_bytes: u64,
    /// Whether Landlock is applied.
    pub(crate) landlock: bool,
}
