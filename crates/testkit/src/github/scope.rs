//! Rights of tokens. Installation tokens are limited to repositories and permissions.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{not_found, refuse_request};
use super::rest::render_validation_failure;

/// Level (`read` or `write`) by permission name.
pub(super) type TokenPermissions = BTreeMap<String, String>;

/// Permissions of the workflow in docs/action.md. GitHub adds `metadata` to every token.
const WORKFLOW_PERMISSIONS: [(&str, &str); 7] = [
    ("actions", "write"),
    ("checks", "read"),
    ("contents", "write"),
    ("issues", "write"),
    ("metadata", "read"),
    ("pull_requests", "write"),
    ("statuses", "read"),
];

/// Token with its rights.
#[derive(Debug, Clone)]
pub(super) struct AccessToken {
    /// True for the writer's tokens.
    pub(super) writes: bool,
    /// Limits of an installation token; personal tokens have no limits.
    limits: Option<TokenLimits>,
    /// True for the token that reaches projects alone.
    projects: bool,
}

#[derive(Debug, Clone)]
struct TokenLimits {
    /// Full names of the covered repositories; absent means all.
    repositories: Option<Vec<String>>,
    permissions: TokenPermissions,
}

/// Request body for an installation token.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TokenRequest {
    pub(super) repositories: Option<Vec<String>>,
    pub(super) repository_ids: Option<Vec<u64>>,
    pub(super) permissions: Option<TokenPermissions>,
}

fn is_level_sufficient(held: &str, wanted: &str) -> bool {
    // The level `write` includes `read`.
    held == wanted || held == "write"
}

impl AccessToken {
    pub(super) fn personal(writes: bool) -> Self {
        Self {
            writes,
            limits: None,
            projects: false,
        }
    }

    /// Creates the token of a workflow's job: an installation token without a request for it.
    pub(super) fn of_workflow() -> Self {
        let permissions = WORKFLOW_PERMISSIONS.map(|(name, level)| (name.to_owned(), level.to_owned()));
        Self {
            writes: true,
            limits: Some(TokenLimits {
                repositories: None,
                permissions: permissions.into(),
            }),
            projects: false,
        }
    }

    /// Creates a personal token with the scope `project`.
    pub(super) fn for_projects() -> Self {
        Self {
            projects: true,
            ..Self::personal(true)
        }
    }

    /// True if the token reaches projects alone.
    pub(super) fn is_for_projects(&self) -> bool {
        self.projects
    }

    /// Creates an installation token with the requested permissions. Permissions beyond the App's are
    /// refused.
    pub(super) fn minted(
        writes: bool,
        repositories: Option<Vec<String>>,
        wanted: Option<TokenPermissions>,
        given: &TokenPermissions,
    ) -> Result<Self, Response> {
        // Clients without a selection send an empty object, which GitHub treats like an absent one.
        let wanted = wanted.filter(|wanted| !wanted.is_empty());
        let permissions = wanted.unwrap_or_else(|| given.clone());
        let is_given = |(name, level): (&String, &String)| {
            given
                .get(name)
                .is_some_and(|held| is_level_sufficient(held, level))
        };
        if !permissions.iter().all(is_given) {
            let message = "The permissions requested are not granted to this installation.";
            return Err(render_validation_failure(&json!([{"message": message}])));
        }
        let limits = Some(TokenLimits {
            repositories,
            permissions,
        });
        Ok(Self {
            writes,
            limits,
            projects: false,
        })
    }

    /// True for a personal token, false for an App's.
    pub(super) fn is_personal(&self) -> bool {
        self.limits.is_none()
    }

    pub(super) fn permissions(&self) -> Value {
        json!(self.limits.as_ref().map(|limits| &limits.permissions))
    }

    /// Checks that the token covers the repository (a full name) and holds one of the needed permissions.
    pub(super) fn may(&self, repository: Option<&str>, needed: &[(&str, &str)]) -> Result<(), Response> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let is_covered = |name: &str| {
            limits
                .repositories
                .as_ref()
                .is_none_or(|covered| covered.iter().any(|known| known.eq_ignore_ascii_case(name)))
        };
        if repository.is_some_and(|name| !is_covered(name)) {
            // 404 hides the existence of repositories outside the token's limits.
            return Err(not_found());
        }
        let is_held = |(name, level): &(&str, &str)| {
            limits
                .permissions
                .get(*name)
                .is_some_and(|held| is_level_sufficient(held, level))
        };
        if needed.is_empty() || needed.iter().any(is_held) {
            return Ok(());
        }
        let names: Vec<String> = needed
            .iter()
            .map(|(name, level)| format!("{name}={level}"))
            .collect();
        // GitHub names the missing permission in this header, and our client reports it.
        let mut refused = refuse_request(StatusCode::FORBIDDEN, "Resource not accessible by integration");
        if let Ok(value) = HeaderValue::from_str(&names.join("; ")) {
            refused
                .headers_mut()
                .insert("x-accepted-github-permissions", value);
        }
        Err(refused)
    }
}

/// Returns the repository of a path and the permissions of which a caller needs one.
pub(super) fn find_needed_permissions(
    method: &Method,
    path: &str,
) -> (Option<String>, Vec<(&'static str, &'static str)>) {
    let level = if *method == Method::GET { "read" } else { "write" };
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let ["repos", owner, name, rest @ ..] = parts.as_slice() else {
        return (None, Vec::new());
    };
    let needed = match rest {
        ["pulls", ..] => vec![("pull_requests", level)],
        // The routes of issues also serve pull requests.
        ["issues", ..] => vec![("issues", level), ("pull_requests", level)],
        ["commits", _, "check-runs"] | ["check-runs", ..] => vec![("checks", level)],
        ["actions", ..] => vec![("actions", level)],
        ["commits", _, "status"] => vec![("statuses", level)],
        ["git" | "branches", ..] => vec![("contents", level)],
        _ => vec![("metadata", level)],
    };
    (Some(format!("{owner}/{name}")), needed)
}
