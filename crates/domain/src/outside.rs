//! Files that a change must not touch.

use serde::{Deserialize, Serialize};

/// A file outside the scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Relative to the root.
    pub path: String,
    /// The module that it belongs to.
    pub module: String,
}
