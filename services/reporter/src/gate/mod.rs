//! The git gate: read-only smart HTTP over the mirrors, and contents of Git LFS, for executors with a grant.
//!
//! The gate verifies the grant from the head of a request, before it reads a byte of the body. Clones have a bounded
//! number of slots, and each has a deadline that its client cannot extend.

mod slots;
mod upload_pack;

use std::{io, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{FromRequestParts, Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bootstrap::{
    http::{BodyError, RequestBodies},
    trace,
};
use domain::{CommitId, RepositoryName, RunId, cause::format_error_chain};
use futures::StreamExt as _;
use git::{BareRepository, LfsOid};
use grant::{GrantAudience, GrantVerifier};
use serde::Deserialize;
use tokio_util::io::ReaderStream;
use tracing::{Instrument as _, Span};

use self::{slots::CloneSlots, upload_pack::UploadPackProcess};
use crate::{
    effect_error::EffectError,
    large_files::{LfsLibrary, LfsView},
    mirror::{MirrorView, RepositoryMirrors, WantedHead, run_blocking},
};

// Limit for the wants and haves of a large repository. git sends at most a few hundred kilobytes.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;
// Longest wait for a fetch before the caller gets its progress. It is shorter than git's limit on a silent server.
const PATIENCE: Duration = Duration::from_secs(20);
// Memory for all request bodies that are read at the same time.
const BODY_MEMORY: usize = 64 * 1024 * 1024;

/// State that the routes share.
#[derive(Clone)]
pub(crate) struct GitGate {
    mirrors: Arc<RepositoryMirrors>,
    lfs: Arc<LfsLibrary>,
    verifier: GrantVerifier,
    slots: CloneSlots,
    bodies: RequestBodies,
    deadline: Duration,
}

impl GitGate {
    /// Builds a gate over the mirrors. The verifier checks grants, and the deadline limits each clone and fetch.
    pub(crate) fn new(
        (mirrors, lfs): (Arc<RepositoryMirrors>, Arc<LfsLibrary>),
        verifier: GrantVerifier,
        deadline: Duration,
    ) -> Self {
        Self {
            mirrors,
            lfs,
            verifier,
            slots: CloneSlots::default(),
            bodies: RequestBodies::new(BODY_MEMORY, MAX_REQUEST_BYTES),
            deadline,
        }
    }

    /// Returns the routes under `/git`.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/git/{owner}/{name}/info/refs", get(advertise_refs))
            .route("/git/{owner}/{name}/digest", get(digest_refs))
            .route("/git/{owner}/{name}/git-upload-pack", post(upload_pack))
            .route("/git/{owner}/{name}/git-receive-pack", post(refuse_push))
            .route("/git/{owner}/{name}/lfs/{commit}", get(list_contents))
            .route("/git/{owner}/{name}/lfs/{commit}/{oid}", get(read_content))
            .with_state(self)
    }

    fn admit(&self, headers: &HeaderMap, owner: &str, name: &str) -> Result<AdmittedRequest, GateRefusal> {
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            .ok_or(GateRefusal::NoGrant)?;
        let granted = self
            .verifier
            .verify(token.trim(), GrantAudience::Gate, bootstrap::read_wall_clock())
            .map_err(|refused| GateRefusal::BadGrant(refused.to_string()))?;
        let name = name.strip_suffix(".git").ok_or(GateRefusal::NotFound)?;
        let wanted: RepositoryName = format!("{owner}/{name}")
            .parse()
            .map_err(|_| GateRefusal::NotFound)?;
        if granted.repository == wanted {
            Ok(AdmittedRequest {
                repository: wanted,
                run: granted.run,
            })
        } else {
            Err(GateRefusal::OtherRepository)
        }
    }

    /// Returns the mirror, at most 5 s behind the remote and with the head that the headers request. A commit that the
    /// headers report is in it if the remote has it.
    async fn prepare_mirror(
        &self,
        admitted: &AdmittedRequest,
        headers: &HeaderMap,
    ) -> Result<Arc<std::path::Path>, GateRefusal> {
        let (wanted, reported) = (wanted_head(headers), read_reported_commit(headers));
        let viewed = self
            .mirrors
            .view(&admitted.repository, &wanted, reported.as_ref(), PATIENCE);
        match viewed.await? {
            MirrorView::Ready(dir) => Ok(dir),
            MirrorView::NotReady { percent } => Err(GateRefusal::NotReady(percent)),
            MirrorView::RefusedBranch { reason } => Err(GateRefusal::RefusedBranch { reason }),
        }
    }

    async fn spawn(
        &self,
        admitted: &AdmittedRequest,
        dir: Arc<std::path::Path>,
        protocol: Option<&str>,
        extra: &[&str],
        input: Bytes,
    ) -> Result<UploadPackProcess, GateRefusal> {
        let slot = self.slots.take(&admitted.run).await.ok_or(GateRefusal::Busy)?;
        upload_pack::spawn_upload_pack(dir, protocol, extra, input, self.deadline, slot)
            .map_err(|error| GateRefusal::Unavailable(format_error_chain(&error)))
    }
}

/// Proof of a grant for the repository in the request's path.
struct AdmittedRequest {
    repository: RepositoryName,
    run: RunId,
}

/// Parts of a path that every route has.
#[derive(Deserialize)]
struct RepositoryPath {
    owner: String,
    name: String,
}

impl FromRequestParts<GitGate> for AdmittedRequest {
    type Rejection = GateRefusal;

    async fn from_request_parts(parts: &mut Parts, gate: &GitGate) -> Result<Self, GateRefusal> {
        let path = Path::<RepositoryPath>::from_request_parts(parts, gate).await;
        let Path(RepositoryPath { owner, name }) = path.map_err(|_| GateRefusal::NotFound)?;
        gate.admit(&parts.headers, &owner, &name)
    }
}

/// Reason of a refusal, worded for the executor.
#[derive(Debug, thiserror::Error)]
enum GateRefusal {
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
    #[error("no such content here")]
    NoContent,
    #[error("the rules of the repository do not read Git LFS (repository.lfs)")]
    LfsOff,
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

impl IntoResponse for GateRefusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoGrant | Self::BadGrant(_) => StatusCode::UNAUTHORIZED,
            Self::OtherRepository | Self::ReadOnly | Self::NotSmart | Self::LfsOff => StatusCode::FORBIDDEN,
            Self::NotFound | Self::NoContent => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Body(error) => error.status(),
            Self::RefusedBranch { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Busy | Self::Unavailable(_) | Self::NotReady(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let text = format!("{self}\n");
        if let Self::NotReady(_) = self {
            (status, [(header::RETRY_AFTER, "5")], text).into_response()
        } else {
            (status, text).into_response()
        }
    }
}

impl From<EffectError> for GateRefusal {
    fn from(trouble: EffectError) -> Self {
        if let EffectError::Missing(_) = trouble {
            return Self::NotFound;
        }
        let detail = format_error_chain(&trouble);
        tracing::warn!(error = %detail, "mirror not fetched");
        // Each retry has the same result.
        if git::is_about_unusable_repository(&detail) {
            return Self::RefusedBranch { reason: detail };
        }
        Self::Unavailable(detail)
    }
}

#[derive(Deserialize)]
struct ServiceQuery {
    #[serde(default)]
    service: String,
}

async fn advertise_refs(
    admitted: AdmittedRequest,
    State(gate): State<GitGate>,
    Query(ServiceQuery { service }): Query<ServiceQuery>,
    headers: HeaderMap,
) -> Result<Response, GateRefusal> {
    match service.as_str() {
        "git-upload-pack" => {}
        "git-receive-pack" => return Err(GateRefusal::ReadOnly),
        _ => return Err(GateRefusal::NotSmart),
    }
    let span = clone_span(&admitted, &headers);
    list_refs(admitted, gate, headers).instrument(span).await
}

/// Builds the span. Only a request with a grant gets one, so that strangers cannot write into a trace.
fn clone_span(admitted: &AdmittedRequest, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        "git gate",
        otel.kind = "server",
        run = %admitted.run,
        repository = %admitted.repository,
    );
    trace::join_caller_trace(&span, headers);
    span
}

async fn list_refs(
    admitted: AdmittedRequest,
    gate: GitGate,
    headers: HeaderMap,
) -> Result<Response, GateRefusal> {
    let dir = gate.prepare_mirror(&admitted, &headers).await?;
    let protocol = read_git_protocol(&headers);
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
    Ok(build_git_response(
        "application/x-git-upload-pack-advertisement",
        process.output(opening),
    ))
}

/// Answers the digest of the references that a fetch would receive now.
///
/// An executor with the same references fetches nothing.
async fn digest_refs(
    admitted: AdmittedRequest,
    State(gate): State<GitGate>,
    headers: HeaderMap,
) -> Result<Response, GateRefusal> {
    let span = clone_span(&admitted, &headers);
    let digesting = async {
        let dir = gate.prepare_mirror(&admitted, &headers).await?;
        let digest = run_blocking(move || BareRepository::open(&dir)?.reference_digest()).await?;
        Ok(build_git_response("text/plain", digest.into()))
    };
    digesting.instrument(span).await
}

async fn upload_pack(
    admitted: AdmittedRequest,
    State(gate): State<GitGate>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, GateRefusal> {
    let span = clone_span(&admitted, &headers);
    serve_pack(admitted, gate, headers, body).instrument(span).await
}

async fn serve_pack(
    admitted: AdmittedRequest,
    gate: GitGate,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, GateRefusal> {
    let body = gate.bodies.read(&headers, body).await?;
    let body = match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => body,
        Some(b"gzip" | b"x-gzip") => decompress_body(&body)?,
        Some(_) => return Err(GateRefusal::BadRequest("unknown content encoding")),
    };
    let dir = gate.mirrors.existing(&admitted.repository).await?;
    let process = gate
        .spawn(&admitted, dir, read_git_protocol(&headers), &[], body)
        .await?;
    Ok(build_git_response(
        "application/x-git-upload-pack-result",
        process.output(Bytes::new()),
    ))
}

/// Parts of a path to contents of Git LFS.
#[derive(Deserialize)]
struct ContentPath {
    commit: String,
    #[serde(default)]
    oid: String,
}

impl ContentPath {
    fn commit(&self) -> Result<CommitId, GateRefusal> {
        self.commit.parse().map_err(|_| GateRefusal::NotFound)
    }
}

async fn list_contents(
    admitted: AdmittedRequest,
    State(gate): State<GitGate>,
    Path(path): Path<ContentPath>,
    headers: HeaderMap,
) -> Result<Response, GateRefusal> {
    let (span, commit) = (clone_span(&admitted, &headers), path.commit()?);
    let viewing = async {
        match gate.lfs.view(&admitted.repository, &commit, PATIENCE).await? {
            LfsView::Off => Err(GateRefusal::LfsOff),
            LfsView::NotReady { percent } => Err(GateRefusal::NotReady(percent)),
            LfsView::Ready(listing) => Ok(Json(&*listing).into_response()),
        }
    };
    viewing.instrument(span).await
}

async fn read_content(
    admitted: AdmittedRequest,
    State(gate): State<GitGate>,
    Path(path): Path<ContentPath>,
) -> Result<Response, GateRefusal> {
    let (commit, oid) = (path.commit()?, path.oid.parse::<LfsOid>());
    let oid = oid.map_err(|_| GateRefusal::NoContent)?;
    let found = gate
        .lfs
        .find_content(&admitted.repository, &commit, (&oid, PATIENCE));
    let file = found.await?.ok_or(GateRefusal::NoContent)?;
    let served = serve_content(&file, gate.deadline).await;
    served.map_err(|error| GateRefusal::Unavailable(format_error_chain(&error)))
}

/// Serves a content of Git LFS. After the deadline the body ends early, so that a client does not take it as complete.
async fn serve_content(file: &std::path::Path, deadline: Duration) -> io::Result<Response> {
    let file = tokio::fs::File::open(file).await?;
    let size = file.metadata().await?.len();
    let parts = ReaderStream::new(file).take_until(Box::pin(tokio::time::sleep(deadline)));
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_LENGTH, size.to_string()),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

async fn refuse_push() -> GateRefusal {
    GateRefusal::ReadOnly
}

fn build_git_response(content_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        // gitprotocol-http asks servers to disable caching: the refs change with every fetch of the
        // mirror.
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

/// Reads the commit that GitHub reported in the requested branch.
fn read_reported_commit(headers: &HeaderMap) -> Option<CommitId> {
    let value = headers.get(git::REPORTED_COMMIT)?;
    value.to_str().ok()?.parse().ok()
}

fn read_git_protocol(headers: &HeaderMap) -> Option<&str> {
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

fn decompress_body(body: &[u8]) -> Result<Bytes, GateRefusal> {
    let mut plain = Vec::new();
    // One byte more than the limit shows that the body is too large, so a small gzip body cannot expand without
    // bound.
    let limit = MAX_REQUEST_BYTES as u64 + 1;
    io::Read::read_to_end(
        &mut io::Read::take(flate2::read::GzDecoder::new(body), limit),
        &mut plain,
    )
    .map_err(|_| GateRefusal::BadRequest("the body is not gzip"))?;
    if plain.len() > MAX_REQUEST_BYTES {
        return Err(GateRefusal::BadRequest("the body is too large"));
    }
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn compress_body(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_request_is_read_up_to_limit() {
        assert_eq!(
            decompress_body(&compress_body(b"0032want")).unwrap(),
            Bytes::from_static(b"0032want")
        );
        assert!(matches!(
            decompress_body(&compress_body(&vec![0; MAX_REQUEST_BYTES + 1])),
            Err(GateRefusal::BadRequest(_))
        ));
        assert!(matches!(
            decompress_body(b"garbage"),
            Err(GateRefusal::BadRequest(_))
        ));
    }

    #[test]
    fn only_a_plain_protocol_header_reaches_git() {
        let with = |value: &'static str| {
            HeaderMap::from_iter([("git-protocol".parse().unwrap(), HeaderValue::from_static(value))])
        };
        let given: [axum::http::HeaderMap; 2] = [with("version=2"), with("version=2; rm")];
        assert_eq!(read_git_protocol(&given[0]), Some("version=2"));
        assert_eq!(read_git_protocol(&given[1]), None);
    }
}
