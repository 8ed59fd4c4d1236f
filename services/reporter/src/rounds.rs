//! The rounds of work on a ticket's pull request, as people see them. Derived from reports; nothing decides by them.

use domain::{
    CommitId, Dollars, Job, PullRequestRef, Report, ReportRequest, RepositoryName, RunId, Timestamp,
    report::Begun, report::Progress,
};
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
    /// Work on the branch starts, or goes on because somebody wants it.
    Begun(Begun),
    /// A commit is on the branch.
    Pushed {
        /// The branch; absent: the one that is known.
        branch: Option<String>,
        head: CommitId,
        /// Who pushed; absent: we did.
        by: Option<String>,
    },
    /// The pull request is open.
    Opened,
    /// Checks of a commit are complete.
    Checked {
        head: CommitId,
        result: Checked,
        /// The page of the CI run; empty: there is none.
        page: String,
    },
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
    /// The page of the CI run that says so; empty: there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) page: String,
    /// How many tries failed.
    #[serde(default)]
    pub(crate) failures: u32,
    /// What it began with.
    #[serde(default, skip_serializing_if = "Begun::is_unknown")]
    pub(crate) begun: Begun,
    /// Whether somebody asked for the work once more with it: failures are counted anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_reset: bool,
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
    /// Its page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) url: String,
    /// What failed last, and when.
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

    /// How many tries and checks failed in a row: since checks passed last, or somebody asked for the work once more.
    pub(crate) fn failures(&self) -> u32 {
        let mut count = 0;
        for round in self.rows.iter().rev() {
            if round.checked == Some(Checked::Passed) {
                break;
            }
            count += round.failures + u32::from(round.checked == Some(Checked::Failed));
            if round.is_reset {
                break;
            }
        }
        count
    }

    /// Takes in what a report says.
    pub(crate) fn note(&mut self, report: &Report, made: &Made, event: &RoundEvent) {
        match event {
            RoundEvent::Begun(begun) => self.begin(report, begun),
            RoundEvent::Pushed { branch, head, by } => {
                let Some(round) = self.round_of(report) else {
                    return;
                };
                round.commit = Some(head.clone());
                if by.is_some() {
                    round.begun.by.clone_from(by);
                }
                if branch.is_some() {
                    self.branch.clone_from(branch);
                }
            }
            RoundEvent::Opened => {
                if self.round_of(report).is_some() {
                    self.opened(made.pull_request.as_ref());
                }
            }
            RoundEvent::Checked { head, result, page } => self.check(head, *result, page, report.at),
            RoundEvent::Failed { reason } => {
                let Some(round) = self.round_of(report) else {
                    return;
                };
                round.failures += 1;
                self.fail(reason, report.at);
            }
        }
    }

    fn check(&mut self, head: &CommitId, result: Checked, page: &str, at: Timestamp) {
        let mut rows = self.rows.iter_mut().rev();
        let Some(round) = rows.find(|round| round.commit.as_ref() == Some(head)) else {
            return;
        };
        round.checked = Some(result);
        page.clone_into(&mut round.page);
        if result == Checked::Failed {
            self.fail("ci", at);
        }
    }

    /// A row for a run that starts; another one for a run that goes on because somebody wants it.
    fn begin(&mut self, report: &Report, begun: &Begun) {
        let (Some(run), Some(progress), Some(position)) =
            (report.run.as_ref(), report.progress, report.id.position())
        else {
            return;
        };
        let known = self.rows.iter().rfind(|round| round.run == *run);
        if known.is_some_and(|round| !begun.is_again || position <= round.noted) {
            return;
        }
        // A repair is the only word of the checks that made it start.
        if let Some(failed) = &begun.failed_on {
            self.check(&failed.head, Checked::Failed, &failed.page, report.at);
        }
        let is_reset = begun.is_again || (progress.job == Job::Implement && !self.rows.is_empty());
        let row = self.add(run, progress.job);
        (row.begun, row.is_reset) = (begun.clone(), is_reset);
        (row.noted, row.cost) = (position, progress.cost);
    }

    fn opened(&mut self, opened: Option<&PullRequestRef>) {
        if let Some(opened) = opened {
            self.number = Some(opened.number);
            self.url.clone_from(&opened.url);
        }
    }

    /// A report that comes again says nothing new.
    fn fail(&mut self, what: &str, at: Timestamp) {
        if self.failed.as_ref().is_none_or(|(_, known)| *known <= at) {
            self.failed = Some((what.to_owned(), at));
        }
    }

    fn add(&mut self, run: &RunId, job: Job) -> &mut Round {
        if self.rows.len() == MAX_ROUNDS {
            self.rows.remove(0);
            self.dropped += 1;
        }
        let at = self.rows.len();
        self.rows.push(Round {
            run: run.clone(),
            job,
            commit: None,
            checked: None,
            page: String::new(),
            failures: 0,
            begun: Begun::default(),
            is_reset: false,
            cost: None,
            noted: 0,
        });
        &mut self.rows[at]
    }

    /// The last row of the run that asked, with what it has spent; absent for a report that was taken in before.
    fn round_of(&mut self, report: &Report) -> Option<&mut Round> {
        let progress = report.progress.or_else(|| of_others(&report.request));
        let (run, progress) = (report.run.as_ref()?, progress?);
        let position = report.id.position()?;
        if !self.rows.iter().any(|round| round.run == *run) {
            self.add(run, progress.job);
        }
        let round = self.rows.iter_mut().rfind(|round| round.run == *run)?;
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

/// A push by somebody else is no work of ours, so its report tells of no progress.
fn of_others(request: &ReportRequest) -> Option<Progress> {
    matches!(request, ReportRequest::PushedByOthers(_)).then_some(Progress {
        clone_percent: None,
        job: Job::BackToDraft,
        phase: None,
        cost: Some(Dollars::from_micros(0)),
    })
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
