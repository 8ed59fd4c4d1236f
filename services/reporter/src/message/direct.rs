//! The words of a pull request that a person asks for directly.

use domain::{PullRequestRef, text::without_hidden};

/// The person's title, in one line.
pub(crate) fn asked_title(title: &str) -> String {
    without_hidden(title)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The person's description.
pub(crate) fn asked_body(description: &str) -> String {
    without_hidden(description)
}

/// On the issue, where it takes no link.
pub(crate) fn link_comment(pull_request: &PullRequestRef) -> String {
    format!("Pull Request: {}", pull_request.url)
}
