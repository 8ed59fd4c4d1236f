//! The git gate: read-only smart HTTP over the mirrors, for executors with a grant.

use std::{io, process::Stdio, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Path, Query, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use domain::RepositoryName;
use futures::stream::{self, StreamExt};
use grant::{Audience, Verifier};
use serde::Deserialize;
use tokio::{
    io::AsyncWriteExt,
    process::{Child, Command},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};
use tokio_util::io::ReaderStream;

use crate::{mirror::Mirrors, trouble::Trouble};

/// One clone or fetch takes no longer; a person's laptop clones a gigabyte in this time.
const DEADLINE: Duration = Duration::from_secs(600);
/// Wants and haves of a large repository; git sends at most a few hundred kilobytes.
const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;
/// `upload-pack` processes at once; the rest wait.
const MAX_PROCESSES: usize = 16;

/// Nothing of the machine's or a user's configuration.
const GIT_ENVIRONMENT: [(&str, &str); 4] = [
    ("LC_ALL", "C"),
    ("HOME", "/nonexistent"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
];

/// What the routes share.
#[derive(Clone)]
pub(crate) struct Gate {
    mirrors: Arc<Mirrors>,
    verifier: Verifier,
    processes: Arc<Semaphore>,
}

impl Gate {
    /// A gate over the mirrors for whoever holds a grant that verifies.
    pub(crate) fn new(mirrors: Arc<Mirrors>, verifier: Verifier) -> Self {
        Self {
            mirrors,
            verifier,
            processes: Arc::new(Semaphore::new(MAX_PROCESSES)),
        }
    }

    /// The routes under `/git`.
    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/git/{owner}/{name}/info/refs", get(advertise))
            .route("/git/{owner}/{name}/git-upload-pack", post(upload_pack))
            .route("/git/{owner}/{name}/git-receive-pack", post(refuse_push))
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(self)
    }

    fn admit(&self, headers: &HeaderMap, owner: &str, name: &str) -> Result<RepositoryName, Refusal> {
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
            Ok(wanted)
        } else {
            Err(Refusal::OtherRepository)
        }
    }
}

/// Why the gate stays closed.
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
    #[error("the repository cannot be fetched at the moment: {0}")]
    Unavailable(String),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::NoGrant | Self::BadGrant(_) => StatusCode::UNAUTHORIZED,
            Self::OtherRepository | Self::ReadOnly | Self::NotSmart => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, format!("{self}\n")).into_response()
    }
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Missing(_) => Self::NotFound,
            other => {
                tracing::warn!(error = %other, "mirror not fetched");
                Self::Unavailable(other.to_string())
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
    State(gate): State<Gate>,
    Path((owner, name)): Path<(String, String)>,
    Query(Service { service }): Query<Service>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let repository = gate.admit(&headers, &owner, &name)?;
    match service.as_str() {
        "git-upload-pack" => {}
        "git-receive-pack" => return Err(Refusal::ReadOnly),
        _ => return Err(Refusal::NotSmart),
    }
    let dir = gate.mirrors.fresh(&repository).await?;
    let protocol = protocol(&headers);
    let opening = if protocol.is_some_and(|version| version.contains("version=2")) {
        Bytes::new()
    } else {
        Bytes::from_static(b"001e# service=git-upload-pack\n0000")
    };
    let process = spawn(&gate, protocol, dir, &["--advertise-refs"], Bytes::new()).await?;
    Ok(answer(
        "application/x-git-upload-pack-advertisement",
        opening,
        process,
    ))
}

async fn upload_pack(
    State(gate): State<Gate>,
    Path((owner, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let repository = gate.admit(&headers, &owner, &name)?;
    let body = match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => body,
        Some(b"gzip" | b"x-gzip") => unzip(&body)?,
        Some(_) => return Err(Refusal::BadRequest("unknown content encoding")),
    };
    let dir = gate.mirrors.existing(&repository).await?;
    let process = spawn(&gate, protocol(&headers), dir, &[], body).await?;
    Ok(answer(
        "application/x-git-upload-pack-result",
        Bytes::new(),
        process,
    ))
}

async fn refuse_push() -> Refusal {
    Refusal::ReadOnly
}

/// A running `git upload-pack`: dropping it kills the process and frees its place.
struct UploadPack {
    child: Child,
    _place: OwnedSemaphorePermit,
    /// Held: the process reads from it.
    _mirror: Arc<std::path::Path>,
    deadline: Instant,
}

async fn spawn(
    gate: &Gate,
    protocol: Option<&str>,
    dir: Arc<std::path::Path>,
    extra: &[&str],
    input: Bytes,
) -> Result<UploadPack, Refusal> {
    let unavailable = |error: io::Error| Refusal::Unavailable(error.to_string());
    let place = Arc::clone(&gate.processes).acquire_owned().await;
    let place = place.map_err(|_| Refusal::Unavailable("shutting down".to_owned()))?;
    let mut command = Command::new("git");
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    command.env_clear().env("PATH", path).envs(GIT_ENVIRONMENT);
    if let Some(protocol) = protocol {
        command.env("GIT_PROTOCOL", protocol);
    }
    command
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "transfer.hideRefs=refs/journeyman",
        ])
        .args(["upload-pack", "--strict", "--stateless-rpc"])
        .args(extra)
        .arg(&*dir)
        .current_dir(&*dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(unavailable)?;
    if let Some(mut stdin) = child.stdin.take() {
        // The process reads and writes at the same time; when it dies, the write fails and that is all.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input).await;
        });
    }
    Ok(UploadPack {
        child,
        _place: place,
        _mirror: dir,
        deadline: Instant::now() + DEADLINE,
    })
}

fn answer(content_type: &'static str, opening: Bytes, mut process: UploadPack) -> Response {
    let chunks = process.child.stdout.take().map(ReaderStream::new);
    let output = stream::unfold((chunks, process), |(mut chunks, process)| async move {
        let next = chunks.as_mut()?.next();
        match tokio::time::timeout_at(process.deadline, next).await {
            Ok(chunk) => Some((chunk?, (chunks, process))),
            Err(_) => Some((Err(io::Error::from(io::ErrorKind::TimedOut)), (None, process))),
        }
    });
    let opening = stream::iter((!opening.is_empty()).then_some(Ok(opening)));
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, Body::from_stream(opening.chain(output))).into_response()
}

fn protocol(headers: &HeaderMap) -> Option<&str> {
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
    fn a_zipped_request_is_read_up_to_the_limit() {
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
