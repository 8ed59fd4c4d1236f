//! Strict `OpenID` provider: authorization code flow with PKCE. The user is already logged in and agrees.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Form, Json, Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use parking_lot::{Mutex, MutexGuard};
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

/// Id of the registered client.
pub const CLIENT_ID: &str = "console";
/// Secret of the registered client.
pub const CLIENT_SECRET: &str = "secret-of-the-console";

/// Fault of the next ID token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdTokenFault {
    /// Nonce of another login.
    Nonce,
    /// Expiry in the past.
    Expired,
    /// Audience of another client.
    Audience,
    /// Issuer of another provider.
    Issuer,
    /// Signature by an unpublished key.
    Key,
    /// No signature at all (`alg` is `none`).
    Unsigned,
}

/// `OpenID` provider with one logged-in user.
pub struct FakeOidc {
    url: String,
    shared: Arc<OidcState>,
    server: JoinHandle<()>,
}

struct OidcState {
    url: String,
    key: EcdsaKeyPair,
    other_key: EcdsaKeyPair,
    inner: Mutex<OidcRecords>,
}

#[derive(Default)]
struct OidcRecords {
    /// Claims of the logged-in user.
    person: Value,
    redirect_uri: String,
    twist: Option<IdTokenFault>,
    codes: HashMap<String, StandInLogin>,
    /// True if it issues refresh tokens. `refresh` has the valid ones, each with its subject.
    gives_refresh: bool,
    refresh: HashMap<String, Value>,
    /// Number of requests for the discovery document and for tokens.
    discoveries: usize,
    token_calls: usize,
    violations: Vec<String>,
}

struct StandInLogin {
    nonce: String,
    challenge: String,
    person: Value,
}

type FormFields = BTreeMap<String, String>;

impl FakeOidc {
    /// Starts on a free loopback port.
    ///
    /// # Errors
    /// When no port can be bound, or no key can be generated.
    pub async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(OidcState {
            url: url.clone(),
            key: new_key()?,
            other_key: new_key()?,
            inner: Mutex::default(),
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(serve_discovery))
            .route("/keys", get(serve_keys))
            .route("/authorize", get(authorize_login))
            .route("/token", post(exchange_token))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { url, shared, server })
    }

    /// Issuer URL of the provider.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Registers the only permitted redirect URI.
    pub fn register(&self, redirect_uri: &str) {
        redirect_uri.clone_into(&mut self.shared.lock().redirect_uri);
    }

    /// Sets the claims of the logged-in user, including `sub`.
    pub fn log_in(&self, person: Value) {
        self.shared.lock().person = person;
    }

    /// Sets the fault of the next ID token.
    pub fn twist(&self, twist: IdTokenFault) {
        self.shared.lock().twist = Some(twist);
    }

    /// Issues refresh tokens from now on.
    pub fn give_refresh_tokens(&self) {
        self.shared.lock().gives_refresh = true;
    }

    /// Revokes all refresh tokens, as when a user's account is closed.
    pub fn revoke(&self) {
        self.shared.lock().refresh.clear();
    }

    /// Number of requests for the discovery document and for tokens.
    pub fn calls(&self) -> (usize, usize) {
        let inner = self.shared.lock();
        (inner.discoveries, inner.token_calls)
    }

    /// Requests that the standard forbids, one description each.
    pub fn violations(&self) -> Vec<String> {
        self.shared.lock().violations.clone()
    }
}

impl Drop for FakeOidc {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl OidcState {
    fn lock(&self) -> MutexGuard<'_, OidcRecords> {
        self.inner.lock()
    }

    fn refuse(&self, problem: &str) -> Response {
        self.lock().violations.push(problem.to_owned());
        (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_request"}))).into_response()
    }

    fn id_token(&self, login: StandInLogin) -> anyhow::Result<String> {
        // `take` limits the fault to one token.
        let twist = self.lock().twist.take();
        let is = |wanted| twist == Some(wanted);
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let mut claims = login.person;
        claims["iss"] = if is(IdTokenFault::Issuer) {
            json!("http://127.0.0.1:1")
        } else {
            json!(self.url)
        };
        claims["aud"] = if is(IdTokenFault::Audience) {
            json!("somebody-else")
        } else {
            json!(CLIENT_ID)
        };
        // `iat` is an hour ago, so that the fault `Expired` still has a valid order of times.
        claims["iat"] = json!(now - 3_600);
        claims["exp"] = if is(IdTokenFault::Expired) {
            json!(now - 1_800)
        } else {
            json!(now + 600)
        };
        if is(IdTokenFault::Nonce) {
            claims["nonce"] = json!("of-another-login");
        // A refreshed token has no nonce.
        } else if !login.nonce.is_empty() {
            claims["nonce"] = json!(login.nonce);
        }
        let algorithm = if is(IdTokenFault::Unsigned) {
            "none"
        } else {
            "ES256"
        };
        let head = json!({"alg": algorithm, "kid": "one", "typ": "JWT"});
        let text = format!(
            "{}.{}",
            encode_base64url(head.to_string()),
            encode_base64url(claims.to_string())
        );
        let key = if is(IdTokenFault::Key) {
            &self.other_key
        } else {
            &self.key
        };
        let signature = key
            .sign(&SystemRandom::new(), text.as_bytes())
            .map_err(|_| anyhow::anyhow!("cannot sign"))?;
        let signature = if is(IdTokenFault::Unsigned) {
            String::new()
        } else {
            encode_base64url(signature)
        };
        Ok(format!("{text}.{signature}"))
    }
}

fn new_key() -> anyhow::Result<EcdsaKeyPair> {
    let random = SystemRandom::new();
    let unspecified = |_| anyhow::anyhow!("cannot make a key");
    let document =
        EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).map_err(unspecified)?;
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
        .map_err(|_| anyhow::anyhow!("cannot read a key"))
}

fn encode_base64url(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

async fn serve_discovery(State(shared): State<Arc<OidcState>>) -> Json<Value> {
    shared.lock().discoveries += 1;
    let url = &shared.url;
    Json(
        json!({"issuer": url, "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"), "jwks_uri": format!("{url}/keys"),
        "response_types_supported": ["code"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"], "code_challenge_methods_supported": ["S256"]}),
    )
}

async fn serve_keys(State(shared): State<Arc<OidcState>>) -> Json<Value> {
    // The key is an uncompressed point: the byte 4, then x and y with 32 bytes each.
    let (x, y) = shared.key.public_key().as_ref()[1..].split_at(32);
    Json(
        json!({"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "one",
        "x": encode_base64url(x), "y": encode_base64url(y)}]}),
    )
}

/// Answers the authorization request with a code; the user is logged in and agrees.
async fn authorize_login(State(shared): State<Arc<OidcState>>, Query(asked): Query<FormFields>) -> Response {
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    for (name, wanted) in [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("code_challenge_method", "S256"),
    ] {
        if field(name) != wanted {
            return shared.refuse(&format!("{name} is {:?}", field(name)));
        }
    }
    if field("redirect_uri") != shared.lock().redirect_uri {
        return shared.refuse("redirect_uri is not the registered one");
    }
    if !field("scope").split(' ').any(|scope| scope == "openid") {
        return shared.refuse("the scope openid is missing");
    }
    for name in ["state", "nonce", "code_challenge"] {
        // 16 characters are the stand-in's bound for values that must not be guessable.
        if field(name).len() < 16 {
            return shared.refuse(&format!("{name} can be guessed"));
        }
    }
    let code = uuid::Uuid::new_v4().simple().to_string();
    let mut inner = shared.lock();
    let login = StandInLogin {
        nonce: field("nonce"),
        challenge: field("code_challenge"),
        person: inner.person.clone(),
    };
    inner.codes.insert(code.clone(), login);
    let back = format!("{}?code={code}&state={}", inner.redirect_uri, field("state"));
    Redirect::to(&back).into_response()
}

async fn exchange_token(
    State(shared): State<Arc<OidcState>>,
    headers: HeaderMap,
    Form(asked): Form<FormFields>,
) -> Response {
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let wanted = format!(
        "Basic {}",
        STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}"))
    );
    let given = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    if given != Some(wanted.as_str()) {
        return shared.refuse("the client does not authenticate");
    }
    shared.lock().token_calls += 1;
    if field("grant_type") == "refresh_token" {
        return refresh_tokens(&shared, &field("refresh_token"));
    }
    // OAuth requires the same `redirect_uri` in both requests.
    let uri = shared.lock().redirect_uri.clone();
    if field("grant_type") != "authorization_code" || field("redirect_uri") != uri {
        return shared.refuse("not the grant of a code, or another redirect_uri");
    }
    // A code is removed with its first use, so a replay fails.
    let login = shared.lock().codes.remove(&field("code"));
    let Some(login) = login else {
        return shared.refuse("the code is unknown or used");
    };
    if encode_base64url(digest(&SHA256, field("code_verifier").as_bytes())) != login.challenge {
        return shared.refuse("the code_verifier is not that of the challenge");
    }
    answer_tokens(&shared, login)
}

fn answer_tokens(shared: &OidcState, login: StandInLogin) -> Response {
    let mut fields = json!({"access_token": "unused", "token_type": "Bearer", "expires_in": 600});
    if shared.lock().gives_refresh {
        let token = uuid::Uuid::new_v4().simple().to_string();
        fields["refresh_token"] = json!(token);
        shared.lock().refresh.insert(token, login.person["sub"].clone());
    }
    match shared.id_token(login) {
        Ok(signed) => {
            fields["id_token"] = json!(signed);
            Json(fields).into_response()
        }
        Err(error) => shared.refuse(&error.to_string()),
    }
}

/// Exchanges a refresh token, which is valid once. The new ID token has the user's current claims; the one
/// for a code has those of the login.
fn refresh_tokens(shared: &OidcState, token: &str) -> Response {
    let mut inner = shared.lock();
    let Some(subject) = inner.refresh.remove(token) else {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"}))).into_response();
    };
    let mut person = inner.person.clone();
    drop(inner);
    person["sub"] = subject;
    let login = StandInLogin {
        nonce: String::new(),
        challenge: String::new(),
        person,
    };
    answer_tokens(shared, login)
}
