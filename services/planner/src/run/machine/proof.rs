//! What is known of a change's checks.

use domain::check::{ChangeReport, CheckCandidate, CheckRun, CheckSpec, TreeKind};
use domain::{CallId, Fact};

use super::apply::{Applied, legal};

/// The checks of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    /// Commands that may serve as checks, once they were looked for.
    pub(crate) candidates: Option<Vec<CheckCandidate>>,
    pub(crate) runs: Vec<Check>,
    /// What the change amounts to, once it was looked at; within: when that could be told.
    pub(crate) change: Option<Option<ChangeReport>>,
}

/// One check.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) id: CallId,
    pub(crate) spec: CheckSpec,
    pub(crate) run: Option<CheckRun>,
}

impl Checks {
    /// What the change amounts to, when that could be told.
    pub(crate) fn report(&self) -> Option<&ChangeReport> {
        self.change.as_ref()?.as_ref()
    }

    /// The check under way.
    pub(crate) fn open(&self) -> Option<&Check> {
        self.runs.iter().find(|check| check.run.is_none())
    }

    /// How a check ended.
    pub(crate) fn result(&self, spec: &CheckSpec) -> Option<&CheckRun> {
        let found = self.runs.iter().find(|check| check.spec == *spec);
        found.and_then(|check| check.run.as_ref())
    }

    /// What was shown of a change says nothing of a later one; the base stays as it is.
    pub(super) fn forget_change(&mut self) {
        self.change = None;
        self.runs.retain(|check| check.spec.tree == TreeKind::Base);
    }

    pub(super) fn apply(&mut self, fact: &Fact) -> Applied {
        match fact {
            Fact::ChecksFound { candidates } => {
                legal(self.candidates.is_none(), "checks were found already")?;
                self.candidates = Some(candidates.clone());
            }
            Fact::CheckRequested { id, check } => {
                legal(self.open().is_none(), "a check is under way")?;
                self.runs.push(Check {
                    id: id.clone(),
                    spec: check.clone(),
                    run: None,
                });
            }
            Fact::CheckRan { id, run } => {
                let open = self.runs.iter_mut().find(|check| check.run.is_none());
                let open = open
                    .filter(|check| check.id == *id)
                    .ok_or("this check does not run")?;
                open.run = Some((**run).clone());
            }
            Fact::ChangeInspected { report } => {
                legal(self.change.is_none(), "the change was looked at already")?;
                self.change = Some(report.as_deref().cloned());
            }
            _ => return Err("it is not about checks"),
        }
        Ok(())
    }
}
