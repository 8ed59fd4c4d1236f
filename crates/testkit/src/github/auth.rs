//! Authentication: an App by its signed token, an installation or a user by their token, and the permission
//! to write.

use std::sync::Arc;

use axum::extract::{FromRequestParts, OriginalUri};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::hub::GitHubState;
use super::scope::{self, AccessToken, TokenPermissions};
use super::{
    FakeGitHub, PROJECT_TOKEN, READER_APP_ID, READER_LOGIN, READER_TOKEN, WORKFLOW_TOKEN, WRITER_APP_ID,
    WRITER_LOGIN, WRITER_TOKEN,
};
use crate::http::{header_text, render_json_answer};

const APP_PUBLIC_KEY: &[u8] = include_bytes!("../../data/app_public_key.der");
// Longest validity of an App's token in seconds. GitHub documents ten minutes.
const MAX_APP_TOKEN_AGE: i64 = 600;
/// Tolerated clock difference in seconds.
const CLOCK_SKEW: i64 = 60;

pub(super) fn refuse_request(status: StatusCode, message: &str) -> Response {
    render_json_answer(
        status,
        json!({"message": message, "documentation_url": "https://docs.github.com/rest", "status": status.as_u16().to_string()}),
    )
}

pub(super) fn not_found() -> Response {
    refuse_request(StatusCode::NOT_FOUND, "Not Found")
}

/// Caller with an installation's or a user's token. A write by the reader is refused before its handler runs.
pub(super) struct GitHubCaller {
    pub(super) writes: bool,
    pub(super) token: AccessToken,
}

impl GitHubCaller {
    pub(super) fn login(&self) -> &'static str {
        if self.writes { WRITER_LOGIN } else { READER_LOGIN }
    }
}

impl FromRequestParts<Arc<GitHubState>> for GitHubCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, hub: &Arc<GitHubState>) -> Result<Self, Response> {
        check_agent(&parts.headers)?;
        let token = read_bearer_token(&parts.headers)?;
        let token = token_of(hub, token)
            .ok_or_else(|| refuse_request(StatusCode::UNAUTHORIZED, "Bad credentials"))?;
        let writes = token.writes;
        // A classic token with the scope `project` reaches GraphQL alone.
        if token.is_for_projects() && parts.uri.path() != "/graphql" {
            hub.log
                .violation(format!("the token for projects called {}", parts.uri.path()));
            return Err(not_found());
        }
        // All calls of GraphQL are POST requests; the handlers of mutations check the permission to write.
        let reads = parts.method == Method::GET || parts.uri.path() == "/graphql";
        if !writes && !reads {
            hub.log
                .violation(format!("the reader called {} {}", parts.method, parts.uri.path()));
            return Err(refuse_request(
                StatusCode::FORBIDDEN,
                "Resource not accessible by integration",
            ));
        }
        let OriginalUri(uri) = OriginalUri::from_request_parts(parts, hub)
            .await
            .unwrap_or_else(|never| match never {});
        let (repository, needed) = scope::find_needed_permissions(&parts.method, uri.path());
        token.may(repository.as_deref(), &needed)?;
        Ok(Self { writes, token })
    }
}

/// Rights of a token; absent for an unknown token.
pub(super) fn token_of(hub: &GitHubState, token: &str) -> Option<AccessToken> {
    match token {
        READER_TOKEN => Some(AccessToken::personal(false)),
        WRITER_TOKEN => Some(AccessToken::personal(true)),
        PROJECT_TOKEN => Some(AccessToken::for_projects()),
        WORKFLOW_TOKEN => Some(AccessToken::of_workflow()),
        token => hub.world().tokens.get(token).cloned(),
    }
}

/// Webhook events that the reader's App subscribes to by default.
const READER_EVENTS: [&str; 11] = [
    "check_run",
    "check_suite",
    "workflow_run",
    "status",
    "pull_request",
    "pull_request_review",
    "push",
    "issues",
    "issue_comment",
    "discussion",
    "discussion_comment",
];

/// App that authenticates with its signed token.
pub(super) struct AppCaller {
    pub(super) id: u64,
}

impl AppCaller {
    pub(super) fn writes(&self) -> bool {
        self.id == WRITER_APP_ID
    }

    pub(super) fn login(&self) -> &'static str {
        if self.writes() { WRITER_LOGIN } else { READER_LOGIN }
    }

    /// Webhook events that the App is subscribed to.
    pub(super) fn events(&self, hub: &GitHubState) -> Vec<String> {
        if let Some(set) = hub.world().events.get(&self.id) {
            return set.clone();
        }
        let usual: &[&str] = if self.writes() { &[] } else { &READER_EVENTS };
        usual.iter().map(|event| (*event).to_owned()).collect()
    }

    pub(super) fn permissions(&self, hub: &GitHubState) -> TokenPermissions {
        if let Some(set) = hub.world().permissions.get(&self.id) {
            return set.clone();
        }
        let level = if self.writes() { "write" } else { "read" };
        // The writer pushes contents; the reader also reads statuses.
        let own = if self.writes() {
            ("contents", "write")
        } else {
            ("statuses", "read")
        };
        let usual = [
            ("issues", level),
            ("pull_requests", level),
            ("metadata", "read"),
            ("checks", level),
            ("actions", level),
            ("discussions", level),
        ];
        usual
            .into_iter()
            .chain([own])
            .map(|(name, level)| (name.to_owned(), level.to_owned()))
            .collect()
    }
}

impl FromRequestParts<Arc<GitHubState>> for AppCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, hub: &Arc<GitHubState>) -> Result<Self, Response> {
        check_agent(&parts.headers)?;
        let token = read_bearer_token(&parts.headers)?;
        match verify_app_token(token, time::OffsetDateTime::now_utc().unix_timestamp()) {
            Ok(id) => Ok(Self { id }),
            Err(problem) => {
                hub.log.violation(format!("App token: {problem}"));
                Err(refuse_request(
                    StatusCode::UNAUTHORIZED,
                    "A JSON web token could not be decoded",
                ))
            }
        }
    }
}

fn check_agent(headers: &HeaderMap) -> Result<(), Response> {
    // GitHub answers 403 to requests without a user agent.
    if header_text(headers, "user-agent").is_empty() {
        return Err(refuse_request(
            StatusCode::FORBIDDEN,
            "Request forbidden by administrative rules. A User-Agent is required",
        ));
    }
    Ok(())
}

fn read_bearer_token(headers: &HeaderMap) -> Result<&str, Response> {
    let value = header_text(headers, "authorization");
    // GitHub accepts the schemes `Bearer` and `token`, in any case.
    let token = value
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token"));
    token
        .map(|(_, token)| token.trim())
        .ok_or_else(|| refuse_request(StatusCode::UNAUTHORIZED, "Requires authentication"))
}

/// Verifies an App's RS256 token and returns the App's id.
fn verify_app_token(token: &str, now: i64) -> Result<u64, &'static str> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("not three parts");
    };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "not base64url");
    let json = |part: &str| serde_json::from_slice::<Value>(&decode(part)?).map_err(|_| "not JSON");
    // Another algorithm, such as `none`, would permit forged tokens.
    if json(header)?["alg"] != "RS256" {
        return Err("alg is not RS256");
    }
    let signed = format!("{header}.{claims}");
    ring::signature::UnparsedPublicKey::new(&ring::signature::RSA_PKCS1_2048_8192_SHA256, APP_PUBLIC_KEY)
        .verify(signed.as_bytes(), &decode(signature)?)
        .map_err(|_| "wrong signature")?;
    let claims = json(claims)?;
    let issued = claims["iat"].as_i64().ok_or("no iat")?;
    let expires = claims["exp"].as_i64().ok_or("no exp")?;
    // The claims tolerate a clock difference in both directions.
    if issued > now + CLOCK_SKEW || expires <= now || expires > now + MAX_APP_TOKEN_AGE + CLOCK_SKEW {
        return Err("iat or exp out of bounds");
    }
    // GitHub accepts the issuer as a number or as a string.
    let issuer = claims["iss"]
        .as_u64()
        .or_else(|| claims["iss"].as_str()?.parse().ok())
        .ok_or("no iss")?;
    [READER_APP_ID, WRITER_APP_ID]
        .into_iter()
        .find(|&id| id == issuer)
        .ok_or("unknown App")
}

impl FakeGitHub {
    /// Replaces an App's permissions; each is a name with `read` or `write`.
    pub fn set_app_permissions(&self, app: u64, permissions: &[(&str, &str)]) {
        let permissions = permissions
            .iter()
            .map(|(name, level)| ((*name).to_owned(), (*level).to_owned()));
        self.hub.world().permissions.insert(app, permissions.collect());
    }

    /// Replaces the webhook events that an App is subscribed to.
    pub fn set_app_events(&self, app: u64, events: &[&str]) {
        let events = events.iter().map(|event| (*event).to_owned());
        self.hub.world().events.insert(app, events.collect());
    }

    /// Restores the default permissions and events of both Apps.
    pub fn reset_app_permissions(&self) {
        let mut world = self.hub.world();
        world.permissions.clear();
        world.events.clear();
    }

    /// Revokes all installation tokens made so far.
    pub fn revoke_tokens(&self) {
        self.hub.world().tokens.clear();
    }
}
