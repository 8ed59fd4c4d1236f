//! Reviews and comments of pull requests.

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::time::Instant;

use super::FakeGitHub;
use super::hub::GitHubState;
use super::state::{CommentRecord, LineCommentRecord, PullReview, RepositoryRecord};
use crate::http::iso_now;

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
        self.tell(repo, "pull_request_review", payload, &review.author);
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
        self.tell_comment(repo, &comment, "created", json!({}), by);
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
        self.tell_comment(repo, &comment, "edited", changes, by);
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
