//! Roles of projects.

use std::collections::BTreeMap;

use crate::{
    Error, Reader, RoleMembers,
    wire::{self, WireRole},
};

impl Reader {
    /// Who plays a role in a project; `None` when the project has no such role.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such project, or our account may not administer it: Jira tells who plays a role
    /// to nobody else.
    pub async fn role(&self, project: &str, name: &str) -> Result<Option<RoleMembers>, Error> {
        let client = self.clients.on(self.instance.as_ref())?;
        let path = client
            .dialect()
            .path(&format!("project/{}/role", wire::encode(project)));
        let roles: BTreeMap<String, String> = client.get(&path).await?;
        let found = roles.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let id = found.and_then(|(_, link)| link.rsplit('/').next());
        let Some(id) = id.filter(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_digit())) else {
            return Ok(None);
        };
        let role: WireRole = client.get(&format!("{path}/{id}")).await?;
        Ok(Some(role.into()))
    }
}
