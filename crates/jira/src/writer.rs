//! What may be written at Jira, and what a writer has to look at before. A write is never repeated inside.

use std::{collections::BTreeMap, sync::Arc};

use domain::{Account, Instance, TicketKey, limits::LimitGate};
use serde_json::{Map, Value, json};

use crate::{
    Comment, CommentId, Error, Settings, Status, Transition,
    client::Method,
    clients::Clients,
    permissions::{self, Compared},
    wire::{self, WireAssigneeOnly, WireId, WireStatusOnly, WireTransitions, WireVisibility},
};

/// Readers of a comment on a request of a service project. Elsewhere a comment is for everybody who sees the issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The team alone.
    Internal,
    /// Customers too.
    Customers,
}

/// Writes at Jira; cheap to clone. Reads are tried three times, writes once: after [`Error::Unknown`] look, then write
/// again.
#[derive(Clone, Debug)]
pub struct Writer {
    pub(crate) clients: Clients,
}

impl Writer {
    /// A writer of the default instance with its own connections. Connects to nothing yet.
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
            clients: Clients::new(settings, others, "writer", None)?,
        })
    }

    /// The same writer, that asks before each request and tells of each refusal who keeps the limits of its accounts.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn gated(
        settings: Option<&Settings>,
        others: &BTreeMap<Instance, Settings>,
        gate: &Arc<dyn LimitGate>,
    ) -> Result<Self, Error> {
        Ok(Self {
            clients: Clients::new(settings, others, "writer", Some(gate))?,
        })
    }

    /// The page of an issue for people; absent when the settings have no such instance.
    pub fn browse_url(&self, key: &TicketKey) -> Option<String> {
        self.clients.of(key).ok().map(|client| client.browse_url(key))
    }

    /// Comments on an issue; on a request of a service project as an internal note. The marker is hidden in the comment's
    /// properties; it comes back as [`Comment::marker`].
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn comment(&self, key: &TicketKey, markdown: &str, marker: &str) -> Result<CommentId, Error> {
        self.comment_for(key, markdown, marker, Audience::Internal).await
    }

    /// The same for an audience.
    ///
    /// # Errors
    /// As for [`Self::comment`].
    pub async fn comment_for(
        &self,
        key: &TicketKey,
        markdown: &str,
        marker: &str,
        audience: Audience,
    ) -> Result<CommentId, Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}/comment", client.issue_path(key)?);
        let mut body = json!({ "body": client.dialect().text(markdown) });
        let mut properties = Vec::new();
        if !marker.is_empty() {
            properties.push(json!({ "key": wire::MARKER, "value": { "id": marker } }));
        }
        if audience == Audience::Internal && client.is_of_service_project(key).await? {
            properties.push(json!({ "key": wire::SERVICE_DESK, "value": { "internal": true } }));
        }
        if !properties.is_empty() {
            body["properties"] = properties.into();
        }
        let made: WireId = self.clients.of(key)?.write(Method::Post, &path, &body).await?;
        Ok(CommentId(made.id))
    }

    /// The comments of an issue, oldest first; at most 2,000.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn list_comments(&self, key: &TicketKey) -> Result<Vec<Comment>, Error> {
        self.clients.of(key)?.comments(key).await
    }

    /// Replaces a comment's text; its marker stays, and for whom it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it was deleted.
    pub async fn update_comment(
        &self,
        key: &TicketKey,
        comment: &CommentId,
        markdown: &str,
    ) -> Result<(), Error> {
        let path = format!(
            "{}/comment/{}",
            self.clients.of(key)?.issue_path(key)?,
            wire::encode(&comment.0)
        );
        let client = self.clients.of(key)?;
        let mut body = json!({ "body": client.dialect().text(markdown) });
        if client.dialect().forgets_visibility() {
            let now: WireVisibility = client.get(&path).await?;
            if let Some(visibility) = now.visibility {
                body["visibility"] = visibility;
            }
        }
        client.write(Method::Put, &path, &body).await.map(|_: Value| ())
    }

    /// Deletes a comment of our own.
    ///
    /// # Errors
    /// [`Error::NotFound`] when it was deleted already, [`Error::Forbidden`] when it is somebody else's.
    pub async fn delete_comment(&self, key: &TicketKey, comment: &CommentId) -> Result<(), Error> {
        let path = format!(
            "{}/comment/{}",
            self.clients.of(key)?.issue_path(key)?,
            wire::encode(&comment.0)
        );
        self.clients
            .of(key)?
            .write(Method::Delete, &path, &Value::Null)
            .await
            .map(|_: Value| ())
    }

    /// Where the issue is in its workflow.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn status(&self, key: &TicketKey) -> Result<Status, Error> {
        let path = format!("{}?fields=status", self.clients.of(key)?.issue_path(key)?);
        let found: WireStatusOnly = self.clients.of(key)?.get(&path).await?;
        Ok(found.into())
    }

    /// The moves that the workflow offers us from there.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn transitions(&self, key: &TicketKey) -> Result<Vec<Transition>, Error> {
        let path = format!(
            "{}/transitions?expand=transitions.fields",
            self.clients.of(key)?.issue_path(key)?
        );
        let found: WireTransitions = self.clients.of(key)?.get(&path).await?;
        let dialect = self.clients.of(key)?.dialect();
        let offered = found.transitions.into_iter();
        Ok(offered.map(|wire| wire.into_transition(dialect)).collect())
    }

    /// Moves the issue; `id` is [`Transition::id`], the fields are those of its screen that are filled in.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the workflow does not offer it (any more) or wants a field filled in.
    pub async fn transition(
        &self,
        key: &TicketKey,
        id: &str,
        fields: &Map<String, Value>,
    ) -> Result<(), Error> {
        let path = format!("{}/transitions", self.clients.of(key)?.issue_path(key)?);
        let mut body = json!({ "transition": { "id": id } });
        if !fields.is_empty() {
            body["fields"] = json!(fields);
        }
        self.clients
            .of(key)?
            .write(Method::Post, &path, &body)
            .await
            .map(|_: Value| ())
    }

    /// Adds labels; those that the issue has already stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist, [`Error::Rejected`] for a label with a space.
    pub async fn add_labels(&self, key: &TicketKey, labels: &[String]) -> Result<(), Error> {
        let add: Vec<Value> = labels.iter().map(|label| json!({ "add": label })).collect();
        let body = json!({ "update": { "labels": add } });
        self.clients
            .of(key)?
            .write(Method::Put, &self.clients.of(key)?.issue_path(key)?, &body)
            .await
            .map(|_: Value| ())
    }

    /// Who has the issue.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn assignee(&self, key: &TicketKey) -> Result<Option<Account>, Error> {
        let path = format!("{}?fields=assignee", self.clients.of(key)?.issue_path(key)?);
        let found: WireAssigneeOnly = self.clients.of(key)?.get(&path).await?;
        Ok(found.into())
    }

    /// Gives the issue to an account, by its id.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist, [`Error::Rejected`] when the account cannot have it.
    pub async fn assign(&self, key: &TicketKey, account: &str) -> Result<(), Error> {
        self.give(key, Some(account)).await
    }

    /// Takes the issue from whoever has it.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist, [`Error::Rejected`] when the project forbids it.
    pub async fn unassign(&self, key: &TicketKey) -> Result<(), Error> {
        self.give(key, None).await
    }

    async fn give(&self, key: &TicketKey, to: Option<&str>) -> Result<(), Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}/assignee", client.issue_path(key)?);
        let body = client.dialect().account(to);
        client.write(Method::Put, &path, &body).await.map(|_: Value| ())
    }

    /// Links the issue to a page elsewhere; the same `global_id` replaces the earlier link.
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
        let path = format!("{}/remotelink", self.clients.of(key)?.issue_path(key)?);
        let body = json!({ "globalId": global_id, "object": { "url": url, "title": title } });
        self.clients
            .of(key)?
            .write(Method::Post, &path, &body)
            .await
            .map(|_: Value| ())
    }

    /// What our account lacks in a project of [`permissions::WRITER`], and what it has of
    /// [`permissions::WRITER_NEEDS_NOT`].
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such project, or our account may not see it.
    pub async fn permissions(&self, project: &str) -> Result<Compared, Error> {
        self.clients
            .on(None)?
            .compared(project, &permissions::WRITER, &permissions::WRITER_NEEDS_NOT)
            .await
    }

    /// Our own account where an issue is.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the credentials are no good.
    pub async fn account_at(&self, key: &TicketKey) -> Result<Account, Error> {
        self.clients.of(key)?.myself().await
    }

    /// Our own account.
    ///
    /// # Errors
    /// [`Error::Unauthorized`] when the credentials are no good.
    pub async fn myself(&self) -> Result<Account, Error> {
        self.clients.on(None)?.myself().await
    }
}
