//! Transport: authentication, time-outs, retries of reads, and the classes of failure.

use std::{
    collections::{BTreeMap, hash_map::RandomState},
    fmt,
    hash::BuildHasher,
    sync::Arc,
    time::Duration,
};

use domain::{Account, TicketKey, Timestamp, cause::chain, json};
use reqwest::RequestBuilder;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{
    sync::{Mutex, OnceCell},
    time::Instant,
};

use crate::{
    Assignment, Comment, Dialect, Error, Settings,
    answer::{self, AnswerHeaders, bounded_body, failure, parse},
    criteria::is_criteria_field,
    dialect::History,
    limits::Limits,
    permissions::{Compared, Needed},
    wire::{
        self, WireAccount, WireComment, WireHistory, WirePage, WirePermissions, WireProjectOnly,
        WireWithHistory,
    },
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);
const RETRY_DELAYS_MS: [u64; 2] = [200, 1000];
const PAGE: usize = 100;
const MAX_PAGES: usize = 20;

/// A site gets a new field rarely.
const FIELDS_KEPT: Duration = Duration::from_secs(3600);
/// A site may have several fields of one name; a ticket has one of them filled in.
const MOST_FIELDS: usize = 10;

#[derive(Deserialize)]
struct WireField {
    id: String,
    #[serde(default)]
    name: String,
}

/// How a write is sent.
#[derive(Clone, Copy)]
pub(crate) enum Method {
    Post,
    Put,
    Delete,
}

/// One connection pool and one account.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    base_url: String,
    /// Where its pages are.
    site_url: String,
    dialect: Dialect,
    email: String,
    api_token: SecretString,
    limits: Limits,
    myself: OnceCell<Account>,
    /// Whether projects are service projects, by their keys.
    service_projects: Mutex<BTreeMap<String, bool>>,
    /// Names of users of a Data Center by their keys.
    names: Mutex<BTreeMap<String, String>>,
    /// Fields with acceptance criteria.
    criteria_fields: Mutex<Option<(Instant, Vec<String>)>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base_url", &self.0.base_url)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(settings: &Settings, limits: Limits) -> Result<Self, Error> {
        // An error only says that the process has its provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base_url = settings.base_url.trim_end_matches('/').to_owned();
        let rejected = || Error::Rejected {
            detail: format!("{base_url} is not a URL"),
        };
        reqwest::Url::parse(&base_url).map_err(|_| rejected())?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TOTAL_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent("journeyman")
            .build()
            .map_err(|_| rejected())?;
        let site_url = match settings.site_url.trim_end_matches('/') {
            "" => base_url.clone(),
            site => site.to_owned(),
        };
        Ok(Self(Arc::new(Inner {
            http,
            base_url,
            site_url,
            dialect: settings.deployment,
            email: settings.email.clone(),
            api_token: settings.api_token.clone(),
            limits,
            myself: OnceCell::new(),
            service_projects: Mutex::default(),
            names: Mutex::default(),
            criteria_fields: Mutex::default(),
        })))
    }

    /// The ids of the site's fields that hold acceptance criteria. A site that does not list its fields has none.
    pub(crate) async fn criteria_fields(&self) -> Result<Vec<String>, Error> {
        let mut known = self.0.criteria_fields.lock().await;
        if let Some((read_at, fields)) = &*known
            && read_at.elapsed() < FIELDS_KEPT
        {
            return Ok(fields.clone());
        }
        let listed: Vec<WireField> = match self.get(&self.dialect().path("field")).await {
            Ok(listed) => listed,
            Err(Error::NotFound { .. } | Error::Forbidden { .. } | Error::Rejected { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let named = listed.into_iter().filter(|field| is_criteria_field(&field.name));
        let fields: Vec<String> = named.map(|field| field.id).take(MOST_FIELDS).collect();
        *known = Some((Instant::now(), fields.clone()));
        Ok(fields)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.0.dialect
    }

    /// The issue's address; refuses tickets of other trackers.
    pub(crate) fn issue_path(&self, key: &TicketKey) -> Result<String, Error> {
        self.dialect().issue(key)
    }

    pub(crate) fn browse_url(&self, key: &TicketKey) -> String {
        format!("{}/browse/{}", self.0.site_url, key.short())
    }

    /// Reads.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(|| self.0.http.get(self.url(path)), &format!("GET {}", name(path)))
            .await
    }

    /// Reads by a POST: a search.
    pub(crate) async fn query<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Error> {
        self.read(
            || self.0.http.post(self.url(path)).json(body),
            &format!("POST {}", name(path)),
        )
        .await
    }

    /// Writes, once.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let url = self.url(path);
        let (request, verb) = match method {
            Method::Post => (self.0.http.post(url).json(body), "POST"),
            Method::Put => (self.0.http.put(url).json(body), "PUT"),
            Method::Delete => (self.0.http.delete(url), "DELETE"),
        };
        let name = format!("{verb} {}", name(path));
        Box::pin(self.exchange(request, &name, true)).await
    }

    /// Whether customers read the comments of an issue: its project is one of a service desk, or Jira does not say what it is.
    pub(crate) async fn is_of_service_project(&self, key: &TicketKey) -> Result<bool, Error> {
        let issue = self.issue_path(key)?;
        let short = key.short();
        let project = short
            .rsplit_once('-')
            .map_or(short.as_str(), |(project, _)| project);
        if let Some(known) = self.0.service_projects.lock().await.get(project) {
            return Ok(*known);
        }
        let found: WireProjectOnly = self.get(&format!("{issue}?fields=project")).await?;
        let is_service = found.is_service();
        self.0
            .service_projects
            .lock()
            .await
            .insert(project.to_owned(), is_service);
        Ok(is_service)
    }

    /// The comments of an issue, oldest first; at most 2,000.
    pub(crate) async fn comments(&self, key: &TicketKey) -> Result<Vec<Comment>, Error> {
        let us = self.myself().await?;
        let path = format!(
            "{}/comment?orderBy=created&expand=properties",
            self.issue_path(key)?
        );
        let found: Vec<WireComment> = self.newest_pages(&path).await?;
        let read = |wire: WireComment| wire.into_comment(&us, self.dialect());
        found.into_iter().map(read).collect()
    }

    /// The comments of an issue that were made at or after an instant, oldest first; reads the newest pages only.
    pub(crate) async fn comments_since(
        &self,
        key: &TicketKey,
        since: Timestamp,
    ) -> Result<Vec<Comment>, Error> {
        let us = self.myself().await?;
        let issue = self.issue_path(key)?;
        let (mut newest_first, mut start) = (Vec::new(), 0);
        for _ in 0..MAX_PAGES {
            let query = format!("orderBy=-created&expand=properties&startAt={start}&maxResults={PAGE}");
            let page: WirePage<WireComment> = self.get(&format!("{issue}/comment?{query}")).await?;
            let read = |wire: WireComment| wire.into_comment(&us, self.dialect());
            let found: Vec<Comment> = page.values.into_iter().map(read).collect::<Result<_, _>>()?;
            start += found.len();
            let is_last = found.is_empty() || start >= page.total;
            let reaches_back = found.last().is_some_and(|oldest| oldest.created < since);
            newest_first.extend(found.into_iter().filter(|comment| comment.created >= since));
            if is_last || reaches_back {
                break;
            }
        }
        newest_first.reverse();
        Ok(newest_first)
    }

    /// What was done to an issue, oldest first, out of its 2,000 latest changes.
    pub(crate) async fn changes(&self, key: &TicketKey) -> Result<wire::Changes, Error> {
        let changes: Vec<WireHistory> = match self.dialect().history(&self.issue_path(key)?) {
            History::Pages(path) => self.newest_pages(&path).await?,
            History::Within(path) => {
                let mut all = self.get::<WireWithHistory>(&path).await?.histories();
                all.drain(..all.len().saturating_sub(MAX_PAGES * PAGE));
                all
            }
        };
        let mut assignments: Vec<_> = changes
            .iter()
            .cloned()
            .filter_map(WireHistory::into_assignment)
            .collect();
        self.name(&mut assignments, &changes).await?;
        let all = || changes.iter().cloned();
        Ok(wire::Changes {
            edits: all().filter_map(WireHistory::into_text_edit).collect(),
            moves: all().filter_map(WireHistory::into_status_change).collect(),
            assignments,
        })
    }

    /// Histories of a Data Center say who has an issue by the key of the user; everything else is said by the name.
    async fn name(&self, assignments: &mut [Assignment], changes: &[WireHistory]) -> Result<(), Error> {
        let mut names = self.0.names.lock().await;
        let authors = changes.iter().filter_map(WireHistory::author);
        names.extend(authors.map(|(key, name)| (key.to_owned(), name.to_owned())));
        for account in assignments.iter_mut().filter_map(|one| one.to.as_mut()) {
            let Some(path) = self.dialect().user_of_key(&account.id) else {
                return Ok(());
            };
            if !names.contains_key(&account.id) {
                let name = match self.get::<WireAccount>(&path).await {
                    Ok(user) => Account::from(user).id,
                    // Whoever is gone has nothing but the key.
                    Err(Error::NotFound { .. }) => account.id.clone(),
                    Err(error) => return Err(error),
                };
                names.insert(account.id.clone(), name);
            }
            if let Some(name) = names.get(&account.id) {
                account.id.clone_from(name);
            }
        }
        Ok(())
    }

    /// Which of these permissions our account lacks in a project, and which of the others it has.
    pub(crate) async fn compared(
        &self,
        project: &str,
        needed: &[Needed],
        needless: &[Needed],
    ) -> Result<Compared, Error> {
        let all = needed.iter().chain(needless);
        let keys: Vec<&str> = all.map(|permission| permission.key).collect();
        let path = self.dialect().permissions(project, &keys);
        let found: WirePermissions = self.get(&path).await?;
        let is_held = |needed: &&Needed| {
            let held = found.permissions.get(needed.key);
            held.is_some_and(|permission| permission.is_held)
        };
        Ok(Compared {
            lacking: needed.iter().filter(|needed| !is_held(needed)).copied().collect(),
            excess: needless.iter().filter(is_held).copied().collect(),
        })
    }

    pub(crate) async fn myself(&self) -> Result<Account, Error> {
        let ask = || async {
            let path = self.dialect().path("myself");
            self.get::<WireAccount>(&path).await.map(Account::from)
        };
        self.0.myself.get_or_try_init(ask).await.cloned()
    }

    /// The last entries of a list, oldest first; at most 2,000.
    async fn newest_pages<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, Error> {
        let (mut all, mut start) = (Vec::new(), 0);
        for _ in 0..=MAX_PAGES {
            let page: WirePage<T> = self
                .get(&format!("{path}&startAt={start}&maxResults={PAGE}"))
                .await?;
            let first_wanted = page.total.saturating_sub(MAX_PAGES * PAGE);
            if start < first_wanted {
                start = first_wanted;
                continue;
            }
            let found = page.values.len();
            start += found;
            all.extend(page.values);
            if found == 0 || start >= page.total {
                break;
            }
        }
        Ok(all)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0.base_url)
    }

    async fn read<T: DeserializeOwned>(
        &self,
        request: impl Fn() -> RequestBuilder,
        name: &str,
    ) -> Result<T, Error> {
        let mut delays = RETRY_DELAYS_MS.into_iter();
        loop {
            let result = Box::pin(self.exchange(request(), name, false)).await;
            match (&result, delays.next()) {
                (Err(error @ Error::Unavailable { .. }), Some(delay)) => {
                    tracing::debug!(error = %chain(error), "jira read failed, trying again");
                    tokio::time::sleep(with_jitter(delay)).await;
                }
                (Ok(_) | Err(_), _) => return result,
            }
        }
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        name: &str,
        write: bool,
    ) -> Result<T, Error> {
        let token = self.0.api_token.expose_secret();
        let request = match (self.0.email.as_str(), token) {
            ("", "") => request,
            ("", token) => request.bearer_auth(token),
            (email, token) => request.basic_auth(email, Some(token)),
        };
        self.0.limits.admit().await?;
        let response = request.send().await.map_err(|error| failure(error, write))?;
        let status = response.status();
        let headers = AnswerHeaders::read(response.headers());
        let body = bounded_body(response, write).await?;
        let body = json::replace_broken_characters(&body);
        if status.is_success() {
            answer::check_origin(&headers.content_type, &body, name, write)?;
            return parse(&body, name);
        }
        let refused = answer::refusal(name, status, &headers, &answer::message(&body), write);
        if let Error::RateLimited { retry_after } = refused
            && !headers.is_of_one_issue
        {
            self.0.limits.hear(retry_after).await;
        }
        Err(refused)
    }
}

fn name(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

fn with_jitter(ms: u64) -> Duration {
    Duration::from_millis(ms + RandomState::new().hash_one(ms) % (ms / 2))
}
