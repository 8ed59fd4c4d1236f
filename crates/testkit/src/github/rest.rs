//! REST routes of Apps, repositories and webhook deliveries, with the helpers that all routes share.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, OriginalUri, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::auth::{AppCaller, GitHubCaller, not_found, refuse_request};
use super::hub::GitHubState;
use super::scope::{AccessToken, TokenPermissions, TokenRequest};
use super::shape::{extend_object, render_account, render_app, render_collaborator, render_installation};
use super::state::RepositoryRecord;
use super::{READER_INSTALLATION_ID, WRITER_INSTALLATION_ID, repository};
use crate::http::{is_json, parse_json, render_json_answer};
use crate::webhook::SentDelivery;

pub(super) type RestAnswer = Result<Response, Response>;
pub(super) type RepoPath = Path<(String, String)>;
pub(super) type NumberPath = Path<(String, String, u64)>;

/// Parses a JSON body. It refuses other content types and missing or unknown fields in GitHub's wording.
fn read_json_body<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Response> {
    if !is_json(headers) {
        return Err(refuse_request(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Unsupported Media Type",
        ));
    }
    if let Err(problem) = parse_json::<Value>(body) {
        return Err(refuse_request(
            StatusCode::BAD_REQUEST,
            &format!("Problems parsing JSON: {problem}"),
        ));
    }
    parse_json(body)
        .map_err(|problem| render_validation_failure(&json!([{"code": "invalid", "message": problem}])))
}

/// JSON body, refused like [`read_json_body`] does.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<GitHubState>> for JsonBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, hub: &Arc<GitHubState>) -> Result<Self, Response> {
        let headers = request.headers().clone();
        let body = Bytes::from_request(request, hub).await;
        read_json_body(&headers, &body.map_err(IntoResponse::into_response)?).map(Self)
    }
}

/// Renders GitHub's "Validation Failed" answer.
pub(super) fn render_validation_failure(errors: &Value) -> Response {
    render_json_answer(
        StatusCode::UNPROCESSABLE_ENTITY,
        json!({
            "message": "Validation Failed", "errors": errors, "documentation_url": "https://docs.github.com/rest",
            "status": "422",
        }),
    )
}

/// Calls `read` with a repository; an unknown repository answers 404.
pub(super) fn with_repo<T>(
    hub: &GitHubState,
    owner: &str,
    name: &str,
    read: impl FnOnce(&mut RepositoryRecord) -> Result<T, Response>,
) -> Result<T, Response> {
    let mut world = hub.world();
    read(world.repo(&format!("{owner}/{name}")).map_err(|_| not_found())?)
}

#[derive(Deserialize)]
struct PageQuery {
    per_page: Option<usize>,
    page: Option<usize>,
}

/// Page of a list that a request asks for.
pub(super) struct ListPage {
    hub_url: String,
    uri: Uri,
    number: usize,
    size: usize,
}

impl FromRequestParts<Arc<GitHubState>> for ListPage {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, hub: &Arc<GitHubState>) -> Result<Self, Response> {
        let OriginalUri(uri) = OriginalUri::from_request_parts(parts, hub)
            .await
            .unwrap_or_else(|never| match never {});
        let asked = Query::<PageQuery>::from_request_parts(parts, hub).await;
        let Query(asked) = asked.map_err(IntoResponse::into_response)?;
        Ok(Self {
            hub_url: hub.url.clone(),
            uri,
            number: asked.page.unwrap_or(1).max(1),
            // GitHub's pages have 30 entries by default and at most 100.
            size: asked.per_page.unwrap_or(30).clamp(1, 100),
        })
    }
}

impl ListPage {
    /// Answers with the items of the page as a list.
    pub(super) fn answer(&self, items: Vec<Value>) -> Response {
        self.answer_with(items, |items, _| Value::Array(items))
    }

    /// Answers with the items of the page under `name`, and with the number of all items.
    pub(super) fn answer_counted(&self, name: &str, items: Vec<Value>) -> Response {
        self.answer_with(items, |items, total| json!({"total_count": total, name: items}))
    }

    /// Answers with what `body` makes of the page's items and the number of all items, and with the `link`
    /// header for the other pages.
    fn answer_with(&self, items: Vec<Value>, body: impl FnOnce(Vec<Value>, usize) -> Value) -> Response {
        let total = items.len();
        let last = total.div_ceil(self.size).max(1);
        let before = (self.number - 1) * self.size;
        let items = items.into_iter().skip(before).take(self.size).collect();
        let mut response = render_json_answer(StatusCode::OK, body(items, total));
        if self.number < last {
            let links = format!(
                "{}, {}",
                self.link(self.number + 1, "next"),
                self.link(last, "last")
            );
            if let Ok(links) = links.parse() {
                response.headers_mut().insert(header::LINK, links);
            }
        }
        response
    }

    /// Renders the link to another page. It keeps the other parameters of the request.
    fn link(&self, to: usize, rel: &str) -> String {
        let pairs = self.uri.query().unwrap_or_default().split('&');
        let kept: Vec<&str> = pairs
            .filter(|pair| !pair.is_empty() && !pair.starts_with("page="))
            .collect();
        let (path, query) = (self.uri.path(), kept.join("&"));
        format!("<{}{path}?{query}&page={to}>; rel=\"{rel}\"", self.hub_url)
    }
}

/// Returns the name of the first parameter with a value that GitHub refuses.
pub(super) fn find_invalid_parameter(
    parameters: &[(&'static str, &Option<String>, &[&str])],
) -> Option<&'static str> {
    let mut parameters = parameters.iter();
    parameters.find_map(|(name, value, known)| {
        let is_invalid = |value: &str| !known.contains(&value);
        value.as_deref().is_some_and(is_invalid).then_some(*name)
    })
}

/// Answers publicly, as a server outside private mode does.
pub(super) async fn get_meta() -> Response {
    render_json_answer(
        StatusCode::OK,
        json!({"verifiable_password_authentication": false}),
    )
}

pub(super) async fn get_app(State(hub): State<Arc<GitHubState>>, caller: AppCaller) -> Response {
    let own = json!({"permissions": caller.permissions(&hub), "events": caller.events(&hub), "installations_count": 1});
    let login = hub
        .world()
        .registered
        .get(&caller.id)
        .map(|app| format!("{}[bot]", app.slug));
    let Some(login) = login else {
        return render_json_answer(StatusCode::OK, extend_object(render_app(caller.login()), own));
    };
    let page = format!("{}/apps/{}", hub.url, login.trim_end_matches("[bot]"));
    let own = extend_object(own, json!({"id": caller.id, "html_url": page}));
    render_json_answer(StatusCode::OK, extend_object(render_app(&login), own))
}

pub(super) async fn get_current_user(caller: GitHubCaller) -> Response {
    // The token of an installation, such as that of a workflow's job, has no user.
    if !caller.token.is_personal() {
        return refuse_request(StatusCode::FORBIDDEN, "Resource not accessible by integration");
    }
    let scopes = [("x-oauth-scopes", if caller.writes { "repo" } else { "" })];
    (
        scopes,
        render_json_answer(StatusCode::OK, render_account(caller.login())),
    )
        .into_response()
}

pub(super) fn installation_id(caller: &AppCaller) -> u64 {
    if caller.writes() {
        WRITER_INSTALLATION_ID
    } else {
        READER_INSTALLATION_ID
    }
}

pub(super) async fn get_installation(
    State(hub): State<Arc<GitHubState>>,
    caller: AppCaller,
    Path((owner, name)): RepoPath,
) -> RestAnswer {
    let id = installation_id(&caller);
    with_repo(&hub, &owner, &name, |_| Ok(()))?;
    let body = render_installation(id, &owner, caller.login(), &hub.url);
    let body = extend_object(body, json!({"permissions": caller.permissions(&hub)}));
    Ok(render_json_answer(StatusCode::OK, body))
}

pub(super) async fn access_token(
    State(hub): State<Arc<GitHubState>>,
    caller: AppCaller,
    Path(id): Path<u64>,
    headers: HeaderMap,
    body: Bytes,
) -> RestAnswer {
    // An App may create tokens for its own installation alone.
    if id != installation_id(&caller) {
        return Err(not_found());
    }
    let wanted: TokenRequest = if body.is_empty() {
        TokenRequest::default()
    } else {
        read_json_body(&headers, &body)?
    };
    let repositories = find_covered_repositories(&hub, &wanted)?;
    let is_every = wanted.permissions.as_ref().is_none_or(TokenPermissions::is_empty);
    // The list of an owner's repositories needs the metadata of all of them, and nothing else.
    let metadata = TokenPermissions::from([("metadata".to_owned(), "read".to_owned())]);
    let is_list = wanted.permissions.as_ref() == Some(&metadata);
    // The project's capability table allows other tokens for one repository and named permissions alone.
    if !is_list && (repositories.as_ref().is_none_or(|covered| covered.len() != 1) || is_every) {
        hub.log
            .violation("a token was made for more than one repository or for every permission");
    }
    let selection = if repositories.is_some() { "selected" } else { "all" };
    let given = caller.permissions(&hub);
    let minted = AccessToken::minted(caller.writes(), repositories, wanted.permissions, &given)?;
    let token = format!("ghs_{}", uuid::Uuid::new_v4().simple());
    // GitHub's installation tokens are valid for one hour.
    let expires = time::OffsetDateTime::now_utc() + time::Duration::hours(1);
    // Whole seconds, as GitHub writes times.
    let expires = expires.replace_nanosecond(0).unwrap_or(expires);
    let expires = expires
        .format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default();
    let body = json!({
        "token": token, "expires_at": expires, "permissions": minted.permissions(),
        "repository_selection": selection,
    });
    hub.world().tokens.insert(token, minted);
    Ok(render_json_answer(StatusCode::CREATED, body))
}

/// Returns the full names of the repositories that a token is requested for; absent means all repositories.
fn find_covered_repositories(
    hub: &GitHubState,
    wanted: &TokenRequest,
) -> Result<Option<Vec<String>>, Response> {
    let world = hub.world();
    let find = |is_wanted: &dyn Fn(&RepositoryRecord) -> bool| {
        let found = world.repos.values().find(|repo| is_wanted(repo));
        let missing = || {
            render_validation_failure(
                &json!([{"message": "There is at least one repository that does not exist"}]),
            )
        };
        found.map(|repo| repo.name.clone()).ok_or_else(missing)
    };
    let names = wanted.repositories.iter().flatten();
    let by_name =
        names.map(|name| find(&|repo| repo.name.split_once('/').is_some_and(|(_, own)| own == name)));
    let ids = wanted.repository_ids.iter().flatten();
    let by_id = ids.map(|id| find(&|repo| repo.id == *id));
    let found = by_name.chain(by_id).collect::<Result<Vec<_>, _>>()?;
    Ok((!found.is_empty()).then_some(found))
}

pub(super) async fn get_repo(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    Path((owner, name)): RepoPath,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        Ok(render_json_answer(
            StatusCode::OK,
            repo.full_json(&hub.url, caller.writes),
        ))
    })
}

/// Repositories that the caller's token covers, in the order of their names.
fn list_covered_repositories(hub: &GitHubState, caller: &GitHubCaller) -> Vec<Value> {
    let world = hub.world();
    let covered = world.repos.values().filter(|repo| {
        let metadata = [("metadata", "read")];
        caller.token.may(Some(repo.name.as_str()), &metadata).is_ok()
    });
    covered.map(|repo| repo.json(&hub.url)).collect()
}

/// Lists the repositories of an installation, for its tokens alone.
pub(super) async fn list_installation_repositories(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    page: ListPage,
) -> RestAnswer {
    if caller.token.is_personal() {
        return Err(refuse_request(
            StatusCode::FORBIDDEN,
            "You must authenticate with an installation access token in order to list repositories for an installation.",
        ));
    }
    Ok(page.answer_counted("repositories", list_covered_repositories(&hub, &caller)))
}

/// Lists the repositories of the token's user.
pub(super) async fn list_user_repositories(
    State(hub): State<Arc<GitHubState>>,
    caller: GitHubCaller,
    page: ListPage,
) -> Response {
    page.answer(list_covered_repositories(&hub, &caller))
}

pub(super) async fn combined_status(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, sha)): Path<(String, String, String)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        Ok(render_json_answer(
            StatusCode::OK,
            repo.combined_status_json(&sha, &hub.url),
        ))
    })
}

pub(super) async fn get_permission(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, login)): Path<(String, String, String)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        // Users have write permission by default, see `FakeGitHub::create_repository`.
        let permission = repo.permissions.get(&login).map_or("write", String::as_str);
        let body = json!({"permission": permission, "role_name": permission, "user": render_collaborator(&login, permission)});
        Ok(render_json_answer(StatusCode::OK, body))
    })
}

pub(super) async fn git_ref(
    State(hub): State<Arc<GitHubState>>,
    _caller: GitHubCaller,
    Path((owner, name, reference)): Path<(String, String, String)>,
) -> RestAnswer {
    with_repo(&hub, &owner, &name, |repo| {
        let branch = reference.strip_prefix("heads/").ok_or_else(not_found)?;
        let sha = repository::list_branches(&repo.path)
            .get(branch)
            .cloned()
            .ok_or_else(not_found)?;
        Ok(render_json_answer(
            StatusCode::OK,
            repo.ref_json(&reference, &sha, &hub.url),
        ))
    })
}

fn delivery_json(delivery: &SentDelivery) -> Value {
    json!({
        "id": delivery.id, "guid": delivery.guid, "delivered_at": delivery.delivered_at,
        "redelivery": delivery.redelivery, "duration": 0.1, "status_code": delivery.status,
        "status": if (200..300).contains(&delivery.status) { "OK" } else { "failed" }, "event": delivery.event,
        "action": delivery.payload["action"], "installation_id": delivery.payload["installation"]["id"],
        "repository_id": delivery.payload["repository"]["id"],
    })
}

pub(super) async fn list_deliveries(
    State(hub): State<Arc<GitHubState>>,
    _caller: AppCaller,
    page: ListPage,
) -> Response {
    let newest_first = hub
        .webhooks
        .deliveries()
        .iter()
        .rev()
        .map(delivery_json)
        .collect();
    page.answer(newest_first)
}

pub(super) async fn get_delivery(
    State(hub): State<Arc<GitHubState>>,
    _caller: AppCaller,
    Path(id): Path<u64>,
) -> RestAnswer {
    let found = hub
        .webhooks
        .deliveries()
        .into_iter()
        .find(|delivery| delivery.id == id)
        .ok_or_else(not_found)?;
    let mut body = delivery_json(&found);
    body["request"] = json!({"headers": {"X-GitHub-Event": found.event}, "payload": found.payload});
    body["response"] = json!({"headers": {}, "payload": ""});
    Ok(render_json_answer(StatusCode::OK, body))
}

pub(super) async fn redeliver_webhook(
    State(hub): State<Arc<GitHubState>>,
    _caller: AppCaller,
    Path(id): Path<u64>,
) -> RestAnswer {
    if hub.webhooks.redeliver(id) {
        Ok(render_json_answer(StatusCode::ACCEPTED, json!({})))
    } else {
        Err(not_found())
    }
}
