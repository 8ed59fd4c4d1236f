//! App registration from manifests: the page that takes a manifest, the conversion of its code, and
//! installations.
//!
//! The two Apps of the stand-in are registered and installed from the start, until a manifest replaces one.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Form, Json, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, patch, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::auth::{AppCaller, not_found};
use super::hub::GitHubState;
use super::rest::{ListPage, RestAnswer, installation_id};
use super::scope::TokenPermissions;
use super::shape::{
    extend_object, render_account as account_json, render_app as app_json,
    render_installation as installation_json,
};
use super::{APP_PRIVATE_KEY, FakeGitHub, READER_APP_ID, WRITER_APP_ID};
use crate::http::render_json_answer;

// Maximum length of an App's name, as GitHub documents it.
const MAX_NAME: usize = 34;

// First id of the installations on other accounts.
const OTHER_INSTALLATIONS: u64 = 900_000;

// Login that no account has.
const UNKNOWN_LOGIN: &str = "no-such-account";

/// Answers with an account by its login. The route is public.
async fn get_account(Path(login): Path<String>) -> RestAnswer {
    if login == UNKNOWN_LOGIN {
        Err(not_found())
    } else {
        Ok(render_json_answer(StatusCode::OK, account_json(&login)))
    }
}

/// App that was registered from a manifest.
pub(super) struct ManifestApp {
    pub(super) slug: String,
    owner: String,
    webhook_secret: Option<String>,
    /// Code of the manifest flow, valid for one conversion.
    code: Option<String>,
    is_installed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AppManifest {
    name: String,
    url: String,
    redirect_url: String,
    public: bool,
    default_permissions: TokenPermissions,
    #[serde(default)]
    default_events: Vec<String>,
    hook_attributes: Option<ManifestHook>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestHook {
    url: Option<String>,
    #[serde(default, rename = "active")]
    _active: bool,
}

#[derive(Deserialize)]
struct ManifestForm {
    manifest: String,
}

pub(super) fn build_registration_routes() -> Router<Arc<GitHubState>> {
    Router::new()
        .route("/organizations/{owner}/settings/apps/new", post(register_app))
        .route("/apps/{slug}/installations/new", get(install_app))
        .route("/app-manifests/{code}/conversions", post(convert_code))
        .route("/users/{login}", get(get_account))
        .route("/app/hook/config", patch(set_hook))
        .route("/app/installations", get(list_installations))
}

fn render_text_page(status: StatusCode, text: &str) -> Response {
    (status, text.to_owned()).into_response()
}

/// Registers an App, as the button "Create GitHub App" does, and redirects with its code.
async fn register_app(
    State(hub): State<Arc<GitHubState>>,
    Path(owner): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    Form(sent): Form<ManifestForm>,
) -> Response {
    match create_app(&hub, &owner, &sent.manifest) {
        Ok((code, to)) => {
            let state = query.get("state").map(String::as_str).unwrap_or_default();
            Redirect::to(&format!("{to}?code={code}&state={state}")).into_response()
        }
        Err(problem) => render_text_page(StatusCode::UNPROCESSABLE_ENTITY, &problem),
    }
}

/// Creates an App from a manifest and returns its code and redirect URL.
fn create_app(hub: &GitHubState, owner: &str, manifest: &str) -> Result<(String, String), String> {
    let manifest: AppManifest = serde_json::from_str(manifest).map_err(|error| error.to_string())?;
    if manifest.public || manifest.url.is_empty() || manifest.name.len() > MAX_NAME {
        return Err("the manifest is not as it should be".to_owned());
    }
    // A manifest with a hook but without its URL gets GitHub's own message.
    let hook = manifest.hook_attributes;
    if hook.as_ref().is_some_and(|hook| hook.url.is_none()) {
        return Err("\"url\" wasn't supplied.".to_owned());
    }
    let slug = manifest.name.to_lowercase().replace(' ', "-");
    let mut world = hub.world();
    if world.registered.values().any(|app| app.slug == slug) {
        return Err("Name is already taken".to_owned());
    }
    // The stand-in has one App with write permissions and one without; the manifest's permissions select
    // which one it replaces.
    let writes = manifest
        .default_permissions
        .values()
        .any(|level| level == "write");
    let id = if writes { WRITER_APP_ID } else { READER_APP_ID };
    let code = uuid::Uuid::new_v4().simple().to_string();
    let secret = || uuid::Uuid::new_v4().simple().to_string();
    let app = ManifestApp {
        slug,
        owner: owner.to_owned(),
        webhook_secret: hook.map(|_| secret()),
        code: Some(code.clone()),
        is_installed: false,
    };
    world.registered.insert(id, app);
    world.permissions.insert(id, manifest.default_permissions);
    world.events.insert(id, manifest.default_events);
    Ok((code, manifest.redirect_url))
}

async fn convert_code(State(hub): State<Arc<GitHubState>>, Path(code): Path<String>) -> RestAnswer {
    let mut world = hub.world();
    let wanted = world
        .registered
        .iter_mut()
        .find(|(_, app)| app.code.as_ref() == Some(&code));
    let (id, app) = wanted.ok_or_else(not_found)?;
    app.code = None;
    let more = json!({
        "id": id, "client_id": "Iv1.of-the-stand-in", "client_secret": "secret-of-the-stand-in",
        "webhook_secret": app.webhook_secret, "pem": APP_PRIVATE_KEY, "html_url": format!("{}/apps/{}", hub.url, app.slug),
    });
    let body = extend_object(app_json(&format!("{}[bot]", app.slug)), more);
    Ok(render_json_answer(StatusCode::CREATED, body))
}

async fn list_installations(
    State(hub): State<Arc<GitHubState>>,
    caller: AppCaller,
    page: ListPage,
) -> Response {
    let found: Vec<Value> = {
        let world = hub.world();
        let registered = world.registered.get(&caller.id);
        let login = registered.map_or_else(|| caller.login().to_owned(), |app| format!("{}[bot]", app.slug));
        let owner = match registered {
            Some(app) => app.is_installed.then(|| app.owner.clone()),
            None => Some("acme".to_owned()),
        };
        let numbered = world.other_accounts.iter().zip(OTHER_INSTALLATIONS..);
        let others = numbered.map(|(account, id)| installation_json(id, account, &login, &hub.url));
        let id = installation_id(&caller);
        let own = owner.map(|owner| installation_json(id, &owner, &login, &hub.url));
        others.chain(own).collect()
    };
    page.answer(found)
}

/// Webhook configuration of an App.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// Target URL of deliveries.
    pub url: String,
    /// Content type, `json` or `form`.
    pub content_type: String,
    /// Secret of the signatures.
    pub secret: String,
    /// `1` disables the verification of certificates.
    pub insecure_ssl: String,
}

async fn set_hook(
    State(hub): State<Arc<GitHubState>>,
    caller: AppCaller,
    Json(wanted): Json<HookConfig>,
) -> Response {
    let body = json!({
        "url": wanted.url, "content_type": wanted.content_type, "insecure_ssl": wanted.insecure_ssl, "secret": "********",
    });
    hub.world().hooks.insert(caller.id, wanted);
    render_json_answer(StatusCode::OK, body)
}

/// Installs an App on all repositories, as a user does on its page.
async fn install_app(State(hub): State<Arc<GitHubState>>, Path(slug): Path<String>) -> Response {
    let mut world = hub.world();
    match world.registered.values_mut().find(|app| app.slug == slug) {
        Some(app) => {
            app.is_installed = true;
            render_text_page(StatusCode::OK, "Installed")
        }
        None => render_text_page(StatusCode::NOT_FOUND, "Not Found"),
    }
}

impl FakeGitHub {
    /// Webhook configuration that an App has set.
    #[must_use]
    pub fn hook_of(&self, app: u64) -> Option<HookConfig> {
        self.hub.world().hooks.get(&app).cloned()
    }

    /// Installs every App on more accounts, which its list names before the others.
    pub fn install_elsewhere(&self, accounts: impl IntoIterator<Item = String>) {
        self.hub.world().other_accounts.extend(accounts);
    }

    /// Slug and installation state of each App that was registered from a manifest.
    #[must_use]
    pub fn registered_apps(&self) -> Vec<(String, bool)> {
        let world = self.hub.world();
        let apps = world.registered.values();
        apps.map(|app| (app.slug.clone(), app.is_installed)).collect()
    }
}
