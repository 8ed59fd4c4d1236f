//! Reasons for the end of a run.

mod words;

use serde::{Deserialize, Serialize};

use crate::{
    budget::{run_limits::BudgetUnit, shared_budget::SharedBudget},
    identity::time::Timestamp,
    outbound::refusal::OutboundRefusal,
    work::{resolution::ConflictLeft, tool::TurnRepetition},
};

/// Reason for the end of a run. The reporter renders it on the ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StopReason {
    /// The job is done.
    Completed,
    /// The model ended without a change.
    NoChange {
        /// The model's closing text, capped at 4,000 characters.
        summary: String,
    },
    /// The model ended although its change is incomplete. The existing change remains a draft, unless a part of it
    /// could not be saved.
    Unfinished {
        /// The model's closing text, capped at 4,000 characters.
        summary: String,
        /// Parts of the change that could not be saved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unsaved: Vec<String>,
    },
    /// The change is delivered as a draft. Its own checks fail more than before it, or fail where the base gave no
    /// result.
    ChecksFail {
        /// The commands of these checks.
        commands: Vec<String>,
        /// The commands among them whose checks gave no result at the base.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        uncompared: Vec<String>,
        /// The first tests that fail with the change, and at the base either pass or have no result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failing: Vec<String>,
        /// The first tests that passed before and no longer run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
    },
    /// The run reached its turn limit. The existing change remains a draft.
    TurnLimit {
        /// The limit of turns.
        turns: u32,
    },
    /// The model repeated itself. The existing change remains a draft.
    Stuck(TurnRepetition),
    /// The run exhausted its budget. The existing change remains a draft.
    BudgetSpent {
        /// The exhausted unit.
        budget: BudgetUnit,
        /// Used amount, in the unit of the budget.
        spent: u64,
        /// Limit of the run, in the unit of the budget.
        limit: u64,
    },
    /// A budget beyond the run is too small for another model call. The existing change remains a draft.
    SharedBudgetSpent(SharedBudget),
    /// The run has a cost limit, and the price of the answering model is unknown.
    PriceUnknown {
        /// The model by the provider's name for it.
        model: String,
    },
    /// The model made no plan for the required decision.
    NoPlan,
    /// A person stopped the run.
    Stopped {
        /// Name of the person.
        by: String,
    },
    /// A person rejected the change at the approval gate.
    Rejected {
        /// Name of the person.
        by: String,
    },
    /// The model gave up.
    GivenUp {
        /// Reason from a closed list.
        kind: GiveUp,
        /// Evidence of the model, capped at 4,000 characters.
        evidence: String,
    },
    /// The conflict with the base branch is left to people.
    ConflictLeft {
        /// Reason for people.
        why: ConflictLeft,
        /// The conflicting files; at most 20.
        files: Vec<String>,
    },
    /// People requested changes again after the last permitted revision.
    RevisionLimit {
        /// Number of revisions of the change.
        revisions: u32,
    },
    /// The model refuses to work on the ticket.
    ModelRefused,
    /// The conversation exceeds the model's context window and could not be shortened. The existing change
    /// remains a draft.
    ContextTooLong,
    /// The model provider refused or failed permanently.
    ModelFailed {
        /// Status and error class for people, never a response body.
        detail: String,
    },
    /// No executor could open a workspace, e.g. because the clone failed.
    WorkspaceUnavailable {
        /// Description of the failure for people.
        detail: String,
    },
    /// The repository's setup commands failed.
    SetupFailed {
        /// The end of the log, capped at 4,000 characters.
        log_tail: String,
    },
    /// An external service or the policy refused an effect that the job needs.
    ReportRefused(OutboundRefusal),
    /// An effect that the job needs failed after all retries.
    ReportFailed {
        /// Description of the failure for people.
        detail: String,
    },
    /// This release does not support the job.
    UnsupportedJob,
    /// The journal is unreadable, so the run cannot continue.
    JournalUnreadable,
    /// The journal is lost, so the run cannot continue.
    JournalLost,
    /// A newer request replaced the run.
    Superseded,
    /// The requested review, or the change of a pull request, is no longer wanted.
    Withdrawn {
        /// Reason for the withdrawal.
        why: WithdrawalReason,
    },
    /// The ticket left its place.
    TicketLeft(TicketDeparture),
}

/// Class of a stop reason, by its consequence for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopClass {
    /// The job is done.
    Completed,
    /// A decision of people ended the run, or there was nothing to do.
    Settled,
    /// Journeyman could not finish by itself, so the ticket returns to its team.
    GivenBack,
    /// An external service failed permanently.
    ServiceFailure,
    /// Any other failure that a person has to resolve.
    Failure,
}

/// Reason why a requested review, or a change of a pull request, is no longer wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithdrawalReason {
    /// The pull request was merged.
    Merged,
    /// The pull request was closed.
    Closed,
    /// The request for the review was removed.
    Unrequested,
}

/// End of a ticket at its place in the tracker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "departure", rename_all = "snake_case")]
pub enum TicketDeparture {
    /// It was transferred and is another ticket at another place.
    Transferred {
        /// Present place, e.g. `acme/other#220`; absent where no account of ours sees it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// A person deleted it with its conversation.
    Deleted,
}

impl TicketDeparture {
    /// Returns the departure for people: `transferred to acme/other#220`.
    pub fn words(&self) -> String {
        match self {
            Self::Transferred { to: Some(to) } => format!("transferred to {to}"),
            Self::Transferred { to: None } => {
                "transferred to a place that no account of ours sees".to_owned()
            }
            Self::Deleted => "deleted".to_owned(),
        }
    }
}

impl StopReason {
    /// Returns the class of the reason.
    pub const fn class(&self) -> StopClass {
        // All variants are listed, so that a new reason has to be classified here.
        match self {
            Self::Completed => StopClass::Completed,
            Self::NoChange { .. }
            | Self::Stopped { .. }
            | Self::Rejected { .. }
            | Self::Superseded
            | Self::Withdrawn { .. }
            | Self::TicketLeft(_) => StopClass::Settled,
            Self::TurnLimit { .. }
            | Self::Stuck(_)
            | Self::BudgetSpent { .. }
            | Self::SetupFailed { .. }
            | Self::ModelRefused
            | Self::ContextTooLong
            | Self::ConflictLeft { .. }
            | Self::ReportRefused(_) => StopClass::GivenBack,
            Self::ModelFailed { .. } | Self::WorkspaceUnavailable { .. } | Self::ReportFailed { .. } => {
                StopClass::ServiceFailure
            }
            Self::Unfinished { .. }
            | Self::ChecksFail { .. }
            | Self::SharedBudgetSpent(_)
            | Self::PriceUnknown { .. }
            | Self::NoPlan
            | Self::GivenUp { .. }
            | Self::RevisionLimit { .. }
            | Self::UnsupportedJob
            | Self::JournalUnreadable
            | Self::JournalLost => StopClass::Failure,
        }
    }

    /// Returns true after a permanent failure of an external service: work on the ticket stops until a person
    /// requests it again.
    pub const fn breaks_circuit(&self) -> bool {
        matches!(self.class(), StopClass::ServiceFailure)
    }

    /// Returns true when Journeyman could not finish by itself: the ticket returns to its team, and assigning
    /// it again requests new work.
    pub const fn gives_back(&self) -> bool {
        matches!(self.class(), StopClass::GivenBack | StopClass::ServiceFailure)
    }

    /// Returns true when a person has to act: the run failed, and no person wanted its end.
    pub const fn is_failure(&self) -> bool {
        match self.class() {
            StopClass::Completed | StopClass::Settled => false,
            StopClass::GivenBack | StopClass::ServiceFailure | StopClass::Failure => true,
        }
    }

    /// Returns the time at which the reason ends by waiting, if it is known.
    pub const fn resets(&self) -> Option<Timestamp> {
        if let Self::SharedBudgetSpent(budget) = self {
            budget.resets
        } else {
            None
        }
    }

    /// The name in the API, in metrics and in journals.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }
}

/// Reason for which the model gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum GiveUp {
    /// The ticket contradicts existing tests that are correct.
    SpecContradictsTests,
    /// The bug cannot be reproduced.
    CannotReproduce,
    /// The repository already fulfills the ticket.
    AlreadyDone,
    /// The work is outside of the repository or its rules.
    OutOfScope,
    /// A missing prerequisite blocks the work.
    Blocked,
    /// The work is too large for one pull request.
    TooLarge,
    /// Another ticket has the same request.
    Duplicate,
}

impl GiveUp {
    /// The name in tool calls and journals.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_determines_consequences_for_people() {
        let failed = StopReason::ModelFailed {
            detail: "529".to_owned(),
        };
        let consequences = |reason: &StopReason| {
            [
                ("breaks circuit", reason.breaks_circuit()),
                ("gives back", reason.gives_back()),
                ("is failure", reason.is_failure()),
            ]
            .into_iter()
            .filter_map(|(name, holds)| holds.then_some(name))
            .collect::<Vec<_>>()
        };
        for (reason, expected) in [
            (StopReason::Completed, vec![]),
            (StopReason::Superseded, vec![]),
            (StopReason::TicketLeft(TicketDeparture::Deleted), vec![]),
            (StopReason::NoPlan, vec!["is failure"]),
            (StopReason::ModelRefused, vec!["gives back", "is failure"]),
            (failed, vec!["breaks circuit", "gives back", "is failure"]),
        ] {
            assert_eq!(consequences(&reason), expected, "{reason:?}");
        }
    }
}
