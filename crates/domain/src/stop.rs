//! Why a run ended.

use serde::{Deserialize, Serialize};

/// Why a run ended: typed end to end, told to the ticket in the words of the reporter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StopReason {
    /// The job is done.
    Completed,
    /// The model ended without a change; its last words.
    NoChange {
        /// The model's closing text, capped at 4,000 characters.
        summary: String,
    },
    /// The turn limit was reached; what exists is kept as a draft.
    TurnLimit {
        /// The limit.
        turns: u32,
    },
    /// A person stopped it.
    Stopped {
        /// Who asked.
        by: String,
    },
    /// A person rejected the change at the approval gate.
    Rejected {
        /// Who decided.
        by: String,
    },
    /// The model provider refused or failed for good.
    ModelFailed {
        /// For people: status and class, never a body.
        detail: String,
    },
    /// No workspace could be opened, e.g. the repository could not be cloned.
    WorkspaceUnavailable {
        /// For people.
        detail: String,
    },
    /// The repository's setup commands failed.
    SetupFailed {
        /// The end of the log, capped at 4,000 characters.
        log_tail: String,
    },
    /// The outside refused an effect that the job cannot do without.
    ReportRefused {
        /// For people.
        detail: String,
    },
    /// An effect that the job cannot do without failed again and again.
    ReportFailed {
        /// For people.
        detail: String,
    },
    /// This release cannot do such work.
    UnsupportedJob,
    /// Its journal cannot be read, so it cannot be continued.
    JournalUnreadable,
    /// Its journal is gone, so it cannot be continued.
    JournalLost,
    /// A newer request took its place.
    Superseded,
}

impl StopReason {
    /// True when the outside failed for good: work on the ticket stops until a person gives it back.
    pub const fn breaks_circuit(&self) -> bool {
        match self {
            Self::ModelFailed { .. } | Self::WorkspaceUnavailable { .. } | Self::ReportFailed { .. } => true,
            Self::Completed
            | Self::NoChange { .. }
            | Self::TurnLimit { .. }
            | Self::Stopped { .. }
            | Self::Rejected { .. }
            | Self::SetupFailed { .. }
            | Self::ReportRefused { .. }
            | Self::UnsupportedJob
            | Self::JournalUnreadable
            | Self::JournalLost
            | Self::Superseded => false,
        }
    }

    /// The name in the API, metrics and journals.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NoChange { .. } => "no_change",
            Self::TurnLimit { .. } => "turn_limit",
            Self::Stopped { .. } => "stopped",
            Self::Rejected { .. } => "rejected",
            Self::ModelFailed { .. } => "model_failed",
            Self::WorkspaceUnavailable { .. } => "workspace_unavailable",
            Self::SetupFailed { .. } => "setup_failed",
            Self::ReportRefused { .. } => "report_refused",
            Self::ReportFailed { .. } => "report_failed",
            Self::UnsupportedJob => "unsupported_job",
            Self::JournalUnreadable => "journal_unreadable",
            Self::JournalLost => "journal_lost",
            Self::Superseded => "superseded",
        }
    }
}
