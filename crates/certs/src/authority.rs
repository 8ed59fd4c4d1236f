//! Certificate authority and its certificates.

use std::net::IpAddr;

use domain::{Timestamp, service_identity};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use time::OffsetDateTime;

use crate::{CertificateSubject, Error, inspection::read_first_certificate};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
// Clocks of hosts differ, so a certificate is valid from a little before it was made.
const BACKDATED_MS: i64 = 60 * 60 * 1000;

/// Private certificate authority. Peers trust it only if their settings name it.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    not_after: Timestamp,
}

/// Certificate with its private key, as PEM.
pub struct IssuedCertificate {
    /// PEM of the certificate.
    pub certificate: String,
    /// PEM of the private key, a secret.
    pub key: String,
}

/// File name of a certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// File name of its private key.
pub const KEY: &str = "tls.key";
/// File name of the authority's certificate, in the same folder.
pub const AUTHORITY: &str = "ca.crt";

impl IssuedCertificate {
    /// Names and contents of a service's files. The names are those of a Kubernetes Secret of type
    /// `kubernetes.io/tls` and of cert-manager.
    pub fn files<'a>(&'a self, authority: &'a CertificateAuthority) -> [(&'static str, &'a str); 3] {
        [
            (KEY, &self.key),
            (CERTIFICATE, &self.certificate),
            (AUTHORITY, authority.pem()),
        ]
    }
}

impl CertificateAuthority {
    /// Generates a key and a self-signed certificate for it, valid for this many days.
    ///
    /// # Errors
    /// When the certificate cannot be made.
    pub fn generate(now: Timestamp, days: u32) -> Result<(Self, IssuedCertificate), Error> {
        let mut params = build_certificate_params(now, now.plus_ms(i64::from(days) * DAY_MS));
        // A unique name, so that an authority and its successor can be distinguished.
        params.distinguished_name = build_distinguished_name(&format!("Journeyman authority of {now}"));
        // Path length 0: the authority issues certificates of services, no other authorities.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let issued = IssuedCertificate {
            certificate: params.self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        };
        let authority = Self::from_pem(&issued.certificate, &issued.key)?;
        Ok((authority, issued))
    }

    /// Loads an existing authority from PEM.
    ///
    /// # Errors
    /// When the texts are not a certificate and its key.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, Error> {
        let key = KeyPair::from_pem(key).map_err(|_| Error::NoKey)?;
        let seen = read_first_certificate(certificate)?;
        if seen.public_key != key.subject_public_key_info() {
            return Err(Error::OtherKey);
        }
        Ok(Self {
            issuer: Issuer::from_ca_cert_pem(certificate, key).map_err(|_| Error::NoCertificate)?,
            pem: certificate.to_owned(),
            not_after: seen.seen.not_after,
        })
    }

    /// PEM of the authority's certificate, for the trust settings of peers.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Generates a key for a service and a certificate for it: valid for this many days, but no longer than
    /// the authority.
    ///
    /// # Errors
    /// When a host name is invalid, or the authority has expired.
    pub fn issue(
        &self,
        leaf: &CertificateSubject,
        now: Timestamp,
        days: u32,
    ) -> Result<IssuedCertificate, Error> {
        if self.not_after <= now {
            return Err(Error::AuthorityExpired);
        }
        // Peers refuse a certificate whose authority has expired.
        let until = now.plus_ms(i64::from(days) * DAY_MS).min(self.not_after);
        let mut params = build_certificate_params(now, until);
        params.distinguished_name = build_distinguished_name(&leaf.service);
        params.subject_alt_names = leaf
            .hosts
            .iter()
            .map(|host| parse_alternative_name(host))
            .collect::<Result<_, _>>()?;
        let identity = service_identity(&leaf.service);
        params.subject_alt_names.push(SanType::URI(identity.try_into()?));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Servers of NATS are clients of each other, and a service may become a server in a later release.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        Ok(IssuedCertificate {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn build_certificate_params(now: Timestamp, until: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = convert_timestamp(now.plus_ms(-BACKDATED_MS));
    params.not_after = convert_timestamp(until);
    params
}

fn convert_timestamp(at: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(at.unix_s()).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn build_distinguished_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn parse_alternative_name(host: &str) -> Result<SanType, Error> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let label =
        |label: &str| !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let rest = host.strip_prefix("*.").unwrap_or(host);
    // The library accepts any ASCII text as a DNS name, so the labels are checked here.
    match host.to_owned().try_into() {
        Ok(name) if rest.split('.').all(label) => Ok(SanType::DnsName(name)),
        Ok(_) | Err(_) => Err(Error::Name(host.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{list_service_subjects, read_certificates};

    const NOW: Timestamp = Timestamp::from_unix_ms(1_800_000_000_000);

    fn days_later(days: i64) -> Timestamp {
        NOW.plus_ms(days * DAY_MS)
    }

    #[test]
    fn certificate_states_subject_hosts_and_expiry() {
        let (authority, _) = CertificateAuthority::generate(NOW, 3650).unwrap();
        for leaf in list_service_subjects("journeyman", &["127.0.0.1".to_owned(), "::1".to_owned()]) {
            let issued = authority.issue(&leaf, NOW, 365).unwrap();
            let seen = read_certificates(&issued.certificate).unwrap().remove(0);
            assert_eq!(seen.leaf(), Some(leaf));
            assert_eq!(seen.not_after, days_later(365));
        }
    }

    #[test]
    fn authority_reloads_only_with_its_key() {
        let (first, files) = CertificateAuthority::generate(NOW, 10).unwrap();
        let (_, others) = CertificateAuthority::generate(NOW.plus_ms(DAY_MS), 10).unwrap();
        let again = CertificateAuthority::from_pem(&files.certificate, &files.key).unwrap();
        assert_eq!(again.pem(), first.pem());
        let mixed = CertificateAuthority::from_pem(&files.certificate, &others.key);
        assert!(matches!(mixed, Err(Error::OtherKey)));
        assert!(matches!(
            CertificateAuthority::from_pem("nothing", &files.key),
            Err(Error::NoCertificate)
        ));
        assert!(matches!(
            CertificateAuthority::from_pem(&files.certificate, "nothing"),
            Err(Error::NoKey)
        ));
    }

    #[test]
    fn certificate_expires_no_later_than_authority() {
        let (authority, _) = CertificateAuthority::generate(NOW, 10).unwrap();
        let leaf = &list_service_subjects("journeyman", &[])[0];
        let late = authority.issue(leaf, days_later(9), 365).unwrap();
        assert_eq!(
            read_certificates(&late.certificate).unwrap()[0].not_after,
            days_later(10)
        );
        let over = authority.issue(leaf, days_later(10), 365);
        assert!(matches!(over, Err(Error::AuthorityExpired)));
    }

    #[test]
    fn invalid_host_name_is_refused() {
        let (authority, _) = CertificateAuthority::generate(NOW, 10).unwrap();
        for wrong in ["", "a b", "a..b", "https://a", "a:1"] {
            let leaf = CertificateSubject {
                service: "nats".to_owned(),
                hosts: vec![wrong.to_owned()],
            };
            let refused = authority.issue(&leaf, NOW, 1).err().unwrap();
            assert!(
                matches!(&refused, Error::Name(name) if name == wrong),
                "{refused}"
            );
        }
    }
}
