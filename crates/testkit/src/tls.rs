//! A private certificate authority, and TLS in front of a server that speaks plain TCP.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// A certificate authority that nobody trusts unless told to.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A server's certificate and private key, as PEM.
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// Makes a new key and a certificate for it.
    ///
    /// # Errors
    /// When the key cannot be made.
    pub fn new() -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "The testkit's authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self { issuer })
    }

    /// Its certificate, as PEM: what `SSL_CERT_FILE` has to name.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for a host name or an IP address.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn issue(&self, host: &str) -> anyhow::Result<Certificate> {
        let key = KeyPair::generate()?;
        let signed = CertificateParams::new([host.to_owned()])?.signed_by(&key, &self.issuer)?;
        Ok(Certificate {
            certificate: signed.pem(),
            key: key.serialize_pem(),
        })
    }

    fn acceptor(&self, host: &str) -> anyhow::Result<TlsAcceptor> {
        let key = KeyPair::generate()?;
        let signed = CertificateParams::new([host.to_owned()])?.signed_by(&key, &self.issuer)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![signed.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// An address that is bound but not served yet, so that the server behind it can be told where it will be reached.
pub struct Front {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
}

impl Front {
    /// Binds an address with a certificate of the authority for it. Port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(authority: &Authority, address: SocketAddr) -> anyhow::Result<Self> {
        let acceptor = authority.acceptor(&address.ip().to_string())?;
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            acceptor,
        })
    }

    /// Where it will be served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://ADDRESS`, without the port where it is 443.
    #[must_use]
    pub fn url(&self) -> String {
        match self.address.port() {
            443 => format!("https://{}", self.address.ip()),
            _ => format!("https://{}", self.address),
        }
    }

    /// Passes every connection on to a server behind it.
    #[must_use]
    pub fn serve(self, behind: SocketAddr) -> ServedFront {
        ServedFront(tokio::spawn(async move {
            // Dropped with the task, and the connections with it.
            let mut connections = JoinSet::new();
            while let Ok((outer, _)) = self.listener.accept().await {
                connections.spawn(pass_on(self.acceptor.clone(), outer, behind));
                while connections.try_join_next().is_some() {}
            }
        }))
    }
}

/// A [`Front`] that is served until this is dropped.
pub struct ServedFront(JoinHandle<()>);

impl ServedFront {
    pub(crate) fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }
}

impl Drop for ServedFront {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn pass_on(acceptor: TlsAcceptor, outer: TcpStream, behind: SocketAddr) -> std::io::Result<()> {
    outer.set_nodelay(true)?;
    let mut outer = acceptor.accept(outer).await?;
    let mut inner = TcpStream::connect(behind).await?;
    inner.set_nodelay(true)?;
    copy_bidirectional(&mut outer, &mut inner).await?;
    Ok(())
}
