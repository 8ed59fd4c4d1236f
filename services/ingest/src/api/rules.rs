//! The rules that are loaded.

use axum::{Json, extract::State};

use super::{
    ApiState, Problem, Viewer,
    types::{RepositoryView, RulesProblemView, RulesView},
};

/// Shows the repositories with working rules, and what is wrong with the others.
#[utoipa::path(get, path = "/v1/rules", security(("bearer" = [])),
    responses((status = 200, body = RulesView)))]
pub(super) async fn show(_: Viewer, State(state): State<ApiState>) -> Result<Json<RulesView>, Problem> {
    let book = state.router()?.rules.book();
    let repositories = book.repositories().map(|rules| RepositoryView {
        repository: format!("{}/{}", rules.repo.owner, rules.repo.name),
        project: rules.jira.project_key.clone(),
        status: rules.agent.status.clone(),
    });
    let problems = book.problems().iter().map(|problem| RulesProblemView {
        file: problem.file.clone(),
        line: problem.line,
        key: problem.key.clone(),
        problem: problem.problem.clone(),
    });
    Ok(Json(RulesView {
        repositories: repositories.collect(),
        problems: problems.collect(),
    }))
}
