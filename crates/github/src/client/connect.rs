//! Construction of octocrab clients: base URL, credentials, and octocrab's retries turned off.

use std::time::Duration;

use octocrab::{Octocrab, service::middleware::retry::RetryConfig};
use secrecy::{ExposeSecret, SecretString};

use crate::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn build_app_client(api_url: &str, app: u64, key: &SecretString) -> Result<Octocrab, Error> {
    let builder = Octocrab::builder()
        .app_from_rsa_pem(app.into(), key.expose_secret())
        .map_err(|_| Error::Unauthorized {
            check: "the private key is not an RSA key in PEM format".to_owned(),
        })?;
    build_client(builder, api_url)
}

pub(crate) fn build_token_client(api_url: &str, token: &SecretString) -> Result<Octocrab, Error> {
    build_client(Octocrab::builder().personal_token(token.clone()), api_url)
}

/// Client without credentials, for signed URLs (e.g. of logs) and public endpoints.
pub(crate) fn build_anonymous_client(api_url: &str) -> Result<Octocrab, Error> {
    build_client(Octocrab::builder(), api_url)
}

type UnauthenticatedBuilder = octocrab::OctocrabBuilder<
    octocrab::NoSvc,
    octocrab::DefaultOctocrabBuilderConfig,
    octocrab::NoAuth,
    octocrab::NotLayerReady,
>;

/// Builds the client without octocrab's own retries, which send a write up to four times.
fn build_client(builder: UnauthenticatedBuilder, api_url: &str) -> Result<Octocrab, Error> {
    builder
        .add_retry_config(RetryConfig::None)
        // Shorter than the limit of `transport` for the whole exchange, so that a host that does not
        // answer is reported as such: nothing was sent, and a write may be repeated.
        .set_connect_timeout(Some(CONNECT_TIMEOUT))
        .base_uri(api_url)
        .and_then(|builder| builder.build())
        .map_err(|_| Error::Rejected {
            detail: format!("{api_url} is not a URL"),
        })
}
