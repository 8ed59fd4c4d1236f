//! Branches and what they ask for before a merge.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::auth::{Caller, not_found};
use super::hub::Hub;
use super::repository;
use super::rest::{Handled, with_repo};
use crate::http::answer;

type Place = (String, String, String);

/// The classic protection, as everybody with read access sees it.
pub(super) async fn branch(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    Path((owner, name, branch)): Path<Place>,
) -> Handled {
    with_repo(&hub, &owner, &name, |repo| {
        let sha = repository::branches(&repo.path)
            .remove(&branch)
            .ok_or_else(not_found)?;
        let required = repo.required_checks.get(&branch).cloned().unwrap_or_default();
        let checks: Vec<Value> = required
            .iter()
            .map(|context| json!({"context": context, "app_id": null}))
            .collect();
        let level = if required.is_empty() { "off" } else { "non_admins" };
        let url = format!("{}/repos/{}", hub.url, repo.name);
        let body = json!({
            "name": branch, "commit": {"sha": sha, "url": format!("{url}/commits/{sha}")},
            "protected": !required.is_empty(), "protection_url": format!("{url}/branches/{branch}/protection"),
            "protection": {
                "enabled": !required.is_empty(),
                "required_status_checks": {"enforcement_level": level, "contexts": required, "checks": checks},
            },
            "_links": {"self": format!("{url}/branches/{branch}"), "html": format!("{}/{}/tree/{branch}", hub.url, repo.name)},
        });
        Ok(answer(StatusCode::OK, body))
    })
}

/// The rules of rulesets; the stand-in has none.
pub(super) async fn rules(
    State(hub): State<Arc<Hub>>,
    _caller: Caller,
    Path((owner, name, _branch)): Path<Place>,
) -> Handled {
    with_repo(&hub, &owner, &name, |_| Ok(answer(StatusCode::OK, json!([]))))
}
