//! Attachments of tickets. The Cloud redirects to the host that stores files, whose addresses are signed; a Data Center
//! serves them itself.

use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};

use super::FakeJira;
use super::desk::JiraState;
use super::extractors::JiraCaller;
use super::rest::{JiraAnswer, refuse_request};
use super::site::StandInSite;
use super::state::{JiraAccount, jira_now};

/// Signature of every address at the host with the files.
const SIGNATURE: &str = "signed-for-this-file";

/// Attachment of a ticket.
#[derive(Debug, Clone)]
pub(super) struct AttachmentRecord {
    id: u64,
    name: String,
    author: JiraAccount,
    created: String,
    bytes: Arc<[u8]>,
}

impl AttachmentRecord {
    pub(super) fn json(&self, site: &StandInSite) -> Value {
        let name = percent_encoding::utf8_percent_encode(&self.name, percent_encoding::NON_ALPHANUMERIC);
        let content = if site.is_cloud() {
            format!("{site}{}/attachment/content/{}", site.rest(), self.id)
        } else {
            format!("{site}/secure/attachment/{}/{name}", self.id)
        };
        json!({
            "self": format!("{site}{}/attachment/{}", site.rest(), self.id), "id": self.id.to_string(),
            "filename": self.name, "author": self.author.json(site), "created": self.created,
            "size": self.bytes.len(), "mimeType": "application/octet-stream", "content": content,
        })
    }
}

/// Builds the routes outside of the REST interface: the host with the files, and a Data Center's own addresses.
pub(super) fn build_file_routes(site: &StandInSite) -> Router<Arc<JiraState>> {
    if site.is_cloud() {
        Router::new().route("/media/file/{id}", get(serve_media))
    } else {
        Router::new().route("/secure/attachment/{id}/{name}", get(serve_attachment))
    }
}

impl JiraState {
    fn find_attachment(&self, id: u64) -> Option<AttachmentRecord> {
        let issues = self.issues.lock();
        let mut attachments = issues.iter().flat_map(|issue| &issue.attachments);
        attachments.find(|attachment| attachment.id == id).cloned()
    }
}

fn refuse_missing_file() -> Response {
    refuse_request(StatusCode::NOT_FOUND, "The attachment with id does not exist")
}

/// Redirects to the host with the files.
pub(super) async fn redirect_to_media(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Path(id): Path<u64>,
) -> JiraAnswer {
    desk.find_attachment(id).ok_or_else(refuse_missing_file)?;
    let to = format!("{}/media/file/{id}?token={SIGNATURE}", desk.site.media);
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response())
}

#[derive(Deserialize)]
struct MediaQuery {
    #[serde(default)]
    token: String,
}

/// Serves a file at the host with the files, which takes no credentials.
async fn serve_media(
    State(desk): State<Arc<JiraState>>,
    headers: HeaderMap,
    Path(id): Path<u64>,
    Query(query): Query<MediaQuery>,
) -> Response {
    // A client that forwards its token on a redirect would leak it to another host.
    if headers.contains_key(header::AUTHORIZATION) {
        desk.log
            .violation("credentials were sent to the host that stores files");
        return StatusCode::BAD_REQUEST.into_response();
    }
    if query.token != SIGNATURE {
        return StatusCode::FORBIDDEN.into_response();
    }
    match desk.find_attachment(id) {
        Some(found) => found.bytes.to_vec().into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn serve_attachment(
    State(desk): State<Arc<JiraState>>,
    _caller: JiraCaller,
    Path((id, _name)): Path<(u64, String)>,
) -> JiraAnswer {
    let found = desk.find_attachment(id).ok_or_else(refuse_missing_file)?;
    Ok(found.bytes.to_vec().into_response())
}

impl FakeJira {
    /// Attaches a file as a user and returns its id. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn attach(&self, key: &str, name: &str, bytes: &[u8], by: &str) -> anyhow::Result<String> {
        let author = JiraAccount::person(by);
        let mut issues = self.desk.issues.lock();
        let (id, entry) = (issues.fresh_id(), issues.fresh_id());
        let issue = issues
            .named(key)
            .with_context(|| format!("there is no ticket {key}"))?;
        issue.attachments.push(AttachmentRecord {
            id,
            name: name.to_owned(),
            author: author.clone(),
            created: jira_now(),
            bytes: bytes.into(),
        });
        let item = json!({
            "field": "Attachment", "fieldtype": "jira", "fieldId": "attachment", "from": null, "fromString": null,
            "to": id.to_string(), "toString": name,
        });
        self.desk.record(issue, entry, &author, vec![item]);
        Ok(id.to_string())
    }
}
