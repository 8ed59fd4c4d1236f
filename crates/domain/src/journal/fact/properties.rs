//! Name, cost and progress of a fact.

use super::Fact;
use crate::{budget::amounts::ModelCharge, outbound::report::OutboundReceipt};

/// Names of the facts that are routine steps between two decisions of a run.
const ROUTINE: [&str; 9] = [
    "model_requested",
    "model_replied",
    "tool_requested",
    "tool_finished",
    "check_requested",
    "check_ran",
    "mcp_tools_listed",
    "code_found",
    "snapshot_taken",
];

impl Fact {
    /// The name in logs and listings.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns the receipt of a report that the reporter completed.
    #[must_use]
    pub const fn receipt(&self) -> Option<&OutboundReceipt> {
        if let Self::ReportSettled { outcome, .. } = self {
            outcome.receipt()
        } else {
            None
        }
    }

    /// Returns the charge of a model's reply; `None` for a fact that costs nothing.
    // The only place that decides which facts cost something. A useless summary costs its tokens, too.
    pub const fn charge(&self) -> Option<ModelCharge<'_>> {
        if let Self::ModelReplied { id, reply, .. } | Self::Summarized { id, reply } = self {
            Some(ModelCharge { call: id, reply })
        } else {
            None
        }
    }

    /// Returns true for the name of a routine step between two decisions of a run: a call, its answer, a
    /// snapshot. It leaves the status of the run unchanged.
    // By name, so that a follower of all journals need not decode the facts.
    #[must_use]
    pub fn is_routine_name(name: &str) -> bool {
        ROUTINE.contains(&name)
    }

    /// Returns true when the fact proves progress beyond the point at which an earlier planner crashed: a
    /// request is not progress, an answer is.
    #[must_use]
    pub const fn shows_progress(&self) -> bool {
        // All variants are listed, so that a new fact has to be classified here.
        match self {
            Self::TakenOver { .. }
            | Self::WorkspaceRequested { .. }
            | Self::WorkspaceRestored { .. }
            | Self::LimitsSet { .. }
            | Self::ModelRequested { .. }
            | Self::ToolRequested { .. }
            | Self::SummaryRequested { .. }
            | Self::CheckRequested { .. } => false,
            Self::RunStarted { .. }
            | Self::WorkspaceOpened { .. }
            | Self::WentBack { .. }
            | Self::WorkspaceFailed { .. }
            | Self::ModelReplied { .. }
            | Self::ModelFailed { .. }
            | Self::BudgetRefused { .. }
            | Self::ToolFinished { .. }
            | Self::McpToolsListed { .. }
            | Self::CodeFound { .. }
            | Self::EffortForecast { .. }
            | Self::ChecksFound { .. }
            | Self::CheckRan { .. }
            | Self::ChangeInspected { .. }
            | Self::PhaseFinished { .. }
            | Self::ContextCleared { .. }
            | Self::Summarized { .. }
            | Self::SummaryFailed { .. }
            | Self::ClassRaised { .. }
            | Self::Returned { .. }
            | Self::HeadMoved { .. }
            | Self::SnapshotTaken { .. }
            | Self::SnapshotFailed { .. }
            | Self::ReportRequested { .. }
            | Self::ReportSettled { .. }
            | Self::Parked { .. }
            | Self::RetryScheduled { .. }
            | Self::Retried { .. }
            | Self::Decided { .. }
            | Self::StopRequested { .. }
            | Self::NewsArrived { .. }
            | Self::Hinted { .. }
            | Self::RunFinished { .. } => true,
        }
    }
}
