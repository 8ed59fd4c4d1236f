//! All texts that people read on Jira and GitHub, as pure functions.

use domain::{Job, PullRequestRef, RepositoryName, RunId, report::Begun};

mod answer;
mod approval;
mod aside;
mod change;
mod cost;
mod description;
mod direct;
mod done;
mod duplicate;
mod effort;
mod history;
mod issues;
mod moved;
mod proposal;
mod pull_request;
mod question;
mod refusal;
mod review;
mod rounds;
mod skipped;
mod status;
mod stopped;
mod triage;
mod undone;
mod words;

pub(crate) use answer::{answered, discussed, research, research_thread, summary};
pub(crate) use approval::{decision_needed, excerpt};
pub(crate) use aside::{quarantined, unreadable};
pub(crate) use cost::cost;
pub(crate) use direct::{asked_body, asked_title, link_comment};
pub(crate) use done::{changed, delivered, done, shown_change, what_fits};
pub(crate) use duplicate::duplicate;
pub(crate) use effort::forecast;
pub(crate) use history::{RoundsLinks, RoundsText, hidden_state, rounds};
pub(crate) use issues::{issue_text, issue_title, issues_opened, parts_opened};
pub(crate) use moved::try_again;
pub(crate) use proposal::proposed;
pub(crate) use pull_request::{
    BodyLinks, FooterPages, checks_call, checks_failed, checks_rerun, not_linked, opened, patch_text,
    pull_request_body, pull_request_title, ready, remote_link_title, required_by_rules,
    run_of_another_commit, unchecked,
};
pub(crate) use question::asked;
pub(crate) use refusal::denied;
pub(crate) use review::{line_remark, review};
pub(crate) use rounds::{
    addressed, decision_call, pushed_by_others, reopened, repaired, review_awaited, thread_left, thread_reply,
};
pub(crate) use skipped::skipped;
pub(crate) use status::status;
pub(crate) use stopped::{retry_scheduled, stopped};
pub(crate) use triage::left;
pub(crate) use undone::{
    credentials_refused, foreign_target, no_comment_of_github, no_difference, no_run, no_such_folder,
    no_tracker, nothing_to_link, poison_request, replies_stay, unchecked_effect, unknown_ticket,
    unreadable_request, work_was_cut,
};
use words::{code, link, person};

use crate::made::Moved;

/// Appends the run to the text of a separate comment.
pub(crate) fn signed(words: &str, run: Option<&RunId>) -> String {
    match run {
        Some(run) => format!("{words}\n\nJourneyman, run {}", code(&run.to_string())),
        None => words.to_owned(),
    }
}

/// Renders a merge. A failed transition is not part of it: the status comment shows it as long as it applies.
pub(crate) fn merged(by: &str, pull_request: &PullRequestRef, moved: Option<&Moved>) -> Vec<String> {
    let mut paragraphs = vec![format!("{} merged {}.", person(by), link(pull_request))];
    paragraphs.extend(moved.and_then(moved::done));
    paragraphs
}

pub(crate) fn merged_elsewhere(
    by: &str,
    pull_request: &PullRequestRef,
    moved: Option<&Moved>,
) -> Vec<String> {
    let mut paragraphs = vec![format!(
        "{} merged {}, which names this ticket. Journeyman does no more here.",
        person(by),
        link(pull_request)
    )];
    paragraphs.extend(moved.and_then(moved::done));
    paragraphs
}

pub(crate) fn closed(by: &str, pull_request: &PullRequestRef) -> String {
    format!(
        "{} closed {} without merging it, so nothing more happens here.",
        person(by),
        link(pull_request)
    )
}

pub(crate) fn started(job: Job, repository: &RepositoryName, begun: &Begun) -> String {
    let work = match job {
        Job::Implement => "work on this ticket",
        Job::Triage => "triage this ticket",
        Job::Answer => "answer the question",
        Job::Discuss => "look into this discussion",
        Job::FixCi => "repair the failing checks",
        Job::AddressReview => "address the review",
        Job::Review => "review the pull request",
        Job::MarkReady => "hand the pull request over",
        Job::Finish => "finish this ticket",
        Job::BackToDraft => "take the pull request back to draft",
        Job::Reopen => "follow the pull request again",
        Job::Rehearse => "tell what a job would write",
        Job::Remind => "remind of the review",
    };
    match &begun.by {
        Some(by) if begun.is_again => {
            format!(
                "{} asked for it once more: Journeyman goes on to {work} in `{repository}`.",
                person(by)
            )
        }
        _ => format!("Journeyman has started to {work} in `{repository}`."),
    }
}
