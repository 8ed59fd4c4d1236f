//! Bearer tokens: stored as hashes, compared in constant time, each with a role and a scope.

use std::collections::BTreeMap;

use api::types::Role;
use axum::{
    extract::{FromRequestParts, Path},
    http::{header::AUTHORIZATION, request::Parts},
};
use bootstrap::settings::{Error, TextList};
use domain::TicketKey;
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::{
    ApiProblem, ApiState,
    person::resolve_acting_caller,
    scope::{TokenCaller, TokenScope},
    ticket_key::TicketScoped,
};
use crate::hex;

/// Token of the API, stored as a hash only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiToken {
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
    /// Role of the bearer.
    pub role: Role,
    /// Repositories whose issues, pull requests and discussions the token reaches. Without this and `projects`: everything.
    #[serde(default)]
    pub repositories: Option<TextList>,
    /// Jira projects whose issues the token reaches.
    #[serde(default)]
    pub projects: Option<TextList>,
    /// True for a token that acts for people, such as that of a console with its own login. Every call must name a person,
    /// and counts as theirs.
    #[serde(default)]
    pub speaks_for_people: bool,
}

/// Tokens that may use the API.
#[derive(Debug, Default)]
pub(crate) struct ApiTokens(Vec<KnownToken>);

#[derive(Debug)]
struct KnownToken {
    hash: [u8; 32],
    caller: TokenCaller,
    speaks_for_people: bool,
}

impl ApiTokens {
    /// Parses the settings.
    ///
    /// # Errors
    /// Names the key of an invalid hash or scope.
    pub(crate) fn new(tokens: &BTreeMap<String, ApiToken>) -> Result<Self, Error> {
        let known = tokens.iter().map(|(name, token)| parse_token(name, token));
        known.collect::<Result<_, _>>().map(Self)
    }

    /// Owner of a token, and whether the token acts for people. Every hash is compared in full, so that the time reveals
    /// nothing.
    fn owner(&self, token: &str) -> Option<(TokenCaller, bool)> {
        let hash = digest(&SHA256, token.as_bytes());
        self.0.iter().fold(None, |found, known| {
            let difference = known
                .hash
                .iter()
                .zip(hash.as_ref())
                .fold(0, |sum, (a, b)| sum | (a ^ b));
            if difference == 0 {
                Some((known.caller.clone(), known.speaks_for_people))
            } else {
                found
            }
        })
    }
}

fn parse_token(name: &str, token: &ApiToken) -> Result<KnownToken, Error> {
    let wrong = |key: &str, problem: String| Error::new(format!("ingest.api_tokens.{name}.{key}"), problem);
    let hash = hex::decode_sha256(&token.sha256).ok_or_else(|| {
        wrong(
            "sha256",
            "must be the SHA-256 of the token, 64 hexadecimal digits".to_owned(),
        )
    })?;
    let scope = TokenScope::new(token.repositories.as_ref(), token.projects.as_ref());
    let caller = TokenCaller {
        name: name.to_owned(),
        role: token.role,
        scope: scope.map_err(|(key, problem)| wrong(key, problem))?,
    };
    Ok(KnownToken {
        hash,
        caller,
        speaks_for_people: token.speaks_for_people,
    })
}

fn authorize_request(parts: &Parts, state: &ApiState, least: Role) -> Result<TokenCaller, ApiProblem> {
    let header = parts
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let (scheme, token) = header
        .and_then(|text| text.split_once(' '))
        .ok_or(ApiProblem::Unauthorized)?;
    let bearer = scheme.eq_ignore_ascii_case("bearer");
    let (owner, speaks_for_people) = state
        .tokens
        .owner(token.trim())
        .filter(|_| bearer)
        .ok_or(ApiProblem::Unauthorized)?;
    // The role of the person counts, which may be less than that of the token.
    let caller = resolve_acting_caller(owner, speaks_for_people, &parts.headers)?;
    if caller.role < least {
        Err(ApiProblem::Forbidden)
    } else {
        Ok(caller)
    }
}

/// Proof that the caller has a role, independent of the caller's scope.
pub(super) trait RoleProof: Sized + Send {
    const LEAST: Role;

    fn of(caller: TokenCaller) -> Self;

    fn caller(&self) -> &TokenCaller;

    fn from_parts(parts: &Parts, state: &ApiState) -> Result<Self, ApiProblem> {
        authorize_request(parts, state, Self::LEAST).map(Self::of)
    }
}

/// Proof that the caller may read.
pub(crate) struct ViewerProof(pub(crate) TokenCaller);

/// Proof that the caller may dispatch, decide and stop.
pub(crate) struct OperatorProof(pub(crate) TokenCaller);

/// Proof that the caller may perform irreversible actions.
pub(crate) struct AdminProof(pub(crate) TokenCaller);

/// Proof that the caller may act on the whole installation. A limited token never has it.
pub(crate) struct InstallationAdminProof(pub(crate) TokenCaller);

macro_rules! proof {
    ($proof:ident, $least:expr) => {
        impl RoleProof for $proof {
            const LEAST: Role = $least;

            fn of(caller: TokenCaller) -> Self {
                Self(caller)
            }

            fn caller(&self) -> &TokenCaller {
                &self.0
            }
        }
    };
}
proof!(ViewerProof, Role::Viewer);
proof!(OperatorProof, Role::Operator);
proof!(AdminProof, Role::Admin);

impl FromRequestParts<ApiState> for ViewerProof {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiProblem> {
        Self::from_parts(parts, state)
    }
}

impl FromRequestParts<ApiState> for OperatorProof {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiProblem> {
        Self::from_parts(parts, state)
    }
}

impl FromRequestParts<ApiState> for InstallationAdminProof {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiProblem> {
        let AdminProof(caller) = AdminProof::from_parts(parts, state)?;
        if caller.scope.is_all() {
            Ok(Self(caller))
        } else {
            Err(ApiProblem::Forbidden)
        }
    }
}

/// Run or ticket from the path, with proof of the caller's role and scope. Handlers take this instead of the path, so none
/// can reach anything outside the scope.
pub(super) struct InScope<P, T>(pub(super) P, pub(super) T);

impl<P: RoleProof, T: TicketScoped> FromRequestParts<ApiState> for InScope<P, T> {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiProblem> {
        let proof = P::from_parts(parts, state)?;
        let named = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) = named.map_err(|rejection| ApiProblem::BadRequest(rejection.body_text()))?;
        let named = T::read(&text)?;
        // The check precedes every read: an object outside the scope gets the same answer as a missing one.
        let scope = &proof.caller().scope;
        if !scope.has_ticket(named.ticket()) {
            return Err(named.unknown());
        }
        if !matches!(named.ticket(), TicketKey::Jira { .. }) {
            return Ok(Self(proof, named));
        }
        let keys = state.router()?.facts.keys();
        match keys.identity(named.ticket()).await? {
            // A moved ticket belongs to its present project.
            Some(identity) if !scope.has_ticket(&identity.key) => Err(named.unknown()),
            Some(identity) => Ok(Self(proof, named.among(identity.ticket))),
            None => Ok(Self(proof, named)),
        }
    }
}
