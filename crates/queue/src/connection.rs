//! The connection to the server, and the doors to everything behind it.

use std::{marker::PhantomData, sync::Arc, time::Duration};

use async_nats::{
    ConnectOptions, Event,
    jetstream::{self, context::ContextBuilder, object_store::ObjectStore},
};
use domain::{Report, Trigger};
use secrecy::ExposeSecret as _;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{sync::OnceCell, time::timeout};

use crate::{
    Bucket, DeadLetters, Deliveries, Error, Journal, KeyedLog, Objects, Role, Settings, Table, Timers,
    permissions, topology, wire::REQUEST_TIMEOUT,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that answers none of three pings is given up: after six to nine seconds of silence.
const PING_INTERVAL: Duration = Duration::from_secs(3);
/// Limit for one server of several, so that one that is gone does not hold up the way to the next.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause before a reconnect grows by this, up to a second.
const RECONNECT_STEP: Duration = Duration::from_millis(100);
const SHORTEST_ACK_WAIT_MS: u64 = 1_000;
const OLDEST_VERSION: (u64, u64, u64) = (2, 12, 5);

/// What everything in this crate talks through.
pub(crate) struct Connection {
    pub(crate) client: async_nats::Client,
    pub(crate) context: jetstream::Context,
    pub(crate) object_store: OnceCell<ObjectStore>,
    pub(crate) replicas: usize,
    pub(crate) ack_wait: Duration,
}

/// A connection with its topology. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    pub(crate) connection: Arc<Connection>,
}

impl Queue {
    /// Connects (10 s limit) and refuses a server older than 2.12.5. Afterwards the connection mends itself.
    ///
    /// # Errors
    /// [`Error::Unavailable`] names the address; [`Error::Topology`] for an old server or an unreadable credentials
    /// file.
    pub async fn connect(settings: &Settings, client_name: &str) -> Result<Self, Error> {
        let options = options(settings, client_name).await?;
        let addresses: Vec<&str> = settings.urls().collect();
        let shown = settings.addresses();
        let connecting = timeout(CONNECT_TIMEOUT, options.connect(addresses.as_slice()));
        let client = failpoint::around_kind("queue.connect", client_name, connecting)
            .await
            .map_err(|_| Error::Unavailable(format!("{shown}: no answer within 10 s")))?
            .map_err(|error| Error::unavailable(&shown, error))?;
        check_version(&client.server_info().version, &shown)?;
        let context = ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .build(client.clone());
        let connection = Connection {
            client,
            context,
            object_store: OnceCell::new(),
            replicas: settings.replicas,
            ack_wait: Duration::from_millis(settings.ack_wait_ms.max(SHORTEST_ACK_WAIT_MS)),
        };
        Ok(Self {
            connection: Arc::new(connection),
        })
    }

    /// Creates every stream, consumer, bucket and the object store. One that differs is changed in place where nothing
    /// is lost by it; a newer release's limits are left alone.
    ///
    /// # Errors
    /// [`Error::Topology`] lists the fields that cannot be changed, with what to do.
    pub async fn ensure_topology(&self) -> Result<(), Error> {
        let ensured = Box::pin(topology::ensure(&self.connection));
        failpoint::around("queue.topology.ensure", ensured).await
    }

    /// Looks whether what a service needs has been created: [`Queue::ensure_topology`] is the reporter's part.
    ///
    /// # Errors
    /// [`Error::Unavailable`] names the stream that is not there yet.
    pub async fn check_topology(&self, role: Role) -> Result<(), Error> {
        let checked = Box::pin(topology::check(&self.connection, role));
        failpoint::around("queue.topology.ensure", checked).await
    }

    /// Whether the connection stands as far as is known; a silent server is noticed within ten seconds.
    pub fn is_connected(&self) -> bool {
        self.connection.client.connection_state() == async_nats::connection::State::Connected
    }

    /// One round trip, for readiness.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without an answer within 5 s.
    pub async fn ping(&self) -> Result<(), Error> {
        let answer = timeout(REQUEST_TIMEOUT, self.connection.context.query_account()).await;
        let answer = answer.map_err(|_| Error::Unavailable("ping: no answer within 5 s".to_owned()))?;
        answer
            .map(drop)
            .map_err(|error| Error::unavailable("ping", error))
    }

    /// The verified webhook calls.
    pub fn deliveries(&self) -> Deliveries {
        Deliveries {
            connection: self.connection.clone(),
        }
    }

    /// The reasons to act, by ticket.
    pub fn triggers(&self) -> KeyedLog<Trigger> {
        KeyedLog {
            connection: self.connection.clone(),
            names: &topology::TRIGGERS,
            record: PhantomData,
        }
    }

    /// The requests to the reporter, by ticket.
    pub fn reports(&self) -> KeyedLog<Report> {
        KeyedLog {
            connection: self.connection.clone(),
            names: &topology::REPORTS,
            record: PhantomData,
        }
    }

    /// The runs' journals.
    pub fn journal(&self) -> Journal {
        Journal {
            connection: self.connection.clone(),
        }
    }

    /// Typed view of one key-value bucket.
    pub fn table<V: Serialize + DeserializeOwned + Send + Sync>(&self, bucket: Bucket) -> Table<V> {
        Table::new(self.connection.clone(), bucket)
    }

    /// The object store.
    pub fn objects(&self) -> Objects {
        self.connection.objects()
    }

    /// What could not be handled.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters {
            connection: self.connection.clone(),
        }
    }

    /// The tickets' timers.
    pub fn timers(&self) -> Timers {
        Timers {
            connection: self.connection.clone(),
        }
    }
}

impl Connection {
    pub(crate) fn objects(self: &Arc<Self>) -> Objects {
        Objects {
            connection: self.clone(),
        }
    }
}

async fn options(settings: &Settings, client_name: &str) -> Result<ConnectOptions, Error> {
    let mut options = ConnectOptions::new()
        .name(client_name)
        .custom_inbox_prefix(permissions::inbox_prefix(client_name))
        .ping_interval(PING_INTERVAL)
        .connection_timeout(SERVER_TIMEOUT)
        .reconnect_delay_callback(|tries| RECONNECT_STEP * u32::try_from(tries).unwrap_or(10).min(10))
        .event_callback(log)
        .request_timeout(Some(REQUEST_TIMEOUT));
    if let Some(seed) = &settings.nkey_seed {
        options = options.nkey(seed.expose_secret().to_owned());
    }
    if let Some(path) = &settings.credentials_file {
        options = options
            .credentials_file(path)
            .await
            .map_err(|error| Error::Topology(format!("nats.credentials_file {}: {error}", path.display())))?;
    }
    Ok(options)
}

/// A refused request looks like one without an answer; only this event has the server's reason.
async fn log(event: Event) {
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
    let (major, minor, patch) = OLDEST_VERSION;
    match parse_version(version) {
        Some(found) if found >= OLDEST_VERSION => Ok(()),
        Some(_) | None => Err(Error::Topology(format!(
            "nats-server {version:?} at {address} is too old: {major}.{minor}.{patch} or newer is needed"
        ))),
    }
}

fn parse_version(version: &str) -> Option<(u64, u64, u64)> {
    let release = version.split(['-', '+']).next()?;
    let mut parts = release.trim_start_matches('v').split('.').map(str::parse);
    match (parts.next()?, parts.next()?, parts.next()?) {
        (Ok(major), Ok(minor), Ok(patch)) => Some((major, minor, patch)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_from_the_oldest_version_on_are_taken() {
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
