//! JSON of discussions, from GraphQL.

use serde::Deserialize;

use super::{
    WirePage,
    issues::{GraphqlNodes, WireActor, WireLabel},
    parse_instant, parse_lock,
};
use crate::{DiscussionComment, DiscussionStub, GitHubCommentId, GitHubDiscussion};

/// Answer to every query about a repository's discussions.
#[derive(Deserialize)]
pub(crate) struct WireDiscussionData {
    pub(crate) repository: Option<WireDiscussionRepository>,
}

#[derive(Deserialize)]
pub(crate) struct WireDiscussionRepository {
    #[serde(default)]
    pub(crate) discussion: Option<WireDiscussion>,
    #[serde(default)]
    // GraphQL returns null for a node that our account cannot see.
    discussions: Option<WirePage<Option<WireDiscussionStub>>>,
}

impl WireDiscussionRepository {
    /// Discussions of a page of the listing, and the cursor of the next page.
    pub(crate) fn into_stubs(self) -> (Vec<DiscussionStub>, Option<String>) {
        let Some(page) = self.discussions else {
            return (Vec::new(), None);
        };
        let (nodes, next) = page.into_parts();
        let stubs = nodes.into_iter().flatten().filter_map(|stub| {
            Some(DiscussionStub {
                number: stub.number,
                updated_at: parse_instant(Some(&stub.updated_at))?,
            })
        });
        (stubs.collect(), next)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDiscussionStub {
    number: u64,
    updated_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireDiscussion {
    id: String,
    title: String,
    body: String,
    url: String,
    closed: bool,
    #[serde(default)]
    locked: bool,
    active_lock_reason: Option<String>,
    created_at: String,
    author: Option<WireActor>,
    category: WireDiscussionCategory,
    labels: Option<GraphqlNodes<WireLabel>>,
    answer: Option<WireAnswer>,
    comments: GraphqlNodes<WireDiscussionComment>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDiscussionCategory {
    name: String,
    is_answerable: bool,
}

#[derive(Deserialize)]
struct WireAnswer {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDiscussionComment {
    id: String,
    database_id: Option<u64>,
    body: String,
    author: Option<WireActor>,
    created_at: String,
    last_edited_at: Option<String>,
    /// Present on comments that begin a thread, absent on replies.
    replies: Option<GraphqlNodes<WireDiscussionComment>>,
}

impl WireDiscussionComment {
    fn flat(mut self, thread: Option<&str>) -> Vec<DiscussionComment> {
        let replies = self.replies.take();
        let id = self.id.clone();
        let mut comments: Vec<_> = self.into_comment(thread).into_iter().collect();
        let replies = replies.into_iter().flat_map(GraphqlNodes::known);
        comments.extend(replies.filter_map(|reply| reply.into_comment(Some(&id))));
        comments
    }

    fn into_comment(self, thread: Option<&str>) -> Option<DiscussionComment> {
        let created_at = parse_instant(Some(&self.created_at))?;
        Some(DiscussionComment {
            id: GitHubCommentId(self.database_id?),
            thread: thread.unwrap_or(&self.id).to_owned(),
            node_id: self.id,
            author: self.author.map(WireActor::user),
            body: self.body,
            created_at,
            updated_at: parse_instant(self.last_edited_at.as_deref()).unwrap_or(created_at),
        })
    }
}

impl From<WireDiscussion> for GitHubDiscussion {
    fn from(wire: WireDiscussion) -> Self {
        let labels = wire.labels.into_iter().flat_map(GraphqlNodes::known);
        let mut comments: Vec<_> = wire
            .comments
            .known()
            .flat_map(|comment| comment.flat(None))
            .collect();
        // Replies come grouped below their comment; readers need the order of time.
        comments.sort_by_key(|comment| comment.created_at);
        Self {
            node_id: wire.id,
            title: wire.title,
            body: wire.body,
            url: wire.url,
            is_open: !wire.closed,
            lock: parse_lock(wire.locked, wire.active_lock_reason),
            created_at: parse_instant(Some(&wire.created_at)),
            author: wire.author.map(WireActor::user),
            category: wire.category.name,
            is_answerable: wire.category.is_answerable,
            answer: wire.answer.map(|answer| answer.id),
            labels: labels.map(|label| label.name).collect(),
            comments,
        }
    }
}
