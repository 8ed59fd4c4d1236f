//! GitHub Discussions: reading, commenting and reacting. GitHub offers them over GraphQL alone.

use std::collections::BTreeSet;

use domain::{ReactionKind, RepositoryName, Timestamp};
use serde_json::{Value, json};

use crate::{
    DiscussionStub, Error, GitHubDiscussion,
    client::{GitHubClient, GitHubClients},
    permissions::AccessKind,
    wire::{WireDiscussionData, WireDiscussionRepository},
};

// The latest 100 comments, each with its latest 50 replies. 100 is GitHub's maximum for a connection.
const DISCUSSION: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { discussion(number: $number) { \
    id title body url closed locked activeLockReason createdAt author { __typename login ... on User { databaseId } ... on Bot { databaseId } } \
    category { name isAnswerable } labels(first: 100) { nodes { name } } answer { id } \
    comments(last: 100) { nodes { id databaseId body createdAt lastEditedAt \
    author { __typename login ... on User { databaseId } ... on Bot { databaseId } } \
    replies(last: 50) { nodes { id databaseId body createdAt lastEditedAt \
    author { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } } } } } }";
const CHANGED: &str = "query($owner: String!, $name: String!, $after: String) { \
    repository(owner: $owner, name: $name) { \
    discussions(first: 50, after: $after, orderBy: {field: UPDATED_AT, direction: DESC}) { \
    pageInfo { hasNextPage endCursor } nodes { number updatedAt } } } }";
const COMMENT: &str = "mutation($discussion: ID!, $thread: ID, $body: String!) { addDiscussionComment(input: \
    {discussionId: $discussion, replyToId: $thread, body: $body}) { comment { id } } }";
const UPDATE: &str = "mutation($id: ID!, $body: String!) { updateDiscussionComment(input: {commentId: $id, body: $body}) \
    { comment { id } } }";
const DELETE: &str = "mutation($id: ID!) { deleteDiscussionComment(input: {id: $id}) { comment { id } } }";
const ANSWER: &str =
    "mutation($id: ID!) { markDiscussionCommentAsAnswer(input: {id: $id}) { discussion { id } } }";
const CLOSE: &str = "mutation($id: ID!) { closeDiscussion(input: {discussionId: $id, reason: RESOLVED}) \
    { discussion { id closed } } }";
const REACT: &str = "mutation($id: ID!, $content: ReactionContent!) { addReaction(input: {subjectId: $id, content: $content}) \
    { reaction { content } } }";

const MAX_CHANGED_PAGES: usize = 20;

async fn query_discussions(
    client: &GitHubClient,
    access: AccessKind,
    repository: &RepositoryName,
    query: &str,
    variables: Value,
) -> Result<WireDiscussionRepository, Error> {
    let data = client.query(repository, access, query, variables).await?;
    let data: WireDiscussionData = serde_json::from_value(data).map_err(|error| Error::Malformed {
        // The serde message would quote the discussion's text, so that only the class of the error is kept.
        detail: format!("the query of discussions, {:?} error", error.classify()),
    })?;
    data.repository.ok_or_else(|| Error::NotFound {
        what: format!("repository {repository}"),
    })
}

async fn fetch_discussion(
    client: &GitHubClient,
    access: AccessKind,
    repository: &RepositoryName,
    number: u64,
) -> Result<GitHubDiscussion, Error> {
    let found = query_discussions(
        client,
        access,
        repository,
        DISCUSSION,
        json!({ "number": number }),
    );
    let found = found.await?.discussion;
    found.map(GitHubDiscussion::from).ok_or_else(|| Error::NotFound {
        what: format!("discussion {number}"),
    })
}

/// Adds a reaction to a discussion or to a comment in it; a repeated call changes nothing.
pub(crate) async fn react_in_discussion(
    client: &GitHubClient,
    repository: &RepositoryName,
    number: u64,
    comment: Option<&str>,
    reaction: ReactionKind,
) -> Result<(), Error> {
    let id = match comment {
        Some(comment) => comment.to_owned(),
        None => {
            let found = fetch_discussion(client, AccessKind::Discuss, repository, number);
            found.await?.node_id
        }
    };
    let variables = json!({ "id": id, "content": reaction.as_str().to_uppercase() });
    change_discussion(client, repository, REACT, variables).await
}

async fn change_discussion(
    client: &GitHubClient,
    repository: &RepositoryName,
    mutation: &str,
    variables: Value,
) -> Result<(), Error> {
    let done = client.graphql(repository, AccessKind::Discuss, mutation, variables);
    done.await.map(drop)
}

/// Reader of discussions; cheap to clone.
#[derive(Clone, Debug)]
pub struct DiscussionReader {
    pub(crate) clients: GitHubClients,
}

impl DiscussionReader {
    /// Reads a discussion with its latest 100 comments and the latest 50 replies to each.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the repository has no discussion with that number: it was deleted or
    /// transferred, or the number is an issue's.
    pub async fn discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<GitHubDiscussion, Error> {
        let client = self.clients.of(repository)?;
        fetch_discussion(client, AccessKind::Look, repository, number).await
    }

    /// Lists the discussions that changed at or after `since`, latest change first, among the 1,000 that changed last.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn changed_discussions(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<DiscussionStub>, Error> {
        let client = self.clients.of(repository)?;
        let (mut changed, mut numbers, mut after) = (Vec::new(), BTreeSet::new(), None::<String>);
        for _ in 0..MAX_CHANGED_PAGES {
            let variables = json!({ "after": after });
            let found = query_discussions(client, AccessKind::Look, repository, CHANGED, variables).await?;
            let (stubs, next) = found.into_stubs();
            let has_older = stubs.last().is_none_or(|last| last.updated_at < since);
            let is_changed = |stub: &DiscussionStub| stub.updated_at >= since;
            // A change between two reads moves the last discussion of a page to the next one.
            let new = stubs.into_iter().filter(|stub| numbers.insert(stub.number));
            changed.extend(new.filter(is_changed));
            if has_older || next.is_none() {
                return Ok(changed);
            }
            after = next;
        }
        tracing::warn!(
            %repository,
            "too many discussions changed since the last poll; the oldest changes are left out"
        );
        Ok(changed)
    }
}

/// Writer of discussions; cheap to clone.
#[derive(Clone, Debug)]
pub struct DiscussionWriter {
    pub(crate) clients: GitHubClients,
}

impl DiscussionWriter {
    /// Reads a discussion in the same form as [`DiscussionReader::discussion`].
    ///
    /// # Errors
    /// [`Error::NotFound`] when the repository has no discussion with that number.
    pub async fn discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<GitHubDiscussion, Error> {
        let client = self.clients.of(repository)?;
        fetch_discussion(client, AccessKind::Discuss, repository, number).await
    }

    /// Adds a comment to a discussion and returns its GraphQL id. The comment goes into the thread of the
    /// given comment (by its GraphQL id), or begins a new thread.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the discussion is missing; [`Error::Locked`] when it is locked.
    pub async fn comment_on_discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
        beside: Option<&str>,
        body: &str,
    ) -> Result<String, Error> {
        let client = self.clients.of(repository)?;
        let found = fetch_discussion(client, AccessKind::Discuss, repository, number).await?;
        // GitHub takes replies to the first comment of a thread only. A deleted comment has no thread, so the
        // text begins a new one.
        let mut comments = found.comments.iter();
        let thread = beside.and_then(|beside| comments.find(|comment| comment.node_id == beside));
        let variables = json!({
            "discussion": found.node_id, "thread": thread.map(|comment| &comment.thread), "body": body,
        });
        let data = client
            .graphql(repository, AccessKind::Discuss, COMMENT, variables)
            .await?;
        let id = data["addDiscussionComment"]["comment"]["id"].as_str();
        // The comment exists, although its answer does not name it.
        id.map(str::to_owned).ok_or_else(|| Error::Unknown {
            detail: "a comment in a discussion without an id".to_owned(),
            source: None,
        })
    }

    /// Replaces the text of one of our comments.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the comment was deleted.
    pub async fn update_discussion_comment(
        &self,
        repository: &RepositoryName,
        comment: &str,
        body: &str,
    ) -> Result<(), Error> {
        let variables = json!({ "id": comment, "body": body });
        change_discussion(self.clients.of(repository)?, repository, UPDATE, variables).await
    }

    /// Deletes one of our comments.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the comment was deleted before.
    pub async fn delete_discussion_comment(
        &self,
        repository: &RepositoryName,
        comment: &str,
    ) -> Result<(), Error> {
        change_discussion(
            self.clients.of(repository)?,
            repository,
            DELETE,
            json!({ "id": comment }),
        )
        .await
    }

    /// Marks a comment as the answer; a marked comment stays marked.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the discussion's category has no answers, or the comment is a reply.
    pub async fn mark_answer(&self, repository: &RepositoryName, comment: &str) -> Result<(), Error> {
        change_discussion(
            self.clients.of(repository)?,
            repository,
            ANSWER,
            json!({ "id": comment }),
        )
        .await
    }

    /// Closes a discussion as resolved, by its GraphQL id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it is missing, [`Error::Rejected`] when it is closed already.
    pub async fn close_discussion(&self, repository: &RepositoryName, discussion: &str) -> Result<(), Error> {
        change_discussion(
            self.clients.of(repository)?,
            repository,
            CLOSE,
            json!({ "id": discussion }),
        )
        .await
    }
}
