//! Verdict on the checks of a commit. Green requires that nothing is missing, pending or waiting for a person.

use std::{convert::Infallible, time::Duration};

use crate::{
    health::{
        rules::HealthLimits,
        snapshot::{
            BaseRequirements, CheckResult, HeadChecks, ObservedCheck, ObservedWorkflowRun,
            WorkflowRunProgress,
        },
    },
    identity::time::Timestamp,
};

// Shortest wait before checks that may be incomplete are read again.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// Source of the facts about the checks of a commit. A caller that reads them one by one returns what it lacks.
pub trait CheckFacts {
    /// Fact that is missing.
    type Missing;

    /// Check runs and commit statuses.
    ///
    /// # Errors
    /// The fact that has to be read first.
    fn checks(&self) -> Result<Vec<ObservedCheck>, Self::Missing>;

    /// Runs of GitHub Actions.
    ///
    /// # Errors
    /// The fact that has to be read first.
    fn runs(&self) -> Result<Vec<ObservedWorkflowRun>, Self::Missing>;

    /// Names of the checks that the base branch requires.
    ///
    /// # Errors
    /// The fact that has to be read first.
    fn required(&self) -> Result<Vec<String>, Self::Missing>;
}

/// Verdict on the checks of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckVerdict {
    /// Workflow runs start only after a maintainer approves them.
    AwaitsApproval,
    /// No check has reported.
    Absent,
    /// A check or a workflow run has not ended.
    Pending {
        /// True when only a workflow run has not ended.
        is_run: bool,
    },
    /// The last check ended a moment ago, and more may start.
    Settling {
        /// Remaining time.
        remaining: Duration,
    },
    /// A required check has not reported since the others ended.
    RequiredMissing {
        /// Name of the check.
        name: String,
        /// Time at which the last check ended.
        since: Timestamp,
    },
    /// At least one check failed.
    Failed,
    /// Every check passed, and every required one is among them.
    Passed,
}

/// Judges the checks of a commit.
///
/// # Errors
/// A fact that the caller has to read first.
pub fn judge_checks<F: CheckFacts>(
    facts: &F,
    limits: &HealthLimits,
    now: Timestamp,
) -> Result<CheckVerdict, F::Missing> {
    let checks = facts.checks()?;
    let result = combine_results(&checks);
    // Workflow runs that await approval have no check runs. Without this read, one green check would pass for all.
    if result != Some(CheckResult::Bad) {
        let runs = facts.runs()?;
        let has = |progress| runs.iter().any(|run| run.progress == progress);
        if has(WorkflowRunProgress::AwaitsApproval) {
            return Ok(CheckVerdict::AwaitsApproval);
        }
        if result.is_some() && has(WorkflowRunProgress::UnderWay) {
            return Ok(CheckVerdict::Pending { is_run: true });
        }
    }
    if checks.is_empty() {
        return Ok(CheckVerdict::Absent);
    }
    let Some(result) = result else {
        return Ok(CheckVerdict::Pending { is_run: false });
    };
    if let Some(open) = find_unsettled(&checks, facts, limits, now, result)? {
        return Ok(open);
    }
    Ok(match result {
        CheckResult::Bad => CheckVerdict::Failed,
        CheckResult::Good => CheckVerdict::Passed,
    })
}

/// Returns true when the unfinished checks of a draft may wait for its end: a check passed, none failed, and every
/// required one has begun.
pub fn can_wait_for_handover(checks: &[ObservedCheck], required: &[String]) -> bool {
    let has = |result| checks.iter().any(|check| check.result == Some(result));
    let has_begun = |name: &String| checks.iter().any(|check| check.name == *name);
    has(CheckResult::Good) && !has(CheckResult::Bad) && required.iter().all(has_begun)
}

/// Returns the time at which the last check ended. A time in the future is one of a wrong clock, and does not count.
pub fn find_last_end(checks: &[ObservedCheck], now: Timestamp) -> Option<Timestamp> {
    let ends = checks.iter().filter_map(|check| check.ended_at);
    ends.filter(|end| *end <= now).max()
}

/// Result of all checks together; absent for an empty list or while one has not ended.
fn combine_results(checks: &[ObservedCheck]) -> Option<CheckResult> {
    let results: Option<Vec<CheckResult>> = checks.iter().map(|check| check.result).collect();
    let results = results.filter(|results| !results.is_empty())?;
    Some(if results.contains(&CheckResult::Bad) {
        CheckResult::Bad
    } else {
        CheckResult::Good
    })
}

/// Reason why complete checks do not count yet: a finished check may start another, and a required check may not have
/// started.
///
/// A completion time in the future beyond the settle time is ignored as a wrong clock, and hides no other one.
fn find_unsettled<F: CheckFacts>(
    checks: &[ObservedCheck],
    facts: &F,
    limits: &HealthLimits,
    now: Timestamp,
    result: CheckResult,
) -> Result<Option<CheckVerdict>, F::Missing> {
    let ends = checks.iter().filter_map(|check| check.ended_at);
    let last = ends.filter(|end| end.since(now) <= limits.settle).max();
    let unknown_age = limits.required.max(limits.settle);
    let age = last.map_or(unknown_age, |last| now.since(last));
    if age < limits.settle {
        let remaining = (limits.settle - age).max(SHORTEST_WAIT);
        return Ok(Some(CheckVerdict::Settling { remaining }));
    }
    // A failure is repaired after the time for required checks, with or without them. Green checks never count
    // without them.
    if result == CheckResult::Bad && age >= limits.required {
        return Ok(None);
    }
    let is_missing = |name: &&String| !checks.iter().any(|check| check.name == **name);
    let required = facts.required()?;
    let missing = required.iter().find(is_missing);
    Ok(missing.map(|name| CheckVerdict::RequiredMissing {
        name: name.clone(),
        since: last.unwrap_or(now),
    }))
}

/// Checks of a snapshot, which lacks nothing.
pub(crate) struct SnapshotChecks<'a> {
    pub(crate) head: &'a HeadChecks,
    pub(crate) requirements: &'a BaseRequirements,
}

impl CheckFacts for SnapshotChecks<'_> {
    type Missing = Infallible;

    fn checks(&self) -> Result<Vec<ObservedCheck>, Infallible> {
        Ok(self.head.checks.clone())
    }

    fn runs(&self) -> Result<Vec<ObservedWorkflowRun>, Infallible> {
        Ok(self.head.runs.clone())
    }

    fn required(&self) -> Result<Vec<String>, Infallible> {
        Ok(self.requirements.checks.clone())
    }
}
