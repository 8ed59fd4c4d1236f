//! What is said about pull requests: reviews and comments.

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::time::Instant;

use super::FakeGitHub;
use super::hub::Hub;
use super::state::{Comment, LineComment, Review};
use crate::http::iso_now;

/// A comment of a review on lines of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnLines<'a> {
    pub(super) path: &'a str,
    /// Where a comment on several lines begins.
    pub(super) start: Option<u64>,
    pub(super) line: u64,
    pub(super) body: &'a str,
}

impl<'a> OnLines<'a> {
    /// A comment on one line.
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

impl Hub {
    pub(super) fn review(
        &self,
        name: &str,
        number: u64,
        by: &str,
        (state, body): (&str, &str),
        lines: &[OnLines<'_>],
    ) -> anyhow::Result<Review> {
        let mut world = self.world();
        let id = world.fresh_id();
        let line = |on: &OnLines<'_>| LineComment {
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
        ensure!(
            pull.author != by || state == "commented",
            "the author cannot approve or request changes"
        );
        let review = Review {
            id,
            author: by.to_owned(),
            state: state.to_ascii_lowercase(),
            body: body.to_owned(),
            sha: pull.head_sha.clone(),
            submitted: iso_now(),
            lines,
            made: Instant::now(),
        };
        pull.reviewers.retain(|login| login != by);
        pull.updated = iso_now();
        pull.reviews.push(review.clone());
        let pull = pull.clone();
        let payload = json!({
            "action": "submitted", "review": repo.review_json(&pull, &review, &self.url),
            "pull_request": repo.simple_pull_json(&pull, &self.url),
        });
        self.tell(repo, "pull_request_review", payload, by);
        Ok(review)
    }

    /// A reply to a comment on a line is a review of its own, with nothing else in it.
    pub(super) fn reply(
        &self,
        name: &str,
        number: u64,
        to: u64,
        by: &str,
        body: &str,
    ) -> anyhow::Result<LineComment> {
        let mut world = self.world();
        let (id, review_id) = (world.fresh_id(), world.fresh_id());
        let repo = world.repo(name)?;
        let pull = repo.pull(number)?;
        let mut lines = pull.reviews.iter().flat_map(|review| &review.lines);
        let first = lines
            .find(|line| line.id == to && line.in_reply_to.is_none())
            .with_context(|| format!("there is no first comment {to} of a thread"))?;
        let reply = LineComment {
            id,
            path: first.path.clone(),
            start: first.start,
            line: first.line,
            body: body.to_owned(),
            in_reply_to: Some(to),
        };
        let review = Review {
            id: review_id,
            author: by.to_owned(),
            state: "commented".to_owned(),
            body: String::new(),
            sha: pull.head_sha.clone(),
            submitted: iso_now(),
            lines: vec![reply.clone()],
            made: Instant::now(),
        };
        pull.updated = iso_now();
        pull.reviews.push(review.clone());
        let pull = pull.clone();
        let payload = json!({
            "action": "submitted", "review": repo.review_json(&pull, &review, &self.url),
            "pull_request": repo.simple_pull_json(&pull, &self.url),
        });
        self.tell(repo, "pull_request_review", payload, by);
        Ok(reply)
    }

    pub(super) fn comment(&self, name: &str, number: u64, by: &str, body: &str) -> anyhow::Result<Comment> {
        let mut world = self.world();
        let id = world.fresh_id();
        let repo = world.repo(name)?;
        ensure!(repo.has_thread(number), "there is no {name}#{number}");
        let now = iso_now();
        let comment = Comment {
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
    /// A person replies in the thread that a comment on a line began. Sends `pull_request_review`.
    ///
    /// # Errors
    /// When there is no such pull request or thread.
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

    /// What our account replied to a comment on a line, oldest first.
    ///
    /// # Errors
    /// When there is no such repository or pull request.
    pub fn replies(&self, repository: &str, number: u64, comment: u64) -> anyhow::Result<Vec<String>> {
        let mut world = self.hub.world();
        let pull = world.repo(repository)?.pull(number)?;
        let lines = pull.reviews.iter().flat_map(|review| &review.lines);
        let replies = lines.filter(|line| line.in_reply_to == Some(comment));
        Ok(replies.map(|line| line.body.clone()).collect())
    }

    /// The first comments of the threads that are resolved.
    ///
    /// # Errors
    /// When there is no such repository or pull request.
    pub fn resolved(&self, repository: &str, number: u64) -> anyhow::Result<Vec<u64>> {
        let mut world = self.hub.world();
        let pull = world.repo(repository)?.pull(number)?;
        Ok(pull.resolved.iter().copied().collect())
    }

    /// The ids of the comments on lines that begin a thread, oldest first.
    ///
    /// # Errors
    /// When there is no such repository or pull request.
    pub fn threads(&self, repository: &str, number: u64) -> anyhow::Result<Vec<u64>> {
        let mut world = self.hub.world();
        let pull = world.repo(repository)?.pull(number)?;
        let lines = pull.reviews.iter().flat_map(|review| &review.lines);
        let first = lines.filter(|line| line.in_reply_to.is_none());
        Ok(first.map(|line| line.id).collect())
    }
}
