//! Reading of certificates.

use std::net::{Ipv4Addr, Ipv6Addr};

use domain::{Timestamp, service_identity};
use rcgen::{KeyPair, PublicKeyData};
use x509_parser::{certificate::X509Certificate, extensions::GeneralName, pem::Pem};

use crate::{CertificateSubject, Error};

/// Content of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateDetails {
    /// Common name of the subject.
    pub name: String,
    /// Host names and IP addresses.
    pub hosts: Vec<String>,
    /// URIs that identify services.
    pub identities: Vec<String>,
    /// End of the validity.
    pub not_after: Timestamp,
}

impl CertificateDetails {
    /// Subject of the certificate, if it is that of a service; otherwise `None`.
    pub fn leaf(&self) -> Option<CertificateSubject> {
        let is_own = self.identities == [service_identity(&self.name)];
        is_own.then(|| CertificateSubject {
            service: self.name.clone(),
            hosts: self.hosts.clone(),
        })
    }
}

/// Content of a certificate with its public key.
pub(crate) struct CertificateWithKey {
    pub(crate) seen: CertificateDetails,
    pub(crate) public_key: Vec<u8>,
}

/// Reads all certificates of a PEM text, in their order.
///
/// # Errors
/// When the text has no certificate, or one that cannot be parsed.
pub fn read_certificates(pem: &str) -> Result<Vec<CertificateDetails>, Error> {
    let mut all = Vec::new();
    for block in Pem::iter_from_buffer(pem.as_bytes()) {
        all.push(parse_certificate(&block.map_err(|_| Error::NoCertificate)?)?.seen);
    }
    if all.is_empty() {
        return Err(Error::NoCertificate);
    }
    Ok(all)
}

/// True when a private key belongs to a certificate, both as PEM.
pub fn is_key_of_certificate(certificate: &str, key: &str) -> bool {
    let key = KeyPair::from_pem(key).map(|key| key.subject_public_key_info());
    matches!((read_first_certificate(certificate), key), (Ok(seen), Ok(key)) if seen.public_key == key)
}

/// Reads the first certificate of a PEM text.
pub(crate) fn read_first_certificate(pem: &str) -> Result<CertificateWithKey, Error> {
    let block = Pem::iter_from_buffer(pem.as_bytes()).next();
    let block = block.and_then(Result::ok).ok_or(Error::NoCertificate)?;
    parse_certificate(&block)
}

fn parse_certificate(block: &Pem) -> Result<CertificateWithKey, Error> {
    let certificate = block.parse_x509().map_err(|_| Error::NoCertificate)?;
    let name = certificate.subject().iter_common_name().next();
    let name = name.and_then(|name| name.as_str().ok()).unwrap_or_default();
    let (hosts, identities) = read_alternative_names(&certificate);
    Ok(CertificateWithKey {
        seen: CertificateDetails {
            name: name.to_owned(),
            hosts,
            identities,
            not_after: Timestamp::from_unix_ms(certificate.validity().not_after.timestamp() * 1000),
        },
        public_key: certificate.public_key().raw.to_vec(),
    })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "certificates have other kinds of names"
)]
fn read_alternative_names(certificate: &X509Certificate<'_>) -> (Vec<String>, Vec<String>) {
    let (mut hosts, mut identities) = (Vec::new(), Vec::new());
    let extension = certificate.subject_alternative_name().ok().flatten();
    for name in extension
        .iter()
        .flat_map(|extension| &extension.value.general_names)
    {
        match name {
            GeneralName::DNSName(name) => hosts.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => hosts.extend(format_ip_address(bytes)),
            GeneralName::URI(uri) => identities.push((*uri).to_owned()),
            _ => {}
        }
    }
    (hosts, identities)
}

fn format_ip_address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(|bytes| Ipv4Addr::from(bytes).to_string());
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(|bytes| Ipv6Addr::from(bytes).to_string()))
        .ok()
}
