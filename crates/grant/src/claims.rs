//! The wire form: a JWT with `alg` `EdDSA` and a key id.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{HostPattern, RepositoryName, RunFence, RunId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{Audience, Grant, Refused};

/// How long a grant is valid, in seconds.
pub(crate) const LIFETIME_S: i64 = 15 * 60;

#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) alg: String,
    pub(crate) kid: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claims {
    aud: String,
    run: RunId,
    repository: RepositoryName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    fence: RunFence,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    network: Vec<HostPattern>,
    pub(crate) nbf: i64,
    pub(crate) exp: i64,
}

impl Claims {
    pub(crate) fn new(grant: &Grant, now_s: i64) -> Self {
        Self {
            aud: audience_name(grant.audience).to_owned(),
            run: grant.run.clone(),
            repository: grant.repository.clone(),
            workspace: grant.workspace.clone(),
            fence: grant.fence,
            network: grant.network.clone(),
            nbf: now_s,
            exp: now_s.saturating_add(LIFETIME_S),
        }
    }

    pub(crate) fn into_grant(self, audience: Audience) -> Result<Grant, Refused> {
        if self.aud != audience_name(audience) {
            return Err(Refused::new("the grant is for another audience"));
        }
        Ok(Grant {
            audience,
            run: self.run,
            repository: self.repository,
            workspace: self.workspace,
            fence: self.fence,
            network: self.network,
        })
    }
}

const fn audience_name(audience: Audience) -> &'static str {
    match audience {
        Audience::Executor => "executor",
        Audience::Gate => "gate",
        Audience::Egress => "egress",
    }
}

pub(crate) fn encode(part: &impl Serialize) -> Result<String, Refused> {
    let json = serde_json::to_vec(part).map_err(|_| Refused::new("the grant cannot be written as JSON"))?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

pub(crate) fn decode<T: DeserializeOwned>(part: &str) -> Result<T, Refused> {
    let json = decode_bytes(part)?;
    serde_json::from_slice(&json).map_err(|_| malformed())
}

pub(crate) fn decode_bytes(part: &str) -> Result<Vec<u8>, Refused> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| malformed())
}

pub(crate) fn encode_bytes(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn malformed() -> Refused {
    Refused::new("the grant is malformed")
}
