//! `journeyman show-ticket`: the current text of a ticket.

use std::process::ExitCode;

use api::types::{ChecksView, PullRequestView, TicketTextView};
use clap::Args;
use domain::{ChecksConclusion, PullRequestStatus};

use super::print_long;
use crate::{
    access,
    args::{PagerOptions, TicketArguments},
};

/// Print the current text of a ticket or pull request, and the status of its pull requests
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    paging: PagerOptions,
}

pub(super) async fn run_command(Arguments { of, paging }: Arguments) -> anyhow::Result<ExitCode> {
    let client = access::build_client(&of.api)?;
    let text = client.ticket_text(&of.ticket).await?;
    let standing = match client.ticket(&of.ticket).await {
        Ok(row) => row.standing,
        // The API answers 404 for a ticket without a run or trigger, although its tracker has it.
        Err(api::Error::Refused { status, .. }) if status.as_u16() == 404 => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut parts = vec![render_ticket(&text)];
    parts.extend(standing.iter().map(render_pull_request));
    print_long([parts.join("\n\n")], paging);
    Ok(ExitCode::SUCCESS)
}

/// Pull request with its checks and reviews, as known from webhooks and polls.
fn render_pull_request(one: &PullRequestView) -> String {
    let state = match one.status {
        Some(PullRequestStatus::Open) => "open",
        Some(PullRequestStatus::Merged) => "merged",
        Some(PullRequestStatus::Closed) => "closed without a merge",
        None => "not known any more",
    };
    let mut lines = vec![format!("pull request: {} ({state})", one.pull_request.url)];
    match &one.checks {
        Some(checks) => lines.extend(render_checks(checks)),
        None => lines.push("checks: none was complete yet, as far as is known".to_owned()),
    }
    if let Some(review) = &one.review {
        let asks = if review.asks_for_changes {
            ", asks for changes"
        } else {
            ""
        };
        let threads = review.threads;
        lines.push(format!(
            "review: {} at {}{asks}, {threads} threads",
            review.author, review.at
        ));
    }
    if let Some(since) = &one.awaits_review_since {
        lines.push(format!(
            "waits for a review since {since} {}",
            one.awaits_review_of.join(", ")
        ));
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

fn render_checks(checks: &ChecksView) -> Vec<String> {
    let result = match checks.conclusion {
        ChecksConclusion::Success => "all passed".to_owned(),
        ChecksConclusion::Failure => format!("{} failed", checks.failed.len()),
        ChecksConclusion::Absent => "none has reported".to_owned(),
    };
    let follows = match checks.follows.as_str() {
        "repair" => "; a run repairs them".to_owned(),
        "rerun" => "; the jobs that failed run once more".to_owned(),
        "left" => format!("; left to people: {}", checks.left_because()),
        _ => String::new(),
    };
    let newer = if checks.outdated {
        "; there is a newer commit, whose checks are not complete"
    } else {
        ""
    };
    let head = checks.head.get(..12).unwrap_or(&checks.head);
    let mut lines = vec![format!(
        "checks: {result} for {head} at {}{follows}{newer}",
        checks.at
    )];
    let failed = checks.failed.iter();
    lines.extend(failed.map(|check| format!("  failed: {} {}", check.name, check.url)));
    lines
}

/// Text of the ticket.
pub(super) fn render_ticket(text: &TicketTextView) -> String {
    let mut lines = vec![format!("{}: {}", text.ticket, text.summary)];
    let (labels, assignees) = (text.labels.join(", "), text.assignees.join(", "));
    for (name, value) in [
        ("status", &text.status),
        ("type", &text.kind),
        ("priority", &text.priority),
        ("labels", &labels),
        ("assigned to", &assignees),
        ("at", &text.url),
    ] {
        if !value.is_empty() {
            lines.push(format!("{name}: {value}"));
        }
    }
    if !text.description.trim().is_empty() {
        lines.push(format!("\n{}", text.description.trim()));
    }
    for comment in &text.comments {
        lines.push(format!(
            "\n{} at {}:\n{}",
            comment.author,
            comment.at,
            comment.text.trim()
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use api::types::CommentView;

    use super::*;

    #[test]
    fn pull_request_lines_name_failed_checks() {
        let failed = api::types::FailedCheckView {
            name: "test (3.11)".to_owned(),
            url: "https://github.com/acme/shop/runs/9".to_owned(),
            class: domain::FailureClass::Real,
        };
        let view = PullRequestView {
            pull_request: domain::PullRequestRef {
                repository: "acme/shop".parse().unwrap(),
                number: 7,
                url: "https://github.com/acme/shop/pull/7".to_owned(),
                branch: "fix/ENG-1".to_owned(),
            },
            status: Some(PullRequestStatus::Open),
            head: None,
            checks: Some(ChecksView {
                head: "a".repeat(40),
                outdated: false,
                conclusion: ChecksConclusion::Failure,
                failed: vec![failed],
                page: String::new(),
                at: "2026-11-25T09:00:00Z".to_owned(),
                follows: "left".to_owned(),
                left: Some(domain::RepairEnd::PerHead),
            }),
            review: None,
            awaits_review_of: Vec::new(),
            awaits_review_since: Some("2026-11-25T08:00:00Z".to_owned()),
        };
        assert_eq!(
            render_pull_request(&view),
            "pull request: https://github.com/acme/shop/pull/7 (open)\n\
             checks: 1 failed for aaaaaaaaaaaa at 2026-11-25T09:00:00Z; left to people: this commit was repaired as often as \
             is allowed\n  failed: test (3.11) https://github.com/acme/shop/runs/9\nwaits for a review since \
             2026-11-25T08:00:00Z"
        );
        let without = PullRequestView {
            checks: None,
            status: Some(PullRequestStatus::Merged),
            awaits_review_since: None,
            ..view
        };
        assert_eq!(
            render_pull_request(&without),
            "pull request: https://github.com/acme/shop/pull/7 (merged)\nchecks: none was complete yet, as far as is known"
        );
    }

    #[test]
    fn ticket_page_omits_empty_parts() {
        let text = TicketTextView {
            ticket: "jira:ENG-1".to_owned(),
            url: String::new(),
            status: "To Do".to_owned(),
            kind: String::new(),
            priority: String::new(),
            labels: vec!["shop".to_owned(), "tax".to_owned()],
            assignees: Vec::new(),
            summary: "Fix the cart".to_owned(),
            description: "It rounds.\n".to_owned(),
            comments: vec![CommentView {
                author: "Ada".to_owned(),
                at: "2026-11-24T10:00:00Z".to_owned(),
                text: "Half up.".to_owned(),
            }],
        };
        assert_eq!(
            render_ticket(&text),
            "jira:ENG-1: Fix the cart\nstatus: To Do\nlabels: shop, tax\n\nIt rounds.\n\nAda at 2026-11-24T10:00:00Z:\nHalf up."
        );
    }
}
