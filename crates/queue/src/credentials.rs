//! When credentials end: each service tells of its own, ingest hears of all.

use domain::{CredentialEnd, CredentialEnds};

use crate::{
    error::Error,
    names::{Bucket, Key},
    permissions::Role,
    queue::Queue,
    table::Table,
    unreadable::Found,
};

/// Who has credentials whose end the settings tell.
const TELLERS: [Role; 2] = [Role::Ingest, Role::Reporter];

impl Role {
    /// Where the ends of its credentials stand among the control records.
    pub(crate) fn credential_ends(self) -> Key {
        Key::from(CredentialEnds::key(self.name()).as_str())
    }
}

impl Queue {
    /// Tells when the credentials of a service end, in the place of what it told before.
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
            // Another process of the service, with the same settings.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// When credentials end, the first one first, as far as their services know it.
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
