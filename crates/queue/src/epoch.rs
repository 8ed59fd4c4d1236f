//! Epochs of token streams. An epoch rises when the stream or its consumer is created again, because their
//! counters restart.

use std::sync::Arc;

use domain::{RecordKind, StoredRecord};
use serde::{Deserialize, Serialize};

use crate::{
    connection::NatsConnection,
    error::Error,
    names::{KeyValueBucket, LogNames},
    table::TypedTable,
};

/// Control record of one token stream.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct EpochRecord {
    epoch: u64,
    stream_created: String,
    consumer_created: String,
}

impl StoredRecord for EpochRecord {
    const KIND: RecordKind = RecordKind::Control;
}

/// Current epoch of a log's tokens. Raises it if stream or consumer are not those of the record.
pub(crate) async fn read_current_epoch(
    connection: &Arc<NatsConnection>,
    names: &LogNames,
) -> Result<u64, Error> {
    let (stream_created, consumer_created) = read_creation_times(connection, names).await?;
    let table = TypedTable::<EpochRecord>::new(connection.clone(), KeyValueBucket::Control);
    let key = names.epoch();
    // A conflict means that another process raised it; the next round reads that record.
    for _ in 0..10 {
        let found = table.get(&key).await?;
        let (epoch, revision) = match found {
            Some((record, _))
                if record.stream_created == stream_created && record.consumer_created == consumer_created =>
            {
                return Ok(record.epoch);
            }
            Some((record, revision)) => (record.epoch + 1, Some(revision)),
            None => (1, None),
        };
        let record = EpochRecord {
            epoch,
            stream_created: stream_created.clone(),
            consumer_created: consumer_created.clone(),
        };
        match table.put(&key, &record, revision).await {
            Ok(_) => return Ok(epoch),
            Err(Error::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Conflict)
}

async fn read_creation_times(
    connection: &NatsConnection,
    names: &LogNames,
) -> Result<(String, String), Error> {
    let stream = connection.stream_info(names.wakeups).await?;
    let consumer = connection.consumer(names.wakeups, names.workers).await?;
    Ok((
        stream.created.to_string(),
        consumer.cached_info().created.to_string(),
    ))
}
