//! Heads of the open pull requests of a repository, for GraphQL: mergeability, and the number of checks by state.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::auth::GitHubCaller;
use super::graphql::{find_readable_repository, refuse_unknown_repository, render_graphql_error};
use super::hub::GitHubState;
use super::rest::RestAnswer;
use super::state::{PullRecord, RepositoryRecord};
use crate::http::render_json_answer;

// GitHub's maximum number of entries per page. The query has to ask for it.
const PAGE: usize = 100;
/// Permissions for the pull requests, and for their check runs and statuses.
const NEEDED: [&str; 3] = ["pull_requests", "checks", "statuses"];

impl RepositoryRecord {
    fn head_graphql(&self, pull: &PullRecord) -> Value {
        let (mergeable, state) = self.mergeability(pull);
        let mergeable = match mergeable {
            Some(true) => "MERGEABLE",
            Some(false) => "CONFLICTING",
            None => "UNKNOWN",
        };
        let (mut runs, mut suites) = (BTreeMap::<String, u64>::new(), BTreeMap::<u64, Value>::new());
        for check in self.checks.iter().filter(|check| check.sha == pull.head_sha) {
            let (suite, state) = if self.is_under_way(check.suite, check.conclusion) {
                let state = "IN_PROGRESS";
                (json!({"status": state, "conclusion": null}), state.to_owned())
            } else {
                let conclusion = check.conclusion.as_str().to_uppercase();
                (
                    json!({"status": "COMPLETED", "conclusion": conclusion}),
                    conclusion,
                )
            };
            suites.insert(check.suite, suite);
            *runs.entry(state).or_default() += 1;
        }
        let counts: Vec<Value> = runs
            .iter()
            .map(|(state, count)| json!({"state": state, "count": count}))
            .collect();
        // GitHub has no rollup for a commit without checks.
        let rollup = (!counts.is_empty()).then(
            || json!({"contexts": {"checkRunCountsByState": counts, "statusContextCountsByState": []}}),
        );
        let suites: Vec<Value> = suites
            .into_values()
            .chain(self.held_suites_graphql(&pull.head_sha))
            .collect();
        let suites = json!({"totalCount": suites.len(), "nodes": suites});
        let commit = json!({"commit": {"statusCheckRollup": rollup, "checkSuites": suites}});
        json!({
            "number": pull.number, "headRefOid": pull.head_sha, "mergeable": mergeable,
            "isInMergeQueue": self.is_queued(&pull.head), "mergeStateStatus": state.to_uppercase(),
            "commits": {"nodes": [commit]},
        })
    }
}

/// Answers with a page of the open pull requests, the newest first.
pub(super) fn answer_heads_query(
    hub: &GitHubState,
    caller: &GitHubCaller,
    query: &str,
    variables: &Value,
) -> RestAnswer {
    if !query.contains("pullRequests(states: OPEN, first: 100, after: $after") {
        hub.log
            .violation(format!("a listing of heads without pages: {query}"));
    }
    let full_name = find_readable_repository(caller, variables, &NEEDED)?;
    // A cursor is the number of the last pull request before it.
    let before = match &variables["after"] {
        Value::Null => u64::MAX,
        cursor => match cursor.as_str().and_then(|cursor| cursor.parse().ok()) {
            Some(number) => number,
            None => {
                let refused = render_graphql_error("INVALID_CURSOR_ARGUMENTS", "not a valid cursor");
                return Err(refused);
            }
        },
    };
    let mut world = hub.world();
    let repo = world.repo(&full_name).map_err(|_| refuse_unknown_repository())?;
    let open: Vec<&PullRecord> = repo
        .pulls
        .values()
        .rev()
        .filter(|pull| pull.open && pull.number < before)
        .collect();
    let page = open.get(..PAGE).unwrap_or(&open);
    let nodes: Vec<Value> = page.iter().map(|pull| repo.head_graphql(pull)).collect();
    let cursor = page.last().map(|pull| pull.number.to_string());
    let pages = json!({"hasNextPage": open.len() > page.len(), "endCursor": cursor});
    let pulls = json!({"pageInfo": pages, "nodes": nodes});
    let body = json!({"data": {"repository": {"pullRequests": pulls}}});
    Ok(render_json_answer(StatusCode::OK, body))
}
