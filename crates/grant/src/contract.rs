//! Skeleton; the signatures stand.
#![allow(unused_variables, missing_docs, clippy::todo, reason = "skeleton")]
use std::collections::BTreeMap;

use domain::{RepositoryName, RunFence, RunId, Timestamp};
use secrecy::SecretString;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Executor,
    Gate,
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub audience: Audience,
    pub run: RunId,
    pub repository: RepositoryName,
    /// Absent until the workspace is open.
    pub workspace: Option<String>,
    pub fence: RunFence,
}
/// A fresh key pair.
pub struct KeyPair {
    /// Key id carried in each grant.
    pub id: String,
    /// PKCS#8, base64.
    pub private_key: SecretString,
    /// Raw 32 bytes, base64.
    pub public_key: String,
}
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);
pub fn generate() -> KeyPair {
    todo!()
}
#[derive(Clone)]
pub struct Signer {}
impl Signer {
    pub fn new(key_id: &str, private_key: &SecretString) -> Result<Self, Refused> {
        todo!()
    }
    /// Valid for 15 minutes from `now`.
    pub fn sign(&self, grant: &Grant, now: Timestamp) -> Result<SecretString, Refused> {
        todo!()
    }
    pub fn public_key(&self) -> (String, String) {
        todo!()
    }
}
#[derive(Clone)]
pub struct Verifier {}
impl Verifier {
    /// Public keys (base64) by key id; two are valid during rotation.
    pub fn new(public_keys: &BTreeMap<String, String>) -> Result<Self, Refused> {
        todo!()
    }
    pub fn verify(&self, token: &str, audience: Audience, now: Timestamp) -> Result<Grant, Refused> {
        todo!()
    }
}
