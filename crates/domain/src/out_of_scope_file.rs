//! Files outside of a change's scope.

use serde::{Deserialize, Serialize};

/// A changed file outside of the scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfScopeFile {
    /// Path relative to the root.
    pub path: String,
    /// The module that contains the file.
    pub module: String,
}
