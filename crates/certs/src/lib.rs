//! Certificates of the services: a private authority, its certificates, and reading of certificates. No
//! function reads a file or a clock.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod authority;
mod inspection;
mod subject;

pub use authority::{AUTHORITY, CERTIFICATE, CertificateAuthority, IssuedCertificate, KEY};
pub use inspection::{CertificateDetails, is_key_of_certificate, read_certificates};
pub use subject::{CertificateSubject, SERVICES, list_service_subjects};

/// Reason why a certificate cannot be made or read. It never contains a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a certificate in PEM.
    #[error("not a certificate in PEM")]
    NoCertificate,
    /// The text is not a private key in PEM.
    #[error("not a private key in PEM")]
    NoKey,
    /// The key does not belong to the authority's certificate.
    #[error("the key does not belong to the authority's certificate")]
    OtherKey,
    /// The authority has expired, so its certificates would not be valid.
    #[error("the authority's certificate has expired")]
    AuthorityExpired,
    /// A host name or address is invalid.
    #[error("{0:?} is neither a host name nor an address")]
    Name(String),
    /// The library failed to make the certificate.
    #[error("the certificate cannot be made")]
    Make(#[from] rcgen::Error),
}
