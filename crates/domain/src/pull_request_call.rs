//! Pull requests that a caller of the API requests, with their answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{RecordKind, StoredRecord, Timestamp};

/// A caller's request for a pull request. Ingest writes it, the reporter carries it out.
// A call may name no issue, so it has no ticket whose log could contain it. Each service writes to the bucket
// that it owns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestCall {
    /// The caller's idempotency key: a repeated request counts once.
    pub id: String,
    /// Time of the request.
    pub at: Timestamp,
    /// Name of the API caller.
    pub by: String,
    /// The request in the format of `docs/schemas/pull-request-api-input.schema.json`.
    pub request: Value,
}

impl PullRequestCall {
    /// Retention of calls and their answers.
    pub const KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
}

impl StoredRecord for PullRequestCall {
    const KIND: RecordKind = RecordKind::Control;
}

/// State of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestAnswer {
    /// Time at which a reporter started it. A call without an answer long after this time means that the
    /// reporter crashed.
    pub taken_at: Timestamp,
    /// The answer in the format of `docs/schemas/pull-request-output.schema.json`; absent while the call is
    /// in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
}

impl StoredRecord for PullRequestAnswer {
    const KIND: RecordKind = RecordKind::Ledger;
}
