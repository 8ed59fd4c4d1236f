//! Loaded rules.

use api::types::{RepositoryView, RulesProblemView, RulesView};
use axum::{Json, extract::State};
use bootstrap::rules::FileProblem;

use super::{ApiProblem, ApiState, ViewerProof};

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
            repository: format!("{}/{}", rules.repo.owner, rules.repo.name),
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
