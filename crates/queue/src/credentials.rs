//! Credential expiry: each service publishes its own, ingest collects them.

use domain::{CredentialEnd, CredentialEnds};

use crate::{
    error::Error,
    names::{Bucket, Key},
    permissions::Role,
    queue::Queue,
    table::Table,
    unreadable::Found,
};

// Services whose settings state when their credentials end.
const TELLERS: [Role; 2] = [Role::Ingest, Role::Reporter];

impl Role {
    /// Key of the service's credential expiry among the control records.
    pub(crate) fn credential_ends(self) -> Key {
        Key::from(CredentialEnds::key(self.name()).as_str())
    }
}

impl Queue {
    /// Publishes when the credentials of a service end, and replaces its previous record.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn tell_credential_ends(&self, role: Role, told: &CredentialEnds) -> Result<(), Error> {
        let (table, key) = (self.ends(), role.credential_ends());
        let found = table.find(&key).await?;
        let is_told = match &found {
            Some(Found::Value(known, _)) => known == told,
            Some(Found::Unreadable(_)) => false,
            None => told.ends.is_empty(),
        };
        if is_told {
            return Ok(());
        }
        match table.put(&key, told, found.map(|found| found.revision())).await {
            // Another process of the service has the same settings, so its record is as good.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Published ends of credentials of all services, earliest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn credential_ends(&self) -> Result<Vec<CredentialEnd>, Error> {
        let table = self.ends();
        let mut all = Vec::new();
        for role in TELLERS {
            if let Some(Found::Value(told, _)) = table.find(&role.credential_ends()).await? {
                all.extend(told.ends);
            }
        }
        all.sort_by_key(|end| end.ends);
        Ok(all)
    }

    fn ends(&self) -> Table<CredentialEnds> {
        self.table(Bucket::Control)
    }
}
