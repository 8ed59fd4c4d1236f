//! The rounds of work on a ticket's pull request, as people see them. Derived from reports; nothing decides by them.

use domain::{CommitId, Dollars, Job, Report, RepositoryName, RunId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::made::Made;

/// More than these are not kept.
const MAX_ROUNDS: usize = 50;

/// What came of the checks of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Checked {
    /// All passed.
    Passed,
    /// Some failed.
    Failed,
    /// None reports.
    Absent,
}

/// What a report says of the rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RoundEvent {
    /// A commit is on the branch.
    Pushed {
        /// The branch; absent: the one that is known.
        branch: Option<String>,
        head: CommitId,
    },
    /// The pull request is open.
    Opened,
    /// Checks of a commit are complete.
    Checked { head: CommitId, result: Checked },
    /// A run failed, or a try of it.
    Failed {
        /// The name of the reason.
        reason: &'static str,
    },
}

/// One run that worked on the branch, or a push by somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) run: RunId,
    pub(crate) job: Job,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<CommitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checked: Option<Checked>,
    #[serde(default)]
    pub(crate) failures: u32,
    /// Absent where the price of a model is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Dollars>,
    /// The position of the report that was taken in last: one that comes again says nothing new.
    #[serde(default)]
    pub(crate) noted: u64,
}

/// All rounds of a ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rounds {
    /// Oldest first.
    pub(crate) rows: Vec<Round>,
    /// How many rounds there were before the first row.
    #[serde(default)]
    pub(crate) dropped: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// The pull request that was opened last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u64>,
    /// Why the last try failed, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<(String, Timestamp)>,
    /// Our check run on the last commit, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_run: Option<(CommitId, u64)>,
}

/// Where the rounds are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownOn {
    pub(crate) repository: RepositoryName,
    pub(crate) head: CommitId,
    /// The check run that is there.
    pub(crate) check_run: Option<u64>,
}

impl Rounds {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How many rounds there were.
    pub(crate) fn count(&self) -> usize {
        self.dropped + self.rows.len()
    }

    /// How many tries of the last round failed; another round begins anew.
    pub(crate) fn failures(&self) -> u32 {
        self.rows.last().map_or(0, |round| round.failures)
    }

    /// Takes in what a report says.
    pub(crate) fn note(&mut self, report: &Report, made: &Made, event: &RoundEvent) {
        match event {
            RoundEvent::Pushed { branch, head } => {
                let Some(round) = self.round_of(report) else {
                    return;
                };
                round.commit = Some(head.clone());
                if branch.is_some() {
                    self.branch.clone_from(branch);
                }
            }
            RoundEvent::Opened => {
                let opened = made.pull_request.as_ref().map(|opened| opened.number);
                if self.round_of(report).is_some() {
                    self.number = opened.or(self.number);
                }
            }
            RoundEvent::Checked { head, result } => {
                let mut rows = self.rows.iter_mut().rev();
                if let Some(round) = rows.find(|round| round.commit.as_ref() == Some(head)) {
                    round.checked = Some(*result);
                }
            }
            RoundEvent::Failed { reason } => {
                let Some(round) = self.round_of(report) else {
                    return;
                };
                round.failures += 1;
                self.failed = Some(((*reason).to_owned(), report.at));
            }
        }
    }

    /// The row of the run that asked, with what it has spent; absent for a report that was taken in before.
    fn round_of(&mut self, report: &Report) -> Option<&mut Round> {
        let (run, progress) = (report.run.as_ref()?, report.progress?);
        let position = report.id.position()?;
        let known = self.rows.iter().position(|round| round.run == *run);
        let index = known.unwrap_or_else(|| {
            if self.rows.len() == MAX_ROUNDS {
                self.rows.remove(0);
                self.dropped += 1;
            }
            self.rows.push(Round {
                run: run.clone(),
                job: progress.job,
                commit: None,
                checked: None,
                failures: 0,
                cost: None,
                noted: 0,
            });
            self.rows.len() - 1
        });
        let round = self.rows.get_mut(index)?;
        if position <= round.noted {
            return None;
        }
        (round.noted, round.cost) = (position, progress.cost);
        Some(round)
    }

    /// The last commit of an open pull request in the repository; absent before there is one.
    pub(crate) fn shown_on(&self, repository: Option<&RepositoryName>) -> Option<ShownOn> {
        self.number?;
        let head = self.rows.iter().rev().find_map(|round| round.commit.clone())?;
        let known = self.check_run.as_ref().filter(|(on, _)| *on == head);
        Some(ShownOn {
            repository: repository?.clone(),
            check_run: known.map(|(_, id)| *id),
            head,
        })
    }
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
