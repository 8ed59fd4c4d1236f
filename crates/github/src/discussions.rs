//! Discussions: what is said there, and what we say and do there. GitHub offers them over GraphQL alone.

use domain::{Reaction, RepositoryName};
use serde_json::{Value, json};

use crate::{
    Discussion, DiscussionStub, Error, Reader, Writer,
    client::Client,
    permissions::Access,
    wire::{WireDiscussionData, WireDiscussionRepository},
};

/// The latest 100 comments with the latest 50 replies to each.
const DISCUSSION: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { discussion(number: $number) { \
    id title body url closed createdAt author { __typename login ... on User { databaseId } ... on Bot { databaseId } } \
    category { name isAnswerable } labels(first: 100) { nodes { name } } answer { id } \
    comments(last: 100) { nodes { id databaseId body createdAt lastEditedAt \
    author { __typename login ... on User { databaseId } ... on Bot { databaseId } } \
    replies(last: 50) { nodes { id databaseId body createdAt lastEditedAt \
    author { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } } } } } }";
const CHANGED: &str = "query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { \
    discussions(first: 50, orderBy: {field: UPDATED_AT, direction: DESC}) { nodes { number updatedAt } } } }";
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

async fn query(
    client: &Client,
    access: Access,
    repository: &RepositoryName,
    query: &str,
    variables: Value,
) -> Result<WireDiscussionRepository, Error> {
    let data = client.query(repository, access, query, variables).await?;
    let data: WireDiscussionData = serde_json::from_value(data).map_err(|error| Error::Malformed {
        // What serde quotes is the discussion's text.
        detail: format!("the query of discussions, {:?} error", error.classify()),
    })?;
    data.repository.ok_or_else(|| Error::NotFound {
        what: format!("repository {repository}"),
    })
}

async fn discussion(
    client: &Client,
    access: Access,
    repository: &RepositoryName,
    number: u64,
) -> Result<Discussion, Error> {
    let found = query(
        client,
        access,
        repository,
        DISCUSSION,
        json!({ "number": number }),
    );
    let found = found.await?.discussion;
    found.map(Discussion::from).ok_or_else(|| Error::NotFound {
        what: format!("discussion {number}"),
    })
}

impl Reader {
    /// A discussion with its latest 100 comments and the latest 50 replies to each.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no discussion with that number: it was deleted or transferred, or it is an issue.
    pub async fn discussion(&self, repository: &RepositoryName, number: u64) -> Result<Discussion, Error> {
        let client = self.clients.of(repository)?;
        discussion(client, Access::Look, repository, number).await
    }

    /// The 50 discussions that changed last, latest change first.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn changed_discussions(
        &self,
        repository: &RepositoryName,
    ) -> Result<Vec<DiscussionStub>, Error> {
        let client = self.clients.of(repository)?;
        let found = query(client, Access::Look, repository, CHANGED, json!({})).await?;
        Ok(found.stubs())
    }
}

impl Writer {
    /// A discussion, as [`Reader::discussion`] reads it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no discussion with that number.
    pub async fn discussion(&self, repository: &RepositoryName, number: u64) -> Result<Discussion, Error> {
        let client = self.clients.of(repository)?;
        discussion(client, Access::Discuss, repository, number).await
    }

    /// Comments in a discussion: in the thread of a comment, by its id in GraphQL, or in one of its own. Gives the
    /// comment's id in GraphQL.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such discussion or comment; [`Error::Rejected`] when it is locked.
    pub async fn comment_on_discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
        beside: Option<&str>,
        body: &str,
    ) -> Result<String, Error> {
        let client = self.clients.of(repository)?;
        let found = discussion(client, Access::Discuss, repository, number).await?;
        // Replies go to the comment that began the thread. One that is gone has no thread any more.
        let mut comments = found.comments.iter();
        let thread = beside.and_then(|beside| comments.find(|comment| comment.node_id == beside));
        let variables = json!({
            "discussion": found.node_id, "thread": thread.map(|comment| &comment.thread), "body": body,
        });
        let data = client
            .graphql(repository, Access::Discuss, COMMENT, variables)
            .await?;
        let id = data["addDiscussionComment"]["comment"]["id"].as_str();
        id.map(str::to_owned).ok_or_else(|| Error::Malformed {
            detail: "a comment in a discussion without an id".to_owned(),
        })
    }

    /// Changes the text of a comment of ours.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it is not there any more.
    pub async fn update_discussion_comment(
        &self,
        repository: &RepositoryName,
        comment: &str,
        body: &str,
    ) -> Result<(), Error> {
        let variables = json!({ "id": comment, "body": body });
        self.change_discussion(repository, UPDATE, variables).await
    }

    /// Deletes a comment of ours.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it is not there any more.
    pub async fn delete_discussion_comment(
        &self,
        repository: &RepositoryName,
        comment: &str,
    ) -> Result<(), Error> {
        self.change_discussion(repository, DELETE, json!({ "id": comment }))
            .await
    }

    /// Marks a comment as the answer; one that is marked stays so.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the category of its discussion has no answers, or it is a reply.
    pub async fn mark_answer(&self, repository: &RepositoryName, comment: &str) -> Result<(), Error> {
        self.change_discussion(repository, ANSWER, json!({ "id": comment }))
            .await
    }

    /// Closes a discussion, by its id in GraphQL, as resolved.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none, [`Error::Rejected`] when it is closed.
    pub async fn close_discussion(&self, repository: &RepositoryName, discussion: &str) -> Result<(), Error> {
        self.change_discussion(repository, CLOSE, json!({ "id": discussion }))
            .await
    }

    /// Reacts to a discussion or a comment in it; a second time changes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it is not there.
    pub(crate) async fn react_in_discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
        comment: Option<&str>,
        reaction: Reaction,
    ) -> Result<(), Error> {
        let id = match comment {
            Some(comment) => comment.to_owned(),
            None => self.discussion(repository, number).await?.node_id,
        };
        let variables = json!({ "id": id, "content": reaction.as_str().to_uppercase() });
        self.change_discussion(repository, REACT, variables).await
    }

    async fn change_discussion(
        &self,
        repository: &RepositoryName,
        mutation: &str,
        variables: Value,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let done = client.graphql(repository, Access::Discuss, mutation, variables);
        done.await.map(drop)
    }
}
