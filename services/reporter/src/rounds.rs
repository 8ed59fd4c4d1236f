//! Rounds of work on a ticket's pull request, for display. They are derived from reports, and no decision uses them.

use domain::{
    CommitId, Dollars, Job, OutboundAction, OutboundRequest, PullRequestEvent, PullRequestRef,
    RepositoryName, RunId, Timestamp, report::JobProgress, report::WorkOrigin,
};
use serde::{Deserialize, Serialize};

use crate::receipt::{EffectReceipts, PushedHead};

// Number of the newest rounds that are kept.
const MAX_ROUNDS: usize = 50;

/// Result of a commit's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChecksResult {
    /// All checks passed.
    Passed,
    /// At least one check failed.
    Failed,
    /// No check reports.
    Absent,
}

/// Event of a round of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RoundEvent {
    /// Work on the branch starts, or continues at a person's request.
    Begun(WorkOrigin),
    /// A commit was pushed to the branch.
    Pushed {
        /// Name of the branch; absent: the recorded one.
        branch: Option<String>,
        head: CommitId,
        /// Author of the push; absent: our account.
        by: Option<String>,
    },
    /// The pull request is open.
    Opened,
    /// The checks of a commit are complete.
    Checked {
        head: CommitId,
        result: ChecksResult,
        /// Page of the CI run; empty if unknown.
        page: String,
    },
    /// A run or one of its tries failed.
    Failed {
        /// Name of the stop reason.
        reason: &'static str,
    },
}

/// One run that worked on the branch, or a push by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkRound {
    pub(crate) run: RunId,
    pub(crate) job: Job,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<CommitId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checked: Option<ChecksResult>,
    /// Page of the CI run with the result; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) page: String,
    /// Number of failed tries.
    #[serde(default)]
    pub(crate) failures: u32,
    /// Cause of the round.
    #[serde(default, skip_serializing_if = "WorkOrigin::is_unknown")]
    pub(crate) begun: WorkOrigin,
    /// True if a person requested the work again with this round. The count of failures restarts here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_reset: bool,
    /// Absent if a model has no known price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<Dollars>,
    /// Position of the last report that changed the round. A repeated report has no effect.
    #[serde(default)]
    pub(crate) noted: u64,
}

/// All rounds of a ticket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkRounds {
    /// Rounds, oldest first.
    pub(crate) rows: Vec<WorkRound>,
    /// Number of dropped rounds before the first row.
    #[serde(default)]
    pub(crate) dropped: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// Number of the pull request that was opened last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) number: Option<u64>,
    /// Page of the pull request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) url: String,
    /// The last failure and its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<(String, Timestamp)>,
    /// Commit and id of our check run on the last commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) check_run: Option<(CommitId, u64)>,
}

/// Commit on which the rounds are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownOn {
    pub(crate) repository: RepositoryName,
    pub(crate) head: CommitId,
    /// Id of the existing check run.
    pub(crate) check_run: Option<u64>,
}

impl WorkRounds {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the number of all rounds, with dropped ones.
    pub(crate) fn count(&self) -> usize {
        self.dropped + self.rows.len()
    }

    /// Returns the number of consecutive failed tries and checks, since the last passed checks or the last request
    /// for the work.
    pub(crate) fn failures(&self) -> u32 {
        let mut count = 0;
        for round in self.rows.iter().rev() {
            if round.checked == Some(ChecksResult::Passed) {
                break;
            }
            count += round.failures + u32::from(round.checked == Some(ChecksResult::Failed));
            if round.is_reset {
                break;
            }
        }
        count
    }

    /// Updates the rounds by a report.
    pub(crate) fn note(&mut self, report: &OutboundRequest, receipts: &EffectReceipts, event: &RoundEvent) {
        match event {
            RoundEvent::Begun(begun) => self.begin(report, begun),
            RoundEvent::Pushed { branch, head, by } => {
                let Some(round) = self.round_of(report) else {
                    return;
                };
                // A signed commit has another id at the remote.
                let pushed = receipts.last::<PushedHead>().map(|pushed| &pushed.0);
                round.commit = Some(pushed.unwrap_or(head).clone());
                if by.is_some() {
                    round.begun.by.clone_from(by);
                }
                if branch.is_some() {
                    self.branch.clone_from(branch);
                }
            }
            RoundEvent::Opened => {
                if self.round_of(report).is_some() {
                    self.opened(receipts.last());
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

    fn check(&mut self, head: &CommitId, result: ChecksResult, page: &str, at: Timestamp) {
        let mut rows = self.rows.iter_mut().rev();
        let Some(round) = rows.find(|round| round.commit.as_ref() == Some(head)) else {
            return;
        };
        round.checked = Some(result);
        page.clone_into(&mut round.page);
        // The state for programs names the checks of CI as "ci".
        if result == ChecksResult::Failed {
            self.fail("ci", at);
        }
    }

    /// Adds a row for a run that starts, and a further one for a run that continues at a person's request.
    fn begin(&mut self, report: &OutboundRequest, begun: &WorkOrigin) {
        let (Some(run), Some(progress), Some(position)) =
            (report.run.as_ref(), report.progress, report.id.position())
        else {
            return;
        };
        let known = self.rows.iter().rfind(|round| round.run == *run);
        if known.is_some_and(|round| !begun.is_again || position <= round.noted) {
            return;
        }
        // No other report names the checks that caused a repair.
        if let Some(failed) = &begun.failed_on {
            self.check(&failed.head, ChecksResult::Failed, &failed.page, report.at);
        }
        // New work for a ticket with earlier rounds is a request of a person as well.
        let is_reset = begun.is_again || (progress.job == Job::Implement && !self.rows.is_empty());
        let row = self.add(run, progress.job);
        row.is_reset = is_reset;
        row.begun = WorkOrigin {
            // The comment about the start names them once.
            omitted: Vec::new(),
            ..begun.clone()
        };
        (row.noted, row.cost) = (position, progress.cost);
    }

    fn opened(&mut self, opened: Option<&PullRequestRef>) {
        if let Some(opened) = opened {
            self.number = Some(opened.number);
            self.url.clone_from(&opened.url);
        }
    }

    /// Records a failure, unless a later one is recorded. Reports can be repeated.
    fn fail(&mut self, what: &str, at: Timestamp) {
        if self.failed.as_ref().is_none_or(|(_, known)| *known <= at) {
            self.failed = Some((what.to_owned(), at));
        }
    }

    fn add(&mut self, run: &RunId, job: Job) -> &mut WorkRound {
        if self.rows.len() == MAX_ROUNDS {
            self.rows.remove(0);
            self.dropped += 1;
        }
        let at = self.rows.len();
        self.rows.push(WorkRound {
            run: run.clone(),
            job,
            commit: None,
            checked: None,
            page: String::new(),
            failures: 0,
            begun: WorkOrigin::default(),
            is_reset: false,
            cost: None,
            noted: 0,
        });
        &mut self.rows[at]
    }

    /// Returns the last row of the report's run, with its cost updated; `None` for a repeated report.
    fn round_of(&mut self, report: &OutboundRequest) -> Option<&mut WorkRound> {
        let progress = report.progress.or_else(|| of_others(&report.request));
        let (run, progress) = (report.run.as_ref()?, progress?);
        let position = report.id.position()?;
        if !self.rows.iter().any(|round| round.run == *run) {
            self.add(run, progress.job);
        }
        let round = self.rows.iter_mut().rfind(|round| round.run == *run)?;
        // Reports can be repeated, and each one must count once.
        if position <= round.noted {
            return None;
        }
        (round.noted, round.cost) = (position, progress.cost);
        Some(round)
    }

    /// Returns the last commit of an open pull request in the repository; `None` without one.
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

/// Returns a progress for the report of a person's push, which has none.
fn of_others(request: &OutboundAction) -> Option<JobProgress> {
    matches!(
        request,
        OutboundAction::PullRequest(PullRequestEvent::PushedByOthers(_))
    )
    .then_some(JobProgress {
        clone_percent: None,
        job: Job::BackToDraft,
        phase: None,
        // A person's push costs nothing. An absent cost would mean a model without a known price.
        cost: Some(Dollars::from_micros(0)),
    })
}

#[cfg(test)]
#[path = "rounds_tests.rs"]
mod tests;
