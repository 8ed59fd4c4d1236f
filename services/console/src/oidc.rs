//! Login at an `OpenID` provider: the code flow with PKCE, a state and a nonce. Who somebody is and which groups they are in
//! is what the provider signed for this one login.

use std::time::Duration;

use api::{Person, types::Role};
use futures::future::BoxFuture;
use openidconnect::{
    AdditionalClaims, AsyncHttpClient, AuthenticationFlow, AuthorizationCode, ClientId, ClientSecret,
    CsrfToken, EmptyExtraTokenFields, EndpointMaybeSet, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, IdTokenFields, IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope,
    StandardErrorResponse, StandardTokenResponse,
    core::{
        CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
        CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreResponseType,
        CoreRevocableToken, CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
    },
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::Oidc;

/// Where the provider sends browsers back to.
pub(crate) const BACK: &str = "/login/oidc/back";
/// How long somebody may take to log in.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10 * 60);
/// How long one answer of the provider may take.
const CALL_LIMIT: Duration = Duration::from_secs(10);
/// The largest answer of the provider.
const MOST_BYTES: usize = 1 << 20;
/// What an ID token may be signed with: keys of which only the provider has the secret half.
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

/// The claims that the standard does not name.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Others(#[serde(default)] Map<String, Value>);

impl AdditionalClaims for Others {}

type Answer = StandardTokenResponse<
    IdTokenFields<
        Others,
        EmptyExtraTokenFields,
        CoreGenderClaim,
        CoreJweContentEncryptionAlgorithm,
        CoreJwsSigningAlgorithm,
    >,
    CoreTokenType,
>;
type Flow = openidconnect::Client<
    Others,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    Answer,
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

/// Why nobody is logged in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The provider does not answer, or not as the standard says.
    Provider(String),
    /// The browser comes back from a login that nobody began here, that took too long, or that was used before.
    Foreign,
    /// What the provider signed is not for this login.
    Token(String),
    /// It does not say who it is.
    Nameless(&'static str),
    /// None of their groups has a role.
    Groupless(String),
}

/// A login that has begun.
pub(crate) struct Begun {
    state: CsrfToken,
    nonce: Nonce,
    verifier: PkceCodeVerifier,
    /// Where to go on afterwards.
    pub(crate) next: String,
}

/// Where people log in.
pub(crate) struct Provider {
    settings: Oidc,
    http: Http,
}

/// Our HTTP client, as the library calls it.
struct Http(reqwest::Client);

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = Unsent;
    type Future = BoxFuture<'c, Result<HttpResponse, Unsent>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

impl Http {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, Unsent> {
        let request = reqwest::Request::try_from(request).map_err(Unsent::Http)?;
        let mut answer = self.0.execute(request).await.map_err(Unsent::Http)?;
        let mut built = axum::http::Response::builder().status(answer.status());
        if let Some(headers) = built.headers_mut() {
            *headers = answer.headers().clone();
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(Unsent::Http)? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(Unsent::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        built.body(body).map_err(Unsent::Built)
    }
}

impl Provider {
    pub(crate) fn new(settings: Oidc) -> Result<Self, reqwest::Error> {
        // A redirect could lead anywhere.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(CALL_LIMIT)
            .build()?;
        let http = Http(http);
        Ok(Self { settings, http })
    }

    /// Whether a token of the API logs in too.
    pub(crate) const fn takes_tokens(&self) -> bool {
        self.settings.token_login
    }

    /// What the API is called with.
    pub(crate) const fn api_token(&self) -> &SecretString {
        &self.settings.api_token
    }

    /// Whether browsers reach the console over TLS.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.settings.public_url.starts_with("https://")
    }

    /// The address of the provider's page, and what has to be remembered until the browser comes back.
    pub(crate) async fn begin(&self, next: String) -> Result<(String, Begun), Refused> {
        let flow = self.flow().await?;
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
        let begun = Begun {
            state,
            nonce,
            verifier,
            next,
        };
        Ok((url.into(), begun))
    }

    /// Who came back.
    pub(crate) async fn finish(&self, begun: Begun, state: &str, code: String) -> Result<Person, Refused> {
        if begun.state.secret() != state {
            return Err(Refused::Foreign);
        }
        let flow = self.flow().await?;
        let answer = flow
            .exchange_code(AuthorizationCode::new(code))
            .map_err(|error| Refused::Provider(error.to_string()))?
            .set_pkce_verifier(begun.verifier)
            .request_async(&self.http)
            .await
            .map_err(|error| Refused::Provider(error.to_string()))?;
        let signed = answer
            .extra_fields()
            .id_token()
            .ok_or_else(|| Refused::Provider("it gave no ID token".to_owned()))?;
        let verifier = flow.id_token_verifier().set_allowed_algs(ALGORITHMS);
        let claims = signed
            .claims(&verifier, &begun.nonce)
            .map_err(|error| Refused::Token(error.to_string()))?;
        let claims = serde_json::to_value(claims).map_err(|error| Refused::Token(error.to_string()))?;
        person(&self.settings, &claims)
    }

    /// What the provider says of itself is read for each login, so that new keys of it need no restart.
    async fn flow(&self) -> Result<Flow, Refused> {
        let wrong = |error: String| Refused::Provider(error);
        let issuer =
            IssuerUrl::new(self.settings.issuer.clone()).map_err(|error| wrong(error.to_string()))?;
        let metadata = CoreProviderMetadata::discover_async(issuer, &self.http)
            .await
            .map_err(|error| wrong(error.to_string()))?;
        let secret = ClientSecret::new(self.settings.client_secret.expose_secret().to_owned());
        let id = ClientId::new(self.settings.client_id.clone());
        let back = format!("{}{BACK}", self.settings.public_url.trim_end_matches('/'));
        let back = RedirectUrl::new(back).map_err(|error| wrong(error.to_string()))?;
        Ok(Flow::from_provider_metadata(metadata, id, Some(secret)).set_redirect_uri(back))
    }
}

/// Why the provider gave no answer.
#[derive(Debug, thiserror::Error)]
enum Unsent {
    #[error("no answer")]
    Http(#[source] reqwest::Error),
    #[error("an answer of more than {MOST_BYTES} bytes")]
    TooLarge,
    #[error("no answer of HTTP")]
    Built(#[source] axum::http::Error),
}

/// Who somebody with these claims is, and what they may do: as much as any of their groups may.
fn person(settings: &Oidc, claims: &Value) -> Result<Person, Refused> {
    let name = claims.get(&settings.name_claim).and_then(Value::as_str);
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or(Refused::Nameless("the provider does not say who you are"))?;
    // Whoever may write any address into their profile could be anybody.
    if settings.name_claim == "email" && claims.get("email_verified") == Some(&Value::Bool(false)) {
        return Err(Refused::Nameless("the provider has not verified your address"));
    }
    let groups: Vec<&str> = match claims.get(&settings.groups_claim) {
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(group)) => vec![group.as_str()],
        Some(_) | None => Vec::new(),
    };
    let roles = [
        (&settings.admins, Role::Admin),
        (&settings.operators, Role::Operator),
        (&settings.viewers, Role::Viewer),
    ];
    let has = |known: &[String]| known.iter().any(|known| groups.contains(&known.as_str()));
    let role = roles.into_iter().find(|(known, _)| has(known));
    let name = name.to_owned();
    match role {
        Some((_, role)) => Ok(Person { name, role }),
        None => Err(Refused::Groupless(name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(name_claim: &str) -> Oidc {
        serde_json::from_value(
            json!({"issuer": "https://id.example", "client_id": "c", "client_secret": "s",
            "public_url": "https://console.example", "api_token": "t", "name_claim": name_claim,
            "viewers": ["staff"], "operators": ["shop", "docs"], "admins": ["ops"]}),
        )
        .expect("settings")
    }

    fn role(groups: &Value) -> Result<Role, Refused> {
        let claims = json!({"email": " ada@acme.example ", "groups": groups});
        person(&settings("email"), &claims).map(|person| {
            assert_eq!(person.name, "ada@acme.example");
            person.role
        })
    }

    #[test]
    fn the_most_that_any_group_may_is_what_a_person_may() {
        assert_eq!(role(&json!(["staff"])), Ok(Role::Viewer));
        assert_eq!(role(&json!("staff")), Ok(Role::Viewer));
        assert_eq!(role(&json!(["staff", "docs"])), Ok(Role::Operator));
        assert_eq!(role(&json!(["ops", "staff"])), Ok(Role::Admin));
        for none in [
            json!([]),
            json!(["Staff", "sta"]),
            json!(null),
            json!({"staff": true}),
        ] {
            let refused = Refused::Groupless("ada@acme.example".to_owned());
            assert_eq!(role(&none), Err(refused), "{none}");
        }
    }

    #[test]
    fn nobody_is_taken_for_a_name_that_the_provider_does_not_vouch_for() {
        let of = |name_claim: &str, claims: Value| person(&settings(name_claim), &claims);
        for nameless in [
            json!({"groups": ["ops"]}),
            json!({"email": " ", "groups": ["ops"]}),
            json!({"email": 7, "groups": ["ops"]}),
            json!({"email": "root@acme.example", "email_verified": false, "groups": ["ops"]}),
        ] {
            let refused = of("email", nameless.clone());
            assert!(matches!(refused, Err(Refused::Nameless(_))), "{nameless}");
        }
        let verified = json!({"email": "a@b", "email_verified": true, "groups": ["ops"]});
        assert!(of("email", verified).is_ok());
        let known = json!({"sub": "u-1", "email": "a@b", "email_verified": false, "groups": ["ops"]});
        assert_eq!(of("sub", known).expect("somebody").name, "u-1");
    }
}
