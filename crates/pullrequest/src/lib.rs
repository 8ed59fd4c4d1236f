//! Pull requests on a user's call: the validated request, the plan of writes, and the answer.
//!
//! All functions are pure; the reporter reads and writes.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod answer;
mod plan;
mod problem;
mod request;
#[cfg(test)]
#[path = "../tests/schemas.rs"]
mod schema_tests;
pub mod transition;

pub use answer::{CallStatus, DryRunAnswer, JiraStatus, ProtocolAnswer};
pub use plan::{
    BranchHeads, ExistingPullRequest, ObservedIssue, ObservedState, PlannedWrite, WritePlan, plan_writes,
};
pub use problem::{CallProblem, ProblemContext, ProblemKind};
pub use request::{BranchLocation, ValidatedRequest, find_issue_key, parse_github_request, parse_request};
