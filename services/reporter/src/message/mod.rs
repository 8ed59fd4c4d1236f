//! All texts that people read on Jira and GitHub, as pure functions.

use domain::{Job, PullRequestRef, RepositoryName, RunId, report::WorkOrigin};

mod answer;
mod attachment;
mod change;
mod decision;
mod description;
mod effort;
mod evidence;
mod failure;
mod finished_work;
mod guide;
mod history;
mod issues;
mod pull_request;
mod review;
mod rounds;
mod status;
mod stop_reason;
mod transition;
mod triage;
mod words;

pub(crate) use answer::{render_answer, render_discussion, render_research, render_summary, research_thread};
pub(crate) use attachment::render_omitted_attachments;
pub(crate) use decision::{decision_needed, excerpt_diff, render_plan, render_questions};
pub(crate) use effort::{render_cost, render_forecast};
pub(crate) use failure::{
    credentials_refused, describe_denied_permission, foreign_target, no_comment_of_github, no_difference,
    no_run, no_such_folder, no_tracker, nothing_to_link, object_differs, poison_request, push_in_progress,
    render_quarantine, render_relocated_text, render_skip, render_unreadable, replies_stay,
    signed_history_rewritten, too_large_to_sign, unchecked_effect, unknown_ticket, unreadable_request,
    work_was_cut,
};
pub(crate) use finished_work::{
    render_changed_files, render_delivery, render_finished_work, select_named_files, shown_change,
};
pub(crate) use guide::{render_guide, render_meant_order, render_review_guide};
pub(crate) use history::{RoundsLinks, RoundsText, hidden_state, render_rounds};
pub(crate) use issues::{issue_text, issue_title, issues_opened, parts_opened};
pub(crate) use pull_request::{
    BodyLinks, FooterPages, PullRequestDraft, asked_body, asked_title, checks_call, checks_failed,
    checks_rerun, conflict_call, link_comment, not_linked, patch_text, pull_request_body, pull_request_title,
    remote_link_title, render_base_update, render_conflict, render_opened, render_progress_note,
    render_ready, render_unchecked, required_by_rules, run_of_another_commit,
};
pub(crate) use review::{line_remark, render_review};
pub(crate) use rounds::{
    decision_call, pushed_by_others, render_addressed_review, render_reopened, render_repair,
    render_resolution, review_awaited, thread_left, thread_reply,
};
pub(crate) use status::render_status;
pub(crate) use stop_reason::{describe_conflict, render_departure, render_stop, retry_scheduled};
pub(crate) use transition::try_again;
pub(crate) use triage::{render_duplicate, render_unset_choices};
use words::{format_code, link_pull_request_name, name_person};

use crate::receipt::TransitionResult;

/// Appends the run to the text of a separate comment.
pub(crate) fn sign_text(words: &str, run: Option<&RunId>) -> String {
    match run {
        Some(run) => format!("{words}\n\nJourneyman, run {}", format_code(&run.to_string())),
        None => words.to_owned(),
    }
}

/// Renders a merge. A failed transition is not part of it: the status comment shows it as long as it applies.
pub(crate) fn render_merge(
    by: &str,
    pull_request: &PullRequestRef,
    moved: Option<&TransitionResult>,
) -> Vec<String> {
    let mut paragraphs = vec![format!(
        "{} merged {}.",
        name_person(by),
        link_pull_request_name(pull_request)
    )];
    paragraphs.extend(moved.and_then(transition::render_reached_status));
    paragraphs
}

pub(crate) fn merged_elsewhere(
    by: &str,
    pull_request: &PullRequestRef,
    moved: Option<&TransitionResult>,
) -> Vec<String> {
    let mut paragraphs = vec![format!(
        "{} merged {}, which names this ticket. Journeyman does no more here.",
        name_person(by),
        link_pull_request_name(pull_request)
    )];
    paragraphs.extend(moved.and_then(transition::render_reached_status));
    paragraphs
}

pub(crate) fn render_closed(by: &str, pull_request: &PullRequestRef) -> String {
    format!(
        "{} closed {} without merging it, so nothing more happens here.",
        name_person(by),
        link_pull_request_name(pull_request)
    )
}

/// Renders the move of a pull request to another place, which ends the work on it.
pub(crate) fn render_moved(to: &str, pull_request: &PullRequestRef) -> String {
    format!(
        "GitHub moved {} to {}, so nothing more happens here.",
        link_pull_request_name(pull_request),
        format_code(to)
    )
}

pub(crate) fn render_start(job: Job, repository: &RepositoryName, begun: &WorkOrigin) -> String {
    let work = job.profile().task;
    match &begun.by {
        Some(by) if begun.is_again => {
            format!(
                "{} asked for it again: Journeyman continues to {work} in `{repository}`.",
                name_person(by)
            )
        }
        _ => format!("Journeyman has started to {work} in `{repository}`."),
    }
}
