//! Every text that a person reads on Jira or GitHub, and what the model reads of a refusal, as pure functions: one file
//! per notice.

use domain::{
    BranchRef, CommitId, Description, FailedCheck, Forecast, Job, Plan, PullRequestRef, PushBranch, Question,
    RepositoryName, RunId, SkipReason, StopReason, TicketKey, Timestamp,
};

mod approval;
mod aside;
mod change;
mod description;
mod effort;
mod moved;
mod proposal;
mod pull_request;
mod question;
mod refusal;
mod skipped;
mod status;
mod stopped;
mod undone;
mod words;

pub(crate) use approval::excerpt;
pub(crate) use pull_request::{patch_text, pull_request_body, pull_request_title, remote_link_title};
pub(crate) use refusal::{
    bad_pack, denied, foreign_branch, foreign_project, foreign_pull_request, no_usable_rules, not_approved,
    not_inspected, out_of_scope, refusal, unknown_pull_request,
};
pub(crate) use status::status;
pub(crate) use undone::{
    branch_has_moved, branch_of_another_ticket, credentials_refused, moved_since_checks,
    no_comment_of_github, no_difference, no_run, no_such_folder, no_tracker, not_pushed, nothing_to_link,
    unreadable_request, work_was_cut,
};
use words::{code, link, person};

use crate::made::Made;

/// What a comment is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Say {
    /// Work starts.
    Started { job: Job, repository: RepositoryName },
    /// What to expect of the work.
    Forecast { forecast: Forecast },
    /// The draft of this report is open.
    Opened,
    /// Checks passed, over to the reviewers.
    Ready { pull_request: PullRequestRef },
    /// No check reports: over to the reviewers, or it waits for one that is configured.
    Unchecked { pull_request: PullRequestRef },
    /// Checks failed.
    ChecksFailed {
        pull_request: PullRequestRef,
        failed: Vec<FailedCheck>,
    },
    /// Merged by a person.
    Merged {
        pull_request: PullRequestRef,
        by: String,
    },
    /// Closed unmerged by a person; `again` is the status that asks for work.
    Closed {
        pull_request: PullRequestRef,
        by: String,
        again: String,
    },
    /// A person has to decide.
    DecisionNeeded {
        push: PushBranch,
        description: Option<Box<Description>>,
    },
    /// A person has to decide about a plan.
    PlanProposed {
        repository: RepositoryName,
        id: CommitId,
        plan: Box<Plan>,
    },
    /// A person has to answer.
    Question { questions: Vec<Question> },
    /// A run ended without its goal.
    Stopped {
        job: Job,
        reason: StopReason,
        pull_request: Option<PullRequestRef>,
        branch: Option<BranchRef>,
        again: String,
    },
    /// A run failed for a reason that may pass and is tried again.
    RetryScheduled {
        job: Job,
        reason: StopReason,
        attempt: u32,
        most: u32,
        due: Timestamp,
    },
    /// The ticket is set aside until a person looks.
    Quarantined { reason: String },
    /// A record about the ticket could not be read.
    Unreadable { what: String },
    /// Nothing is done.
    Skipped { reason: SkipReason, again: String },
}

impl Say {
    /// Whether it is said in a comment of its own and not in the status comment. The run waits for a decision, and an
    /// edited comment would notify nobody on GitHub.
    pub(crate) const fn calls_a_person(&self) -> bool {
        match self {
            Self::DecisionNeeded { .. } | Self::PlanProposed { .. } | Self::Question { .. } => true,
            Self::Started { .. }
            | Self::Forecast { .. }
            | Self::Opened
            | Self::Ready { .. }
            | Self::Unchecked { .. }
            | Self::ChecksFailed { .. }
            | Self::Merged { .. }
            | Self::Closed { .. }
            | Self::Stopped { .. }
            | Self::RetryScheduled { .. }
            | Self::Quarantined { .. }
            | Self::Unreadable { .. }
            | Self::Skipped { .. } => false,
        }
    }
}

/// A comment of its own, as Markdown.
pub(crate) fn comment(say: &Say, made: &Made, ticket: &TicketKey, run: Option<&RunId>) -> String {
    let mut text = words_of(say, made, ticket, run);
    if let Some(run) = run {
        text.push_str(&format!("\n\nJourneyman, run {}", code(&run.to_string())));
    }
    text
}

/// What is said, as Markdown. That a ticket could not be moved is said by the status comment, as long as it is so.
pub(crate) fn words_of(say: &Say, made: &Made, ticket: &TicketKey, run: Option<&RunId>) -> String {
    let mut paragraphs = match say {
        Say::Started { job, repository } => vec![started(*job, repository)],
        Say::Forecast { forecast } => vec![effort::forecast(forecast)],
        Say::Opened => vec![pull_request::opened(made.pull_request.as_ref())],
        Say::Ready { pull_request } => vec![pull_request::ready(pull_request)],
        Say::Unchecked { pull_request } => {
            vec![pull_request::unchecked(pull_request, made.awaited.as_deref())]
        }
        Say::ChecksFailed { pull_request, failed } => pull_request::checks_failed(pull_request, failed),
        Say::Merged { pull_request, by } => {
            vec![format!("{} merged {}.", person(by), link(pull_request))]
        }
        Say::Closed {
            pull_request,
            by,
            again,
        } => vec![
            format!(
                "{} closed {} without merging it, so nothing more happens here.",
                person(by),
                link(pull_request)
            ),
            moved::try_again(ticket, again, made.moved.as_ref()),
        ],
        Say::DecisionNeeded { push, description } => {
            let (description, shown) = (description.as_deref(), made.shown.as_ref());
            approval::decision_needed(push, ticket, (description, shown), run)
        }
        Say::PlanProposed { repository, id, plan } => proposal::proposed(repository, id, plan, run),
        Say::Question { questions } => question::asked(questions),
        Say::Stopped {
            job,
            reason,
            pull_request,
            branch,
            again,
        } => {
            let retry = moved::try_again(ticket, again, made.moved.as_ref());
            stopped::stopped(*job, reason, pull_request.as_ref(), branch.as_ref(), &retry)
        }
        Say::RetryScheduled {
            job,
            reason,
            attempt,
            most,
            due,
        } => stopped::retry_scheduled(*job, reason, (*attempt, *most), *due),
        Say::Quarantined { reason } => aside::quarantined(reason),
        Say::Unreadable { what } => aside::unreadable(what),
        Say::Skipped { reason, again } => {
            skipped::skipped(reason, &moved::try_again(ticket, again, made.moved.as_ref()))
        }
    };
    if let (Say::Merged { .. }, Some(moved)) = (say, &made.moved) {
        paragraphs.extend(moved::done(moved));
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

fn started(job: Job, repository: &RepositoryName) -> String {
    let work = match job {
        Job::Implement => "work on this ticket",
        Job::Triage => "triage this ticket",
        Job::Answer => "answer the question",
        Job::FixCi => "repair the failing checks",
        Job::AddressReview => "address the review",
        Job::Review => "review the pull request",
        Job::MarkReady => "hand the pull request over",
        Job::Finish => "finish this ticket",
    };
    format!("Journeyman has started to {work} in `{repository}`.")
}

#[cfg(test)]
#[path = "../message_tests.rs"]
mod tests;
