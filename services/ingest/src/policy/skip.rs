//! Skip rules: conditions that forbid work on a ticket.

use domain::{RepositoryRules, SkipPlace, SkipReason, TicketText};
use github::PullRequest;

use crate::{
    facts::tracker_reader::{TrackerComment, TrackerIssue},
    text::text_pin,
};

/// Reason for ignoring an event of a pull request.
pub(crate) const FORBIDDEN: &str = "a skip rule forbids work on the pull request";

/// Skip rule that forbids work on the ticket, if any. Callers pass the comments of people only.
pub(crate) fn find_skip_reason(
    text: &TicketText,
    comments: &[TrackerComment],
    rules: &RepositoryRules,
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

fn skip_phrase(text: &TicketText, comments: &[TrackerComment], phrase: &str) -> Option<SkipReason> {
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
    let author = text_pin::clean_text(&comment.author, 100);
    found(SkipPlace::Comment { author })
}

/// Skip rule that forbids the review of another author's pull request, if any.
pub(crate) fn find_pull_request_skip(now: &PullRequest, rules: &RepositoryRules) -> Option<SkipReason> {
    let text = TicketText {
        summary: now.title.clone(),
        description: now.body.clone(),
        labels: now.labels.clone(),
        ..TicketText::default()
    };
    find_skip_reason(&text, &[], rules, &[])
}

/// Skip label of our own pull request, if any. Its text does not count, because Journeyman wrote it and it may quote the
/// skip phrase.
pub(crate) fn find_own_skip(now: &PullRequest, rules: &RepositoryRules) -> Option<SkipReason> {
    skip_label(&now.labels, &rules.skip.labels)
}

/// Skip rule for one of the labels. GitHub compares labels without case, and keeps the spelling of their creation.
fn skip_label(labels: &[String], forbidden: &[String]) -> Option<SkipReason> {
    let is_forbidden = |label: &&String| {
        let lower = label.to_lowercase();
        forbidden.iter().any(|known| known.to_lowercase() == lower)
    };
    let label = labels.iter().find(is_forbidden)?;
    Some(SkipReason::Label { label: label.clone() })
}

/// Text of an issue without its comments.
pub(crate) fn build_ticket_text(issue: &TrackerIssue) -> TicketText {
    TicketText {
        summary: issue.summary.clone(),
        description: issue.description.clone(),
        kind: issue.kind.clone(),
        priority: issue.priority.clone(),
        labels: issue.labels.clone(),
        comments: Vec::new(),
        attachments: Vec::new(),
        url: issue.url.clone(),
        sha256: String::new(),
    }
}
