//! Name, cost and progress of a fact.

use super::Fact;
use crate::{budget::amounts::ModelCharge, outbound::report::OutboundReceipt};

impl Fact {
    /// The name in logs and listings.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::TakenOver { .. } => "taken_over",
            Self::WorkspaceRequested { .. } => "workspace_requested",
            Self::WorkspaceOpened { .. } => "workspace_opened",
            Self::WorkspaceFailed { .. } => "workspace_failed",
            Self::WorkspaceRestored { .. } => "workspace_restored",
            Self::WentBack { .. } => "went_back",
            Self::LimitsSet { .. } => "limits_set",
            Self::ModelRequested { .. } => "model_requested",
            Self::ModelReplied { .. } => "model_replied",
            Self::ModelFailed { .. } => "model_failed",
            Self::BudgetRefused { .. } => "budget_refused",
            Self::ToolRequested { .. } => "tool_requested",
            Self::ToolFinished { .. } => "tool_finished",
            Self::CodeFound { .. } => "code_found",
            Self::EffortForecast { .. } => "effort_forecast",
            Self::ChecksFound { .. } => "checks_found",
            Self::CheckRequested { .. } => "check_requested",
            Self::CheckRan { .. } => "check_ran",
            Self::ChangeInspected { .. } => "change_inspected",
            Self::PhaseFinished { .. } => "phase_finished",
            Self::ContextCleared { .. } => "context_cleared",
            Self::SummaryRequested { .. } => "summary_requested",
            Self::Summarized { .. } => "summarized",
            Self::SummaryFailed { .. } => "summary_failed",
            Self::ClassRaised { .. } => "class_raised",
            Self::Returned { .. } => "returned",
            Self::HeadMoved { .. } => "head_moved",
            Self::SnapshotTaken { .. } => "snapshot_taken",
            Self::SnapshotFailed { .. } => "snapshot_failed",
            Self::ReportRequested { .. } => "report_requested",
            Self::ReportSettled { .. } => "report_settled",
            Self::Parked { .. } => "parked",
            Self::RetryScheduled { .. } => "retry_scheduled",
            Self::Retried { .. } => "retried",
            Self::Decided { .. } => "decided",
            Self::StopRequested { .. } => "stop_requested",
            Self::NewsArrived { .. } => "news_arrived",
            Self::Hinted { .. } => "hinted",
            Self::RunFinished { .. } => "run_finished",
        }
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
