//! Private certificate authority, and a TLS front for servers that use plain TCP.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// Certificate authority that only explicitly configured clients trust.
pub struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// Certificate and private key of a server, as PEM.
pub struct TestCertificate {
    /// Certificate in PEM form.
    pub certificate: String,
    /// Private key in PEM form.
    pub key: String,
}

impl TestAuthority {
    /// Generates a key and a self-signed certificate.
    ///
    /// # Errors
    /// When the key cannot be generated.
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

    /// Certificate of the authority as PEM, for a file that `SSL_CERT_FILE` names.
    #[must_use]
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate for a host name or an IP address.
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn issue(&self, host: &str) -> anyhow::Result<TestCertificate> {
        let key = KeyPair::generate()?;
        let signed = CertificateParams::new([host.to_owned()])?.signed_by(&key, &self.issuer)?;
        Ok(TestCertificate {
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

/// Bound address that is not yet served, so that the server behind it can be configured with its public URL.
pub struct TlsFront {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
}

impl TlsFront {
    /// Binds an address with a certificate of the authority. Port 0 selects a free port.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(authority: &TestAuthority, address: SocketAddr) -> anyhow::Result<Self> {
        let acceptor = authority.acceptor(&address.ip().to_string())?;
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            address,
            acceptor,
        })
    }

    /// Address at which the front will be served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://ADDRESS`, without the port if it is 443.
    #[must_use]
    pub fn url(&self) -> String {
        match self.address.port() {
            443 => format!("https://{}", self.address.ip()),
            _ => format!("https://{}", self.address),
        }
    }

    /// Forwards every connection to a server.
    #[must_use]
    pub fn serve(self, behind: SocketAddr) -> ServedFront {
        ServedFront(tokio::spawn(async move {
            // The set belongs to the task, so aborting the task closes all connections.
            let mut connections = JoinSet::new();
            while let Ok((outer, _)) = self.listener.accept().await {
                connections.spawn(pass_on(self.acceptor.clone(), outer, behind));
                while connections.try_join_next().is_some() {}
            }
        }))
    }
}

/// Running [`TlsFront`]. Dropping it stops the front and its connections.
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
