//! Members of project roles.

use std::collections::BTreeMap;

use crate::{
    Error, JiraReader, RoleMembers,
    wire::{self, WireRole},
};

impl JiraReader {
    /// Reads the members of a role in a project; `None` when the project has no such role.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the project is missing, or our account is not its administrator: Jira shows
    /// members to administrators only.
    pub async fn role(&self, project: &str, name: &str) -> Result<Option<RoleMembers>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let path = client
            .dialect()
            .path(&format!("project/{}/role", wire::percent_encode(project)));
        let roles: BTreeMap<String, String> = client.get(&path).await?;
        let found = roles.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let id = found.and_then(|(_, link)| link.rsplit('/').next());
        // The id comes from a link and goes into a path, so that only digits are accepted.
        let Some(id) = id.filter(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_digit())) else {
            return Ok(None);
        };
        let role: WireRole = client.get(&format!("{path}/{id}")).await?;
        Ok(Some(role.into()))
    }
}
