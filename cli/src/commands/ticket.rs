//! Tickets: `journeyman show-ticket`, `say`, `retry` and `purge`.

use std::process::ExitCode;

use api::{
    ApiAction,
    types::{ChecksView, HealthView, PullRequestView, TicketTextView},
};
use clap::Args;
use domain::{ChecksConclusion, PullRequestStatus, TicketKey};

use super::{
    confirmation::{ConfirmationOption, DryRun, perform_act},
    print_long, print_result,
};
use crate::{
    access,
    args::{ApiArguments, PagerOptions, RunOrTicket, TicketArguments, parse_run_or_ticket},
};

/// Print the current text of a ticket or pull request, and the status of its pull requests
#[derive(Debug, Args)]
pub(super) struct ShowTicketArguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    paging: PagerOptions,
}

/// Comment to the live runs of a ticket: the model reads it before its next turn
#[derive(Debug, Args)]
pub(super) struct SayArguments {
    /// The ticket, or one of its runs
    #[arg(value_name = "RUN|TICKET", value_parser = parse_run_ticket)]
    ticket: TicketKey,
    /// The comment
    text: String,
    #[command(flatten)]
    api: ApiArguments,
}

/// Retry: a waiting run at once, a quarantined ticket from its current state, a failed job from the start
#[derive(Debug, Args)]
pub(super) struct RetryArguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
}

/// Delete all records of a ticket without live runs (needs an admin's token)
#[derive(Debug, Args)]
pub(super) struct PurgeArguments {
    #[command(flatten)]
    of: TicketArguments,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    sure: ConfirmationOption,
}

pub(super) async fn run_show_ticket(asked: ShowTicketArguments) -> anyhow::Result<ExitCode> {
    let ShowTicketArguments { of, paging } = asked;
    let client = access::build_client(&of.api)?;
    let text = client.tickets().text(&of.ticket).await?;
    let standing = match client.tickets().read(&of.ticket).await {
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

pub(super) async fn run_say(asked: SayArguments) -> anyhow::Result<ExitCode> {
    let SayArguments { ticket, text, api } = asked;
    access::build_client(&api)?
        .tickets()
        .comment(&ticket, &text)
        .await?;
    print_result(&format!("said to {ticket}"));
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn run_retry(asked: RetryArguments) -> anyhow::Result<ExitCode> {
    let TicketArguments { ticket, api } = asked.of;
    let client = access::build_client(&api)?;
    perform_act(
        &client,
        ApiAction::RetryTicket(&ticket),
        asked.dry,
        &format!("retry asked for: {ticket}"),
    )
    .await
}

pub(super) async fn run_purge(asked: PurgeArguments) -> anyhow::Result<ExitCode> {
    if let Some(refused) = asked.sure.refused(asked.dry) {
        return Ok(refused);
    }
    let TicketArguments { ticket, api } = asked.of;
    let (client, done) = (access::build_client(&api)?, format!("purged: {ticket}"));
    asked
        .sure
        .perform(&client, ApiAction::Purge(&ticket), asked.dry, &done)
        .await
}

/// Parses a ticket, or takes the ticket of a run: a comment goes to all runs of the ticket.
fn parse_run_ticket(text: &str) -> Result<TicketKey, String> {
    Ok(match parse_run_or_ticket(text)? {
        RunOrTicket::Run(run) => run.ticket().clone(),
        RunOrTicket::Ticket(ticket) => ticket,
    })
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
    if let Some(lock) = &one.conversation_lock {
        lines.push(format!("conversation: locked since {}", lock.since));
    }
    if let Some(health) = &one.health {
        lines.push(render_health(health));
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

/// State on the way to a merge: what blocks, since when, who acts.
fn render_health(health: &HealthView) -> String {
    let since = health.since.as_deref().map(|since| format!(" since {since}"));
    let who = health.who.as_deref().map(|who| format!("; acts: {who}"));
    let until = health
        .until
        .as_deref()
        .map(|until| format!("; a notice follows at {until}"));
    let automatic = health
        .auto_merge
        .as_ref()
        .map(|merge| format!("; {}", merge.words()));
    let ignored = (!health.ignored_checks.is_empty())
        .then(|| format!("; ignored checks: {}", health.ignored_checks.join(", ")));
    format!(
        "merge: {}, {}{}{}{}{}{}",
        health.state,
        health.text,
        since.unwrap_or_default(),
        who.unwrap_or_default(),
        until.unwrap_or_default(),
        automatic.unwrap_or_default(),
        ignored.unwrap_or_default()
    )
}

fn render_checks(checks: &ChecksView) -> Vec<String> {
    let result = match checks.conclusion {
        ChecksConclusion::Success => "all passed".to_owned(),
        ChecksConclusion::Failure => format!("{} failed", checks.failed.len()),
        ChecksConclusion::Absent => "none has reported".to_owned(),
    };
    let follows = match checks.follows.as_str() {
        "repair" => "; a run repairs them".to_owned(),
        "rerun" => "; the failed jobs run again".to_owned(),
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
    use api::types::{AutoMergeView, CommentView};

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
            health: Some(HealthView {
                state: "blocked".to_owned(),
                cause: Some("outdated_base".to_owned()),
                text: "it lacks commits of its base branch".to_owned(),
                since: Some("2026-11-25T09:30:00Z".to_owned()),
                until: None,
                who: Some("journeyman".to_owned()),
                base_branch: "main".to_owned(),
                auto_merge: Some(AutoMergeView {
                    by: "rita".to_owned(),
                    method: "squash".to_owned(),
                }),
                ignored_checks: vec!["WIP".to_owned(), "codecov/patch".to_owned()],
                at: "2026-11-25T09:31:00Z".to_owned(),
            }),
            conversation_lock: Some(api::types::ConversationLockView {
                since: "2026-11-25T09:20:00Z".to_owned(),
                reason: "too heated".to_owned(),
            }),
        };
        assert_eq!(
            render_pull_request(&view),
            "pull request: https://github.com/acme/shop/pull/7 (open)\n\
             checks: 1 failed for aaaaaaaaaaaa at 2026-11-25T09:00:00Z; left to people: this commit was repaired as often as \
             is allowed\n  failed: test (3.11) https://github.com/acme/shop/runs/9\nwaits for a review since \
             2026-11-25T08:00:00Z\nconversation: locked since 2026-11-25T09:20:00Z\nmerge: blocked, it lacks commits of its base branch since 2026-11-25T09:30:00Z; acts: \
             journeyman; GitHub merges it by squash once nothing blocks it, as rita wants; ignored checks: WIP, codecov/patch"
        );
        let without = PullRequestView {
            checks: None,
            status: Some(PullRequestStatus::Merged),
            awaits_review_since: None,
            health: None,
            conversation_lock: None,
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

    #[test]
    fn run_names_its_ticket() {
        for text in ["jira:ENG-12@57", "jira:ENG-12", "ENG-12"] {
            assert_eq!(
                parse_run_ticket(text).unwrap().to_string(),
                "jira:ENG-12",
                "{text}"
            );
        }
        assert!(parse_run_ticket("nothing").is_err());
    }
}
