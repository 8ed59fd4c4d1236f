//! Best verified state of a change. If later work makes the change worse, the run delivers this state.

use domain::{CheckRow, Exit, PhaseOutput, Proof, Return, Snapshot, WorkspaceInfo};

use super::apply::{Applied, legal};
use super::{Checks, RunState};

/// Verified state of a change.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    pub(crate) snapshot: Snapshot,
    /// Outputs of the phases from the work on.
    outputs: Vec<PhaseOutput>,
    checks: Checks,
}

impl Best {
    fn proof(&self) -> Option<&Proof> {
        self.outputs.iter().find_map(|output| match output {
            PhaseOutput::Prove { proof } => Some(&**proof),
            _ => None,
        })
    }
}

impl RunState {
    /// Returns the best state if the current one is verified as worse.
    pub(crate) fn better(&self) -> Option<&Best> {
        let best = self.best.as_ref()?;
        let is_worse = is_worse(self.proof()?, best.proof()?);
        (is_worse && self.work().snapshot.as_ref() != Some(&best.snapshot)).then_some(best)
    }

    /// Keeps the current state after a proof or a review, unless the kept one is better.
    pub(super) fn keep_best(&mut self) {
        let (Some(proof), Some(snapshot), false) =
            (self.proof(), self.work().snapshot.clone(), self.work().dirty)
        else {
            return;
        };
        let kept = self.best.as_ref().and_then(Best::proof);
        if kept.is_some_and(|kept| is_worse(proof, kept)) {
            return;
        }
        self.best = Some(Best {
            snapshot,
            outputs: self
                .outputs
                .iter()
                .filter(|output| is_about_the_change(output))
                .cloned()
                .collect(),
            checks: self.checks.clone(),
        });
    }

    /// Resets the run to the best state, which the workspace has again.
    pub(super) fn went_back(&mut self, info: &WorkspaceInfo, snapshot: &Snapshot, position: u64) -> Applied {
        let best = self.better().filter(|best| best.snapshot == *snapshot).cloned();
        let best = best.ok_or("it is not the best state")?;
        legal(self.open_workspace().is_some(), "there is no workspace")?;
        // The reason that the work ended early still holds, although its change is replaced.
        let ended_early = self.cut_short().cloned();
        self.outputs.retain(|output| !is_about_the_change(output));
        self.outputs.extend(
            best.outputs
                .iter()
                .cloned()
                .map(|output| match (output, &ended_early) {
                    (
                        PhaseOutput::Work {
                            exit: Exit::Finished(handover) | Exit::CutShort { handover, .. },
                        },
                        Some(reason),
                    ) => PhaseOutput::Work {
                        exit: Exit::CutShort {
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

fn is_about_the_change(output: &PhaseOutput) -> bool {
    !output.outlasts(&Return::NothingChanged)
}

/// Returns true if one proof is worse than another: first it needs a person, then checks fail, then its
/// level is lower.
fn is_worse(one: &Proof, other: &Proof) -> bool {
    let worth = |proof: &Proof| {
        (
            !proof.is_blocked(),
            !proof.rows.iter().any(CheckRow::is_worse),
            proof.level,
        )
    };
    worth(one) < worth(other)
}
