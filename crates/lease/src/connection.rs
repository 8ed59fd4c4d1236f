//! How the server is reached.

use std::{sync::Arc, time::Duration};

use redis::{
    Client, IntoConnectionInfo as _,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use secrecy::ExposeSecret as _;

use crate::{Settings, error::Error, server::RESPONSE_TIMEOUT};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A connection that is made by the first use, and by each later one that finds none.
pub(crate) struct Connection {
    pub(crate) manager: ConnectionManager,
    /// Host and port, for errors.
    pub(crate) address: Arc<str>,
}

impl Connection {
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let client = client(settings).map_err(|_| Error::Address)?;
        let address: Arc<str> = client.get_connection_info().addr().to_string().into();
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT))
            .set_number_of_retries(1);
        let manager = ConnectionManager::new_lazy_with_config(client, config).map_err(|_| Error::Address)?;
        Ok(Self { manager, address })
    }
}

fn client(settings: &Settings) -> redis::RedisResult<Client> {
    let info = settings.url.as_str().into_connection_info()?;
    // The user may not say what its library is called.
    let mut login = info.redis_settings().clone().set_skip_set_lib_name();
    if let Some(username) = &settings.username {
        login = login.set_username(username);
    }
    if let Some(password) = &settings.password {
        login = login.set_password(password.expose_secret());
    }
    Client::open(info.set_redis_settings(login))
}
