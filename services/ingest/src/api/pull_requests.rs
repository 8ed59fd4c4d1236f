//! Pull requests on request of API callers. The reporter opens them, because ingest has no account that writes.

use api::types::{CallState, ProblemView, PullRequestBody, PullRequestCallView};
use axum::{
    Json,
    extract::{Path, State, rejection::JsonRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use bootstrap::rules::RulesBook;
use domain::PullRequestCall;
use pullrequest::{BranchLocation, ProtocolAnswer, ValidatedRequest, parse_github_request};
use serde_json::Value;

use super::{ApiProblem, ApiState, OperatorProof, ViewerProof, jobs::idempotency_key, scope::TokenCaller};

/// Opens a pull request for an existing branch on GitHub, links it to a Jira issue and moves the issue to code
/// review, as `journeyman pr` does. The repository must have rules.
#[utoipa::path(post, path = "/v1/pull-requests", request_body = PullRequestBody, security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key asks once; it is the id.")),
    responses((status = 202, body = PullRequestCallView),
        (status = 403, body = ProblemView),
        (status = 409, body = ProblemView, description = "The key belongs to another request."),
        (status = 422, description = "The output of `journeyman pr` with a `validation_error` for each wrong field.")))]
pub(super) async fn ask_pull_request(
    OperatorProof(caller): OperatorProof,
    State(state): State<ApiState>,
    headers: HeaderMap,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, ApiProblem> {
    let queue = &state.router()?.queue;
    let Json(request) = body?;
    // The key is the id of the call, so a repeated request finds the first one.
    let id = idempotency_key(&headers)?.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    match parse_github_request(&request) {
        Ok(read) => check_call_scope(&state.router()?.rules.book(), &caller, &read)?,
        Err(problems) => {
            let answer = ProtocolAnswer::failed(problems);
            return Ok((StatusCode::UNPROCESSABLE_ENTITY, Json(answer)).into_response());
        }
    }
    let call = PullRequestCall {
        id: id.clone(),
        at: bootstrap::read_wall_clock(),
        by: caller.name,
        request,
    };
    match queue.pull_request_calls().ask(&call).await? {
        Some(known) if known.request != call.request => Err(ApiProblem::Conflict(
            "this Idempotency-Key belongs to another request; use a new one".to_owned(),
        )),
        Some(_) | None => {
            Ok((StatusCode::ACCEPTED, Json(build_call_view(&state, id).await?)).into_response())
        }
    }
}

/// Shows the progress of a call, and its answer.
#[utoipa::path(get, path = "/v1/pull-requests/{id}", security(("bearer" = [])),
    params(("id" = String, Path, description = "Percent-encoded id of the call.")),
    responses((status = 200, body = PullRequestCallView), (status = 404, body = ProblemView)))]
pub(super) async fn show_pull_request_call(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
    Path(id): Path<String>,
) -> Result<Json<PullRequestCallView>, ApiProblem> {
    let queue = &state.router()?.queue;
    let call = queue.pull_request_calls().call(&id).await?;
    let is_known = call.is_some_and(|call| {
        let read = parse_github_request(&call.request);
        caller.scope.is_all() || read.is_ok_and(|read| check_repository_scope(&caller, &read).is_ok())
    });
    if !is_known {
        return Err(ApiProblem::NotFound(format!(
            "no call has the id {id}; calls are kept for seven days"
        )));
    }
    Ok(Json(build_call_view(&state, id).await?))
}

/// Checks the scope of a call: its repository, and its Jira issue if it names one.
fn check_call_scope(
    book: &RulesBook,
    caller: &TokenCaller,
    request: &ValidatedRequest,
) -> Result<(), ApiProblem> {
    check_repository_scope(caller, request)?;
    let (BranchLocation::GitHub(repository), Some(key)) = (&request.place, &request.jira_key) else {
        return Ok(());
    };
    caller.reaches(&book.called_issue(repository, key)?)
}

fn check_repository_scope(caller: &TokenCaller, request: &ValidatedRequest) -> Result<(), ApiProblem> {
    match &request.place {
        BranchLocation::GitHub(repository) => caller.reaches_repository(repository),
        BranchLocation::Folder(_) => Ok(()),
    }
}

async fn build_call_view(state: &ApiState, id: String) -> Result<PullRequestCallView, ApiProblem> {
    let known = state.router()?.queue.pull_request_calls().answer(&id).await?;
    let state = match &known {
        None => CallState::Waiting,
        Some(taken) if taken.answer.is_none() => CallState::Running,
        Some(_) => CallState::Answered,
    };
    Ok(PullRequestCallView {
        id,
        state,
        answer: known.and_then(|known| known.answer),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::types::Role;
    use bootstrap::{rules::ConfiguredInstances, settings::TextList};
    use serde_json::json;

    use super::*;
    use crate::api::scope::TokenScope;

    /// The same project is on the default Jira for one repository and on a named Jira for the other.
    fn build_two_site_book() -> RulesBook {
        let files = [
            (
                "shop",
                "repo: {owner: acme, name: shop}\njira: {project_key: ENG}\n",
            ),
            (
                "web",
                "repo: {owner: acme, name: web}\njira: {project_key: ENG, instance: dc}\n",
            ),
        ];
        let files = files.map(|(name, text)| (format!("{name}.yaml"), text.to_owned()));
        let connections = ConfiguredInstances {
            jira: BTreeSet::from(["dc".parse().expect("name")]),
            ..ConfiguredInstances::default()
        };
        let book = RulesBook::parse(&files, &connections);
        assert_eq!(book.problems(), []);
        book
    }

    fn is_call_in_scope(repository: &str, projects: &[&str]) -> bool {
        let request = json!({"repository": repository, "branch": "feature/ENG-1-login", "title": "Add a login form",
            "description": "A form and its test", "jira_key": "ENG-1"});
        let request = parse_github_request(&request).expect("a valid request");
        let list = |texts: &[&str]| TextList(texts.iter().map(|text| (*text).to_owned()).collect());
        let repositories = list(&["acme/shop", "acme/web"]);
        let caller = TokenCaller {
            name: "ci".to_owned(),
            role: Role::Operator,
            scope: TokenScope::new(Some(&repositories), Some(&list(projects))).expect("a scope"),
        };
        check_call_scope(&build_two_site_book(), &caller, &request).is_ok()
    }

    #[test]
    fn call_scope_covers_issue_on_jira_of_rules() {
        for (repository, projects, is_allowed) in [
            ("acme/shop", ["ENG"], true),
            ("acme/shop", ["dc:ENG"], false),
            ("acme/web", ["ENG"], false),
            ("acme/web", ["dc:ENG"], true),
        ] {
            assert_eq!(
                is_call_in_scope(repository, &projects),
                is_allowed,
                "{repository} {projects:?}"
            );
        }
    }
}
