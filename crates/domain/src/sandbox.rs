//! Levels of confinement for commands.

use serde::{Deserialize, Serialize};

/// Confinement of commands on an executor, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SandboxLevel {
    /// Only resource limits and a cleaned environment.
    L0,
    /// Landlock and seccomp under the executor's uid.
    L1,
    /// In addition, a separate uid or container.
    L2,
    /// microVM or gVisor from the pod's runtime class.
    L3,
}
