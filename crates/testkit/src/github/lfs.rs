//! Git LFS of the stand-in: the batch API beneath each repository, and a store with signed addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};

use super::FakeGitHub;
use super::hub::GitHubState;
use crate::http::header_text;

const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";
/// Path of the batch API beneath `<repository>.git/`.
pub(super) const BATCH: &str = "info/lfs/objects/batch";
/// Limit of contents in one batch.
const MAX_OBJECTS: usize = 100;

/// Contents of all repositories, and the signatures of their addresses.
#[derive(Debug, Default)]
pub(super) struct LfsShelf {
    /// Contents by repository and SHA-256.
    contents: BTreeMap<(String, String), LfsRecord>,
    /// Issued signatures: content, and whether the address redirects.
    signatures: BTreeMap<String, (Bytes, bool)>,
    /// Base URL of the store; absent: the stand-in itself.
    store: Option<String>,
    downloads: u64,
}

#[derive(Debug)]
struct LfsRecord {
    content: Bytes,
    fault: Option<LfsFault>,
}

/// Fault of one content in Git LFS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LfsFault {
    /// The server reports that it does not have the content.
    Missing,
    /// The store serves other bytes of the same length.
    WrongBytes,
    /// The store serves more bytes than the pointer names.
    TooLong,
    /// The store serves the first half.
    TooShort,
}

impl FakeGitHub {
    /// Stores a content in Git LFS of a repository. Returns the pointer that a commit has to contain.
    pub fn store_lfs(&self, repository: &str, content: &[u8]) -> String {
        self.store_faulty_lfs(repository, content, None)
    }

    /// Stores a content that the server or the store serves with a fault.
    pub fn store_faulty_lfs(&self, repository: &str, content: &[u8], fault: Option<LfsFault>) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, content);
        let oid = HEXLOWER.encode(digest.as_ref());
        let record = LfsRecord {
            content: Bytes::copy_from_slice(content),
            fault,
        };
        let key = (repository.to_owned(), oid.clone());
        self.hub.lfs.lock().contents.insert(key, record);
        let size = content.len();
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n")
    }

    /// Moves the store to another base URL, which the stand-in does not serve.
    pub fn move_lfs_store(&self, url: &str) {
        self.hub.lfs.lock().store = Some(url.to_owned());
    }

    /// Number of contents that the store has served.
    #[must_use]
    pub fn count_lfs_downloads(&self) -> u64 {
        self.hub.lfs.lock().downloads
    }
}

#[derive(Deserialize)]
struct BatchRequest {
    operation: String,
    #[serde(default)]
    transfers: Option<Vec<String>>,
    #[serde(default)]
    hash_algo: Option<String>,
    objects: Vec<BatchObject>,
}

#[derive(Deserialize)]
struct BatchObject {
    oid: String,
    size: u64,
}

/// Answers a batch. The caller has checked the token and its repository.
pub(super) fn answer_batch(
    hub: &GitHubState,
    repository: &str,
    (method, headers): (&Method, &HeaderMap),
    body: &[u8],
) -> Response {
    if method != Method::POST {
        return refuse_batch(StatusCode::METHOD_NOT_ALLOWED, "POST is needed");
    }
    for name in ["accept", "content-type"] {
        if header_text(headers, name).split(';').next() != Some(MEDIA_TYPE) {
            hub.log
                .violation(format!("a batch of Git LFS has another {name} than {MEDIA_TYPE}"));
            return refuse_batch(StatusCode::NOT_ACCEPTABLE, "another media type is needed");
        }
    }
    let Ok(request) = serde_json::from_slice::<BatchRequest>(body) else {
        return refuse_batch(StatusCode::UNPROCESSABLE_ENTITY, "the request is not a batch");
    };
    if request.operation != "download" {
        hub.log.violation(format!(
            "Git LFS was asked to {} for {repository}",
            request.operation
        ));
        return refuse_batch(StatusCode::FORBIDDEN, "only downloads are served");
    }
    let is_basic = request
        .transfers
        .is_none_or(|transfers| transfers.iter().any(|transfer| transfer == "basic"));
    let is_sha256 = request.hash_algo.is_none_or(|algorithm| algorithm == "sha256");
    let is_named = |object: &BatchObject| {
        object.oid.len() == 64
            && object
                .oid
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let count = request.objects.len();
    if !is_basic || !is_sha256 || count == 0 || !request.objects.iter().all(is_named) {
        hub.log
            .violation("a batch of Git LFS does not follow the specification");
        return refuse_batch(StatusCode::UNPROCESSABLE_ENTITY, "the batch is not valid");
    }
    if count > MAX_OBJECTS {
        hub.log
            .violation(format!("a batch of Git LFS has {count} contents"));
        return refuse_batch(StatusCode::PAYLOAD_TOO_LARGE, "the batch has too many objects");
    }
    let objects: Vec<Value> = request
        .objects
        .iter()
        .map(|object| hub.describe_lfs_object(repository, object))
        .collect();
    let body = json!({"transfer": "basic", "objects": objects, "hash_algo": "sha256"});
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], body.to_string()).into_response()
}

fn refuse_batch(status: StatusCode, message: &str) -> Response {
    let body = json!({"message": message, "documentation_url": "https://git-lfs.example/docs"});
    (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body.to_string()).into_response()
}

impl GitHubState {
    fn describe_lfs_object(&self, repository: &str, object: &BatchObject) -> Value {
        let BatchObject { oid, size } = object;
        let mut shelf = self.lfs.lock();
        let key = (repository.to_owned(), oid.clone());
        let record = shelf.contents.get(&key);
        let found = record
            .filter(|record| record.fault != Some(LfsFault::Missing) && record.content.len() as u64 == *size);
        let Some(found) = found else {
            let error = json!({"code": 404, "message": "Object does not exist on the server"});
            return json!({"oid": oid, "size": size, "error": error});
        };
        let served = found.serve();
        let signature = uuid::Uuid::new_v4().simple().to_string();
        shelf.signatures.insert(signature.clone(), (served, true));
        let store = shelf.store.as_deref().unwrap_or(&self.url);
        let href = format!("{store}/lfs-store/{oid}?signature={signature}");
        json!({
            "oid": oid, "size": size, "authenticated": true,
            "actions": {"download": {"href": href, "header": {"X-Store-Key": signature}, "expires_in": 3600}},
        })
    }
}

impl LfsRecord {
    fn serve(&self) -> Bytes {
        let content = &self.content;
        match self.fault {
            None | Some(LfsFault::Missing) => content.clone(),
            Some(LfsFault::WrongBytes) => content.iter().map(|byte| !byte).collect(),
            Some(LfsFault::TooLong) => content.iter().copied().chain([0]).collect(),
            Some(LfsFault::TooShort) => content.slice(..content.len() / 2),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct StoreQuery {
    signature: String,
}

/// Serves a content at its signed address, after one redirect to a second one. Its URL is its permission, so the
/// address takes no credentials.
pub(super) async fn serve_lfs_content(
    State(hub): State<Arc<GitHubState>>,
    Path(oid): Path<String>,
    Query(StoreQuery { signature }): Query<StoreQuery>,
    headers: HeaderMap,
) -> Response {
    if headers.contains_key(header::AUTHORIZATION) {
        hub.log.violation("a token was sent to the store of Git LFS");
        return (StatusCode::BAD_REQUEST, "credentials are not wanted here").into_response();
    }
    let mut shelf = hub.lfs.lock();
    let Some((content, redirects)) = shelf.signatures.get(&signature).cloned() else {
        return (StatusCode::FORBIDDEN, "the signature is not valid").into_response();
    };
    if !redirects {
        shelf.downloads += 1;
        return ([(header::CONTENT_TYPE, "application/octet-stream")], content).into_response();
    }
    if header_text(&headers, "x-store-key") != signature {
        hub.log
            .violation("a header that the batch of Git LFS demands is missing");
        return (StatusCode::FORBIDDEN, "the key is missing").into_response();
    }
    let next = uuid::Uuid::new_v4().simple().to_string();
    shelf.signatures.insert(next.clone(), (content, false));
    let target = format!("/lfs-store/{oid}?signature={next}");
    (StatusCode::FOUND, [(header::LOCATION, target)]).into_response()
}
