//! How a pull request of ours stands, as the triggers of its ticket tell. Nothing is asked outside for it.

use crate::{
    ChecksSummary, CommitId, Conclusion, FailedCheck, PullRequestRef, PullRequestStatus, Reason, Receipt,
    RepairEnd, ReportOutcome, ReviewRound, Timestamp, Trigger,
};

/// The newest that is known of a pull request. Of approvals, and of whether it can be merged, nothing is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is over; absent: no trigger says.
    pub status: Option<PullRequestStatus>,
    /// Its newest commit that a trigger names.
    pub head: Option<CommitId>,
    /// The last checks that were complete.
    pub checks: Option<ChecksSeen>,
    /// The last review that asked for something.
    pub review: Option<ReviewSeen>,
    /// Whose review it waits for, and since when.
    pub awaited: Option<(Vec<String>, Timestamp)>,
}

/// Checks of one commit, complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChecksSeen {
    /// The commit.
    pub head: CommitId,
    /// How they ended.
    pub conclusion: Conclusion,
    /// Those that failed; at most 20.
    pub failed: Vec<FailedCheck>,
    /// A page about them; may be empty.
    pub page: String,
    /// When the last of them ended.
    pub at: Timestamp,
    /// What is done about it.
    pub follows: ChecksFollow,
}

/// What is done about checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksFollow {
    /// None failed.
    Nothing,
    /// A run repairs what failed.
    Repair,
    /// The jobs that failed run once more.
    Rerun,
    /// People have to see to it.
    Left(RepairEnd),
}

/// A review that asked for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewSeen {
    /// Login of the reviewer.
    pub author: String,
    /// Whether changes are asked for before a merge.
    pub asks_for_changes: bool,
    /// How many threads of remarks it has.
    pub threads: usize,
    /// When.
    pub at: Timestamp,
}

impl Standing {
    /// What the triggers of a ticket, oldest first, tell of one of its pull requests.
    pub fn of<'a>(pull_request: &PullRequestRef, triggers: impl IntoIterator<Item = &'a Trigger>) -> Self {
        let mut standing = Self::default();
        for trigger in triggers {
            standing.apply(pull_request, trigger);
        }
        standing
    }

    /// Whether what is known of checks is about an earlier commit: those of the newest are not complete yet.
    pub fn is_outdated(&self) -> bool {
        let checked = self.checks.as_ref().map(|checks| &checks.head);
        checked.is_some() && self.head.as_ref() != checked
    }

    fn apply(&mut self, ours: &PullRequestRef, trigger: &Trigger) {
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
    fn the_last_complete_checks_count_until_a_push_makes_them_old() {
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
    fn a_rerun_is_no_repair_and_what_another_pull_request_did_does_not_count() {
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
