//! Connection to Redis, with authorities that follow their file.

use std::{path::Path, sync::Arc, time::Duration};

use domain::{ErrorCause, cause::format_error_chain};
use parking_lot::Mutex;
use redis::{
    Client, IntoConnectionInfo as _, TlsCertificates,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use secrecy::ExposeSecret as _;
use tokio::time::timeout;

use crate::{
    Settings,
    error::{Error, RedisOutage},
};

/// Limit of one request to the server.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Connection that opens at its first use, and again at each later use that finds it closed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RedisConnection(Arc<RedisConnectionShared>);

struct RedisConnectionShared {
    settings: Settings,
    /// Host and port, for errors.
    address: String,
    state: Mutex<RedisConnectionState>,
}

struct RedisConnectionState {
    manager: ConnectionManager,
    /// Content of the authorities' file when `manager` was created.
    authorities: Option<Vec<u8>>,
}

impl RedisConnection {
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let authorities = settings.ca.as_deref().map(read_authorities).transpose()?;
        let client = build_client(settings, authorities.as_deref())?;
        let address = client.get_connection_info().addr().to_string();
        let manager = build_manager(client)?;
        Ok(Self(Arc::new(RedisConnectionShared {
            settings: settings.clone(),
            address,
            state: Mutex::new(RedisConnectionState { manager, authorities }),
        })))
    }

    pub(crate) fn unavailable(&self, source: impl Into<ErrorCause>) -> Error {
        Error::Unavailable {
            address: self.0.address.clone(),
            source: source.into(),
        }
    }

    /// Waits for an answer with a limit. The client's own timeout does not cover a reconnect.
    pub(crate) async fn bounded<T>(
        &self,
        outage: &RedisOutage,
        limit: Duration,
        asking: impl Future<Output = redis::RedisResult<T>>,
    ) -> Result<T, Error> {
        let answer = match timeout(limit, asking).await {
            Ok(answer) => answer.map_err(|error| self.unavailable(error)),
            Err(_) => Err(self.unavailable(format!("no answer within {} ms", limit.as_millis()))),
        };
        match &answer {
            Ok(_) => outage.answered(),
            Err(error) => {
                outage.failed(error);
                self.follow_authorities();
            }
        }
        answer
    }

    /// Connection that sends commands.
    pub(crate) fn manager(&self) -> ConnectionManager {
        self.with(|state| state.manager.clone())
    }

    /// Reads the authorities' file after a failed request, because the server's certificate may be of a new
    /// authority. Changed authorities get a new connection.
    fn follow_authorities(&self) {
        let Some(path) = &self.0.settings.ca else { return };
        let made = read_authorities(path).and_then(|found| {
            // Most failures have other causes, so unchanged authorities keep the connection.
            if self.with(|state| state.authorities.as_ref() == Some(&found)) {
                return Ok(None);
            }
            let manager = build_manager(build_client(&self.0.settings, Some(&found))?)?;
            Ok(Some((manager, found)))
        });
        match made {
            Ok(None) => {}
            Ok(Some((manager, found))) => {
                self.with(|state| {
                    *state = RedisConnectionState {
                        manager,
                        authorities: Some(found),
                    }
                });
                tracing::info!(file = %path.display(), "redis is asked with new authorities");
            }
            Err(error) => {
                tracing::debug!(error = %format_error_chain(&error), "the authorities stay as they were")
            }
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut RedisConnectionState) -> T) -> T {
        look(&mut self.0.state.lock())
    }
}

fn read_authorities(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::Authorities {
        file: path.display().to_string(),
        source: source.into(),
    })
}

fn build_manager(client: Client) -> Result<ConnectionManager, Error> {
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_response_timeout(Some(RESPONSE_TIMEOUT))
        // The first use must fail soon, because work continues without Redis.
        .set_number_of_retries(1);
    ConnectionManager::new_lazy_with_config(client, config).map_err(|_| Error::Address)
}

fn build_client(settings: &Settings, authorities: Option<&[u8]>) -> Result<Client, Error> {
    let info = settings.url.as_str().into_connection_info();
    // The error of the library may quote the URL, which may hold a password.
    let info = info.map_err(|_| Error::Address)?;
    // The ACL of the users does not allow `CLIENT SETINFO`.
    let mut login = info.redis_settings().clone().set_skip_set_lib_name();
    if let Some(username) = &settings.username {
        login = login.set_username(username);
    }
    if let Some(password) = &settings.password {
        login = login.set_password(password.expose_secret());
    }
    let info = info.set_redis_settings(login);
    let Some(authorities) = authorities else {
        return Client::open(info).map_err(|_| Error::Address);
    };
    let certificates = TlsCertificates {
        client_tls: None,
        root_cert: Some(authorities.to_owned()),
    };
    Client::build_with_tls(info, certificates).map_err(|source| Error::Authorities {
        file: settings
            .ca
            .as_deref()
            .unwrap_or(Path::new(""))
            .display()
            .to_string(),
        source: source.into(),
    })
}
