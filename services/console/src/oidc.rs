//! Login at an `OpenID` provider: the code flow with PKCE, a state and a nonce. The person's name and groups come
//! from the ID token that the provider signed for this login.

use std::{fmt, sync::Arc, time::Duration};

use api::{ActingPerson, types::Role};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{cause::format_error_chain, text::truncate_text};
use jsonwebtoken::jwk::Jwk;
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom as _, SystemRandom},
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{
    sync::{Mutex, Semaphore, SemaphorePermit},
    time::Instant,
};
use url::{Url, form_urlencoded};

use crate::{
    config::OidcSettings,
    id_token::{ExpectedToken, IdTokenError},
};

/// Path to which the provider redirects browsers.
pub(crate) const BACK: &str = "/login/oidc/back";
/// Time that a person has to log in at the provider.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10 * 60);
// Fetching the metadata for each login would let strangers cause requests to the provider.
const MAX_METADATA_AGE: Duration = Duration::from_secs(10 * 60);
// Holds when a token's key is missing from the metadata: the provider may have rotated its keys.
const MAX_AGE_WITHOUT_KEY: Duration = Duration::from_secs(30);
// Time until a failed fetch is repeated, so that an unreachable provider gets no request for each login.
const MAX_FAILURE_AGE: Duration = Duration::from_secs(5);
// Concurrent requests to the provider.
const MAX_CALLS: usize = 8;
// Longest time for one response of the provider.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
// Largest response of the provider, in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
// Longest text of the provider in a reason, in characters. Reasons go to the log and to the login page.
const MAX_QUOTED: usize = 300;
// Entropy of state, nonce and code verifier, in bytes. RFC 7636, section 4.1, recommends it for the verifier.
const RANDOM_BYTES: usize = 32;

/// Reason why a login fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoginRefusal {
    /// The provider does not respond, or not by the standard.
    Provider(String),
    /// The browser returns from a login that did not begin here, took too long, or was used before.
    Foreign,
    /// The ID token is not valid for this login.
    Token(String),
    /// The ID token has no usable name.
    Nameless(&'static str),
    /// None of the person's groups has a role.
    Groupless(String),
    /// The API does not know the console's own token.
    ApiToken,
}

/// Identity of a person at the provider. A change of their name does not change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderIdentity {
    issuer: String,
    subject: String,
}

impl fmt::Display for ProviderIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuer = self.issuer.trim_start_matches("https://").trim_end_matches('/');
        write!(f, "{} at {issuer}", self.subject)
    }
}

/// A person who has logged in.
pub(crate) struct KnownPerson {
    pub(crate) person: ActingPerson,
    pub(crate) identity: ProviderIdentity,
    /// Token for later requests of the person's role.
    pub(crate) refresh: Option<SecretString>,
}

/// State of a login in progress.
#[derive(Deserialize, Serialize)]
pub(crate) struct LoginInProgress {
    state: String,
    nonce: String,
    /// Secret behind the code challenge (RFC 7636): the provider gives tokens to its owner alone.
    verifier: String,
    /// Path to show after the login.
    pub(crate) next: String,
}

/// Client of the provider, with its cached metadata.
pub(crate) struct OidcProvider {
    settings: OidcSettings,
    http: reqwest::Client,
    /// Metadata of the provider or the error of the fetch, with the time of the fetch.
    cached: Mutex<Option<(Instant, Result<ProviderMetadata, LoginRefusal>)>>,
    /// Permits for requests to the provider. Strangers with made-up codes cannot cause more of them.
    calls: Semaphore,
}

/// Addresses and keys that the provider publishes.
#[derive(Clone)]
struct ProviderMetadata {
    authorization: Url,
    token: Url,
    keys: Arc<Vec<Jwk>>,
}

/// Discovery document (`OpenID` Connect Discovery, section 3): the fields that a login needs.
#[derive(Deserialize)]
struct DiscoveryDocument {
    issuer: String,
    authorization_endpoint: Url,
    token_endpoint: Url,
    jwks_uri: Url,
}

impl DiscoveryDocument {
    /// Checks the issuer, and the addresses to which the console sends requests.
    ///
    /// # Errors
    /// [`LoginRefusal::Provider`] for the document of another issuer, and for addresses over plain HTTP that the
    /// settings do not permit.
    fn check(&self, settings: &OidcSettings) -> Result<(), LoginRefusal> {
        // Another issuer could be a provider that mixes up its customers (OpenID Connect Discovery, section 4.3).
        if self.issuer != settings.issuer {
            let other = truncate_text(&self.issuer, MAX_QUOTED);
            let reason = format!("it calls itself {other:?} and not {:?}", settings.issuer);
            return Err(LoginRefusal::Provider(reason));
        }
        // A provider behind a proxy may publish addresses with another scheme than that of its issuer.
        let called = [&self.token_endpoint, &self.jwks_uri];
        match called.into_iter().find(|url| !settings.can_reach(url.as_str())) {
            Some(url) => {
                let url = truncate_text(url.as_str(), MAX_QUOTED);
                let reason = format!("it publishes {url}, which is not https, and allow_insecure is not set");
                Err(LoginRefusal::Provider(reason))
            }
            None => Ok(()),
        }
    }
}

/// Published keys, of which some may be of kinds that are not known here.
#[derive(Deserialize)]
struct PublishedKeys {
    keys: Vec<Value>,
}

/// Response of the token endpoint (RFC 6749, section 5.1).
#[derive(Deserialize)]
struct TokenAnswer {
    id_token: Option<String>,
    refresh_token: Option<SecretString>,
}

/// Error response of the token endpoint (RFC 6749, section 5.2).
#[derive(Deserialize)]
struct TokenRefusal {
    error: String,
    error_description: Option<String>,
}

impl TokenRefusal {
    fn reason(&self) -> String {
        let description = self.error_description.as_deref();
        let description = description.map_or_else(String::new, |text| format!(": {text}"));
        truncate_text(&format!("{}{description}", self.error), MAX_QUOTED)
    }
}

impl OidcProvider {
    pub(crate) fn new(settings: OidcSettings) -> Result<Self, reqwest::Error> {
        // A redirect could lead to any host, with the client secret in the request.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(CALL_TIMEOUT);
        let http = webproxy::configure_client(http)?.build()?;
        Ok(Self {
            settings,
            http,
            cached: Mutex::default(),
            calls: Semaphore::new(MAX_CALLS),
        })
    }

    /// Returns true if a token of the API is a second way to log in.
    pub(crate) const fn takes_tokens(&self) -> bool {
        self.settings.token_login
    }

    /// Builds a client of the API that speaks for the person.
    ///
    /// # Errors
    /// [`LoginRefusal::Provider`] when the client cannot be built.
    pub(crate) fn client_for(
        &self,
        api: &str,
        person: ActingPerson,
        identity: &ProviderIdentity,
    ) -> Result<api::Client, LoginRefusal> {
        let client = api::Client::new(api, self.settings.api_token.clone());
        let client = client.map_err(|error| LoginRefusal::Provider(error.to_string()))?;
        Ok(client.on_behalf_of(person).with_subject(identity.to_string()))
    }

    /// Returns the address of the provider's login page, and the state to keep until the browser returns.
    pub(crate) async fn begin(&self, next: String) -> Result<(String, LoginInProgress), LoginRefusal> {
        let mut url = self.metadata(MAX_METADATA_AGE).await?.authorization;
        let begun = LoginInProgress {
            state: generate_secret()?,
            nonce: generate_secret()?,
            verifier: generate_secret()?,
            next,
        };
        let mut scopes = vec!["openid"];
        let additional = self.settings.scopes.iter().map(String::as_str);
        scopes.extend(additional.filter(|scope| *scope != "openid"));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.redirect_uri())
            .append_pair("scope", &scopes.join(" "))
            .append_pair("state", &begun.state)
            .append_pair("nonce", &begun.nonce)
            .append_pair(
                "code_challenge",
                &encode_base64url(digest(&SHA256, begun.verifier.as_bytes())),
            )
            .append_pair("code_challenge_method", "S256");
        Ok((url.into(), begun))
    }

    /// Exchanges the code for the person who logged in.
    pub(crate) async fn finish(
        &self,
        begun: LoginInProgress,
        state: &str,
        code: String,
    ) -> Result<KnownPerson, LoginRefusal> {
        // The state binds the callback to this browser's login (RFC 6749, section 10.12).
        if begun.state != state {
            return Err(LoginRefusal::Foreign);
        }
        let back = self.redirect_uri();
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", back.as_str()),
            ("code_verifier", begun.verifier.as_str()),
        ];
        // The code comes from the browser: its refusal says nothing of a person.
        let answer = self
            .request_tokens(&grant)
            .await
            .map_err(|refused| match refused {
                LoginRefusal::Token(reason) => LoginRefusal::Provider(reason),
                other @ (LoginRefusal::Provider(_)
                | LoginRefusal::Foreign
                | LoginRefusal::Nameless(_)
                | LoginRefusal::Groupless(_)
                | LoginRefusal::ApiToken) => other,
            })?;
        let claims = self.claims(&answer, Some(&begun.nonce)).await?;
        Ok(KnownPerson {
            person: read_person(&self.settings, &claims)?,
            identity: read_identity(&claims)?,
            refresh: answer.refresh_token,
        })
    }

    /// Requests the current role of a person who logged in before. Returns the next refresh token if the provider
    /// sends one.
    ///
    /// # Errors
    /// [`LoginRefusal::Provider`] when the provider is unreachable, another variant when it no longer vouches for the
    /// person.
    pub(crate) async fn ask_again(
        &self,
        known: &ProviderIdentity,
        refresh: &SecretString,
    ) -> Result<(ActingPerson, Option<SecretString>), LoginRefusal> {
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose_secret()),
        ];
        let answer = self.request_tokens(&grant).await?;
        // The standard does not require a nonce in a refreshed token.
        let claims = self.claims(&answer, None).await?;
        // OpenID Connect Core, section 12.2, requires issuer and subject of the first ID token.
        if read_identity(&claims)? != *known {
            return Err(LoginRefusal::Token("it is for another person".to_owned()));
        }
        Ok((read_person(&self.settings, &claims)?, answer.refresh_token))
    }

    /// Requests tokens for a grant, authenticated as RFC 6749, section 2.3.1, describes.
    ///
    /// # Errors
    /// [`LoginRefusal::Token`] when the provider refuses the grant, [`LoginRefusal::Provider`] when it was not reached or
    /// gave no decision.
    async fn request_tokens(&self, grant: &[(&str, &str)]) -> Result<TokenAnswer, LoginRefusal> {
        let endpoint = self.metadata(MAX_METADATA_AGE).await?.token;
        // After `metadata`, so that a login that waits for it holds no permit.
        let _call = self.call().await?;
        let request = self.http.post(endpoint).basic_auth(
            encode_form_text(&self.settings.client_id),
            Some(encode_form_text(self.settings.client_secret.expose_secret())),
        );
        let (status, body) = self.read_response(request.form(grant)).await?;
        if status.is_success() {
            return parse_body(&body);
        }
        match serde_json::from_slice::<TokenRefusal>(&body) {
            // An overloaded or broken provider decides nothing about a person.
            Ok(refusal) if is_decision(status, &refusal.error) => Err(LoginRefusal::Token(refusal.reason())),
            Ok(_) | Err(_) => Err(LoginRefusal::Provider(format!("it answers with status {status}"))),
        }
    }

    /// Sends a request and returns the status and body of the response.
    async fn read_response(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<(reqwest::StatusCode, Vec<u8>), LoginRefusal> {
        let failed = |error: reqwest::Error| LoginRefusal::Provider(format_error_chain(&error.without_url()));
        let mut response = request.send().await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            // The limit applies to the received bytes, because Content-Length can be missing or wrong.
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                let reason = format!("its answer has more than {MAX_RESPONSE_BYTES} bytes");
                return Err(LoginRefusal::Provider(reason));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((response.status(), body))
    }

    /// Returns the verified claims of a response. An unknown key may be new, so the provider's keys are fetched again
    /// then.
    async fn claims(&self, answer: &TokenAnswer, nonce: Option<&str>) -> Result<Value, LoginRefusal> {
        let signed = answer.id_token.as_deref();
        let signed = signed.ok_or_else(|| LoginRefusal::Provider("it gave no ID token".to_owned()))?;
        let expected = ExpectedToken {
            issuer: &self.settings.issuer,
            client_id: &self.settings.client_id,
            nonce,
        };
        let keys = self.metadata(MAX_METADATA_AGE).await?.keys;
        let claims = match expected.verify(signed, &keys) {
            // `MAX_AGE_WITHOUT_KEY` bounds how often forged tokens can cause this fetch.
            Err(IdTokenError::UnknownKey) => {
                expected.verify(signed, &self.metadata(MAX_AGE_WITHOUT_KEY).await?.keys)
            }
            verified => verified,
        };
        claims.map_err(|error| LoginRefusal::Token(error.to_string()))
    }

    /// Waits for a permit for one request to the provider.
    async fn call(&self) -> Result<SemaphorePermit<'_>, LoginRefusal> {
        let busy = || LoginRefusal::Provider("too many people log in at the moment; try again".to_owned());
        let waited = tokio::time::timeout(CALL_TIMEOUT, self.calls.acquire()).await;
        waited.map_err(|_| busy())?.map_err(|_| busy())
    }

    /// Returns the provider's metadata with its keys, from the cache if it is younger than `max_age`.
    async fn metadata(&self, max_age: Duration) -> Result<ProviderMetadata, LoginRefusal> {
        let mut cached = self.cached.lock().await;
        if let Some((fetched_at, known)) = &*cached {
            let max_age = if known.is_ok() { max_age } else { MAX_FAILURE_AGE };
            if fetched_at.elapsed() < max_age {
                return known.clone();
            }
        }
        // The lock is held during the fetch: concurrent logins wait for one fetch instead of making their own.
        let metadata = self.fetch_metadata().await;
        *cached = Some((Instant::now(), metadata.clone()));
        metadata
    }

    async fn fetch_metadata(&self) -> Result<ProviderMetadata, LoginRefusal> {
        let issuer = &self.settings.issuer;
        let address = format!(
            "{}/.well-known/openid-configuration",
            issuer.trim_end_matches('/')
        );
        let document: DiscoveryDocument = self.fetch_json(self.http.get(address)).await?;
        document.check(&self.settings)?;
        let published: PublishedKeys = self.fetch_json(self.http.get(document.jwks_uri)).await?;
        let keys = published.keys.into_iter().map(serde_json::from_value);
        Ok(ProviderMetadata {
            authorization: document.authorization_endpoint,
            token: document.token_endpoint,
            keys: Arc::new(keys.filter_map(Result::ok).collect()),
        })
    }

    async fn fetch_json<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<T, LoginRefusal> {
        let (status, body) = self.read_response(request).await?;
        if !status.is_success() {
            return Err(LoginRefusal::Provider(format!("it answers with status {status}")));
        }
        parse_body(&body)
    }

    /// Address of the callback. Providers compare it with the registered one as text, so a second slash would be
    /// another address.
    fn redirect_uri(&self) -> String {
        format!("{}{BACK}", self.settings.public_url.trim_end_matches('/'))
    }
}

/// Returns true if an error response is the provider's decision about the grant.
fn is_decision(status: reqwest::StatusCode, error: &str) -> bool {
    // A wrong client secret is a fault of the settings. It must not end the sessions of all people.
    let is_about_client = error == "invalid_client";
    status.is_client_error() && status != reqwest::StatusCode::TOO_MANY_REQUESTS && !is_about_client
}

fn parse_body<T: DeserializeOwned>(body: &[u8]) -> Result<T, LoginRefusal> {
    // The error of serde quotes values, and a body can have tokens.
    serde_json::from_slice(body).map_err(|error| {
        let reason = format!(
            "its answer is not the JSON of the standard, at column {}",
            error.column()
        );
        LoginRefusal::Provider(reason)
    })
}

fn generate_secret() -> Result<String, LoginRefusal> {
    let mut bytes = [0; RANDOM_BYTES];
    match SystemRandom::new().fill(&mut bytes) {
        Ok(()) => Ok(encode_base64url(bytes)),
        Err(_) => Err(LoginRefusal::Provider(
            "the system gives no random numbers".to_owned(),
        )),
    }
}

fn encode_form_text(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn encode_base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads the issuer and subject from the claims: the only stable identity of a person.
fn read_identity(claims: &Value) -> Result<ProviderIdentity, LoginRefusal> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).map(str::to_owned);
    match (text("iss"), text("sub")) {
        (Some(issuer), Some(subject)) => Ok(ProviderIdentity { issuer, subject }),
        (None, _) | (_, None) => Err(LoginRefusal::Token("it has no issuer or no subject".to_owned())),
    }
}

/// Returns the person's name and the highest role of their groups.
fn read_person(settings: &OidcSettings, claims: &Value) -> Result<ActingPerson, LoginRefusal> {
    let name = claims.get(&settings.name_claim).and_then(Value::as_str);
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or(LoginRefusal::Nameless("the provider does not say who you are"))?;
    // An address that a person may type into a profile proves nothing. Some providers send the claim as text.
    let is_verified = match claims.get("email_verified") {
        Some(Value::Bool(verified)) => *verified,
        Some(Value::String(text)) => text == "true",
        Some(_) | None => false,
    };
    if settings.name_claim == "email" && settings.trusted_claim != "email" && !is_verified {
        return Err(LoginRefusal::Nameless(
            "the provider does not say that it has verified your address (email_verified); its operators can name the claim in \
             console.oidc.trusted_claim",
        ));
    }
    let groups: Vec<&str> = match claims.get(&settings.groups_claim) {
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(group)) => vec![group.as_str()],
        Some(_) | None => Vec::new(),
    };
    // Highest role first.
    let roles = [
        (&settings.admins, Role::Admin),
        (&settings.operators, Role::Operator),
        (&settings.viewers, Role::Viewer),
    ];
    let has = |known: &[String]| known.iter().any(|known| groups.contains(&known.as_str()));
    let role = roles.into_iter().find(|(known, _)| has(known));
    let name = name.to_owned();
    match role {
        Some((_, role)) => Ok(ActingPerson { name, role }),
        None => Err(LoginRefusal::Groupless(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn build_oidc_settings(name_claim: &str) -> OidcSettings {
        serde_json::from_value(
            json!({"issuer": "https://id.example", "client_id": "c", "client_secret": "s",
            "public_url": "https://console.example", "api_token": "t", "name_claim": name_claim,
            "viewers": ["staff"], "operators": ["shop", "docs"], "admins": ["ops"]}),
        )
        .expect("settings")
    }

    fn read_person_role(groups: &Value) -> Result<Role, LoginRefusal> {
        let claims = json!({"email": " ada@acme.example ", "email_verified": true, "groups": groups});
        read_person(&build_oidc_settings("email"), &claims).map(|person| {
            assert_eq!(person.name, "ada@acme.example");
            person.role
        })
    }

    #[test]
    fn discovery_over_plain_http_is_refused() {
        let check = |settings: &OidcSettings, change: (&str, &str)| {
            let mut document = json!({"issuer": "https://id.example", "authorization_endpoint": "https://id.example/a",
                "token_endpoint": "https://id.example/t", "jwks_uri": "https://id.example/k"});
            document[change.0] = change.1.into();
            let document: DiscoveryDocument = serde_json::from_value(document).expect("document");
            document.check(settings)
        };
        let settings = build_oidc_settings("email");
        for change in [
            ("issuer", "https://id.example"),
            ("token_endpoint", "http://127.0.0.1:8080/t"),
        ] {
            assert_eq!(check(&settings, change), Ok(()), "{change:?}");
        }
        for change in [
            ("issuer", "https://id.example/"),
            ("token_endpoint", "http://id.example/t"),
            ("jwks_uri", "HTTP://id.example/k"),
        ] {
            let refused = check(&settings, change);
            assert!(matches!(refused, Err(LoginRefusal::Provider(_))), "{change:?}");
        }
        let insecure = OidcSettings {
            allow_insecure: true,
            ..settings
        };
        assert_eq!(
            check(&insecure, ("token_endpoint", "http://id.example/t")),
            Ok(())
        );
    }

    #[test]
    fn reason_of_provider_is_truncated() {
        let read_reason = |body: Value| {
            let refusal: TokenRefusal = serde_json::from_value(body).expect("refusal");
            refusal.reason()
        };
        assert_eq!(read_reason(json!({"error": "invalid_grant"})), "invalid_grant");
        let long = json!({"error": "invalid_grant", "error_description": "x".repeat(MAX_RESPONSE_BYTES)});
        let reason = read_reason(long);
        assert!(reason.starts_with("invalid_grant: xxx"), "{reason}");
        assert_eq!(reason.chars().count(), MAX_QUOTED);
    }

    #[test]
    fn person_gets_highest_role_of_their_groups() {
        assert_eq!(read_person_role(&json!(["staff"])), Ok(Role::Viewer));
        assert_eq!(read_person_role(&json!("staff")), Ok(Role::Viewer));
        assert_eq!(read_person_role(&json!(["staff", "docs"])), Ok(Role::Operator));
        assert_eq!(read_person_role(&json!(["ops", "staff"])), Ok(Role::Admin));
        for none in [
            json!([]),
            json!(["Staff", "sta"]),
            json!(null),
            json!({"staff": true}),
        ] {
            let refused = LoginRefusal::Groupless("ada@acme.example".to_owned());
            assert_eq!(read_person_role(&none), Err(refused), "{none}");
        }
    }

    #[test]
    fn unverified_name_claim_is_refused() {
        let of = |name_claim: &str, claims: Value| read_person(&build_oidc_settings(name_claim), &claims);
        for nameless in [
            json!({"groups": ["ops"]}),
            json!({"email": " ", "groups": ["ops"]}),
            json!({"email": 7, "groups": ["ops"]}),
            json!({"email": "root@acme.example", "email_verified": false, "groups": ["ops"]}),
            json!({"email": "root@acme.example", "email_verified": "false", "groups": ["ops"]}),
            json!({"email": "root@acme.example", "email_verified": 1, "groups": ["ops"]}),
            json!({"email": "root@acme.example", "groups": ["ops"]}),
        ] {
            let refused = of("email", nameless.clone());
            assert!(matches!(refused, Err(LoginRefusal::Nameless(_))), "{nameless}");
        }
        let verified = json!({"email": "a@b", "email_verified": true, "groups": ["ops"]});
        assert!(of("email", verified).is_ok());
        let trusting = OidcSettings {
            trusted_claim: "email".to_owned(),
            ..build_oidc_settings("email")
        };
        let unsaid = json!({"email": "a@b", "groups": ["ops"]});
        assert!(read_person(&trusting, &unsaid).is_ok());
        let known = json!({"sub": "u-1", "email": "a@b", "email_verified": false, "groups": ["ops"]});
        assert_eq!(of("sub", known).expect("somebody").name, "u-1");
    }

    #[test]
    fn only_refused_grant_is_decision() {
        for (status, error, expected) in [
            (400, "invalid_grant", true),
            (400, "invalid_client", false),
            (401, "invalid_client", false),
            (429, "slow_down", false),
            (503, "temporarily_unavailable", false),
        ] {
            let status = reqwest::StatusCode::from_u16(status).expect("status");
            assert_eq!(is_decision(status, error), expected, "{status} {error}");
        }
    }
}
