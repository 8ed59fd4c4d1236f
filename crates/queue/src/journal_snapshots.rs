//! Snapshots in journals that a run still needs, for the collection of objects.

use std::collections::HashMap;

use domain::{
    Fact, JournalEntry, OutboundAction, OutboundId, OutboundOutcome, PhaseOutput, RepositoryName,
    WorkspaceSnapshot,
};

/// Packs of all runs, read from their journals in order.
#[derive(Debug, Default)]
pub(crate) struct JournalSnapshots {
    runs: HashMap<String, RunSnapshots>,
}

#[derive(Debug, Default)]
struct RunSnapshots {
    /// Last pack of each repository; the key is absent for the run's own repository.
    last: Vec<(Option<RepositoryName>, String)>,
    /// Packs that a proof or a review covered. The run may return to one of them.
    proven: Vec<String>,
    /// Packs that the reporter has been asked to push and has not settled yet.
    reported: Vec<(OutboundId, String)>,
}

impl RunSnapshots {
    fn take(&mut self, repository: Option<&RepositoryName>, snapshot: &WorkspaceSnapshot) {
        let pack = snapshot.pack.sha256.clone();
        match self.last.iter_mut().find(|(of, _)| of.as_ref() == repository) {
            Some((_, last)) => *last = pack,
            None => self.last.push((repository.cloned(), pack)),
        }
    }
}

impl JournalSnapshots {
    /// Reads an entry. Returns false when it is not about snapshots, so that every object that it names is
    /// needed.
    pub(crate) fn take_in(&mut self, journal: &str, entry: &JournalEntry) -> bool {
        let run = self.runs.entry(journal.to_owned()).or_default();
        match &entry.fact {
            Fact::SnapshotTaken { snapshot, repository }
            | Fact::WorkspaceRestored {
                snapshot: Some(snapshot),
                repository,
                ..
            } => run.take(repository.as_ref(), snapshot),
            Fact::WentBack { snapshot, .. } => run.take(None, snapshot),
            Fact::ReportRequested { id, request, .. } => {
                let pack = match request {
                    OutboundAction::PushBranch(push) => &push.pack,
                    OutboundAction::DecisionNeeded(proposal) => &proposal.push.pack,
                    _ => return false,
                };
                run.reported.push((id.clone(), pack.sha256.clone()));
            }
            // A failed report may be revived from the dead letters, so its pack stays.
            Fact::ReportSettled {
                id,
                outcome: OutboundOutcome::Done(_) | OutboundOutcome::Refused(_),
            } => {
                run.reported.retain(|(report, _)| report != id);
                return false;
            }
            Fact::PhaseFinished {
                output: PhaseOutput::Prove { .. } | PhaseOutput::Review { .. },
            } => {
                let last = run.last.iter().map(|(_, pack)| pack.clone());
                run.proven.extend(last);
                return false;
            }
            // A finished run returns to no earlier state.
            Fact::RunFinished { .. } => {
                run.proven.clear();
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Names of the packs that runs need.
    pub(crate) fn into_needed(self) -> impl Iterator<Item = String> {
        self.runs.into_values().flat_map(|run| {
            let last = run.last.into_iter().map(|(_, pack)| pack);
            let reported = run.reported.into_iter().map(|(_, pack)| pack);
            last.chain(run.proven).chain(reported)
        })
    }
}
