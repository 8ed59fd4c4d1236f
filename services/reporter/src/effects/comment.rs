//! Comments on a ticket, each with a marker; a marker by another account than ours counts for nothing.

use domain::TicketKey;

use super::{Asked, Outside};
use crate::{plan::Made, trouble::Trouble};

const MARKER_START: &str = "<!-- journeyman:effect=";
const MARKER_END: &str = " -->";

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
    let id = match ticket {
        TicketKey::Jira { .. } => {
            let jira = &outside.jira;
            jira.comment(ticket, asked.text, asked.id).await?.to_string()
        }
        TicketKey::GitHub { repository, number } => {
            let body = marked(asked.text, asked.id);
            let github = &outside.github;
            github.comment(repository, *number, &body).await?.to_string()
        }
    };
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

    /// Replaces the text of a comment of ours; its marker stays.
    pub(crate) async fn edit_comment(
        &self,
        ticket: &TicketKey,
        comment: &str,
        text: &str,
        marker: &str,
    ) -> Result<(), Trouble> {
        match ticket {
            TicketKey::Jira { .. } => {
                let comment = jira::CommentId(comment.to_owned());
                Ok(self.jira.update_comment(ticket, &comment, text).await?)
            }
            TicketKey::GitHub { repository, .. } => {
                let body = marked(text, marker);
                let comment = github_id(comment)?;
                Ok(self.github.update_comment(repository, comment, &body).await?)
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

fn github_id(comment: &str) -> Result<github::CommentId, Trouble> {
    let id = comment.parse().map(github::CommentId);
    id.map_err(|_| Trouble::Failed("the ledger names no comment of GitHub".to_owned()))
}

fn marked(text: &str, id: &str) -> String {
    format!("{text}\n\n{MARKER_START}{id}{MARKER_END}")
}

/// The marker at the very end: text above it is quoted from others and may hold anything.
fn marker_of(body: &str) -> Option<&str> {
    let body = body.trim_end().strip_suffix(MARKER_END)?;
    let start = body.rfind(MARKER_START)?;
    Some(&body[start + MARKER_START.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_at_the_end_counts_and_no_other() {
        let id = "status:github:acme/shop--x#7";
        assert_eq!(marker_of(&marked("Text", id)), Some(id));
        let quoted = marked(&marked("Quoted", "other"), id);
        assert_eq!(marker_of(&quoted), Some(id));
        assert_eq!(marker_of(&format!("{}\n\nMore text", marked("Text", id))), None);
        assert_eq!(marker_of("Text"), None);
    }
}
