//! Read access to Jira.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use domain::{InstanceName, TicketKey, Timestamp, TrackerAccount, limits::LimitGate};
use webclient::RequestIntent;

use crate::{
    CriteriaFields, Error, FoundGroups, FoundProjects, IssueChanges, IssueHit, IssueOutline, JiraAttachment,
    JiraComment, JiraDialect, JiraIssue, RoleMembers, Settings, StatusChange, TextEdit,
    client::{JiraClient, JiraClients},
    permissions::{self, PermissionComparison},
    site_fields::WireSiteField,
    wire::{
        self, WireAttached, WireGroupsOnly, WireIssue, WireKeyOnly, WireMembers, WireOutlined,
        WirePickedGroups, WireRole, WireSearch, WireStub, WireTypeStatuses,
    },
};

const FIELDS: &str = "summary,description,issuetype,priority,labels,status,assignee,updated,created,creator,\
     parent,issuelinks,subtasks,components,attachment";
const PAGE: usize = 100;
const MAX_SEARCH_PAGES: usize = 20;
const MAX_CHANGED_PAGES: usize = 100;
// Hits that ingest compares with a title.
const MAX_SIMILAR: usize = 50;
const MAX_COMMENTS: usize = 200;
// Groups that a list offers for a choice.
const MAX_GROUPS: usize = 10;

/// Reader of Jira; cheap to clone. Each call is tried up to three times.
#[derive(Clone, Debug)]
pub struct JiraReader {
    pub(crate) clients: JiraClients,
    /// Instance of calls that name no ticket, such as those about projects and accounts.
    pub(crate) instance: Option<InstanceName>,
}

impl JiraReader {
    /// Creates a reader of the default instance with its own connection pool. Connects on first use.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the URL is not valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new(), None)
    }

    /// Creates a reader of the default instance, if it is configured, and of the named ones. With a gate, it consults
    /// the gate before each request and reports each refusal to it.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_instances(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        gate: Option<&Arc<dyn LimitGate>>,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: JiraClients::new(settings, others, "reader", gate)?,
            instance: None,
        })
    }

    /// Returns a reader whose calls about projects and accounts go to this instance.
    #[must_use]
    pub fn on(&self, instance: Option<&InstanceName>) -> Self {
        Self {
            clients: self.clients.clone(),
            instance: instance.cloned(),
        }
    }

    /// Iterates over the default instance (`None`), if it is configured, and the named ones.
    pub fn instances(&self) -> impl Iterator<Item = Option<&InstanceName>> {
        self.clients.instances()
    }

    /// Reads an issue with its comments and history.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist or the account cannot see it, [`Error::Rejected`] for a key
    /// of another tracker, [`Error::TooDeep`] for a description that cannot be parsed.
    pub async fn issue(&self, key: &TicketKey) -> Result<JiraIssue, Error> {
        let client = self.clients.of(key)?;
        let path = client.issue_path(key)?;
        // Custom fields are requested by their ids, which differ from site to site.
        let custom = client.issue_fields().await?;
        let more: String = custom.all().map(|id| format!(",{id}")).collect();
        let found: WireIssue = client.get(&format!("{path}?fields={FIELDS}{more}")).await?;
        let mut comments = client.comments(key).await?;
        comments.drain(..comments.len().saturating_sub(MAX_COMMENTS));
        let changes = client.changes(key).await?;
        let place = (client.dialect(), &custom);
        found.into_issue(key, client.browse_url(key), comments, changes, place)
    }

    /// Addresses a moved issue by its id: callers keep the key that they know.
    pub fn remember_move(&self, key: &TicketKey, id: u64, present: &TicketKey) {
        if let Ok(client) = self.clients.of(key) {
            client.remember_move(key, id, present);
        }
    }

    /// Adds names of fields with acceptance criteria to the usual ones, for the site of this instance.
    pub fn name_criteria_fields<'a>(
        &self,
        instance: Option<&InstanceName>,
        names: impl Iterator<Item = &'a str>,
    ) {
        if let Ok(client) = self.clients.on(instance) {
            client.name_criteria_fields(names);
        }
    }

    /// Finds the custom fields of the site for acceptance criteria, by their names.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when our account has no permission to list the fields.
    pub async fn criteria_fields(&self) -> Result<CriteriaFields, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let listed: Vec<WireSiteField> = client.get(&client.dialect().path("field")).await?;
        let names = listed.iter().filter_map(WireSiteField::custom_name);
        Ok(CriteriaFields::choose(names))
    }

    /// Reads the present key of an issue by its id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist or the account cannot see it.
    pub async fn key_of(&self, id: u64) -> Result<TicketKey, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let path = format!("{}?fields=status", client.dialect().issue_of_id(id));
        let found: WireKeyOnly = client.get(&path).await?;
        found.into_key(self.instance.as_ref())
    }

    /// Id of the issue of a comment by the comment's address at the site of this reader; `None` for an address
    /// elsewhere or of another comment.
    ///
    /// # Errors
    /// [`Error::UnknownInstance`] when no settings name the site.
    pub fn issue_of_comment(&self, address: &str, comment: &str) -> Result<Option<u64>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        Ok(client.issue_of_comment(address, comment))
    }

    /// Lists the attachments of an issue, oldest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist or the account cannot see it.
    pub async fn attachments(&self, key: &TicketKey) -> Result<Vec<JiraAttachment>, Error> {
        let client = self.clients.of(key)?;
        let path = client.issue_path(key)?;
        let found: WireAttached = client.get(&format!("{path}?fields=attachment")).await?;
        Ok(found.into_attachments())
    }

    /// Reads the content of an attachment; `None` when it has more than `most_bytes`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist any more or the account cannot see it, [`Error::Rejected`] for an
    /// address outside of the site.
    pub async fn attachment(
        &self,
        key: &TicketKey,
        attachment: &JiraAttachment,
        most_bytes: usize,
    ) -> Result<Option<Vec<u8>>, Error> {
        let client = self.clients.of(key)?;
        let path = client.attachment_path(attachment)?;
        client.download(&path, most_bytes).await
    }

    /// Lists issues of a project in a status, least recently changed first; at most 2,000.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project or status does not exist.
    pub async fn search_ready(&self, project: &str, status: &str) -> Result<Vec<IssueHit>, Error> {
        search_hits(self, &wire::ready_jql(project, status)).await
    }

    /// Lists unfinished issues of a project that match a JQL condition, latest change first; at most 2,000.
    /// Jira's index is some seconds late.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the condition is not valid JQL, or the project does not exist.
    pub async fn matching(&self, project: &str, condition: &str) -> Result<Vec<IssueHit>, Error> {
        search_hits(self, &wire::matching_jql(project, condition)).await
    }

    /// Evaluates a JQL condition for one issue. Jira's index is some seconds late.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the condition is not valid JQL, or the account cannot see the issue.
    pub async fn matches(&self, key: &TicketKey, condition: &str) -> Result<bool, Error> {
        // The issue names its instance, which may differ from that of this reader.
        let reader = self.on(key.instance());
        let jql = wire::match_jql(key, condition);
        let (found, _) = search_pages(&reader, &jql, &["updated", "status"], 1).await?;
        Ok(!found.is_empty())
    }

    /// Lists issues of a project that changed within the last minutes (by Jira's clock), least recently
    /// changed first; at most 10,000. Jira's index is some seconds late.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project does not exist.
    pub async fn changed_within(&self, project: &str, minutes: u64) -> Result<IssueChanges, Error> {
        let jql = wire::changed_jql(project, minutes);
        let (found, is_complete) = search_pages(
            self,
            &jql,
            &["updated", "status", "created", "creator", "assignee"],
            MAX_CHANGED_PAGES,
        )
        .await?;
        let issues = found
            .into_iter()
            .map(|stub| stub.into_changed(self.instance.as_ref()));
        Ok(IssueChanges {
            issues: issues.collect::<Result<_, _>>()?,
            is_complete,
        })
    }

    /// Lists unfinished issues of a project whose title has one of these words, latest change first; the
    /// first 50, without their descriptions. An empty list of words has no hits.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project does not exist.
    pub async fn similar(&self, project: &str, words: &[String]) -> Result<Vec<IssueOutline>, Error> {
        // An empty condition would be a syntax error in JQL.
        if words.is_empty() {
            return Ok(Vec::new());
        }
        fetch_outlines(
            self,
            &wire::similar_jql(project, words),
            &["summary", "status"],
            MAX_SIMILAR,
        )
        .await
    }

    /// Lists issues of a project in a status, or the unfinished ones without a status, latest change first;
    /// the first 50, without their descriptions.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project or status does not exist.
    pub async fn list(&self, project: &str, status: Option<&str>) -> Result<Vec<IssueOutline>, Error> {
        let fields = ["summary", "status"];
        fetch_outlines(self, &wire::list_jql(project, status), &fields, MAX_SIMILAR).await
    }

    /// Lists issues of a project in any status that changed within the last days, latest change first; the first
    /// 100, without their descriptions. Jira's index is some seconds late.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project does not exist.
    pub async fn list_changed(&self, project: &str, days: u32) -> Result<Vec<IssueOutline>, Error> {
        let fields = ["summary", "status"];
        fetch_outlines(self, &wire::recent_jql(project, days), &fields, PAGE).await
    }

    /// Reads these issues with their descriptions, in no order. Issues that our account cannot see are
    /// missing, or cause a refusal.
    ///
    /// # Errors
    /// [`Error::Rejected`] when one of them does not exist.
    pub async fn outlines(&self, keys: &[&TicketKey]) -> Result<Vec<IssueOutline>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let fields = ["summary", "status", "description"];
        fetch_outlines(self, &wire::these_jql(keys), &fields, keys.len()).await
    }

    /// Lists comments that were created at or after an instant, oldest first; at most the latest 2,000.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn comments_since(&self, key: &TicketKey, since: Timestamp) -> Result<Vec<JiraComment>, Error> {
        self.clients.of(key)?.comments_since(key, since).await
    }

    /// Lists edits of summary or description at or after an instant, oldest first, among the issue's 2,000
    /// latest changes.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn text_edits_since(&self, key: &TicketKey, since: Timestamp) -> Result<Vec<TextEdit>, Error> {
        let mut edits = self.clients.of(key)?.changes(key).await?.edits;
        edits.retain(|edit| edit.at >= since);
        Ok(edits)
    }

    /// Finds the latest move of an issue into a status; `None` when it never moved there.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn last_transition_to(
        &self,
        key: &TicketKey,
        status: &str,
    ) -> Result<Option<StatusChange>, Error> {
        let changes = self.clients.of(key)?.changes(key).await?.moves;
        Ok(changes.into_iter().rev().find(|change| change.to == status))
    }

    /// Lists the names of an account's groups.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the account is missing, [`Error::Forbidden`] when our account has no
    /// permission to see groups.
    pub async fn groups(&self, account: &str) -> Result<Vec<String>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let path = client.dialect().groups(account);
        let found = match client.dialect() {
            JiraDialect::Cloud => client.get(&path).await?,
            JiraDialect::DataCenter => client.get::<WireGroupsOnly>(&path).await?.groups(),
        };
        Ok(found.into_iter().map(|group| group.name).collect())
    }

    /// Finds the groups of the site whose names contain a text, at most ten.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when our account has no permission to see groups.
    pub async fn find_groups(&self, text: &str) -> Result<FoundGroups, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let of = format!(
            "groups/picker?maxResults={MAX_GROUPS}&query={}",
            wire::percent_encode(text)
        );
        let found: WirePickedGroups = client.get(&client.dialect().path(&of)).await?;
        Ok(found.into())
    }

    /// True when a group has an active account.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the group is missing, [`Error::Forbidden`] when our account has no permission
    /// to see its members.
    pub async fn has_members(&self, group: &str) -> Result<bool, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let of = format!(
            "group/member?groupname={}&maxResults=1",
            wire::percent_encode(group)
        );
        let found: WireMembers = client.get(&client.dialect().path(&of)).await?;
        Ok(!found.values.is_empty())
    }

    /// Lists the projects that our account sees, at most the first 50.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when Jira refuses the credentials.
    pub async fn projects(&self) -> Result<FoundProjects, Error> {
        self.clients.on(self.instance.as_ref())?.projects().await
    }

    /// Lists the names of the statuses that issues of a project can have.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the project is missing or invisible to our account.
    pub async fn project_statuses(&self, project: &str) -> Result<BTreeSet<String>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let of = format!("project/{}/statuses", wire::percent_encode(project));
        let found: Vec<WireTypeStatuses> = client.get(&client.dialect().path(&of)).await?;
        let statuses = found.into_iter().flat_map(|kind| kind.statuses);
        Ok(statuses.map(|status| status.name).collect())
    }

    /// Compares our account's permissions in a project with [`permissions::READER`] and
    /// [`permissions::READER_NEEDS_NOT`].
    ///
    /// # Errors
    /// [`Error::NotFound`] when the project is missing or invisible to our account.
    pub async fn permissions(&self, project: &str) -> Result<PermissionComparison, Error> {
        self.clients
            .on(self.instance.as_ref())?
            .compared(project, &permissions::READER, &permissions::READER_NEEDS_NOT)
            .await
    }

    /// Reads our own account.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when Jira refuses the credentials.
    pub async fn myself(&self) -> Result<TrackerAccount, Error> {
        self.clients.on(self.instance.as_ref())?.myself().await
    }

    /// Reads the members of a role in a project; `None` when the project has no such role.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the project is missing, or our account is not its administrator: Jira shows
    /// members to administrators only.
    pub async fn role(&self, project: &str, name: &str) -> Result<Option<RoleMembers>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let (path, roles) = fetch_role_links(client, project).await?;
        let wanted = name.to_lowercase();
        let found = roles.iter().find(|(known, _)| known.to_lowercase() == wanted);
        let id = found.and_then(|(_, link)| link.rsplit('/').next());
        // The id comes from a link and goes into a path, so that only digits are accepted.
        let Some(id) = id.filter(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_digit())) else {
            return Ok(None);
        };
        let role: WireRole = client.get(&format!("{path}/{id}")).await?;
        Ok(Some(role.into()))
    }

    /// Lists the names of the roles in a project.
    ///
    /// # Errors
    /// As for [`Self::role`].
    pub async fn role_names(&self, project: &str) -> Result<Vec<String>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let (_, roles) = fetch_role_links(client, project).await?;
        Ok(roles.into_keys().collect())
    }
}

/// Path of the roles of a project, and their links by name.
async fn fetch_role_links(
    client: &JiraClient,
    project: &str,
) -> Result<(String, BTreeMap<String, String>), Error> {
    let path = client
        .dialect()
        .path(&format!("project/{}/role", wire::percent_encode(project)));
    let roles: BTreeMap<String, String> = client.get(&path).await?;
    check_role_links(&roles, &path)?;
    Ok((path, roles))
}

/// Refuses a map that has no link to a role, such as an object of a gateway: each project has roles.
fn check_role_links(roles: &BTreeMap<String, String>, path: &str) -> Result<(), Error> {
    if roles.values().any(|link| link.contains("/role/")) {
        return Ok(());
    }
    Err(RequestIntent::Read
        .lose_to_foreign_answer(&format!("GET {path}"))
        .into())
}

/// Reads the first page of a search.
async fn fetch_outlines(
    reader: &JiraReader,
    jql: &str,
    fields: &[&str],
    most: usize,
) -> Result<Vec<IssueOutline>, Error> {
    let client = reader.clients.on(reader.instance.as_ref())?;
    let (path, body) = client.dialect().search(jql, fields, most, None);
    let found: WireSearch<WireOutlined> = client.query(&path, &body).await?;
    let hits = found.issues.into_iter();
    hits.map(|hit| hit.into_outlined(reader.instance.as_ref(), client.dialect()))
        .collect()
}

/// Reads at most 2,000 hits of a search.
async fn search_hits(reader: &JiraReader, jql: &str) -> Result<Vec<IssueHit>, Error> {
    let (found, _) = search_pages(reader, jql, &["updated", "status"], MAX_SEARCH_PAGES).await?;
    let hits = found.into_iter();
    hits.map(|stub| stub.into_stub(reader.instance.as_ref()))
        .collect()
}

/// Reads the hits of a search; the flag is true when the list is complete.
async fn search_pages(
    reader: &JiraReader,
    jql: &str,
    fields: &[&str],
    pages: usize,
) -> Result<(Vec<WireStub>, bool), Error> {
    let client = reader.clients.on(reader.instance.as_ref())?;
    let (mut hits, mut seen, mut next) = (Vec::new(), BTreeSet::new(), None);
    for _ in 0..pages {
        let (path, body) = client.dialect().search(jql, fields, PAGE, next.as_ref());
        let found: WireSearch<WireStub> = client.query(&path, &body).await?;
        next = client.dialect().next(found.page());
        // Pages of a Data Center overlap (see `JiraDialect::next`), so hits are counted once.
        let new = found
            .issues
            .into_iter()
            .filter(|hit| seen.insert(hit.key.clone()));
        hits.extend(new);
        if next.is_none() {
            return Ok((hits, true));
        }
    }
    Ok((hits, false))
}
