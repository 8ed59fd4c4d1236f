//! The rules that are loaded.

use api::types::{RepositoryView, RulesProblemView, RulesView};
use axum::{Json, extract::State};
use bootstrap::rules::FileProblem;

use super::{ApiState, Problem, Viewer};

/// Shows the repositories with working rules, and what is wrong with the others.
#[utoipa::path(get, path = "/v1/rules", security(("bearer" = [])),
    responses((status = 200, body = RulesView)))]
pub(super) async fn show(
    Viewer(caller): Viewer,
    State(state): State<ApiState>,
) -> Result<Json<RulesView>, Problem> {
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
    // A file that cannot be read says nothing of whose it is.
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
