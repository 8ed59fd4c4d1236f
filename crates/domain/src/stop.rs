//! Why a run ended.

mod words;

use serde::{Deserialize, Serialize};

use crate::{Budget, Refusal, Repetition, SharedBudget, Timestamp};

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
    /// The model ended although its change is not complete; its last words.
    Unfinished {
        /// The model's closing text, capped at 4,000 characters.
        summary: String,
        /// What of the change could not be saved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unsaved: Vec<String>,
    },
    /// The change is delivered as a draft, and its own checks are worse than before it.
    ChecksFail {
        /// The checks that are worse.
        commands: Vec<String>,
        /// The first tests that fail with the change and not before.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failing: Vec<String>,
        /// The first tests that passed before and do not run any more.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
    },
    /// The turn limit was reached; what exists is kept as a draft.
    TurnLimit {
        /// The limit.
        turns: u32,
    },
    /// The model repeated itself; what exists is kept as a draft.
    Stuck(Repetition),
    /// What the run may spend is spent; what exists is kept as a draft.
    BudgetSpent {
        /// Of what.
        budget: Budget,
        /// How much was spent, in the unit of the budget.
        spent: u64,
        /// How much the run may spend.
        limit: u64,
    },
    /// A budget beyond the run has no room for another call of a model; what exists is kept as a draft.
    SharedBudgetSpent(SharedBudget),
    /// The run may spend a certain amount of money, and nobody knows what the model costs that answered.
    PriceUnknown {
        /// The model, as the provider names it.
        model: String,
    },
    /// The plan that a person was to decide about was never made.
    NoPlan,
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
    /// The model gave up.
    GivenUp {
        /// Why, of a closed list.
        kind: GiveUp,
        /// What shows it, capped at 4,000 characters.
        evidence: String,
    },
    /// People asked for changes once more after the last time allowed.
    RevisionLimit {
        /// How often the change was revised.
        revisions: u32,
    },
    /// The model refuses to work on the ticket.
    ModelRefused,
    /// The conversation does not fit into the model's window and could not be made shorter; what exists is kept as a draft.
    ContextTooLong,
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
    ReportRefused(Refusal),
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
    /// The review that it was to give is not wanted any more.
    Withdrawn {
        /// Why not.
        why: Withdrawal,
    },
}

/// Why a review that was asked for is not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withdrawal {
    /// The pull request was merged.
    Merged,
    /// It was closed.
    Closed,
    /// The request for the review was taken back.
    Unrequested,
}

impl StopReason {
    /// True when the outside failed for good: work on the ticket stops until a person gives it back.
    pub const fn breaks_circuit(&self) -> bool {
        match self {
            Self::ModelFailed { .. } | Self::WorkspaceUnavailable { .. } | Self::ReportFailed { .. } => true,
            Self::Completed
            | Self::NoChange { .. }
            | Self::Unfinished { .. }
            | Self::ChecksFail { .. }
            | Self::TurnLimit { .. }
            | Self::NoPlan
            | Self::Stuck(_)
            | Self::BudgetSpent { .. }
            | Self::SharedBudgetSpent(_)
            | Self::PriceUnknown { .. }
            | Self::Stopped { .. }
            | Self::Rejected { .. }
            | Self::GivenUp { .. }
            | Self::RevisionLimit { .. }
            | Self::ModelRefused
            | Self::ContextTooLong
            | Self::SetupFailed { .. }
            | Self::ReportRefused(_)
            | Self::UnsupportedJob
            | Self::JournalUnreadable
            | Self::JournalLost
            | Self::Superseded
            | Self::Withdrawn { .. } => false,
        }
    }

    /// True when Journeyman came to no end by itself: the ticket goes back, and giving it to us again asks for work again.
    pub const fn gives_back(&self) -> bool {
        let is_stuck = matches!(
            self,
            Self::TurnLimit { .. }
                | Self::Stuck(_)
                | Self::BudgetSpent { .. }
                | Self::SetupFailed { .. }
                | Self::ModelRefused
                | Self::ContextTooLong
                | Self::ReportRefused { .. }
        );
        self.breaks_circuit() || is_stuck
    }

    /// When waiting alone takes the reason away, where that is known.
    pub const fn resets(&self) -> Option<Timestamp> {
        if let Self::SharedBudgetSpent(budget) = self {
            budget.resets
        } else {
            None
        }
    }

    /// The name in the API, metrics and journals.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NoChange { .. } => "no_change",
            Self::Unfinished { .. } => "unfinished",
            Self::ChecksFail { .. } => "checks_fail",
            Self::TurnLimit { .. } => "turn_limit",
            Self::NoPlan => "no_plan",
            Self::Stuck(_) => "stuck",
            Self::BudgetSpent { .. } => "budget_spent",
            Self::SharedBudgetSpent(_) => "shared_budget_spent",
            Self::PriceUnknown { .. } => "price_unknown",
            Self::Stopped { .. } => "stopped",
            Self::Rejected { .. } => "rejected",
            Self::GivenUp { .. } => "given_up",
            Self::RevisionLimit { .. } => "revision_limit",
            Self::ModelRefused => "model_refused",
            Self::ContextTooLong => "context_too_long",
            Self::ModelFailed { .. } => "model_failed",
            Self::WorkspaceUnavailable { .. } => "workspace_unavailable",
            Self::SetupFailed { .. } => "setup_failed",
            Self::ReportRefused(_) => "report_refused",
            Self::ReportFailed { .. } => "report_failed",
            Self::UnsupportedJob => "unsupported_job",
            Self::JournalUnreadable => "journal_unreadable",
            Self::JournalLost => "journal_lost",
            Self::Superseded => "superseded",
            Self::Withdrawn { .. } => "withdrawn",
        }
    }
}

/// Why the model gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GiveUp {
    /// What the ticket asks for contradicts tests that are right.
    SpecContradictsTests,
    /// The bug does not show.
    CannotReproduce,
    /// The repository does what the ticket asks for.
    AlreadyDone,
    /// The work lies outside the repository or the rules.
    OutOfScope,
    /// Something that is missing here keeps it from being done.
    Blocked,
    /// It is more than one pull request.
    TooLarge,
    /// Another ticket asks for the same.
    Duplicate,
}

impl GiveUp {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::SpecContradictsTests,
        Self::CannotReproduce,
        Self::AlreadyDone,
        Self::OutOfScope,
        Self::Blocked,
        Self::TooLarge,
        Self::Duplicate,
    ];

    /// The name in tool calls and journals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SpecContradictsTests => "spec_contradicts_tests",
            Self::CannotReproduce => "cannot_reproduce",
            Self::AlreadyDone => "already_done",
            Self::OutOfScope => "out_of_scope",
            Self::Blocked => "blocked",
            Self::TooLarge => "too_large",
            Self::Duplicate => "duplicate",
        }
    }
}
