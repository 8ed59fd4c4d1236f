//! What callers get back who only want to see.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Plan, Problem};

/// The answer to a dry run, as `docs/schemas/pull-request-dry-run.schema.json` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryRun {
    /// Always true: nothing was written.
    pub dry_run: bool,
    /// The pull request that is there already.
    pub pr_url: Option<String>,
    /// The writes, in their order; each has its kind as `write`.
    pub would_write: Vec<Value>,
    /// What Jira will not do, known beforehand.
    pub errors: Vec<Problem>,
}

impl From<Plan> for DryRun {
    fn from(plan: Plan) -> Self {
        let value = |step| serde_json::to_value(step).unwrap_or_default();
        Self {
            dry_run: true,
            pr_url: plan.open.map(|open| open.url),
            would_write: plan.steps.iter().map(value).collect(),
            errors: plan.problems,
        }
    }
}
