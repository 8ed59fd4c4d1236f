//! Login at an `OpenID` provider, as a browser meets it.

use std::sync::{Arc, Mutex};

use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode},
    routing::get,
};
use reqwest::{Client, Response, redirect::Policy};
use serde_json::{Value, json};
use testkit::oidc::{CLIENT_ID, CLIENT_SECRET, FakeOidc, IdTokenFault};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A console with a login provider, and the calls of its API: token, person and role.
struct Console {
    url: String,
    provider: FakeOidc,
    browser: Client,
    calls: Arc<Mutex<Vec<[String; 3]>>>,
    shutdown: CancellationToken,
}

async fn bind_listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

fn build_fake_api(calls: &Arc<Mutex<Vec<[String; 3]>>>) -> Router {
    let calls = Arc::clone(calls);
    let answer = async move |headers: HeaderMap| {
        let named = ["authorization", "journeyman-person", "journeyman-role"];
        let text = |name| {
            let value = headers.get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        calls.lock().unwrap().push(named.map(text));
        Json(json!([]))
    };
    // The API of an earlier release, which checks a token before the path.
    let caller = async |headers: HeaderMap| match headers["authorization"].to_str() {
        Ok("Bearer of-the-console") => StatusCode::NOT_FOUND,
        Ok(_) | Err(_) => StatusCode::UNAUTHORIZED,
    };
    Router::new()
        .route("/v1/runs", get(answer))
        .route("/v1/me", get(caller))
}

impl Console {
    async fn start() -> Self {
        Self::start_with("of-the-console").await
    }

    /// Starts a console with this token of the API.
    async fn start_with(api_token: &str) -> Self {
        bootstrap::install_tls_provider();
        let provider = FakeOidc::start().await.unwrap();
        let (calls, shutdown) = (Arc::default(), CancellationToken::new());
        let (listener, api_url) = bind_listener().await;
        tokio::spawn(axum::serve(listener, build_fake_api(&calls)).into_future());
        let (listener, url) = bind_listener().await;
        provider.register(&format!("{url}/login/oidc/back"));
        let config: pages::Config = serde_json::from_value(json!({"console": {"api": api_url, "oidc": {
            "issuer": provider.url(), "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "public_url": url,
            "api_token": api_token, "viewers": ["staff"], "operators": ["shop"]}}}))
        .unwrap();
        bootstrap::ServiceConfig::check(&config).unwrap();
        tokio::spawn(bootstrap::serve_app::<pages::ConsoleApp>(
            config,
            listener,
            shutdown.clone(),
        ));
        let browser = Client::builder().redirect(Policy::none()).build().unwrap();
        Self {
            url,
            provider,
            browser,
            calls,
            shutdown,
        }
    }

    async fn get(&self, url: &str, cookie: &str) -> Response {
        let request = self.browser.get(url).header("cookie", cookie);
        request.send().await.unwrap()
    }

    /// Begins a login. Returns the address of the callback, and the cookie of the login.
    async fn begin(&self) -> (String, String) {
        let off = self.get(&format!("{}/login/oidc?next=/runs", self.url), "").await;
        assert_eq!(off.status(), StatusCode::SEE_OTHER);
        let cookie = off.headers()["set-cookie"].to_str().unwrap().to_owned();
        assert!(
            cookie.contains("HttpOnly; SameSite=Lax") && cookie.contains("Path=/login;"),
            "{cookie}"
        );
        let back = self.get(&read_location(&off), "").await;
        assert_eq!(
            back.status(),
            StatusCode::SEE_OTHER,
            "{:?}",
            self.provider.violations()
        );
        (read_location(&back), cookie.split(';').next().unwrap().to_owned())
    }

    async fn log_in(&self) -> Response {
        let (back, cookie) = self.begin().await;
        self.get(&back, &cookie).await
    }

    /// Asserts a failed login with this status and these words.
    async fn lets_nobody_in(&self, answer: Response, status: StatusCode, words: &str) {
        assert_eq!(answer.status(), status, "{words}");
        assert!(answer.headers().get("set-cookie").is_none(), "{words}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(words), "{text}");
        assert!(self.calls.lock().unwrap().is_empty(), "{words}");
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

fn read_location(answer: &Response) -> String {
    answer.headers()["location"].to_str().unwrap().to_owned()
}

fn build_ada_claims(groups: &Value) -> Value {
    json!({"sub": "u-1", "email": "ada@acme.example", "email_verified": true, "groups": groups})
}

#[tokio::test]
async fn provider_login_acts_as_named_person() {
    let console = Console::start().await;
    let page = console
        .get(&format!("{}/login?next=/runs", console.url), "")
        .await;
    let page = page.text().await.unwrap();
    assert!(
        page.contains("href=\"/login/oidc?next=%2Fruns\"") && !page.contains("API token"),
        "{page}"
    );
    for (groups, role) in [
        (json!(["staff"]), "viewer"),
        (json!(["staff", "shop"]), "operator"),
    ] {
        console.provider.log_in(build_ada_claims(&groups));
        let welcome = console.log_in().await;
        assert_eq!(welcome.status(), StatusCode::OK);
        // The page continues by itself: a redirect would still be part of the provider's navigation, without the
        // cookie.
        assert_eq!(welcome.headers()["refresh"], "0; url=/runs");
        let cookies = welcome.headers().get_all("set-cookie").into_iter();
        let cookies: Vec<_> = cookies.map(|value| value.to_str().unwrap()).collect();
        let session = cookies
            .iter()
            .find(|cookie| cookie.starts_with("journeyman="))
            .unwrap();
        assert!(session.contains("HttpOnly; SameSite=Strict"), "{session}");
        let session = session.split(';').next().unwrap();
        let runs = console.get(&format!("{}/runs", console.url), session).await;
        assert_eq!(runs.status(), StatusCode::OK);
        let call = console.calls.lock().unwrap().pop().unwrap();
        assert_eq!(call, ["Bearer of-the-console", "ada%40acme.example", role]);
        let page = runs.text().await.unwrap();
        assert!(
            page.contains(">ada@acme.example<") && page.contains(&format!(">{role}<")),
            "{page}"
        );
    }
    assert_eq!(console.provider.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn foreign_or_used_login_is_refused() {
    let console = Console::start().await;
    console.provider.log_in(build_ada_claims(&json!(["shop"])));
    let foreign = "did not begin in this browser";
    let (back, cookie) = console.begin().await;
    // Without the cookie, the code may be an attacker's, who wants the browser to log in as the attacker.
    let answer = console.get(&back, "").await;
    console
        .lets_nobody_in(answer, StatusCode::BAD_REQUEST, foreign)
        .await;
    let answer = console.get(&back, "journeyman-login=guessed").await;
    console
        .lets_nobody_in(answer, StatusCode::BAD_REQUEST, foreign)
        .await;
    let (state, _) = back.rsplit_once("state=").unwrap();
    let answer = console.get(&format!("{state}state=another"), &cookie).await;
    console
        .lets_nobody_in(answer, StatusCode::BAD_REQUEST, foreign)
        .await;
    // A login has one attempt.
    let answer = console.get(&back, &cookie).await;
    console
        .lets_nobody_in(answer, StatusCode::BAD_REQUEST, foreign)
        .await;
    // The code of one login does not fit the cookie of another.
    let (other, _) = console.begin().await;
    let (_, cookie) = console.begin().await;
    let answer = console.get(&other, &cookie).await;
    console
        .lets_nobody_in(answer, StatusCode::BAD_REQUEST, foreign)
        .await;
    assert_eq!(console.provider.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn id_token_for_other_login_is_refused() {
    let console = Console::start().await;
    console.provider.log_in(build_ada_claims(&json!(["shop"])));
    for twist in [
        IdTokenFault::Nonce,
        IdTokenFault::Expired,
        IdTokenFault::Audience,
        IdTokenFault::Issuer,
        IdTokenFault::Key,
        IdTokenFault::Unsigned,
    ] {
        console.provider.twist(twist);
        let answer = console.log_in().await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{twist:?}");
        console
            .lets_nobody_in(answer, StatusCode::FORBIDDEN, "is not for this login")
            .await;
    }
    // The failed attempts have no lasting effect.
    assert_eq!(console.log_in().await.status(), StatusCode::OK);
}

#[tokio::test]
async fn person_without_group_role_is_refused() {
    let console = Console::start().await;
    for groups in [json!([]), json!(["guests"]), json!(null)] {
        console.provider.log_in(build_ada_claims(&groups));
        let answer = console.log_in().await;
        let words = "ada@acme.example is in no group that may use this console";
        console.lets_nobody_in(answer, StatusCode::FORBIDDEN, words).await;
    }
}

#[tokio::test]
async fn unknown_token_of_console_is_named() {
    let console = Console::start_with("of-another-installation").await;
    console.provider.log_in(build_ada_claims(&json!(["shop"])));
    let answer = console.log_in().await;
    let words = "has to set console.oidc.api_token";
    console
        .lets_nobody_in(answer, StatusCode::BAD_GATEWAY, words)
        .await;
}

#[tokio::test]
async fn token_login_is_refused_with_provider() {
    let console = Console::start().await;
    let request = console.browser.post(format!("{}/login", console.url));
    let request = request
        .header("sec-fetch-site", "same-origin")
        .form(&[("token", "good")]);
    let answer = request.send().await.unwrap();
    console
        .lets_nobody_in(answer, StatusCode::UNPROCESSABLE_ENTITY, "log in at the provider")
        .await;
}

#[tokio::test]
async fn strangers_that_begin_logins_keep_nobody_out() {
    let console = Console::start().await;
    console.provider.log_in(build_ada_claims(&json!(["shop"])));
    let (back, cookie) = console.begin().await;
    for _ in 0..1_200 {
        let off = console.get(&format!("{}/login/oidc", console.url), "").await;
        assert_eq!(off.status(), StatusCode::SEE_OTHER);
    }
    assert_eq!(console.get(&back, &cookie).await.status(), StatusCode::OK);
    // One request for the metadata, and one for a token.
    assert_eq!(console.provider.calls(), (1, 1));
}

#[tokio::test]
async fn address_that_is_not_verified_is_nobody() {
    let console = Console::start().await;
    for verified in [json!(false), json!("false"), json!(null)] {
        let mut person = build_ada_claims(&json!(["shop"]));
        person["email_verified"] = verified;
        console.provider.log_in(person);
        let answer = console.log_in().await;
        let words = "does not say that it has verified your address";
        console.lets_nobody_in(answer, StatusCode::FORBIDDEN, words).await;
    }
}

/// Advances the clock of sessions. Sockets continue in real time.
async fn advance_clock(by: std::time::Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}

#[tokio::test]
async fn role_is_asked_again_each_hour() {
    let console = Console::start().await;
    let hour = std::time::Duration::from_secs(60 * 60);
    console.provider.give_refresh_tokens();
    console.provider.log_in(build_ada_claims(&json!(["shop"])));
    let welcome = console.log_in().await;
    let session = session_cookie(&welcome);
    let runs = format!("{}/runs", console.url);
    let role = async |status: StatusCode| {
        let answer = console.get(&runs, &session).await;
        assert_eq!(answer.status(), status);
        console.calls.lock().unwrap().pop().map(|[_, _, role]| role)
    };
    assert_eq!(role(StatusCode::OK).await.as_deref(), Some("operator"));
    console.provider.log_in(build_ada_claims(&json!(["staff"])));
    assert_eq!(role(StatusCode::OK).await.as_deref(), Some("operator"));
    advance_clock(hour).await;
    assert_eq!(role(StatusCode::OK).await.as_deref(), Some("viewer"));
    // The provider issues another refresh token each time.
    advance_clock(hour).await;
    assert_eq!(role(StatusCode::OK).await.as_deref(), Some("viewer"));
    console.provider.revoke();
    advance_clock(hour).await;
    assert_eq!(role(StatusCode::SEE_OTHER).await, None);
    assert_eq!(console.provider.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn login_without_refresh_token_ends_after_hour() {
    let console = Console::start().await;
    console.provider.log_in(build_ada_claims(&json!(["shop"])));
    let session = session_cookie(&console.log_in().await);
    let runs = format!("{}/runs", console.url);
    assert_eq!(console.get(&runs, &session).await.status(), StatusCode::OK);
    advance_clock(std::time::Duration::from_secs(60 * 60)).await;
    let answer = console.get(&runs, &session).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert!(
        read_location(&answer).starts_with("/login"),
        "{}",
        read_location(&answer)
    );
}

fn session_cookie(welcome: &Response) -> String {
    let cookies = welcome.headers().get_all("set-cookie").into_iter();
    let mut cookies = cookies.map(|value| value.to_str().unwrap().split(';').next().unwrap());
    cookies
        .find(|cookie| cookie.starts_with("journeyman="))
        .unwrap()
        .to_owned()
}
