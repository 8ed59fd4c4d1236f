//! TLS front of several servers at one address, selected by server name (SNI).

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

use crate::tls::{ServedFront, TestCertificate};

/// Bound address that is not yet served.
pub struct NamedFront {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
}

impl NamedFront {
    /// Binds an address with a certificate for each name. Port 0 selects a free port.
    ///
    /// # Errors
    /// When the address cannot be bound, or a certificate does not match its name.
    pub async fn bind(address: SocketAddr, names: &[(String, TestCertificate)]) -> anyhow::Result<Self> {
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

    /// Address at which the front will be served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards every connection to the server behind its server name.
    #[must_use]
    pub fn serve(self, behind: BTreeMap<String, SocketAddr>) -> ServedFront {
        let behind = Arc::new(behind);
        ServedFront::new(tokio::spawn(async move {
            // The set belongs to the task, so aborting the task closes all connections.
            let mut connections = JoinSet::new();
            while let Ok((outer, _)) = self.listener.accept().await {
                connections.spawn(pass_on(self.acceptor.clone(), outer, Arc::clone(&behind)));
                // Finished connections are removed here; otherwise the set grows with every connection.
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
    // An unknown name closes the connection.
    let Some(address) = behind.get(name) else {
        return Ok(());
    };
    let mut inner = TcpStream::connect(address).await?;
    inner.set_nodelay(true)?;
    copy_bidirectional(&mut outer, &mut inner).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::tls::TestAuthority;

    /// Starts a server that sends its name to each peer.
    async fn start_named_server(name: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut peer, _)) = listener.accept().await {
                peer.write_all(name.as_bytes()).await.unwrap();
            }
        });
        address
    }

    async fn read_greeting(
        authority: &TestAuthority,
        address: SocketAddr,
        name: &str,
    ) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        let pem = authority.pem();
        roots
            .add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    }

    #[tokio::test]
    async fn server_name_selects_its_server_alone() {
        let authority = TestAuthority::new().unwrap();
        let names = ["one.test", "two.test"].map(str::to_owned);
        let certificates = names
            .clone()
            .map(|name| (name.clone(), authority.issue(&name).unwrap()));
        let front = NamedFront::bind("127.0.0.1:0".parse().unwrap(), &certificates)
            .await
            .unwrap();
        let address = front.address();
        let behind = [
            start_named_server("first").await,
            start_named_server("second").await,
        ];
        let _served = front.serve(names.into_iter().zip(behind).collect());
        assert_eq!(
            read_greeting(&authority, address, "one.test").await.unwrap(),
            "first"
        );
        assert_eq!(
            read_greeting(&authority, address, "two.test").await.unwrap(),
            "second"
        );
        read_greeting(&authority, address, "three.test")
            .await
            .unwrap_err();
    }
}
