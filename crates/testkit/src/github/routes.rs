//! The routes of the REST interface.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::Response;
use axum::routing::{any, delete, get, patch, post};

use super::auth::{not_found, refuse};
use super::hub::Hub;
use super::{branches, comments, git_http, graphql, issues_rest, logs, pulls, quota, rest, reviewing};

pub(super) fn router(hub: Arc<Hub>) -> Router {
    let repo = Router::new()
        .route("/installation", get(rest::installation))
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
        .route("/issues/{number}/events", get(reviewing::events))
        .route("/pulls/{number}/comments", get(pulls::line_comments))
        .route("/pulls/{number}/comments/{comment}/replies", post(pulls::reply))
        .route("/actions/jobs/{job}/logs", get(logs::redirect))
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
            delete(issues_rest::remove_assignees),
        )
        .route("/issues/{number}/reactions", post(issues_rest::react))
        .route("/issues", get(issues_rest::list))
        .route(
            "/issues/{number}",
            get(issues_rest::get).patch(issues_rest::update),
        )
        .route("/commits/{sha}/check-runs", get(rest::check_runs))
        .route("/commits/{sha}/status", get(rest::combined_status))
        .route("/collaborators/{login}/permission", get(rest::permission))
        .route("/git/ref/{*name}", get(rest::git_ref))
        .route("/branches/{branch}", get(branches::branch))
        .route("/rules/branches/{branch}", get(branches::rules))
        .route("/merges", any(forbidden_merge));
    Router::new()
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
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(&hub), quota::meter))
        .with_state(hub)
}

async fn unknown(State(hub): State<Arc<Hub>>, request: Request) -> Response {
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

/// What rules of the branch refuse to everybody is refused as that.
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
