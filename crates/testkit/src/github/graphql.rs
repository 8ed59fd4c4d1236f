//! GraphQL endpoint: the queries and mutations of our client, which have no REST counterpart.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::Caller;
use super::hub::Hub;
use super::rest::{Handled, read};
use super::{blame, discussions, issues, projects};
use crate::http::answer;

// Mutations that merge now or later. Journeyman never merges, so each of them is a violation.
const MERGES: [&str; 4] = [
    "mergePullRequest",
    "enablePullRequestAutoMerge",
    "enqueuePullRequest",
    "mergeBranch",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Body {
    query: String,
    #[serde(default)]
    variables: Value,
    #[serde(default, rename = "operationName")]
    _operation_name: Option<String>,
}

pub(super) async fn handle(
    State(hub): State<Arc<Hub>>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Handled {
    let body: Body = read(&headers, &body)?;
    if let Some(merge) = MERGES.iter().find(|name| body.query.contains(**name)) {
        hub.log.violation(format!("a merge was tried: {merge}"));
        return Ok(failed("FORBIDDEN", "Only people merge"));
    }
    // Projects come first, because the project token may call nothing else.
    if let Some(answered) = projects::handle(&hub, &caller, &body.query, &body.variables) {
        return Ok(answered);
    }
    if caller.token.is_for_projects() {
        hub.log
            .violation("the token for projects asked for something else");
        return Ok(failed("INSUFFICIENT_SCOPES", "Resource not accessible"));
    }
    if body.query.contains("resolveReviewThread") {
        return Ok(resolve(&hub, &caller, &body.variables));
    }
    if body.query.contains("reviewThreads") {
        return Ok(threads(&hub, &caller, &body.variables));
    }
    if body.query.contains("blame(path:") {
        return Ok(blame::handle(&hub, &caller, &body.variables));
    }
    if body.query.contains("userContentEdits") {
        return Ok(issue(&hub, &caller, &body.variables));
    }
    if let Some(answered) = discussions::handle(&hub, &caller, &body.query, &body.variables) {
        return Ok(answered);
    }
    let (mutation, draft) = if body.query.contains("markPullRequestReadyForReview") {
        ("markPullRequestReadyForReview", false)
    } else if body.query.contains("convertPullRequestToDraft") {
        ("convertPullRequestToDraft", true)
    } else {
        hub.log
            .violation(format!("GraphQL that the stand-in does not know: {}", body.query));
        return Ok(failed("UNKNOWN", "the stand-in does not know this query"));
    };
    if !caller.writes {
        hub.log.violation(format!("the reader called {mutation}"));
        return Ok(failed("FORBIDDEN", "Resource not accessible by integration"));
    }
    // The node id may be in a variable or in the query's text.
    let given = format!("{} {}", body.variables, body.query);
    let Some((name, number)) = find(&hub, &given) else {
        return Ok(failed(
            "NOT_FOUND",
            "Could not resolve to a node with the global id given",
        ));
    };
    // The draft state requires both permissions.
    for needed in [("pull_requests", "write"), ("contents", "write")] {
        if caller.token.may(Some(&name), &[needed]).is_err() {
            return Ok(failed("FORBIDDEN", "Resource not accessible by integration"));
        }
    }
    match hub.set_draft(&name, number, draft, caller.login()) {
        Ok(pull) => {
            let pull =
                json!({"id": pull.node_id(), "number": pull.number, "isDraft": pull.draft, "state": "OPEN"});
            Ok(answer(
                StatusCode::OK,
                json!({"data": {mutation: {"pullRequest": pull}}}),
            ))
        }
        Err(error) => Ok(failed("UNPROCESSABLE", &error.to_string())),
    }
}

/// Answers with the review threads of a pull request.
fn threads(hub: &Hub, caller: &Caller, variables: &Value) -> Response {
    let text = |name: &str| variables[name].as_str().unwrap_or_default();
    let full_name = format!("{}/{}", text("owner"), text("name"));
    if caller
        .token
        .may(Some(&full_name), &[("pull_requests", "read")])
        .is_err()
    {
        return failed("FORBIDDEN", "Resource not accessible by integration");
    }
    let mut world = hub.world();
    let number = variables["number"].as_u64().unwrap_or_default();
    let Ok(pull) = world.repo(&full_name).and_then(|repo| repo.pull(number)) else {
        return failed("NOT_FOUND", "Could not resolve to a PullRequest");
    };
    let lines = pull.reviews.iter().flat_map(|review| &review.lines);
    let first = lines.filter(|line| line.in_reply_to.is_none());
    let nodes: Vec<Value> = first
        .map(|line| {
            json!({"id": format!("PRRT_{}", line.id), "isResolved": pull.resolved.contains(&line.id),
                "comments": {"nodes": [{"databaseId": line.id}]}})
        })
        .collect();
    let pull = json!({"reviewThreads": {"nodes": nodes}});
    answer(
        StatusCode::OK,
        json!({"data": {"repository": {"pullRequest": pull}}}),
    )
}

fn resolve(hub: &Hub, caller: &Caller, variables: &Value) -> Response {
    let id = variables["id"].as_str().unwrap_or_default();
    let first: Option<u64> = id.strip_prefix("PRRT_").and_then(|number| number.parse().ok());
    let mut world = hub.world();
    let has = |pull: &super::state::Pull| {
        let mut lines = pull.reviews.iter().flat_map(|review| &review.lines);
        lines.any(|line| Some(line.id) == first && line.in_reply_to.is_none())
    };
    let found = world.repos.values_mut().find_map(|repo| {
        let name = repo.name.clone();
        let pull = repo.pulls.values_mut().find(|pull| has(pull))?;
        Some((name, pull))
    });
    let Some(((name, pull), first)) = found.zip(first) else {
        return failed(
            "NOT_FOUND",
            "Could not resolve to a node with the global id given",
        );
    };
    if !caller.writes
        || caller
            .token
            .may(Some(&name), &[("pull_requests", "write")])
            .is_err()
    {
        return failed("FORBIDDEN", "Resource not accessible by integration");
    }
    pull.resolved.insert(first);
    let thread = json!({"id": id, "isResolved": true});
    answer(
        StatusCode::OK,
        json!({"data": {"resolveReviewThread": {"thread": thread}}}),
    )
}

/// Answers with an issue and its whole timeline.
fn issue(hub: &Hub, caller: &Caller, variables: &Value) -> Response {
    let (Some(owner), Some(name), Some(number)) = (
        variables["owner"].as_str(),
        variables["name"].as_str(),
        variables["number"].as_u64(),
    ) else {
        return failed(
            "INVALID",
            "Variable $number of type Int! was provided invalid value",
        );
    };
    let full_name = format!("{owner}/{name}");
    if caller.token.may(Some(&full_name), &[("issues", "read")]).is_err() {
        return failed("FORBIDDEN", "Resource not accessible by integration");
    }
    match issues::graphql(&mut hub.world(), &full_name, number, &hub.url) {
        Some(issue) => answer(StatusCode::OK, json!({"data": {"repository": {"issue": issue}}})),
        None => failed(
            "NOT_FOUND",
            &format!("Could not resolve to an Issue with the number of {number}."),
        ),
    }
}

/// Renders a GraphQL error. GitHub sends status 200 even for refused queries.
pub(super) fn failed(kind: &str, message: &str) -> Response {
    answer(
        StatusCode::OK,
        json!({"data": null, "errors": [{"type": kind, "message": message, "path": []}]}),
    )
}

/// Finds the pull request whose quoted node id the request contains.
fn find(hub: &Hub, given: &str) -> Option<(String, u64)> {
    let world = hub.world();
    let all = world
        .repos
        .values()
        .flat_map(|repo| repo.pulls.values().map(move |pull| (repo, pull)));
    let mut named = all.filter(|(_, pull)| given.contains(&format!("\"{}\"", pull.node_id())));
    named.next().map(|(repo, pull)| (repo.name.clone(), pull.number))
}
