//! Who we are at GitHub and where a call goes: one connection pool, App installations, reads that are tried again.

use std::{
    collections::{HashMap, hash_map::RandomState},
    fmt,
    hash::BuildHasher,
    sync::Arc,
    time::Duration,
};

use domain::RepositoryName;
use octocrab::{Octocrab, models::InstallationId, service::middleware::retry::RetryConfig};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell};

use crate::{
    ETag, Error, Identity, PullRequest, PullRequestState, Repository, Settings,
    transport::{self, Answer, Call},
    wire::{WirePullRequest, WireRepository, WireUser},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_DELAYS_MS: [u64; 2] = [200, 1000];

/// How a write is sent.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    Post,
    Patch,
}

/// One connection pool and one identity.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    crab: Arc<Octocrab>,
    credentials: Credentials,
    api_url: String,
    git_url: String,
    /// Shared, for a clone of an octocrab starts with no token and mints its own.
    installations: Mutex<HashMap<RepositoryName, Arc<Octocrab>>>,
    whoami: OnceCell<Identity>,
}

enum Credentials {
    App(u64),
    Token(SecretString),
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("api_url", &self.0.api_url)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct WireInstallation {
    id: u64,
}

#[derive(Deserialize)]
struct WireAppSelf {
    slug: String,
    #[serde(default)]
    permissions: HashMap<String, String>,
}

impl Client {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let api_url = settings.api_url.trim_end_matches('/').to_owned();
        let (crab, credentials) = match (settings.app_id, &settings.private_key, &settings.token) {
            (Some(app), Some(key), _) => (app_crab(&api_url, app, key)?, Credentials::App(app)),
            (_, _, Some(token)) => (token_crab(&api_url, token)?, Credentials::Token(token.clone())),
            (Some(_) | None, None, None) | (None, Some(_), None) => {
                return Err(Error::Unauthorized {
                    check: "an App with its private key, or a token".to_owned(),
                });
            }
        };
        Ok(Self(Arc::new(Inner {
            crab: Arc::new(crab),
            credentials,
            api_url,
            git_url: settings.git_url.trim_end_matches('/').to_owned(),
            installations: Mutex::default(),
            whoami: OnceCell::new(),
        })))
    }

    pub(crate) fn git_url(&self, repository: &RepositoryName) -> String {
        format!("{}/{}.git", self.0.git_url, repository.path())
    }

    pub(crate) fn app_id(&self) -> Option<u64> {
        match self.0.credentials {
            Credentials::App(id) => Some(id),
            Credentials::Token(_) => None,
        }
    }

    pub(crate) async fn git_token(&self, repository: &RepositoryName) -> Result<SecretString, Error> {
        match &self.0.credentials {
            Credentials::Token(token) => Ok(token.clone()),
            Credentials::App(_) => {
                let crab = self.crab_for(repository).await?;
                let minted = transport::within(Box::pin(crab.installation_token()), "installation token");
                self.forget_if_unauthorized(repository, minted.await).await
            }
        }
    }

    /// Reads below `/repos/<owner>/<name>`.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        path: &str,
    ) -> Result<T, Error> {
        let crab = self.crab_for(repository).await?;
        let answer = read(&crab, Call::Get(&format!("/repos/{}{path}", repository.path()))).await;
        self.forget_if_unauthorized(repository, answer).await?.parse()
    }

    /// Reads below `/repos/<owner>/<name>` unless nothing changed since `known`, which costs nothing of the rate limit;
    /// `None` then.
    pub(crate) async fn get_unless<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        path: &str,
        known: Option<&ETag>,
    ) -> Result<Option<(T, Option<ETag>)>, Error> {
        let crab = self.crab_for(repository).await?;
        let path = format!("/repos/{repository}{path}");
        let call = match known {
            Some(known) => Call::GetUnless(&path, known),
            None => Call::Get(&path),
        };
        let answer = self
            .forget_if_unauthorized(repository, read(&crab, call).await)
            .await?;
        if answer.is_unchanged {
            return Ok(None);
        }
        Ok(Some((answer.parse()?, answer.etag)))
    }

    /// Reads as the App itself; also gives the query of the next page.
    pub(crate) async fn get_as_app<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(T, Option<String>), Error> {
        if self.app_id().is_none() {
            return Err(Error::Unauthorized {
                check: "webhook deliveries need a GitHub App".to_owned(),
            });
        }
        let answer = read(&self.0.crab, Call::Get(path)).await?;
        Ok((answer.parse()?, answer.next_query()))
    }

    /// Writes below `/repos/<owner>/<name>`, once.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let crab = self.crab_for(repository).await?;
        let path = format!("/repos/{}{path}", repository.path());
        let call = match method {
            Method::Post => Call::Post(&path, body),
            Method::Patch => Call::Patch(&path, body),
        };
        let answer = transport::send(&crab, call).await;
        self.forget_if_unauthorized(repository, answer).await?.parse()
    }

    /// Deletes, once.
    pub(crate) async fn delete(&self, repository: &RepositoryName, path: &str) -> Result<(), Error> {
        let crab = self.crab_for(repository).await?;
        let answer = transport::send(
            &crab,
            Call::Delete(&format!("/repos/{}{path}", repository.path())),
        )
        .await;
        self.forget_if_unauthorized(repository, answer).await.map(drop)
    }

    /// A GraphQL mutation on behalf of a repository's installation, once.
    pub(crate) async fn graphql(
        &self,
        repository: &RepositoryName,
        query: &str,
        variables: Value,
    ) -> Result<Value, Error> {
        // Enterprise Server serves REST under /api/v3 and GraphQL under /api, and octocrab has one base.
        let crab = match self.0.api_url.strip_suffix("/api/v3") {
            Some(host) => Arc::new(token_crab(
                &format!("{host}/api"),
                &self.git_token(repository).await?,
            )?),
            None => self.crab_for(repository).await?,
        };
        let body = json!({ "query": query, "variables": variables });
        transport::send(&crab, Call::Post("/graphql", &body))
            .await?
            .parse_graphql()
    }

    pub(crate) async fn repository(&self, repository: &RepositoryName) -> Result<Repository, Error> {
        self.get::<WireRepository>(repository, "")
            .await
            .map(Repository::from)
    }

    pub(crate) async fn pull_request(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<PullRequest, Error> {
        let path = format!("/pulls/{number}");
        self.get::<WirePullRequest>(repository, &path)
            .await
            .map(PullRequest::from)
    }

    pub(crate) async fn find_pull_request_by_head(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<PullRequest>, Error> {
        let head = encode(&format!("{}:{branch}", repository.owner()));
        let path = format!("/pulls?head={head}&state=all&per_page=100");
        let found: Vec<WirePullRequest> = self.get(repository, &path).await?;
        // GitHub ignores a filter that it cannot read and lists everything.
        Ok(found
            .into_iter()
            .map(PullRequest::from)
            .filter(|candidate| candidate.branch == branch)
            .filter(|candidate| candidate.head_repository.eq_ignore_ascii_case(&repository.path()))
            .max_by_key(|candidate| (candidate.state == PullRequestState::Open, candidate.number)))
    }

    pub(crate) async fn our_login(&self) -> Result<String, Error> {
        self.whoami().await.map(|us| us.login)
    }

    pub(crate) async fn whoami(&self) -> Result<Identity, Error> {
        self.0.whoami.get_or_try_init(|| self.ask_whoami()).await.cloned()
    }

    async fn ask_whoami(&self) -> Result<Identity, Error> {
        match self.0.credentials {
            Credentials::App(_) => {
                let app: WireAppSelf = read(&self.0.crab, Call::Get("/app")).await?.parse()?;
                let mut permissions: Vec<String> = app
                    .permissions
                    .iter()
                    .map(|(name, level)| format!("{name}:{level}"))
                    .collect();
                permissions.sort();
                Ok(Identity {
                    login: format!("{}[bot]", app.slug),
                    is_app: true,
                    permissions,
                })
            }
            Credentials::Token(_) => {
                let answer = read(&self.0.crab, Call::Get("/user")).await?;
                let user: WireUser = answer.parse()?;
                Ok(Identity {
                    login: user.login,
                    is_app: false,
                    permissions: answer.scopes(),
                })
            }
        }
    }

    async fn crab_for(&self, repository: &RepositoryName) -> Result<Arc<Octocrab>, Error> {
        if self.app_id().is_none() {
            return Ok(self.0.crab.clone());
        }
        if let Some(crab) = self.0.installations.lock().await.get(repository) {
            return Ok(crab.clone());
        }
        let found: WireInstallation = read(
            &self.0.crab,
            Call::Get(&format!("/repos/{}/installation", repository.path())),
        )
        .await?
        .parse()?;
        let crab = self
            .0
            .crab
            .installation(InstallationId(found.id))
            .map_err(|error| transport::failure(&error, false))?;
        let mut installations = self.0.installations.lock().await;
        Ok(installations
            .entry(repository.clone())
            .or_insert(Arc::new(crab))
            .clone())
    }

    /// An installation may be removed and made again under another id.
    async fn forget_if_unauthorized<T>(
        &self,
        repository: &RepositoryName,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(Error::Unauthorized { .. }) = &result {
            self.0.installations.lock().await.remove(repository);
        }
        result
    }
}

fn app_crab(api_url: &str, app: u64, key: &SecretString) -> Result<Octocrab, Error> {
    let builder = Octocrab::builder()
        .app_from_rsa_pem(app.into(), key.expose_secret())
        .map_err(|_| Error::Unauthorized {
            check: "the private key is not an RSA key in PEM format".to_owned(),
        })?;
    build(builder, api_url)
}

fn token_crab(api_url: &str, token: &SecretString) -> Result<Octocrab, Error> {
    build(Octocrab::builder().personal_token(token.clone()), api_url)
}

type Builder = octocrab::OctocrabBuilder<
    octocrab::NoSvc,
    octocrab::DefaultOctocrabBuilderConfig,
    octocrab::NoAuth,
    octocrab::NotLayerReady,
>;

/// Without octocrab's own retries: they send a write four times.
fn build(builder: Builder, api_url: &str) -> Result<Octocrab, Error> {
    builder
        .add_retry_config(RetryConfig::None)
        .set_connect_timeout(Some(CONNECT_TIMEOUT))
        .base_uri(api_url)
        .and_then(|builder| builder.build())
        .map_err(|_| Error::Rejected {
            detail: format!("{api_url} is not a URL"),
        })
}

async fn read(crab: &Octocrab, call: Call<'_>) -> Result<Answer, Error> {
    let mut delays = RETRY_DELAYS_MS.into_iter();
    loop {
        let result = transport::send(crab, call).await;
        match (&result, delays.next()) {
            (Err(Error::Unavailable { detail }), Some(delay)) => {
                tracing::debug!(detail, "github read failed, trying again");
                tokio::time::sleep(with_jitter(delay)).await;
            }
            (Ok(_) | Err(_), _) => return result,
        }
    }
}

fn with_jitter(ms: u64) -> Duration {
    Duration::from_millis(ms + RandomState::new().hash_one(ms) % (ms / 2))
}

/// Percent-encodes a query value or one path segment.
pub(crate) fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

/// Percent-encodes a path and keeps its slashes.
pub(crate) fn encode_path(path: &str) -> String {
    path.split('/').map(encode).collect::<Vec<_>>().join("/")
}
