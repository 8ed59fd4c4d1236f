//! Reviews of pull requests: requests for review, the files under review, and submitted reviews.

use std::sync::Arc;

use anyhow::ensure;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::FakeGitHub;
use super::auth::{GitHubCaller, not_found, refuse_request};
use super::hub::GitHubState;
use super::hunks::{self, PatchFile, list_changed_files};
use super::rest::{JsonBody, ListPage, NumberPath, RestAnswer, render_validation_failure, with_repo};
use super::review_comments::OnLines;
use super::shape::{label_json, render_user};
use super::{history, repository};
use crate::http::{iso_now, render_json_answer};

// GitHub's maximum number of listed commits of a pull request.
const MAX_PULL_COMMITS: usize = 250;

impl GitHubState {
    /// Requests a review and sends `pull_request` review requested.
    pub(super) fn ask_reviewer(
        &self,
        name: &str,
        number: u64,
        login: &str,
        by: &str,
        days_ago: i64,
    ) -> anyhow::Result<()> {
        let at = time::OffsetDateTime::now_utc() - time::Duration::days(days_ago);
        let at = at.format(&time::format_description::well_known::Rfc3339)?;
        let mut world = self.world();
        let id = world.fresh_id();
        let repo = world.repo(name)?;
        let pull = repo.pull(number)?;
        ensure!(pull.author != login, "the author cannot review");
        pull.reviewers.retain(|known| known != login);
        pull.reviewers.push(login.to_owned());
        pull.updated = iso_now();
        let request = (id, by.to_owned(), login.to_owned(), at);
        pull.review_requests.push(request);
        let pull = pull.clone();
        let asked = json!({"requested_reviewer": render_user(login)});
        self.send_pull_event_with(repo, &pull, "review_requested", asked, by);
        Ok(())
    }

    /// Removes a review request and sends `pull_request` review request removed.
    fn take_back(&self, name: &str, number: u64, login: &str, by: &str) -> anyhow::Result<()> {
        let mut world = self.world();
        let repo = world.repo(name)?;
        let pull = repo.pull(number)?;
        ensure!(
            pull.reviewers.iter().any(|known| known == login),
            "nobody asked for that review"
        );
        pull.reviewers.retain(|known| known != login);
        pull.updated = iso_now();
        let pull = pull.clone();
        let asked = json!({"requested_reviewer": render_user(login)});
        self.send_pull_event_with(repo, &pull, "review_request_removed", asked, by);
        Ok(())
    }
}

pub(super) async fn list_pull_files(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        let files = list_changed_files(repo, pull);
        let items = files.iter().map(|file| file.json(repo, &pull.head_sha, &hub.url));
        Ok(page.answer(items.collect()))
    })
}

/// Lists the commits of a pull request, oldest first, 250 of them at most.
pub(super) async fn list_pull_commits(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        // The commits of the base are not listed, those that an update brought into the head included.
        let tip = repository::list_branches(&repo.path).remove(&pull.base);
        let base = tip.filter(|_| pull.open).unwrap_or_else(|| pull.base_sha.clone());
        let commits = history::list_commits_beyond(&repo.path, Some(&base), &pull.head_sha, MAX_PULL_COMMITS);
        let commits = commits.unwrap_or_default();
        let items = commits.iter().map(|commit| repo.commit_json(commit, &hub.url));
        Ok(page.answer(items.collect()))
    })
}

/// Lists the review requests among a pull request's events.
pub(super) async fn list_review_events(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        let items = pull.review_requests.iter().map(|(id, by, login, at)| {
            json!({
                "id": id, "node_id": format!("RRE_{id}"), "url": format!("{}/issues/events/{id}", repo.api_url(&hub.url)),
                "actor": render_user(by), "event": "review_requested", "commit_id": null, "commit_url": null, "created_at": at,
                "performed_via_github_app": null, "review_requester": render_user(by), "requested_reviewer": render_user(login),
            })
        });
        Ok(page.answer(items.collect()))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewBody {
    commit_id: Option<String>,
    #[serde(default)]
    body: String,
    event: Option<String>,
    #[serde(default)]
    comments: Vec<ReviewCommentBody>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReviewCommentBody {
    path: String,
    line: u64,
    side: Option<String>,
    /// First line of a comment on several lines.
    start_line: Option<u64>,
    start_side: Option<String>,
    body: String,
}

pub(super) async fn submit_review(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(wanted): JsonBody<ReviewBody>,
) -> RestAnswer {
    let state = match wanted.event.as_deref() {
        Some("COMMENT") => "commented",
        Some("REQUEST_CHANGES") => "changes_requested",
        Some("APPROVE") => {
            // Journeyman never approves. Approvals come from users.
            hub.log
                .violation(format!("{} approved {owner}/{name}#{number}", caller.login()));
            return Err(refuse_request(StatusCode::FORBIDDEN, "Only people approve"));
        }
        _ => {
            return Err(render_validation_failure(
                &json!([{"resource": "PullRequestReview", "code": "invalid", "field": "event"}]),
            ));
        }
    };
    // GitHub requires a body for both remaining events.
    if wanted.body.trim().is_empty() {
        return Err(render_validation_failure(
            &json!([{"resource": "PullRequestReview", "code": "missing_field", "field": "body"}]),
        ));
    }
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        repo.check_review_lock(number, &caller)?;
        let files = list_changed_files(repo, pull);
        validate_review(&wanted, &files)
    })?;
    let lines: Vec<OnLines<'_>> = wanted.comments.iter().map(ReviewCommentBody::on_lines).collect();
    let full_name = format!("{owner}/{name}");
    let said = (state, wanted.body.as_str());
    let review = hub
        .review(&full_name, number, caller.login(), said, &lines)
        .map_err(|error| refuse_request(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()))?;
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        let mut json: Value = repo.review_json(pull, &review, &hub.url);
        json["state"] = json!(review.state.to_ascii_uppercase());
        Ok(render_json_answer(StatusCode::OK, json))
    })
}

impl ReviewCommentBody {
    fn on_lines(&self) -> OnLines<'_> {
        OnLines {
            path: &self.path,
            start: self.start_line,
            line: self.line,
            body: &self.body,
        }
    }
}

/// Validates a review: full commit ids, and comments on lines that one hunk of the diff shows.
fn validate_review(review: &ReviewBody, files: &[PatchFile]) -> Result<(), axum::response::Response> {
    let is_commit = |sha: &String| sha.len() == 40;
    let is_right = |side: &Option<String>| side.as_deref().is_none_or(|side| side == "RIGHT");
    let is_shown = |comment: &ReviewCommentBody| {
        let file = files.iter().find(|file| file.path == comment.path);
        let first = comment.start_line.unwrap_or(comment.line);
        // GitHub refuses a one-line comment that has a `start_line`.
        let is_range = comment.start_line.is_none_or(|start| start < comment.line);
        is_range
            && is_right(&comment.side)
            && is_right(&comment.start_side)
            && !comment.body.is_empty()
            && file.is_some_and(|file| hunks::has_visible_lines(&file.patch, first, comment.line))
    };
    if !review.commit_id.iter().all(is_commit) || !review.comments.iter().all(is_shown) {
        return Err(refuse_request(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Unprocessable Entity: Pull request review thread line must be part of the diff",
        ));
    }
    Ok(())
}

impl FakeGitHub {
    /// Reopens a closed pull request as a user. Sends `pull_request` reopened.
    ///
    /// # Errors
    /// When the pull request does not exist, is open or merged, its branch is gone, or another one is open for
    /// that branch.
    pub fn reopen(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        let pull = repo.pull(number)?.clone();
        ensure!(!pull.open, "it is open");
        repo.check_reopening(&pull)
            .map_err(|errors| anyhow::anyhow!("it cannot be reopened: {errors}"))?;
        let pull = repo.pull(number)?;
        (pull.open, pull.closed, pull.updated) = (true, None, iso_now());
        let pull = pull.clone();
        self.hub.send_pull_event(repo, &pull, "reopened", by);
        Ok(())
    }

    /// Replaces the labels of a pull request as a user. Sends `pull_request` labeled for the first new one.
    ///
    /// # Errors
    /// When the pull request does not exist.
    pub fn set_pull_request_labels(
        &self,
        repository: &str,
        number: u64,
        labels: &[&str],
        by: &str,
    ) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        let pull = repo.pull(number)?;
        let new = labels
            .iter()
            .find(|label| !pull.labels.iter().any(|known| known == *label));
        let new = new.map(|label| (*label).to_owned());
        pull.labels = labels.iter().map(|label| (*label).to_owned()).collect();
        pull.updated = iso_now();
        let pull = pull.clone();
        if let Some(label) = new {
            let labeled = json!({"label": label_json(repo, &label, &self.hub.url)});
            self.hub.send_pull_event_with(repo, &pull, "labeled", labeled, by);
        }
        Ok(())
    }

    /// Requests a review as a user. Sends `pull_request` review requested.
    ///
    /// # Errors
    /// When the pull request does not exist, or `reviewer` is its author.
    pub fn ask_for_review(
        &self,
        repository: &str,
        number: u64,
        reviewer: &str,
        by: &str,
    ) -> anyhow::Result<()> {
        self.hub.ask_reviewer(repository, number, reviewer, by, 0)
    }

    /// Removes a review request as a user. Sends `pull_request` `review_request_removed`.
    ///
    /// # Errors
    /// When the pull request does not exist, or the review was not requested.
    pub fn take_back_request(
        &self,
        repository: &str,
        number: u64,
        reviewer: &str,
        by: &str,
    ) -> anyhow::Result<()> {
        self.hub.take_back(repository, number, reviewer, by)
    }

    /// Requests a review with a date in the past, `days` ago. Sends `pull_request` review requested.
    ///
    /// # Errors
    /// When the pull request does not exist, or `reviewer` is its author.
    pub fn ask_for_review_days_ago(
        &self,
        repository: &str,
        number: u64,
        reviewer: &str,
        by: &str,
        days: i64,
    ) -> anyhow::Result<()> {
        self.hub.ask_reviewer(repository, number, reviewer, by, days)
    }

    /// Reviews of a pull request, oldest first.
    ///
    /// # Errors
    /// When the pull request does not exist.
    pub fn reviews(&self, repository: &str, number: u64) -> anyhow::Result<Vec<super::StandInReview>> {
        let mut world = self.hub.world();
        let pull = world.repo(repository)?.pull(number)?;
        let reviews = pull.reviews.iter().map(|review| super::StandInReview {
            author: review.author.clone(),
            state: review.state.clone(),
            body: review.body.clone(),
            comments: review
                .lines
                .iter()
                .map(|line| (line.path.clone(), line.line, line.body.clone()))
                .collect(),
        });
        Ok(reviews.collect())
    }
}
