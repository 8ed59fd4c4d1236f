//! The side that connects.

use std::{fmt, io, sync::Arc};

use rustls::{ClientConfig, client::Resumption, pki_types::ServerName, version::TLS13};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    Protocol, Settings,
    identity::OnlyServer,
    material::{Material, provider},
    reload::Reloaded,
};
use crate::settings::Error;

/// Connects over TLS 1.3 to servers of the authority. Cheap to clone.
#[derive(Clone)]
pub struct Client(Arc<Reloaded<ClientConfig>>);

impl Client {
    /// For servers by the name of their host, without showing a certificate: something else proves who calls.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn by_name(settings: &Settings, protocol: Protocol) -> Result<Self, Error> {
        Self::new(settings, protocol, None)
    }

    /// For one service at whatever address, showing the own certificate.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn to_service(settings: &Settings, protocol: Protocol, service: &'static str) -> Result<Self, Error> {
        Self::new(settings, protocol, Some(service))
    }

    fn new(settings: &Settings, protocol: Protocol, service: Option<&'static str>) -> Result<Self, Error> {
        let build = move |material| config(material, protocol, service);
        Ok(Self(Arc::new(Reloaded::new(settings, build)?)))
    }

    /// The handshake, with certificate and authorities as they are now. `host` is a name or an address, without a port. How
    /// long it may take is the caller's to say.
    ///
    /// # Errors
    /// When the host has no valid name, or the server breaks off or is not who it should be.
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

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

fn config(
    material: Material,
    protocol: Protocol,
    service: Option<&'static str>,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
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
                provider: provider(),
                service,
            }))
            .with_client_auth_cert(material.chain, material.key)
            .map_err(|error| Error::new("tls.key", error.to_string()))?,
    };
    config.alpn_protocols = protocol.names();
    config.resumption = Resumption::disabled();
    Ok(config)
}
