//! What a grant says, and why one is refused.

use domain::{HostPattern, RepositoryName, RunFence, RunId};

/// Who a grant is for; one audience never accepts the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The executor's tool calls.
    Executor,
    /// What an executor says of itself: its tools, slots and open runs. It opens no workspace.
    Status,
    /// The reporter's git gate: read-only clones.
    Gate,
    /// The egress proxy: what setup commands may reach.
    Egress,
}

/// What its bearer may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who it is for.
    pub audience: Audience,
    /// The run it was made for.
    pub run: RunId,
    /// The one repository it opens.
    pub repository: RepositoryName,
    /// The one workspace it opens; absent until the workspace is open.
    pub workspace: Option<String>,
    /// The fence of the planner that made it.
    pub fence: RunFence,
    /// Hosts that it opens; only for the egress proxy.
    pub network: Vec<HostPattern>,
}

/// Why a grant or a key is refused, for operators. Never holds a token or a key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
