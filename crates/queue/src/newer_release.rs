//! Records of a newer release: left to a process of that release, counted and shown to operators meanwhile.

use std::{sync::LazyLock, time::Duration};

use bootstrap::read_wall_clock;
use domain::{NewerRecord, RecordKind, TicketKey, cause::format_error_chain};
use opentelemetry::{KeyValue, global, metrics::Counter};

use crate::{
    error::Error, names::KeyValueBucket, queue::Queue, table::TypedTable, unreadable_record::FoundValue,
};

static MET: LazyLock<Counter<u64>> = LazyLock::new(|| {
    global::meter("journeyman.queue")
        .u64_counter("journeyman.records.newer")
        .with_description("Times that a record of a newer release was met and left alone, by kind.")
        .build()
});

impl Queue {
    /// Handles an error about a record of a newer release: counts and records it for operators. Returns how
    /// long to leave the record alone, or `None` for any other error.
    pub async fn leave_to_newer(&self, error: &Error, ticket: Option<&TicketKey>) -> Option<Duration> {
        let Error::Newer { what, kind, format } = error else {
            return None;
        };
        MET.add(1, &[KeyValue::new("journeyman.record", kind.as_str())]);
        tracing::warn!(what, %kind, format, ticket = ticket.map(tracing::field::display), "left to a newer release");
        // Once a minute per kind, so that a rollout with many such records does not fill the bucket.
        if self.connection.newer_written.is_due(*kind) {
            let met = NewerRecord {
                kind: *kind,
                format: *format,
                ticket: ticket.cloned(),
                at: read_wall_clock(),
            };
            if let Err(error) = self.keep_newer(&met).await {
                tracing::warn!(
                    error = %format_error_chain(&error),
                    "not written down that a record of a newer release was met"
                );
            }
        }
        Some(Error::LEFT_FOR)
    }

    async fn keep_newer(&self, met: &NewerRecord) -> Result<(), Error> {
        let (table, key) = (self.met(), NewerRecord::key(met.kind));
        let last = table.find(&key).await?.map(|found| found.revision());
        match table.put(&key, met, last).await {
            // Another process wrote its record at the same moment; one of them is enough.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Latest record of a newer release of each kind that any process left alone.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn newer_records(&self) -> Result<Vec<NewerRecord>, Error> {
        let table = self.met();
        let mut met = Vec::new();
        for kind in RecordKind::ALL {
            if let Some(FoundValue::Value(record, _)) = table.find(&NewerRecord::key(kind)).await? {
                met.push(record);
            }
        }
        Ok(met)
    }

    fn met(&self) -> TypedTable<NewerRecord> {
        self.table(KeyValueBucket::Control)
    }
}
