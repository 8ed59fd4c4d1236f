//! Folder of certificates: `ca.crt` and `ca.key`, and a subfolder per service with the files of a Kubernetes TLS
//! Secret.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use certs::{AUTHORITY, CERTIFICATE, CertificateAuthority, CertificateSubject, KEY};
use domain::Timestamp;

use crate::user_files::replace_file;

// Validity of an authority: ten years, because a new authority must be distributed to every peer that trusts it.
const AUTHORITY_DAYS: u32 = 3650;
const AUTHORITY_KEY: &str = "ca.key";

/// Folder with the authority and the certificates.
pub(super) struct CertificateFolder(PathBuf);

/// Result for one certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateResult {
    New,
    Kept,
}

/// Certificate of a service in its folder.
pub(super) struct StoredCertificate {
    pub(super) done: CertificateResult,
    pub(super) leaf: CertificateSubject,
    pub(super) not_after: Timestamp,
    pub(super) folder: PathBuf,
}

impl CertificateFolder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Creates certificates that are missing, expired, have other names, or do not match their key or authority.
    pub(super) fn init(
        &self,
        leaves: &[CertificateSubject],
        now: Timestamp,
        days: u32,
    ) -> anyhow::Result<Vec<StoredCertificate>> {
        create_private_folder(&self.0)?;
        let authority = match self.read_authority()? {
            Some(authority) => authority,
            None => self.create_authority(now)?,
        };
        let make = |leaf: &CertificateSubject| {
            if let Some(not_after) = self.find_valid_expiry(leaf, &authority, now) {
                return Ok(self.describe_stored(CertificateResult::Kept, leaf, not_after));
            }
            self.issue(&authority, leaf, now, days)
        };
        leaves.iter().map(make).collect()
    }

    /// Creates new keys and certificates with the existing names.
    pub(super) fn renew(&self, now: Timestamp, days: u32) -> anyhow::Result<Vec<StoredCertificate>> {
        let shown = self.0.display();
        let Some(authority) = self.read_authority()? else {
            bail!("{shown} has no authority: `journeyman certs init {shown}` creates one");
        };
        // All certificates are read before the first one is written, so that an unreadable one leaves the folder
        // unchanged.
        let subjects: Vec<CertificateSubject> = certs::SERVICES
            .iter()
            .map(|service| {
                let leaf = self.read_subject(service);
                leaf.with_context(|| {
                    format!(
                        "{shown} has no certificate of {service}: `journeyman certs init {shown}` creates it"
                    )
                })
            })
            .collect::<anyhow::Result<_>>()?;
        subjects
            .iter()
            .map(|leaf| self.issue(&authority, leaf, now, days))
            .collect()
    }

    fn read_authority(&self) -> anyhow::Result<Option<CertificateAuthority>> {
        let (certificate, key) = (self.0.join(AUTHORITY), self.0.join(AUTHORITY_KEY));
        if !certificate.exists() && !key.exists() {
            return Ok(None);
        }
        let authority = CertificateAuthority::from_pem(&read_file(&certificate)?, &read_file(&key)?);
        authority
            .map(Some)
            .with_context(|| format!("{}", certificate.display()))
    }

    fn create_authority(&self, now: Timestamp) -> anyhow::Result<CertificateAuthority> {
        let (authority, issued) = CertificateAuthority::generate(now, AUTHORITY_DAYS)?;
        // The key goes first: an authority without its certificate is reported as broken instead of used.
        write_file(&self.0.join(AUTHORITY_KEY), &issued.key, 0o600)?;
        write_file(&self.0.join(AUTHORITY), &issued.certificate, 0o644)?;
        Ok(authority)
    }

    fn issue(
        &self,
        authority: &CertificateAuthority,
        leaf: &CertificateSubject,
        now: Timestamp,
        days: u32,
    ) -> anyhow::Result<StoredCertificate> {
        let issued = authority
            .issue(leaf, now, days)
            .with_context(|| format!("the certificate of {}", leaf.service))?;
        let folder = self.0.join(&leaf.service);
        create_private_folder(&folder)?;
        for (name, text) in issued.files(authority) {
            let mode = if name == KEY { 0o600 } else { 0o644 };
            write_file(&folder.join(name), text, mode)?;
        }
        let seen = certs::read_certificates(&issued.certificate)?;
        let not_after = seen.first().map_or(now, |seen| seen.not_after);
        Ok(self.describe_stored(CertificateResult::New, leaf, not_after))
    }

    fn describe_stored(
        &self,
        done: CertificateResult,
        leaf: &CertificateSubject,
        not_after: Timestamp,
    ) -> StoredCertificate {
        StoredCertificate {
            done,
            leaf: leaf.clone(),
            not_after,
            folder: self.0.join(&leaf.service),
        }
    }

    /// Subject of the existing certificate of a service.
    fn read_subject(&self, service: &str) -> Option<CertificateSubject> {
        let text = fs::read_to_string(self.0.join(service).join(CERTIFICATE)).ok()?;
        certs::read_certificates(&text).ok()?.first()?.leaf()
    }

    /// Expiry of the existing certificate, if it is valid for the wanted names and the authority.
    fn find_valid_expiry(
        &self,
        leaf: &CertificateSubject,
        authority: &CertificateAuthority,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let folder = self.0.join(&leaf.service);
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let (certificate, key) = (text(CERTIFICATE)?, text(KEY)?);
        let seen = certs::read_certificates(&certificate).ok()?.into_iter().next()?;
        let fits = seen.leaf().as_ref() == Some(leaf)
            && seen.not_after > now
            && certs::is_key_of_certificate(&certificate, &key)
            // Another `ca.crt` is of an earlier authority. Peers that trust the current one refuse it.
            && text(AUTHORITY).as_deref() == Some(authority.pem());
        fits.then_some(seen.not_after)
    }
}

fn create_private_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)))
        .with_context(|| format!("cannot create {}", folder.display()))
}

fn read_file(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write_file(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    replace_file(path, text.as_bytes(), mode).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_ms(1_800_000_000_000);
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    fn add_days(days: i64) -> Timestamp {
        NOW.plus_ms(days * DAY_MS)
    }

    fn create_certificate_folder() -> (tempfile::TempDir, CertificateFolder) {
        let place = tempfile::tempdir().unwrap();
        let folder = CertificateFolder::new(place.path().join("certs"));
        (place, folder)
    }

    fn list_new_services(made: &[StoredCertificate]) -> Vec<&str> {
        let new = made.iter().filter(|made| made.done == CertificateResult::New);
        new.map(|made| made.leaf.service.as_str()).collect()
    }

    #[test]
    fn init_keeps_valid_certificates_and_creates_missing() {
        let (_place, folder) = create_certificate_folder();
        let leaves = certs::list_service_subjects("journeyman", &[]);
        assert_eq!(
            list_new_services(&folder.init(&leaves, NOW, 30).unwrap()),
            certs::SERVICES
        );
        assert!(list_new_services(&folder.init(&leaves, add_days(1), 30).unwrap()).is_empty());
        fs::remove_file(folder.0.join("redis").join(KEY)).unwrap();
        fs::copy(folder.0.join("nats").join(KEY), folder.0.join("egress").join(KEY)).unwrap();
        assert_eq!(
            list_new_services(&folder.init(&leaves, add_days(1), 30).unwrap()),
            ["egress", "redis"]
        );
        let elsewhere = certs::list_service_subjects("agents", &[]);
        assert_eq!(
            list_new_services(&folder.init(&elsewhere, add_days(1), 30).unwrap()),
            certs::SERVICES
        );
        assert_eq!(
            list_new_services(&folder.init(&elsewhere, add_days(40), 30).unwrap()),
            certs::SERVICES,
            "they have expired"
        );
    }

    #[test]
    fn renewal_keeps_authority_and_names() {
        let (_place, folder) = create_certificate_folder();
        assert!(
            folder
                .renew(NOW, 30)
                .err()
                .unwrap()
                .to_string()
                .contains("certs init")
        );
        let leaves = certs::list_service_subjects("agents", &["127.0.0.1".to_owned()]);
        folder.init(&leaves, NOW, 30).unwrap();
        let authority = read_file(&folder.0.join(AUTHORITY)).unwrap();
        let key = read_file(&folder.0.join("planner").join(KEY)).unwrap();
        let renewed = folder.renew(add_days(20), 60).unwrap();
        let names: Vec<CertificateSubject> = renewed.iter().map(|made| made.leaf.clone()).collect();
        assert_eq!(names, leaves);
        assert!(renewed.iter().all(|made| made.not_after == add_days(80)));
        assert_eq!(read_file(&folder.0.join(AUTHORITY)).unwrap(), authority);
        assert_ne!(read_file(&folder.0.join("planner").join(KEY)).unwrap(), key);
        fs::remove_file(folder.0.join("redis").join(CERTIFICATE)).unwrap();
        let key = read_file(&folder.0.join("planner").join(KEY)).unwrap();
        let problem = folder.renew(add_days(20), 60).err().unwrap().to_string();
        assert!(problem.contains("no certificate of redis"), "{problem}");
        assert_eq!(
            read_file(&folder.0.join("planner").join(KEY)).unwrap(),
            key,
            "all or none"
        );
    }

    #[test]
    fn keys_are_readable_by_owner_alone() {
        let (_place, folder) = create_certificate_folder();
        folder
            .init(&certs::list_service_subjects("journeyman", &[]), NOW, 30)
            .unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let keys = certs::SERVICES.map(|service| folder.0.join(service).join(KEY));
        for key in keys.iter().chain([&folder.0.join(AUTHORITY_KEY)]) {
            assert_eq!(mode(key), 0o600, "{}", key.display());
        }
        assert_eq!(mode(&folder.0), 0o700);
    }
}
