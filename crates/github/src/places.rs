//! Where a repository's calls go and with which token: installations of an App, tokens of one repository each, and
//! repositories that were renamed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use domain::{RepositoryName, Timestamp};
use http::Uri;
use octocrab::Octocrab;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    Error,
    call::Call,
    error::capped,
    limits::{Caller, Limits},
    permissions::Access,
    transport,
};

/// A token is replaced this long before it expires, so that a call under way keeps it.
const TOKEN_MARGIN: Duration = Duration::from_secs(300);
/// How long a token without a readable end is used.
const TOKEN_LIFE: Duration = Duration::from_secs(600);
/// How often a repository may lead to another one.
pub(crate) const MAX_MOVES: usize = 3;

/// Where the calls about a repository go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// `/repos/acme/shop`, or `/repositories/17` after it was renamed.
    pub(crate) base: String,
    /// Its name of today; while `is_name_known` is false, the one that it had.
    pub(crate) name: RepositoryName,
    is_name_known: bool,
}

impl Place {
    fn of(repository: &RepositoryName) -> Self {
        Self {
            base: format!("/repos/{}", repository.path()),
            name: repository.clone(),
            is_name_known: true,
        }
    }

    /// What a token for it is limited to.
    fn scope(&self) -> Value {
        match self.base.strip_prefix("/repositories/").map(str::parse::<u64>) {
            Some(Ok(id)) => json!({ "repository_ids": [id] }),
            Some(Err(_)) | None => json!({ "repositories": [self.name.name()] }),
        }
    }
}

/// A token for one repository and one kind of call.
#[derive(Clone)]
struct Token {
    secret: SecretString,
    caller: Caller,
    until: Instant,
}

/// One token at most, made by whoever asks first.
type Slot = Arc<Mutex<Option<Token>>>;

/// An App's installation on a repository.
#[derive(Clone, Deserialize)]
struct Installation {
    id: u64,
    #[serde(default)]
    permissions: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Minted {
    token: SecretString,
    expires_at: Option<String>,
}

#[derive(Deserialize)]
struct FullName {
    full_name: RepositoryName,
}

/// Who calls.
pub(crate) enum Credentials {
    /// An App; each installation has tokens of its own.
    App(u64),
    /// A token that serves for everything.
    Token(SecretString),
}

/// Places and tokens of one account, shared by all calls.
pub(crate) struct Places {
    own: Caller,
    /// Of the account; an App's installations have limits of their own.
    limits: Limits,
    credentials: Credentials,
    /// Path of the API's base, e.g. `/api/v3`; empty for most.
    base_path: String,
    authority: String,
    moved: Mutex<HashMap<RepositoryName, Place>>,
    installations: Mutex<HashMap<RepositoryName, Installation>>,
    tokens: Mutex<HashMap<(RepositoryName, Access), Slot>>,
}

impl Places {
    pub(crate) fn new(crab: Arc<Octocrab>, credentials: Credentials, api_url: &str, limits: Limits) -> Self {
        let api: Uri = api_url.parse().unwrap_or_default();
        let own = match credentials {
            // An App itself writes nothing but tokens.
            Credentials::App(_) => limits.without_pace(),
            Credentials::Token(_) => limits.clone(),
        };
        Self {
            own: Caller { crab, limits: own },
            limits,
            credentials,
            base_path: api.path().trim_end_matches('/').to_owned(),
            authority: authority(&api),
            moved: Mutex::default(),
            installations: Mutex::default(),
            tokens: Mutex::default(),
        }
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The account itself: an App without an installation, or the token's owner.
    pub(crate) fn own(&self) -> &Caller {
        &self.own
    }

    pub(crate) async fn place(&self, repository: &RepositoryName) -> Place {
        let moved = self.moved.lock().await;
        moved
            .get(repository)
            .cloned()
            .unwrap_or_else(|| Place::of(repository))
    }

    /// Who calls about a repository.
    pub(crate) async fn caller(&self, repository: &RepositoryName, access: Access) -> Result<Caller, Error> {
        match self.credentials {
            Credentials::Token(_) => Ok(self.own.clone()),
            Credentials::App(_) => self.token(repository, access).await.map(|token| token.caller),
        }
    }

    /// The secret that git sends.
    pub(crate) async fn secret(
        &self,
        repository: &RepositoryName,
        access: Access,
    ) -> Result<SecretString, Error> {
        match &self.credentials {
            Credentials::Token(token) => Ok(token.clone()),
            Credentials::App(_) => self.token(repository, access).await.map(|token| token.secret),
        }
    }

    /// Forgets what a refusal of the credentials makes doubtful; false when there is nothing to ask for anew.
    pub(crate) async fn forget(&self, repository: &RepositoryName, access: Access) -> bool {
        if matches!(self.credentials, Credentials::Token(_)) {
            return false;
        }
        // An installation may be removed and made again under another id.
        self.installations.lock().await.remove(repository);
        self.tokens
            .lock()
            .await
            .remove(&(repository.clone(), access))
            .is_some()
    }

    async fn token(&self, repository: &RepositoryName, access: Access) -> Result<Token, Error> {
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

    async fn mint(&self, repository: &RepositoryName, access: Access) -> Result<Token, Error> {
        let installation = self.installation(repository).await?;
        let mut body = self.place(repository).await.scope();
        body["permissions"] = json!(access.within(&installation.permissions));
        let path = format!("/app/installations/{}/access_tokens", installation.id);
        let answered = transport::send(&self.own, Call::Post(&path, &body)).await;
        let minted: Minted = match answered.and_then(|answer| answer.parse()) {
            Ok(minted) => minted,
            // Nobody is hurt by a token that nobody got.
            Err(Error::Unknown { detail, source }) => return Err(Error::Unavailable { detail, source }),
            Err(Error::NotFound { .. }) => {
                self.installations.lock().await.remove(repository);
                return Err(Error::NotFound {
                    what: format!("an installation of the App on {repository}"),
                });
            }
            Err(error) => return Err(error),
        };
        let crab = self
            .own
            .crab
            .user_access_token(minted.token.clone())
            .map_err(|error| transport::failure(error, false))?;
        tracing::debug!(%repository, ?access, "installation token made");
        Ok(Token {
            until: Instant::now() + life(minted.expires_at.as_deref()),
            secret: minted.token,
            caller: Caller {
                crab: Arc::new(crab),
                limits: self.limits.of_installation(installation.id),
            },
        })
    }

    async fn installation(&self, repository: &RepositoryName) -> Result<Installation, Error> {
        if let Some(known) = self.installations.lock().await.get(repository) {
            return Ok(known.clone());
        }
        for _ in 0..=MAX_MOVES {
            let place = self.place(repository).await;
            let path = format!("{}/installation", place.base);
            match transport::read(&self.own, Call::Get(&path)).await {
                Ok(answer) => {
                    let found: Installation = answer.parse()?;
                    let mut known = self.installations.lock().await;
                    known.insert(repository.clone(), found.clone());
                    return Ok(found);
                }
                Err(Error::Moved { to }) => self.follow(repository, &to, "/installation").await?,
                Err(error) => return Err(error),
            }
        }
        Err(goes_round(repository))
    }

    /// Remembers where a redirect leads: to another address of the same service, for the same rest of the path.
    pub(crate) async fn follow(
        &self,
        repository: &RepositoryName,
        location: &str,
        rest: &str,
    ) -> Result<(), Error> {
        let elsewhere = || Error::Moved { to: capped(location) };
        let target: Uri = location.parse().map_err(|_| elsewhere())?;
        let is_ours = target.authority().is_none() || authority(&target) == self.authority;
        let path = target.path().strip_prefix(&self.base_path).unwrap_or_default();
        let rest = rest.split('?').next().unwrap_or_default();
        let base = path
            .strip_suffix(rest)
            .filter(|_| is_ours)
            .ok_or_else(elsewhere)?;
        let name = renamed(base).ok_or_else(elsewhere)?;
        let place = Place {
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
            return Err(goes_round(repository));
        }
        moved.insert(repository.clone(), place);
        self.installations.lock().await.remove(repository);
        self.tokens
            .lock()
            .await
            .retain(|(known, _), _| known != repository);
        Ok(())
    }

    /// Learns the new name of a repository that was renamed and tells the operator, once.
    pub(crate) async fn learn_name(&self, repository: &RepositoryName, access: Access) -> Result<(), Error> {
        let place = self.place(repository).await;
        if place.is_name_known {
            return Ok(());
        }
        let caller = self.caller(repository, access).await?;
        let found: FullName = transport::read(&caller, Call::Get(&place.base)).await?.parse()?;
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

fn goes_round(repository: &RepositoryName) -> Error {
    Error::Moved {
        to: format!("redirects of {repository} that do not end"),
    }
}

fn authority(uri: &Uri) -> String {
    let (scheme, authority) = (uri.scheme_str(), uri.authority());
    let text = format!(
        "{}://{}",
        scheme.unwrap_or_default(),
        authority.map(|authority| authority.as_str()).unwrap_or_default()
    );
    text.to_ascii_lowercase()
}

/// The base of a repository's calls: `/repositories/<id>` or `/repos/<owner>/<name>`, and the name when that tells it.
fn renamed(base: &str) -> Option<Option<RepositoryName>> {
    if let Some(id) = base.strip_prefix("/repositories/") {
        return id.parse::<u64>().is_ok().then_some(None);
    }
    let name: RepositoryName = base.strip_prefix("/repos/")?.parse().ok()?;
    Some(Some(name))
}

fn life(expires_at: Option<&str>) -> Duration {
    let left = expires_at.and_then(Timestamp::parse).and_then(|end| {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .ok()?;
        Duration::from_millis(u64::try_from(end.unix_ms()).ok()?).checked_sub(now)
    });
    left.unwrap_or(TOKEN_LIFE).saturating_sub(TOKEN_MARGIN)
}
