//! TLS for several servers at one address, told apart by the name that a client asks for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCertUsingSni;
use rustls::sign::CertifiedKey;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::tls::{Certificate, ServedFront};

/// An address that is bound but not served yet.
pub struct NamedFront {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
}

impl NamedFront {
    /// Binds an address with a certificate for each name. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be bound, or a certificate is not one for its name.
    pub async fn bind(address: SocketAddr, names: &[(String, Certificate)]) -> anyhow::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut certificates = ResolvesServerCertUsingSni::new();
        for (name, pem) in names {
            let chain = CertificateDer::pem_slice_iter(pem.certificate.as_bytes());
            let chain = chain.collect::<Result<_, _>>().context("certificate")?;
            let key = PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).context("key")?;
            certificates.add(name, CertifiedKey::from_der(chain, key, &provider)?)?;
        }
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(certificates));
        let listener = TcpListener::bind(address).await?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// Where it will be served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes every connection on to the server behind the name that it asks for.
    #[must_use]
    pub fn serve(self, behind: BTreeMap<String, SocketAddr>) -> ServedFront {
        let behind = Arc::new(behind);
        ServedFront::new(tokio::spawn(async move {
            // Dropped with the task, and the connections with it.
            let mut connections = JoinSet::new();
            while let Ok((outer, _)) = self.listener.accept().await {
                connections.spawn(pass_on(self.acceptor.clone(), outer, Arc::clone(&behind)));
                while connections.try_join_next().is_some() {}
            }
        }))
    }
}

async fn pass_on(
    acceptor: TlsAcceptor,
    outer: TcpStream,
    behind: Arc<BTreeMap<String, SocketAddr>>,
) -> std::io::Result<()> {
    outer.set_nodelay(true)?;
    let mut outer = acceptor.accept(outer).await?;
    let name = outer.get_ref().1.server_name().unwrap_or_default();
    let Some(address) = behind.get(name) else {
        return Ok(());
    };
    let mut inner = TcpStream::connect(address).await?;
    inner.set_nodelay(true)?;
    copy_bidirectional(&mut outer, &mut inner).await?;
    Ok(())
}
