//! Limits and choices of an assessment, from the rules of the repository and from settings.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Condition under which Journeyman brings its pull request up to date with the base branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseUpdateRule {
    /// When the base branch requires it for a merge.
    #[default]
    WhenRequired,
    /// Whenever the head lacks commits of the base.
    Always,
    /// Never: people do it.
    Never,
}

/// Limits and choices of an assessment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthRules {
    /// Condition of base updates.
    pub update_base: BaseUpdateRule,
    /// True when a pull request without any check may become ready.
    pub may_lack_checks: bool,
    /// Times after which waiting ends in a notice.
    pub limits: HealthLimits,
}

/// Times after which waiting ends in a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthLimits {
    /// Time for further checks to start after one has ended.
    pub settle: Duration,
    /// Time for a check that GitHub requires to report.
    pub required: Duration,
    /// Time for the first check to report.
    pub absent: Duration,
    /// Time for checks to end.
    pub pending: Duration,
    /// Time for GitHub to compute whether the pull request can be merged.
    pub mergeability: Duration,
    /// Time for a requested step to change something, and for GitHub to explain a block.
    pub step: Duration,
}

impl HealthLimits {
    /// Default time for GitHub to compute whether a pull request can be merged.
    pub const MERGEABILITY: Duration = Duration::from_secs(30 * 60);
    /// Default time for a requested step to change something.
    pub const STEP: Duration = Duration::from_secs(24 * 60 * 60);
}
