//! Shorter ways to read and write streams with one replica, whose only server is the leader.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_nats::jetstream::{self, stream};
use domain::cause::format_error_chain;
use parking_lot::Mutex;
use tokio::time::Instant;

const KNOWN_FOR: Duration = Duration::from_secs(60);

/// Kind of access that the configuration of a stream permits; nothing while it is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamAccess {
    /// Messages may be compared with the id of the stream's last message.
    ///
    /// A replica that catches up does not learn that id. It would refuse a message that the others store.
    pub(crate) can_compare_ids: bool,
    /// A direct read that the stream itself answers returns what the leader has.
    ///
    /// Of several replicas any one answers a direct read, also one that lags behind.
    pub(crate) can_read_leader: bool,
}

impl StreamAccess {
    fn of(config: &stream::Config) -> Self {
        let is_single = config.num_replicas == 1;
        Self {
            can_compare_ids: is_single,
            can_read_leader: is_single && config.allow_direct,
        }
    }
}

/// Access to a stream with the time of the last request for its configuration.
#[derive(Clone, Copy)]
struct KnownAccess {
    asked_at: Instant,
    access: StreamAccess,
}

/// Access to all streams that a process uses.
#[derive(Clone, Default)]
pub(crate) struct KnownStreams(Arc<Mutex<BTreeMap<String, KnownAccess>>>);

impl KnownStreams {
    /// Returns the known access to a stream. A configuration that is unknown or a minute old is read in the
    /// background, so the caller waits for no answer.
    pub(crate) fn access(&self, context: &jetstream::Context, stream: &str) -> StreamAccess {
        let mut known = self.0.lock();
        let found = known.get(stream).copied();
        let access = found.map_or_else(StreamAccess::default, |found| found.access);
        if found.is_none_or(|found| found.asked_at.elapsed() >= KNOWN_FOR) {
            let asked_at = Instant::now();
            known.insert(stream.to_owned(), KnownAccess { asked_at, access });
            let (streams, context, stream) = (self.clone(), context.clone(), stream.to_owned());
            tokio::spawn(async move { streams.refresh(&context, stream).await });
        }
        access
    }

    async fn refresh(&self, context: &jetstream::Context, stream: String) {
        match context.get_stream(&stream).await {
            Ok(found) => {
                let access = StreamAccess::of(&found.cached_info().config);
                let asked_at = Instant::now();
                self.0.lock().insert(stream, KnownAccess { asked_at, access });
            }
            // The known access stays: the servers themselves refuse what is impossible.
            Err(error) => {
                tracing::debug!(stream, error = %format_error_chain(&error), "the configuration of a stream is unknown")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_replicas_permit_no_shorter_way() {
        let access = |num_replicas, allow_direct| {
            StreamAccess::of(&stream::Config {
                num_replicas,
                allow_direct,
                ..stream::Config::default()
            })
        };
        assert_eq!(access(3, true), StreamAccess::default());
        let single = access(1, true);
        assert!(single.can_compare_ids && single.can_read_leader);
        let closed = access(1, false);
        assert!(closed.can_compare_ids && !closed.can_read_leader);
    }
}
