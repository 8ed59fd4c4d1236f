//! Status of our pull request, derived from the triggers of its ticket without any request to GitHub.

use crate::{
    ChecksSummary, CommitId, Conclusion, FailedCheck, PullRequestRef, PullRequestStatus, Reason, Receipt,
    RepairEnd, ReportOutcome, ReviewRound, Timestamp, Trigger,
};

/// Latest known status of a pull request. Approvals and mergeability are unknown, because no trigger contains
/// them.
// The status is derived on demand, so there is no second record that could contradict the triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Open, merged or closed; absent: no trigger has reported it.
    pub status: Option<PullRequestStatus>,
    /// Its newest commit in the triggers.
    pub head: Option<CommitId>,
    /// The last complete checks.
    pub checks: Option<ChecksSeen>,
    /// The last review that requested changes or asked questions.
    pub review: Option<ReviewSeen>,
    /// Requested reviewers with the time of the request.
    pub awaited: Option<(Vec<String>, Timestamp)>,
}

/// Complete checks of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChecksSeen {
    /// The commit that was checked.
    pub head: CommitId,
    /// The combined result of the checks.
    pub conclusion: Conclusion,
    /// The failed checks; at most 20.
    pub failed: Vec<FailedCheck>,
    /// URL of a page about the checks; may be empty.
    pub page: String,
    /// Time at which the last check ended.
    pub at: Timestamp,
    /// The reaction to the result.
    pub follows: ChecksFollow,
}

/// Reaction to completed checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksFollow {
    /// No check failed.
    Nothing,
    /// A run repairs the failed checks.
    Repair,
    /// The failed jobs run again.
    Rerun,
    /// People have to act.
    Left(RepairEnd),
}

/// A review that requested changes or asked questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewSeen {
    /// Login of the reviewer.
    pub author: String,
    /// True when the reviewer requests changes before a merge.
    pub asks_for_changes: bool,
    /// Number of threads in the review.
    pub threads: usize,
    /// Time of the review.
    pub at: Timestamp,
}

impl Standing {
    /// Folds the triggers of a ticket, oldest first, for one of its pull requests.
    pub fn of<'a>(pull_request: &PullRequestRef, triggers: impl IntoIterator<Item = &'a Trigger>) -> Self {
        let mut standing = Self::default();
        for trigger in triggers {
            standing.apply(pull_request, trigger);
        }
        standing
    }

    /// Returns true when the known checks belong to an earlier commit: those of the newest are not complete.
    pub fn is_outdated(&self) -> bool {
        let checked = self.checks.as_ref().map(|checks| &checks.head);
        checked.is_some() && self.head.as_ref() != checked
    }

    fn apply(&mut self, ours: &PullRequestRef, trigger: &Trigger) {
        // A push names a branch instead of a pull request, so it is matched before the comparison of numbers.
        if let Reason::ReportSettled(settled) = &trigger.reason {
            if let ReportOutcome::Done(Receipt::Pushed { branch, head }) = &settled.outcome
                && *branch == ours.branch
            {
                self.head = Some(head.clone());
            }
            return;
        }
        let about = trigger.reason.pull_request();
        if about.is_none_or(|about| (&about.repository, about.number) != (&ours.repository, ours.number)) {
            return;
        }
        match &trigger.reason {
            Reason::ChecksCompleted(checks) => self.checked(checks, trigger.at),
            Reason::JobRequested(request) => {
                if let Some(checks) = request.about.checks() {
                    self.checked(checks, trigger.at);
                }
                if let Some(round) = request.about.round() {
                    self.reviewed(round, trigger.at);
                }
            }
            Reason::HeadMoved { head, .. } => self.head = Some(head.clone()),
            Reason::PullRequestReopened { head, .. } => {
                self.head = Some(head.clone());
                self.status = Some(PullRequestStatus::Open);
            }
            Reason::PullRequestMerged { .. } => self.status = Some(PullRequestStatus::Merged),
            Reason::PullRequestClosed { .. } => self.status = Some(PullRequestStatus::Closed),
            Reason::ReviewAwaited { reviewers, since, .. } => {
                self.awaited = Some((reviewers.clone(), *since))
            }
            Reason::MergedElsewhere { .. }
            | Reason::ReviewWithdrawn { .. }
            | Reason::Skipped(_)
            | Reason::StopRequested { .. }
            | Reason::RetryRequested
            | Reason::Decided(_)
            | Reason::ReportSettled(_)
            | Reason::CostAsked { .. }
            | Reason::NewsArrived(_) => {}
        }
    }

    fn checked(&mut self, checks: &ChecksSummary, at: Timestamp) {
        self.head = Some(checks.head.clone());
        self.checks = Some(ChecksSeen {
            head: checks.head.clone(),
            conclusion: checks.conclusion,
            failed: checks.failed.clone(),
            page: checks.page.clone(),
            at,
            follows: match (checks.conclusion, checks.unrepaired) {
                (Conclusion::Success | Conclusion::Absent, _) => ChecksFollow::Nothing,
                (Conclusion::Failure, Some(end)) => ChecksFollow::Left(end),
                (Conclusion::Failure, None) if checks.rerun.is_empty() => ChecksFollow::Repair,
                (Conclusion::Failure, None) => ChecksFollow::Rerun,
            },
        });
    }

    fn reviewed(&mut self, round: &ReviewRound, at: Timestamp) {
        // A review ends the wait for it.
        self.awaited = None;
        self.review = Some(ReviewSeen {
            author: round.author.clone(),
            asks_for_changes: round.asks_for_changes,
            threads: round.threads.len(),
            at,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FailureClass, ReportId, ReportSettled, Source, Suspects, TriggerKey};

    fn ours() -> PullRequestRef {
        PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "https://github.com/acme/shop/pull/7".to_owned(),
            branch: "fix/ENG-1".to_owned(),
        }
    }

    fn commit(digit: &str) -> CommitId {
        digit.repeat(40).parse().unwrap()
    }

    fn trigger(at: i64, reason: Reason) -> Trigger {
        Trigger {
            ticket: "jira:ENG-1".parse().unwrap(),
            key: TriggerKey::new(at.to_string()),
            at: Timestamp::from_unix_ms(at),
            source: Source::Webhook,
            actor: None,
            seen: None,
            reason,
        }
    }

    fn checks(head: &str, conclusion: Conclusion) -> ChecksSummary {
        let failed = FailedCheck {
            name: "unit".to_owned(),
            url: String::new(),
            log_tail: String::new(),
            class: FailureClass::Real,
            step: String::new(),
            command: String::new(),
            log: String::new(),
        };
        ChecksSummary {
            pull_request: ours(),
            head: commit(head),
            conclusion,
            failed: if conclusion == Conclusion::Failure {
                vec![failed]
            } else {
                Vec::new()
            },
            unrepaired: None,
            rerun: Vec::new(),
            asked: Vec::new(),
            page: String::new(),
            suspects: Suspects::default(),
        }
    }

    fn pushed(at: i64, branch: &str, head: &str) -> Trigger {
        let run: crate::RunId = "jira:ENG-1@1".parse().unwrap();
        let outcome = ReportOutcome::Done(Receipt::Pushed {
            branch: branch.to_owned(),
            head: commit(head),
        });
        trigger(
            at,
            Reason::ReportSettled(ReportSettled {
                report: ReportId::from(run.call(1)),
                run,
                outcome,
            }),
        )
    }

    #[test]
    fn push_makes_known_checks_outdated() {
        let left = ChecksSummary {
            unrepaired: Some(RepairEnd::Off),
            ..checks("a", Conclusion::Failure)
        };
        let mut triggers = vec![
            pushed(1, "fix/ENG-1", "a"),
            trigger(2, Reason::ChecksCompleted(left)),
        ];
        let standing = Standing::of(&ours(), &triggers);
        let seen = standing.checks.clone().unwrap();
        assert_eq!(
            (seen.conclusion, seen.follows),
            (Conclusion::Failure, ChecksFollow::Left(RepairEnd::Off))
        );
        assert_eq!(
            (seen.failed[0].name.as_str(), seen.at),
            ("unit", Timestamp::from_unix_ms(2))
        );
        assert!(!standing.is_outdated());
        triggers.push(pushed(3, "another", "c"));
        assert!(!Standing::of(&ours(), &triggers).is_outdated(), "another branch");
        triggers.push(pushed(4, "fix/ENG-1", "b"));
        assert!(Standing::of(&ours(), &triggers).is_outdated());
        triggers.push(trigger(
            5,
            Reason::ChecksCompleted(checks("b", Conclusion::Success)),
        ));
        let standing = Standing::of(&ours(), &triggers);
        assert_eq!(standing.checks.as_ref().unwrap().follows, ChecksFollow::Nothing);
        assert_eq!((standing.is_outdated(), standing.status), (false, None));
    }

    #[test]
    fn standing_ignores_other_pull_requests() {
        let rerun = ChecksSummary {
            rerun: vec![9],
            ..checks("a", Conclusion::Failure)
        };
        let other = ChecksSummary {
            pull_request: PullRequestRef { number: 8, ..ours() },
            ..checks("b", Conclusion::Success)
        };
        let triggers = [
            trigger(1, Reason::ChecksCompleted(rerun)),
            trigger(2, Reason::ChecksCompleted(other)),
            trigger(
                3,
                Reason::PullRequestMerged {
                    pull_request: ours(),
                    by: "ada".to_owned(),
                },
            ),
        ];
        let standing = Standing::of(&ours(), &triggers);
        assert_eq!(standing.checks.unwrap().follows, ChecksFollow::Rerun);
        assert_eq!(standing.status, Some(PullRequestStatus::Merged));
    }

    #[test]
    fn nothing_is_known_without_a_trigger() {
        let standing = Standing::of(&ours(), &[]);
        assert_eq!(standing, Standing::default());
        assert!(!standing.is_outdated());
    }
}
