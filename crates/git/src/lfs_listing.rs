//! Answer of the git gate about the contents of Git LFS at a commit.

use serde::{Deserialize, Serialize};

use crate::lfs_pointer::LfsPointer;

/// Contents of Git LFS at a commit: those that the git gate serves, and those that it leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LfsListing {
    /// Contents that the gate serves.
    pub contents: Vec<LfsPointer>,
    /// Contents that are missing, each with the reason.
    #[serde(default)]
    pub left_out: Vec<LfsOmission>,
}

/// Content that the git gate leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LfsOmission {
    /// Pointer of the content.
    pub pointer: LfsPointer,
    /// Reason, for the operator and the model.
    pub reason: String,
}
