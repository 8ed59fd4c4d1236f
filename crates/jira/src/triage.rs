//! Fields that a triage sets: priority and type of an issue, and links between issues.

use domain::TicketKey;
use serde_json::json;

use crate::{
    Error, JiraWriter, TriageFields,
    client::JiraMethod,
    wire::{WireLinkTypes, WireTriage},
};

impl JiraWriter {
    /// Reads an issue's priority, type and links.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn sorted(&self, key: &TicketKey) -> Result<TriageFields, Error> {
        let client = self.clients.of(key)?;
        let path = format!("{}?fields=priority,issuetype,issuelinks", client.issue_path(key)?);
        let found: WireTriage = client.get(&path).await?;
        Ok(found.into())
    }

    /// Sets the priority of an issue, by its name.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project has no such priority, or the issue's screen has no field for it.
    pub async fn set_priority(&self, key: &TicketKey, name: &str) -> Result<(), Error> {
        set_named_field(self, key, "priority", name).await
    }

    /// Sets the type of an issue, by its name.
    ///
    /// # Errors
    /// [`Error::Rejected`] when the project has no such type, or the issue cannot get it without a move.
    pub async fn set_issue_type(&self, key: &TicketKey, name: &str) -> Result<(), Error> {
        set_named_field(self, key, "issuetype", name).await
    }

    /// Finds a link type by its name, regardless of case, and returns its spelling on the site.
    ///
    /// # Errors
    /// [`Error`] when Jira cannot be read.
    pub async fn link_type(&self, key: &TicketKey, name: &str) -> Result<Option<String>, Error> {
        let client = self.clients.of(key)?;
        let found: WireLinkTypes = client.get(&client.dialect().path("issueLinkType")).await?;
        let is_it = |known: &String| known.to_lowercase() == name.to_lowercase();
        Ok(found.names().find(is_it))
    }

    /// Links an issue with another issue of its site. The outward description of the type, e.g. "duplicates",
    /// leads from `key` to `to`; an existing link stays unchanged.
    ///
    /// # Errors
    /// [`Error::NotFound`] when an issue or the link type is missing, [`Error::Rejected`] where links are
    /// disabled.
    pub async fn link(&self, key: &TicketKey, link_type: &str, to: &str) -> Result<(), Error> {
        // Jira's request calls the subject of the outward description the inward issue.
        let client = self.clients.of(key)?;
        let from = client.present_key(key).short();
        let body = json!({
            "type": { "name": link_type }, "inwardIssue": { "key": from }, "outwardIssue": { "key": to },
        });
        let path = client.dialect().path("issueLink");
        client.send(JiraMethod::Post, &path, &body).await
    }
}

async fn set_named_field(writer: &JiraWriter, key: &TicketKey, field: &str, name: &str) -> Result<(), Error> {
    let body = json!({ "fields": { field: { "name": name } } });
    let client = writer.clients.of(key)?;
    let path = client.issue_path(key)?;
    client.send(JiraMethod::Put, &path, &body).await
}
