//! Checks of a change, as far as they are known.

use domain::CallId;
use domain::check::{ChangeReport, CheckCandidate, CheckSpec, CompletedCheck, TreeKind};

use super::legality::{ApplyResult, require_legal};

/// Checks of a run, by command and tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunChecks {
    /// Commands that may serve as checks, once they are searched.
    pub(crate) candidates: Option<Vec<CheckCandidate>>,
    pub(crate) runs: Vec<CheckRecord>,
    /// Inspection of the change, once it ran. The inner value is `None` if it failed.
    pub(crate) change: Option<Option<ChangeReport>>,
}

/// Check with its run.
#[derive(Clone, Debug)]
pub(crate) struct CheckRecord {
    pub(crate) id: CallId,
    pub(crate) spec: CheckSpec,
    pub(crate) run: Option<CompletedCheck>,
}

impl RunChecks {
    /// Returns the inspection of the change, if it succeeded.
    pub(crate) fn report(&self) -> Option<&ChangeReport> {
        self.change.as_ref()?.as_ref()
    }

    /// Returns the running check.
    pub(crate) fn open(&self) -> Option<&CheckRecord> {
        self.runs.iter().find(|check| check.run.is_none())
    }

    /// Returns the result of a check.
    pub(crate) fn result(&self, spec: &CheckSpec) -> Option<&CompletedCheck> {
        let found = self.runs.iter().find(|check| check.spec == *spec);
        found.and_then(|check| check.run.as_ref())
    }

    /// Forgets the results for the change, because they do not apply to a later one. Results for the base
    /// stay.
    pub(super) fn forget_change(&mut self) {
        self.change = None;
        self.runs.retain(|check| check.spec.tree == TreeKind::Base);
    }

    pub(super) fn found(&mut self, candidates: &[CheckCandidate]) -> ApplyResult {
        require_legal(self.candidates.is_none(), "checks were found already")?;
        self.candidates = Some(candidates.to_vec());
        Ok(())
    }

    pub(super) fn requested(&mut self, id: &CallId, check: &CheckSpec) -> ApplyResult {
        require_legal(self.open().is_none(), "a check is under way")?;
        self.runs.push(CheckRecord {
            id: id.clone(),
            spec: check.clone(),
            run: None,
        });
        Ok(())
    }

    pub(super) fn completed(&mut self, id: &CallId, run: &CompletedCheck) -> ApplyResult {
        let open = self.runs.iter_mut().find(|check| check.run.is_none());
        let open = open
            .filter(|check| check.id == *id)
            .ok_or("this check does not run")?;
        open.run = Some(run.clone());
        Ok(())
    }

    pub(super) fn change_inspected(&mut self, report: Option<&ChangeReport>) -> ApplyResult {
        require_legal(self.change.is_none(), "the change was looked at already")?;
        self.change = Some(report.cloned());
        Ok(())
    }
}
