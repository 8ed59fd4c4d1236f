//! Name, cost and progress of a fact.

use super::Fact;
use crate::{budget::amounts::ModelCharge, outbound::report::OutboundReceipt};

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

    /// Returns true for a routine step between two decisions of a run: a call, its answer, a snapshot. It
    /// leaves the status of the run unchanged.
    #[must_use]
    pub const fn is_routine(&self) -> bool {
        matches!(
            self,
            Self::ModelRequested { .. }
                | Self::ModelReplied { .. }
                | Self::ToolRequested { .. }
                | Self::ToolFinished { .. }
                | Self::CheckRequested { .. }
                | Self::CheckRan { .. }
                | Self::McpToolsListed { .. }
                | Self::CodeFound { .. }
                | Self::SnapshotTaken { .. }
        )
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
