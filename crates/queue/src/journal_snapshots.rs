//! Snapshots that journals name: which of them a run still needs.

use std::collections::HashMap;

use domain::{Entry, Fact, PhaseOutput, ReportId, ReportOutcome, ReportRequest, RepositoryName, Snapshot};

/// Packs of all runs, read from their journals in order.
#[derive(Debug, Default)]
pub(crate) struct JournalSnapshots {
    runs: HashMap<String, RunSnapshots>,
}

#[derive(Debug, Default)]
struct RunSnapshots {
    /// The last one of each repository; absent: the run's own.
    last: Vec<(Option<RepositoryName>, String)>,
    /// Those that a proof or a review was about: the run may go back to one of them.
    proven: Vec<String>,
    /// Those that the reporter has been asked to push.
    reported: Vec<(ReportId, String)>,
}

impl RunSnapshots {
    fn take(&mut self, repository: Option<&RepositoryName>, snapshot: &Snapshot) {
        let pack = snapshot.pack.sha256.clone();
        match self.last.iter_mut().find(|(of, _)| of.as_ref() == repository) {
            Some((_, last)) => *last = pack,
            None => self.last.push((repository.cloned(), pack)),
        }
    }
}

impl JournalSnapshots {
    /// Takes an entry in. False: it is not about snapshots, so whatever it names is needed.
    pub(crate) fn take_in(&mut self, journal: &str, entry: &Entry) -> bool {
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
                    ReportRequest::PushBranch(push) => &push.pack,
                    ReportRequest::DecisionNeeded(proposal) => &proposal.push.pack,
                    _ => return false,
                };
                run.reported.push((id.clone(), pack.sha256.clone()));
            }
            // One that failed may come back from the dead letters.
            Fact::ReportSettled {
                id,
                outcome: ReportOutcome::Done(_) | ReportOutcome::Refused(_),
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
            Fact::RunFinished { .. } => {
                run.proven.clear();
                return false;
            }
            _ => return false,
        }
        true
    }

    /// The packs that runs need, by name.
    pub(crate) fn into_needed(self) -> impl Iterator<Item = String> {
        self.runs.into_values().flat_map(|run| {
            let last = run.last.into_iter().map(|(_, pack)| pack);
            let reported = run.reported.into_iter().map(|(_, pack)| pack);
            last.chain(run.proven).chain(reported)
        })
    }
}
