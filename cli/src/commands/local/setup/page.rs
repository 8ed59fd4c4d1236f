//! Local web page that sends manifests to GitHub and receives the codes.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use axum::{
    Router,
    extract::{Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Redirect, Response},
    routing::get,
};
use maud::{DOCTYPE, Markup, html};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use url::Url;

// GitHub's time limit for all steps of a manifest registration.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Local page while it is served.
pub(super) struct ManifestPage {
    address: SocketAddr,
    desk: Arc<ManifestPageState>,
    /// Random path, unknown to other users and programs of this machine.
    path: String,
    returned: mpsc::Receiver<ReturnedCode>,
    task: JoinHandle<()>,
}

/// Received code. The browser waits until `seen` is used or dropped, and then reloads the page.
pub(super) struct ReturnedCode {
    pub(super) code: String,
    pub(super) seen: oneshot::Sender<()>,
}

struct ManifestPageState {
    path: String,
    /// Host header of the page's address. A request under another name comes from a foreign page (DNS rebinding).
    host: String,
    shown: Mutex<ShownPage>,
    returns: mpsc::Sender<ReturnedCode>,
}

#[derive(Default)]
struct ShownPage {
    html: String,
    /// Nonce of the page's only script.
    nonce: String,
    /// Expected state of the next code. Each is valid once.
    state: Option<String>,
}

impl ManifestPage {
    /// Serves the page on a free loopback port.
    pub(super) async fn open() -> anyhow::Result<Self> {
        // Only the browser of this machine needs the page: GitHub redirects it, and never connects
        // itself.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("cannot listen on 127.0.0.1")?;
        let address = listener.local_addr()?;
        let (returns, returned) = mpsc::channel(1);
        let path = format!("/{}/", generate_random());
        let desk = Arc::new(ManifestPageState {
            path: path.clone(),
            host: address.to_string(),
            shown: Mutex::default(),
            returns,
        });
        let router = Router::new()
            .route(&path, get(show_page))
            .route(&format!("{path}callback"), get(receive_code))
            .layer(middleware::from_fn_with_state(
                Arc::clone(&desk),
                require_own_host,
            ))
            .with_state(Arc::clone(&desk));
        let task = tokio::spawn(async move {
            // Without the server no code arrives, and then the wait for a code ends with an error.
            drop(axum::serve(listener, router).await);
        });
        Ok(Self {
            address,
            desk,
            path,
            returned,
            task,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// Callback address for GitHub.
    pub(super) fn callback(&self) -> String {
        format!("{}callback", self.url())
    }

    /// Shows a form that submits a manifest automatically.
    pub(super) fn send(&self, action: &str, manifest: &Value) {
        let (state, nonce) = (generate_random(), generate_random());
        let html = render_frame(&html! {
            form method="post" action={ (action) "?state=" (state) } {
                input type="hidden" name="manifest" value=(manifest);
                button { "Continue at GitHub" }
            }
            script nonce=(nonce) { "document.forms[0].submit()" }
        });
        *self.desk.shown.lock() = ShownPage {
            html,
            nonce,
            state: Some(state),
        };
    }

    /// Shows a text and links.
    pub(super) fn show(&self, text: &str, links: &[(String, String)]) {
        let html = render_frame(&html! {
            p { (text) }
            @for (title, url) in links {
                p { a href=(url) target="_blank" rel="noopener" { (title) } }
            }
        });
        *self.desk.shown.lock() = ShownPage {
            html,
            ..ShownPage::default()
        };
    }

    /// HTML of the shown form, as a file for a browser on another machine. It submits when the file is opened.
    pub(super) fn form(&self) -> String {
        self.desk.shown.lock().html.clone()
    }

    /// Code from a pasted callback address, if the state matches.
    pub(super) fn pasted(&self, address: &str) -> Option<ReturnedCode> {
        let address = Url::parse(address.trim()).ok()?;
        let value = |wanted: &str| {
            let mut pairs = address.query_pairs();
            pairs.find_map(|(name, value)| (name == wanted).then(|| value.into_owned()))
        };
        let (code, state) = (value("code")?, value("state")?);
        self.desk.shown.lock().state.take_if(|sent| *sent == state)?;
        let (seen, _) = oneshot::channel();
        Some(ReturnedCode { code, seen })
    }

    /// Waits for the next code.
    pub(super) async fn returned(&mut self) -> anyhow::Result<ReturnedCode> {
        let waiting = tokio::time::timeout(PATIENCE, self.returned.recv());
        let received = waiting
            .await
            .context("nothing came back from GitHub within an hour");
        received?.context("the page on this machine ended")
    }
}

impl Drop for ManifestPage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn generate_random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

fn render_frame(body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        meta charset="utf-8";
        title { "Journeyman" }
        h1 { "Journeyman" }
        (body)
    };
    page.into_string()
}

async fn require_own_host(
    State(desk): State<Arc<ManifestPageState>>,
    request: Request,
    next: Next,
) -> Response {
    let named = request.headers().get(header::HOST).map(|host| host.as_bytes());
    if named != Some(desk.host.as_bytes()) {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    }
    next.run(request).await
}

async fn show_page(State(desk): State<Arc<ManifestPageState>>) -> Response {
    let (html, nonce) = {
        let shown = desk.shown.lock();
        (shown.html.clone(), shown.nonce.clone())
    };
    let mut headers = HeaderMap::new();
    // The page has one script. Other scripts, resources and frames are forbidden.
    let policy = format!("default-src 'none'; script-src 'nonce-{nonce}'; frame-ancestors 'none'");
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy.as_str()),
        // The form differs for each App, so the browser must not show an earlier one.
        (header::CACHE_CONTROL, "no-store"),
        // The path of the page is a secret, which a referrer would reveal to GitHub.
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        if let Ok(value) = value.parse() {
            headers.insert(name, value);
        }
    }
    (headers, Html(html)).into_response()
}

#[derive(Deserialize)]
struct CallbackQuery {
    code: String,
    state: String,
}

async fn receive_code(
    State(desk): State<Arc<ManifestPageState>>,
    Query(back): Query<CallbackQuery>,
) -> Response {
    // Comparison and removal happen under one lock, so that of two simultaneous callbacks only one is
    // accepted.
    let is_ours = desk
        .shown
        .lock()
        .state
        .take_if(|state| *state == back.state)
        .is_some();
    if !is_ours {
        let text = "This did not begin here, or was used already. Nothing was changed.";
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    let (seen, waits) = oneshot::channel();
    let returned = ReturnedCode {
        code: back.code,
        seen,
    };
    if desk.returns.send(returned).await.is_ok() {
        // A dropped sender means that the page shows the error.
        let _ = waits.await;
    }
    Redirect::to(&desk.path).into_response()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn code_is_accepted_once_with_state() {
        bootstrap::install_tls_provider();
        let mut page = ManifestPage::open().await.unwrap();
        page.send("https://github.com/x", &json!({"name": "a\"><b>"}));
        // An accepted code waits for the setup, which this test replaces.
        let http = reqwest::Client::builder().timeout(Duration::from_secs(10));
        let http = http.build().unwrap();
        let html = http.get(page.url()).send().await.unwrap().text().await.unwrap();
        assert!(html.contains("a\\&quot;&gt;&lt;b&gt;"), "{html}");
        let state = html.split("?state=").nth(1).unwrap();
        let state = state.split('"').next().unwrap().to_owned();
        let callback = |state: &str| {
            http.get(format!("{}?code=c1&state={state}", page.callback()))
                .send()
        };
        assert_eq!(callback("other").await.unwrap().status(), 403);
        let good = tokio::spawn(callback(&state));
        let again = callback(&state);
        let returned = page.returned.recv().await.unwrap();
        assert_eq!(returned.code, "c1");
        assert_eq!(again.await.unwrap().status(), 403, "it is good for once");
        page.desk.shown.lock().html = "next".to_owned();
        returned.seen.send(()).unwrap();
        assert_eq!(good.await.unwrap().unwrap().text().await.unwrap(), "next");
    }

    #[tokio::test]
    async fn pasted_address_is_accepted_once_with_state() {
        let page = ManifestPage::open().await.unwrap();
        page.send("https://github.com/x", &json!({}));
        let state = page.desk.shown.lock().state.clone().unwrap();
        let address = |state: &str| format!("http://127.0.0.1:9/callback?code=c1&state={state}\n");
        for wrong in ["c1", "http://127.0.0.1:9/callback?code=c1", &address("other")] {
            assert!(page.pasted(wrong).is_none(), "{wrong}");
        }
        assert!(page.form().contains(&state), "the file sends the same state");
        assert_eq!(page.pasted(&address(&state)).unwrap().code, "c1");
        assert!(page.pasted(&address(&state)).is_none(), "it is good for once");
    }

    #[tokio::test]
    async fn page_without_its_path_shows_nothing() {
        bootstrap::install_tls_provider();
        let page = ManifestPage::open().await.unwrap();
        page.send("https://github.com/x", &json!({}));
        let state = page.desk.shown.lock().state.clone().unwrap();
        for path in [
            "/",
            "/callback",
            &format!("/callback?code=c1&state={state}"),
            "/x/",
        ] {
            let answer = reqwest::get(format!("http://{}{path}", page.address))
                .await
                .unwrap();
            assert_eq!(answer.status(), 404, "{path}");
            assert!(!answer.text().await.unwrap().contains(&state), "{path}");
        }
        assert!(
            page.pasted(&format!("http://127.0.0.1/x?code=c1&state={state}"))
                .is_some(),
            "nothing was taken"
        );
    }

    #[tokio::test]
    async fn page_rejects_foreign_host_header() {
        bootstrap::install_tls_provider();
        let page = ManifestPage::open().await.unwrap();
        let asked = reqwest::Client::new()
            .get(page.url())
            .header("host", "evil.example");
        assert_eq!(asked.send().await.unwrap().status(), 421);
    }
}
