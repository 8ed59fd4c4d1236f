//! The caller, the credentials of the services, and the loaded rules.

use api::types::{CallerView, CredentialView, ProblemView, RepositoryView, RulesProblemView, RulesView};
use axum::{Json, extract::State};
use bootstrap::rules::FileProblem;
use domain::RepositoryRules;

use super::{ApiProblem, ApiState, ViewerProof};

/// Shows the name and the role of the caller, for pages that name their user.
#[utoipa::path(get, path = "/v1/me", security(("bearer" = [])),
    responses((status = 200, body = CallerView), (status = 401, body = ProblemView)))]
pub(super) async fn show_caller(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<CallerView>, ApiProblem> {
    // Like every route, it answers only when the queue is connected: a login then leads to working pages.
    state.router()?;
    Ok(Json(CallerView {
        is_limited: !caller.scope.is_all(),
        name: caller.name,
        role: caller.role,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

/// Lists expiry times of the services' credentials, earliest first, as far as the settings contain them.
///
/// The API knows nothing of the credentials themselves. A limited token gets an empty list, because credentials concern the
/// whole installation.
#[utoipa::path(get, path = "/v1/credentials", security(("bearer" = [])),
    responses((status = 200, body = Vec<CredentialView>)))]
pub(super) async fn list_credentials(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<Vec<CredentialView>>, ApiProblem> {
    let router = state.router()?;
    if !caller.scope.is_all() {
        return Ok(Json(Vec::new()));
    }
    let (ends, now) = (
        router.queue.credential_ends().await?,
        bootstrap::read_wall_clock(),
    );
    let views = ends.iter().map(|end| CredentialView::of(end, now));
    Ok(Json(views.collect()))
}

/// Shows the repositories with valid rules, and the problems of invalid files.
#[utoipa::path(get, path = "/v1/rules", security(("bearer" = [])),
    responses((status = 200, body = RulesView)))]
pub(super) async fn show_rules(
    ViewerProof(caller): ViewerProof,
    State(state): State<ApiState>,
) -> Result<Json<RulesView>, ApiProblem> {
    let (router, scope) = (state.router()?, caller.scope);
    let book = router.rules.book();
    let mut repositories = Vec::new();
    for rules in book.repositories().filter(|rules| scope.has_rules(rules)) {
        repositories.push(RepositoryView {
            repository: format_repository(rules),
            project: rules.jira.project_key.clone(),
            status: rules.agent.status.clone(),
            problem: router.tracker.problem(&router.outside, rules).await,
        });
    }
    // An unreadable file does not show its repository, so a limited token does not see its problem.
    let is_known = |problem: &&FileProblem| match &problem.repository {
        Some(repository) => scope.has_repository(repository),
        None => scope.is_all(),
    };
    let problems = book
        .problems()
        .iter()
        .filter(is_known)
        .map(|problem| RulesProblemView {
            file: problem.file.clone(),
            line: problem.line,
            key: problem.key.clone(),
            problem: problem.problem.clone(),
        });
    Ok(Json(RulesView {
        repositories,
        problems: problems.collect(),
    }))
}

/// Formats the repository of rules as in lists and filters: with its instance, or the folder that contains it.
pub(super) fn format_repository(rules: &RepositoryRules) -> String {
    match rules.repository() {
        Ok(repository) => repository.to_string(),
        Err(_) => format!("{}/{}", rules.repo.owner, rules.repo.name),
    }
}
