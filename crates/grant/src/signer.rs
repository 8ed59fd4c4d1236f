//! Signing of grants, by planners only, and the key pairs for it.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use data_encoding::HEXLOWER;
use domain::Timestamp;
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use crate::{
    Grant, GrantRefusal,
    claims::{GrantClaims, GrantHeader, StatusClaims, encode_bytes, encode_part},
};

/// Signer with the private key. Cheap to clone.
#[derive(Clone)]
pub struct GrantSigner {
    key_id: String,
    pair: Arc<Ed25519KeyPair>,
}

impl GrantSigner {
    /// Creates a signer with a private key in PKCS#8, base64.
    ///
    /// # Errors
    /// [`GrantRefusal`] when the key id is empty or the key is not an Ed25519 key.
    pub fn new(key_id: &str, private_key: &SecretString) -> Result<Self, GrantRefusal> {
        if key_id.is_empty() {
            return Err(GrantRefusal::new("the key id must not be empty"));
        }
        Ok(Self {
            key_id: key_id.to_owned(),
            pair: Arc::new(read_private(private_key)?),
        })
    }

    /// Signs a grant. The token is valid for 15 minutes from `now`.
    ///
    /// # Errors
    /// [`GrantRefusal`] when the grant cannot be serialized.
    pub fn sign(&self, grant: &Grant, now: Timestamp) -> Result<SecretString, GrantRefusal> {
        self.token(&GrantClaims::new(grant, now.unix_s()))
    }

    /// Signs a status grant, with which the bearer may request an executor's status. Valid for 15 minutes
    /// from `now`.
    ///
    /// # Errors
    /// [`GrantRefusal`] when the claims cannot be serialized.
    pub fn sign_status(&self, now: Timestamp) -> Result<SecretString, GrantRefusal> {
        self.token(&StatusClaims::new(now.unix_s()))
    }

    fn token(&self, claims: &impl Serialize) -> Result<SecretString, GrantRefusal> {
        let header = encode_part(&GrantHeader {
            alg: "EdDSA".to_owned(),
            kid: self.key_id.clone(),
        })?;
        let claims = encode_part(claims)?;
        let signed = format!("{header}.{claims}");
        let signature = encode_bytes(self.pair.sign(signed.as_bytes()).as_ref());
        Ok(SecretString::from(format!("{signed}.{signature}")))
    }

    /// Key id and public key (base64), as the settings of verifiers contain them.
    pub fn public_key(&self) -> (String, String) {
        (
            self.key_id.clone(),
            STANDARD.encode(self.pair.public_key().as_ref()),
        )
    }
}

/// Ed25519 key pair.
pub struct KeyPair {
    /// Key id in each grant: the first 16 hexadecimal digits of the public key's SHA-256.
    pub id: String,
    /// Private key: PKCS#8 in base64.
    pub private_key: SecretString,
    /// Public key: the raw 32 bytes in base64.
    pub public_key: String,
}

/// Generates a key pair from the system's random numbers.
///
/// # Panics
/// When the operating system supplies no random numbers.
#[expect(
    clippy::expect_used,
    reason = "without randomness no process of this system can be trusted to carry on"
)]
pub fn generate_key_pair() -> KeyPair {
    let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("the system's randomness");
    let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a fresh key is well-formed");
    let public_key = pair.public_key().as_ref();
    KeyPair {
        id: key_id(public_key),
        private_key: SecretString::from(STANDARD.encode(document.as_ref())),
        public_key: STANDARD.encode(public_key),
    }
}

fn read_private(private_key: &SecretString) -> Result<Ed25519KeyPair, GrantRefusal> {
    let der = STANDARD
        .decode(private_key.expose_secret().trim())
        .map_err(|_| GrantRefusal::new("the private key must be PKCS#8 in base64"))?;
    // Version 1 of PKCS#8, which OpenSSL writes, has no public key to check.
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
        .map_err(|_| GrantRefusal::new("the private key must be an Ed25519 key in PKCS#8"))
}

fn key_id(public_key: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, public_key);
    let mut digits = HEXLOWER.encode(digest.as_ref());
    digits.truncate(16);
    digits
}
