//! GraphQL endpoint: the queries and mutations of our client, which have no REST counterpart.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::GitHubCaller;
use super::hub::GitHubState;
use super::rest::{JsonBody, RestAnswer};
use super::review_comments::ThreadPage;
use super::state::{PullRecord, RepositoryRecord};
use super::{attachments, blame, discussions, issues, open_heads, projects};
use crate::http::render_json_answer;

// Mutations that merge now or later. Journeyman never merges, so each of them is a violation.
const MERGES: [&str; 4] = [
    "mergePullRequest",
    "enablePullRequestAutoMerge",
    "enqueuePullRequest",
    "mergeBranch",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct GraphqlBody {
    query: String,
    #[serde(default)]
    variables: Value,
    #[serde(default, rename = "operationName")]
    _operation_name: Option<String>,
}

pub(super) async fn answer_graphql(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    JsonBody(body): JsonBody<GraphqlBody>,
) -> RestAnswer {
    if let Some(merge) = MERGES.iter().find(|name| body.query.contains(**name)) {
        hub.log.violation(format!("a merge was tried: {merge}"));
        return Ok(render_graphql_error("FORBIDDEN", "Only people merge"));
    }
    // Projects come first, because the project token may call nothing else.
    if let Some(answered) = projects::answer_project_query(&hub, &caller, &body.query, &body.variables) {
        return Ok(answered);
    }
    if caller.token.is_for_projects() {
        hub.log
            .violation("the token for projects asked for something else");
        return Ok(render_graphql_error(
            "INSUFFICIENT_SCOPES",
            "Resource not accessible",
        ));
    }
    if body.query.contains("viewer") {
        let viewer = json!({"data": {"viewer": {"login": caller.login()}}});
        return Ok(render_json_answer(StatusCode::OK, viewer));
    }
    if body.query.contains("statusCheckRollup") {
        return open_heads::answer_heads_query(&hub, &caller, &body.query, &body.variables);
    }
    if body.query.contains("refUpdateRule") {
        return answer_branch_rule_query(&hub, &caller, &body.variables);
    }
    if body.query.contains("resolveReviewThread") {
        return Ok(resolve_review_thread(&hub, &caller, &body.variables));
    }
    if body.query.contains("mergeQueueEntry") {
        let threads = ThreadPage::read(&body.query, &body.variables)?;
        let render = |repo: &RepositoryRecord, pull: &PullRecord| repo.queue_graphql(pull, &threads);
        return answer_pull_query(&hub, &caller, &body.variables, render);
    }
    if body.query.contains("reviewThreads") {
        let threads = ThreadPage::read(&body.query, &body.variables)?;
        let render = |_: &RepositoryRecord, pull: &PullRecord| render_review_threads(pull, &threads);
        return answer_pull_query(&hub, &caller, &body.variables, render);
    }
    if body.query.contains("blame(path:") {
        return blame::answer_blame_query(&hub, &caller, &body.variables);
    }
    if body.query.contains("bodyHTML") {
        return attachments::answer_rendered_query(&hub, &caller, &body.variables);
    }
    if body.query.contains("userContentEdits") {
        return Ok(answer_issue_query(&hub, &caller, &body.variables));
    }
    if let Some(answered) = discussions::answer_discussion_query(&hub, &caller, &body.query, &body.variables)
    {
        return Ok(answered);
    }
    if body.query.contains("updatePullRequestBranch") {
        return Ok(update_pull_request_branch(&hub, &caller, &body.variables));
    }
    let (mutation, draft) = if body.query.contains("markPullRequestReadyForReview") {
        ("markPullRequestReadyForReview", false)
    } else if body.query.contains("convertPullRequestToDraft") {
        ("convertPullRequestToDraft", true)
    } else {
        hub.log
            .violation(format!("GraphQL that the stand-in does not know: {}", body.query));
        return Ok(render_graphql_error(
            "UNKNOWN",
            "the stand-in does not know this query",
        ));
    };
    if !caller.writes {
        hub.log.violation(format!("the reader called {mutation}"));
        return Ok(refuse_access());
    }
    // The node id may be in a variable or in the query's text.
    let given = format!("{} {}", body.variables, body.query);
    let Some((name, number)) = find_pull_request(&hub, &given) else {
        return Ok(refuse_unknown_node());
    };
    // The draft state requires both permissions.
    for needed in [("pull_requests", "write"), ("contents", "write")] {
        if caller.token.may(Some(&name), &[needed]).is_err() {
            return Ok(refuse_access());
        }
    }
    match hub.set_draft(&name, number, draft, caller.login()) {
        Ok(pull) => {
            let pull =
                json!({"id": pull.node_id(), "number": pull.number, "isDraft": pull.draft, "state": "OPEN"});
            Ok(render_json_answer(
                StatusCode::OK,
                json!({"data": {mutation: {"pullRequest": pull}}}),
            ))
        }
        Err(error) => Ok(render_graphql_error("UNPROCESSABLE", &error.to_string())),
    }
}

/// Brings the head branch of a pull request up to date with its base.
fn update_pull_request_branch(hub: &GitHubState, caller: &GitHubCaller, variables: &Value) -> Response {
    let Some((name, number)) = find_pull_request(hub, &variables.to_string()) else {
        return refuse_unknown_node();
    };
    let needed = [("pull_requests", "write"), ("contents", "write")];
    let may = |needed: &(&str, &str)| caller.token.may(Some(&name), &[*needed]).is_ok();
    if !caller.writes || !needed.iter().all(may) {
        return refuse_access();
    }
    let is_rebase = match variables["method"].as_str() {
        Some("REBASE") => true,
        Some("MERGE") => false,
        _ => return render_graphql_error("INVALID", "Variable $method was provided invalid value"),
    };
    let expected = variables["head"].as_str();
    match hub.update_branch(&name, number, expected, is_rebase, caller.login()) {
        Ok(head) => {
            let pull = json!({"number": number, "headRefOid": head});
            render_json_answer(
                StatusCode::OK,
                json!({"data": {"updatePullRequestBranch": {"pullRequest": pull}}}),
            )
        }
        Err(error) => render_graphql_error("UNPROCESSABLE", &error.to_string()),
    }
}

/// Answers with what `render` makes of a pull request.
fn answer_pull_query(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
    render: impl FnOnce(&RepositoryRecord, &PullRecord) -> Value,
) -> RestAnswer {
    let full_name = find_readable_repository(caller, variables, &["pull_requests"])?;
    let mut world = hub.world();
    let number = variables["number"].as_u64().unwrap_or_default();
    let repo = world.repo(&full_name).ok();
    let found = repo.and_then(|repo| Some(render(repo, repo.pulls.get(&number)?)));
    let pull =
        found.ok_or_else(|| render_graphql_error("NOT_FOUND", "Could not resolve to a PullRequest"))?;
    let body = json!({"data": {"repository": {"pullRequest": pull}}});
    Ok(render_json_answer(StatusCode::OK, body))
}

fn render_review_threads(pull: &PullRecord, threads: &ThreadPage) -> Value {
    let threads = threads.render(pull, |first, is_resolved| {
        json!({"id": format!("PRRT_{}", first.id), "isResolved": is_resolved,
            "comments": {"nodes": [{"databaseId": first.id}]}})
    });
    json!({"reviewThreads": threads})
}

fn resolve_review_thread(hub: &GitHubState, caller: &GitHubCaller, variables: &Value) -> Response {
    let id = variables["id"].as_str().unwrap_or_default();
    let first: Option<u64> = id.strip_prefix("PRRT_").and_then(|number| number.parse().ok());
    let mut world = hub.world();
    let has = |pull: &PullRecord| {
        let mut lines = pull.reviews.iter().flat_map(|review| &review.lines);
        lines.any(|line| Some(line.id) == first && line.in_reply_to.is_none())
    };
    let found = world.repos.values_mut().find_map(|repo| {
        let name = repo.name.clone();
        let pull = repo.pulls.values_mut().find(|pull| has(pull))?;
        Some((name, pull))
    });
    let Some(((name, pull), first)) = found.zip(first) else {
        return refuse_unknown_node();
    };
    if !caller.writes
        || caller
            .token
            .may(Some(&name), &[("pull_requests", "write")])
            .is_err()
    {
        return refuse_access();
    }
    pull.resolved.insert(first);
    let thread = json!({"id": id, "isResolved": true});
    render_json_answer(
        StatusCode::OK,
        json!({"data": {"resolveReviewThread": {"thread": thread}}}),
    )
}

/// Answers with an issue and its whole timeline.
fn answer_issue_query(hub: &GitHubState, caller: &GitHubCaller, variables: &Value) -> Response {
    let (Some(owner), Some(name), Some(number)) = (
        variables["owner"].as_str(),
        variables["name"].as_str(),
        variables["number"].as_u64(),
    ) else {
        return render_graphql_error(
            "INVALID",
            "Variable $number of type Int! was provided invalid value",
        );
    };
    let full_name = format!("{owner}/{name}");
    if caller.token.may(Some(&full_name), &[("issues", "read")]).is_err() {
        return refuse_access();
    }
    match issues::render_issue_graphql(&mut hub.world(), &full_name, number, &hub.url) {
        Some(issue) => render_json_answer(StatusCode::OK, json!({"data": {"repository": {"issue": issue}}})),
        None => render_graphql_error(
            "NOT_FOUND",
            &format!("Could not resolve to an Issue with the number of {number}."),
        ),
    }
}

/// Answers with the part of a branch's classic protection that is visible without administration.
fn answer_branch_rule_query(hub: &GitHubState, caller: &GitHubCaller, variables: &Value) -> RestAnswer {
    let full_name = find_readable_repository(caller, variables, &["contents"])?;
    let mut world = hub.world();
    let repo = world.repo(&full_name).map_err(|_| refuse_unknown_repository())?;
    let branch = variables["branch"].as_str().unwrap_or_default();
    let branch = branch.trim_start_matches("refs/heads/");
    let is_there = super::repository::list_branches(&repo.path).contains_key(branch);
    let is_protected = repo.signed_branches.contains(branch) || repo.required_checks.contains_key(branch);
    let required = repo.required_checks.get(branch).cloned().unwrap_or_default();
    let rule = is_protected.then(|| {
        json!({
            "requiresSignatures": repo.signed_branches.contains(branch), "requiresLinearHistory": false,
            "requiresConversationResolution": false, "requiresCodeOwnerReviews": false,
            "requiredApprovingReviewCount": 0, "requiredStatusCheckContexts": required,
        })
    });
    let found = is_there.then(|| json!({"refUpdateRule": rule}));
    let body = json!({"data": {"repository": {"ref": found}}});
    Ok(render_json_answer(StatusCode::OK, body))
}

/// Returns the full name of the repository that a query names, if the caller has all of these permissions to read
/// there.
pub(super) fn find_readable_repository(
    caller: &GitHubCaller,
    variables: &Value,
    permissions: &[&str],
) -> Result<String, Response> {
    let text = |name: &str| variables[name].as_str().unwrap_or_default();
    let full_name = format!("{}/{}", text("owner"), text("name"));
    for permission in permissions {
        let allowed = caller.token.may(Some(&full_name), &[(*permission, "read")]);
        allowed.map_err(|_| refuse_access())?;
    }
    Ok(full_name)
}

pub(super) fn refuse_access() -> Response {
    render_graphql_error("FORBIDDEN", "Resource not accessible by integration")
}

pub(super) fn refuse_unknown_repository() -> Response {
    render_graphql_error("NOT_FOUND", "Could not resolve to a Repository")
}

fn refuse_unknown_node() -> Response {
    let message = "Could not resolve to a node with the global id given";
    render_graphql_error("NOT_FOUND", message)
}

/// Renders a GraphQL error. GitHub sends status 200 even for refused queries.
pub(super) fn render_graphql_error(kind: &str, message: &str) -> Response {
    render_json_answer(
        StatusCode::OK,
        json!({"data": null, "errors": [{"type": kind, "message": message, "path": []}]}),
    )
}

/// Finds the pull request whose quoted node id the request contains.
fn find_pull_request(hub: &GitHubState, given: &str) -> Option<(String, u64)> {
    let world = hub.world();
    let all = world
        .repos
        .values()
        .flat_map(|repo| repo.pulls.values().map(move |pull| (repo, pull)));
    let mut named = all.filter(|(_, pull)| given.contains(&format!("\"{}\"", pull.node_id())));
    named.next().map(|(repo, pull)| (repo.name.clone(), pull.number))
}
