//! Certificates of the services: a private authority, its certificates, and reading of certificates. No
//! function reads a file or a clock.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod authority;
mod error;
mod inspection;
mod subject;

pub use authority::{AUTHORITY, CERTIFICATE, CertificateAuthority, IssuedCertificate, KEY};
pub use error::Error;
pub use inspection::{CertificateDetails, is_key_of_certificate, read_certificates};
pub use subject::{CertificateSubject, SERVICES, list_service_subjects};
