//! Connection to the NATS server, shared by all types of this crate.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_nats::{
    ConnectOptions, Event,
    jetstream::{self, context::ContextBuilder, stream::Info},
};
use domain::{ErrorCause, RecordKind};
use parking_lot::Mutex;
use secrecy::ExposeSecret as _;
use semver::Version;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use crate::{
    error::Error,
    names::OBJECTS,
    permissions, server_choice,
    settings::Settings,
    store::{SMALL_OBJECT_BYTES, SMALL_OBJECTS_PERCENT, StoreRoom, StoreUse, StreamUse, read_store_use},
    stream_access::{KnownStreams, StreamAccess},
};

/// Limit of one request to the server, and of one acknowledgement.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// The client gives a server up after three unanswered pings: after six to nine seconds of silence.
const PING_INTERVAL: Duration = Duration::from_secs(3);
// The pause before a reconnect grows by this step, up to one second.
const RECONNECT_STEP: Duration = Duration::from_millis(100);
// Headers count against the server's `max_payload`.
const HEADERS_MAX_BYTES: usize = 64 * 1024;
const SHORTEST_ACK_WAIT_MS: u64 = 1_000;
const OLDEST_VERSION: Version = Version::new(2, 12, 5);

const MINUTE: Duration = Duration::from_secs(60);

/// Time of the last write for each key.
pub(crate) struct MinuteThrottle<K>(Mutex<BTreeMap<K, Instant>>);

impl<K> Default for MinuteThrottle<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> MinuteThrottle<K> {
    /// True at most once a minute for each key; the call counts as a write then.
    pub(crate) fn is_due(&self, key: K) -> bool {
        let mut written = self.0.lock();
        let is_due = written.get(&key).is_none_or(|last| last.elapsed() >= MINUTE);
        if is_due {
            written.insert(key, Instant::now());
        }
        is_due
    }
}

/// Connection to one of the servers. The client reconnects by itself.
pub(crate) struct NatsConnection {
    pub(crate) client: async_nats::Client,
    pub(crate) context: jetstream::Context,
    pub(crate) settings: Settings,
    pub(crate) newer_written: MinuteThrottle<RecordKind>,
    pub(crate) room: StoreRoom,
    known_streams: KnownStreams,
    /// Number of times that the connection was lost.
    losses: watch::Receiver<u64>,
}

impl NatsConnection {
    /// Connects within 10 s; refuses a server older than 2.12.5.
    pub(crate) async fn open(settings: &Settings, client_name: &str) -> Result<Self, Error> {
        let (losses, lost) = watch::channel(0);
        let options = connect_options(settings, client_name, losses).await?;
        let addresses: Vec<&str> = settings.urls().collect();
        let shown = settings.addresses();
        let connecting = timeout(CONNECT_TIMEOUT, options.connect(addresses.as_slice()));
        let client = failpoint::around_kind("queue.connect", client_name, connecting)
            .await
            .map_err(|_| Error::unavailable(&shown, "no answer within 10 s"))?
            .map_err(|error| Error::unavailable(&shown, error))?;
        check_version(&client.server_info().version, &shown)?;
        let context = ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .build(client.clone());
        Ok(Self {
            client,
            context,
            settings: settings.clone(),
            newer_written: MinuteThrottle::default(),
            room: StoreRoom::default(),
            known_streams: KnownStreams::default(),
            losses: lost,
        })
    }

    /// Time after which the server redelivers a message whose holder reports no progress.
    pub(crate) fn ack_wait(&self) -> Duration {
        Duration::from_millis(self.settings.ack_wait_ms.max(SHORTEST_ACK_WAIT_MS))
    }

    /// Outcome of a request, or `None` when the connection is lost while it waits: then no answer arrives.
    pub(crate) async fn unless_lost<T>(&self, asking: impl Future<Output = T>) -> Option<T> {
        let mut losses = self.losses.clone();
        losses.mark_unchanged();
        tokio::select! {
            // A request that has an answer counts even if the connection is lost at the same moment.
            biased;
            outcome = asking => Some(outcome),
            Ok(()) = losses.changed() => None,
        }
    }

    /// Makes one round trip to `JetStream`.
    pub(crate) async fn ping(&self) -> Result<(), Error> {
        let answer = timeout(REQUEST_TIMEOUT, self.context.query_account()).await;
        let answer = answer.map_err(|_| Error::unavailable("ping", "no answer within 5 s"))?;
        answer
            .map(drop)
            .map_err(|error| Error::unavailable("ping", error))
    }

    /// Largest body of a message in bytes, with room left for headers.
    pub(crate) fn largest_payload(&self) -> usize {
        self.client
            .server_info()
            .max_payload
            .saturating_sub(HEADERS_MAX_BYTES)
    }

    /// Information from the leader of a stream.
    ///
    /// A stream without a leader is unavailable: no server answers while the servers elect one, and every
    /// server answers when they cannot.
    pub(crate) async fn stream_info(&self, stream: &str) -> Result<Info, Error> {
        let failed = |cause: ErrorCause| Error::unavailable(format!("ask for stream {stream}"), cause);
        let asked = timeout(REQUEST_TIMEOUT, self.context.get_stream(stream)).await;
        let asked = asked.map_err(|_| failed("no answer within 5 s".into()))?;
        let info = asked.map_err(|error| failed(error.into()))?.cached_info().clone();
        if has_leader(&info) {
            Ok(info)
        } else {
            Err(failed("the stream has no leader".into()))
        }
    }

    /// Kind of access that the configuration of a stream permits.
    pub(crate) fn stream_access(&self, stream: &str) -> StreamAccess {
        self.known_streams.access(&self.context, stream)
    }

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

async fn connect_options(
    settings: &Settings,
    client_name: &str,
    losses: watch::Sender<u64>,
) -> Result<ConnectOptions, Error> {
    let losses = Arc::new(losses);
    let mut options = ConnectOptions::new()
        .name(client_name)
        .custom_inbox_prefix(permissions::inbox_prefix(client_name))
        .ping_interval(PING_INTERVAL)
        .connection_timeout(server_choice::SERVER_TIMEOUT)
        .reconnect_delay_callback(reconnect_pause)
        .reconnect_to_server_callback(server_choice::choose_server)
        .event_callback(move |event| log_connection_event(event, losses.clone()))
        .request_timeout(Some(REQUEST_TIMEOUT));
    options = with_tls(settings, options)?;
    if let Some(seed) = &settings.nkey_seed {
        options = options.nkey(seed.expose_secret().to_owned());
    }
    if let Some(path) = &settings.credentials_file {
        options = options.credentials_file(path).await.map_err(|error| {
            let problem = format!("nats.credentials_file {}", path.display());
            Error::topology(problem, Some(error.into()))
        })?;
    }
    Ok(options)
}

/// True for a stream of a single server and for a stream whose servers name a leader.
fn has_leader(info: &Info) -> bool {
    let group = info.cluster.as_ref();
    group.is_none_or(|group| group.leader.as_deref().is_some_and(|leader| !leader.is_empty()))
}

/// Pause before a reconnect: at most one second, with jitter, so that services do not return to a server in
/// step.
fn reconnect_pause(tries: usize) -> Duration {
    let step = RECONNECT_STEP * u32::try_from(tries).unwrap_or(10).min(10);
    step.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// Adds the TLS settings. The client reads the files at each connect, so a reconnect uses renewed ones.
fn with_tls(settings: &Settings, mut options: ConnectOptions) -> Result<ConnectOptions, Error> {
    if settings.is_secure() {
        // Servers announce each other by address, but certificates are issued for names.
        options = options.require_tls(true).ignore_discovered_servers();
    }
    if let Some(authorities) = &settings.ca {
        options = options.add_root_certificates(authorities.clone());
    }
    match (&settings.cert, &settings.key) {
        (Some(cert), Some(key)) => Ok(options.add_client_certificate(cert.clone(), key.clone())),
        (None, None) => Ok(options),
        (Some(_), None) | (None, Some(_)) => {
            let problem = "nats.cert and nats.key belong together: one of them is missing";
            Err(Error::topology(problem.to_owned(), None))
        }
    }
}

// A request that the server refuses for lack of permission times out like one without an answer. Only this
// event has the server's reason.
async fn log_connection_event(event: Event, losses: Arc<watch::Sender<u64>>) {
    if event == Event::Disconnected {
        losses.send_modify(|count| *count += 1);
    }
    match event {
        Event::Connected => tracing::info!("connected to nats"),
        Event::ServerError(_) | Event::ClientError(_) => tracing::error!(%event, "trouble with nats"),
        Event::Disconnected | Event::LameDuckMode | Event::SlowConsumer(_) => {
            tracing::warn!(%event, "trouble with nats");
        }
        Event::Draining | Event::Closed => tracing::debug!(%event, "connection to nats"),
    }
}

fn check_version(version: &str, address: &str) -> Result<(), Error> {
    // A candidate counts as its release.
    let release = version.trim_start_matches('v').split(['-', '+']).next();
    match release.and_then(|release| Version::parse(release).ok()) {
        Some(found) if found >= OLDEST_VERSION => Ok(()),
        Some(_) | None => Err(Error::topology(
            format!("nats-server {version:?} at {address} is too old: {OLDEST_VERSION} or newer is needed"),
            None,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_since_oldest_version_are_accepted() {
        for version in ["2.12.5", "2.12.10", "2.15.1", "3.0.0", "v2.14.0-RC.1"] {
            assert!(check_version(version, "here").is_ok(), "{version}");
        }
    }

    #[test]
    fn an_old_server_is_refused_by_name() {
        for version in ["2.12.4", "2.9.25", "1.99.99", "", "2.x"] {
            let error = check_version(version, "nats://here:4222")
                .unwrap_err()
                .to_string();
            assert!(error.contains("nats://here:4222 is too old: 2.12.5"), "{error}");
        }
    }
}
