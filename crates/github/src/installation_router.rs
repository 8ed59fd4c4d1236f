//! Address and token of a repository's calls: App installations, tokens limited to one repository, and
//! renamed repositories.

use std::{
    collections::{BTreeMap, HashMap},
    convert,
    sync::Arc,
    time::Duration,
};

use domain::{RepositoryName, Timestamp};
use http::Uri;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    Error,
    connection::{ApiConnection, GitHubCall},
    error::TransferredThread,
    limits::{AccountLimits, ApiCaller},
    permissions::AccessKind,
    transport,
};

// Margin before the end of a token at which it is replaced, so that a call in progress keeps it.
const TOKEN_MARGIN: Duration = Duration::from_secs(300);
// Lifetime of a token whose end cannot be parsed. GitHub's tokens live for an hour.
const TOKEN_LIFE: Duration = Duration::from_secs(600);
/// Maximum number of redirects from one repository to another in one call.
pub(crate) const MAX_MOVES: usize = 3;

/// Present address and name of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RepositoryAddress {
    /// `/repos/acme/shop`, or `/repositories/17` after a rename.
    pub(crate) base: String,
    /// Current name of the repository; the previous one while `is_name_known` is false.
    pub(crate) name: RepositoryName,
    is_name_known: bool,
}

impl RepositoryAddress {
    fn of(repository: &RepositoryName) -> Self {
        Self {
            base: format!("/repos/{}", repository.path()),
            name: repository.clone(),
            is_name_known: true,
        }
    }

    /// Repository to which a token is limited, by its id where the id is known.
    fn scope(&self) -> Value {
        match self.base.strip_prefix("/repositories/").map(str::parse::<u64>) {
            Some(Ok(id)) => json!({ "repository_ids": [id] }),
            Some(Err(_)) | None => json!({ "repositories": [self.name.name()] }),
        }
    }
}

/// Token for one repository and one kind of call.
#[derive(Clone)]
struct InstallationToken {
    secret: SecretString,
    caller: ApiCaller,
    until: Instant,
}

/// Slot of at most one token. Its lock makes concurrent callers wait for one request instead of sending
/// several.
type TokenSlot = Arc<Mutex<Option<InstallationToken>>>;

/// Installation of the App on a repository.
#[derive(Clone, Deserialize)]
struct AppInstallation {
    id: u64,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
}

/// Installation of the App on an account.
#[derive(Deserialize)]
pub(crate) struct AccountInstallation {
    id: u64,
    pub(crate) account: Option<InstallationAccount>,
    pub(crate) suspended_at: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct InstallationAccount {
    pub(crate) login: String,
}

/// Lists the installations of an App, at most 5,000.
pub(crate) async fn list_installations(app: &ApiCaller) -> Result<Vec<AccountInstallation>, Error> {
    transport::read_list(app, "/app/installations", convert::identity).await
}

#[derive(Deserialize)]
struct MintedToken {
    token: SecretString,
    expires_at: Option<String>,
}

#[derive(Deserialize)]
struct FullName {
    full_name: RepositoryName,
}

/// Credentials of the account.
pub(crate) enum AccountCredentials {
    /// Id of an App; each installation has separate tokens.
    App(u64),
    /// Token of a user, which serves all calls.
    Token(SecretString),
}

/// Addresses and tokens of one account, shared by all calls.
pub(crate) struct InstallationRouter {
    own: ApiCaller,
    /// Limits of the account; an App's installations have separate limits.
    limits: AccountLimits,
    credentials: AccountCredentials,
    /// Path of the API's base URL, e.g. `/api/v3`; empty for github.com.
    base_path: String,
    authority: String,
    moved: Mutex<HashMap<RepositoryName, RepositoryAddress>>,
    installations: Mutex<HashMap<RepositoryName, AppInstallation>>,
    tokens: Mutex<HashMap<(RepositoryName, AccessKind), TokenSlot>>,
}

impl InstallationRouter {
    pub(crate) fn new(
        connection: ApiConnection,
        credentials: AccountCredentials,
        api_url: &str,
        limits: AccountLimits,
    ) -> Self {
        let api: Uri = api_url.parse().unwrap_or_default();
        let own = match credentials {
            // The App itself creates no content; its only writes are requests for tokens.
            AccountCredentials::App(_) => limits.without_pace(),
            AccountCredentials::Token(_) => limits.clone(),
        };
        Self {
            own: ApiCaller {
                connection,
                limits: own,
            },
            limits,
            credentials,
            base_path: api.path().trim_end_matches('/').to_owned(),
            authority: format_authority(&api),
            moved: Mutex::default(),
            installations: Mutex::default(),
            tokens: Mutex::default(),
        }
    }

    pub(crate) fn credentials(&self) -> &AccountCredentials {
        &self.credentials
    }

    /// Caller for the account itself: an App without an installation, or the token's owner.
    pub(crate) fn own(&self) -> &ApiCaller {
        &self.own
    }

    pub(crate) async fn place(&self, repository: &RepositoryName) -> RepositoryAddress {
        let moved = self.moved.lock().await;
        moved
            .get(repository)
            .cloned()
            // Only renamed repositories are stored; all others have the address of their name.
            .unwrap_or_else(|| RepositoryAddress::of(repository))
    }

    /// Caller for a repository: its installation, or the token's owner.
    pub(crate) async fn caller(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<ApiCaller, Error> {
        match self.credentials {
            AccountCredentials::Token(_) => Ok(self.own.clone()),
            AccountCredentials::App(_) => self.token(repository, access).await.map(|token| token.caller),
        }
    }

    /// Secret that git sends as password.
    pub(crate) async fn secret(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<SecretString, Error> {
        match &self.credentials {
            AccountCredentials::Token(token) => Ok(token.clone()),
            AccountCredentials::App(_) => self.token(repository, access).await.map(|token| token.secret),
        }
    }

    /// Drops the token and installation after a refusal. Returns false when no new token can be requested.
    pub(crate) async fn forget(&self, repository: &RepositoryName, access: AccessKind) -> bool {
        if matches!(self.credentials, AccountCredentials::Token(_)) {
            return false;
        }
        // A removed installation can return under another id.
        self.installations.lock().await.remove(repository);
        self.tokens
            .lock()
            .await
            .remove(&(repository.clone(), access))
            .is_some()
    }

    async fn token(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<InstallationToken, Error> {
        // The lock of the map is released before the request, so that other repositories do not wait.
        let slot = {
            let mut tokens = self.tokens.lock().await;
            Arc::clone(tokens.entry((repository.clone(), access)).or_default())
        };
        let mut slot = slot.lock().await;
        if let Some(token) = slot.as_ref().filter(|token| token.until > Instant::now()) {
            return Ok(token.clone());
        }
        let minted = self.mint(repository, access).await?;
        Ok(slot.insert(minted).clone())
    }

    async fn mint(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<InstallationToken, Error> {
        let installation = self.installation(repository).await?;
        let mut body = self.place(repository).await.scope();
        // A leaked token then opens one repository for one kind of call.
        body["permissions"] = json!(access.within(&installation.permissions));
        let minted = match self.request_token(installation.id, &body).await {
            Ok(minted) => minted,
            // The request names the installation of the cache, which may have been removed since.
            Err(Error::NotFound { .. }) => {
                self.installations.lock().await.remove(repository);
                return Err(Error::NotFound {
                    what: format!("an installation of the App on {repository}"),
                });
            }
            Err(error) => return Err(error),
        };
        let caller = self.installation_caller(installation.id, &minted.token)?;
        tracing::debug!(%repository, ?access, "installation token made");
        Ok(InstallationToken {
            until: Instant::now() + compute_token_lifetime(minted.expires_at.as_deref()),
            secret: minted.token,
            caller,
        })
    }

    /// Requests a token of an installation.
    async fn request_token(&self, installation: u64, body: &Value) -> Result<MintedToken, Error> {
        let path = format!("/app/installations/{installation}/access_tokens");
        let answered = transport::send_call(&self.own, GitHubCall::Post(&path, body)).await;
        match answered.and_then(|answer| answer.parse()) {
            // A lost token harms no one and expires, so that the request may be sent again.
            Err(Error::Unknown { detail, source }) => Err(Error::Unavailable { detail, source }),
            answered => answered,
        }
    }

    fn installation_caller(&self, installation: u64, token: &SecretString) -> Result<ApiCaller, Error> {
        Ok(ApiCaller {
            connection: self.own.connection.with_token(token)?,
            limits: self.limits.of_installation(installation),
        })
    }

    /// Caller for lists of all repositories of an owner. Its token may read their metadata and nothing else.
    pub(crate) async fn owner_caller(&self, owner: &str) -> Result<ApiCaller, Error> {
        let found = list_installations(&self.own).await?;
        let is_theirs = |installation: &&AccountInstallation| {
            let account = installation.account.as_ref();
            account.is_some_and(|account| account.login.eq_ignore_ascii_case(owner))
        };
        let installation = found.iter().find(is_theirs).ok_or_else(|| Error::NotFound {
            what: format!("an installation of the App on {owner}"),
        })?;
        let body = json!({ "permissions": { "metadata": "read" } });
        let minted = self.request_token(installation.id, &body).await?;
        self.installation_caller(installation.id, &minted.token)
    }

    async fn installation(&self, repository: &RepositoryName) -> Result<AppInstallation, Error> {
        // The lock is free during the request. At worst two callers send it and store the same
        // installation.
        if let Some(known) = self.installations.lock().await.get(repository) {
            return Ok(known.clone());
        }
        for _ in 0..=MAX_MOVES {
            let place = self.place(repository).await;
            let path = format!("{}/installation", place.base);
            match transport::send_call(&self.own, GitHubCall::Get(&path)).await {
                Ok(answer) => {
                    let found: AppInstallation = answer.parse()?;
                    let mut known = self.installations.lock().await;
                    known.insert(repository.clone(), found.clone());
                    return Ok(found);
                }
                Err(Error::Moved { to }) => self.follow(repository, &to, "/installation").await?,
                Err(error) => return Err(error),
            }
        }
        Err(redirect_loop_error(repository))
    }

    /// Reads the permissions of the App on a repository again. Tokens with former permissions are dropped.
    pub(crate) async fn read_permissions(
        &self,
        repository: &RepositoryName,
    ) -> Result<BTreeMap<String, String>, Error> {
        let known = self.installations.lock().await.remove(repository);
        let found = self.installation(repository).await?;
        if known.is_some_and(|known| known.permissions != found.permissions) {
            let mut tokens = self.tokens.lock().await;
            tokens.retain(|(name, _), _| name != repository);
        }
        Ok(found.permissions)
    }

    /// Redirect from one issue or pull request to another of the same API; `None` for any other redirect. `rest` is the
    /// request's path below the repository.
    pub(crate) fn find_thread_redirect(&self, location: &str, rest: &str) -> Option<ThreadRedirect> {
        let number = parse_thread_number(rest)?;
        let target: Uri = location.parse().ok()?;
        let is_ours = target.authority().is_none() || format_authority(&target) == self.authority;
        let path = target.path().strip_prefix(&self.base_path).filter(|_| is_ours)?;
        let at = path.rfind("/issues/").or_else(|| path.rfind("/pulls/"))?;
        let (base, below) = path.split_at(at);
        Some(ThreadRedirect {
            number,
            to_number: parse_thread_number(below)?,
            base: base.to_owned(),
            name: parse_redirect_base(base)?,
        })
    }

    /// Target of the redirect of a whole repository; `None` when it has none.
    pub(crate) async fn find_repository_redirect(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<Option<String>, Error> {
        let caller = self.caller(repository, access).await?;
        let place = self.place(repository).await;
        match transport::send_call(&caller, GitHubCall::Get(&place.base)).await {
            Ok(_) => Ok(None),
            Err(Error::Moved { to }) => Ok(Some(to)),
            Err(error) => Err(error),
        }
    }

    /// Error for an issue or pull request that moved. It names the repository of the target where our account sees it.
    pub(crate) async fn resolve_transfer(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        target: &ThreadRedirect,
    ) -> Error {
        let name = match &target.name {
            Some(name) => Some(name.path()),
            None => self.read_name(repository, access, &target.base).await.ok(),
        };
        Error::Transferred(Box::new(TransferredThread {
            repository: repository.clone(),
            number: target.number,
            to: match name {
                Some(name) => format!("{name}#{}", target.to_number),
                None => format!("#{} of another repository", target.to_number),
            },
        }))
    }

    /// Reads the name of the repository at an address.
    async fn read_name(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
        base: &str,
    ) -> Result<String, Error> {
        let caller = self.caller(repository, access).await?;
        let answer = transport::send_call(&caller, GitHubCall::Get(base)).await?;
        Ok(answer.parse::<FullName>()?.full_name.path())
    }

    /// Remembers the target of a redirect: another address of the same API, for the same rest of the path.
    pub(crate) async fn follow(
        &self,
        repository: &RepositoryName,
        location: &str,
        rest: &str,
    ) -> Result<(), Error> {
        let elsewhere = || Error::Moved {
            to: webclient::truncate_service_text(location),
        };
        let target: Uri = location.parse().map_err(|_| elsewhere())?;
        // A redirect to another host must not receive the token.
        let is_ours = target.authority().is_none() || format_authority(&target) == self.authority;
        let path = target.path().strip_prefix(&self.base_path).unwrap_or_default();
        let rest = rest.split('?').next().unwrap_or_default();
        let base = path
            .strip_suffix(rest)
            .filter(|_| is_ours)
            .ok_or_else(elsewhere)?;
        let name = parse_redirect_base(base).ok_or_else(elsewhere)?;
        let place = RepositoryAddress {
            base: base.to_owned(),
            is_name_known: name.is_some(),
            name: name.map_or_else(
                || repository.clone(),
                |name| name.on(repository.instance().cloned()),
            ),
        };
        let mut moved = self.moved.lock().await;
        if moved
            .get(repository)
            .is_some_and(|known| known.base == place.base)
        {
            // The target is known and the calls still arrive here, so the redirects form a loop.
            return Err(redirect_loop_error(repository));
        }
        // The installation and its tokens belong to the previous name or owner.
        moved.insert(repository.clone(), place);
        self.installations.lock().await.remove(repository);
        self.tokens
            .lock()
            .await
            .retain(|(known, _), _| known != repository);
        Ok(())
    }

    /// Reads the new name of a renamed repository and logs it once for the operator.
    pub(crate) async fn learn_name(
        &self,
        repository: &RepositoryName,
        access: AccessKind,
    ) -> Result<(), Error> {
        let place = self.place(repository).await;
        if place.is_name_known {
            return Ok(());
        }
        let caller = self.caller(repository, access).await?;
        let found: FullName = transport::send_call(&caller, GitHubCall::Get(&place.base))
            .await?
            .parse()?;
        tracing::warn!(
            %repository,
            new_name = %found.full_name,
            "the repository was renamed; name it so in its rules and in the settings of its Apps"
        );
        let mut moved = self.moved.lock().await;
        if let Some(place) = moved.get_mut(repository) {
            place.name = found.full_name.on(repository.instance().cloned());
            place.is_name_known = true;
        }
        Ok(())
    }
}

/// Redirect from one issue or pull request to another.
pub(crate) struct ThreadRedirect {
    /// Number in the request.
    number: u64,
    /// Number in the target.
    to_number: u64,
    /// Address of the target's repository.
    base: String,
    /// Name of the target's repository; absent when the address has its id alone.
    name: Option<RepositoryName>,
}

impl ThreadRedirect {
    /// True when the number alone shows that the redirect is not one of the whole repository.
    pub(crate) const fn has_other_number(&self) -> bool {
        self.number != self.to_number
    }
}

/// Number of the issue or pull request in a path below a repository, e.g. `/issues/7/comments`.
fn parse_thread_number(rest: &str) -> Option<u64> {
    let path = rest.split('?').next()?;
    let below = path
        .strip_prefix("/issues/")
        .or_else(|| path.strip_prefix("/pulls/"))?;
    below.split('/').next()?.parse().ok()
}

fn redirect_loop_error(repository: &RepositoryName) -> Error {
    Error::Moved {
        to: format!("redirects of {repository} that do not end"),
    }
}

fn format_authority(uri: &Uri) -> String {
    // The scheme is included, because a redirect from HTTPS to plain HTTP would expose the token. Host
    // names ignore case, so the text is in lower case.
    let (scheme, authority) = (uri.scheme_str(), uri.authority());
    let text = format!(
        "{}://{}",
        scheme.unwrap_or_default(),
        authority.map(|authority| authority.as_str()).unwrap_or_default()
    );
    text.to_ascii_lowercase()
}

/// Parses a base path: `/repositories/<id>` without a name, or `/repos/<owner>/<name>` with one.
fn parse_redirect_base(base: &str) -> Option<Option<RepositoryName>> {
    if let Some(id) = base.strip_prefix("/repositories/") {
        return id.parse::<u64>().is_ok().then_some(None);
    }
    let name: RepositoryName = base.strip_prefix("/repos/")?.parse().ok()?;
    Some(Some(name))
}

fn compute_token_lifetime(expires_at: Option<&str>) -> Duration {
    // Callers compare monotonic instants with the duration, so that a later step of the clock does not
    // matter.
    let left = expires_at.and_then(Timestamp::parse).and_then(|end| {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .ok()?;
        Duration::from_millis(u64::try_from(end.unix_ms()).ok()?).checked_sub(now)
    });
    // A token with less than the margin left is replaced at its next use.
    left.unwrap_or(TOKEN_LIFE).saturating_sub(TOKEN_MARGIN)
}
