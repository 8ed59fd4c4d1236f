//! Skip rules: what forbids work on a ticket.

use domain::{Rules, SkipPlace, SkipReason, TicketText};
use github::PullRequest;

use crate::{
    outside::{Comment, Issue},
    pin,
};

/// Why nothing follows from what happens to a pull request.
pub(crate) const FORBIDDEN: &str = "a skip rule forbids work on the pull request";

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

/// The skip rule that forbids to review a pull request of somebody, when one does.
pub(crate) fn of_pull_request(now: &PullRequest, rules: &Rules) -> Option<SkipReason> {
    let text = TicketText {
        summary: now.title.clone(),
        description: now.body.clone(),
        labels: now.labels.clone(),
        ..TicketText::default()
    };
    skip(&text, &[], rules, &[])
}

/// The skip label of a pull request of ours, when it has one. Its text does not count: we wrote it, and it may quote the
/// phrase.
pub(crate) fn of_ours(now: &PullRequest, rules: &Rules) -> Option<SkipReason> {
    skip_label(&now.labels, &rules.skip.labels)
}

fn skip_label(labels: &[String], forbidden: &[String]) -> Option<SkipReason> {
    let label = labels.iter().find(|label| forbidden.contains(label))?;
    Some(SkipReason::Label { label: label.clone() })
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
