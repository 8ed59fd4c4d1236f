//! Reviews and comments of pull requests.

use anyhow::{Context as _, ensure};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::FakeGitHub;
use super::graphql::render_graphql_error;
use super::hub::GitHubState;
use super::state::{CommentRecord, LineCommentRecord, PullRecord, PullReview, RepositoryRecord};
use crate::http::iso_now;

// GitHub's maximum number of entries per page.
const MAX_PAGE: usize = 100;

/// Review comment on lines of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnLines<'a> {
    pub(super) path: &'a str,
    /// First line of a comment on several lines.
    pub(super) start: Option<u64>,
    pub(super) line: u64,
    pub(super) body: &'a str,
}

impl<'a> OnLines<'a> {
    /// Creates a comment on one line.
    pub(super) fn one(&(path, line, body): &(&'a str, u64, &'a str)) -> Self {
        let start = None;
        Self {
            path,
            start,
            line,
            body,
        }
    }
}

/// Page of the review threads that a GraphQL query asks for.
pub(super) struct ThreadPage {
    /// Number of threads on the pages before.
    before: usize,
    size: usize,
}

impl ThreadPage {
    /// Reads the arguments of `reviewThreads`, and refuses the sizes and cursors that GitHub refuses.
    pub(super) fn read(query: &str, variables: &Value) -> Result<Self, Response> {
        let (_, rest) = query.split_once("reviewThreads(").unwrap_or_default();
        let arguments = rest.split(')').next().unwrap_or_default();
        let size: Option<usize> = arguments
            .split(", ")
            .find_map(|argument| argument.strip_prefix("first: ")?.parse().ok());
        let Some(size) = size.filter(|size| (1..=MAX_PAGE).contains(size)) else {
            let message = "`first` on the `reviewThreads` connection must be 1 to 100";
            return Err(render_graphql_error("EXCESSIVE_PAGINATION", message));
        };
        let cursor = &variables["after"];
        // A cursor is the number of threads before it.
        let before = if cursor.is_null() || !arguments.contains("after: $after") {
            Some(0)
        } else {
            cursor.as_str().and_then(|cursor| cursor.parse().ok())
        };
        let Some(before) = before else {
            let message = format!("`{cursor}` does not appear to be a valid cursor.");
            return Err(render_graphql_error("INVALID_CURSOR_ARGUMENTS", &message));
        };
        Ok(Self { before, size })
    }

    /// Renders the page of a pull request's threads. `render_thread` gets the first comment of a thread, and
    /// whether it is resolved.
    pub(super) fn render(
        &self,
        pull: &PullRecord,
        render_thread: impl Fn(&LineCommentRecord, bool) -> Value,
    ) -> Value {
        let lines = pull.reviews.iter().flat_map(|review| &review.lines);
        let first: Vec<&LineCommentRecord> = lines.filter(|line| line.in_reply_to.is_none()).collect();
        let total = first.len();
        let page = first.into_iter().skip(self.before).take(self.size);
        let nodes: Vec<Value> = page
            .map(|line| render_thread(line, pull.resolved.contains(&line.id)))
            .collect();
        let end = self.before + nodes.len();
        let cursor = (!nodes.is_empty()).then(|| end.to_string());
        json!({"pageInfo": {"hasNextPage": end < total, "endCursor": cursor}, "nodes": nodes})
    }
}

impl GitHubState {
    pub(super) fn review(
        &self,
        name: &str,
        number: u64,
        by: &str,
        (state, body): (&str, &str),
        lines: &[OnLines<'_>],
    ) -> anyhow::Result<PullReview> {
        let mut world = self.world();
        // The review takes the first id and its comments the following ones, which `next_id` promises.
        let id = world.fresh_id();
        let line = |on: &OnLines<'_>| LineCommentRecord {
            id: world.fresh_id(),
            path: on.path.to_owned(),
            start: on.start,
            line: on.line,
            body: on.body.to_owned(),
            in_reply_to: None,
        };
        let lines = lines.iter().map(line).collect();
        let repo = world.repo(name)?;
        let pull = repo.pull(number)?;
        // GitHub lets authors comment on their pull requests, but neither approve nor request changes.
        ensure!(
            pull.author != by || state == "commented",
            "the author cannot approve or request changes"
        );
        let review = PullReview {
            id,
            author: by.to_owned(),
            state: state.to_ascii_lowercase(),
            body: body.to_owned(),
            sha: pull.head_sha.clone(),
            submitted: iso_now(),
            lines,
            made: Instant::now(),
        };
        // A submitted review completes its request.
        pull.reviewers.retain(|login| login != by);
        self.submit(repo, number, &review)?;
        Ok(review)
    }

    /// Adds a review and sends `pull_request_review` submitted.
    fn submit(&self, repo: &mut RepositoryRecord, number: u64, review: &PullReview) -> anyhow::Result<()> {
        let pull = repo.pull(number)?;
        pull.updated = iso_now();
        pull.reviews.push(review.clone());
        let pull = pull.clone();
        let payload = json!({
            "action": "submitted", "review": repo.review_json(&pull, review, &self.url),
            "pull_request": repo.simple_pull_json(&pull, &self.url),
        });
        self.send_event(repo, "pull_request_review", payload, &review.author);
        Ok(())
    }

    /// Replies to a comment on a line. GitHub records each reply as a separate review without a body.
    pub(super) fn reply(
        &self,
        name: &str,
        number: u64,
        to: u64,
        by: &str,
        body: &str,
    ) -> anyhow::Result<LineCommentRecord> {
        let mut world = self.world();
        let (id, review_id) = (world.fresh_id(), world.fresh_id());
        let repo = world.repo(name)?;
        let pull = repo.pull(number)?;
        let mut lines = pull.reviews.iter().flat_map(|review| &review.lines);
        // GitHub refuses a reply to a reply.
        let first = lines
            .find(|line| line.id == to && line.in_reply_to.is_none())
            .with_context(|| format!("there is no first comment {to} of a thread"))?;
        let reply = LineCommentRecord {
            id,
            path: first.path.clone(),
            start: first.start,
            line: first.line,
            body: body.to_owned(),
            in_reply_to: Some(to),
        };
        let review = PullReview {
            id: review_id,
            author: by.to_owned(),
            state: "commented".to_owned(),
            body: String::new(),
            sha: pull.head_sha.clone(),
            submitted: iso_now(),
            lines: vec![reply.clone()],
            made: Instant::now(),
        };
        self.submit(repo, number, &review)?;
        Ok(reply)
    }

    pub(super) fn comment(
        &self,
        name: &str,
        number: u64,
        by: &str,
        body: &str,
    ) -> anyhow::Result<CommentRecord> {
        let mut world = self.world();
        let id = world.fresh_id();
        let repo = world.repo(name)?;
        ensure!(repo.has_thread(number), "there is no {name}#{number}");
        let now = iso_now();
        let comment = CommentRecord {
            id,
            number,
            author: by.to_owned(),
            body: body.to_owned(),
            created: now.clone(),
            updated: now,
            made: Instant::now(),
        };
        repo.comments.push(comment.clone());
        self.send_comment_event(repo, &comment, "created", json!({}), by);
        Ok(comment)
    }

    pub(super) fn edit_comment(&self, name: &str, id: u64, by: &str, body: &str) -> anyhow::Result<()> {
        let mut world = self.world();
        let repo = world.repo(name)?;
        let comment = repo
            .comments
            .iter_mut()
            .find(|comment| comment.id == id)
            .with_context(|| format!("there is no comment {id}"))?;
        let before = std::mem::replace(&mut comment.body, body.to_owned());
        comment.updated = iso_now();
        let comment = comment.clone();
        let changes = json!({"changes": {"body": {"from": before}}});
        self.send_comment_event(repo, &comment, "edited", changes, by);
        Ok(())
    }
}

impl FakeGitHub {
    /// Replies as a user in the thread of a review comment. Sends `pull_request_review`.
    ///
    /// # Errors
    /// When the pull request or thread does not exist.
    pub fn reply_as(
        &self,
        repository: &str,
        number: u64,
        thread: u64,
        by: &str,
        body: &str,
    ) -> anyhow::Result<()> {
        self.hub.reply(repository, number, thread, by, body).map(drop)
    }

    /// Replies in the thread of a review comment, oldest first.
    ///
    /// # Errors
    /// When the repository or pull request does not exist.
    pub fn replies(&self, repository: &str, number: u64, comment: u64) -> anyhow::Result<Vec<String>> {
        let mut world = self.hub.world();
        let pull = world.repo(repository)?.pull(number)?;
        let lines = pull.reviews.iter().flat_map(|review| &review.lines);
        let replies = lines.filter(|line| line.in_reply_to == Some(comment));
        Ok(replies.map(|line| line.body.clone()).collect())
    }

    /// Ids of the first comments of resolved threads.
    ///
    /// # Errors
    /// When the repository or pull request does not exist.
    pub fn resolved(&self, repository: &str, number: u64) -> anyhow::Result<Vec<u64>> {
        let mut world = self.hub.world();
        let pull = world.repo(repository)?.pull(number)?;
        Ok(pull.resolved.iter().copied().collect())
    }

    /// Ids of the first comments of all threads on lines, oldest first.
    ///
    /// # Errors
    /// When the repository or pull request does not exist.
    pub fn threads(&self, repository: &str, number: u64) -> anyhow::Result<Vec<u64>> {
        let mut world = self.hub.world();
        let pull = world.repo(repository)?.pull(number)?;
        let lines = pull.reviews.iter().flat_map(|review| &review.lines);
        let first = lines.filter(|line| line.in_reply_to.is_none());
        Ok(first.map(|line| line.id).collect())
    }
}
