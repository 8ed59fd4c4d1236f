//! Grants, and the reasons to refuse them.

use domain::{HostPattern, RepositoryName, RunFence, RunId};

/// Service that accepts a grant. No service accepts a grant for another audience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantAudience {
    /// Tool calls at an executor.
    Executor,
    /// Status of an executor: tools, slots and open runs. It opens no workspace.
    Status,
    /// Git gate of the reporter: read-only clones.
    Gate,
    /// Egress proxy: hosts that setup commands may reach.
    Egress,
}

/// Rights of a grant's bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Service that accepts the grant.
    pub audience: GrantAudience,
    /// Run that the grant was made for.
    pub run: RunId,
    /// Only repository that the grant opens.
    pub repository: RepositoryName,
    /// Only workspace that the grant opens; absent until the workspace is open.
    pub workspace: Option<String>,
    /// Fence of the planner that made the grant.
    pub fence: RunFence,
    /// Hosts that the grant opens; only for the egress proxy.
    pub network: Vec<HostPattern>,
}

/// Reason why a grant or key is refused, for operators. It never contains a token or a key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GrantRefusal(pub String);

impl GrantRefusal {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
