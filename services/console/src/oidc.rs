//! Login at an `OpenID` provider: the code flow with PKCE, a state and a nonce. The person's name and groups come
//! from the ID token that the provider signed for this login.

use std::{fmt, time::Duration};

use api::{ActingPerson, types::Role};
use futures::future::BoxFuture;
use openidconnect::{
    AdditionalClaims, AsyncHttpClient, AuthenticationFlow, AuthorizationCode, ClientId, ClientSecret,
    CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, IdTokenFields, IssuerUrl, Nonce, NonceVerifier, OAuth2TokenResponse as _,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope,
    StandardErrorResponse, StandardTokenResponse,
    core::{
        CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
        CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreResponseType,
        CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
    },
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::{
    sync::{Mutex, Semaphore, SemaphorePermit},
    time::Instant,
};

use crate::config::OidcSettings;

/// Path to which the provider redirects browsers.
pub(crate) const BACK: &str = "/login/oidc/back";
/// Time that a person has to log in at the provider.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10 * 60);
// Largest age of the provider's metadata. Fetching it for each login would let strangers cause requests to the
// provider.
const COUNTS: Duration = Duration::from_secs(10 * 60);
// Largest age of the metadata when a token's key is missing from it: the provider may have rotated its keys.
const KEYS_COUNT: Duration = Duration::from_secs(30);
// Time for which a failed fetch is the answer, so that an unreachable provider gets no request for each login.
const FAILURE_COUNTS: Duration = Duration::from_secs(5);
// Concurrent requests to the provider.
const MAX_CALLS: usize = 8;
// Longest time for one response of the provider.
const CALL_LIMIT: Duration = Duration::from_secs(10);
// Largest response of the provider, in bytes.
const MOST_BYTES: usize = 1 << 20;
// Accepted signatures of an ID token. All are asymmetric: a shared secret would let the console's own secret sign.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Claims that the standard does not name, such as groups.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct ExtraClaims(#[serde(default)] Map<String, Value>);

impl AdditionalClaims for ExtraClaims {}

type OidcTokenResponse = StandardTokenResponse<
    IdTokenFields<
        ExtraClaims,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;
type OidcFlow = openidconnect::Client<
    ExtraClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    OidcTokenResponse,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Reason why a login fails.
#[derive(Debug, PartialEq, Eq)]
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
    pub(crate) refresh: Option<RefreshToken>,
}

/// State of a login in progress.
#[derive(Deserialize, Serialize)]
pub(crate) struct LoginInProgress {
    state: CsrfToken,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
    /// Path to show after the login.
    pub(crate) next: String,
}

/// Client of the provider, with its cached metadata.
pub(crate) struct OidcProvider {
    settings: OidcSettings,
    http: OidcHttpClient,
    /// Metadata of the provider or the error of the fetch, with the time of the fetch.
    read: Mutex<Option<(Instant, Result<CoreProviderMetadata, String>)>>,
    /// Permits for requests to the provider. Strangers with made-up codes cannot cause more of them.
    calls: Semaphore,
}

/// Adapter of our HTTP client for `openidconnect`.
struct OidcHttpClient(reqwest::Client);

impl<'c> AsyncHttpClient<'c> for OidcHttpClient {
    type Error = OidcTransportError;
    type Future = BoxFuture<'c, Result<HttpResponse, OidcTransportError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

impl OidcHttpClient {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, OidcTransportError> {
        let request = reqwest::Request::try_from(request).map_err(OidcTransportError::Http)?;
        let mut answer = self.0.execute(request).await.map_err(OidcTransportError::Http)?;
        let mut built = axum::http::Response::builder().status(answer.status());
        if let Some(headers) = built.headers_mut() {
            *headers = answer.headers().clone();
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(OidcTransportError::Http)? {
            // The limit applies to the received bytes, because Content-Length can be missing or wrong.
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(OidcTransportError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        built.body(body).map_err(OidcTransportError::Built)
    }
}

impl OidcProvider {
    pub(crate) fn new(settings: OidcSettings) -> Result<Self, reqwest::Error> {
        // A redirect could lead to any host, with the client secret in the request.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(CALL_LIMIT)
            .build()?;
        let http = OidcHttpClient(http);
        Ok(Self {
            settings,
            http,
            read: Mutex::default(),
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
        let flow = self.flow(COUNTS).await?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let asked = flow
            .authorize_url(
                AuthenticationFlow::<CoreResponseType>::AuthorizationCode,
                CsrfToken::new_random,
                Nonce::new_random,
            )
            .set_pkce_challenge(challenge);
        let scopes = self.settings.scopes.iter().cloned().map(Scope::new);
        let (url, state, nonce) = asked.add_scopes(scopes).url();
        let begun = LoginInProgress {
            state,
            nonce,
            verifier,
            next,
        };
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
        if begun.state.secret() != state {
            return Err(LoginRefusal::Foreign);
        }
        let flow = self.flow(COUNTS).await?;
        // After `flow`, so that a login that waits for the metadata holds no permit.
        let call = self.call().await?;
        let answer = flow
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| LoginRefusal::Provider(error.to_string()))?
            .set_pkce_verifier(begun.verifier)
            .request_async(&self.http)
            .await
            .map_err(|error| LoginRefusal::Provider(error.to_string()))?;
        drop(call);
        let claims = self.claims(&answer, &begun.nonce).await?;
        Ok(KnownPerson {
            person: read_person(&self.settings, &claims)?,
            identity: read_identity(&claims)?,
            refresh: answer.refresh_token().cloned(),
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
        refresh: &RefreshToken,
    ) -> Result<(ActingPerson, Option<RefreshToken>), LoginRefusal> {
        let flow = self.flow(COUNTS).await?;
        let call = self.call().await?;
        let answer = flow
            .exchange_refresh_token(refresh)
            .map_err(|error| LoginRefusal::Provider(error.to_string()))?
            .request_async(&self.http)
            .await
            .map_err(|error| {
                // An error response is the provider's decision. Other errors mean that it was not reached.
                if let RequestTokenError::ServerResponse(said) = error {
                    LoginRefusal::Token(said.to_string())
                } else {
                    LoginRefusal::Provider(error.to_string())
                }
            })?;
        drop(call);
        // The standard does not require a nonce in a refreshed token.
        let claims = self.claims(&answer, |_: Option<&Nonce>| Ok(())).await?;
        // OpenID Connect Core, section 12.2, requires issuer and subject of the first ID token.
        if read_identity(&claims)? != *known {
            return Err(LoginRefusal::Token("it is for somebody else".to_owned()));
        }
        Ok((
            read_person(&self.settings, &claims)?,
            answer.refresh_token().cloned(),
        ))
    }

    /// Returns the verified claims of a response. An unknown key may be new, so the provider's keys are fetched again
    /// then.
    async fn claims(
        &self,
        answer: &OidcTokenResponse,
        nonce: impl NonceVerifier + Clone,
    ) -> Result<Value, LoginRefusal> {
        let signed = answer
            .extra_fields()
            .id_token()
            .ok_or_else(|| LoginRefusal::Provider("it gave no ID token".to_owned()))?;
        let flow = self.flow(COUNTS).await?;
        let verifier = flow.id_token_verifier().set_allowed_algs(ALGORITHMS);
        let claims = match signed.claims(&verifier, nonce.clone()) {
            Ok(claims) => serde_json::to_value(claims),
            Err(_) => {
                // `KEYS_COUNT` bounds how often forged tokens can cause this fetch.
                let flow = self.flow(KEYS_COUNT).await?;
                let verifier = flow.id_token_verifier().set_allowed_algs(ALGORITHMS);
                let claims = signed.claims(&verifier, nonce);
                serde_json::to_value(claims.map_err(|error| LoginRefusal::Token(error.to_string()))?)
            }
        };
        claims.map_err(|error| LoginRefusal::Token(error.to_string()))
    }

    /// Waits for a permit for one request to the provider.
    async fn call(&self) -> Result<SemaphorePermit<'_>, LoginRefusal> {
        let busy = || LoginRefusal::Provider("too many people log in at the moment; try again".to_owned());
        let waited = tokio::time::timeout(CALL_LIMIT, self.calls.acquire()).await;
        waited.map_err(|_| busy())?.map_err(|_| busy())
    }

    /// Returns the provider's metadata with its keys, from the cache if it is younger than `counts`.
    async fn metadata(&self, counts: Duration) -> Result<CoreProviderMetadata, LoginRefusal> {
        let mut read = self.read.lock().await;
        if let Some((at, known)) = &*read {
            let counts = if known.is_ok() { counts } else { FAILURE_COUNTS };
            if at.elapsed() < counts {
                return known.clone().map_err(LoginRefusal::Provider);
            }
        }
        // The lock is held during the fetch: concurrent logins wait for one fetch instead of making their own.
        let issuer = IssuerUrl::new(self.settings.issuer.clone())
            .map_err(|error| LoginRefusal::Provider(error.to_string()))?;
        let metadata = CoreProviderMetadata::discover_async(issuer, &self.http)
            .await
            .map_err(|error| error.to_string());
        *read = Some((Instant::now(), metadata.clone()));
        metadata.map_err(LoginRefusal::Provider)
    }

    async fn flow(&self, counts: Duration) -> Result<OidcFlow, LoginRefusal> {
        let wrong = |error: String| LoginRefusal::Provider(error);
        let metadata = self.metadata(counts).await?;
        let secret = ClientSecret::new(self.settings.client_secret.expose_secret().to_owned());
        let id = ClientId::new(self.settings.client_id.clone());
        // Providers compare the address with the registered one as text, so a second slash would be
        // another address.
        let back = format!("{}{BACK}", self.settings.public_url.trim_end_matches('/'));
        let back = RedirectUrl::new(back).map_err(|error| wrong(error.to_string()))?;
        Ok(OidcFlow::from_provider_metadata(metadata, id, Some(secret)).set_redirect_uri(back))
    }
}

/// Reason why a request to the provider has no response.
#[derive(Debug, thiserror::Error)]
enum OidcTransportError {
    #[error("no answer")]
    Http(#[source] reqwest::Error),
    #[error("an answer of more than {MOST_BYTES} bytes")]
    TooLarge,
    #[error("no answer of HTTP")]
    Built(#[source] axum::http::Error),
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
}
