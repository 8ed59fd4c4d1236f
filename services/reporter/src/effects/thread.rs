//! Threads of comments, one variant for each kind of place that people discuss in, and the markers of our comments.

use domain::{PullRequestRef, RepositoryName, TicketKey};

use super::OutboundClients;
use crate::{cleared_text::ClearedText, effect_error::EffectError, message};

/// A thread of comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommentThread {
    /// The comments of a Jira issue.
    Jira(TicketKey),
    /// The conversation of a GitHub issue or pull request.
    GitHub(RepositoryName, u64),
    /// A review thread: repository, pull request, and the id of the comment that began it.
    Review(RepositoryName, u64, u64),
    /// A discussion. With a GraphQL id, the thread of that comment; without one, the top level.
    Discussion(RepositoryName, u64, Option<String>),
    /// No thread: the tickets of folders have no tracker.
    Nowhere(TicketKey),
}

impl CommentThread {
    /// Returns the conversation of a pull request.
    pub(crate) fn on(pull_request: &PullRequestRef) -> Self {
        Self::GitHub(pull_request.repository.clone(), pull_request.number)
    }

    /// Returns the thread of a ticket.
    pub(crate) fn of(ticket: &TicketKey) -> Self {
        match ticket {
            TicketKey::Jira { .. } => Self::Jira(ticket.clone()),
            TicketKey::GitHub { repository, number } => Self::GitHub(repository.clone(), *number),
            TicketKey::Discussion { repository, number } => {
                Self::Discussion(repository.clone(), *number, None)
            }
            TicketKey::Folder { .. } => Self::Nowhere(ticket.clone()),
        }
    }
}

/// A comment of our account that has a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnComment {
    /// Id of the comment at GitHub or Jira.
    pub(crate) id: String,
    /// Effect marker of the comment.
    pub(crate) marker: String,
}

impl OutboundClients {
    /// Returns our comments of a thread that have a marker, oldest first.
    pub(crate) async fn our_comments(&self, thread: &CommentThread) -> Result<Vec<OwnComment>, EffectError> {
        match thread {
            CommentThread::Jira(issue) => {
                let comments = self.jira.list_comments(issue).await?;
                Ok(comments
                    .into_iter()
                    .filter(|comment| comment.by_us && !comment.marker.is_empty())
                    .map(|comment| OwnComment {
                        id: comment.id.to_string(),
                        marker: comment.marker,
                    })
                    .collect())
            }
            CommentThread::Review(repository, number, comment) => {
                self.our_replies(repository, *number, *comment).await
            }
            CommentThread::Discussion(repository, number, _) => {
                self.ours_in_discussion(repository, *number).await
            }
            CommentThread::Nowhere(_) => Ok(Vec::new()),
            CommentThread::GitHub(repository, number) => {
                let comments = self.github.comments().list_comments(repository, *number).await?;
                Ok(comments
                    .iter()
                    .filter(|comment| comment.by_us)
                    .filter_map(|comment| {
                        Some(OwnComment {
                            id: comment.id.to_string(),
                            marker: read_marker(&comment.body)?.to_owned(),
                        })
                    })
                    .collect())
            }
        }
    }

    /// Finds our oldest comment with a marker, and returns its id.
    pub(super) async fn find_comment(
        &self,
        thread: &CommentThread,
        marker: &str,
    ) -> Result<Option<String>, EffectError> {
        let ours = self.our_comments(thread).await?;
        let found = ours.into_iter().find(|comment| comment.marker == marker);
        Ok(found.map(|comment| comment.id))
    }

    /// Returns our replies in the thread of a comment on a line.
    async fn our_replies(
        &self,
        repository: &RepositoryName,
        number: u64,
        comment: u64,
    ) -> Result<Vec<OwnComment>, EffectError> {
        let us = self.github.login(repository.instance()).await?;
        let said = self.github.reviews().line_comments(repository, number).await?;
        let is_ours = |reply: &&github::ReviewLineComment| {
            reply.in_reply_to == Some(comment) && reply.author.eq_ignore_ascii_case(&us)
        };
        let ours = said.iter().filter(is_ours).filter_map(|reply| {
            Some(OwnComment {
                id: reply.id.to_string(),
                marker: read_marker(&reply.body)?.to_owned(),
            })
        });
        Ok(ours.collect())
    }

    /// Returns our comments in all threads of a discussion. A marker is unique in it.
    async fn ours_in_discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<OwnComment>, EffectError> {
        let us = self.github.login(repository.instance()).await?;
        let found = self.github.discussions().discussion(repository, number).await?;
        let by_us = |comment: &&github::DiscussionComment| {
            let author = comment.author.as_ref();
            author.is_some_and(|author| author.login.eq_ignore_ascii_case(&us))
        };
        let ours = found.comments.iter().filter(by_us).filter_map(|comment| {
            Some(OwnComment {
                id: comment.node_id.clone(),
                marker: read_marker(&comment.body)?.to_owned(),
            })
        });
        Ok(ours.collect())
    }

    /// Deletes a comment of ours. A comment that no longer exists counts as deleted.
    pub(crate) async fn delete_comment(
        &self,
        thread: &CommentThread,
        comment: &str,
    ) -> Result<(), EffectError> {
        let deleted = match thread {
            CommentThread::Jira(issue) => {
                let comment = jira::JiraCommentId(comment.to_owned());
                let deleted = self.jira.delete_comment(issue, &comment).await;
                deleted.map_err(EffectError::from)
            }
            // Replies are never replaced, so they are not deleted.
            CommentThread::Review(..) | CommentThread::Nowhere(_) => Ok(()),
            CommentThread::Discussion(repository, ..) => {
                let deleted = self
                    .github
                    .discussions()
                    .delete_discussion_comment(repository, comment)
                    .await;
                deleted.map_err(EffectError::from)
            }
            CommentThread::GitHub(repository, _) => {
                let comment = github_id(comment)?;
                let deleted = self.github.comments().delete_comment(repository, comment).await;
                deleted.map_err(EffectError::from)
            }
        };
        // A person may have deleted the comment first.
        match deleted {
            Ok(()) | Err(EffectError::Missing(_)) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }
}

pub(super) fn github_id(comment: &str) -> Result<github::GitHubCommentId, EffectError> {
    let id = comment.parse().map(github::GitHubCommentId);
    id.map_err(|_| EffectError::Failed(message::no_comment_of_github()))
}

pub(super) const MARKER_START: &str = "<!-- journeyman:effect=";
pub(super) const MARKER_END: &str = " -->";

/// Appends the marker of an effect to a text.
pub(super) fn append_marker(text: &ClearedText, id: &str) -> String {
    format!("{}\n\n{MARKER_START}{id}{MARKER_END}", text.as_str())
}

/// Reads the marker at the very end of a comment. Text before it may quote other comments with their markers.
pub(super) fn read_marker(body: &str) -> Option<&str> {
    let body = body.trim_end().strip_suffix(MARKER_END)?;
    let start = body.rfind(MARKER_START)?;
    Some(&body[start + MARKER_START.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append_marker(text: &str, id: &str) -> String {
        super::append_marker(&ClearedText::without_credentials(text), id)
    }

    #[test]
    fn only_marker_at_end_of_text_counts() {
        let id = "status:github:acme/shop--x#7";
        assert_eq!(read_marker(&append_marker("Text", id)), Some(id));
        let quoted = append_marker(&append_marker("Quoted", "other"), id);
        assert_eq!(read_marker(&quoted), Some(id));
        assert_eq!(
            read_marker(&format!("{}\n\nMore text", append_marker("Text", id))),
            None
        );
        assert_eq!(read_marker("Text"), None);
    }
}
