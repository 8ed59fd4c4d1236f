//! AWS credentials and signatures.
//!
//! The AWS libraries choose the source of credentials (environment, profile, web identity, container,
//! instance). Their requests use our HTTP client, so that no second client is linked.

use std::time::{Duration, SystemTime};

use aws_config::{BehaviorVersion, ConfigLoader, Region};
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials as _, SharedCredentialsProvider},
};
use aws_sigv4::{
    http_request::{SignableBody, SignableRequest, SigningSettings, sign},
    sign::v4,
};
use aws_smithy_runtime_api::{
    client::{
        http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn},
        orchestrator::{HttpRequest, HttpResponse},
        result::ConnectorError,
    },
    http::StatusCode,
};
use aws_smithy_types::body::SdkBody;
use domain::ModelFault;
use futures::future::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;
use tokio::sync::{Mutex, OnceCell};

use super::{
    ClientError,
    dialect::{RequestSigner, find_secret},
    failure::AttemptFailure,
};
use crate::config::ModelSettings;

const SERVICE: &str = "bedrock";
// Time before the expiry at which credentials are refreshed.
const BEFORE_EXPIRY: Duration = Duration::from_secs(300);
// Credentials without expiry are reloaded after this time: a profile may have changed.
const LOOK_AGAIN: Duration = Duration::from_secs(300);
// Limit for one request for credentials.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

/// Signer of requests to Bedrock.
pub(super) struct BedrockSigner {
    region: String,
    source: CredentialSource,
    held: Mutex<Option<CachedCredentials>>,
}

/// Factory of the credential chain.
type ChainLoader = Box<dyn Fn() -> ConfigLoader + Send + Sync>;

enum CredentialSource {
    Fixed(Credentials),
    Chain {
        loader: ChainLoader,
        provider: OnceCell<SharedCredentialsProvider>,
    },
}

struct CachedCredentials {
    credentials: Credentials,
    until: SystemTime,
}

impl BedrockSigner {
    /// Creates a signer with the key of the settings or with the standard chain. It fetches nothing yet.
    ///
    /// # Errors
    /// [`ClientError::Http`] when TLS setup fails.
    pub(super) fn new(settings: &ModelSettings) -> Result<Self, ClientError> {
        let region = settings.region.clone().unwrap_or_default();
        if let (Some(id), Some(secret)) = (&settings.aws_access_key_id, &settings.aws_secret_access_key) {
            let session = find_secret(settings.aws_session_token.as_ref());
            let session = session.map(|token| token.expose_secret().to_owned());
            let credentials = Credentials::new(id, secret.expose_secret(), session, None, "settings");
            return Ok(Self::from(region, CredentialSource::Fixed(credentials)));
        }
        let (connector, profile) = (AwsHttpConnector::new()?, settings.aws_profile.clone());
        let loader = standard_chain(connector, region.clone(), profile);
        Ok(Self::chain(region, loader))
    }

    /// Creates a signer whose credentials come from a chain.
    fn chain(region: String, loader: ChainLoader) -> Self {
        let provider = OnceCell::new();
        Self::from(region, CredentialSource::Chain { loader, provider })
    }

    fn from(region: String, source: CredentialSource) -> Self {
        Self {
            region,
            source,
            held: Mutex::new(None),
        }
    }

    /// Returns credentials that are valid for this request.
    async fn credentials(&self) -> Result<Credentials, AttemptFailure> {
        let (loader, provider) = match &self.source {
            CredentialSource::Fixed(credentials) => return Ok(credentials.clone()),
            CredentialSource::Chain { loader, provider } => (loader, provider),
        };
        // The lock is held over the fetch, so that concurrent calls share one fetch.
        let mut held = self.held.lock().await;
        let now = SystemTime::now();
        if let Some(held) = held.as_ref().filter(|held| held.until > now) {
            return Ok(held.credentials.clone());
        }
        let provider = provider
            .get_or_try_init(|| async {
                let config = loader().load().await;
                config.credentials_provider().ok_or_else(no_credentials)
            })
            .await?;
        let credentials = provider.provide_credentials().await.map_err(|error| {
            tracing::error!(error = %domain::cause::format_error_chain(&error), "no AWS credentials");
            // The source worked before, so its failure may pass.
            if held.is_some() {
                AttemptFailure::transient("was not asked: the AWS credentials could not be renewed")
            } else {
                no_credentials()
            }
        })?;
        let until = match credentials.expiry() {
            Some(expiry) => expiry - BEFORE_EXPIRY,
            None => now + LOOK_AGAIN,
        };
        *held = Some(CachedCredentials {
            credentials: credentials.clone(),
            until,
        });
        Ok(credentials)
    }

    fn signed(&self, request: &mut reqwest::Request, credentials: Credentials) -> Result<(), AttemptFailure> {
        let unsigned = |_| AttemptFailure::unsent(ModelFault::Refused, "the request could not be signed");
        let identity = credentials.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(SERVICE)
            .time(SystemTime::now())
            .settings(SigningSettings::default())
            .build()
            .map_err(|_| AttemptFailure::unsent(ModelFault::Refused, "the request could not be signed"))?
            .into();
        let headers = request
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let body = request
            .body()
            .and_then(reqwest::Body::as_bytes)
            .unwrap_or_default();
        let method = request.method().as_str();
        let signable =
            SignableRequest::new(method, request.url().as_str(), headers, SignableBody::Bytes(body))
                .map_err(unsigned)?;
        let (instructions, _) = sign(signable, &params).map_err(unsigned)?.into_parts();
        let (added, _) = instructions.into_parts();
        for header in added {
            let value = HeaderValue::from_str(header.value());
            let mut value = value.map_err(|_| {
                AttemptFailure::unsent(
                    ModelFault::CredentialsRefused,
                    "credentials that no header can carry",
                )
            })?;
            value.set_sensitive(true);
            request
                .headers_mut()
                .insert(HeaderName::from_static(header.name()), value);
        }
        Ok(())
    }
}

/// Returns the factory of the standard chain over our HTTP client.
fn standard_chain(connector: AwsHttpConnector, region: String, profile: Option<String>) -> ChainLoader {
    Box::new(move || {
        let connector = connector.clone();
        let client = http_client_fn(move |_, _| SharedHttpConnector::new(connector.clone()));
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(region.clone()))
            .http_client(client);
        match &profile {
            Some(profile) => loader.profile_name(profile),
            None => loader,
        }
    })
}

impl RequestSigner for BedrockSigner {
    fn sign<'a>(&'a self, request: &'a mut reqwest::Request) -> BoxFuture<'a, Result<(), AttemptFailure>> {
        Box::pin(async move {
            let credentials = self.credentials().await?;
            self.signed(request, credentials)
        })
    }
}

fn no_credentials() -> AttemptFailure {
    AttemptFailure::unsent(ModelFault::CredentialsRefused, "no AWS credentials were found")
}

/// HTTP client that replaces the one of the AWS libraries.
#[derive(Clone, Debug)]
struct AwsHttpConnector {
    /// Client for AWS services.
    outside: reqwest::Client,
    /// Client for the metadata of a container or an instance, which no proxy reaches.
    beside: reqwest::Client,
}

impl AwsHttpConnector {
    fn new() -> Result<Self, ClientError> {
        let client = || {
            reqwest::Client::builder()
                .timeout(FETCH_LIMIT)
                .redirect(reqwest::redirect::Policy::none())
        };
        Ok(Self {
            outside: webproxy::configure_client(client())?.build()?,
            beside: client().no_proxy().build()?,
        })
    }

    async fn fetch(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = request
            .try_into_http1x()
            .map_err(|error| ConnectorError::user(error.into()))?;
        let (parts, body) = request.into_parts();
        // Metadata services use plain HTTP at a link-local address, AWS services HTTPS.
        let client = match parts.uri.scheme_str() {
            Some("https") => self.outside,
            _ => self.beside,
        };
        let body = body.bytes().unwrap_or_default().to_vec();
        let sent = client
            .request(parts.method, parts.uri.to_string())
            .headers(parts.headers)
            .body(body)
            .send()
            .await
            .map_err(connector_error)?;
        let status = StatusCode::try_from(sent.status().as_u16())
            .map_err(|error| ConnectorError::other(error.into(), None))?;
        let headers = sent.headers().clone();
        let body = sent.bytes().await.map_err(connector_error)?;
        let mut response = HttpResponse::new(status, SdkBody::from(body));
        for (name, value) in &headers {
            if let Ok(value) = value.to_str() {
                response
                    .headers_mut()
                    .append(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(response)
    }
}

fn connector_error(error: reqwest::Error) -> ConnectorError {
    if error.is_timeout() {
        ConnectorError::timeout(error.into())
    } else {
        ConnectorError::io(error.into())
    }
}

impl HttpConnector for AwsHttpConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::new(self.clone().fetch(request))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use aws_runtime::env_config::file::{EnvConfigFileKind, EnvConfigFiles};

    use super::*;

    fn build_connector() -> AwsHttpConnector {
        let _ = rustls::crypto::ring::default_provider().install_default();
        AwsHttpConnector::new().unwrap()
    }

    /// Creates a signer whose profile runs a program that notes each of its calls.
    fn asking_a_program(folder: &Path, expiry: &str) -> BedrockSigner {
        let credentials = serde_json::json!({
            "Version": 1, "AccessKeyId": "AKIAPROGRAM", "SecretAccessKey": "secret", "SessionToken": "session",
            "Expiration": expiry,
        });
        let (answer, asked) = (folder.join("answer.json"), folder.join("asked"));
        std::fs::write(&answer, credentials.to_string()).unwrap();
        let profile = format!(
            "[profile work]\ncredential_process = echo x >> {}; cat {}\n",
            asked.display(),
            answer.display()
        );
        let loader = standard_chain(
            build_connector(),
            "eu-central-1".to_owned(),
            Some("work".to_owned()),
        );
        let with_profile = move || {
            let files = EnvConfigFiles::builder()
                .with_contents(EnvConfigFileKind::Config, profile.clone())
                .build();
            loader().profile_files(files)
        };
        BedrockSigner::chain("eu-central-1".to_owned(), Box::new(with_profile))
    }

    fn build_unsigned_request() -> reqwest::Request {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = "https://bedrock-runtime.eu-central-1.amazonaws.com/model/m/invoke-with-response-stream";
        reqwest::Client::new().post(url).body("{}").build().unwrap()
    }

    async fn sign_authorization(signer: &BedrockSigner) -> String {
        let mut request = build_unsigned_request();
        signer.sign(&mut request).await.unwrap();
        assert_eq!(request.headers()["x-amz-security-token"], "session");
        assert!(request.headers()["authorization"].is_sensitive());
        request.headers()["authorization"].to_str().unwrap().to_owned()
    }

    fn times_asked(folder: &Path) -> usize {
        std::fs::read_to_string(folder.join("asked"))
            .unwrap()
            .lines()
            .count()
    }

    #[tokio::test]
    async fn profile_credentials_are_cached_until_expiry() {
        let folder = tempfile::tempdir().unwrap();
        let signer = asking_a_program(folder.path(), "2999-01-01T00:00:00Z");
        for _ in 0..3 {
            let value = sign_authorization(&signer).await;
            assert!(
                value.starts_with("AWS4-HMAC-SHA256 Credential=AKIAPROGRAM/")
                    && value.contains("/eu-central-1/bedrock/aws4_request"),
                "{value}"
            );
        }
        assert_eq!(times_asked(folder.path()), 1);
    }

    #[tokio::test]
    async fn credentials_that_end_soon_are_fetched_again() {
        let folder = tempfile::tempdir().unwrap();
        let soon = SystemTime::now() + Duration::from_secs(60);
        let soon = aws_smithy_types::DateTime::from(soon);
        let soon = soon.fmt(aws_smithy_types::date_time::Format::DateTime).unwrap();
        let signer = asking_a_program(folder.path(), &soon);
        sign_authorization(&signer).await;
        sign_authorization(&signer).await;
        assert_eq!(times_asked(folder.path()), 2);
    }

    #[tokio::test]
    async fn failed_renewal_of_credentials_may_pass() {
        let folder = tempfile::tempdir().unwrap();
        let soon = SystemTime::now() + Duration::from_secs(60);
        let soon = aws_smithy_types::DateTime::from(soon);
        let soon = soon.fmt(aws_smithy_types::date_time::Format::DateTime).unwrap();
        let signer = asking_a_program(folder.path(), &soon);
        sign_authorization(&signer).await;
        std::fs::remove_file(folder.path().join("answer.json")).unwrap();
        let failure = signer.sign(&mut build_unsigned_request()).await.unwrap_err();
        assert_eq!(failure.kind(), ModelFault::Unavailable, "{failure:?}");
    }

    #[tokio::test]
    async fn missing_profile_counts_as_refused_credentials() {
        let files = || {
            EnvConfigFiles::builder()
                .with_contents(
                    EnvConfigFileKind::Config,
                    "[profile other]\nregion = eu-central-1\n",
                )
                .build()
        };
        let loader = standard_chain(
            build_connector(),
            "eu-central-1".to_owned(),
            Some("work".to_owned()),
        );
        let signer = BedrockSigner::chain(
            "eu-central-1".to_owned(),
            Box::new(move || loader().profile_files(files())),
        );
        let failure = signer.sign(&mut build_unsigned_request()).await.unwrap_err();
        assert_eq!(failure.kind(), ModelFault::CredentialsRefused, "{failure:?}");
    }

    #[tokio::test]
    async fn credential_requests_use_our_http_client() {
        let answer = |headers: axum::http::HeaderMap, body: String| async move {
            let token = headers.get("x-token").and_then(|token| token.to_str().ok());
            let token = token.unwrap_or_default().to_owned();
            (axum::http::StatusCode::CREATED, [("x-answer", token)], body + "!")
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/credentials", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            axum::serve(listener, axum::Router::new().fallback(answer))
                .await
                .unwrap();
        });
        let mut request = HttpRequest::new(SdkBody::from("hello"));
        request.set_method("PUT").unwrap();
        request.set_uri(url).unwrap();
        request.headers_mut().insert("x-token", "t");
        let response = build_connector().call(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 201);
        assert_eq!(response.headers().get("x-answer"), Some("t"));
        assert_eq!(response.body().bytes(), Some("hello!".as_bytes()));
        server.abort();

        let mut nowhere = HttpRequest::new(SdkBody::empty());
        nowhere.set_uri("http://127.0.0.1:1/").unwrap();
        assert!(build_connector().call(nowhere).await.unwrap_err().is_io());
    }
}
