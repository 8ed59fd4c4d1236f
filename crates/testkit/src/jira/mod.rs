//! Stand-in of Jira, Cloud or Data Center: REST v3 with ADF or v2 with wiki markup, a subset of JQL, a
//! workflow and signed webhooks.

mod access;
mod adf;
mod attachments;
mod comments;
mod data_center;
mod desk;
mod extractors;
mod hooks;
mod issue_links;
mod jql;
mod options;
mod people;
mod projects;
mod rest;
mod search;
mod shape;
mod site;
mod state;
mod state_views;
mod ticket_fields;
mod transitions;

use std::ops::Deref;
use std::sync::Arc;

use anyhow::Context as _;

use crate::http::RequestLog;
use crate::stand_in::{StandInParts, StandInServer};
use desk::{JiraState, MoveError};
pub use options::{JiraOptions, JiraTransition, USERS};
pub use site::JiraKind;
use site::StandInSite;
use state::{CustomFieldValue, EPIC_LINK, JiraAccount};

/// HTTP status of the rate limit.
const LIMITED: u16 = 429;
/// E-mail address of the account with read permissions.
pub const READER_EMAIL: &str = "reader@journeyman.test";
/// API token of the reader's account.
pub const READER_API_TOKEN: &str = "jira-reader-of-the-stand-in";
/// E-mail address of the account with write permissions.
pub const WRITER_EMAIL: &str = "writer@journeyman.test";
/// API token of the writer's account.
pub const WRITER_API_TOKEN: &str = "jira-writer-of-the-stand-in";
/// E-mail address of an administrator, whose only permission is to register webhooks.
pub const ADMIN_EMAIL: &str = "admin@journeyman.test";
/// API token of the administrator.
pub const ADMIN_API_TOKEN: &str = "jira-admin-of-the-stand-in";
/// Account id of the reader.
pub const READER_ID: &str = "712020:journeyman-reader";
/// Account id of the writer.
pub const WRITER_ID: &str = "712020:journeyman-writer";
/// Display name of the writer.
pub const WRITER_NAME: &str = "Journeyman";

/// Comment, as tests read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInTicketComment {
    /// Numeric id as text.
    pub id: String,
    /// Display name of the author.
    pub author: String,
    /// Body as plain text.
    pub text: String,
}

/// Remote link, as tests read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInRemoteLink {
    /// Identifier that the caller chose (`globalId`).
    pub global_id: String,
    /// Target of the link.
    pub url: String,
    /// Text of the link.
    pub title: String,
}

/// Server of the Jira API. Dropping it stops the server.
pub struct FakeJira {
    server: StandInServer,
    desk: Arc<JiraState>,
}

impl Deref for FakeJira {
    type Target = StandInServer;

    fn deref(&self) -> &StandInServer {
        &self.server
    }
}

impl FakeJira {
    /// Starts on a free loopback port.
    ///
    /// # Errors
    /// When no port can be bound, or the workflow has no status.
    pub async fn start(options: JiraOptions) -> anyhow::Result<Self> {
        // The vendor's published description covers the Cloud alone, so a Data Center's exchanges are not
        // recorded.
        let log = match options.kind {
            JiraKind::Cloud => RequestLog::of("jira"),
            JiraKind::DataCenter(_) => RequestLog::default(),
        };
        let started = StandInServer::start(log, LIMITED, |address, log| {
            let url = options
                .public_url
                .clone()
                .unwrap_or_else(|| format!("http://{address}"));
            let (kind, service_projects) = (options.kind, options.service_projects.clone());
            let desk = Arc::new(JiraState::new(
                options,
                log,
                StandInSite {
                    url,
                    kind,
                    // Another host than that of the site, on the same listener.
                    media: format!("http://localhost:{}", address.port()),
                    service_projects,
                },
            )?);
            Ok(StandInParts {
                router: rest::build_jira_routes(Arc::clone(&desk)),
                webhooks: Arc::clone(&desk.webhooks),
                state: desk,
            })
        });
        let (server, desk) = started.await?;
        Ok(Self { server, desk })
    }

    /// Stops the server and waits a few seconds for requests and webhooks under way.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Base URL. REST is below `<url>/rest/api/3` (Cloud) or `/2` (Data Center), a ticket's web page is
    /// `<url>/browse/KEY`.
    #[must_use]
    pub fn url(&self) -> String {
        self.desk.site.url.clone()
    }

    /// Creates a ticket in the first status and returns its key. Blank lines separate the description's
    /// paragraphs. Sends `jira:issue_created`.
    pub fn create_issue(
        &self,
        project: &str,
        summary: &str,
        description: &str,
        kind: &str,
        labels: &[&str],
    ) -> String {
        self.desk
            .create(project, summary, self.desk.site.text(description), kind, labels)
    }

    /// Creates a ticket under a key that no ticket has now, as an import does, and returns the key. Sends
    /// `jira:issue_created`.
    pub fn create_issue_as(&self, key: &str, summary: &str) -> String {
        let description = self.desk.site.text("");
        self.desk.create_under(key, summary, description, "Bug", &[])
    }

    /// Transitions a ticket as a user and returns the changelog id. Sends `jira:issue_updated` with the
    /// changelog.
    ///
    /// # Errors
    /// When the ticket or status does not exist, or the workflow forbids the transition.
    pub fn move_issue(&self, key: &str, status: &str, by: &str) -> anyhow::Result<String> {
        // An unknown status becomes an index that `transition` refuses with `NoStatus`.
        let to = self
            .desk
            .statuses
            .iter()
            .position(|known| known.name == status)
            .unwrap_or(usize::MAX);
        self.desk
            .transition(key, to, None, &JiraAccount::person(by))
            .map_err(|problem| match problem {
                MoveError::NoIssue => anyhow::anyhow!("there is no ticket {key}"),
                MoveError::NoStatus => anyhow::anyhow!("there is no status {status:?}"),
                MoveError::Illegal => anyhow::anyhow!("the workflow does not let {key} move to {status:?}"),
            })
    }

    /// Moves a ticket to another project as a user and returns its new key. The id stays, and the old key leads to
    /// the ticket until another one gets it. Sends `jira:issue_updated` with the changelog.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn move_to_project(&self, key: &str, project: &str, by: &str) -> anyhow::Result<String> {
        let moved = self.desk.change_project(key, project, &JiraAccount::person(by));
        moved.with_context(|| format!("there is no ticket {key}"))
    }

    /// Sends the web request of an automation rule about a ticket and returns the status of the answer.
    ///
    /// The body is the data of the issue, as Automation sends it by default, and the rule has one header of its own.
    ///
    /// # Errors
    /// When the ticket does not exist, or the receiver does not answer.
    pub async fn run_automation_rule(
        &self,
        key: &str,
        url: &str,
        (header, value): (&str, &str),
    ) -> anyhow::Result<u16> {
        let issue = self.desk.issue(key);
        let issue = issue.with_context(|| format!("there is no ticket {key}"))?;
        let body = issue.webhook_json(&self.desk.statuses, &self.desk.site);
        let client = reqwest::Client::builder().no_proxy().build()?;
        let request = client
            .post(url)
            .header("user-agent", "Automation for Jira App/1.0")
            .header(header, value)
            .json(&body);
        Ok(request.send().await?.status().as_u16())
    }

    /// Deletes a ticket as a user. Sends `jira:issue_deleted`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn delete_issue(&self, key: &str, by: &str) -> anyhow::Result<()> {
        let deleted = self.desk.delete(key, &JiraAccount::person(by));
        deleted.with_context(|| format!("there is no ticket {key}"))
    }

    /// Comments as a user and returns the comment's id. Sends `comment_created`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn comment_as(&self, key: &str, author: &str, text: &str) -> anyhow::Result<String> {
        let comment = self.desk.comment_as(key, &JiraAccount::person(author), text);
        Ok(comment
            .with_context(|| format!("there is no ticket {key}"))?
            .id
            .to_string())
    }

    /// Replaces the labels as a user. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn set_labels(&self, key: &str, labels: &[&str]) -> anyhow::Result<()> {
        let done = self
            .desk
            .set_labels(key, labels, &JiraAccount::person("Rita Reporter"));
        done.with_context(|| format!("there is no ticket {key}"))
    }

    /// Chooses a value in a custom field as a user. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn set_field(&self, key: &str, name: &str, value: &str) -> anyhow::Result<()> {
        let set = self.desk.set_field(
            key,
            name,
            CustomFieldValue::Choice(value.to_owned()),
            &JiraAccount::person("Rita Reporter"),
        );
        set.with_context(|| format!("there is no ticket {key}"))
    }

    /// Writes a text, paragraph by paragraph, into a custom field as a user. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn write_field(&self, key: &str, name: &str, text: &str, person: &str) -> anyhow::Result<()> {
        let value = CustomFieldValue::Text(adf::from_plain(text));
        let set = self
            .desk
            .set_field(key, name, value, &JiraAccount::person(person));
        set.with_context(|| format!("there is no ticket {key}"))
    }

    /// Names the epic of a ticket in the field `Epic Link` as a user, as on a Data Center. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn set_epic(&self, key: &str, epic: &str) -> anyhow::Result<()> {
        let set = self.desk.set_field(
            key,
            EPIC_LINK,
            CustomFieldValue::Issue(epic.to_owned()),
            &JiraAccount::person("Rita Reporter"),
        );
        set.with_context(|| format!("there is no ticket {key}"))
    }

    /// Replaces the components as a user. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn set_components(&self, key: &str, components: &[&str]) -> anyhow::Result<()> {
        let done = self
            .desk
            .set_components(key, components, &JiraAccount::person("Rita Reporter"));
        done.with_context(|| format!("there is no ticket {key}"))
    }

    /// Changes the summary as a user and returns the changelog id. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn edit_summary(&self, key: &str, summary: &str, by: &str) -> anyhow::Result<String> {
        self.desk
            .edit_summary(key, summary, &JiraAccount::person(by))
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// Changes the description as a user and returns the changelog id. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn edit_description(&self, key: &str, description: &str, by: &str) -> anyhow::Result<String> {
        self.desk
            .edit_description(key, self.desk.site.text(description), &JiraAccount::person(by))
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// Sets the description to any ADF document, even one that Jira's editor never writes.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn set_description_document(&self, key: &str, document: serde_json::Value) -> anyhow::Result<()> {
        self.desk
            .edit_description(key, document, &JiraAccount::person("Rita Reporter"))
            .map(drop)
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// Changes a comment as a user. Sends `comment_updated`.
    ///
    /// # Errors
    /// When the ticket or comment does not exist.
    pub fn edit_comment_as(&self, key: &str, comment: &str, by: &str, text: &str) -> anyhow::Result<()> {
        self.desk
            .update_comment(key, comment, &JiraAccount::person(by), self.desk.site.text(text))
            .map(drop)
            .with_context(|| format!("there is no comment {comment} on {key}"))
    }

    /// Comments with any ADF document, even one that Jira's editor never writes, and returns the comment's
    /// id.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn comment_document_as(
        &self,
        key: &str,
        author: &str,
        document: serde_json::Value,
    ) -> anyhow::Result<String> {
        self.desk
            .add_comment(key, &JiraAccount::person(author), document, Vec::new())
            .map(|comment| comment.id.to_string())
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// Links two tickets: `from` blocks or duplicates `to`, relates to it, or is its parent. `kind` is
    /// `Blocks`, `Duplicate`, `Relates` or `Parent`.
    ///
    /// # Errors
    /// When a ticket or the link type does not exist.
    pub fn relate(&self, from: &str, kind: &str, to: &str) -> anyhow::Result<()> {
        let done = self.desk.relate(from, kind, to);
        done.with_context(|| format!("{from} and {to} cannot be linked as {kind}"))
    }

    /// Creates a project without tickets. [`Self::create_issue`] creates missing projects itself.
    pub fn create_project(&self, project: &str) {
        self.desk.create_project(project);
    }

    /// Removes a permission (a key such as `TRANSITION_ISSUES`) from the reader or writer, named by e-mail
    /// address. Only the list of permissions changes; requests still succeed.
    pub fn withhold_permission(&self, email: &str, permission: &str) {
        self.desk.withhold(email, permission);
    }

    /// Adds a permission in every project to an account, by the permission's key.
    pub fn grant_permission(&self, email: &str, permission: &str) {
        self.desk.grant(email, permission);
    }

    /// Restores the default permissions of both accounts.
    pub fn restore_permissions(&self) {
        self.desk.restore();
    }

    /// Assigns a ticket as a user.
    ///
    /// # Errors
    /// When the ticket does not exist.
    pub fn assign(&self, key: &str, to: &str) -> anyhow::Result<()> {
        self.desk
            .assign(
                key,
                Some(JiraAccount::person(to)),
                &JiraAccount::person("Rita Reporter"),
            )
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// Sets the members of the role `Developers` in every project: people and groups. The role is empty at
    /// first.
    pub fn set_developers(&self, people: &[&str], groups: &[&str]) {
        let people = people.iter().map(|name| JiraAccount::person(name)).collect();
        self.desk.set_developers(people, groups);
    }

    /// Sets the groups of a user, in place of the common groups.
    pub fn set_groups(&self, person: &str, groups: &[&str]) {
        self.desk.set_groups(&JiraAccount::person(person), groups);
    }
}
