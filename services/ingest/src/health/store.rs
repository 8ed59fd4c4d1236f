//! Stored results of assessments.

use domain::{HealthRecord, RepositoryName};
use queue::{FoundValue, KeyValueBucket, Queue, TableRevision};

/// Attempts to store or remove a result while others store theirs. Few assess one pull request at the same time: its webhooks
/// and a poll.
pub(super) const ATTEMPTS: usize = 5;

/// Record of a pull request's last assessment with its revision, if there is one.
pub(crate) type StoredHealth = (Option<HealthRecord>, Option<TableRevision>);

/// Reads the last assessment of a pull request. An unreadable record counts as none, unless a newer release wrote it.
pub(crate) async fn read_health(
    queue: &Queue,
    repository: &RepositoryName,
    number: u64,
) -> Result<StoredHealth, queue::Error> {
    let records = queue.table::<HealthRecord>(KeyValueBucket::Control);
    Ok(match records.find(&build_key(repository, number)).await? {
        Some(FoundValue::Value(record, revision)) => (Some(record), Some(revision)),
        Some(FoundValue::Unreadable(unreadable)) => (None, Some(unreadable.unless_newer()?.revision())),
        None => (None, None),
    })
}

/// Stores an assessment; false when another one was stored since `last` was read.
pub(crate) async fn write_health(
    queue: &Queue,
    record: &HealthRecord,
    last: Option<TableRevision>,
) -> Result<bool, queue::Error> {
    let records = queue.table::<HealthRecord>(KeyValueBucket::Control);
    let ours = &record.pull_request;
    match records
        .put(&build_key(&ours.repository, ours.number), record, last)
        .await
    {
        Ok(_) => Ok(true),
        Err(queue::Error::Conflict) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the assessment of a pull request that ended, if there is one.
pub(crate) async fn remove_health(
    queue: &Queue,
    repository: &RepositoryName,
    number: u64,
) -> Result<(), queue::Error> {
    let records = queue.table::<HealthRecord>(KeyValueBucket::Control);
    for _ in 0..ATTEMPTS {
        let (_, revision) = read_health(queue, repository, number).await?;
        let Some(revision) = revision else { return Ok(()) };
        match records.delete_at(&build_key(repository, number), revision).await {
            // An assessment that began before the end was stored meanwhile, or another process removed the record.
            Err(queue::Error::Conflict) => {}
            removed => return removed,
        }
    }
    Err(queue::Error::Conflict)
}

fn build_key(repository: &RepositoryName, number: u64) -> String {
    format!("health:{repository}#{number}")
}
