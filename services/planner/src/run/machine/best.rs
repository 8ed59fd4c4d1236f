//! The best proven state of a change. Work that goes on afterwards may end worse; then that state is delivered.

use domain::{CheckRow, Exit, PhaseOutput, Proof, Return, Snapshot, WorkspaceInfo};

use super::apply::{Applied, legal};
use super::{Checks, RunState};

/// A state that was proven.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    pub(crate) snapshot: Snapshot,
    /// What the phases from the work on had brought.
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
    /// The best state, where what stands now was proven to be worse.
    pub(crate) fn better(&self) -> Option<&Best> {
        let best = self.best.as_ref()?;
        let is_worse = is_worse(self.proof()?, best.proof()?);
        (is_worse && self.work().snapshot.as_ref() != Some(&best.snapshot)).then_some(best)
    }

    /// After a proof or a review.
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

    /// The workspace has the best state again.
    pub(super) fn went_back(&mut self, info: &WorkspaceInfo, snapshot: &Snapshot, position: u64) -> Applied {
        let best = self.better().filter(|best| best.snapshot == *snapshot).cloned();
        let best = best.ok_or("it is not the best state")?;
        legal(self.open_workspace().is_some(), "there is no workspace")?;
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

/// Whether one proof says less for its change than another: first what needs a person, then what is broken.
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
