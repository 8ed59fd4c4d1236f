//! Grants, the reasons to refuse them, and their wire format: a JWT with `alg` `EdDSA` and a key id.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{HostPattern, RepositoryName, RunFence, RunId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Lifetime of a grant, in seconds.
pub(crate) const LIFETIME_S: i64 = 15 * 60;

/// Service that accepts a grant. No service accepts a grant for another audience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantAudience {
    /// Tool calls at an executor.
    Executor,
    /// Status of an executor: tools, slots and open runs. It opens no workspace.
    Status,
    /// Git gate of the reporter: read-only clones.
    Gate,
    /// Egress proxy: hosts that setup commands may reach.
    Egress,
}

/// Rights of a grant's bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Service that accepts the grant.
    pub audience: GrantAudience,
    /// Run that the grant was made for.
    pub run: RunId,
    /// Only repository that the grant opens.
    pub repository: RepositoryName,
    /// Only workspace that the grant opens; absent until the workspace is open.
    pub workspace: Option<String>,
    /// Fence of the planner that made the grant.
    pub fence: RunFence,
    /// Hosts that the grant opens; only for the egress proxy.
    pub network: Vec<HostPattern>,
}

/// Reason why a grant or key is refused, for operators. It never contains a token or a key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct GrantRefusal(pub String);

impl GrantRefusal {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct GrantHeader {
    pub(crate) alg: String,
    pub(crate) kid: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrantClaims {
    aud: String,
    run: RunId,
    repository: RepositoryName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    fence: RunFence,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    network: Vec<HostPattern>,
    nbf: i64,
    exp: i64,
}

/// Claims of a status grant. It names no run, because it opens no workspace.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusClaims {
    aud: String,
    nbf: i64,
    exp: i64,
}

impl StatusClaims {
    pub(crate) fn new(now_s: i64) -> Self {
        Self {
            aud: audience_name(GrantAudience::Status).to_owned(),
            nbf: now_s,
            exp: now_s.saturating_add(LIFETIME_S),
        }
    }

    pub(crate) fn check_audience(&self) -> Result<(), GrantRefusal> {
        check_audience(&self.aud, GrantAudience::Status)
    }
}

/// Validity of a token, in Unix seconds.
pub(crate) trait TokenValidity {
    fn not_before(&self) -> i64;
    fn expires(&self) -> i64;
}

impl TokenValidity for GrantClaims {
    fn not_before(&self) -> i64 {
        self.nbf
    }
    fn expires(&self) -> i64 {
        self.exp
    }
}

impl TokenValidity for StatusClaims {
    fn not_before(&self) -> i64 {
        self.nbf
    }
    fn expires(&self) -> i64 {
        self.exp
    }
}

fn check_audience(named: &str, wanted: GrantAudience) -> Result<(), GrantRefusal> {
    if named == audience_name(wanted) {
        Ok(())
    } else {
        Err(GrantRefusal::new("the grant is for another audience"))
    }
}

impl GrantClaims {
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

    pub(crate) fn into_grant(self, audience: GrantAudience) -> Result<Grant, GrantRefusal> {
        check_audience(&self.aud, audience)?;
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

const fn audience_name(audience: GrantAudience) -> &'static str {
    match audience {
        GrantAudience::Executor => "executor",
        GrantAudience::Status => "status",
        GrantAudience::Gate => "gate",
        GrantAudience::Egress => "egress",
    }
}

pub(crate) fn encode_part(part: &impl Serialize) -> Result<String, GrantRefusal> {
    let json =
        serde_json::to_vec(part).map_err(|_| GrantRefusal::new("the grant cannot be written as JSON"))?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

pub(crate) fn decode_part<T: DeserializeOwned>(part: &str) -> Result<T, GrantRefusal> {
    let json = decode_bytes(part)?;
    serde_json::from_slice(&json).map_err(|_| refuse_malformed())
}

pub(crate) fn decode_bytes(part: &str) -> Result<Vec<u8>, GrantRefusal> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| refuse_malformed())
}

pub(crate) fn encode_bytes(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn refuse_malformed() -> GrantRefusal {
    GrantRefusal::new("the grant is malformed")
}
