//! A Jira that behaves, Cloud or Data Center: REST v3 with ADF or v2 with wiki markup, JQL enough for a poller, a workflow,
//! signed webhooks.

mod access;
mod adf;
mod comments;
mod data_center;
mod desk;
mod extract;
mod hooks;
mod jql;
mod look;
mod marks;
mod options;
mod people;
mod projects;
mod related;
mod rest;
mod search;
mod shape;
mod site;
mod state;
mod transitions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::chaos::{DeliveryFaults, WriteFaults};
use crate::fault::Fault;
use crate::http::{RequestLog, Server};
use desk::{Desk, MoveError};
pub use options::{JiraOptions, JiraTransition, USERS};
pub use site::JiraKind;
use site::Site;
use state::{Account, FieldValue};

/// The e-mail address of the account that may only read.
pub const READER_EMAIL: &str = "reader@journeyman.test";
/// Its API token.
pub const READER_API_TOKEN: &str = "jira-reader-of-the-stand-in";
/// The e-mail address of the account that may write.
pub const WRITER_EMAIL: &str = "writer@journeyman.test";
/// Its API token.
pub const WRITER_API_TOKEN: &str = "jira-writer-of-the-stand-in";
/// The e-mail address of an administrator, who may register webhooks and does nothing else.
pub const ADMIN_EMAIL: &str = "admin@journeyman.test";
/// Their API token.
pub const ADMIN_API_TOKEN: &str = "jira-admin-of-the-stand-in";
/// The id of the account that may only read.
pub const READER_ID: &str = "712020:journeyman-reader";
/// The id of the account that may write.
pub const WRITER_ID: &str = "712020:journeyman-writer";
/// The display name of the writing account.
pub const WRITER_NAME: &str = "Journeyman";

/// A comment as a test looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JiraCommentState {
    /// Its id.
    pub id: String,
    /// The author's display name.
    pub author: String,
    /// Its plain text.
    pub text: String,
}

/// A remote link as a test looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLinkState {
    /// The caller's id for it.
    pub global_id: String,
    /// Where it leads.
    pub url: String,
    /// What it says.
    pub title: String,
}

/// The stand-in. Dropping it stops the server.
pub struct FakeJira {
    server: Server,
    desk: Arc<Desk>,
}

impl FakeJira {
    /// Starts on a free loopback port.
    ///
    /// # Errors
    /// When no port can be bound, or the workflow has no status.
    pub async fn start(options: JiraOptions) -> anyhow::Result<Self> {
        // What the vendor publishes is compared with the Cloud alone.
        let log = Arc::new(match options.kind {
            JiraKind::Cloud => RequestLog::of("jira"),
            JiraKind::DataCenter(_) => RequestLog::default(),
        });
        let mut desk = None;
        let server = Server::start(Arc::clone(&log), |address| {
            let url = options
                .public_url
                .clone()
                .unwrap_or_else(|| format!("http://{address}"));
            let (kind, service_projects) = (options.kind, options.service_projects.clone());
            let shared = Arc::new(Desk::new(
                options,
                log,
                Site {
                    url,
                    kind,
                    service_projects,
                },
            )?);
            desk = Some(Arc::clone(&shared));
            Ok(rest::router(shared))
        })
        .await?;
        Ok(Self {
            server,
            desk: desk.context("the router was not made")?,
        })
    }

    /// Stops serving and waits for requests and webhooks under way, for a few seconds.
    pub async fn stop(self) {
        self.server.stop().await;
        self.desk.webhooks.stop().await;
    }

    /// The base: the REST interface is under `<url>/rest/api/3`, at a Data Center `/2`, pages for people are `<url>/browse/KEY`.
    #[must_use]
    pub fn url(&self) -> String {
        self.desk.site.url.clone()
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Where webhooks go and what they are signed with; until then none are sent.
    pub fn set_webhook(&self, url: &str, secret: &str) {
        self.desk.webhooks.set_target(url, secret);
    }

    /// Creates a ticket in the first status and gives its key. Blank lines part the description's paragraphs.
    /// Sends `jira:issue_created`.
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

    /// A person moves a ticket; gives the changelog id. Sends `jira:issue_updated` with the changelog.
    ///
    /// # Errors
    /// When there is no such ticket or status, or the workflow forbids the move.
    pub fn move_issue(&self, key: &str, status: &str, by: &str) -> anyhow::Result<String> {
        let to = self
            .desk
            .statuses
            .iter()
            .position(|known| known.name == status)
            .unwrap_or(usize::MAX);
        self.desk
            .transition(key, to, &Account::person(by))
            .map_err(|problem| match problem {
                MoveError::NoIssue => anyhow::anyhow!("there is no ticket {key}"),
                MoveError::NoStatus => anyhow::anyhow!("there is no status {status:?}"),
                MoveError::Illegal => anyhow::anyhow!("the workflow does not let {key} move to {status:?}"),
            })
    }

    /// A person deletes a ticket; sends `jira:issue_deleted`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn delete_issue(&self, key: &str, by: &str) -> anyhow::Result<()> {
        let deleted = self.desk.delete(key, &Account::person(by));
        deleted.with_context(|| format!("there is no ticket {key}"))
    }

    /// A person comments; gives the comment's id. Sends `comment_created`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn comment_as(&self, key: &str, author: &str, text: &str) -> anyhow::Result<String> {
        let comment = self.desk.comment_as(key, &Account::person(author), text);
        Ok(comment
            .with_context(|| format!("there is no ticket {key}"))?
            .id
            .to_string())
    }

    /// A person replaces the labels; sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn set_labels(&self, key: &str, labels: &[&str]) -> anyhow::Result<()> {
        let done = self
            .desk
            .set_labels(key, labels, &Account::person("Rita Reporter"));
        done.with_context(|| format!("there is no ticket {key}"))
    }

    /// A person chooses a value in a field of the site; sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn set_field(&self, key: &str, name: &str, value: &str) -> anyhow::Result<()> {
        let set = self.desk.set_field(
            key,
            name,
            FieldValue::Choice(value.to_owned()),
            &Account::person("Rita Reporter"),
        );
        set.with_context(|| format!("there is no ticket {key}"))
    }

    /// A person writes a text, paragraph by paragraph, into a field of the site; sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn write_field(&self, key: &str, name: &str, text: &str, person: &str) -> anyhow::Result<()> {
        let value = FieldValue::Text(adf::from_plain(text));
        let set = self.desk.set_field(key, name, value, &Account::person(person));
        set.with_context(|| format!("there is no ticket {key}"))
    }

    /// A person replaces the components; sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn set_components(&self, key: &str, components: &[&str]) -> anyhow::Result<()> {
        let done = self
            .desk
            .set_components(key, components, &Account::person("Rita Reporter"));
        done.with_context(|| format!("there is no ticket {key}"))
    }

    /// A person changes the summary; gives the changelog id. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn edit_summary(&self, key: &str, summary: &str, by: &str) -> anyhow::Result<String> {
        self.desk
            .edit_summary(key, summary, &Account::person(by))
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// A person changes the description; gives the changelog id. Sends `jira:issue_updated`.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn edit_description(&self, key: &str, description: &str, by: &str) -> anyhow::Result<String> {
        self.desk
            .edit_description(key, self.desk.site.text(description), &Account::person(by))
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// A description as a document (ADF), as the editor would never write it.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn set_description_document(&self, key: &str, document: serde_json::Value) -> anyhow::Result<()> {
        self.desk
            .edit_description(key, document, &Account::person("Rita Reporter"))
            .map(drop)
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// A person changes a comment. Sends `comment_updated`.
    ///
    /// # Errors
    /// When there is no such ticket or comment.
    pub fn edit_comment_as(&self, key: &str, comment: &str, by: &str, text: &str) -> anyhow::Result<()> {
        self.desk
            .update_comment(key, comment, &Account::person(by), self.desk.site.text(text))
            .map(drop)
            .with_context(|| format!("there is no comment {comment} on {key}"))
    }

    /// A person comments with a document (ADF), as the editor would never write it; gives the comment's id.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn comment_document_as(
        &self,
        key: &str,
        author: &str,
        document: serde_json::Value,
    ) -> anyhow::Result<String> {
        self.desk
            .add_comment(key, &Account::person(author), document, Vec::new())
            .map(|comment| comment.id.to_string())
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// Links two tickets: `from` blocks or duplicates `to`, relates to it, or is its parent. `kind` is `Blocks`, `Duplicate`,
    /// `Relates` or `Parent`.
    ///
    /// # Errors
    /// When there is no such ticket or kind.
    pub fn relate(&self, from: &str, kind: &str, to: &str) -> anyhow::Result<()> {
        let done = self.desk.relate(from, kind, to);
        done.with_context(|| format!("{from} and {to} cannot be linked as {kind}"))
    }

    /// A project without tickets; [`Self::create_issue`] makes its project by itself.
    pub fn create_project(&self, project: &str) {
        self.desk.create_project(project);
    }

    /// Takes a permission (its key, e.g. `TRANSITION_ISSUES`) from one of the two accounts, by its e-mail address. Only
    /// the list of its permissions shows it.
    pub fn withhold_permission(&self, email: &str, permission: &str) {
        self.desk.withhold(email, permission);
    }

    /// An account has one more permission in every project, by the permission's key.
    pub fn grant_permission(&self, email: &str, permission: &str) {
        self.desk.grant(email, permission);
    }

    /// Both accounts have the permissions of theirs again, and no other.
    pub fn restore_permissions(&self) {
        self.desk.restore();
    }

    /// A person becomes the assignee.
    ///
    /// # Errors
    /// When there is no such ticket.
    pub fn assign(&self, key: &str, to: &str) -> anyhow::Result<()> {
        self.desk
            .assign(key, Some(Account::person(to)), &Account::person("Rita Reporter"))
            .with_context(|| format!("there is no ticket {key}"))
    }

    /// Who plays the role `Developers` in every project, people and groups; nobody until then.
    pub fn set_developers(&self, people: &[&str], groups: &[&str]) {
        let people = people.iter().map(|name| Account::person(name)).collect();
        self.desk.set_developers(people, groups);
    }

    /// The groups that a person is in; none until then.
    pub fn set_groups(&self, person: &str, groups: &[&str]) {
        self.desk.set_groups(&Account::person(person), groups);
    }

    /// Sends every recorded webhook again, with the same ids.
    pub fn redeliver_all(&self) {
        self.desk.webhooks.redeliver_all();
    }

    /// Answers coming requests with an error.
    pub fn fail_next(&self, fault: Fault) {
        self.desk.log.fail_next(fault);
    }

    /// From now on writes meet faults by chance; `None` ends it.
    pub fn set_write_faults(&self, faults: Option<WriteFaults>) {
        self.desk.log.set_write_faults(faults, 429);
    }

    /// From now on webhooks come late and more than once by chance; `None` ends it.
    pub fn set_delivery_faults(&self, faults: Option<DeliveryFaults>) {
        self.desk.webhooks.set_faults(faults);
    }

    /// Delays every answer.
    pub fn set_delay(&self, delay: Duration) {
        self.desk.log.set_delay(delay);
    }

    /// Stops the clock at this instant, in the form of the header `Date`.
    pub fn set_date(&self, date: &'static str) {
        self.desk.log.set_date(date);
    }

    /// Lists show a new comment or pull request only after this long, as the real service's do for up to 5 s; it can be
    /// read by its own address at once.
    pub fn set_list_lag(&self, lag: Duration) {
        self.desk.log.set_list_lag(lag);
    }
}
