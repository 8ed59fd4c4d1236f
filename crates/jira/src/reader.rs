//! What may be read at Jira.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use domain::{Account, Instance, TicketKey, Timestamp, limits::LimitGate};

use crate::{
    Changed, Comment, Error, FoundGroups, Issue, IssueStub, Outlined, Settings, StatusChange, TextEdit,
    clients::Clients,
    permissions::{self, Compared},
    wire::{
        self, WireGroups, WireIssue, WireMembers, WireOutlined, WirePickedGroups, WireSearch, WireStub,
        WireTypeStatuses,
    },
};

const FIELDS: &str = "summary,description,issuetype,priority,labels,status,assignee,updated,created,creator,\
     parent,issuelinks,subtasks,components";
const PAGE: usize = 100;
const MAX_SEARCH_PAGES: usize = 20;
const MAX_CHANGED_PAGES: usize = 100;
/// Hits that are compared with a title.
const MAX_SIMILAR: usize = 50;
const MAX_COMMENTS: usize = 200;
/// Groups that a person can choose from.
const MAX_GROUPS: usize = 10;

/// Reads at Jira; cheap to clone. Every call is tried three times.
#[derive(Clone, Debug)]
pub struct Reader {
    pub(crate) clients: Clients,
    /// Where the questions about projects and accounts go.
    pub(crate) instance: Option<Instance>,
}

impl Reader {
    /// A reader of the default instance with its own connections. Connects to nothing yet.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the URL is not valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new())
    }

    /// The same for the default instance, if there is one, and those that tickets may name.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn with_instances(
        settings: Option<&Settings>,
        others: &BTreeMap<Instance, Settings>,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: Clients::new(settings, others, "reader", None)?,
            instance: None,
        })
    }

    /// The same reader, that asks before each request and tells of each refusal who keeps the limits of its accounts.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn gated(
        settings: Option<&Settings>,
        others: &BTreeMap<Instance, Settings>,
        gate: &Arc<dyn LimitGate>,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: Clients::new(settings, others, "reader", Some(gate))?,
            instance: None,
        })
    }

    /// The same reader, whose questions about projects and accounts go to this instance.
    #[must_use]
    pub fn on(&self, instance: Option<&Instance>) -> Self {
        Self {
            clients: self.clients.clone(),
            instance: instance.cloned(),
        }
    }

    /// The default instance (`None`), if there is one, and the named ones.
    pub fn instances(&self) -> impl Iterator<Item = Option<&Instance>> {
        self.clients.instances()
    }

    /// An issue with its comments and its moves.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it does not exist or the account cannot see it, [`Error::Rejected`] for a key that is
    /// not Jira's, [`Error::TooDeep`] for a description that cannot be read.
    pub async fn issue(&self, key: &TicketKey) -> Result<Issue, Error> {
        let client = self.clients.of(key)?;
        let path = client.issue_path(key)?;
        let criteria_fields = client.criteria_fields().await?;
        let more: String = criteria_fields.iter().map(|id| format!(",{id}")).collect();
        let found: WireIssue = client.get(&format!("{path}?fields={FIELDS}{more}")).await?;
        let mut comments = client.comments(key).await?;
        comments.drain(..comments.len().saturating_sub(MAX_COMMENTS));
        let changes = client.changes(key).await?;
        let place = (client.dialect(), criteria_fields.as_slice());
        found.into_issue(key, client.browse_url(key), comments, changes, place)
    }

    /// Issues of a project in a status, changed at or after `updated_since`; least recently changed first, at most
    /// 2,000.
    ///
    /// # Errors
    /// [`Error::Rejected`] when project or status do not exist.
    pub async fn search_ready(
        &self,
        project: &str,
        status: &str,
        updated_since: Option<Timestamp>,
    ) -> Result<Vec<IssueStub>, Error> {
        let jql = wire::ready_jql(project, status, updated_since);
        let (found, _) = self
            .search(&jql, &["updated", "status"], MAX_SEARCH_PAGES)
            .await?;
        let stubs = found
            .into_iter()
            .map(|stub| stub.into_stub(self.instance.as_ref()));
        let mut stubs = stubs.collect::<Result<Vec<_>, _>>()?;
        stubs.retain(|stub| updated_since.is_none_or(|since| stub.updated >= since));
        Ok(stubs)
    }

    /// Unfinished issues of a project that a condition in Jira's query language holds for, the latest change first; at
    /// most 2,000. The index lags behind by seconds.
    ///
    /// # Errors
    /// [`Error::Rejected`] when Jira does not understand the condition, or the project does not exist.
    pub async fn matching(&self, project: &str, condition: &str) -> Result<Vec<IssueStub>, Error> {
        let jql = wire::matching_jql(project, condition);
        let (found, _) = self
            .search(&jql, &["updated", "status"], MAX_SEARCH_PAGES)
            .await?;
        let stubs = found
            .into_iter()
            .map(|stub| stub.into_stub(self.instance.as_ref()));
        stubs.collect()
    }

    /// Whether a condition in Jira's query language holds for an issue. The index lags behind by seconds.
    ///
    /// # Errors
    /// [`Error::Rejected`] when Jira does not understand the condition, or the account cannot see the issue.
    pub async fn matches(&self, key: &TicketKey, condition: &str) -> Result<bool, Error> {
        let (found, _) = self
            .on(key.instance())
            .search(&wire::match_jql(key, condition), &["updated", "status"], 1)
            .await?;
        Ok(!found.is_empty())
    }

    /// Issues of a project that changed within the last minutes (of Jira's clock), least recently changed first, at most
    /// 10,000. The index lags behind by seconds.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project does not exist.
    pub async fn changed_within(&self, project: &str, minutes: u64) -> Result<Changed, Error> {
        let jql = wire::changed_jql(project, minutes);
        let (found, is_complete) = self
            .search(
                &jql,
                &["updated", "status", "created", "creator", "assignee"],
                MAX_CHANGED_PAGES,
            )
            .await?;
        let issues = found
            .into_iter()
            .map(|stub| stub.into_changed(self.instance.as_ref()));
        Ok(Changed {
            issues: issues.collect::<Result<_, _>>()?,
            is_complete,
        })
    }

    /// Unfinished issues of a project whose title has one of these words, the latest change first; the first 50, without
    /// their descriptions. No words find nothing.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project does not exist.
    pub async fn similar(&self, project: &str, words: &[String]) -> Result<Vec<Outlined>, Error> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        self.outlined(
            &wire::similar_jql(project, words),
            &["summary", "status"],
            MAX_SIMILAR,
        )
        .await
    }

    /// Issues of a project in a status, of unfinished ones when none is named, the latest change first; the first 50, without
    /// their descriptions.
    ///
    /// # Errors
    /// [`Error::Rejected`] when project or status do not exist.
    pub async fn list(&self, project: &str, status: Option<&str>) -> Result<Vec<Outlined>, Error> {
        let fields = ["summary", "status"];
        self.outlined(&wire::list_jql(project, status), &fields, MAX_SIMILAR)
            .await
    }

    /// These issues with their descriptions, in no order; those that our account cannot see are missing, or all are.
    ///
    /// # Errors
    /// [`Error::Rejected`] when one of them does not exist.
    pub async fn outlines(&self, keys: &[&TicketKey]) -> Result<Vec<Outlined>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let fields = ["summary", "status", "description"];
        self.outlined(&wire::these_jql(keys), &fields, keys.len()).await
    }

    async fn outlined(&self, jql: &str, fields: &[&str], most: usize) -> Result<Vec<Outlined>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let (path, body) = client.dialect().search(jql, fields, most, None);
        let found: WireSearch<WireOutlined> = client.query(&path, &body).await?;
        let hits = found.issues.into_iter();
        hits.map(|hit| hit.into_outlined(self.instance.as_ref(), client.dialect()))
            .collect()
    }

    /// Comments made at or after an instant, oldest first; the latest 2,000 at most.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn comments_since(&self, key: &TicketKey, since: Timestamp) -> Result<Vec<Comment>, Error> {
        self.clients.of(key)?.comments_since(key, since).await
    }

    /// Edits of summary or description at or after an instant, oldest first, out of the issue's 2,000 latest changes.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn text_edits_since(&self, key: &TicketKey, since: Timestamp) -> Result<Vec<TextEdit>, Error> {
        let mut edits = self.clients.of(key)?.changes(key).await?.edits;
        edits.retain(|edit| edit.at >= since);
        Ok(edits)
    }

    /// Every hit, and whether these are all.
    async fn search(&self, jql: &str, fields: &[&str], pages: usize) -> Result<(Vec<WireStub>, bool), Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let (mut hits, mut seen, mut next) = (Vec::new(), BTreeSet::new(), None);
        for _ in 0..pages {
            let (path, body) = client.dialect().search(jql, fields, PAGE, next.as_ref());
            let found: WireSearch<WireStub> = client.query(&path, &body).await?;
            next = client.dialect().next(found.page());
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

    /// The latest move of an issue into a status; `None` when it never moved there.
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

    /// The names of the groups that an account is in.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such account, [`Error::Forbidden`] when our account may not see groups.
    pub async fn groups(&self, account: &str) -> Result<Vec<String>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let found: WireGroups = client.get(&client.dialect().groups(account)).await?;
        Ok(found.names().collect())
    }

    /// The names of at most ten groups of the site that contain a text, and whether there are more.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when our account may not see groups.
    pub async fn find_groups(&self, text: &str) -> Result<FoundGroups, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let of = format!(
            "groups/picker?maxResults={MAX_GROUPS}&query={}",
            wire::encode(text)
        );
        let found: WirePickedGroups = client.get(&client.dialect().path(&of)).await?;
        Ok(found.into())
    }

    /// True when an active account is in a group.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such group, [`Error::Forbidden`] when our account may not see who is in it.
    pub async fn has_members(&self, group: &str) -> Result<bool, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let of = format!("group/member?groupname={}&maxResults=1", wire::encode(group));
        let found: WireMembers = client.get(&client.dialect().path(&of)).await?;
        Ok(!found.values.is_empty())
    }

    /// The names of the statuses that issues of a project can have.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such project, or our account may not see it.
    pub async fn project_statuses(&self, project: &str) -> Result<BTreeSet<String>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let of = format!("project/{}/statuses", wire::encode(project));
        let found: Vec<WireTypeStatuses> = client.get(&client.dialect().path(&of)).await?;
        let statuses = found.into_iter().flat_map(|kind| kind.statuses);
        Ok(statuses.map(|status| status.name).collect())
    }

    /// What our account lacks in a project of [`permissions::READER`], and what it has of
    /// [`permissions::READER_NEEDS_NOT`].
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such project, or our account may not see it.
    pub async fn permissions(&self, project: &str) -> Result<Compared, Error> {
        self.clients
            .on(self.instance.as_ref())?
            .compared(project, &permissions::READER, &permissions::READER_NEEDS_NOT)
            .await
    }

    /// Our own account.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the credentials are no good.
    pub async fn myself(&self) -> Result<Account, Error> {
        self.clients.on(self.instance.as_ref())?.myself().await
    }
}
