//! Assessment of one pull request of ours: reads its snapshot, decides, takes the step, and stores the result.

use domain::{
    Assessment, BaseUpdateRule, ChecksOutcome, CiRequired, HandoverChecks, HealthCause, HealthRecord,
    HealthRules, HealthState, HealthStep, MergeState, PullRequestEvent, PullRequestRecord,
    PullRequestSnapshot, PullRequestStatus, RepositoryName, RepositoryRules, StepResult, TicketKey,
    Timestamp, TriggerChannel, TriggerReason, assess,
};
use github::SnapshotScope;

use crate::{
    events::{
        EventKind,
        checks::{ChecksAbsent, ChecksChanged, ChecksPending},
        health::HealthStepEvent,
        overdue_review::OverdueReviewEvent,
    },
    facts::{ChecksPatience, tracker_reader::ReadError},
    health::{store, webhook_scope::QueueMembership},
    router::{
        EventRouter,
        outcome::{EventFailure, EventOutcome},
    },
};

/// Result of an assessment.
#[derive(Debug)]
pub(crate) struct AssessmentOutcome {
    /// Outcome of its step, if it had one.
    pub(crate) step: Option<EventOutcome>,
    /// True while GitHub computes whether the pull request can be merged.
    pub(crate) is_computing: bool,
    /// Time from which another assessment may decide otherwise although nothing changes; absent without such a time.
    pub(crate) again_at: Option<Timestamp>,
}

/// Assesses a pull request by its place; `None` when it is not an open one of ours.
///
/// # Errors
/// A read that failed; the caller retries.
pub(crate) async fn assess_place(
    router: &EventRouter,
    repository: &RepositoryName,
    number: u64,
    queue: QueueMembership,
    source: TriggerChannel,
) -> Result<Option<AssessmentOutcome>, EventFailure> {
    let known = router.queue.pull_requests().get(repository, number).await?;
    match known.filter(|record| record.status == PullRequestStatus::Open) {
        Some(record) => Ok(Some(assess_record(router, &record, queue, source).await?)),
        None => Ok(None),
    }
}

/// Assesses an open pull request of ours. Assessments of one pull request may overlap, and each may have read a state that the
/// other one has not: the first stores its result, and the other one assesses again.
///
/// # Errors
/// A read that failed, or others that stored their results during each attempt; the caller retries.
pub(crate) async fn assess_record(
    router: &EventRouter,
    record: &PullRequestRecord,
    queue: QueueMembership,
    source: TriggerChannel,
) -> Result<AssessmentOutcome, EventFailure> {
    let mut taken = None;
    for _ in 0..store::ATTEMPTS {
        let StoredAssessment { outcome, is_stored } = assess_once(router, record, queue, source).await?;
        // The same step is known in the next attempt, and counts as taken by this assessment.
        let step = taken.take().or(outcome.step);
        if is_stored {
            return Ok(AssessmentOutcome { step, ..outcome });
        }
        taken = step.filter(|step| matches!(step, EventOutcome::Appended { .. }));
    }
    Err(queue::Error::Conflict.into())
}

/// Result of one attempt to assess a pull request.
struct StoredAssessment {
    outcome: AssessmentOutcome,
    /// False when another assessment was stored since this one began.
    is_stored: bool,
}

impl StoredAssessment {
    /// End of the assessments of a pull request, for which nothing is stored.
    const fn last(step: Option<EventOutcome>) -> Self {
        Self {
            outcome: AssessmentOutcome {
                step,
                is_computing: false,
                again_at: None,
            },
            is_stored: true,
        }
    }
}

async fn assess_once(
    router: &EventRouter,
    record: &PullRequestRecord,
    queue: QueueMembership,
    source: TriggerChannel,
) -> Result<StoredAssessment, EventFailure> {
    let ours = &record.pull_request;
    let (stored, revision) = store::read_health(&router.queue, &ours.repository, ours.number).await?;
    let book = router.rules.book();
    let rules = book.for_repository(&ours.repository);
    let memory = stored
        .as_ref()
        .map(|stored| stored.memory.clone())
        .unwrap_or_default();
    let was_queued = stored.is_some_and(|stored| matches!(stored.state, HealthState::Queued { .. }));
    let scope = SnapshotScope {
        queue: queue == QueueMembership::Reported || was_queued || memory.removal.is_some(),
        distance: rules.is_some_and(|rules| rules.pull_request.update_base == BaseUpdateRule::Always),
    };
    let read = router.outside.snapshot(&ours.repository, ours.number, scope);
    let mut snapshot = match read.await {
        Err(ReadError::Transferred(moved)) => {
            let end = router.end_transferred(moved, source).await?;
            store::remove_health(&router.queue, &ours.repository, ours.number).await?;
            return Ok(StoredAssessment::last(Some(end)));
        }
        read => read?,
    };
    let ignored_checks = rules.map_or_else(Vec::new, |rules| snapshot.ignore_checks(&rules.ci));
    let now = bootstrap::read_wall_clock();
    let assessment = assess(&snapshot, &build_rules(rules, router.patience), &memory, now);
    if matches!(assessment.state, HealthState::Merged | HealthState::Closed) {
        store::remove_health(&router.queue, &ours.repository, ours.number).await?;
        return Ok(StoredAssessment::last(None));
    }
    let step = match &assessment.step {
        Some(step) => {
            let since = find_since(&assessment.state, now);
            take_step(router, record, &snapshot, step, since, source).await?
        }
        None => None,
    };
    let is_computing = snapshot.merge == MergeState::Unknown;
    let again_at = if is_computing {
        Some(now)
    } else {
        find_next_time(&assessment, now)
    };
    // A step that was not appended, for example for a skip label, is decided again at the next assessment.
    let result = match &step {
        Some(outcome) => judge_step(router, &record.ticket, outcome).await?,
        None => StepResult::NotTaken,
    };
    let assessed = HealthRecord {
        pull_request: ours.clone(),
        approvals: snapshot.approval_count(),
        auto_merge: snapshot.queue.auto_merge.clone(),
        ignored_checks,
        memory: memory.after(&snapshot, &assessment, result, now),
        state: assessment.state,
        base: snapshot.base,
        at: now,
    };
    Ok(StoredAssessment {
        is_stored: store::write_health(&router.queue, &assessed, revision).await?,
        outcome: AssessmentOutcome {
            step,
            is_computing,
            again_at,
        },
    })
}

/// Time from which another assessment may decide otherwise although nothing changes outside.
fn find_next_time(assessment: &Assessment, now: Timestamp) -> Option<Timestamp> {
    // The next assessment begins the wait for a requested step. What stands against a refused one, such as a run on the
    // same head, may end without a trace outside. Reminders have a schedule of their own.
    let is_followed = |step: &HealthStep| *step != HealthStep::Remind;
    match &assessment.state {
        _ if assessment.step.as_ref().is_some_and(is_followed) => Some(now),
        HealthState::Waiting { until, .. } => Some(*until),
        HealthState::Blocked { .. }
        | HealthState::Queued { .. }
        | HealthState::Merged
        | HealthState::Closed
        | HealthState::Ready => None,
    }
}

const fn find_since(state: &HealthState, now: Timestamp) -> Timestamp {
    match state {
        HealthState::Waiting { since, .. }
        | HealthState::Blocked { since, .. }
        | HealthState::Queued { since } => *since,
        HealthState::Merged | HealthState::Closed | HealthState::Ready => now,
    }
}

fn build_rules(rules: Option<&RepositoryRules>, patience: ChecksPatience) -> HealthRules {
    HealthRules {
        update_base: rules.map_or(BaseUpdateRule::Never, |rules| rules.pull_request.update_base),
        may_lack_checks: rules.is_some_and(|rules| rules.ci.required != CiRequired::Always),
        limits: patience.limits(),
    }
}

/// Takes the step of an assessment. Checks and reviews have events of their own, which share keys with webhooks and
/// polls, so each step counts once. `None`: the step has to wait for a moment.
async fn take_step(
    router: &EventRouter,
    record: &PullRequestRecord,
    snapshot: &PullRequestSnapshot,
    step: &HealthStep,
    since: Timestamp,
    source: TriggerChannel,
) -> Result<Option<EventOutcome>, EventFailure> {
    let head = || snapshot.head.clone();
    let event: Box<dyn EventKind> = match step {
        HealthStep::MarkReady(HandoverChecks::Passed)
        | HealthStep::RepairChecks
        | HealthStep::Notify(HealthCause::RunApproval) => Box::new(ChecksChanged::from_poll(record, head())),
        HealthStep::MarkReady(HandoverChecks::Absent) => Box::new(ChecksAbsent::from_poll(record, head())),
        HealthStep::MarkReady(HandoverChecks::Unfinished)
        | HealthStep::Notify(HealthCause::PendingChecks) => {
            Box::new(ChecksPending::from_poll(record, head()))
        }
        HealthStep::Remind => Box::new(OverdueReviewEvent::from_poll(record.clone())),
        HealthStep::UpdateBase
        | HealthStep::ResolveConflict
        | HealthStep::RepairQueue { .. }
        | HealthStep::Notify(_) => match HealthStepEvent::from_step(record, snapshot, step, since) {
            Some(event) => Box::new(event),
            None => return Ok(None),
        },
    };
    match Box::pin(router.take(&*event, source)).await {
        Ok(outcome) => {
            outcome.log();
            Ok(Some(outcome))
        }
        // The checks ended a moment ago: their own event decides about them.
        Err(EventFailure::Unsettled { .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Result of a step by its trigger. One that another event appended before is read from the ticket's log.
async fn judge_step(
    router: &EventRouter,
    ticket: &TicketKey,
    outcome: &EventOutcome,
) -> Result<StepResult, EventFailure> {
    let sequence = match outcome {
        EventOutcome::Appended { trigger, .. } => return Ok(judge_reason(&trigger.reason)),
        EventOutcome::Known(sequence) => *sequence,
        EventOutcome::NoChecks | EventOutcome::NothingFailed | EventOutcome::Nothing(_) => {
            return Ok(StepResult::NotTaken);
        }
    };
    let triggers = router.queue.triggers();
    let records = triggers
        .read_each_after(ticket, sequence.saturating_sub(1))
        .await?;
    let known = records.into_iter().find(|(found, _)| *found == sequence);
    let trigger = known.and_then(|(_, trigger)| trigger.ok());
    Ok(trigger.map_or(StepResult::Requested, |trigger| judge_reason(&trigger.reason)))
}

/// Result of a step by the reason of its trigger: a limit or a rule may turn a request into a notice.
fn judge_reason(reason: &TriggerReason) -> StepResult {
    let is_left_to_people = match reason {
        TriggerReason::Skipped(_) => true,
        TriggerReason::PullRequest(PullRequestEvent::Conflicted(conflict)) => conflict.unresolved.is_some(),
        TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) => {
            checks.unrepaired.is_some() && checks.outcome() == ChecksOutcome::Failed
        }
        TriggerReason::PullRequest(_)
        | TriggerReason::JobRequested(_)
        | TriggerReason::NewsArrived(_)
        | TriggerReason::ReviewWithdrawn { .. }
        | TriggerReason::TicketLeft(_)
        | TriggerReason::StopRequested { .. }
        | TriggerReason::RetryRequested
        | TriggerReason::Decided(_)
        | TriggerReason::ReportSettled(_)
        | TriggerReason::CostAsked { .. }
        | TriggerReason::HelpAsked { .. } => false,
    };
    if is_left_to_people {
        StepResult::LeftToPeople
    } else {
        StepResult::Requested
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{
        ChecksConclusion, ChecksSummary, ConflictEnd, ConflictedBase, HealthActor, PullRequestRef, RepairEnd,
    };

    use super::*;

    #[test]
    fn notice_in_place_of_step_leaves_it_to_people() {
        let pull_request = PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            url: "u".to_owned(),
            branch: "fix/ENG-1".to_owned(),
        };
        let commit: domain::CommitId = "a".repeat(40).parse().unwrap();
        let conflict = |unresolved| {
            let (pull_request, base) = (pull_request.clone(), "main".to_owned());
            let mut conflict = ConflictedBase::new(pull_request, commit.clone(), commit.clone(), base);
            conflict.unresolved = unresolved;
            judge_reason(&PullRequestEvent::Conflicted(conflict).into())
        };
        assert_eq!(conflict(None), StepResult::Requested);
        assert_eq!(conflict(Some(ConflictEnd::Off)), StepResult::LeftToPeople);
        let checks = |rerun: Vec<u64>, unrepaired| {
            let conclusion = ChecksConclusion::Failure;
            let mut checks = ChecksSummary::new(pull_request.clone(), commit.clone(), conclusion);
            (checks.rerun, checks.unrepaired) = (rerun, unrepaired);
            judge_reason(&PullRequestEvent::ChecksCompleted(checks).into())
        };
        assert_eq!(checks(Vec::new(), Some(RepairEnd::Off)), StepResult::LeftToPeople);
        assert_eq!(checks(vec![1], Some(RepairEnd::Off)), StepResult::Requested);
        assert_eq!(
            judge_reason(&TriggerReason::RetryRequested),
            StepResult::Requested
        );
    }

    #[test]
    fn assessment_with_step_is_followed_by_another() {
        let at = Timestamp::from_unix_ms;
        let (now, until) = (at(5_000), at(9_000));
        let blocked = || HealthState::Blocked {
            cause: HealthCause::Conflict,
            since: at(1_000),
            who: HealthActor::Journeyman,
        };
        let waiting = HealthState::Waiting {
            cause: HealthCause::PendingChecks,
            since: at(1_000),
            until,
        };
        for (state, step, expected) in [
            (blocked(), Some(HealthStep::ResolveConflict), Some(now)),
            (
                blocked(),
                Some(HealthStep::Notify(HealthCause::Conflict)),
                Some(now),
            ),
            (blocked(), Some(HealthStep::Remind), None),
            (blocked(), None, None),
            (waiting, None, Some(until)),
            (HealthState::Ready, None, None),
        ] {
            let assessment = Assessment { state, step };
            assert_eq!(find_next_time(&assessment, now), expected, "{assessment:?}");
        }
    }

    #[test]
    fn repository_without_rules_is_only_observed() {
        let patience = ChecksPatience {
            settle: Duration::from_secs(30),
            required: Duration::from_secs(600),
            pending: Duration::from_secs(7_200),
        };
        let rules = build_rules(None, patience);
        assert_eq!(rules.update_base, BaseUpdateRule::Never);
        assert!(!rules.may_lack_checks);
        let rules = build_rules(Some(&RepositoryRules::default()), patience);
        assert_eq!(rules.update_base, BaseUpdateRule::WhenRequired);
        assert!(rules.may_lack_checks);
        assert_eq!(rules.limits.absent, Duration::from_secs(600));
    }
}
