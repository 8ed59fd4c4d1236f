//! Comments on a ticket, each with a marker; a marker by another account than ours counts for nothing.

use domain::TicketKey;

use super::{Asked, Outside, letters::marker_of};
use crate::{made::Made, message, trouble::Trouble};

/// A comment by our own account that carries a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ours {
    /// Its id outside.
    pub(crate) id: String,
    /// Its marker.
    pub(crate) marker: String,
}

/// Done when a comment of ours carries the effect's marker; the oldest one counts.
pub(super) async fn look(
    outside: &Outside,
    asked: &Asked<'_>,
    ticket: &TicketKey,
) -> Result<Option<Made>, Trouble> {
    let ours = outside.our_comments(ticket).await?;
    let found = ours.into_iter().find(|comment| comment.marker == asked.id);
    Ok(found.map(|comment| made(comment.id)))
}

/// Writes it.
pub(super) async fn create(
    outside: &Outside,
    asked: &Asked<'_>,
    ticket: &TicketKey,
) -> Result<Made, Trouble> {
    let id = outside.write_comment(ticket, asked.text, asked.id).await?;
    Ok(made(id))
}

impl Outside {
    /// The comments of ours on a ticket that carry a marker, oldest first.
    pub(crate) async fn our_comments(&self, ticket: &TicketKey) -> Result<Vec<Ours>, Trouble> {
        match ticket {
            TicketKey::Jira { .. } => {
                let comments = self.jira.list_comments(ticket).await?;
                Ok(comments
                    .into_iter()
                    .filter(|comment| comment.by_us && !comment.marker.is_empty())
                    .map(|comment| Ours {
                        id: comment.id.to_string(),
                        marker: comment.marker,
                    })
                    .collect())
            }
            TicketKey::Folder { .. } => Ok(Vec::new()),
            TicketKey::GitHub { repository, number } => {
                let comments = self.github.list_comments(repository, *number).await?;
                Ok(comments
                    .iter()
                    .filter(|comment| comment.by_us)
                    .filter_map(|comment| {
                        Some(Ours {
                            id: comment.id.to_string(),
                            marker: marker_of(&comment.body)?.to_owned(),
                        })
                    })
                    .collect())
            }
        }
    }

    /// Deletes a comment of ours; one that is gone already is a success.
    pub(crate) async fn delete_comment(&self, ticket: &TicketKey, comment: &str) -> Result<(), Trouble> {
        let deleted = match ticket {
            TicketKey::Jira { .. } => {
                let comment = jira::CommentId(comment.to_owned());
                let deleted = self.jira.delete_comment(ticket, &comment).await;
                deleted.map_err(Trouble::from)
            }
            TicketKey::Folder { .. } => Ok(()),
            TicketKey::GitHub { repository, .. } => {
                let comment = github_id(comment)?;
                let deleted = self.github.delete_comment(repository, comment).await;
                deleted.map_err(Trouble::from)
            }
        };
        match deleted {
            Ok(()) | Err(Trouble::Missing(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}

fn made(comment: String) -> Made {
    Made {
        comment: Some(comment),
        ..Made::default()
    }
}

pub(super) fn github_id(comment: &str) -> Result<github::CommentId, Trouble> {
    let id = comment.parse().map(github::CommentId);
    id.map_err(|_| Trouble::Failed(message::no_comment_of_github()))
}
