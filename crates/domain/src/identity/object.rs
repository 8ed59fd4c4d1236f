//! Bodies in the object store.

use serde::{Deserialize, Serialize};

/// A body in the object store, named by its content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// SHA-256 of the bytes, lower-case hexadecimal.
    pub sha256: String,
    /// Size in bytes.
    pub size_bytes: u64,
}
