//! The git gate: read-only smart HTTP over the mirrors, for executors with a grant.
//!
//! The gate verifies the grant from the head of a request, before it reads a byte of the body. Clones have a bounded
//! number of slots, and each has a deadline that its client cannot extend.

mod slots;
mod trace;
mod upload_pack;

use std::{io, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{FromRequestParts, Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bootstrap::http::{Bodies, BodyError};
use domain::{RepositoryName, RunId, cause::chain};
use grant::{Audience, Verifier};
use serde::Deserialize;
use tracing::Instrument as _;

use self::{slots::Slots, upload_pack::Process};
use crate::{
    mirror::{MirrorView, Mirrors, WantedHead},
    trouble::Trouble,
};

// Limit for the wants and haves of a large repository. git sends at most a few hundred kilobytes.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;
// Longest wait for a fetch before the caller gets its progress. It is shorter than git's limit on a silent server.
const PATIENCE: Duration = Duration::from_secs(20);
// Memory for all request bodies that are read at the same time.
const BODY_MEMORY: usize = 64 * 1024 * 1024;

/// State that the routes share.
#[derive(Clone)]
pub(crate) struct Gate {
    mirrors: Arc<Mirrors>,
    verifier: Verifier,
    slots: Slots,
    bodies: Bodies,
    deadline: Duration,
}

impl Gate {
    /// Builds a gate over the mirrors. The verifier checks grants, and the deadline limits each clone and fetch.
    pub(crate) fn new(mirrors: Arc<Mirrors>, verifier: Verifier, deadline: Duration) -> Self {
        Self {
            mirrors,
            verifier,
            slots: Slots::default(),
            bodies: Bodies::new(BODY_MEMORY, MAX_REQUEST_BYTES),
            deadline,
        }
    }

    /// Returns the routes under `/git`.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/git/{owner}/{name}/info/refs", get(advertise))
            .route("/git/{owner}/{name}/git-upload-pack", post(upload_pack))
            .route("/git/{owner}/{name}/git-receive-pack", post(refuse_push))
            .with_state(self)
    }

    fn admit(&self, headers: &HeaderMap, owner: &str, name: &str) -> Result<Admitted, Refusal> {
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or(Refusal::NoGrant)?;
        let granted = self
            .verifier
            .verify(token.trim(), Audience::Gate, bootstrap::now())
            .map_err(|refused| Refusal::BadGrant(refused.to_string()))?;
        let name = name.strip_suffix(".git").ok_or(Refusal::NotFound)?;
        let wanted: RepositoryName = format!("{owner}/{name}").parse().map_err(|_| Refusal::NotFound)?;
        if granted.repository == wanted {
            Ok(Admitted {
                repository: wanted,
                run: granted.run,
            })
        } else {
            Err(Refusal::OtherRepository)
        }
    }

    async fn spawn(
        &self,
        admitted: &Admitted,
        dir: Arc<std::path::Path>,
        protocol: Option<&str>,
        extra: &[&str],
        input: Bytes,
    ) -> Result<Process, Refusal> {
        let slot = self.slots.take(&admitted.run).await.ok_or(Refusal::Busy)?;
        upload_pack::spawn(dir, protocol, extra, input, self.deadline, slot)
            .map_err(|error| Refusal::Unavailable(chain(&error)))
    }
}

/// Proof of a grant for the repository in the request's path.
struct Admitted {
    repository: RepositoryName,
    run: RunId,
}

impl FromRequestParts<Gate> for Admitted {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, gate: &Gate) -> Result<Self, Refusal> {
        let path = Path::<(String, String)>::from_request_parts(parts, gate).await;
        let Path((owner, name)) = path.map_err(|_| Refusal::NotFound)?;
        gate.admit(&parts.headers, &owner, &name)
    }
}

/// Reason of a refusal, worded for the executor.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("a grant is needed: Authorization: Bearer <grant>")]
    NoGrant,
    #[error("the grant is not valid: {0}")]
    BadGrant(String),
    #[error("the grant is for another repository")]
    OtherRepository,
    #[error("this gate is read-only; changes go through the reporter")]
    ReadOnly,
    #[error("only the smart protocol of git is served here")]
    NotSmart,
    #[error("no such repository here")]
    NotFound,
    #[error("the request cannot be read: {0}")]
    BadRequest(&'static str),
    #[error("{0}")]
    Body(#[from] BodyError),
    #[error("too many clones at once; try again")]
    Busy,
    #[error("the repository cannot be fetched at the moment: {0}")]
    Unavailable(String),
    #[error("{}: {}", git::NOT_READY, .0.map_or_else(|| "first clone".to_owned(), |percent| format!("{percent} %")))]
    NotReady(Option<u8>),
    #[error("{}: {reason}", git::REFUSED_BRANCH)]
    RefusedBranch { reason: String },
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoGrant | Self::BadGrant(_) => StatusCode::UNAUTHORIZED,
            Self::OtherRepository | Self::ReadOnly | Self::NotSmart => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Body(error) => error.status(),
            Self::RefusedBranch { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Busy | Self::Unavailable(_) | Self::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let text = format!("{self}\n");
        match self {
            Self::NotReady(_) => (status, [(header::RETRY_AFTER, "5")], text).into_response(),
            _ => (status, text).into_response(),
        }
    }
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Missing(_) => Self::NotFound,
            other => {
                tracing::warn!(error = %chain(&other), "mirror not fetched");
                Self::Unavailable(chain(&other))
            }
        }
    }
}

#[derive(Deserialize)]
struct Service {
    #[serde(default)]
    service: String,
}

async fn advertise(
    admitted: Admitted,
    State(gate): State<Gate>,
    Query(Service { service }): Query<Service>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    match service.as_str() {
        "git-upload-pack" => {}
        "git-receive-pack" => return Err(Refusal::ReadOnly),
        _ => return Err(Refusal::NotSmart),
    }
    let span = trace::span(&admitted, &headers);
    list(admitted, gate, headers).instrument(span).await
}

async fn list(admitted: Admitted, gate: Gate, headers: HeaderMap) -> Result<Response, Refusal> {
    let wanted = wanted_head(&headers);
    let dir = match gate.mirrors.view(&admitted.repository, &wanted, PATIENCE).await? {
        MirrorView::Ready(dir) => dir,
        MirrorView::NotReady { percent } => return Err(Refusal::NotReady(percent)),
        MirrorView::RefusedBranch { reason } => return Err(Refusal::RefusedBranch { reason }),
    };
    let protocol = protocol(&headers);
    // Protocol version 2 starts without the service line of the older versions (gitprotocol-http).
    let opening = if protocol.is_some_and(|version| version.contains("version=2")) {
        Bytes::new()
    } else {
        Bytes::from_static(b"001e# service=git-upload-pack\n0000")
    };
    let arguments = ["--advertise-refs"];
    let process = gate
        .spawn(&admitted, dir, protocol, &arguments, Bytes::new())
        .await?;
    Ok(answer(
        "application/x-git-upload-pack-advertisement",
        process.output(opening),
    ))
}

async fn upload_pack(
    admitted: Admitted,
    State(gate): State<Gate>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let span = trace::span(&admitted, &headers);
    pack(admitted, gate, headers, body).instrument(span).await
}

async fn pack(admitted: Admitted, gate: Gate, headers: HeaderMap, body: Body) -> Result<Response, Refusal> {
    let body = gate.bodies.read(&headers, body).await?;
    let body = match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => body,
        Some(b"gzip" | b"x-gzip") => unzip(&body)?,
        Some(_) => return Err(Refusal::BadRequest("unknown content encoding")),
    };
    let dir = gate.mirrors.existing(&admitted.repository).await?;
    let process = gate.spawn(&admitted, dir, protocol(&headers), &[], body).await?;
    Ok(answer(
        "application/x-git-upload-pack-result",
        process.output(Bytes::new()),
    ))
}

async fn refuse_push() -> Refusal {
    Refusal::ReadOnly
}

fn answer(content_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, body).into_response()
}

/// Reads the branch or commit that the executor requests from the headers.
fn wanted_head(headers: &HeaderMap) -> WantedHead {
    // Branch names need not be ASCII.
    let text = |name| {
        headers
            .get(name)
            .and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    };
    let commit = text(git::WANTED_COMMIT).and_then(|commit| commit.parse().ok());
    let branch = text(git::WANTED_BRANCH)
        .map(str::to_owned)
        .filter(|branch| !branch.is_empty() && branch.len() <= 512);
    WantedHead {
        // A commit is sufficient, and its branch may be gone.
        branch: branch.filter(|_| commit.is_none()),
        commit,
    }
}

fn protocol(headers: &HeaderMap) -> Option<&str> {
    // The value becomes an environment variable of git, so only the characters of git's own values pass.
    let is_plain = |value: &&str| {
        value.len() <= 64
            && value
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '=' | ':' | '.' | '-'))
    };
    headers
        .get("git-protocol")
        .and_then(|value| value.to_str().ok())
        .filter(is_plain)
}

fn unzip(body: &[u8]) -> Result<Bytes, Refusal> {
    let mut plain = Vec::new();
    // One byte more than the limit shows that the body is too large, so a small gzip body cannot expand without
    // bound.
    let limit = MAX_REQUEST_BYTES as u64 + 1;
    io::Read::read_to_end(
        &mut io::Read::take(flate2::read::GzDecoder::new(body), limit),
        &mut plain,
    )
    .map_err(|_| Refusal::BadRequest("the body is not gzip"))?;
    if plain.len() > MAX_REQUEST_BYTES {
        return Err(Refusal::BadRequest("the body is too large"));
    }
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn zip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_request_is_read_up_to_limit() {
        assert_eq!(unzip(&zip(b"0032want")).unwrap(), Bytes::from_static(b"0032want"));
        assert!(matches!(
            unzip(&zip(&vec![0; MAX_REQUEST_BYTES + 1])),
            Err(Refusal::BadRequest(_))
        ));
        assert!(matches!(unzip(b"garbage"), Err(Refusal::BadRequest(_))));
    }

    #[test]
    fn only_a_plain_protocol_header_reaches_git() {
        let with = |value: &'static str| {
            HeaderMap::from_iter([("git-protocol".parse().unwrap(), HeaderValue::from_static(value))])
        };
        let given: [axum::http::HeaderMap; 2] = [with("version=2"), with("version=2; rm")];
        assert_eq!(protocol(&given[0]), Some("version=2"));
        assert_eq!(protocol(&given[1]), None);
    }
}
