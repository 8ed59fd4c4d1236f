//! REST routes of pull requests: GitHub's filters, pages and validations.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{GitHubCaller, not_found, refuse_request};
use super::hub::{GitHubState, NO_DRAFTS, NewPull};
use super::pull_edits::{PullUpdateBody, render_custom_error, render_field_error};
use super::repository;
use super::rest::{
    JsonBody, ListPage, NumberPath, RepoPath, RestAnswer, find_invalid_parameter, render_validation_failure,
    with_repo,
};
use super::state::{PullRecord, RepositoryRecord};
use crate::http::render_json_answer;

#[derive(Deserialize)]
pub(super) struct PullsQuery {
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    head: Option<String>,
    #[serde(default)]
    base: Option<String>,
    #[serde(default)]
    sort: Option<String>,
    #[serde(default)]
    direction: Option<String>,
}

impl PullsQuery {
    /// Returns the name of the first parameter with a value that GitHub refuses.
    fn find_invalid(&self) -> Option<&'static str> {
        find_invalid_parameter(&[
            ("state", &self.state, &["open", "closed", "all"]),
            // The stand-in does not implement `long-running`, which no client uses.
            ("sort", &self.sort, &["created", "updated", "popularity"]),
            ("direction", &self.direction, &["asc", "desc"]),
        ])
    }

    fn wants(&self, repo: &RepositoryRecord, pull: &PullRecord) -> bool {
        let state = match self.state.as_deref().unwrap_or("open") {
            "all" => true,
            "closed" => !pull.open,
            _ => pull.open,
        };
        // GitHub ignores a `head` without its owner, so a caller that forgets the owner gets every pull
        // request.
        let head = self.head.as_ref().filter(|head| head.contains(':'));
        state
            && head.is_none_or(|head| *head == format!("{}:{}", repo.owner(), pull.head))
            && self.base.as_ref().is_none_or(|base| *base == pull.base)
    }

    fn order<'pulls>(
        &self,
        repo: &RepositoryRecord,
        mut pulls: Vec<&'pulls PullRecord>,
    ) -> Vec<&'pulls PullRecord> {
        pulls.sort_by_key(|pull| pull.number);
        let by_default = match self.sort.as_deref() {
            Some("updated") => {
                pulls.sort_by(|left, right| left.updated.cmp(&right.updated));
                "asc"
            }
            Some("popularity") => {
                pulls.sort_by_key(|pull| repo.count_comments(pull.number));
                "asc"
            }
            // Only this order begins with the newest by default.
            _ => "desc",
        };
        if self.direction.as_deref().unwrap_or(by_default) == "desc" {
            pulls.reverse();
        }
        pulls
    }
}

pub(super) async fn list_pull_requests(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    Query(query): Query<PullsQuery>,
    page: ListPage,
) -> RestAnswer {
    if let Some(name) = query.find_invalid() {
        return Err(render_validation_failure(&render_field_error(name, "invalid")));
    }
    with_repo(&hub, &owner, &name, |repo| {
        let wanted = repo
            .pulls
            .values()
            .filter(|pull| hub.log.lists(pull.made) && query.wants(repo, pull))
            .collect();
        let items = query
            .order(repo, wanted)
            .into_iter()
            .map(|pull| repo.simple_pull_json(pull, &hub.url))
            .collect();
        Ok(page.answer(items))
    })
}

pub(super) async fn get_pull_request(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        Ok(render_json_answer(StatusCode::OK, repo.pull_json(pull, &hub.url)))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateBody {
    title: String,
    head: String,
    base: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    draft: bool,
    #[serde(default, rename = "maintainer_can_modify")]
    _maintainer_can_modify: Option<bool>,
}

pub(super) async fn create_pull_request(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name)): RepoPath,
    JsonBody(new): JsonBody<CreateBody>,
) -> RestAnswer {
    let full_name = format!("{owner}/{name}");
    let mut world = hub.world();
    let repo = world.repo(&full_name).map_err(|_| not_found())?;
    // `head` may have the owner's prefix. The stand-in has no forks.
    let head = new
        .head
        .strip_prefix(&format!("{owner}:"))
        .unwrap_or(&new.head)
        .to_owned();
    check_new(repo, &new, &head).map_err(|errors| render_validation_failure(&errors))?;
    let new = NewPull {
        author: caller.login().to_owned(),
        title: new.title,
        body: new.body.unwrap_or_default(),
        head,
        base: new.base,
        draft: new.draft,
    };
    let pull = hub
        .open_pull(&mut world, &full_name, new)
        .map_err(|error| render_validation_failure(&render_custom_error(&error.to_string())))?;
    let repo = world.repo(&full_name).map_err(|_| not_found())?;
    Ok(render_json_answer(
        StatusCode::CREATED,
        repo.pull_json(&pull, &hub.url),
    ))
}

fn check_new(repo: &RepositoryRecord, new: &CreateBody, head: &str) -> Result<(), Value> {
    let branches = repository::list_branches(&repo.path);
    if new.draft && !repo.has_drafts {
        return Err(render_custom_error(NO_DRAFTS));
    }
    if new.title.trim().is_empty() {
        return Err(render_field_error("title", "missing_field"));
    }
    let base_sha = branches
        .get(&new.base)
        .ok_or_else(|| render_field_error("base", "invalid"))?;
    let head_sha = branches
        .get(head)
        .ok_or_else(|| render_field_error("head", "invalid"))?;
    if repo
        .pulls
        .values()
        .any(|pull| pull.open && pull.head == head && pull.base == new.base)
    {
        return Err(render_custom_error(&format!(
            "A pull request already exists for {}:{head}.",
            repo.owner()
        )));
    }
    // GitHub refuses a pull request without commits of its head beyond the base.
    match repository::count_commits_ahead(&repo.path, base_sha, head_sha) {
        Ok(0) | Err(_) => Err(render_custom_error(&format!(
            "No commits between {} and {head}",
            new.base
        ))),
        Ok(_) => Ok(()),
    }
}

pub(super) async fn update_pull_request(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(change): JsonBody<PullUpdateBody>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        repo.pull(number).map_err(|_| not_found())?;
        let event = repo
            .edit_pull(number, change)
            .map_err(|errors| render_validation_failure(&errors))?;
        let pull = repo.pull(number).map_err(|_| not_found())?.clone();
        if let Some(event) = event {
            hub.send_pull_event_with(repo, &pull, event.action, event.more, caller.login());
        }
        Ok(render_json_answer(
            StatusCode::OK,
            repo.pull_json(&pull, &hub.url),
        ))
    })
}

/// Adds the missing entries and returns them.
pub(super) fn add_missing_names(known: &mut Vec<String>, wanted: Vec<String>) -> Vec<String> {
    let is_new = |name: &String| !known.contains(name);
    let new: Vec<String> = wanted.into_iter().filter(is_new).collect();
    known.extend(new.iter().cloned());
    new
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewersBody {
    #[serde(default)]
    reviewers: Vec<String>,
    #[serde(default, rename = "team_reviewers")]
    _team_reviewers: Vec<String>,
}

pub(super) async fn request_reviewers(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    JsonBody(wanted): JsonBody<ReviewersBody>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pull(number).map_err(|_| not_found())?;
        // GitHub refuses a review request to the author.
        if wanted.reviewers.contains(&pull.author) {
            hub.log.violation(format!(
                "the author of {owner}/{name}#{number} was asked for a review"
            ));
            let message = "Review cannot be requested from pull request author.";
            return Err(refuse_request(StatusCode::UNPROCESSABLE_ENTITY, message));
        }
        let new = wanted
            .reviewers
            .iter()
            .filter(|login| !pull.reviewers.contains(login));
        Ok(new.cloned().collect::<Vec<String>>())
    })
    .and_then(|new| {
        // Outside `with_repo`, because `ask_reviewer` takes the lock.
        for login in new {
            let asked = hub.ask_reviewer(&format!("{owner}/{name}"), number, &login, caller.login(), 0);
            asked.map_err(|_| not_found())?;
        }
        with_repo(&hub, &owner, &name, |repo| {
            let pull = repo.pull(number).map_err(|_| not_found())?.clone();
            Ok(render_json_answer(
                StatusCode::CREATED,
                repo.simple_pull_json(&pull, &hub.url),
            ))
        })
    })
}

pub(super) async fn list_reviews(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        let reviews = pull.reviews.iter().filter(|review| hub.log.lists(review.made));
        let items = reviews.map(|review| {
            let mut value = repo.review_json(pull, review, &hub.url);
            // REST writes the state in capitals, webhooks in lowercase.
            value["state"] = json!(review.state.to_ascii_uppercase());
            value
        });
        Ok(page.answer(items.collect()))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplyBody {
    body: String,
}

pub(super) async fn reply_to_comment(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name, number, comment)): Path<(String, String, u64, u64)>,
    JsonBody(reply): JsonBody<ReplyBody>,
) -> RestAnswer {
    if reply.body.trim().is_empty() || reply.body.chars().count() > 65_536 {
        return Err(render_validation_failure(&render_field_error("body", "invalid")));
    }
    let full = format!("{owner}/{name}");
    with_repo(&hub, &owner, &name, |repo| {
        repo.check_lock(number, &caller, "create comment")
    })?;
    let made = hub
        .reply(&full, number, comment, caller.login(), &reply.body)
        .map_err(|_| not_found())?;
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        let mut all = pull
            .reviews
            .iter()
            .flat_map(|review| repo.line_comments_json(pull, review, &hub.url));
        let json = all.find(|json| json["id"] == made.id).ok_or_else(not_found)?;
        Ok(render_json_answer(StatusCode::CREATED, json))
    })
}

/// Lists the comments on lines of all reviews.
pub(super) async fn line_comments(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, number)): NumberPath,
    page: ListPage,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        let of_review = |review| repo.line_comments_json(pull, review, &hub.url);
        let reviews = pull.reviews.iter().filter(|review| hub.log.lists(review.made));
        let items = reviews.flat_map(of_review);
        Ok(page.answer(items.collect()))
    })
}
