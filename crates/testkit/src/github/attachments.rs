//! Files that users attach to texts. As for a private repository on GitHub, the website redirects a caller with a token to
//! a signed address for files, and shows images by the signed addresses of rendered texts alone.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};

use super::FakeGitHub;
use super::auth::{GitHubCaller, token_of};
use super::graphql::{find_readable_repository, refuse_unknown_repository, render_graphql_error};
use super::hub::GitHubState;
use super::rest::RestAnswer;
use crate::http::{header_text, render_json_answer};

/// Signature of every address at which files are stored.
const SIGNATURE: &str = "signed-for-some-minutes";

/// Attached file.
#[derive(Debug, Clone)]
pub(super) struct AttachedFile {
    /// Last part of its address.
    id: String,
    /// Absent for an image, whose address has no name.
    name: Option<String>,
    bytes: Arc<[u8]>,
}

impl AttachedFile {
    fn address(&self, url: &str) -> String {
        match &self.name {
            Some(name) => format!("{url}/user-attachments/files/{}/{name}", self.id),
            None => format!("{url}/user-attachments/assets/{}", self.id),
        }
    }

    fn signed_address(&self, url: &str) -> String {
        format!("{url}/stored-attachments/1-{}?jwt={SIGNATURE}", self.id)
    }
}

pub(super) fn build_attachment_routes() -> Router<Arc<GitHubState>> {
    Router::new()
        .route("/user-attachments/files/{id}/{name}", get(redirect_to_file))
        .route("/user-attachments/assets/{id}", get(refuse_image))
        .route("/stored-attachments/{file}", get(serve_file))
}

fn find_file(hub: &GitHubState, id: &str) -> Option<AttachedFile> {
    hub.world().attached.iter().find(|file| file.id == id).cloned()
}

fn is_known_token(hub: &GitHubState, headers: &HeaderMap) -> bool {
    let value = header_text(headers, "authorization");
    let token = value.split_once(' ').map_or("", |(_, token)| token.trim());
    token_of(hub, token).is_some()
}

async fn redirect_to_file(
    State(hub): State<Arc<GitHubState>>,
    headers: HeaderMap,
    Path((id, _name)): Path<(String, String)>,
) -> Response {
    match find_file(&hub, &id).filter(|_| is_known_token(&hub, &headers)) {
        Some(file) => {
            let to = file.signed_address(&hub.url);
            (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
        }
        // The website answers with a page.
        None => (
            StatusCode::NOT_FOUND,
            [(header::CONTENT_TYPE, "text/html")],
            "Not Found",
        )
            .into_response(),
    }
}

/// Refuses an image: the website requires a session of a browser, which no token replaces.
async fn refuse_image() -> Response {
    (
        StatusCode::NOT_FOUND,
        [(header::CONTENT_TYPE, "text/html")],
        "Not Found",
    )
        .into_response()
}

#[derive(Deserialize)]
struct StoredQuery {
    #[serde(default)]
    jwt: String,
}

/// Serves a file at its signed address, which takes no credentials.
async fn serve_file(
    State(hub): State<Arc<GitHubState>>,
    headers: HeaderMap,
    Path(file): Path<String>,
    Query(query): Query<StoredQuery>,
) -> Response {
    if headers.contains_key(header::AUTHORIZATION) {
        hub.log
            .violation("a token was sent to where attachments are stored");
        return StatusCode::BAD_REQUEST.into_response();
    }
    let id = file.strip_prefix("1-").unwrap_or_default();
    match find_file(&hub, id) {
        Some(found) if query.jwt == SIGNATURE => found.bytes.to_vec().into_response(),
        Some(_) | None => StatusCode::FORBIDDEN.into_response(),
    }
}

/// Answers with the rendered texts of an issue, with signed addresses.
pub(super) fn answer_rendered_query(
    hub: &GitHubState,
    caller: &GitHubCaller,
    variables: &Value,
) -> RestAnswer {
    let full_name = find_readable_repository(caller, variables, &["issues"])?;
    let number = variables["number"].as_u64().unwrap_or_default();
    let mut world = hub.world();
    let files = world.attached.clone();
    let render = |markdown: &str| {
        let shown = files
            .iter()
            .filter(|file| markdown.contains(&file.address(&hub.url)));
        let images = shown.map(|file| format!("<img src=\"{}\">", file.signed_address(&hub.url)));
        json!({"bodyHTML": format!("<p>{}</p>", images.collect::<String>())})
    };
    let repo = world.repo(&full_name).map_err(|_| refuse_unknown_repository())?;
    let issue = repo
        .issues
        .get(&number)
        .map(|issue| ("Issue", issue.body.clone()));
    let pull = || Some(("PullRequest", repo.pulls.get(&number)?.body.clone()));
    let missing = "Could not resolve to an issue or pull request";
    let (kind, body) = issue
        .or_else(pull)
        .ok_or_else(|| render_graphql_error("NOT_FOUND", missing))?;
    let comments = repo.comments.iter().filter(|comment| comment.number == number);
    let comments: Vec<Value> = comments.map(|comment| render(&comment.body)).collect();
    let mut found = render(&body);
    found["__typename"] = json!(kind);
    found["comments"] = json!({"nodes": comments});
    let body = json!({"data": {"repository": {"issueOrPullRequest": found}}});
    Ok(render_json_answer(StatusCode::OK, body))
}

impl FakeGitHub {
    /// Uploads a file, as the editor of a text does, and returns the address for the text.
    pub fn attach_file(&self, name: &str, bytes: &[u8]) -> String {
        self.attach(Some(name), bytes)
    }

    /// Uploads an image, as the editor of a text does, and returns the address for the text.
    pub fn attach_image(&self, bytes: &[u8]) -> String {
        self.attach(None, bytes)
    }

    fn attach(&self, name: Option<&str>, bytes: &[u8]) -> String {
        let file = AttachedFile {
            id: uuid::Uuid::new_v4().to_string(),
            name: name.map(str::to_owned),
            bytes: bytes.into(),
        };
        let address = file.address(&self.hub.url);
        self.hub.world().attached.push(file);
        address
    }
}
