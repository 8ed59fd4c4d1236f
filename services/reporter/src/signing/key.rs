//! SSH key that signs commits, and its settings.

use std::fmt;

use domain::{CommitAuthor, ErrorCause};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use ssh_key::{Algorithm, HashAlg, LineEnding, PrivateKey};

// Namespace of signatures by git, so that no signature of another program counts as one of a commit.
const NAMESPACE: &str = "git";

/// The section `[reporter.signing]`: signatures of commits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SigningSettings {
    /// Private key in OpenSSH format: Ed25519, without a passphrase. Absent: GitHub signs the commits of an App.
    pub private_key: Option<SecretString>,
    /// Committer of signed commits, `Name <address>`: the account at GitHub to which the key belongs. Absent: the
    /// author of the commit.
    pub committer: Option<CommitAuthor>,
    /// If true, the key signs every commit. If false, only commits to branches whose rules require signatures.
    pub always: bool,
}

impl SigningSettings {
    /// Parses the key; `None` without one.
    ///
    /// # Errors
    /// The key cannot be used.
    pub(crate) fn parse_key(&self) -> Result<Option<SigningKey>, UnusableKey> {
        let key = self.private_key.as_ref();
        let key = key.filter(|key| !key.expose_secret().trim().is_empty());
        key.map(SigningKey::parse).transpose()
    }
}

/// Key that cannot sign commits. Its text contains nothing of the key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnusableKey {
    #[error(
        "is a GPG key, which is not supported; make an SSH key (`ssh-keygen -t ed25519 -N '' -f signing-key`), name the file \
         signing-key here, and add signing-key.pub to the account at GitHub as a signing key"
    )]
    Gpg,
    #[error("has a passphrase; write the key without one (`ssh-keygen -p -N ''`)")]
    Encrypted,
    #[error("is a key of the type {0}; use one of the type Ed25519 (`ssh-keygen -t ed25519`)")]
    Algorithm(Algorithm),
    #[error("is not a private key in OpenSSH format")]
    Unreadable(#[source] ErrorCause),
    #[error("could not sign")]
    Failed(#[source] ErrorCause),
}

/// Ed25519 key. Its signature of the same bytes is always the same, so a repeated commit has the same id.
pub(crate) struct SigningKey(PrivateKey);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.fingerprint()).finish()
    }
}

impl SigningKey {
    /// Parses a key in OpenSSH format.
    ///
    /// # Errors
    /// The key cannot be used.
    fn parse(text: &SecretString) -> Result<Self, UnusableKey> {
        let text = text.expose_secret().trim();
        if text.contains("-----BEGIN PGP") {
            return Err(UnusableKey::Gpg);
        }
        // Settings trim the content of files, and the format ends with a line feed.
        let key = PrivateKey::from_openssh(format!("{text}\n"));
        let key = key.map_err(|error| UnusableKey::Unreadable(error.to_string().into()))?;
        if key.is_encrypted() {
            return Err(UnusableKey::Encrypted);
        }
        let algorithm = key.algorithm();
        if algorithm != Algorithm::Ed25519 {
            return Err(UnusableKey::Algorithm(algorithm));
        }
        Ok(Self(key))
    }

    /// Signs the content of a commit.
    ///
    /// # Errors
    /// The library refuses to sign.
    pub(crate) fn sign(&self, content: &[u8]) -> Result<String, UnusableKey> {
        let failed = |error: ssh_key::Error| UnusableKey::Failed(error.to_string().into());
        let signature = self.0.sign(NAMESPACE, HashAlg::Sha512, content).map_err(failed)?;
        signature.to_pem(LineEnding::LF).map_err(failed)
    }

    /// Returns the fingerprint of the public key, as `ssh-keygen -l` prints it.
    pub(crate) fn fingerprint(&self) -> String {
        self.0.fingerprint(HashAlg::Sha256).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SigningKey, UnusableKey> {
        SigningKey::parse(&SecretString::from(text.to_owned()))
    }

    #[test]
    fn signature_is_stable_and_verifies() {
        let key = parse(testkit::github::SIGNING_KEY.trim_end()).unwrap();
        let one = key.sign(b"tree 1\n").unwrap();
        assert_eq!(one, key.sign(b"tree 1\n").unwrap());
        assert!(one.starts_with("-----BEGIN SSH SIGNATURE-----\n"), "{one}");
        let signature = ssh_key::SshSig::from_pem(&one).unwrap();
        let public = key.0.public_key();
        assert!(public.verify("git", b"tree 1\n", &signature).is_ok());
        assert!(public.verify("git", b"tree 2\n", &signature).is_err());
        assert!(public.verify("file", b"tree 1\n", &signature).is_err());
        assert!(!format!("{key:?}").contains("PRIVATE"));
    }

    #[test]
    fn unusable_keys_are_refused_by_name() {
        let pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nabc\n-----END PGP PRIVATE KEY BLOCK-----";
        let message = "-----BEGIN PGP MESSAGE-----\nabc\n-----END PGP MESSAGE-----";
        for text in [pgp, message] {
            let refused = parse(text).unwrap_err();
            assert!(matches!(refused, UnusableKey::Gpg), "{refused}");
            assert!(refused.to_string().contains("ssh-keygen -t ed25519"), "{refused}");
        }
        for text in [
            "secret",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
        ] {
            let refused = parse(text).unwrap_err();
            assert!(matches!(refused, UnusableKey::Unreadable(_)), "{refused}");
            assert!(!refused.to_string().contains("secret"));
        }
        assert!(SigningSettings::default().parse_key().unwrap().is_none());
        let blank = SigningSettings {
            private_key: Some(" \n".into()),
            ..SigningSettings::default()
        };
        assert!(blank.parse_key().unwrap().is_none());
    }
}
