//! Clients of GitHub, one for each instance: identity, installations, and requests about repositories.

mod downloads;
mod graphql;
mod identity;
mod reads;

use std::{collections::BTreeMap, fmt, sync::Arc};

use domain::{InstanceName, RepositoryName, cause::format_error_chain};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use webclient::InstanceClients;

pub(crate) use domain::address::percent_encode;
pub(crate) use downloads::FileLocation;
pub use identity::AccountIdentity;

use crate::{
    ETag, Error, GatePolicy, GitHubRepository, GitRemote, PullRequest, PullRequestState, Settings,
    connection::{ApiConnection, GitHubCall},
    etag_cache::EtagCache,
    installation_router::{AccountCredentials, InstallationRouter, MAX_MOVES},
    limits::{AccountLimits, ApiCaller},
    permissions::AccessKind,
    settings::is_filled,
    transport::{self, GitHubAnswer, PAGE},
    wire::{WirePullRequest, WireRepository},
};

/// HTTP method of a write.
#[derive(Clone, Copy)]
pub(crate) enum GitHubMethod {
    Post,
    Patch,
}

/// Client with one connection pool and one identity; clones share both.
#[derive(Clone)]
pub(crate) struct GitHubClient(Arc<GitHubClientInner>);

struct GitHubClientInner {
    places: InstallationRouter,
    /// Cached answers with their `ETag`s.
    kept: Mutex<EtagCache>,
    api_url: String,
    git_url: String,
    whoami: OnceCell<AccountIdentity>,
    /// Caller for project requests; absent without a project token.
    projects: Option<ApiCaller>,
}

impl fmt::Debug for GitHubClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("api_url", &self.0.api_url)
            .finish_non_exhaustive()
    }
}

/// One request about a repository.
struct RepositoryRequest<'a> {
    repository: &'a RepositoryName,
    access: AccessKind,
    /// Path below the repository's address.
    path: &'a str,
    kind: RequestKind<'a>,
}

#[derive(Clone, Copy)]
enum RequestKind<'a> {
    Get(Option<&'a ETag>),
    /// A read through the cache of `ETag`s: an unchanged answer costs nothing of the rate limit.
    GetAgain,
    Write(GitHubMethod, &'a Value),
    Delete(Option<&'a Value>),
}

impl GitHubClient {
    pub(crate) fn new(settings: &Settings, limits: AccountLimits) -> Result<Self, Error> {
        let api_url = settings.api_url.trim_end_matches('/').to_owned();
        let connection = ApiConnection::anonymous(&api_url)?;
        let (connection, credentials) = match (settings.app_id, &settings.private_key, &settings.token) {
            (Some(app), Some(key), _) => (connection.with_app(app, key)?, AccountCredentials::App(app)),
            (_, _, Some(token)) => (
                connection.with_token(token)?,
                AccountCredentials::Token(token.clone()),
            ),
            (Some(_) | None, None, None) | (None, Some(_), None) => {
                return Err(Error::Unauthorized {
                    check: "an App with its private key, or a token".to_owned(),
                });
            }
        };
        let project_token = settings.project_token.as_ref().filter(|token| is_filled(token));
        let projects =
            project_token.map(|token| graphql::build_project_caller(&connection, &api_url, token, &limits));
        Ok(Self(Arc::new(GitHubClientInner {
            projects: projects.transpose()?,
            places: InstallationRouter::new(connection, credentials, &api_url, limits),
            kept: Mutex::default(),
            api_url,
            git_url: settings.git_url.trim_end_matches('/').to_owned(),
            whoami: OnceCell::new(),
        })))
    }

    /// Returns the git URL of the repository under its current name, with a token for git.
    pub(crate) async fn git_remote(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<GitRemote, Error> {
        // With an App, the request for a token reveals a rename. A token needs this read first; git follows
        // no redirect.
        if self.app_id().is_none() {
            self.get::<WireRepository>(repository, access, "").await?;
        }
        let token = self.0.places.secret(repository, access).await?;
        self.0.places.learn_name(repository, access).await?;
        let name = self.0.places.place(repository).await.name;
        Ok(GitRemote {
            url: format!("{}/{}.git", self.0.git_url, name.path()),
            token,
        })
    }

    /// Addresses and tokens of the account.
    pub(crate) fn routes(&self) -> &InstallationRouter {
        &self.0.places
    }

    pub(crate) fn app_id(&self) -> Option<u64> {
        match self.0.places.credentials() {
            AccountCredentials::App(id) => Some(*id),
            AccountCredentials::Token(_) => None,
        }
    }

    /// Reads a path below the repository's address.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        path: &str,
    ) -> Result<T, Error> {
        self.exchange_parsed(repository, access, path, RequestKind::Get(None))
            .await
    }

    /// Reads a path below the repository's address unless it is unchanged since `known`. An unchanged answer
    /// is `None` and costs nothing of the rate limit.
    pub(crate) async fn get_unless<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        path: &str,
        known: Option<&ETag>,
    ) -> Result<Option<(T, Option<ETag>)>, Error> {
        let request = RepositoryRequest {
            repository,
            access,
            path,
            kind: RequestKind::Get(known),
        };
        let answer = self.exchange(request).await?;
        if answer.is_unchanged {
            return Ok(None);
        }
        Ok(Some((answer.parse()?, answer.etag)))
    }

    /// Reads a path as the App itself. Also returns the query of the next page.
    pub(crate) async fn get_as_app<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(T, Option<String>), Error> {
        if self.app_id().is_none() {
            return Err(Error::Unauthorized {
                check: "webhook deliveries need a GitHub App".to_owned(),
            });
        }
        let answer = transport::send_call(self.0.places.own(), GitHubCall::Get(path)).await?;
        Ok((answer.parse()?, answer.next_query()))
    }

    /// Writes to a path below the repository's address, without a retry.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        method: GitHubMethod,
        path: &str,
        body: &Value,
    ) -> Result<T, Error> {
        self.write_as(AccessKind::Write, repository, method, path, body)
            .await
    }

    /// Writes like [`Self::write`], and discards the answer.
    pub(crate) async fn send(
        &self,
        repository: &RepositoryName,
        method: GitHubMethod,
        path: &str,
        body: &Value,
    ) -> Result<(), Error> {
        self.write::<Value>(repository, method, path, body)
            .await
            .map(drop)
    }

    /// Writes like [`Self::write`], with the permissions of another kind of call.
    pub(crate) async fn write_as<T: DeserializeOwned>(
        &self,
        access: AccessKind,
        repository: &RepositoryName,
        method: GitHubMethod,
        path: &str,
        body: &Value,
    ) -> Result<T, Error> {
        self.exchange_parsed(repository, access, path, RequestKind::Write(method, body))
            .await
    }

    async fn exchange_parsed<T: DeserializeOwned>(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        path: &str,
        kind: RequestKind<'_>,
    ) -> Result<T, Error> {
        let request = RepositoryRequest {
            repository,
            access,
            path,
            kind,
        };
        self.exchange(request).await?.parse()
    }

    /// Starts an action below the repository's address, without a retry, and discards GitHub's answer.
    pub(crate) async fn start(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        path: &str,
    ) -> Result<(), Error> {
        let request = RepositoryRequest {
            repository,
            access,
            path,
            kind: RequestKind::Write(GitHubMethod::Post, &json!({})),
        };
        self.exchange(request).await.map(drop)
    }

    /// Deletes the resource at a path, or the entries of it that the body names, without a retry.
    pub(crate) async fn delete(
        &self,
        repository: &RepositoryName,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(), Error> {
        let request = RepositoryRequest {
            repository,
            access: AccessKind::Write,
            path,
            kind: RequestKind::Delete(body),
        };
        self.exchange(request).await.map(drop)
    }

    /// Sends a request to the repository's current address. GitHub did nothing when it redirects or refuses
    /// the credentials, so the request is sent again after both, writes included.
    async fn exchange(&self, request: RepositoryRequest<'_>) -> Result<GitHubAnswer, Error> {
        let RepositoryRequest {
            repository, access, ..
        } = request;
        // Both kinds of repetition are bounded: a few redirects, and one new token.
        let (mut moves, mut is_fresh) = (0, false);
        loop {
            match Box::pin(self.attempt(&request)).await {
                Err(Error::Moved { to }) if moves < MAX_MOVES => {
                    moves += 1;
                    self.follow_redirect(&request, &to).await?;
                }
                Err(Error::Unauthorized { .. })
                    if !is_fresh && self.0.places.forget(repository, access).await =>
                {
                    is_fresh = true;
                }
                Ok(answer) => {
                    // A failure to read the new name does not void the answer.
                    if let Err(error) = Box::pin(self.0.places.learn_name(repository, access)).await {
                        tracing::warn!(
                            %repository,
                            error = %format_error_chain(&error),
                            "the new name of the repository cannot be read"
                        );
                    }
                    return Ok(answer);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Follows a redirect of the whole repository.
    ///
    /// # Errors
    /// [`Error::Transferred`] for a redirect of the one issue or pull request that the request is about,
    /// [`Error::Moved`] for one of another part of the repository.
    async fn follow_redirect(&self, request: &RepositoryRequest<'_>, to: &str) -> Result<(), Error> {
        let RepositoryRequest {
            repository, access, ..
        } = *request;
        let places = &self.0.places;
        if request.path.is_empty() {
            return places.follow(repository, to, request.path).await;
        }
        let target = places.find_thread_redirect(to, request.path);
        if let Some(target) = target.as_ref().filter(|target| target.has_other_number()) {
            return Err(Box::pin(places.resolve_transfer(repository, access, target)).await);
        }
        // A renamed repository redirects each of its addresses to the same rest of the path, and so does an issue that has
        // its old number in its new repository. The address of the repository itself decides.
        match Box::pin(places.find_repository_redirect(repository, access)).await? {
            Some(whole) => places.follow(repository, &whole, "").await,
            None => Err(match target {
                Some(target) => Box::pin(places.resolve_transfer(repository, access, &target)).await,
                None => Error::Moved {
                    to: webclient::truncate_service_text(to),
                },
            }),
        }
    }

    async fn attempt(&self, request: &RepositoryRequest<'_>) -> Result<GitHubAnswer, Error> {
        let caller = self.0.places.caller(request.repository, request.access).await?;
        // Read for each attempt, because the previous one may have followed a redirect.
        let place = self.0.places.place(request.repository).await;
        let path = format!("{}{}", place.base, request.path);
        let call = match request.kind {
            RequestKind::GetAgain => return self.read_again(&caller, &path).await,
            RequestKind::Get(None) => GitHubCall::Get(&path),
            RequestKind::Get(Some(known)) => GitHubCall::GetUnless(&path, known),
            RequestKind::Write(GitHubMethod::Post, body) => GitHubCall::Post(&path, body),
            RequestKind::Write(GitHubMethod::Patch, body) => GitHubCall::Patch(&path, body),
            RequestKind::Delete(body) => GitHubCall::Delete(&path, body),
        };
        transport::send_call(&caller, call).await
    }

    pub(crate) async fn repository(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<GitHubRepository, Error> {
        let found = self.get::<WireRepository>(repository, access, "").await?;
        let mut found = GitHubRepository::from(found);
        // GitHub's name has no instance; it gets the one of the settings.
        found.name = found.name.on(repository.instance().cloned());
        Ok(found)
    }

    pub(crate) async fn pull_request(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        number: u64,
    ) -> Result<PullRequest, Error> {
        let path = format!("/pulls/{number}");
        self.get::<WirePullRequest>(repository, access, &path)
            .await
            .map(PullRequest::from)
    }

    pub(crate) async fn find_pull_request_by_head(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        branch: &str,
    ) -> Result<Option<PullRequest>, Error> {
        // The filter `head` needs the current owner. A redirect teaches a new owner in the middle of the
        // call; then the listing ran under the old one.
        let mut home = self.0.places.place(repository).await.name;
        let found: Vec<WirePullRequest> = loop {
            let head = percent_encode(&format!("{}:{branch}", home.owner()));
            let path = format!("/pulls?head={head}&state=all&per_page={PAGE}");
            let found = self.get(repository, access, &path).await?;
            let today = self.0.places.place(repository).await.name;
            if today.owner() == home.owner() {
                home = today;
                break found;
            }
            home = today;
        };
        let full_name = home.path();
        // GitHub ignores a filter that it cannot parse and lists all pull requests, so the filter is applied
        // again here.
        Ok(found
            .into_iter()
            .map(PullRequest::from)
            .filter(|candidate| candidate.branch == branch)
            .filter(|candidate| candidate.head_repository.eq_ignore_ascii_case(&full_name))
            .max_by_key(|candidate| (candidate.state == PullRequestState::Open, candidate.number)))
    }

    pub(crate) async fn our_login(&self) -> Result<String, Error> {
        self.whoami().await.map(|us| us.login)
    }
}

/// Clients by the instance that a repository names.
#[derive(Clone, Debug)]
pub(crate) struct GitHubClients(InstanceClients<GitHubClient>);

impl GitHubClients {
    pub(crate) fn new(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        role: &str,
        gated: Option<&GatePolicy>,
    ) -> Result<Self, Error> {
        // Limits are counted per role and instance, as each has a separate account.
        let build = |name: Option<&InstanceName>, settings: &Settings| {
            GitHubClient::new(settings, AccountLimits::of(gated, role, name, settings))
        };
        InstanceClients::build("github", settings, others, build).map(Self)
    }

    pub(crate) fn of(&self, repository: &RepositoryName) -> Result<&GitHubClient, Error> {
        self.on(repository.instance())
    }

    pub(crate) fn on(&self, instance: Option<&InstanceName>) -> Result<&GitHubClient, Error> {
        Ok(self.0.find(instance)?)
    }

    /// The default instance (`None`), if it is configured, and every named one.
    pub(crate) fn instances(&self) -> impl Iterator<Item = Option<&InstanceName>> {
        self.0.instances()
    }
}

/// Percent-encodes the segments of a path and keeps the slashes between them.
pub(crate) fn encode_path(path: &str) -> String {
    path.split('/').map(percent_encode).collect::<Vec<_>>().join("/")
}
