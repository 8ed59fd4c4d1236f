//! What a triage sets: priority and type of an issue, and links between issues.

use domain::TicketKey;
use serde_json::{Value, json};

use crate::{
    Error, Sorted, Writer,
    client::Method,
    wire::{WireLinkTypes, WireSorted},
};

impl Writer {
    /// How an issue is sorted.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the issue does not exist.
    pub async fn sorted(&self, key: &TicketKey) -> Result<Sorted, Error> {
        let path = format!(
            "{}?fields=priority,issuetype,issuelinks",
            self.clients.of(key)?.issue_path(key)?
        );
        let found: WireSorted = self.clients.of(key)?.get(&path).await?;
        Ok(found.into())
    }

    /// Gives an issue a priority, by its name.
    ///
    /// # Errors
    /// [`Error::Rejected`] when its project has no such priority, or its screen no priority.
    pub async fn set_priority(&self, key: &TicketKey, name: &str) -> Result<(), Error> {
        self.set_field(key, "priority", name).await
    }

    /// Gives an issue a type, by its name.
    ///
    /// # Errors
    /// [`Error::Rejected`] when its project has no such type, or an issue cannot become one without being moved.
    pub async fn set_issue_type(&self, key: &TicketKey, name: &str) -> Result<(), Error> {
        self.set_field(key, "issuetype", name).await
    }

    async fn set_field(&self, key: &TicketKey, field: &str, name: &str) -> Result<(), Error> {
        let body = json!({ "fields": { field: { "name": name } } });
        let client = self.clients.of(key)?;
        let path = client.issue_path(key)?;
        client.write(Method::Put, &path, &body).await.map(|_: Value| ())
    }

    /// The name of the type of link that is called so, as the site writes it. Case does not matter.
    ///
    /// # Errors
    /// [`Error`] when Jira cannot be read.
    pub async fn link_type(&self, key: &TicketKey, name: &str) -> Result<Option<String>, Error> {
        let client = self.clients.of(key)?;
        let found: WireLinkTypes = client.get(&client.dialect().path("issueLinkType")).await?;
        let is_it = |known: &String| known.to_lowercase() == name.to_lowercase();
        Ok(found.names().find(is_it))
    }

    /// Links an issue with another one of its site, which `to` names as people write it: what the type's outward words say,
    /// such as "duplicates", is said of the first about the second. A link that is there stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] when one of them does not exist or there is no such type of link, [`Error::Rejected`] where links
    /// are switched off.
    pub async fn link(&self, key: &TicketKey, link_type: &str, to: &str) -> Result<(), Error> {
        // In a request, the inward issue is the one that the outward words are about.
        let body = json!({
            "type": { "name": link_type }, "inwardIssue": { "key": key.short() }, "outwardIssue": { "key": to },
        });
        let client = self.clients.of(key)?;
        let path = client.dialect().path("issueLink");
        client.write(Method::Post, &path, &body).await.map(|_: Value| ())
    }
}
