//! Texts of a pull request that a person requests directly.

use domain::{PullRequestRef, text::remove_hidden};

/// Returns the person's title on one line, without hidden characters.
pub(crate) fn asked_title(title: &str) -> String {
    remove_hidden(title)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the person's description without hidden characters.
pub(crate) fn asked_body(description: &str) -> String {
    remove_hidden(description)
}

/// Renders the comment for an issue that accepts no link.
pub(crate) fn link_comment(pull_request: &PullRequestRef) -> String {
    format!("Pull Request: {}", pull_request.url)
}
