//! Search routes, which the poller pages through.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::JiraState;
use super::extractors::{JiraCaller, JsonBody};
use super::jql::{self, OrderField};
use super::rest::{JiraAnswer, default_page, issue_json, render_bad_request};
use super::state::{PRIORITIES, TicketRecord, jira_time};
use crate::http::render_json_answer;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CloudBody {
    jql: String,
    #[serde(default)]
    fields: Vec<String>,
    #[serde(default = "default_page")]
    max_results: usize,
    #[serde(default)]
    next_page_token: Option<String>,
    #[serde(default, rename = "fieldsByKeys")]
    _fields_by_keys: bool,
    #[serde(default, rename = "expand")]
    _expand: Option<String>,
    #[serde(default, rename = "properties")]
    _properties: Option<Vec<String>>,
    #[serde(default, rename = "reconcileIssues")]
    _reconcile_issues: Option<Vec<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct DataCenterBody {
    jql: String,
    #[serde(default)]
    start_at: usize,
    #[serde(default = "default_page")]
    max_results: usize,
    #[serde(default)]
    fields: Vec<String>,
}

pub(super) async fn search_issues(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    JsonBody(search): JsonBody<CloudBody>,
) -> JiraAnswer {
    // The stand-in's page token is the offset of the next page.
    let start = match search.next_page_token.as_deref() {
        None => 0,
        Some(token) => token
            .parse::<usize>()
            .map_err(|_| render_bad_request("The nextPageToken is invalid"))?,
    };
    let limit = search.max_results.clamp(1, 100);
    let found = find_issues(&desk, &search.jql, start, limit)?;
    let page = render_page(&desk, &found.page, &search.fields);
    let is_last = start + page.len() >= found.total;
    let mut body = json!({"issues": page, "isLast": is_last});
    if !is_last {
        body["nextPageToken"] = json!((start + limit).to_string());
    }
    Ok(render_json_answer(StatusCode::OK, body))
}

pub(super) async fn search_from_start(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    JsonBody(search): JsonBody<DataCenterBody>,
) -> JiraAnswer {
    // A Data Center has up to 1,000 issues per page, the Cloud up to 100.
    let limit = search.max_results.clamp(1, 1000);
    let found = find_issues(&desk, &search.jql, search.start_at, limit)?;
    let page = render_page(&desk, &found.page, &search.fields);
    let body = json!({
        "expand": "schema,names", "startAt": search.start_at, "maxResults": limit, "total": found.total, "issues": page,
    });
    Ok(render_json_answer(StatusCode::OK, body))
}

fn render_page(desk: &JiraState, page: &[TicketRecord], fields: &[String]) -> Vec<Value> {
    let hits = page.iter().map(|issue| {
        if fields.is_empty() {
            json!({"id": issue.id.to_string()})
        } else {
            issue_json(desk, issue, fields)
        }
    });
    hits.collect()
}

/// One page of the hits of a query.
struct SearchPage {
    page: Vec<TicketRecord>,
    /// Hits on all pages.
    total: usize,
}

/// Returns up to `limit` hits in the order of the query, from the position `start`.
///
/// Copies only that page: a poller's query matches each ticket of a large test.
fn find_issues(desk: &JiraState, wanted: &str, start: usize, limit: usize) -> Result<SearchPage, Response> {
    let query = jql::parse_query(wanted).map_err(|problem| {
        desk.log.violation(format!("JQL {wanted:?}: {problem}"));
        render_bad_request(format!("Error in the JQL Query: {problem}"))
    })?;
    // Jira refuses a query with an unknown key.
    let unseen = query.keys.iter().find(|key| desk.issue(key).is_none());
    if let Some(key) = unseen {
        return Err(render_bad_request(format!(
            "An issue with key '{key}' does not exist for field 'key'."
        )));
    }
    if let Some(problem) = find_unknown_value(desk, &query) {
        return Err(render_bad_request(problem));
    }
    let issues = desk.issues.lock();
    let mut found: Vec<&TicketRecord> = issues
        .iter()
        .filter(|issue| matches_query(desk, &query, issue))
        .collect();
    // Jira documents no order of equal hits. The id decides here, in the direction of the first term.
    if query.order.first().is_some_and(|first| first.is_ascending) {
        found.sort_by_key(|issue| issue.id);
    } else {
        found.sort_by_key(|issue| Reverse(issue.id));
    }
    for order in query.order.iter().rev() {
        found.sort_by(|left, right| {
            let compared = compare_by_field(order.field, left, right);
            if order.is_ascending {
                compared
            } else {
                compared.reverse()
            }
        });
    }
    Ok(SearchPage {
        page: found.iter().skip(start).take(limit).copied().cloned().collect(),
        total: found.len(),
    })
}

/// Compares two tickets by a field, in ascending order.
fn compare_by_field(field: OrderField, left: &TicketRecord, right: &TicketRecord) -> Ordering {
    // The number of a key counts, so `ENG-9` precedes `ENG-10`.
    let key = |issue: &TicketRecord| {
        let number = issue
            .key
            .rsplit('-')
            .next()
            .and_then(|number| number.parse::<u64>().ok());
        (issue.project.clone(), number)
    };
    // The list of priorities begins with the highest.
    let priority = |issue: &TicketRecord| Reverse(PRIORITIES.iter().position(|name| *name == issue.priority));
    match field {
        OrderField::Updated => left.updated.cmp(&right.updated),
        OrderField::Created => left.created.cmp(&right.created),
        OrderField::Key => key(left).cmp(&key(right)),
        OrderField::Priority => priority(left).cmp(&priority(right)),
        OrderField::Status => left.status.cmp(&right.status),
        OrderField::Summary => left.summary.cmp(&right.summary),
    }
}

/// Returns Jira's error for a project or status that does not exist. Jira refuses such queries; an empty
/// result would hide a typo.
fn find_unknown_value(desk: &JiraState, query: &jql::JqlQuery) -> Option<String> {
    let is_status = |wanted: &String| {
        let mut names = desk.statuses.iter();
        names.any(|status| status.name.eq_ignore_ascii_case(wanted))
    };
    let missing =
        |field: &str, value: &str| format!("The value '{value}' does not exist for the field '{field}'.");
    if let Some(project) = query
        .project
        .as_ref()
        .filter(|project| !desk.has_project(project))
    {
        return Some(missing("project", project));
    }
    let status = query.status.as_ref().filter(|status| !is_status(status))?;
    Some(missing("status", status))
}

fn matches_query(desk: &JiraState, query: &jql::JqlQuery, issue: &TicketRecord) -> bool {
    let status = &desk.statuses[issue.status].name;
    let is_named = || {
        let title = issue.summary.to_lowercase();
        let mut words = title.split(|c: char| !c.is_alphanumeric());
        words.any(|word| query.title_words.iter().any(|wanted| wanted == word))
    };
    let is_wanted = query.keys.is_empty() || query.keys.contains(&issue.key);
    let is_open = !query.is_unfinished || desk.statuses[issue.status].category != "done";
    is_wanted
        && is_open
        && query
            .project
            .as_ref()
            .is_none_or(|project| project.eq_ignore_ascii_case(&issue.project))
        && query
            .status
            .as_ref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(status))
        && query
            .updated_since
            .is_none_or(|since| jira_time(&issue.updated).is_some_and(|updated| updated >= since))
        && query
            .created_since
            .is_none_or(|since| jira_time(&issue.created).is_some_and(|created| created >= since))
        && query.labels.iter().all(|label| issue.labels.contains(label))
        && (query.title_words.is_empty() || is_named())
}
