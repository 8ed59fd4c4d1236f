//! Random secrets, each with the hash for the other side.

use ring::digest::{SHA256, digest};
use secrecy::SecretString;

/// Random password and its SHA-256 in hexadecimal.
pub fn generate_password() -> (String, String) {
    // Each UUID of version 4 has 122 random bits.
    let [first, second] = [(); 2].map(|()| uuid::Uuid::new_v4().simple().to_string());
    let password = first + &second;
    let hash = digest(&SHA256, password.as_bytes());
    let sha256 = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    (password, sha256)
}

/// Random API token and its hexadecimal SHA-256 for the settings of ingest.
pub(crate) fn generate_token() -> (SecretString, String) {
    // The prefix lets the credential scan of the reporter recognize a leaked token.
    let token = format!(
        "jm_{}{}",
        uuid::Uuid::new_v4().simple(),
        uuid::Uuid::new_v4().simple()
    );
    let digest = digest(&SHA256, token.as_bytes());
    let sha256 = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    (SecretString::from(token), sha256)
}
