//! Certificates and key from the three files of a service, read and checked together.

use std::{path::Path, sync::Arc};

use rustls::{
    RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
};
use webpki::{EndEntityCert, KeyUsage};

use super::Settings;
use crate::settings::Error;

/// Bytes of the files at one moment.
#[derive(PartialEq, Eq)]
pub(super) struct TlsFileContents {
    cert: Vec<u8>,
    key: Vec<u8>,
    ca: Vec<u8>,
}

impl TlsFileContents {
    /// Reads the files. They are a few kilobytes, and mounted secrets lie in memory, so the read needs no
    /// separate thread.
    pub(super) fn read(settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            cert: read_tls_file("tls.cert", &settings.cert)?,
            key: read_tls_file("tls.key", &settings.key)?,
            ca: read_tls_file("tls.ca", &settings.ca)?,
        })
    }
}

fn read_tls_file(key: &str, path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|error| Error::new(key, format!("cannot read {}: {error}", path.display())))
}

/// Certificates and a key that fit together and are valid now.
pub(super) struct TlsMaterial {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    pub(super) roots: Arc<RootCertStore>,
}

impl TlsMaterial {
    /// Parses and checks the files.
    ///
    /// # Errors
    /// The problem, by key, without any of the content.
    pub(super) fn parse(contents: &TlsFileContents) -> Result<Self, Error> {
        let chain = parse_certificates("tls.cert", &contents.cert)?;
        let mut roots = RootCertStore::empty();
        for authority in parse_certificates("tls.ca", &contents.ca)? {
            let added = roots.add(authority);
            added.map_err(|error| Error::new("tls.ca", error.to_string()))?;
        }
        check_chain(&chain, &roots)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|_| Error::new("tls.key", "holds no private key in PEM"))?;
        Ok(Self {
            chain,
            key,
            roots: Arc::new(roots),
        })
    }
}

fn parse_certificates(key: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(Error::new(key, "holds no certificate in PEM")),
    }
}

/// Checks that peers would accept a certificate before it replaces one that they accept.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other errors have the text of the library"
)]
fn check_chain(chain: &[CertificateDer<'static>], roots: &RootCertStore) -> Result<(), Error> {
    let wrong = |problem: &str| Error::new("tls.cert", problem);
    let (first, between) = chain.split_first().ok_or_else(|| wrong("is empty"))?;
    let certificate = EndEntityCert::try_from(first).map_err(|_| wrong("is not a certificate of a peer"))?;
    let algorithms = ring::default_provider().signature_verification_algorithms;
    let verified = certificate.verify_for_usage(
        algorithms.all,
        &roots.roots,
        between,
        UnixTime::now(),
        KeyUsage::server_auth(),
        None,
        None,
    );
    verified.map(drop).map_err(|error| match error {
        webpki::Error::CertExpired { .. } => wrong("has expired"),
        webpki::Error::CertNotValidYet { .. } => wrong("is not valid yet"),
        // A new authority may have the name of the previous one. Then only the signature shows that it is another one.
        webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => {
            wrong("is not of an authority in tls.ca")
        }
        other => wrong(&format!("is not usable: {other}")),
    })
}

/// Cryptography provider of all connections.
pub(super) fn build_crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
