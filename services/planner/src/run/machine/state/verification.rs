//! Verification of a change: its checks, and its best verified state. If later work makes the change worse,
//! the run delivers that state.

use domain::check::{ChangeReport, CheckCandidate, CheckSpec, CompletedCheck, TreeKind};
use domain::{CallId, ChangeProof, CheckRow, PhaseOutput, ReturnReason, WorkspaceSnapshot};

use super::outputs::{OutputState, PhaseResult};
use super::work::RepositoryWork;
use super::{ApplyResult, require_legal};

/// Checks of a change, and its best verified state.
#[derive(Clone, Debug, Default)]
pub(crate) struct VerificationState {
    checks: RunChecks,
    /// Best verified state since users last changed their request.
    best: Option<BestState>,
    /// True if the run delivers the best state because the work ended worse.
    went_back: bool,
    /// Results on the base from before the work. The first message to the model contains them, so later ones
    /// do not count.
    early_base_results: Vec<CompletedCheck>,
}

/// Verified state of a change.
#[derive(Clone, Debug)]
struct BestState {
    snapshot: WorkspaceSnapshot,
    /// Outputs of the phases from the work on.
    outputs: Vec<PhaseOutput>,
    checks: RunChecks,
}

impl BestState {
    fn proof(&self) -> Option<&ChangeProof> {
        self.outputs.iter().find_map(|output| match output {
            PhaseOutput::Prove { proof } => Some(&**proof),
            _ => None,
        })
    }
}

impl VerificationState {
    /// Restarts the work: nothing is verified of a change on another head.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns the checks of the change.
    pub(crate) const fn checks(&self) -> &RunChecks {
        &self.checks
    }

    /// Returns the snapshot of the best verified state.
    pub(crate) fn best(&self) -> Option<&WorkspaceSnapshot> {
        self.best.as_ref().map(|best| &best.snapshot)
    }

    /// Returns the snapshot of the best verified state if the current one is verified as worse.
    pub(crate) fn better(&self, outputs: &OutputState, work: &RepositoryWork) -> Option<&WorkspaceSnapshot> {
        let best = self.best.as_ref()?;
        let is_worse = is_worse_proof(outputs.proof()?, best.proof()?);
        (is_worse && work.snapshot.as_ref() != Some(&best.snapshot)).then_some(&best.snapshot)
    }

    /// Returns true if the run delivers the best state because the work ended worse.
    pub(crate) const fn went_back(&self) -> bool {
        self.went_back
    }

    /// Returns the results on the base from before the work.
    pub(crate) fn early_base_results(&self) -> &[CompletedCheck] {
        &self.early_base_results
    }

    /// Records the result of a check. `is_early`: the work has not begun.
    pub(super) fn check_completed(
        &mut self,
        id: &CallId,
        run: &CompletedCheck,
        is_early: bool,
    ) -> ApplyResult {
        self.checks.completed(id, run)?;
        if is_early && run.tree_kind == TreeKind::Base {
            self.early_base_results.push(run.clone());
        }
        Ok(())
    }

    pub(super) const fn checks_mut(&mut self) -> &mut RunChecks {
        &mut self.checks
    }

    /// Keeps the current state after a proof or a review, unless the kept one is better.
    pub(super) fn phase_finished(
        &mut self,
        output: &PhaseOutput,
        outputs: &OutputState,
        work: &RepositoryWork,
    ) {
        if !matches!(output, PhaseOutput::Prove { .. } | PhaseOutput::Review { .. }) || work.dirty {
            return;
        }
        let (Some(proof), Some(snapshot)) = (outputs.proof(), &work.snapshot) else {
            return;
        };
        let kept = self.best.as_ref().and_then(BestState::proof);
        if kept.is_some_and(|kept| is_worse_proof(proof, kept)) {
            return;
        }
        self.best = Some(BestState {
            snapshot: snapshot.clone(),
            outputs: outputs.of_change(),
            checks: self.checks.clone(),
        });
    }

    /// Forgets the results for the change, because the run returns to the work.
    pub(super) fn returned(&mut self, why: &ReturnReason) {
        if matches!(why, ReturnReason::Feedback { .. } | ReturnReason::Replan { .. }) {
            // The request of users has changed, so the best state of the old request does not count.
            self.best = None;
        }
        // The next work is judged again, even if an earlier one was replaced by the best state.
        self.went_back = false;
        self.checks.forget_change();
    }

    /// Resets the checks to the best state, which the workspace has again, and returns its outputs.
    pub(super) fn restore_best(
        &mut self,
        snapshot: &WorkspaceSnapshot,
        outputs: &OutputState,
        work: &RepositoryWork,
    ) -> Result<Vec<PhaseOutput>, &'static str> {
        let is_best = self.better(outputs, work) == Some(snapshot);
        let best = self.best.as_ref().filter(|_| is_best);
        let best = best.ok_or("it is not the best state")?;
        self.checks = best.checks.clone();
        self.went_back = true;
        Ok(best.outputs.clone())
    }
}

/// Returns true if one proof is worse than another: first it needs a person, then checks fail, then its
/// level is lower.
fn is_worse_proof(one: &ChangeProof, other: &ChangeProof) -> bool {
    let worth = |proof: &ChangeProof| {
        (
            !proof.is_blocked(),
            !proof.rows.iter().any(CheckRow::is_worse),
            proof.level,
        )
    };
    worth(one) < worth(other)
}

/// Checks of a run, by command and tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunChecks {
    /// Commands that may serve as checks, once they are searched.
    pub(crate) candidates: Option<Vec<CheckCandidate>>,
    pub(crate) runs: Vec<CheckRecord>,
    /// Inspection of the change; missing if it failed.
    pub(crate) change: PhaseResult<ChangeReport>,
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
        match &self.change {
            PhaseResult::Present(report) => Some(report),
            PhaseResult::Pending | PhaseResult::Missing => None,
        }
    }

    /// Returns the running checks, in the order of their requests.
    pub(crate) fn open(&self) -> impl Iterator<Item = &CheckRecord> {
        self.runs.iter().filter(|check| check.run.is_none())
    }

    /// Returns true if a check is requested and has no result yet.
    pub(crate) fn is_open(&self, spec: &CheckSpec) -> bool {
        self.open().any(|check| check.spec == *spec)
    }

    /// Returns the result of a check.
    pub(crate) fn result(&self, spec: &CheckSpec) -> Option<&CompletedCheck> {
        let found = self.runs.iter().find(|check| check.spec == *spec);
        found.and_then(|check| check.run.as_ref())
    }

    /// Forgets the results for the change, because they do not apply to a later one. Results for the base
    /// stay.
    pub(super) fn forget_change(&mut self) {
        self.change = PhaseResult::Pending;
        self.runs.retain(|check| check.spec.tree == TreeKind::Base);
    }

    pub(super) fn found(&mut self, candidates: &[CheckCandidate]) -> ApplyResult {
        require_legal(self.candidates.is_none(), "checks were found already")?;
        self.candidates = Some(candidates.to_vec());
        Ok(())
    }

    pub(super) fn requested(&mut self, id: &CallId, check: &CheckSpec) -> ApplyResult {
        let is_open = self.open().any(|open| open.id == *id || open.spec == *check);
        require_legal(!is_open, "this check is under way")?;
        self.runs.push(CheckRecord {
            id: id.clone(),
            spec: check.clone(),
            run: None,
        });
        Ok(())
    }

    pub(super) fn completed(&mut self, id: &CallId, run: &CompletedCheck) -> ApplyResult {
        let mut open = self.runs.iter_mut().filter(|check| check.run.is_none());
        let open = open
            .find(|check| check.id == *id)
            .ok_or("this check does not run")?;
        open.run = Some(run.clone());
        Ok(())
    }

    pub(super) fn change_inspected(&mut self, report: Option<&ChangeReport>) -> ApplyResult {
        require_legal(self.change.is_pending(), "the change was inspected already")?;
        self.change = PhaseResult::finished(report.cloned());
        Ok(())
    }
}
