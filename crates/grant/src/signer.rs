//! Signing of grants, by planners only.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use domain::Timestamp;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use secrecy::SecretString;
use serde::Serialize;

use crate::{
    Grant, GrantRefusal,
    claims::{GrantClaims, GrantHeader, StatusClaims, encode_bytes, encode_part},
    key::read_private,
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
