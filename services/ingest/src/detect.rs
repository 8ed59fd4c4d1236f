//! Pure decisions: what happened outside, the rules and the facts give a reason to act, or none.

use domain::{
    BranchRecord, ChecksSummary, CommitId, FailedCheck, Job, JobRequest, PullRequestRef, Reason, Rules,
    RulesProblem, SkipReason, TicketText, Timestamp, TriggerKey,
};

use github::{Check, PullRequest};

use crate::{
    hex,
    outside::{Comment, Issue},
    pin,
};

const FAILED_CHECKS: usize = 20;
const LOG_TAIL_BYTES: usize = 8 * 1024;

/// What the signed webhook itself says of the text; it wins over a later read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PinnedFields {
    pub(crate) summary: Option<String>,
    pub(crate) description: Option<String>,
}

/// True when this status asks for work under these rules. Jira compares status names without case.
pub(crate) fn asks_for_work(status: &str, rules: &Rules) -> bool {
    status.to_lowercase() == rules.agent.status.to_lowercase()
}

/// The skip rule that forbids work on the ticket, when one does. Our own comments do not count.
pub(crate) fn skip(
    text: &TicketText,
    comments: &[Comment],
    rules: &Rules,
    open: &[PullRequest],
) -> Option<SkipReason> {
    skip_phrase(text, comments, &rules.skip.comment_phrase)
        .or_else(|| skip_label(&text.labels, &rules.skip.labels))
        .or_else(|| {
            let first = open.first()?;
            Some(SkipReason::PullRequestExists {
                url: first.url.clone(),
                author: first.author.clone(),
            })
        })
}

fn skip_phrase(text: &TicketText, comments: &[Comment], phrase: &str) -> Option<SkipReason> {
    if phrase.is_empty() {
        return None;
    }
    let found = |place: String| {
        Some(SkipReason::Phrase {
            phrase: phrase.to_owned(),
            place,
        })
    };
    if text.summary.contains(phrase) {
        return found("summary".to_owned());
    }
    if text.description.contains(phrase) {
        return found("description".to_owned());
    }
    let comment = comments.iter().find(|comment| comment.text.contains(phrase))?;
    found(format!(
        "comment by {}",
        pin::cut(&pin::sanitise(&comment.author), 100)
    ))
}

fn skip_label(labels: &[String], forbidden: &[String]) -> Option<SkipReason> {
    let label = labels.iter().find(|label| forbidden.contains(label))?;
    Some(SkipReason::Label { label: label.clone() })
}

/// The issue's text, with the fields that the webhook pinned in place of what was read later.
pub(crate) fn text_of(issue: &Issue, pinned: PinnedFields) -> TicketText {
    TicketText {
        summary: pinned.summary.unwrap_or_else(|| issue.summary.clone()),
        description: pinned.description.unwrap_or_else(|| issue.description.clone()),
        kind: issue.kind.clone(),
        priority: issue.priority.clone(),
        labels: issue.labels.clone(),
        comments: Vec::new(),
        url: issue.url.clone(),
        sha256: String::new(),
    }
}

/// The job that a ticket asks for at `at`, or the skip rule that forbids it.
pub(crate) fn implement(
    issue: &Issue,
    pinned: PinnedFields,
    at: Timestamp,
    rules: &Rules,
    open: &[PullRequest],
) -> Result<Reason, RulesProblem> {
    let repository = rules.repository()?;
    let raw = text_of(issue, pinned);
    if let Some(reason) = skip(&raw, &issue.comments, rules, open) {
        return Ok(Reason::Skipped(reason));
    }
    let text = pin::pin(raw, &issue.comments, at);
    Ok(Reason::JobRequested(Box::new(JobRequest {
        job: Job::Implement,
        repository,
        text,
        rules: rules.clone(),
    })))
}

/// What the checks of a pull request's head say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChecksVerdict {
    /// There are none.
    None,
    /// Some are not complete.
    Incomplete,
    /// All are complete.
    Complete {
        key: TriggerKey,
        at: Option<Timestamp>,
        summary: Box<ChecksSummary>,
    },
}

/// Folds the checks of `head` into one verdict. Its key changes when a check runs again or ends differently.
pub(crate) fn checks(pull_request: &PullRequestRef, head: &CommitId, checks: &[Check]) -> ChecksVerdict {
    if checks.is_empty() {
        return ChecksVerdict::None;
    }
    let Some(conclusion) = github::conclusion(checks) else {
        return ChecksVerdict::Incomplete;
    };
    let failed = checks
        .iter()
        .filter(|check| check.conclusion.is_some_and(|end| !end.is_good()));
    let summary = ChecksSummary {
        pull_request: pull_request.clone(),
        head: head.clone(),
        conclusion,
        failed: failed.take(FAILED_CHECKS).map(failed_check).collect(),
    };
    ChecksVerdict::Complete {
        key: TriggerKey::new(format!(
            "checks:{}:{head}:{}",
            pull_request.repository,
            digest(checks)
        )),
        at: checks.iter().filter_map(|check| check.completed_at).max(),
        summary: Box::new(summary),
    }
}

fn digest(checks: &[Check]) -> String {
    let line = |check: &Check| {
        let end = check.conclusion.map(github::CheckConclusion::as_str);
        format!(
            "{:?} {} {} {end:?} {:?}\n",
            check.kind, check.id, check.suite, check.completed_at
        )
    };
    let mut lines: Vec<_> = checks.iter().map(line).collect();
    lines.sort();
    hex::sha256(lines.concat().as_bytes())
}

fn failed_check(check: &Check) -> FailedCheck {
    let clean = pin::sanitise(&check.output_tail);
    let mut start = clean.len().saturating_sub(LOG_TAIL_BYTES);
    while !clean.is_char_boundary(start) {
        start += 1;
    }
    FailedCheck {
        name: pin::cut(&pin::sanitise(&check.name), 200),
        url: check.url.clone(),
        log_tail: clean[start..].to_owned(),
    }
}

/// How a pull request was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) merged: bool,
    pub(crate) by: String,
    pub(crate) at: Timestamp,
}

/// How the pull request was closed, when it was.
pub(crate) fn closing(pull_request: &PullRequest) -> Option<Closing> {
    let at = pull_request.closed_at?;
    let by = pull_request
        .merged_by
        .clone()
        .unwrap_or_else(|| "somebody".to_owned());
    Some(Closing {
        merged: pull_request.merged,
        by,
        at,
    })
}

/// The key and reason of a closed pull request of ours; both doors derive the same.
pub(crate) fn closed(pull_request: &PullRequestRef, closing: &Closing) -> (TriggerKey, Reason) {
    let PullRequestRef {
        repository, number, ..
    } = pull_request;
    let by = pin::cut(&pin::sanitise(&closing.by), 100);
    if closing.merged {
        let reason = Reason::PullRequestMerged {
            pull_request: pull_request.clone(),
            by,
        };
        (TriggerKey::new(format!("merged:{repository}#{number}")), reason)
    } else {
        // Whole seconds: GitHub's payloads and listings do not agree on fractions.
        let key = format!("closed:{repository}#{number}:{}", closing.at.unix_s());
        (
            TriggerKey::new(key),
            Reason::PullRequestClosed {
                pull_request: pull_request.clone(),
                by,
            },
        )
    }
}

/// The record's pull request, when the event is about that one.
pub(crate) fn same_pull_request(record: &BranchRecord, number: u64) -> Option<&PullRequestRef> {
    record
        .pull_request
        .as_ref()
        .filter(|pull_request| pull_request.number == number)
}

#[cfg(test)]
#[path = "detect_tests.rs"]
mod tests;
