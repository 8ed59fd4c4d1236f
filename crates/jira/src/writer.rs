//! Write access to Jira, with the reads that writes need. The client never repeats a write.

use std::{collections::BTreeMap, sync::Arc};

use domain::{InstanceName, TicketKey, TrackerAccount, limits::LimitGate};
use serde_json::{Map, Value, json};

use crate::{
    Error, FoundProjects, IssueStatus, JiraComment, JiraCommentId, Settings, WorkflowTransition,
    client::{JiraClient, JiraClients, JiraMethod},
    permissions::{self, PermissionComparison},
    wire::{self, WireAssigneeOnly, WireId, WireStatusOnly, WireTransitions, WireVisibility},
};

/// Readers of a comment in a service project. In other projects every reader of the issue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentAudience {
    /// The team only.
    Internal,
    /// The team and the customers.
    Customers,
}

/// Writer of Jira; cheap to clone. Reads are tried up to three times, writes once: after [`Error::Unknown`],
/// read the state before the next write.
#[derive(Clone, Debug)]
pub struct JiraWriter {
    pub(crate) clients: JiraClients,
}

impl JiraWriter {
    /// Creates a writer of the default instance with its own connection pool. Connects on first use.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the URL is not valid.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Self::with_instances(Some(settings), &BTreeMap::new(), None)
    }

    /// Creates a writer of the default instance, if it is configured, and of the named ones. With a gate, it consults
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
            clients: JiraClients::new(settings, others, "writer", gate)?,
        })
    }

    /// Addresses a moved issue by its id: callers keep the key that they know.
    pub fn remember_move(&self, key: &TicketKey, id: u64, present: &TicketKey) {
        if let Ok(client) = self.clients.of(key) {
            client.remember_move(key, id, present);
        }
    }

    /// Present key of an issue, as far as [`Self::remember_move`] was called for it.
    pub fn present_key(&self, key: &TicketKey) -> TicketKey {
        let client = self.clients.of(key);
        client.map_or_else(|_| key.clone(), |client| client.present_key(key))
    }

    /// URL of an issue's page; `None` when the settings have no such instance.
    pub fn browse_url(&self, key: &TicketKey) -> Option<String> {
        self.clients.of(key).ok().map(|client| client.browse_url(key))
    }

    /// Adds a comment to an issue; in a service project as an internal note. The marker goes into the
    /// comment's properties, and [`JiraComment::marker`] returns it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn comment(
        &self,
        key: &TicketKey,
        markdown: &str,
        marker: &str,
    ) -> Result<JiraCommentId, Error> {
        self.comment_for(key, markdown, marker, CommentAudience::Internal)
            .await
    }

    /// Adds a comment like [`Self::comment`], for an audience.
    ///
    /// # Errors
    /// As for [`Self::comment`].
    pub async fn comment_for(
        &self,
        key: &TicketKey,
        markdown: &str,
        marker: &str,
        audience: CommentAudience,
    ) -> Result<JiraCommentId, Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}/comment", client.issue_path(key)?);
        let mut body = json!({ "body": client.dialect().text(markdown) });
        let mut properties = Vec::new();
        if !marker.is_empty() {
            properties.push(json!({ "key": wire::MARKER, "value": { "id": marker } }));
        }
        // The property exists in service projects only, and its absence means a public comment.
        // The check precedes the write and its failure prevents it, so that no internal comment becomes
        // public.
        if audience == CommentAudience::Internal && client.is_of_service_project(key).await? {
            properties.push(json!({ "key": wire::SERVICE_DESK, "value": { "internal": true } }));
        }
        if !properties.is_empty() {
            body["properties"] = properties.into();
        }
        let made: WireId = client.write(JiraMethod::Post, &path, &body).await?;
        Ok(JiraCommentId(made.id))
    }

    /// Lists the comments of an issue, oldest first; at most the 2,000 newest.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn list_comments(&self, key: &TicketKey) -> Result<Vec<JiraComment>, Error> {
        self.clients.of(key)?.comments(key).await
    }

    /// Replaces the text of a comment; its marker and visibility stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the comment was deleted.
    pub async fn update_comment(
        &self,
        key: &TicketKey,
        comment: &JiraCommentId,
        markdown: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(key)?;
        let path = build_comment_path(client, key, comment)?;
        let mut body = json!({ "body": client.dialect().text(markdown) });
        // A Data Center makes a comment public when an update has no visibility, so the present one is sent
        // again.
        if client.dialect().forgets_visibility() {
            let now: WireVisibility = client.get(&path).await?;
            if let Some(visibility) = now.visibility {
                body["visibility"] = visibility;
            }
        }
        client.send(JiraMethod::Put, &path, &body).await
    }

    /// Deletes a comment of our account.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the comment was deleted already, [`Error::Forbidden`] when another account
    /// wrote it.
    pub async fn delete_comment(&self, key: &TicketKey, comment: &JiraCommentId) -> Result<(), Error> {
        let client = self.clients.of(key)?;
        let path = build_comment_path(client, key, comment)?;
        client.send(JiraMethod::Delete, &path, &Value::Null).await
    }

    /// Reads the present status of an issue.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn status(&self, key: &TicketKey) -> Result<IssueStatus, Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}?fields=status", client.issue_path(key)?);
        let found: WireStatusOnly = client.get(&path).await?;
        Ok(found.into())
    }

    /// Lists the transitions that the workflow offers our account from the present status.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn transitions(&self, key: &TicketKey) -> Result<Vec<WorkflowTransition>, Error> {
        let client = self.clients.of(key)?;
        // Without the expansion the answer lacks the fields of the screens.
        let path = format!(
            "{}/transitions?expand=transitions.fields",
            client.issue_path(key)?
        );
        let found: WireTransitions = client.get(&path).await?;
        let dialect = client.dialect();
        let offered = found.transitions.into_iter();
        Ok(offered.map(|wire| wire.into_transition(dialect)).collect())
    }

    /// Executes a transition; `id` is [`WorkflowTransition::id`], `fields` are the values for its screen.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the workflow does not offer it any more or requires another field.
    pub async fn transition(
        &self,
        key: &TicketKey,
        id: &str,
        fields: &Map<String, Value>,
    ) -> Result<(), Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}/transitions", client.issue_path(key)?);
        let mut body = json!({ "transition": { "id": id } });
        if !fields.is_empty() {
            body["fields"] = json!(fields);
        }
        client.send(JiraMethod::Post, &path, &body).await
    }

    /// Adds labels to an issue; its present labels stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist, [`Error::Rejected`] for a label with a space.
    pub async fn add_labels(&self, key: &TicketKey, labels: &[String]) -> Result<(), Error> {
        let add: Vec<Value> = labels.iter().map(|label| json!({ "add": label })).collect();
        // `update` adds to the labels, whereas `fields` would replace them.
        let body = json!({ "update": { "labels": add } });
        let client = self.clients.of(key)?;
        client
            .send(JiraMethod::Put, &client.issue_path(key)?, &body)
            .await
    }

    /// Reads the assignee of an issue.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn assignee(&self, key: &TicketKey) -> Result<Option<TrackerAccount>, Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}?fields=assignee", client.issue_path(key)?);
        let found: WireAssigneeOnly = client.get(&path).await?;
        Ok(found.into())
    }

    /// Assigns the issue to an account, by its id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist, [`Error::Rejected`] when the account is not
    /// assignable.
    pub async fn assign(&self, key: &TicketKey, account: &str) -> Result<(), Error> {
        set_assignee(self, key, Some(account)).await
    }

    /// Removes the assignee of the issue.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist, [`Error::Rejected`] when the project requires an
    /// assignee.
    pub async fn unassign(&self, key: &TicketKey) -> Result<(), Error> {
        set_assignee(self, key, None).await
    }

    /// Links the issue to an external page; the same `global_id` replaces the earlier link.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn remote_link(
        &self,
        key: &TicketKey,
        global_id: &str,
        url: &str,
        title: &str,
    ) -> Result<(), Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}/remotelink", client.issue_path(key)?);
        let body = json!({ "globalId": global_id, "object": { "url": url, "title": title } });
        client.send(JiraMethod::Post, &path, &body).await
    }

    /// Compares our account's permissions in a project with [`permissions::WRITER`] and
    /// [`permissions::WRITER_NEEDS_NOT`].
    ///
    /// # Errors
    /// [`Error::NotFound`] when the project is missing or invisible to our account.
    pub async fn permissions(&self, project: &str) -> Result<PermissionComparison, Error> {
        self.clients
            .on(None)?
            .compared(project, &permissions::WRITER, &permissions::WRITER_NEEDS_NOT)
            .await
    }

    /// Reads our own account on the instance of an issue.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when Jira refuses the credentials.
    pub async fn account_at(&self, key: &TicketKey) -> Result<TrackerAccount, Error> {
        self.clients.of(key)?.myself().await
    }

    /// Lists the projects that our account sees on the default instance, at most the first 50.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when Jira refuses the credentials.
    pub async fn projects(&self) -> Result<FoundProjects, Error> {
        self.clients.on(None)?.projects().await
    }

    /// Reads our own account on the default instance.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when Jira refuses the credentials.
    pub async fn myself(&self) -> Result<TrackerAccount, Error> {
        self.clients.on(None)?.myself().await
    }
}

async fn set_assignee(writer: &JiraWriter, key: &TicketKey, to: Option<&str>) -> Result<(), Error> {
    let client = writer.clients.of(key)?;
    let path = format!("{}/assignee", client.issue_path(key)?);
    let body = client.dialect().account(to);
    client.send(JiraMethod::Put, &path, &body).await
}

/// Path of a comment of an issue.
fn build_comment_path(
    client: &JiraClient,
    key: &TicketKey,
    comment: &JiraCommentId,
) -> Result<String, Error> {
    let issue = client.issue_path(key)?;
    Ok(format!("{issue}/comment/{}", wire::percent_encode(&comment.0)))
}
