//! Steps by which facts open and close the approval gate of a run.
//!
//! Console and ingest fold the same steps, so the console offers exactly the decisions that ingest accepts.

use crate::{
    identity::{commit::CommitId, ids::OutboundId},
    journal::{fact::Fact, wait_condition::WaitCondition},
    outbound::report::OutboundAction,
};

/// Step of the approval gate by one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateStep<'f> {
    /// A report asks people about a commit or a plan.
    Asked {
        /// The commit, or the identity of the plan.
        head: &'f CommitId,
        /// The report that asks.
        report: &'f OutboundId,
        /// True for a plan.
        is_plan: bool,
    },
    /// The run waits for the decision about the last question.
    Opened,
    /// The run waits for no decision any longer.
    Closed,
    /// The fact concerns no gate.
    Unchanged,
}

impl Fact {
    /// Step of the approval gate by this fact.
    pub fn gate_step(&self) -> GateStep<'_> {
        match self {
            Self::ReportRequested { id, request, .. } => match request.asks_about() {
                Some(head) => GateStep::Asked {
                    head,
                    report: id,
                    is_plan: matches!(request, OutboundAction::PlanProposed(_)),
                },
                None => GateStep::Unchanged,
            },
            Self::Parked { waits_for } if *waits_for == WaitCondition::Decision => GateStep::Opened,
            // No decision is pending about a change whose head another push replaced, or whose run has ended.
            Self::Decided { .. }
            | Self::HeadMoved { .. }
            | Self::StopRequested { .. }
            | Self::RunFinished { .. } => GateStep::Closed,
            Self::Parked { .. }
            | Self::RunStarted { .. }
            | Self::TakenOver { .. }
            | Self::WorkspaceRequested { .. }
            | Self::WorkspaceOpened { .. }
            | Self::WorkspaceFailed { .. }
            | Self::WorkspaceRestored { .. }
            | Self::WentBack { .. }
            | Self::LimitsSet { .. }
            | Self::ModelRequested { .. }
            | Self::ModelReplied { .. }
            | Self::ModelFailed { .. }
            | Self::BudgetRefused { .. }
            | Self::ToolRequested { .. }
            | Self::ToolFinished { .. }
            | Self::McpToolsListed { .. }
            | Self::CodeFound { .. }
            | Self::EffortForecast { .. }
            | Self::ChecksFound { .. }
            | Self::CheckRequested { .. }
            | Self::CheckRan { .. }
            | Self::ChangeInspected { .. }
            | Self::PhaseFinished { .. }
            | Self::ContextCleared { .. }
            | Self::SummaryRequested { .. }
            | Self::Summarized { .. }
            | Self::SummaryFailed { .. }
            | Self::ClassRaised { .. }
            | Self::Returned { .. }
            | Self::SnapshotTaken { .. }
            | Self::SnapshotFailed { .. }
            | Self::ReportSettled { .. }
            | Self::RetryScheduled { .. }
            | Self::Retried { .. }
            | Self::NewsArrived { .. }
            | Self::Hinted { .. } => GateStep::Unchanged,
        }
    }
}
