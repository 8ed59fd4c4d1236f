//! Triggers: parsed reasons to act on a ticket, and news for its active runs.

use serde::{Deserialize, Serialize};

use crate::{
    budget::amounts::TicketCost,
    identity::{
        attachment::TicketAttachment,
        commit::CommitId,
        ids::RunId,
        repository::RepositoryName,
        ticket::{TicketComment, TicketKey},
        time::Timestamp,
    },
    journal::{
        kind::RecordKind,
        record_format::StoredRecord,
        stop::{TicketDeparture, WithdrawalReason},
    },
    outbound::report::OutboundSettled,
    trigger::{
        job::{Job, Lane},
        job_subject::JobRequest,
        pull_request::{ChecksSummary, PullRequestRef},
        pull_request_event::{PullRequestEvent, with_stored_events},
        reaction::ReactionSubject,
        skip::SkipReason,
    },
};

/// Semantic identity of an event (`changelog:10023`, `checks:<repo>:<sha>:<digest>`). All channels give the
/// same key to the same event, so it counts once.
// Any text is legal: characters such as `.`, `*` and spaces, which NATS excludes from a subject token,
// disappear in the hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TriggerKey(String);

impl TriggerKey {
    /// Creates a key from any text. Subjects contain its hash.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Channel that a trigger arrived through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerChannel {
    /// A webhook delivery from Jira or GitHub.
    Webhook,
    /// A poll of Jira or GitHub.
    Poll,
    /// A call of the API, also by the command line.
    Api,
    /// An outcome or a request of the reporter.
    Reporter,
}

/// A parsed reason to act on a ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The ticket to act on.
    pub ticket: TicketKey,
    /// The identity of the event.
    pub key: TriggerKey,
    /// Time of the event.
    pub at: Timestamp,
    /// The channel of the event.
    pub source: TriggerChannel,
    /// The acting user, by the name in the tracker.
    pub actor: Option<String>,
    /// The comment that gave an instruction. It gets a reaction as an acknowledgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ReactionSubject>,
    /// The event with its data.
    pub reason: TriggerReason,
}

impl StoredRecord for Trigger {
    const KIND: RecordKind = RecordKind::Trigger;
}

/// Event that a trigger reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredReason", into = "StoredReason")]
pub enum TriggerReason {
    /// A user, a rule or a program requested a job.
    JobRequested(Box<JobRequest>),
    /// An event of a pull request.
    PullRequest(PullRequestEvent),
    /// A requested review by Journeyman is no longer wanted.
    ReviewWithdrawn {
        /// Reason for the withdrawal.
        why: WithdrawalReason,
    },
    /// The ticket left its place, so the work on it ends.
    TicketLeft(TicketDeparture),
    /// A job was requested, and a skip rule applies.
    Skipped(SkipReason),
    /// A user requested a stop of the ticket's runs.
    StopRequested {
        /// The run to stop; absent: all active runs.
        run: Option<RunId>,
    },
    /// A user requested a retry: a waiting run continues at once, a quarantined ticket continues from its
    /// current state.
    RetryRequested,
    /// A person decided at an approval gate.
    Decided(GateDecision),
    /// The reporter completed a report.
    ReportSettled(OutboundSettled),
    /// A user asked for the cost of the ticket's runs.
    CostAsked {
        /// The pull request of the question; absent: it was asked on the ticket.
        on: Option<PullRequestRef>,
        /// Cost of the ticket's runs.
        cost: TicketCost,
    },
    /// A user asked for the ways to steer the work.
    HelpAsked {
        /// The pull request of the question; absent: it was asked on the ticket.
        on: Option<PullRequestRef>,
        /// The order that the user almost gave; absent: the user asked for all ways.
        meant: Option<String>,
    },
    /// An event on the ticket that is input for its active runs.
    NewsArrived(TicketNews),
}

impl TriggerReason {
    /// Returns the requested job; `None` for other events.
    pub fn job_request(&self) -> Option<&JobRequest> {
        if let Self::JobRequested(request) = self {
            Some(request)
        } else {
            None
        }
    }

    /// Returns the job of the run that the event opens; `None` when it opens none.
    pub fn job(&self) -> Option<Job> {
        match self {
            Self::JobRequested(request) => Some(request.job),
            Self::PullRequest(event) => Some(event.job()),
            Self::Skipped(_)
            | Self::ReviewWithdrawn { .. }
            | Self::TicketLeft(_)
            | Self::StopRequested { .. }
            | Self::RetryRequested
            | Self::Decided(_)
            | Self::ReportSettled(_)
            | Self::CostAsked { .. }
            | Self::HelpAsked { .. }
            | Self::NewsArrived(_) => None,
        }
    }

    /// Returns the lane of that run.
    pub fn lane(&self) -> Option<Lane> {
        Some(self.job()?.lane(self.repository()?))
    }

    /// Returns the repository of that run: the one of the request, or the one of the pull request.
    pub fn repository(&self) -> Option<&RepositoryName> {
        if let Self::JobRequested(request) = self {
            Some(&request.repository)
        } else {
            Some(&self.pull_request()?.repository)
        }
    }

    /// Returns the branch of the run, if it is known in advance.
    pub fn branch(&self) -> Option<&str> {
        self.pull_request()
            .map(|pull_request| pull_request.branch.as_str())
    }

    /// Returns the pull request that it is about: ours, or one whose merge finishes the ticket.
    pub fn pull_request(&self) -> Option<&PullRequestRef> {
        if let Self::PullRequest(event) = self {
            Some(event.pull_request())
        } else {
            Some(self.job_request()?.about.pull_request()?.0)
        }
    }
}

impl From<PullRequestEvent> for TriggerReason {
    fn from(event: PullRequestEvent) -> Self {
        Self::PullRequest(event)
    }
}

/// Defines the stored form of [`TriggerReason`], in which each event of a pull request has a name of its own.
macro_rules! define_stored_reason {
    (events { $($event:ident($data:ty): $name:literal, $request:literal;)+ }) => {
        #[derive(Serialize, Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum StoredReason {
            JobRequested(Box<JobRequest>),
            ChecksCompleted(ChecksSummary),
            $(#[serde(rename = $name)] $event($data),)+
            ReviewWithdrawn { why: WithdrawalReason },
            TicketLeft(TicketDeparture),
            Skipped(SkipReason),
            StopRequested { run: Option<RunId> },
            RetryRequested,
            Decided(GateDecision),
            ReportSettled(OutboundSettled),
            CostAsked { on: Option<PullRequestRef>, cost: TicketCost },
            HelpAsked {
                on: Option<PullRequestRef>,
                #[serde(default, skip_serializing_if = "Option::is_none")]
                meant: Option<String>,
            },
            NewsArrived(TicketNews),
        }

        impl From<StoredReason> for TriggerReason {
            fn from(stored: StoredReason) -> Self {
                match stored {
                    StoredReason::JobRequested(request) => Self::JobRequested(request),
                    StoredReason::ChecksCompleted(checks) => PullRequestEvent::ChecksCompleted(checks).into(),
                    $(StoredReason::$event(data) => PullRequestEvent::$event(data).into(),)+
                    StoredReason::ReviewWithdrawn { why } => Self::ReviewWithdrawn { why },
                    StoredReason::TicketLeft(departure) => Self::TicketLeft(departure),
                    StoredReason::Skipped(skipped) => Self::Skipped(skipped),
                    StoredReason::StopRequested { run } => Self::StopRequested { run },
                    StoredReason::RetryRequested => Self::RetryRequested,
                    StoredReason::Decided(decision) => Self::Decided(decision),
                    StoredReason::ReportSettled(settled) => Self::ReportSettled(settled),
                    StoredReason::CostAsked { on, cost } => Self::CostAsked { on, cost },
                    StoredReason::HelpAsked { on, meant } => Self::HelpAsked { on, meant },
                    StoredReason::NewsArrived(news) => Self::NewsArrived(news),
                }
            }
        }

        impl From<TriggerReason> for StoredReason {
            fn from(reason: TriggerReason) -> Self {
                match reason {
                    TriggerReason::JobRequested(request) => Self::JobRequested(request),
                    TriggerReason::PullRequest(event) => match event {
                        PullRequestEvent::ChecksCompleted(checks) => Self::ChecksCompleted(checks),
                        $(PullRequestEvent::$event(data) => Self::$event(data),)+
                    },
                    TriggerReason::ReviewWithdrawn { why } => Self::ReviewWithdrawn { why },
                    TriggerReason::TicketLeft(departure) => Self::TicketLeft(departure),
                    TriggerReason::Skipped(skipped) => Self::Skipped(skipped),
                    TriggerReason::StopRequested { run } => Self::StopRequested { run },
                    TriggerReason::RetryRequested => Self::RetryRequested,
                    TriggerReason::Decided(decision) => Self::Decided(decision),
                    TriggerReason::ReportSettled(settled) => Self::ReportSettled(settled),
                    TriggerReason::CostAsked { on, cost } => Self::CostAsked { on, cost },
                    TriggerReason::HelpAsked { on, meant } => Self::HelpAsked { on, meant },
                    TriggerReason::NewsArrived(news) => Self::NewsArrived(news),
                }
            }
        }
    };
}

with_stored_events! { define_stored_reason {} }

/// A person's decision at an approval gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateDecision {
    /// The waiting run.
    pub run: RunId,
    /// The commit that it is about. An approval permits the push of this commit only.
    pub head: CommitId,
    /// The verdict of the person.
    pub verdict: DecisionVerdict,
    /// Requested changes for `revise`; at most 8,000 characters.
    #[serde(default)]
    pub feedback: String,
}

/// The three verdicts at an approval gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionVerdict {
    /// The reporter may push the commit.
    Approve,
    /// The run stops.
    Reject,
    /// The model receives the feedback and continues.
    Revise,
}

/// An event that active runs of a ticket accept as input. Without an active run it has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum TicketNews {
    /// A person wrote a comment.
    Comment {
        /// The comment, sanitized like the ticket's text.
        comment: TicketComment,
        /// Our pull request that it was written on; absent: it was written on the ticket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pull_request: Option<PullRequestRef>,
        /// Attachments that the comment brought.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<TicketAttachment>,
    },
}

impl TicketNews {
    /// Returns the repository that it is about; absent: it may concern all work of the ticket.
    pub fn repository(&self) -> Option<&RepositoryName> {
        match self {
            Self::Comment { pull_request, .. } => {
                pull_request.as_ref().map(|pull_request| &pull_request.repository)
            }
        }
    }
}
