//! Bearer tokens: known by hash only, compared in constant time, each with a role.

use std::collections::BTreeMap;

use api::types::Role;
use axum::{
    extract::FromRequestParts,
    http::{header::AUTHORIZATION, request::Parts},
};
use bootstrap::settings::Error;
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use super::{ApiState, Problem};
use crate::hex;

/// A token of the API, known by its hash only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiToken {
    /// SHA-256 of the token, hexadecimal.
    pub sha256: String,
    /// What its bearer may do.
    pub role: Role,
}

/// Who may use the API.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Vec<Known>);

#[derive(Debug)]
struct Known {
    name: String,
    hash: [u8; 32],
    role: Role,
}

/// Somebody with a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl Tokens {
    /// Refuses a hash that is none, naming its key.
    pub(crate) fn new(tokens: &BTreeMap<String, ApiToken>) -> Result<Self, Error> {
        let known = tokens
            .iter()
            .map(|(name, token)| match hex::decode(&token.sha256) {
                Some(hash) => Ok(Known {
                    name: name.clone(),
                    hash,
                    role: token.role,
                }),
                None => Err(Error::new(
                    format!("ingest.api_tokens.{name}.sha256"),
                    "must be the SHA-256 of the token, 64 hexadecimal digits",
                )),
            });
        known.collect::<Result<_, _>>().map(Self)
    }

    /// The owner of a token. Every hash is compared, whole.
    pub(crate) fn caller(&self, token: &str) -> Option<Caller> {
        let hash = digest(&SHA256, token.as_bytes());
        self.0.iter().fold(None, |found, known| {
            let difference = known
                .hash
                .iter()
                .zip(hash.as_ref())
                .fold(0, |sum, (a, b)| sum | (a ^ b));
            let caller = || Caller {
                name: known.name.clone(),
                role: known.role,
            };
            if difference == 0 { Some(caller()) } else { found }
        })
    }
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
    let caller = state
        .tokens
        .caller(token.trim())
        .filter(|_| bearer)
        .ok_or(Problem::Unauthorized)?;
    if caller.role < least {
        Err(Problem::Forbidden)
    } else {
        Ok(caller)
    }
}

/// Proof that the caller may read.
pub(crate) struct Viewer(pub(crate) Caller);

/// Proof that the caller may dispatch, decide and stop.
pub(crate) struct Operator(pub(crate) Caller);

/// Proof that the caller may do what concerns everybody.
pub(crate) struct Admin(pub(crate) Caller);

impl FromRequestParts<ApiState> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        authorize(parts, state, Role::Admin).map(Self)
    }
}

impl FromRequestParts<ApiState> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        authorize(parts, state, Role::Viewer).map(Self)
    }
}

impl FromRequestParts<ApiState> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Problem> {
        authorize(parts, state, Role::Operator).map(Self)
    }
}
