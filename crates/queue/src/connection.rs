//! The connection to the server: what everything in this crate talks through.

use std::time::Duration;

use async_nats::{
    ConnectOptions,
    jetstream::{self, context::ContextBuilder, object_store::ObjectStore},
};
use domain::RecordKind;
use tokio::{sync::OnceCell, time::timeout};

use crate::{error::Error, once_a_minute::OnceAMinute, settings::Settings};

/// Limit of one request to the server.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const SHORTEST_ACK_WAIT_MS: u64 = 1_000;
const OLDEST_VERSION: (u64, u64, u64) = (2, 12, 5);

/// A connection. The client reconnects by itself.
pub(crate) struct Connection {
    pub(crate) client: async_nats::Client,
    pub(crate) context: jetstream::Context,
    pub(crate) object_store: OnceCell<ObjectStore>,
    pub(crate) settings: Settings,
    pub(crate) newer_written: OnceAMinute<RecordKind>,
}

impl Connection {
    /// Connects (10 s limit) and refuses a server older than 2.12.5.
    pub(crate) async fn open(settings: &Settings, client_name: &str) -> Result<Self, Error> {
        let mut options = ConnectOptions::new()
            .name(client_name)
            .connection_timeout(REQUEST_TIMEOUT)
            .request_timeout(Some(REQUEST_TIMEOUT));
        if let Some(path) = &settings.credentials_file {
            options = options.credentials_file(path).await.map_err(|error| {
                Error::Topology(format!("nats.credentials_file {}: {error}", path.display()))
            })?;
        }
        let addresses: Vec<&str> = settings.url.split(',').map(str::trim).collect();
        let shown = addresses
            .iter()
            .map(|url| without_user(url))
            .collect::<Vec<_>>()
            .join(", ");
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
        Ok(Self {
            client,
            context,
            object_store: OnceCell::new(),
            settings: settings.clone(),
            newer_written: OnceAMinute::default(),
        })
    }

    /// How long the server waits for a sign of life of a message's holder.
    pub(crate) fn ack_wait(&self) -> Duration {
        Duration::from_millis(self.settings.ack_wait_ms.max(SHORTEST_ACK_WAIT_MS))
    }

    /// One round trip.
    pub(crate) async fn ping(&self) -> Result<(), Error> {
        let answer = timeout(REQUEST_TIMEOUT, self.context.query_account()).await;
        let answer = answer.map_err(|_| Error::unavailable("ping", "no answer within 5 s"))?;
        answer
            .map(drop)
            .map_err(|error| Error::unavailable("ping", error))
    }
}

/// The address without user and password.
fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
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

    #[test]
    fn addresses_are_shown_without_user_and_password() {
        assert_eq!(without_user("nats://me:secret@nats:4222"), "nats://nats:4222");
        assert_eq!(without_user("nats:4222"), "nats://nats:4222");
    }
}
