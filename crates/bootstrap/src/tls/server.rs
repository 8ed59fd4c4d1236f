//! Server side of TLS.

use std::{fmt, io, sync::Arc};

use rustls::{ServerConfig, server::WebPkiClientVerifier, version::TLS13};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    Settings, TlsProtocol,
    identity::OnlyCaller,
    material::{TlsMaterial, build_crypto_provider},
    reload::ReloadedConfig,
};
use crate::settings::Error;

/// TLS 1.3 acceptor with the service's certificate. Cheap to clone.
#[derive(Clone)]
pub struct TlsServer(Arc<ReloadedConfig<ServerConfig>>);

impl TlsServer {
    /// Server for any client. Another credential identifies the caller.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn for_everybody(settings: &Settings, protocol: TlsProtocol) -> Result<Self, Error> {
        Self::new(settings, protocol, None)
    }

    /// Server for one service, which must show its certificate.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn for_service(
        settings: &Settings,
        protocol: TlsProtocol,
        caller: &'static str,
    ) -> Result<Self, Error> {
        Self::new(settings, protocol, Some(caller))
    }

    fn new(settings: &Settings, protocol: TlsProtocol, caller: Option<&'static str>) -> Result<Self, Error> {
        let build = move |material| build_server_config(material, protocol, caller);
        Ok(Self(Arc::new(ReloadedConfig::new(settings, build)?)))
    }

    /// Performs the handshake with the current certificate. The caller limits the time.
    ///
    /// # Errors
    /// When the peer closes the connection or cannot prove its identity.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        TlsAcceptor::from(self.0.current()).accept(stream).await
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

fn build_server_config(
    material: TlsMaterial,
    protocol: TlsProtocol,
    caller: Option<&'static str>,
) -> Result<ServerConfig, Error> {
    let builder = ServerConfig::builder_with_provider(build_crypto_provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| Error::new("tls", error.to_string()))?;
    let builder = match caller {
        None => builder.with_no_client_auth(),
        Some(service) => {
            let inner =
                WebPkiClientVerifier::builder_with_provider(material.roots, build_crypto_provider()).build();
            let inner = inner.map_err(|error| Error::new("tls.ca", error.to_string()))?;
            builder.with_client_cert_verifier(Arc::new(OnlyCaller { inner, service }))
        }
    };
    let mut config = builder
        .with_single_cert(material.chain, material.key)
        .map_err(|error| Error::new("tls.key", error.to_string()))?;
    config.alpn_protocols = protocol.names();
    // A resumed session would outlive the certificate that it began with.
    config.send_tls13_tickets = 0;
    Ok(config)
}
