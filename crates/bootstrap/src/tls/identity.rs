//! Verification that a peer is a certain service, whatever its address.

use std::{fmt, sync::Arc};

use domain::service_identity;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
    client::{
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::{
        ParsedCertificate,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use webpki::EndEntityCert;

/// Error for a valid certificate of another service.
#[derive(thiserror::Error)]
#[error("the peer's certificate is not the one of {expected}")]
struct WrongServiceIdentity {
    expected: String,
}

// The library shows this error by its `Debug` form only.
impl fmt::Debug for WrongServiceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks that a certificate names this service and no other.
fn check_service_identity(certificate: &CertificateDer<'_>, service: &str) -> Result<(), Error> {
    let expected = service_identity(service);
    let read = EndEntityCert::try_from(certificate);
    let read = read.map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let mut names = read.valid_uri_names();
    if names.next() == Some(expected.as_str()) && names.next().is_none() {
        return Ok(());
    }
    let other = OtherError(Arc::new(WrongServiceIdentity { expected }));
    Err(Error::InvalidCertificate(CertificateError::Other(other)))
}

/// Client verifier that accepts one service.
#[derive(Debug)]
pub(super) struct OnlyCaller {
    pub(super) inner: Arc<dyn ClientCertVerifier>,
    pub(super) service: &'static str,
}

impl ClientCertVerifier for OnlyCaller {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(end_entity, intermediates, now)?;
        check_service_identity(end_entity, self.service).map(|()| verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Server verifier that accepts one service at any address: pods have no stable name.
#[derive(Debug)]
pub(super) struct OnlyServer {
    pub(super) roots: Arc<RootCertStore>,
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) service: &'static str,
}

impl ServerCertVerifier for OnlyServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
        check_service_identity(end_entity, self.service).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
