//! Stored health of a pull request.

use serde::{Deserialize, Serialize};

use crate::{
    health::{
        memory::HealthMemory,
        snapshot::{ApprovalCount, AutoMerge, BaseTip},
        state::HealthState,
    },
    identity::time::Timestamp,
    journal::{kind::RecordKind, record_format::StoredRecord},
    trigger::pull_request::PullRequestRef,
};

/// Last assessment of a pull request of Journeyman. Ingest writes it; the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRecord {
    /// The assessed pull request.
    pub pull_request: PullRequestRef,
    /// State at that time.
    pub state: HealthState,
    /// Base at that time.
    pub base: BaseTip,
    /// Approvals that the base branch requires; absent: none, or the record is older than the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalCount>,
    /// Auto-merge of the pull request; absent: off, or the record is older than the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_merge: Option<AutoMerge>,
    /// Memory for the next assessment.
    #[serde(default)]
    pub memory: HealthMemory,
    /// Time of the assessment.
    pub at: Timestamp,
}

impl StoredRecord for HealthRecord {
    const KIND: RecordKind = RecordKind::Control;
}
