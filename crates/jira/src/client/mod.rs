//! Clients of Jira, one for each instance: authentication, pages, and caches.

mod downloads;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use domain::{
    InstanceName, TicketKey, Timestamp, TrackerAccount,
    limits::{LimitClass, LimitGate, LimitObservation},
};
use reqwest::{
    RequestBuilder,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{
    sync::{Mutex, OnceCell},
    time::Instant,
};
use webclient::{GatedAccount, InstanceClients, RequestIntent};

use crate::{
    AssigneeChange, Error, FoundProjects, JiraComment, JiraDialect, Settings,
    answer::{classify_refusal, is_of_one_issue, parse_body},
    comment_address::parse_comment_address,
    criteria::is_criteria_field,
    dialect::{HistoryPath, ProjectsPath},
    permissions::{PermissionComparison, RequiredJiraPermission},
    site_fields::{IssueFieldIds, WireSiteField},
    wire::{
        self, WireAccount, WireComment, WireHistory, WirePage, WirePermissions, WireProjectKey,
        WireProjectOnly, WireWithHistory,
    },
};

const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
// Jira has one limit for all requests of an account.
const RESOURCE: &str = "rest";
const PAGE: usize = 100;
const MAX_PAGES: usize = 20;

// A site rarely receives a new field, so that the list is read once an hour.
const FIELDS_KEPT: Duration = Duration::from_secs(3600);
// Moved issues whose addresses are remembered.
const MOST_MOVED: usize = 10_000;

/// HTTP method of a write.
#[derive(Clone, Copy)]
pub(crate) enum JiraMethod {
    Post,
    Put,
    Delete,
}

/// Client with one connection pool and one account; clones share both.
#[derive(Clone)]
pub(crate) struct JiraClient(Arc<JiraClientInner>);

struct JiraClientInner {
    http: reqwest::Client,
    base_url: String,
    /// Base URL of pages for users.
    site_url: String,
    dialect: JiraDialect,
    email: String,
    api_token: SecretString,
    account: GatedAccount,
    myself: OnceCell<TrackerAccount>,
    /// Service-project flag by project key.
    service_projects: Mutex<BTreeMap<String, bool>>,
    /// Names of a Data Center's users by their keys.
    names: Mutex<BTreeMap<String, String>>,
    /// Fields of the site, with the time at which they were read.
    site_fields: Mutex<Option<(Instant, Vec<WireSiteField>)>>,
    /// Names of fields with acceptance criteria that callers add to the usual ones.
    criteria_names: parking_lot::Mutex<BTreeSet<String>>,
    /// Moved issues by the keys that callers use for them.
    moved: parking_lot::Mutex<BTreeMap<TicketKey, IssueAddress>>,
}

/// Address of an issue that callers name by an earlier key.
#[derive(Clone)]
struct IssueAddress {
    id: u64,
    key: TicketKey,
}

impl fmt::Debug for JiraClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base_url", &self.0.base_url)
            .finish_non_exhaustive()
    }
}

impl JiraClient {
    pub(crate) fn new(settings: &Settings, account: GatedAccount) -> Result<Self, Error> {
        let base_url = settings.base_url.trim_end_matches('/').to_owned();
        let http = webclient::build_client(&base_url, HeaderMap::new())?;
        let site_url = match settings.site_url.trim_end_matches('/') {
            "" => base_url.clone(),
            site => site.to_owned(),
        };
        Ok(Self(Arc::new(JiraClientInner {
            http,
            base_url,
            site_url,
            dialect: settings.deployment,
            email: settings.email.clone(),
            api_token: settings.api_token.clone(),
            account,
            myself: OnceCell::new(),
            service_projects: Mutex::default(),
            names: Mutex::default(),
            site_fields: Mutex::default(),
            criteria_names: parking_lot::Mutex::default(),
            moved: parking_lot::Mutex::default(),
        })))
    }

    /// Reads the ids of the site's custom fields that are read with every issue; none for a site that does not list
    /// its fields.
    pub(crate) async fn issue_fields(&self) -> Result<IssueFieldIds, Error> {
        let choose =
            |listed: &[WireSiteField]| IssueFieldIds::choose(listed, |name| self.holds_criteria(name));
        // The lock is held during the request, so that concurrent calls share one.
        let mut known = self.0.site_fields.lock().await;
        if let Some((read_at, fields)) = &*known
            && read_at.elapsed() < FIELDS_KEPT
        {
            return Ok(choose(fields));
        }
        let listed: Vec<WireSiteField> = match self.get(&self.dialect().path("field")).await {
            Ok(listed) => listed,
            // A refusal costs only what custom fields contain, and the issue stays readable. It is
            // stored like a list; an outage is not.
            Err(Error::NotFound { .. } | Error::Forbidden { .. } | Error::Rejected { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let fields = choose(&listed);
        *known = Some((Instant::now(), listed));
        Ok(fields)
    }

    /// True when a field of this name holds acceptance criteria.
    fn holds_criteria(&self, name: &str) -> bool {
        is_criteria_field(name) || self.0.criteria_names.lock().contains(&name.trim().to_lowercase())
    }

    /// Adds names of fields with acceptance criteria, in any case.
    pub(crate) fn name_criteria_fields<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let names = names.map(|name| name.trim().to_lowercase());
        self.0
            .criteria_names
            .lock()
            .extend(names.filter(|name| !name.is_empty()));
    }

    pub(crate) fn dialect(&self) -> JiraDialect {
        self.0.dialect
    }

    /// Path of an issue; refuses tickets of other trackers.
    pub(crate) fn issue_path(&self, key: &TicketKey) -> Result<String, Error> {
        match self.0.moved.lock().get(key) {
            // Jira finds a moved issue by its old key only while no other issue has that key.
            Some(address) => Ok(self.dialect().issue_of_id(address.id)),
            None => self.dialect().issue(key),
        }
    }

    /// Id of the issue of a comment by the comment's address at the site; `None` for any other address.
    pub(crate) fn issue_of_comment(&self, address: &str, comment: &str) -> Option<u64> {
        parse_comment_address(address, comment, &[&self.0.base_url, &self.0.site_url])
    }

    pub(crate) fn browse_url(&self, key: &TicketKey) -> String {
        format!("{}/browse/{}", self.0.site_url, self.present_key(key).short())
    }

    /// Present key of an issue, as far as a caller has named it.
    pub(crate) fn present_key(&self, key: &TicketKey) -> TicketKey {
        let moved = self.0.moved.lock();
        moved
            .get(key)
            .map_or_else(|| key.clone(), |address| address.key.clone())
    }

    /// Addresses an issue by its id from now on, or by its key again when it is back.
    pub(crate) fn remember_move(&self, key: &TicketKey, id: u64, present: &TicketKey) {
        let mut moved = self.0.moved.lock();
        if key == present {
            moved.remove(key);
            return;
        }
        // Callers name the move before each use, so an entry that is dropped comes back.
        if moved.len() >= MOST_MOVED {
            moved.clear();
        }
        let address = IssueAddress {
            id,
            key: present.clone(),
        };
        moved.insert(key.clone(), address);
    }

    /// Reads a path, with retries.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.read(
            || self.0.http.get(self.url(path)),
            &format!("GET {}", strip_query(path)),
        )
        .await
    }

    /// Sends a search: a read in the form of a POST, with retries.
    pub(crate) async fn query<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Error> {
        self.read(
            || self.0.http.post(self.url(path)).json(body),
            &format!("POST {}", strip_query(path)),
        )
        .await
    }

    /// Sends a write, without a retry.
    pub(crate) async fn write<T: DeserializeOwned>(
        &self,
        method: JiraMethod,
        path: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let url = self.url(path);
        let (request, verb) = match method {
            JiraMethod::Post => (self.0.http.post(url).json(body), "POST"),
            JiraMethod::Put => (self.0.http.put(url).json(body), "PUT"),
            JiraMethod::Delete => (self.0.http.delete(url), "DELETE"),
        };
        let name = format!("{verb} {}", strip_query(path));
        Box::pin(self.exchange(request, &name, RequestIntent::Write)).await
    }

    /// Sends a write without a retry, and discards the answer.
    pub(crate) async fn send(&self, method: JiraMethod, path: &str, body: &Value) -> Result<(), Error> {
        self.write::<Value>(method, path, body).await.map(drop)
    }

    /// True when customers can read the comments of an issue: its project is a service project, or Jira omits
    /// the type.
    pub(crate) async fn is_of_service_project(&self, key: &TicketKey) -> Result<bool, Error> {
        let issue = self.issue_path(key)?;
        // The type of the project that the issue is in now decides, whatever its old project was.
        let short = self.present_key(key).short();
        let project = short
            .rsplit_once('-')
            .map_or(short.as_str(), |(project, _)| project);
        // The lock is free during the request. At worst two callers read the same project.
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

    /// Lists the comments of an issue, oldest first; at most the 2,000 newest.
    pub(crate) async fn comments(&self, key: &TicketKey) -> Result<Vec<JiraComment>, Error> {
        let us = self.myself().await?;
        let path = format!(
            // Without the expansion the answer lacks the markers.
            "{}/comment?orderBy=created&expand=properties",
            self.issue_path(key)?
        );
        let found: Vec<WireComment> = self.newest_pages(&path).await?;
        let read = |wire: WireComment| wire.into_comment(&us, self.dialect());
        found.into_iter().map(read).collect()
    }

    /// Lists the comments of an issue that were created at or after an instant, oldest first; reads only the
    /// newest pages.
    pub(crate) async fn comments_since(
        &self,
        key: &TicketKey,
        since: Timestamp,
    ) -> Result<Vec<JiraComment>, Error> {
        let us = self.myself().await?;
        let issue = self.issue_path(key)?;
        let (mut newest_first, mut start) = (Vec::new(), 0);
        for _ in 0..MAX_PAGES {
            let query = format!("orderBy=-created&expand=properties&startAt={start}&maxResults={PAGE}");
            let page: WirePage<WireComment> = self.get(&format!("{issue}/comment?{query}")).await?;
            let read = |wire: WireComment| wire.into_comment(&us, self.dialect());
            let found: Vec<JiraComment> = page.values.into_iter().map(read).collect::<Result<_, _>>()?;
            start += found.len();
            let is_last = found.is_empty() || start >= page.total;
            // The page is newest first, so its last comment is the oldest.
            let reaches_back = found.last().is_some_and(|oldest| oldest.created < since);
            newest_first.extend(found.into_iter().filter(|comment| comment.created >= since));
            if is_last || reaches_back {
                break;
            }
        }
        newest_first.reverse();
        Ok(newest_first)
    }

    /// Reads the history of an issue, oldest first; at most its 2,000 latest changes.
    pub(crate) async fn changes(&self, key: &TicketKey) -> Result<wire::IssueHistory, Error> {
        let changes: Vec<WireHistory> = match self.dialect().history(&self.issue_path(key)?) {
            HistoryPath::Pages(path) => self.newest_pages(&path).await?,
            HistoryPath::Within(path) => {
                let mut all = self.get::<WireWithHistory>(&path).await?.histories();
                // A Data Center sends the whole history. Callers get as many changes as from the pages
                // of the Cloud.
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
        Ok(wire::IssueHistory {
            edits: all()
                .filter_map(|change| change.into_text_edit(|name| self.holds_criteria(name)))
                .collect(),
            moves: all().filter_map(WireHistory::into_status_change).collect(),
            assignments,
        })
    }

    /// Replaces user keys in assignments by names: a Data Center's histories identify assignees by key, all
    /// its other answers by name.
    async fn name(&self, assignments: &mut [AssigneeChange], changes: &[WireHistory]) -> Result<(), Error> {
        let mut names = self.0.names.lock().await;
        // Authors come with both key and name, which saves a request for each assignee among them.
        let authors = changes.iter().filter_map(WireHistory::author);
        names.extend(authors.map(|(key, name)| (key.to_owned(), name.to_owned())));
        for account in assignments.iter_mut().filter_map(|one| one.to.as_mut()) {
            let Some(path) = self.dialect().user_of_key(&account.id) else {
                return Ok(());
            };
            if !names.contains_key(&account.id) {
                let name = match self.get::<WireAccount>(&path).await {
                    Ok(user) => TrackerAccount::from(user).id,
                    // A deleted user has no name any more.
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

    /// Compares our account's permissions in a project: lacking ones of `needed`, held ones of `needless`.
    pub(crate) async fn compared(
        &self,
        project: &str,
        needed: &[RequiredJiraPermission],
        needless: &[RequiredJiraPermission],
    ) -> Result<PermissionComparison, Error> {
        let all = needed.iter().chain(needless);
        let keys: Vec<&str> = all.map(|permission| permission.key).collect();
        let path = self.dialect().permissions(project, &keys);
        let found: WirePermissions = self.get(&path).await?;
        let is_held = |needed: &&RequiredJiraPermission| {
            let held = found.permissions.get(needed.key);
            held.is_some_and(|permission| permission.is_held)
        };
        Ok(PermissionComparison {
            lacking: needed.iter().filter(|needed| !is_held(needed)).copied().collect(),
            excess: needless.iter().filter(is_held).copied().collect(),
        })
    }

    /// Lists the projects that our account sees.
    pub(crate) async fn projects(&self) -> Result<FoundProjects, Error> {
        let (projects, total) = match self.dialect().projects(wire::MAX_PROJECTS) {
            ProjectsPath::Page(path) => {
                let page: WirePage<WireProjectKey> = self.get(&path).await?;
                (page.values, page.total)
            }
            ProjectsPath::All(path) => {
                let all: Vec<WireProjectKey> = self.get(&path).await?;
                let total = all.len();
                (all, total)
            }
        };
        Ok(wire::collect_projects(projects, total))
    }

    pub(crate) async fn myself(&self) -> Result<TrackerAccount, Error> {
        let ask = || async {
            let path = self.dialect().path("myself");
            self.get::<WireAccount>(&path).await.map(TrackerAccount::from)
        };
        // A failure is not stored, so the next call repeats the request.
        self.0.myself.get_or_try_init(ask).await.cloned()
    }

    /// Reads the last entries of a list, oldest first; at most 2,000.
    async fn newest_pages<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, Error> {
        let (mut all, mut start) = (Vec::new(), 0);
        // One page more than the limit, because the first one may be dropped.
        for _ in 0..=MAX_PAGES {
            let page: WirePage<T> = self
                .get(&format!("{path}&startAt={start}&maxResults={PAGE}"))
                .await?;
            // The total is known after the first page. A longer list continues at its last 2,000 entries, so
            // the first page is dropped.
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
        // Boxed: the exchange is too large to be part of every caller's future (lint `large_futures`).
        let attempt = || Box::pin(self.exchange::<T>(request(), name, RequestIntent::Read));
        let is_outage = |error: &Error| matches!(error, Error::Unavailable { .. });
        webclient::retry_read("jira", is_outage, attempt).await
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        name: &str,
        intent: RequestIntent,
    ) -> Result<T, Error> {
        let request = self.authorize(request)?;
        // Admission comes last before sending, so that a request that is held back has no effect.
        let admitted = self.0.account.admit(RESOURCE, None).await;
        admitted.map_err(|retry_after| Error::HeldBack { retry_after })?;
        let answer = webclient::exchange_request(request, intent, MAX_ANSWER_BYTES).await?;
        answer.check_origin(name)?;
        if answer.status.is_success() {
            return parse_body(&answer.body, name, intent);
        }
        let refused = classify_refusal(name, &answer);
        if let Error::RateLimited { retry_after } = refused
            // The limit of one issue does not apply to the account's other requests.
            && !is_of_one_issue(&answer.headers)
        {
            let observed = LimitObservation {
                refused: Some((LimitClass::Primary, retry_after)),
                ..LimitObservation::default()
            };
            self.0.account.report(RESOURCE, None, observed).await;
        }
        Err(refused)
    }
}

impl JiraClient {
    fn authorize(&self, request: RequestBuilder) -> Result<RequestBuilder, Error> {
        let token = self.0.api_token.expose_secret();
        Ok(match (self.0.email.as_str(), token) {
            ("", "") => request,
            // A personal access token goes as a bearer token, an API token with the account's address by
            // basic authentication.
            ("", token) => request.header(AUTHORIZATION, build_bearer_header(token)?),
            (email, token) => request.basic_auth(email, Some(token)),
        })
    }
}

/// Builds the header of a personal access token. reqwest would report a forbidden character with the request, as if
/// the address were wrong.
fn build_bearer_header(token: &str) -> Result<HeaderValue, Error> {
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(|_| Error::Unauthorized {
        check: "api_token, which contains a character that is not allowed in a header".to_owned(),
    })?;
    header.set_sensitive(true);
    Ok(header)
}

fn strip_query(path: &str) -> &str {
    // The query may contain text of the caller, which must not get into an error message.
    path.split('?').next().unwrap_or_default()
}

/// Clients by the instance that a ticket names.
#[derive(Clone, Debug)]
pub(crate) struct JiraClients(InstanceClients<JiraClient>);

impl JiraClients {
    pub(crate) fn new(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        role: &str,
        gate: Option<&Arc<dyn LimitGate>>,
    ) -> Result<Self, Error> {
        let build = |name: Option<&InstanceName>, settings: &Settings| {
            JiraClient::new(settings, GatedAccount::new(gate, "jira", role, name))
        };
        InstanceClients::build("jira", settings, others, build).map(Self)
    }

    /// The default instance (`None`), if it is configured, and every named one.
    pub(crate) fn instances(&self) -> impl Iterator<Item = Option<&InstanceName>> {
        self.0.instances()
    }

    pub(crate) fn of(&self, key: &TicketKey) -> Result<&JiraClient, Error> {
        self.on(key.instance())
    }

    pub(crate) fn on(&self, instance: Option<&InstanceName>) -> Result<&JiraClient, Error> {
        Ok(self.0.find(instance)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JiraWriter;

    #[tokio::test]
    async fn token_with_forbidden_character_is_unauthorized() {
        let key = TicketKey::jira("ENG-1").unwrap();
        for token in ["personal\ntoken", "token\r", "\u{1}"] {
            let settings = Settings {
                base_url: "http://127.0.0.1:1".to_owned(),
                deployment: JiraDialect::DataCenter,
                api_token: SecretString::from(token),
                ..Settings::default()
            };
            let refused = JiraWriter::new(&settings)
                .unwrap()
                .status(&key)
                .await
                .unwrap_err();
            let Error::Unauthorized { check } = &refused else {
                panic!("{token:?}: {refused}");
            };
            assert!(check.starts_with("api_token"), "{check}");
            assert!(!check.contains("personal"), "{check}");
        }
    }
}
