//! Status of our pull request, derived from the triggers of its ticket without any request to GitHub.

use crate::{
    identity::{commit::CommitId, time::Timestamp},
    outbound::report::{OutboundOutcome, OutboundReceipt},
    trigger::{
        job_subject::ReviewRound,
        pull_request::{
            ChecksConclusion, ChecksOutcome, ChecksSummary, FailedCheck, PullRequestRef, PullRequestStatus,
            RepairEnd,
        },
        pull_request_event::PullRequestEvent,
        reason::{Trigger, TriggerReason},
    },
};

/// Latest known status of a pull request. Approvals and mergeability are unknown, because no trigger contains
/// them.
// The status is derived on demand, so there is no second record that could contradict the triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedPullRequest {
    /// Open, merged or closed; absent: no trigger has reported it.
    pub status: Option<PullRequestStatus>,
    /// Its newest commit in the triggers.
    pub head: Option<CommitId>,
    /// The last complete checks.
    pub checks: Option<ObservedChecks>,
    /// The last review that requested changes or asked questions.
    pub review: Option<ObservedReview>,
    /// Requested reviewers with the time of the request.
    pub awaited: Option<(Vec<String>, Timestamp)>,
}

/// Complete checks of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedChecks {
    /// The commit that was checked.
    pub head: CommitId,
    /// The combined result of the checks.
    pub conclusion: ChecksConclusion,
    /// The failed checks; at most 20.
    pub failed: Vec<FailedCheck>,
    /// URL of a page about the checks; may be empty.
    pub page: String,
    /// Time at which the last check ended.
    pub at: Timestamp,
    /// The reaction to the result.
    pub follows: ChecksReaction,
}

/// Reaction to completed checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksReaction {
    /// No check failed.
    Nothing,
    /// A run repairs the failed checks.
    Repair,
    /// The failed jobs run again.
    Rerun,
    /// People have to act.
    Left(RepairEnd),
}

impl ChecksReaction {
    /// Returns the reaction to completed checks.
    // The outcome ranks a repeated run above a reason not to repair. The reporter follows the same outcome, so
    // pages show its reaction.
    const fn of(checks: &ChecksSummary) -> Self {
        match checks.outcome() {
            ChecksOutcome::Passed | ChecksOutcome::Missing => Self::Nothing,
            ChecksOutcome::Rerun => Self::Rerun,
            ChecksOutcome::Failed => match checks.unrepaired {
                Some(end) => Self::Left(end),
                None => Self::Repair,
            },
        }
    }
}

/// A review that requested changes or asked questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedReview {
    /// Login of the reviewer.
    pub author: String,
    /// True when the reviewer requests changes before a merge.
    pub asks_for_changes: bool,
    /// Number of threads in the review.
    pub threads: usize,
    /// Time of the review.
    pub at: Timestamp,
}

impl ObservedPullRequest {
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
        if let TriggerReason::ReportSettled(settled) = &trigger.reason {
            if let OutboundOutcome::Done(OutboundReceipt::Pushed { branch, head, .. }) = &settled.outcome
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
            TriggerReason::JobRequested(request) => {
                if let Some(checks) = request.about.checks() {
                    self.checked(checks, trigger.at);
                }
                if let Some(round) = request.about.round() {
                    self.reviewed(round, trigger.at);
                }
            }
            TriggerReason::PullRequest(event) => self.observe_event(event, trigger.at),
            TriggerReason::ReviewWithdrawn { .. }
            | TriggerReason::TicketLeft(_)
            | TriggerReason::Skipped(_)
            | TriggerReason::StopRequested { .. }
            | TriggerReason::RetryRequested
            | TriggerReason::Decided(_)
            | TriggerReason::ReportSettled(_)
            | TriggerReason::CostAsked { .. }
            | TriggerReason::HelpAsked { .. }
            | TriggerReason::NewsArrived(_) => {}
        }
    }

    fn observe_event(&mut self, event: &PullRequestEvent, at: Timestamp) {
        if let Some(head) = event.head() {
            self.head = Some(head.clone());
        }
        if let Some(status) = event.new_status() {
            self.status = Some(status);
        }
        if let PullRequestEvent::ChecksCompleted(checks) = event {
            self.checked(checks, at);
        }
        if let PullRequestEvent::ReviewAwaited(awaited) = event {
            self.awaited = Some((awaited.reviewers.clone(), awaited.since));
        }
    }

    fn checked(&mut self, checks: &ChecksSummary, at: Timestamp) {
        self.head = Some(checks.head.clone());
        if !checks.unfinished.is_empty() {
            return;
        }
        self.checks = Some(ObservedChecks {
            head: checks.head.clone(),
            conclusion: checks.conclusion,
            failed: checks.failed.clone(),
            page: checks.page.clone(),
            at,
            follows: ChecksReaction::of(checks),
        });
    }

    fn reviewed(&mut self, round: &ReviewRound, at: Timestamp) {
        // A review ends the wait for it.
        self.awaited = None;
        self.review = Some(ObservedReview {
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
    use crate::{
        evidence::failure::FailureClass,
        identity::ids::{OutboundId, RunId},
        outbound::report::OutboundSettled,
        trigger::{
            pull_request_event::PullRequestEnd,
            reason::{TriggerChannel, TriggerKey},
        },
    };

    fn build_pull_request() -> PullRequestRef {
        PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "https://github.com/acme/shop/pull/7".to_owned(),
            branch: "fix/ENG-1".to_owned(),
        }
    }

    fn build_commit_id(digit: &str) -> CommitId {
        digit.repeat(40).parse().unwrap()
    }

    fn build_trigger(at: i64, reason: TriggerReason) -> Trigger {
        Trigger {
            ticket: "jira:ENG-1".parse().unwrap(),
            key: TriggerKey::new(at.to_string()),
            at: Timestamp::from_unix_ms(at),
            source: TriggerChannel::Webhook,
            actor: None,
            seen: None,
            reason,
        }
    }

    fn build_checks_summary(head: &str, conclusion: ChecksConclusion) -> ChecksSummary {
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
            failed: if conclusion == ChecksConclusion::Failure {
                vec![failed]
            } else {
                Vec::new()
            },
            ..ChecksSummary::new(build_pull_request(), build_commit_id(head), conclusion)
        }
    }

    fn build_checks_reason(checks: ChecksSummary) -> TriggerReason {
        PullRequestEvent::ChecksCompleted(checks).into()
    }

    fn build_push_trigger(at: i64, branch: &str, head: &str) -> Trigger {
        let run: RunId = "jira:ENG-1@1".parse().unwrap();
        let outcome = OutboundOutcome::Done(OutboundReceipt::Pushed {
            branch: branch.to_owned(),
            head: build_commit_id(head),
            diff: None,
        });
        build_trigger(
            at,
            TriggerReason::ReportSettled(OutboundSettled {
                report: OutboundId::from(run.call(1)),
                run,
                outcome,
            }),
        )
    }

    #[test]
    fn push_makes_known_checks_outdated() {
        let left = ChecksSummary {
            unrepaired: Some(RepairEnd::Off),
            ..build_checks_summary("a", ChecksConclusion::Failure)
        };
        let mut triggers = vec![
            build_push_trigger(1, "fix/ENG-1", "a"),
            build_trigger(2, build_checks_reason(left)),
        ];
        let standing = ObservedPullRequest::of(&build_pull_request(), &triggers);
        let seen = standing.checks.clone().unwrap();
        assert_eq!(
            (seen.conclusion, seen.follows),
            (ChecksConclusion::Failure, ChecksReaction::Left(RepairEnd::Off))
        );
        assert_eq!(
            (seen.failed[0].name.as_str(), seen.at),
            ("unit", Timestamp::from_unix_ms(2))
        );
        assert!(!standing.is_outdated());
        triggers.push(build_push_trigger(3, "another", "c"));
        assert!(
            !ObservedPullRequest::of(&build_pull_request(), &triggers).is_outdated(),
            "another branch"
        );
        triggers.push(build_push_trigger(4, "fix/ENG-1", "b"));
        assert!(ObservedPullRequest::of(&build_pull_request(), &triggers).is_outdated());
        triggers.push(build_trigger(
            5,
            build_checks_reason(build_checks_summary("b", ChecksConclusion::Success)),
        ));
        let standing = ObservedPullRequest::of(&build_pull_request(), &triggers);
        assert_eq!(standing.checks.as_ref().unwrap().follows, ChecksReaction::Nothing);
        assert_eq!((standing.is_outdated(), standing.status), (false, None));
    }

    #[test]
    fn unfinished_checks_are_no_known_result() {
        let held = ChecksSummary {
            unfinished: vec!["WIP".to_owned()],
            ..build_checks_summary("b", ChecksConclusion::Success)
        };
        let triggers = [build_trigger(1, build_checks_reason(held))];
        let standing = ObservedPullRequest::of(&build_pull_request(), &triggers);
        assert_eq!(
            (standing.head, standing.checks),
            (Some(build_commit_id("b")), None)
        );
    }

    #[test]
    fn standing_ignores_other_pull_requests() {
        let rerun = ChecksSummary {
            rerun: vec![9],
            ..build_checks_summary("a", ChecksConclusion::Failure)
        };
        let other = ChecksSummary {
            pull_request: PullRequestRef {
                number: 8,
                ..build_pull_request()
            },
            ..build_checks_summary("b", ChecksConclusion::Success)
        };
        let triggers = [
            build_trigger(1, build_checks_reason(rerun)),
            build_trigger(2, build_checks_reason(other)),
            build_trigger(
                3,
                PullRequestEvent::Merged(PullRequestEnd {
                    pull_request: build_pull_request(),
                    by: "ada".to_owned(),
                    moved_to: None,
                })
                .into(),
            ),
        ];
        let standing = ObservedPullRequest::of(&build_pull_request(), &triggers);
        assert_eq!(standing.checks.unwrap().follows, ChecksReaction::Rerun);
        assert_eq!(standing.status, Some(PullRequestStatus::Merged));
    }

    #[test]
    fn reaction_follows_outcome_of_checks() {
        let ends = [
            None,
            Some(RepairEnd::Off),
            Some(RepairEnd::NotOurs),
            Some(RepairEnd::FailedAgain),
            Some(RepairEnd::PerHead),
            Some(RepairEnd::PerPullRequest),
            Some(RepairEnd::Repeated),
            Some(RepairEnd::Forgotten),
        ];
        let rows: [(ChecksConclusion, &[u64], ChecksOutcome); 6] = [
            (ChecksConclusion::Success, &[], ChecksOutcome::Passed),
            (ChecksConclusion::Success, &[9], ChecksOutcome::Passed),
            (ChecksConclusion::Absent, &[], ChecksOutcome::Missing),
            (ChecksConclusion::Absent, &[9], ChecksOutcome::Missing),
            (ChecksConclusion::Failure, &[], ChecksOutcome::Failed),
            (ChecksConclusion::Failure, &[9], ChecksOutcome::Rerun),
        ];
        for (conclusion, rerun, outcome) in rows {
            for unrepaired in ends {
                let checks = ChecksSummary {
                    unrepaired,
                    rerun: rerun.to_vec(),
                    ..build_checks_summary("a", conclusion)
                };
                assert_eq!(
                    checks.outcome(),
                    outcome,
                    "{conclusion:?} {unrepaired:?} {rerun:?}"
                );
                let triggers = [build_trigger(1, build_checks_reason(checks))];
                let standing = ObservedPullRequest::of(&build_pull_request(), &triggers);
                let reaction = match (outcome, unrepaired) {
                    (ChecksOutcome::Passed | ChecksOutcome::Missing, _) => ChecksReaction::Nothing,
                    (ChecksOutcome::Rerun, _) => ChecksReaction::Rerun,
                    (ChecksOutcome::Failed, Some(end)) => ChecksReaction::Left(end),
                    (ChecksOutcome::Failed, None) => ChecksReaction::Repair,
                };
                assert_eq!(
                    standing.checks.unwrap().follows,
                    reaction,
                    "{conclusion:?} {unrepaired:?} {rerun:?}"
                );
            }
        }
    }

    #[test]
    fn nothing_is_known_without_a_trigger() {
        let standing = ObservedPullRequest::of(&build_pull_request(), &[]);
        assert_eq!(standing, ObservedPullRequest::default());
        assert!(!standing.is_outdated());
    }
}
