//! Response of a dry run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallProblem, WritePlan};

/// Response of a dry run, in the form of `docs/schemas/pull-request-dry-run.schema.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRunAnswer {
    /// Always true, as nothing was written.
    pub dry_run: bool,
    /// URL of the pull request that exists already.
    pub pr_url: Option<String>,
    /// Writes in their order, each with its kind in the field `write`.
    pub would_write: Vec<Value>,
    /// Failures of Jira that are known in advance.
    pub errors: Vec<CallProblem>,
}

impl From<WritePlan> for DryRunAnswer {
    fn from(plan: WritePlan) -> Self {
        // A step contains strings, numbers and flags only, so its conversion cannot fail.
        let value = |step| serde_json::to_value(step).unwrap_or_default();
        Self {
            dry_run: true,
            pr_url: plan.open.map(|open| open.url),
            would_write: plan.steps.iter().map(value).collect(),
            errors: plan.problems,
        }
    }
}
