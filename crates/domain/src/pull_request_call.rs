//! A pull request that a caller of the API asks for, and what became of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RecordKind, Stored, Timestamp};

/// What a caller asks for. Ingest writes it, the reporter carries it out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestCall {
    /// The caller's key for it, which makes a repeated request count once.
    pub id: String,
    /// When it was asked for.
    pub at: Timestamp,
    /// The caller.
    pub by: String,
    /// The request as `docs/schemas/pull-request-api-input.schema.json` describes it.
    pub request: Value,
}

impl PullRequestCall {
    /// How long calls and their answers are kept.
    pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
}

impl Stored for PullRequestCall {
    const KIND: RecordKind = RecordKind::Control;
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestAnswer {
    /// When a reporter took it up. One that has no answer long after that died over it.
    pub taken_at: Timestamp,
    /// The answer as `docs/schemas/pull-request-output.schema.json` describes it; absent while it is carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

impl Stored for PullRequestAnswer {
    const KIND: RecordKind = RecordKind::Ledger;
}
