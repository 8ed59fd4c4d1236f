//! `journeyman show-ticket`: what a ticket says now.

use std::process::ExitCode;

use api::types::TicketTextView;
use clap::Args;

use super::say_long;
use crate::{
    access,
    args::{OfTicket, Paging},
};

/// Print what a ticket or pull request says now
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    of: OfTicket,
    #[command(flatten)]
    paging: Paging,
}

pub(super) async fn run(Arguments { of, paging }: Arguments) -> anyhow::Result<ExitCode> {
    let text = access::client(&of.api)?.ticket_text(&of.ticket).await?;
    say_long([page(&text)], paging);
    Ok(ExitCode::SUCCESS)
}

/// The ticket as one text.
pub(super) fn page(text: &TicketTextView) -> String {
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
    fn a_page_has_what_is_there_and_nothing_else() {
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
            page(&text),
            "jira:ENG-1: Fix the cart\nstatus: To Do\nlabels: shop, tax\n\nIt rounds.\n\nAda at 2026-11-24T10:00:00Z:\nHalf up."
        );
    }
}
