//! Pure decisions: what happened outside, the rules and the facts give a reason to act, or none.

use std::collections::BTreeSet;

use domain::{
    Background, BranchRecord, ChecksSummary, CommitId, FailedCheck, Job, JobRequest, PullRequestRef, Reason,
    RepositoryName, Rules, RulesProblem, SkipPlace, SkipReason, TicketText, Timestamp, TriggerKey,
};

use github::{Check, PullRequest};

use crate::{
    hex,
    outside::{Comment, Issue},
    pin,
};

const FAILED_CHECKS: usize = 20;
const LOG_TAIL_BYTES: usize = 8 * 1024;

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
    let found = |place: SkipPlace| {
        Some(SkipReason::Phrase {
            phrase: phrase.to_owned(),
            place,
        })
    };
    if text.summary.contains(phrase) {
        return found(SkipPlace::Summary);
    }
    if text.description.contains(phrase) {
        return found(SkipPlace::Description);
    }
    let comment = comments.iter().find(|comment| comment.text.contains(phrase))?;
    let author = pin::cut(&pin::sanitise(&comment.author), 100);
    found(SkipPlace::Comment { author })
}

fn skip_label(labels: &[String], forbidden: &[String]) -> Option<SkipReason> {
    let label = labels.iter().find(|label| forbidden.contains(label))?;
    Some(SkipReason::Label { label: label.clone() })
}

/// Where a ticket stands that is said to have come into the status that asks for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is there.
    Asks(Approval),
    /// It is in another status by now.
    Left {
        /// That one.
        status: String,
    },
    /// It came there once more since; that later move asks for work.
    Repeated,
}

/// The act that asks for work: what the ticket said at that moment is what is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approval {
    /// The changelog id of the move, where it was one.
    pub(crate) changelog: Option<String>,
    pub(crate) at: Timestamp,
    /// Absent when Jira does not know any more.
    pub(crate) by: Option<jira::Account>,
}

/// Compares what a webhook or a search told with what Jira says now. `told.changelog` is absent for a ticket created in
/// the status.
pub(crate) fn standing(issue: &Issue, told: Approval, rules: &Rules) -> Standing {
    if !asks_for_work(&issue.status, rules) {
        return Standing::Left {
            status: issue.status.clone(),
        };
    }
    let entries = || issue.moves.iter().filter(|entry| asks_for_work(&entry.to, rules));
    let is_told = |entry: &&jira::StatusChange| Some(&entry.id.0) == told.changelog.as_ref();
    match (entries().next_back(), entries().find(is_told), &told.changelog) {
        (Some(last), Some(entry), _) if last.id == entry.id => Standing::Asks(Approval {
            at: last.at.unwrap_or(told.at),
            by: last.by.clone(),
            changelog: told.changelog,
        }),
        (Some(_), Some(_), _) | (Some(_), None, None) => Standing::Repeated,
        (None, _, None) => Standing::Asks(Approval {
            changelog: None,
            at: issue.created.unwrap_or(told.at),
            by: issue.creator.clone().or(told.by),
        }),
        // The changelog does not show the move yet; the signed webhook says who made it.
        (_, None, Some(_)) | (None, Some(_), _) => Standing::Asks(told),
    }
}

/// Who changed the ticket's text after it was approved without a right to.
fn changed_by<'a>(
    issue: &'a Issue,
    approval: &Approval,
    instructors: &BTreeSet<String>,
) -> Option<&'a jira::TextEdit> {
    issue.edits.iter().find(|edit| {
        let is_later = edit.at >= approval.at && Some(&edit.id.0) != approval.changelog.as_ref();
        let may = edit.by.as_ref().is_some_and(|by| instructors.contains(&by.id));
        is_later && !may
    })
}

/// Whether the text was changed again after the edit `changelog`, or after the creation, at `at`.
pub(crate) fn has_later_text(issue: &Issue, changelog: Option<&str>, at: Timestamp) -> bool {
    match (changelog, issue.edits.last()) {
        (Some(id), Some(last)) => last.id.0 != id && last.at >= at,
        (None, Some(last)) => last.at >= at,
        (_, None) => false,
    }
}

/// The issue's text, without its comments.
pub(crate) fn text_of(issue: &Issue) -> TicketText {
    TicketText {
        summary: issue.summary.clone(),
        description: issue.description.clone(),
        kind: issue.kind.clone(),
        priority: issue.priority.clone(),
        labels: issue.labels.clone(),
        comments: Vec::new(),
        url: issue.url.clone(),
        sha256: String::new(),
    }
}

/// The job that a ticket asks for, or why there is none. `instructors` are the accounts, of those that the issue names,
/// whose words count as instructions.
pub(crate) fn implement(
    issue: &Issue,
    approval: &Approval,
    rules: &Rules,
    open: &[PullRequest],
    instructors: &BTreeSet<String>,
) -> Result<Reason, RulesProblem> {
    let repository = rules.repository()?;
    if let Some(edit) = changed_by(issue, approval, instructors) {
        return Ok(Reason::Skipped(SkipReason::TextChanged {
            by: name(edit.by.as_ref()),
        }));
    }
    let raw = text_of(issue);
    if let Some(reason) = skip(&raw, &issue.comments, rules, open) {
        return Ok(Reason::Skipped(reason));
    }
    let text = pin::pin(raw, &issue.comments, approval.at, instructors);
    Ok(requested(repository, text, rules))
}

/// The same for a ticket of a folder, which is this text and nothing else.
pub(crate) fn in_folder(summary: String, description: String, rules: &Rules) -> Result<Reason, RulesProblem> {
    let raw = TicketText {
        summary,
        description,
        ..TicketText::default()
    };
    if let Some(reason) = skip(&raw, &[], rules, &[]) {
        return Ok(Reason::Skipped(reason));
    }
    let text = pin::pin(raw, &[], Timestamp::default(), &BTreeSet::new());
    Ok(requested(rules.repository()?, text, rules))
}

fn requested(repository: RepositoryName, text: TicketText, rules: &Rules) -> Reason {
    Reason::JobRequested(Box::new(JobRequest {
        job: Job::Implement,
        repository,
        text,
        rules: rules.clone(),
        background: Background::default(),
    }))
}

/// An account as people know it, cleaned; `somebody` when there is no name.
pub(crate) fn name(account: Option<&jira::Account>) -> String {
    let name = account.map_or("", |account| account.display_name.as_str());
    let clean = pin::cut(&pin::sanitise(name), 100);
    if clean.trim().is_empty() {
        "somebody".to_owned()
    } else {
        clean
    }
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

/// That no check reports on a head, once per head.
pub(crate) fn no_checks(pull_request: &PullRequestRef, head: &CommitId) -> (TriggerKey, Reason) {
    let summary = ChecksSummary {
        pull_request: pull_request.clone(),
        head: head.clone(),
        conclusion: domain::Conclusion::Absent,
        failed: Vec::new(),
    };
    let key = TriggerKey::new(format!("checks:{}:{head}:absent", pull_request.repository));
    (key, Reason::ChecksCompleted(summary))
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
    // A log is no markup: what looks like a tag stands for itself.
    let clean = domain::text::without_hidden(&check.output_tail);
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
