//! Places of comments on a ticket and its pull requests.

use domain::TicketKey;

use crate::{
    board::{WatchedConversation, WatchedMarker},
    effects::CommentThread,
    refused_notice::RefusedNotice,
};

/// Place of the status of a ticket, or of a separate comment.
#[derive(Clone, Copy)]
pub(crate) struct CommentPlace<'a> {
    /// Conversation of the comment.
    pub(crate) thread: &'a CommentThread,
    /// Marker of the comment.
    pub(crate) id: &'a str,
    /// Refusal by the conversation of the ticket, if its status is elsewhere.
    pub(crate) refused: Option<&'a RefusedNotice>,
}

impl CommentPlace<'_> {
    /// Returns the conversation of the place; `None` for the thread of the ticket.
    pub(crate) fn conversation(&self, ticket: &TicketKey) -> Option<WatchedConversation> {
        match self.thread {
            CommentThread::GitHub(repository, number) if *self.thread != CommentThread::of(ticket) => {
                Some(WatchedConversation {
                    repository: repository.clone(),
                    number: *number,
                })
            }
            // A list of a discussion has the comments of all its threads. Replies of a review are not watched.
            CommentThread::GitHub(..)
            | CommentThread::Jira(_)
            | CommentThread::Review(..)
            | CommentThread::Discussion(..)
            | CommentThread::Nowhere(_) => None,
        }
    }
}

/// Returns the watched markers of each thread, so that each thread is listed once.
pub(crate) fn group_by_thread<'a>(
    ticket: &TicketKey,
    watched: &'a [WatchedMarker],
) -> Vec<(CommentThread, Vec<&'a WatchedMarker>)> {
    let mut groups: Vec<(CommentThread, Vec<&WatchedMarker>)> = Vec::new();
    for marker in watched {
        let thread = match &marker.on {
            Some(on) => CommentThread::GitHub(on.repository.clone(), on.number),
            None => CommentThread::of(ticket),
        };
        match groups.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, markers)) => markers.push(marker),
            None => groups.push((thread, vec![marker])),
        }
    }
    groups
}
