//! Routes of the whole stand-in.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::StatusCode;
use axum::middleware;
use axum::response::Response;
use axum::routing::{any, delete, get, patch, post};

use super::auth::{not_found, refuse_request};
use super::hub::GitHubState;
use super::reactions::{ReactedObject, react_to};
use super::{
    actions, attachments, branches, check_runs, comments, git_data, git_http, graphql, issues_rest, lfs,
    pulls, quota, registration, rest, review_requests, sub_issues,
};

pub(super) fn build_github_routes(hub: Arc<GitHubState>) -> Router {
    let repo = Router::new()
        .merge(pull_requests())
        .merge(build_issue_routes())
        .route("/installation", get(rest::get_installation))
        .route("/actions/jobs/{job}/logs", get(actions::redirect_to_log))
        .route("/actions/runs", get(actions::list_workflow_runs))
        .route("/actions/runs/{number}", get(actions::get_workflow_run))
        .route(
            "/actions/runs/{number}/rerun-failed-jobs",
            post(actions::rerun_failed_jobs),
        )
        .route("/commits/{sha}/check-runs", get(check_runs::list_check_runs))
        .route("/compare/{range}", get(branches::compare_commits))
        .route("/check-runs", post(check_runs::create_check_run))
        .route("/check-runs/{number}", patch(check_runs::update_check_run))
        .route("/commits/{sha}/status", get(rest::combined_status))
        .route("/collaborators/{login}/permission", get(rest::get_permission))
        .route("/git/ref/{*name}", get(rest::git_ref))
        .route("/git/matching-refs/{*name}", get(git_data::list_matching_refs))
        .route("/git/blobs", post(git_data::create_blob))
        .route("/git/trees", post(git_data::create_tree))
        .route("/git/commits", post(git_data::create_commit))
        .route("/git/commits/{sha}", get(git_data::get_commit))
        .route("/git/refs", post(git_data::create_ref))
        .route("/git/refs/{*name}", patch(git_data::update_ref))
        .route("/branches/{branch}", get(branches::get_branch))
        .route("/rules/branches/{branch}", get(branches::list_branch_rules))
        .route("/rulesets/{id}", get(branches::get_ruleset))
        .route("/merges", any(forbidden_merge));
    Router::new()
        .merge(registration::build_registration_routes())
        .merge(attachments::build_attachment_routes())
        .route("/meta", get(rest::get_meta))
        .route("/app", get(rest::get_app))
        .route("/user", get(rest::get_current_user))
        .route("/user/repos", get(rest::list_user_repositories))
        .route(
            "/installation/repositories",
            get(rest::list_installation_repositories),
        )
        .route("/app/installations/{id}/access_tokens", post(rest::access_token))
        .route("/app/hook/deliveries", get(rest::list_deliveries))
        .route("/app/hook/deliveries/{id}", get(rest::get_delivery))
        .route(
            "/app/hook/deliveries/{id}/attempts",
            post(rest::redeliver_webhook),
        )
        .route("/graphql", post(graphql::answer_graphql))
        .route("/stored-logs/{job}", get(actions::serve_job_log))
        .route("/lfs-store/{oid}", get(lfs::serve_lfs_content))
        .route(
            "/git/{owner}/{name}/{*rest}",
            get(git_http::serve_git_request).post(git_http::serve_git_request),
        )
        .route("/repos/{owner}/{repo}", get(rest::get_repo))
        .nest("/repos/{owner}/{repo}", repo)
        .fallback(answer_unknown_route)
        // A push may exceed the default limit of axum; `http::record` has the stand-in's limit.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(
            Arc::clone(&hub),
            quota::meter_calls,
        ))
        .with_state(hub)
}

/// Builds the routes below `/repos/{owner}/{repo}/pulls`.
fn pull_requests() -> Router<Arc<GitHubState>> {
    Router::new()
        .route(
            "/pulls",
            get(pulls::list_pull_requests).post(pulls::create_pull_request),
        )
        .route(
            "/pulls/{number}",
            get(pulls::get_pull_request).patch(pulls::update_pull_request),
        )
        .route("/pulls/{number}/merge", any(forbidden_pull_merge))
        .route(
            "/pulls/{number}/requested_reviewers",
            post(pulls::request_reviewers),
        )
        .route(
            "/pulls/{number}/reviews",
            get(pulls::list_reviews).post(review_requests::submit_review),
        )
        .route("/pulls/{number}/files", get(review_requests::list_pull_files))
        .route("/pulls/{number}/commits", get(review_requests::list_pull_commits))
        .route("/pulls/{number}/comments", get(pulls::line_comments))
        .route(
            "/pulls/{number}/comments/{comment}/replies",
            post(pulls::reply_to_comment),
        )
        .route(
            "/pulls/comments/{id}/reactions",
            post(react_to(ReactedObject::LineComment)),
        )
}

/// Builds the routes below `/repos/{owner}/{repo}/issues`.
fn build_issue_routes() -> Router<Arc<GitHubState>> {
    Router::new()
        .route(
            "/issues/{number}/events",
            get(review_requests::list_review_events),
        )
        .route(
            "/issues/{number}/comments",
            get(comments::list_comments).post(comments::create_comment),
        )
        .route("/issues/comments", get(comments::list_all))
        .route(
            "/issues/comments/{id}",
            patch(comments::update_comment).delete(comments::delete_comment),
        )
        .route(
            "/issues/{number}/labels",
            get(issues_rest::list_labels).post(issues_rest::add_labels),
        )
        .route(
            "/issues/{number}/labels/{label}",
            delete(issues_rest::remove_label),
        )
        .route(
            "/issues/{number}/assignees",
            post(issues_rest::add_assignees).delete(issues_rest::remove_assignees),
        )
        .route("/issues/{number}/reactions", post(react_to(ReactedObject::Issue)))
        .route(
            "/issues/comments/{id}/reactions",
            post(react_to(ReactedObject::Comment)),
        )
        .route(
            "/issues/{number}/sub_issues",
            get(sub_issues::list_sub_issues).post(sub_issues::add_sub_issue),
        )
        .route(
            "/issues",
            get(issues_rest::list_issues).post(sub_issues::create_issue),
        )
        .route(
            "/issues/{number}",
            get(issues_rest::get_issue).patch(issues_rest::update_issue),
        )
}

async fn answer_unknown_route(State(hub): State<Arc<GitHubState>>, request: Request) -> Response {
    // A missing route is a violation. Otherwise a test could pass because of an ignored 404.
    hub.log.violation(format!(
        "the stand-in has no {} {}",
        request.method(),
        request.uri().path()
    ));
    not_found()
}

async fn forbidden_merge(State(hub): State<Arc<GitHubState>>, request: Request) -> Response {
    hub.log.violation(format!(
        "a merge was tried: {} {}",
        request.method(),
        request.uri().path()
    ));
    refuse_request(StatusCode::FORBIDDEN, "Only people merge")
}

/// Refuses a merge. A branch rule that refuses it for every caller is named in the answer.
async fn forbidden_pull_merge(
    State(hub): State<Arc<GitHubState>>,
    Path((owner, name, number)): rest::NumberPath,
    request: Request,
) -> Response {
    let forbidden = forbidden_merge(State(Arc::clone(&hub)), request).await;
    let checked = rest::with_repo(&hub, &owner, &name, |repo| {
        let pull = repo.pulls.get(&number).ok_or_else(not_found)?;
        Ok(repo.check_merge(pull))
    });
    match checked {
        Ok(Err(rule)) => refuse_request(
            StatusCode::METHOD_NOT_ALLOWED,
            &format!("Repository rule violations found\n\n{rule}"),
        ),
        Ok(Ok(())) | Err(_) => forbidden,
    }
}
