//! Bearer tokens: stored as hashes, compared in constant time, each with a role and a scope.

use std::collections::BTreeMap;

use api::types::Role;
use axum::{
    extract::{FromRequestParts, Path},
    http::{header::AUTHORIZATION, request::Parts},
};
use bootstrap::settings::{Error, TextList};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::{ApiState, Problem, caller::Caller, person::acting, scope::Scope, ticket_key::OfTicket};
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
pub(crate) struct Tokens(Vec<Known>);

#[derive(Debug)]
struct Known {
    hash: [u8; 32],
    caller: Caller,
    speaks_for_people: bool,
}

impl Tokens {
    /// Parses the settings.
    ///
    /// # Errors
    /// Names the key of an invalid hash or scope.
    pub(crate) fn new(tokens: &BTreeMap<String, ApiToken>) -> Result<Self, Error> {
        let known = tokens.iter().map(|(name, token)| known(name, token));
        known.collect::<Result<_, _>>().map(Self)
    }

    /// Owner of a token, and whether the token acts for people. Every hash is compared in full, so that the time reveals
    /// nothing.
    fn owner(&self, token: &str) -> Option<(Caller, bool)> {
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

fn known(name: &str, token: &ApiToken) -> Result<Known, Error> {
    let wrong = |key: &str, problem: String| Error::new(format!("ingest.api_tokens.{name}.{key}"), problem);
    let hash = hex::decode(&token.sha256).ok_or_else(|| {
        wrong(
            "sha256",
            "must be the SHA-256 of the token, 64 hexadecimal digits".to_owned(),
        )
    })?;
    let scope = Scope::new(token.repositories.as_ref(), token.projects.as_ref());
    let caller = Caller {
        name: name.to_owned(),
        role: token.role,
        scope: scope.map_err(|(key, problem)| wrong(key, problem))?,
    };
    Ok(Known {
        hash,
        caller,
        speaks_for_people: token.speaks_for_people,
    })
}

fn authorize(parts: &Parts, state: &ApiState, least: Role) -> Result<Caller, Problem> {
    let header = parts
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let (scheme, token) = header
        .and_then(|text| text.split_once(' '))
        .ok_or(Problem::Unauthorized)?;
    let bearer = scheme.eq_ignore_ascii_case("bearer");
    let (owner, speaks_for_people) = state
        .tokens
        .owner(token.trim())
        .filter(|_| bearer)
        .ok_or(Problem::Unauthorized)?;
    // The role of the person counts, which may be less than that of the token.
    let caller = acting(owner, speaks_for_people, &parts.headers)?;
    if caller.role < least {
        Err(Problem::Forbidden)
    } else {
        Ok(caller)
    }
}

/// Proof that the caller has a role, independent of the caller's scope.
pub(super) trait Proof: Sized + Send {
    const LEAST: Role;

    fn of(caller: Caller) -> Self;

    fn caller(&self) -> &Caller;

    fn from_parts(parts: &Parts, state: &ApiState) -> Result<Self, Problem> {
        authorize(parts, state, Self::LEAST).map(Self::of)
    }
}

/// Proof that the caller may read.
pub(crate) struct Viewer(pub(crate) Caller);

/// Proof that the caller may dispatch, decide and stop.
pub(crate) struct Operator(pub(crate) Caller);

/// Proof that the caller may perform irreversible actions.
pub(crate) struct Admin(pub(crate) Caller);

/// Proof that the caller may act on the whole installation. A limited token never has it.
pub(crate) struct Everybodys(pub(crate) Caller);

macro_rules! proof {
    ($proof:ident, $least:expr) => {
        impl Proof for $proof {
            const LEAST: Role = $least;

            fn of(caller: Caller) -> Self {
                Self(caller)
            }

            fn caller(&self) -> &Caller {
                &self.0
            }
        }
    };
}
proof!(Viewer, Role::Viewer);
proof!(Operator, Role::Operator);
proof!(Admin, Role::Admin);

impl FromRequestParts<ApiState> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        Self::from_parts(parts, state)
    }
}

impl FromRequestParts<ApiState> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        Self::from_parts(parts, state)
    }
}

impl FromRequestParts<ApiState> for Everybodys {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let Admin(caller) = Admin::from_parts(parts, state)?;
        match caller.scope.is_all() {
            true => Ok(Self(caller)),
            false => Err(Problem::Forbidden),
        }
    }
}

/// Run or ticket from the path, with proof of the caller's role and scope. Handlers take this instead of the path, so none
/// can reach anything outside the scope.
pub(super) struct InScope<P, T>(pub(super) P, pub(super) T);

impl<P: Proof, T: OfTicket> FromRequestParts<ApiState> for InScope<P, T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        let proof = P::from_parts(parts, state)?;
        let named = Path::<String>::from_request_parts(parts, state).await;
        let Path(text) = named.map_err(|rejection| Problem::BadRequest(rejection.body_text()))?;
        let named = T::read(&text)?;
        // The check precedes every read: an object outside the scope gets the same answer as a missing one.
        if proof.caller().scope.has_ticket(named.ticket()) {
            Ok(Self(proof, named))
        } else {
            Err(named.unknown())
        }
    }
}
