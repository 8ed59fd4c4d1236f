//! Where runs wait for people's decisions.

use domain::{CommitId, Entry, Fact, RunId, WaitsFor};

/// Where a run waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gate {
    /// Position of the entry that says so.
    pub(crate) position: u64,
    /// The commit or plan that is decided about.
    pub(crate) head: CommitId,
}

impl Gate {
    /// The key of the one decision that it takes, through whatever door.
    pub(crate) fn key(&self, run: &RunId) -> String {
        format!("decision:{run}:{}", self.position)
    }
}

/// Where the run waits for a decision now.
pub(crate) fn open_gate<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<Gate> {
    let (mut asked, mut gate) = (None, None);
    for entry in entries {
        match &entry.fact {
            Fact::ReportRequested { request, .. } => asked = request.asks_about().cloned().or(asked),
            Fact::Parked {
                waits_for: WaitsFor::Decision,
            } => {
                let position = entry.position;
                gate = asked.clone().map(|head| Gate { position, head });
            }
            Fact::Decided { .. } | Fact::StopRequested { .. } | Fact::RunFinished { .. } => gate = None,
            _ => {}
        }
    }
    gate
}
