//! Checks of the room in the store before writes, and its use for gauges.

use crate::{
    connection::NatsConnection,
    error::Error,
    names::OBJECTS,
    store::{SMALL_OBJECT_BYTES, SMALL_OBJECTS_PERCENT, StoreUse, StreamUse, read_store_use},
};

impl NatsConnection {
    /// Refuses a message for which the store has no room.
    pub(crate) fn check_room(&self, subject: &str, bytes: usize) -> Result<(), Error> {
        let servers = (&self.context, self.settings.replicas);
        self.room.admit(servers, subject, bytes as u64)
    }

    /// Use of the store at each server.
    pub(crate) async fn store_use(&self) -> Result<StoreUse, Error> {
        read_store_use(&self.context, self.settings.replicas).await
    }

    /// Refuses an object that would leave no room for small ones, or that would reach the stream's limit
    /// halfway.
    pub(crate) async fn check_object_room(&self, bytes: u64) -> Result<(), Error> {
        let info = self.stream_info(OBJECTS).await?;
        let Ok(limit) = u64::try_from(info.config.max_bytes) else {
            return Ok(());
        };
        let kept_free = if bytes > SMALL_OBJECT_BYTES {
            limit / 100 * SMALL_OBJECTS_PERCENT
        } else {
            0
        };
        // Each chunk and the description have headers, which count as well.
        let needed = bytes + bytes / 64 + 4096;
        if info.state.bytes + needed + kept_free > limit {
            return Err(Error::full("an object"));
        }
        Ok(())
    }

    /// Use of the store by each of the streams.
    pub(crate) async fn stream_uses(&self, streams: &[String]) -> Result<Vec<StreamUse>, Error> {
        let mut uses = Vec::with_capacity(streams.len());
        for stream in streams {
            let info = self.stream_info(stream).await?;
            uses.push(StreamUse {
                stream: stream.clone(),
                used: info.state.bytes,
                limit: u64::try_from(info.config.max_bytes).ok(),
            });
        }
        Ok(uses)
    }
}
