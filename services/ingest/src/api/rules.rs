//! The rules that are loaded.

use api::types::{RepositoryView, RulesProblemView, RulesView};
use axum::{Json, extract::State};

use super::{ApiState, Problem, Viewer};

/// Shows the repositories with working rules, and what is wrong with the others.
#[utoipa::path(get, path = "/v1/rules", security(("bearer" = [])),
    responses((status = 200, body = RulesView)))]
pub(super) async fn show(_: Viewer, State(state): State<ApiState>) -> Result<Json<RulesView>, Problem> {
    let router = state.router()?;
    let book = router.rules.book();
    let mut repositories = Vec::new();
    for rules in book.repositories() {
        repositories.push(RepositoryView {
            repository: format!("{}/{}", rules.repo.owner, rules.repo.name),
            project: rules.jira.project_key.clone(),
            status: rules.agent.status.clone(),
            problem: router.tracker.problem(&router.outside, rules).await,
        });
    }
    let problems = book.problems().iter().map(|problem| RulesProblemView {
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
