//! Key pairs for grants.

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair as _},
};
use secrecy::{ExposeSecret, SecretString};

use crate::GrantRefusal;

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

pub(crate) fn read_private(private_key: &SecretString) -> Result<Ed25519KeyPair, GrantRefusal> {
    let der = STANDARD
        .decode(private_key.expose_secret().trim())
        .map_err(|_| GrantRefusal::new("the private key must be PKCS#8 in base64"))?;
    // Version 1 of PKCS#8, which OpenSSL writes, has no public key to check.
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der)
        .map_err(|_| GrantRefusal::new("the private key must be an Ed25519 key in PKCS#8"))
}

fn key_id(public_key: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, public_key);
    digest
        .as_ref()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
