//! Random secrets, each with the hash for the other side.

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use secrecy::SecretString;

/// Random password and its SHA-256 in hexadecimal.
pub fn generate_password() -> (String, String) {
    // Each UUID of version 4 has 122 random bits.
    let [first, second] = [(); 2].map(|()| uuid::Uuid::new_v4().simple().to_string());
    let password = first + &second;
    let sha256 = HEXLOWER.encode(digest(&SHA256, password.as_bytes()).as_ref());
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
    let sha256 = HEXLOWER.encode(digest(&SHA256, token.as_bytes()).as_ref());
    (SecretString::from(token), sha256)
}
