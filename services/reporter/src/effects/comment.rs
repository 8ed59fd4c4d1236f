//! Tell the people on the ticket.

use domain::TicketKey;

use super::{Asked, Outside};
use crate::{
    message::{self, Say},
    plan::Made,
    trouble::Trouble,
};

/// Done when a comment by our own account carries the effect's marker; anybody else's marker counts for nothing.
pub(super) async fn look(
    outside: &Outside,
    asked: &Asked<'_>,
    ticket: &TicketKey,
) -> Result<Option<Made>, Trouble> {
    let is_there = match ticket {
        TicketKey::Jira { .. } => {
            let comments = outside.jira()?.list_comments(ticket).await?;
            comments
                .iter()
                .any(|comment| comment.by_us && comment.marker == asked.id)
        }
        TicketKey::GitHub { repository, number } => {
            let marker = marker(asked.id);
            let comments = outside.github.list_comments(repository, *number).await?;
            comments
                .iter()
                .any(|comment| comment.by_us && comment.body.contains(&marker))
        }
    };
    Ok(is_there.then(Made::default))
}

/// Writes it.
pub(super) async fn create(
    outside: &Outside,
    asked: &Asked<'_>,
    ticket: &TicketKey,
    say: &Say,
) -> Result<Made, Trouble> {
    let text = message::comment(say, asked.made, ticket, asked.report.run.as_ref());
    match ticket {
        TicketKey::Jira { .. } => outside.jira()?.comment(ticket, &text, asked.id).await.map(drop)?,
        TicketKey::GitHub { repository, number } => {
            let body = format!("{text}\n\n{}", marker(asked.id));
            outside
                .github
                .comment(repository, *number, &body)
                .await
                .map(drop)?;
        }
    }
    Ok(Made::default())
}

fn marker(id: &str) -> String {
    format!("<!-- journeyman:effect={id} -->")
}
