//! Routes of the whole stand-in.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::Response;
use axum::routing::{any, delete, get, patch, post};

use super::auth::{not_found, refuse};
use super::hub::Hub;
use super::{
    actions, branches, check_runs, comments, compare, git_http, graphql, issues_rest, logs, pulls, quota,
    reactions, registration, rest, reviewing, sub_issues,
};

pub(super) fn router(hub: Arc<Hub>) -> Router {
    let repo = Router::new()
        .merge(pull_requests())
        .merge(issues())
        .route("/installation", get(rest::installation))
        .route("/actions/jobs/{job}/logs", get(logs::redirect))
        .route("/actions/runs", get(actions::runs))
        .route("/actions/runs/{number}", get(actions::run))
        .route(
            "/actions/runs/{number}/rerun-failed-jobs",
            post(actions::rerun_failed_jobs),
        )
        .route("/commits/{sha}/check-runs", get(check_runs::list))
        .route("/compare/{range}", get(compare::compare))
        .route("/check-runs", post(check_runs::create))
        .route("/check-runs/{number}", patch(check_runs::update))
        .route("/commits/{sha}/status", get(rest::combined_status))
        .route("/collaborators/{login}/permission", get(rest::permission))
        .route("/git/ref/{*name}", get(rest::git_ref))
        .route("/branches/{branch}", get(branches::branch))
        .route("/rules/branches/{branch}", get(branches::rules))
        .route("/merges", any(forbidden_merge));
    Router::new()
        .merge(registration::router())
        .route("/meta", get(rest::meta))
        .route("/app", get(rest::app))
        .route("/user", get(rest::whoami))
        .route("/app/installations/{id}/access_tokens", post(rest::access_token))
        .route("/app/hook/deliveries", get(rest::deliveries))
        .route("/app/hook/deliveries/{id}", get(rest::delivery))
        .route("/app/hook/deliveries/{id}/attempts", post(rest::redeliver))
        .route("/graphql", post(graphql::handle))
        .route("/stored-logs/{job}", get(logs::text))
        .route(
            "/git/{owner}/{name}/{*rest}",
            get(git_http::handle).post(git_http::handle),
        )
        .route("/repos/{owner}/{repo}", get(rest::get_repo))
        .nest("/repos/{owner}/{repo}", repo)
        .fallback(unknown)
        // A push may exceed the default limit of axum; `http::record` has the stand-in's limit.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), quota::meter))
        .with_state(hub)
}

/// Builds the routes below `/repos/{owner}/{repo}/pulls`.
fn pull_requests() -> Router<Arc<Hub>> {
    Router::new()
        .route("/pulls", get(pulls::list).post(pulls::create))
        .route("/pulls/{number}", get(pulls::get).patch(pulls::update))
        .route("/pulls/{number}/merge", any(forbidden_pull_merge))
        .route(
            "/pulls/{number}/requested_reviewers",
            post(pulls::request_reviewers),
        )
        .route(
            "/pulls/{number}/reviews",
            get(pulls::reviews).post(reviewing::submit),
        )
        .route("/pulls/{number}/files", get(reviewing::files))
        .route("/pulls/{number}/commits", get(reviewing::commits))
        .route("/pulls/{number}/comments", get(pulls::line_comments))
        .route("/pulls/{number}/comments/{comment}/replies", post(pulls::reply))
        .route("/pulls/comments/{id}/reactions", post(reactions::to_line_comment))
}

/// Builds the routes below `/repos/{owner}/{repo}/issues`.
fn issues() -> Router<Arc<Hub>> {
    Router::new()
        .route("/issues/{number}/events", get(reviewing::events))
        .route(
            "/issues/{number}/comments",
            get(comments::list).post(comments::create),
        )
        .route("/issues/comments", get(comments::list_all))
        .route(
            "/issues/comments/{id}",
            patch(comments::update).delete(comments::delete),
        )
        .route(
            "/issues/{number}/labels",
            get(issues_rest::labels).post(issues_rest::add_labels),
        )
        .route(
            "/issues/{number}/labels/{label}",
            delete(issues_rest::remove_label),
        )
        .route(
            "/issues/{number}/assignees",
            post(issues_rest::add_assignees).delete(issues_rest::remove_assignees),
        )
        .route("/issues/{number}/reactions", post(reactions::to_issue))
        .route("/issues/comments/{id}/reactions", post(reactions::to_comment))
        .route(
            "/issues/{number}/sub_issues",
            get(sub_issues::list).post(sub_issues::add),
        )
        .route("/issues", get(issues_rest::list).post(sub_issues::create))
        .route(
            "/issues/{number}",
            get(issues_rest::get).patch(issues_rest::update),
        )
}

async fn unknown(State(hub): State<Arc<Hub>>, request: Request) -> Response {
    // A missing route is a violation. Otherwise a test could pass because of an ignored 404.
    hub.log.violation(format!(
        "the stand-in has no {} {}",
        request.method(),
        request.uri().path()
    ));
    not_found()
}

async fn forbidden_merge(State(hub): State<Arc<Hub>>, request: Request) -> Response {
    hub.log.violation(format!(
        "a merge was tried: {} {}",
        request.method(),
        request.uri().path()
    ));
    refuse(StatusCode::FORBIDDEN, "Only people merge")
}

/// Refuses a merge. A branch rule that refuses it for every caller is named in the answer.
async fn forbidden_pull_merge(
    State(hub): State<Arc<Hub>>,
    Path((owner, name, number)): rest::NumberPath,
    request: Request,
) -> Response {
    let forbidden = forbidden_merge(State(Arc::clone(&hub)), request).await;
    let checked = rest::with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        Ok(repo.check_merge(pull))
    });
    match checked {
        Ok(Err(rule)) => refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            &format!("Repository rule violations found\n\n{rule}"),
        ),
        Ok(Ok(())) | Err(_) => forbidden,
    }
}
