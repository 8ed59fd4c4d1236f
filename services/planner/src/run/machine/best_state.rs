//! Best verified state of a change. If later work makes the change worse, the run delivers this state.

use domain::{
    ChangeProof, CheckRow, ExecutorWorkspace, PhaseOutput, ReturnReason, WorkExit, WorkspaceSnapshot,
};

use super::transitions::{ApplyResult, require_legal};
use super::{PlannerRunState, RunChecks};

/// Verified state of a change.
#[derive(Clone, Debug)]
pub(crate) struct BestState {
    pub(crate) snapshot: WorkspaceSnapshot,
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

impl PlannerRunState {
    /// Returns the best state if the current one is verified as worse.
    pub(crate) fn better(&self) -> Option<&BestState> {
        let best = self.best.as_ref()?;
        let is_worse = is_worse_proof(self.proof()?, best.proof()?);
        (is_worse && self.work().snapshot.as_ref() != Some(&best.snapshot)).then_some(best)
    }

    /// Keeps the current state after a proof or a review, unless the kept one is better.
    pub(super) fn keep_best(&mut self) {
        let (Some(proof), Some(snapshot), false) =
            (self.proof(), self.work().snapshot.clone(), self.work().dirty)
        else {
            return;
        };
        let kept = self.best.as_ref().and_then(BestState::proof);
        if kept.is_some_and(|kept| is_worse_proof(proof, kept)) {
            return;
        }
        self.best = Some(BestState {
            snapshot,
            outputs: self
                .outputs
                .iter()
                .filter(|output| is_change_output(output))
                .cloned()
                .collect(),
            checks: self.checks.clone(),
        });
    }

    /// Resets the run to the best state, which the workspace has again.
    pub(super) fn went_back(
        &mut self,
        info: &ExecutorWorkspace,
        snapshot: &WorkspaceSnapshot,
        position: u64,
    ) -> ApplyResult {
        let best = self.better().filter(|best| best.snapshot == *snapshot).cloned();
        let best = best.ok_or("it is not the best state")?;
        require_legal(self.open_workspace().is_some(), "there is no workspace")?;
        // The reason that the work ended early still holds, although its change is replaced.
        let ended_early = self.cut_short().cloned();
        self.outputs.retain(|output| !is_change_output(output));
        self.outputs.extend(
            best.outputs
                .iter()
                .cloned()
                .map(|output| match (output, &ended_early) {
                    (
                        PhaseOutput::Work {
                            exit: WorkExit::Finished(handover) | WorkExit::CutShort { handover, .. },
                        },
                        Some(reason),
                    ) => PhaseOutput::Work {
                        exit: WorkExit::CutShort {
                            reason: Box::new(reason.clone()),
                            handover,
                        },
                    },
                    (output, _) => output,
                }),
        );
        self.checks = best.checks;
        self.own.clear();
        self.settled = position;
        self.went_back = true;
        self.work_in(None)?.went_back(info, snapshot, position);
        Ok(())
    }
}

fn is_change_output(output: &PhaseOutput) -> bool {
    !output.outlasts(&ReturnReason::NothingChanged)
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
