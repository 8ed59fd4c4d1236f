//! Levels of confinement.

use serde::{Deserialize, Serialize};

/// How well commands are confined at an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SandboxLevel {
    /// Nothing beyond limits and a cleaned environment.
    L0,
    /// Landlock and seccomp under the executor's uid.
    L1,
    /// A separate uid or container besides.
    L2,
    /// microVM or gVisor from the pod's runtime class.
    L3,
}
