//! The console as a browser meets it, before an API that says what these tests want.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response,
        sse::{Event, Sse},
    },
    routing::{get, post},
};
use futures::stream;
use reqwest::{Client, RequestBuilder, redirect::Policy};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const RUN: &str = "/runs/jira%3AENG-12%4057";
const HEAD: &str = "1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d1a2b3c4d";
// Time limit of a response that has to end, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A console, and the tokens of the calls to its API.
struct Console {
    url: String,
    browser: Client,
    tokens: Arc<Mutex<Vec<String>>>,
    shutdown: CancellationToken,
}

/// Refuses every token except `good`.
fn check_token(headers: &HeaderMap, tokens: &Mutex<Vec<String>>) -> Result<(), Response> {
    let token = headers.get("authorization").unwrap().to_str().unwrap();
    tokens.lock().unwrap().push(token.to_owned());
    match token {
        "Bearer good" => Ok(()),
        _ => Err(build_refusal(StatusCode::UNAUTHORIZED, "unauthorized", "no")),
    }
}

fn build_refusal(status: StatusCode, error: &str, detail: &str) -> Response {
    (status, Json(json!({"error": error, "detail": detail}))).into_response()
}

fn build_journal() -> Value {
    let decision = domain::GateDecision {
        run: "jira:ENG-12@57".parse().unwrap(),
        head: HEAD.parse().unwrap(),
        verdict: domain::DecisionVerdict::Approve,
        feedback: String::new(),
    };
    json!([domain::JournalEntry {
        position: 0,
        nonce: String::new(),
        fence: domain::RunFence::default(),
        at: domain::Timestamp::from_unix_ms(1_764_000_000_000),
        fact: domain::Fact::Decided {
            decision,
            by: "grace".to_owned()
        },
    }])
}

fn build_fake_api(tokens: &Arc<Mutex<Vec<String>>>) -> Router {
    let answer = |status: StatusCode, value: Value| {
        let tokens = Arc::clone(tokens);
        async move |headers: HeaderMap| match check_token(&headers, &tokens) {
            Ok(()) => (status, Json(value)).into_response(),
            Err(refused) => refused,
        }
    };
    let conflict = json!({"error": "conflict", "detail": "somebody has decided already"});
    let forbidden = json!({"error": "forbidden", "detail": "needs the role operator"});
    Router::new()
        .route(
            "/v1/me",
            get(answer(
                StatusCode::OK,
                json!({"name": "ada", "role": "operator", "is_limited": false, "version": "0.1.0"}),
            )),
        )
        .route("/v1/stop-all", get(answer(StatusCode::OK, json!({"on": false}))))
        .route("/v1/runs", get(answer(StatusCode::OK, json!([]))))
        .route(
            "/v1/runs/{id}/journal",
            get(answer(StatusCode::OK, build_journal())),
        )
        // The journal of a run that does nothing.
        .route(
            "/v1/runs/{id}/events",
            get(async || Sse::new(stream::pending::<Result<Event, Infallible>>())),
        )
        .route(
            "/v1/runs/{id}/decision",
            post(answer(StatusCode::CONFLICT, conflict)),
        )
        .route(
            "/v1/runs/{id}/stop",
            post(answer(StatusCode::FORBIDDEN, forbidden)),
        )
}

async fn bind_listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

impl Console {
    async fn start() -> Self {
        bootstrap::install_tls_provider();
        let (tokens, shutdown) = (Arc::default(), CancellationToken::new());
        let (listener, api_url) = bind_listener().await;
        tokio::spawn(axum::serve(listener, build_fake_api(&tokens)).into_future());
        let (listener, url) = bind_listener().await;
        let config = pages::Config::of_api(&api_url);
        tokio::spawn(bootstrap::serve_app::<pages::ConsoleApp>(
            config,
            listener,
            shutdown.clone(),
        ));
        let browser = Client::builder().redirect(Policy::none()).build().unwrap();
        Self {
            url,
            browser,
            tokens,
            shutdown,
        }
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.browser.get(format!("{}{path}", self.url))
    }

    /// Builds a form submission of a page of the console.
    fn post(&self, path: &str, form: &[(&str, &str)]) -> RequestBuilder {
        let request = self.browser.post(format!("{}{path}", self.url));
        request.header("sec-fetch-site", "same-origin").form(form)
    }

    /// Logs in and returns the cookie.
    async fn log_in(&self) -> String {
        let answer = self.post("/login", &[("token", " good\n"), ("next", "/runs")]);
        let answer = answer.send().await.unwrap();
        assert_eq!(
            (answer.status(), read_location(&answer)),
            (StatusCode::SEE_OTHER, "/runs")
        );
        let cookie = answer.headers()["set-cookie"].to_str().unwrap();
        assert!(
            cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
            "{cookie}"
        );
        assert!(!cookie.contains("good"), "the token stays here: {cookie}");
        cookie.split(';').next().unwrap().to_owned()
    }

    fn calls(&self) -> usize {
        self.tokens.lock().unwrap().len()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn read_location(answer: &reqwest::Response) -> &str {
    answer
        .headers()
        .get("location")
        .map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn pages_require_a_token_the_api_knows() {
    let console = Console::start().await;
    let pages = [
        "/",
        "/tickets",
        "/runs",
        RUN,
        "/dead",
        "/rules",
        "/costs",
        "/health",
        "/tickets/jira%3AENG-12",
    ];
    for page in pages {
        let answer = console.get(page).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{page}");
        assert!(read_location(&answer).starts_with("/login?next="), "{page}");
        assert!(
            answer.headers().get("set-cookie").is_none(),
            "a link from elsewhere ends no session"
        );
    }
    assert_eq!(console.calls(), 0);
    let refused = console
        .post("/login", &[("token", "wrong")])
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.headers().get("set-cookie").is_none());
}

#[tokio::test]
async fn session_acts_with_its_token_until_logout() {
    let console = Console::start().await;
    let cookie = console.log_in().await;
    let read = console
        .get("/runs")
        .header("cookie", &cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(read.status(), StatusCode::OK);
    let policy = read.headers()["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(*console.tokens.lock().unwrap(), ["Bearer good", "Bearer good"]);
    assert_eq!(read.headers()["content-type"], "text/html; charset=utf-8");
    let page = read.text().await.unwrap();
    for part in [
        "class=\"user\">ada<",
        ">operator<",
        "<h1>Runs</h1>",
        "No run yet.",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let out = console
        .post("/logout", &[])
        .header("cookie", &cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(read_location(&out), "/login");
    let read = console
        .get("/runs")
        .header("cookie", &cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(
        read.status(),
        StatusCode::SEE_OTHER,
        "the id is worth nothing any more"
    );
}

#[tokio::test]
async fn news_of_run_end_with_session() {
    let console = Console::start().await;
    let cookie = console.log_in().await;
    let news = console.get(&format!("{RUN}/events")).header("cookie", &cookie);
    let mut news = news.send().await.unwrap();
    assert_eq!(news.status(), StatusCode::OK);
    let out = console.post("/logout", &[]).header("cookie", &cookie);
    assert_eq!(read_location(&out.send().await.unwrap()), "/login");
    let rest = async { while news.chunk().await.unwrap().is_some() {} };
    let ended = tokio::time::timeout(PATIENCE, rest).await;
    ended.expect("the stream of a run that goes on ends");
}

#[tokio::test]
async fn pages_load_their_files_from_console() {
    let console = Console::start().await;
    let cookie = console.log_in().await;
    let page = console
        .get("/runs")
        .header("cookie", &cookie)
        .send()
        .await
        .unwrap();
    let page = page.text().await.unwrap();
    for kind in [".css", ".js", ".svg"] {
        let end = page.find(kind).unwrap() + kind.len();
        let start = page[..end].rfind('"').unwrap() + 1;
        let file = console.get(&page[start..end]).send().await.unwrap();
        assert_eq!(file.status(), StatusCode::OK, "{}", &page[start..end]);
    }
}

#[tokio::test]
async fn refusal_of_foreign_order_is_whole_page() {
    let console = Console::start().await;
    let foreign = console.browser.post(format!("{}/logout", console.url));
    let foreign = foreign
        .header("sec-fetch-site", "cross-site")
        .send()
        .await
        .unwrap();
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    let page = foreign.text().await.unwrap();
    assert!(
        page.contains("nothing was done") && page.ends_with("</html>"),
        "{page}"
    );
}

#[tokio::test]
async fn a_page_of_somebody_else_orders_nothing() {
    let console = Console::start().await;
    let cookie = console.log_in().await;
    let before = console.calls();
    for site in [Some("cross-site"), Some("same-site"), None] {
        let order = console
            .browser
            .post(format!("{}{RUN}/order", console.url))
            .header("cookie", &cookie);
        let order = match site {
            Some(site) => order.header("sec-fetch-site", site),
            None => order.header("origin", "https://evil.example"),
        };
        assert_eq!(
            order.send().await.unwrap().status(),
            StatusCode::FORBIDDEN,
            "{site:?}"
        );
    }
    assert_eq!(console.calls(), before, "the API heard nothing of it");
}

#[tokio::test]
async fn late_decision_response_names_earlier_decider() {
    let console = Console::start().await;
    let cookie = console.log_in().await;
    let form = [("verdict", "approve"), ("head", HEAD)];
    let late = console
        .post(&format!("{RUN}/approval"), &form)
        .header("cookie", &cookie);
    let late = late.send().await.unwrap();
    assert_eq!(late.status(), StatusCode::CONFLICT);
    let text = late.text().await.unwrap();
    assert!(
        text.contains("somebody has decided already") && text.contains("grace approved it"),
        "{text}"
    );
}

#[tokio::test]
async fn missing_permission_is_shown_on_page() {
    let console = Console::start().await;
    let cookie = console.log_in().await;
    let refused = console
        .post(&format!("{RUN}/order"), &[("order", "stop")])
        .header("cookie", &cookie);
    let refused = refused.send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(
        refused
            .text()
            .await
            .unwrap()
            .contains("Your token is not allowed to do this")
    );
}

#[tokio::test]
async fn order_is_confirmed_before_it_is_given() {
    let console = Console::start().await;
    let cookie = console.log_in().await;
    let before = console.calls();
    let form = [("order", "say"), ("text", "Round *half* up.")];
    let asked = console
        .post(&format!("{RUN}/confirm"), &form)
        .header("cookie", &cookie);
    let asked = asked.send().await.unwrap();
    assert_eq!(asked.status(), StatusCode::OK);
    let page = asked.text().await.unwrap();
    assert!(
        page.contains("Round <em>half</em> up.") && page.contains(">Say it</button>"),
        "{page}"
    );
    assert!(page.contains(&format!("action=\"{RUN}/order\"")), "{page}");
    let refused = console
        .post(&format!("{RUN}/confirm"), &[("order", "say"), ("text", " ")])
        .header("cookie", &cookie);
    assert_eq!(
        refused.send().await.unwrap().status(),
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let unknown = console
        .post(&format!("{RUN}/confirm"), &[("order", "merge")])
        .header("cookie", &cookie);
    assert!(unknown.send().await.unwrap().status().is_client_error());
    assert_eq!(console.calls(), before, "nothing is asked of the API");
}
