//! Client side of TLS.

use std::{fmt, io, sync::Arc};

use rustls::{ClientConfig, client::Resumption, pki_types::ServerName, version::TLS13};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    Settings, TlsProtocol,
    identity::OnlyServer,
    material::{TlsMaterial, build_crypto_provider},
    reload::ReloadedConfig,
};
use crate::settings::Error;

/// TLS 1.3 client for servers of the settings' authorities. Cheap to clone.
#[derive(Clone)]
pub struct TlsClient(Arc<ReloadedConfig<ClientConfig>>);

impl TlsClient {
    /// Client for servers that are known by host name. It shows no certificate; another credential identifies
    /// the caller.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn by_name(settings: &Settings, protocol: TlsProtocol) -> Result<Self, Error> {
        Self::new(settings, protocol, None)
    }

    /// Client for one service at any address. It shows its own certificate.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn to_service(
        settings: &Settings,
        protocol: TlsProtocol,
        service: &'static str,
    ) -> Result<Self, Error> {
        Self::new(settings, protocol, Some(service))
    }

    fn new(settings: &Settings, protocol: TlsProtocol, service: Option<&'static str>) -> Result<Self, Error> {
        let build = move |material| build_client_config(material, protocol, service);
        Ok(Self(Arc::new(ReloadedConfig::new(settings, build)?)))
    }

    /// Performs the handshake with the current certificate and authorities. `host` is a name or an address
    /// without a port; the caller limits the time.
    ///
    /// # Errors
    /// When `host` is not a valid name, the server closes the connection, or its identity is wrong.
    pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        host: &str,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        TlsConnector::from(self.0.current()).connect(name, stream).await
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

fn build_client_config(
    material: TlsMaterial,
    protocol: TlsProtocol,
    service: Option<&'static str>,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(build_crypto_provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Error::new("tls", error.to_string()))?;
    let mut config = match service {
        None => builder
            .with_root_certificates(material.roots)
            .with_no_client_auth(),
        Some(service) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OnlyServer {
                roots: material.roots,
                provider: build_crypto_provider(),
                service,
            }))
            .with_client_auth_cert(material.chain, material.key)
            .map_err(|error| Error::new("tls.key", error.to_string()))?,
    };
    config.alpn_protocols = protocol.names();
    // A resumed session would outlive the certificate that it began with.
    config.resumption = Resumption::disabled();
    Ok(config)
}
