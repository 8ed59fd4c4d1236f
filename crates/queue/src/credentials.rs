//! Credential expiry: each service publishes its own, ingest collects them.

use domain::{CredentialEnd, CredentialEnds};

use crate::{
    error::Error,
    names::{KeyValueBucket, RecordKey},
    permissions::NatsRole,
    queue::Queue,
    table::TypedTable,
    unreadable_record::FoundValue,
};

// Services whose settings state when their credentials end.
const PUBLISHERS: [NatsRole; 2] = [NatsRole::Ingest, NatsRole::Reporter];

impl NatsRole {
    /// Key of the service's credential expiry among the control records.
    pub(crate) fn credential_ends(self) -> RecordKey {
        RecordKey::from(CredentialEnds::key(self.name()).as_str())
    }
}

impl Queue {
    /// Publishes when the credentials of a service end, and replaces its previous record.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn publish_credential_ends(&self, role: NatsRole, ends: &CredentialEnds) -> Result<(), Error> {
        let (table, key) = (self.ends(), role.credential_ends());
        let found = table.find(&key).await?;
        let is_known = match &found {
            Some(FoundValue::Value(known, _)) => known == ends,
            Some(FoundValue::Unreadable(_)) => false,
            None => ends.ends.is_empty(),
        };
        if is_known {
            return Ok(());
        }
        match table.put(&key, ends, found.map(|found| found.revision())).await {
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
        for role in PUBLISHERS {
            if let Some(FoundValue::Value(found, _)) = table.find(&role.credential_ends()).await? {
                all.extend(found.ends);
            }
        }
        all.sort_by_key(|end| end.ends);
        Ok(all)
    }

    fn ends(&self) -> TypedTable<CredentialEnds> {
        self.table(KeyValueBucket::Control)
    }
}
