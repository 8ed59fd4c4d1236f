//! Decision about the repair of failed checks, with the reason against one.

use std::collections::BTreeSet;

use domain::{
    ChecksConclusion, ChecksSummary, CiRules, FailedCheck, FailureClass, Job, JobRequest, JobSubject,
    OutboundReceipt, PullRequestEvent, PullRequestRef, RepairEnd, SuspectChanges, TicketBackground,
    TicketKey, Trigger, TriggerReason, fingerprint_failure,
};

use crate::{
    facts::{
        DecisionFacts, Need,
        patches::{PatchLimits, limit_patches},
    },
    policy::deciders::list_deciders,
};

/// Repair job for failed checks, or a report of the checks with the reason why there is no repair.
pub(crate) fn decide_repair(
    ticket: &TicketKey,
    mut checks: ChecksSummary,
    facts: &DecisionFacts,
) -> Result<TriggerReason, Need> {
    let rules = facts.book.for_repository(&checks.pull_request.repository);
    let rules = match rules {
        Some(rules) if facts.covers(rules, ticket)? => Some(rules),
        Some(_) | None => None,
    };
    // Reruns come first: a failure of the infrastructure or a flaky check costs no repair.
    if rules.is_some_and(|rules| rules.ci.rerun) && has_no_real_failure(&checks) {
        let is_rerun = has_run_again(&checks, facts.history(ticket)?);
        checks.rerun = if is_rerun {
            Vec::new()
        } else {
            list_reruns(&checks.failed)
        };
        if !checks.rerun.is_empty() {
            return Ok(PullRequestEvent::ChecksCompleted(checks).into());
        }
    }
    let Some(rules) = rules.filter(|rules| rules.ci.repair) else {
        checks.unrepaired = Some(RepairEnd::Off);
        return Ok(PullRequestEvent::ChecksCompleted(checks).into());
    };
    let history = facts.history(ticket)?;
    // The text is pinned at the last request for work, so that a later edit of the ticket does not steer the repair.
    let request = match (
        find_repair_end(&checks, &rules.ci, history),
        find_last_request(history),
    ) {
        (None, Some(request)) => request,
        (why, _) => {
            let why = why.unwrap_or(RepairEnd::Forgotten);
            if why.calls_people() {
                checks.asked = list_deciders(ticket, rules, history);
            }
            checks.unrepaired = Some(why);
            return Ok(PullRequestEvent::ChecksCompleted(checks).into());
        }
    };
    checks.suspects = find_suspects(&checks, history, facts)?;
    Ok(TriggerReason::JobRequested(Box::new(JobRequest {
        job: Job::FixCi,
        repository: checks.pull_request.repository.clone(),
        text: request.text.clone(),
        rules: rules.clone(),
        background: TicketBackground::default(),
        about: JobSubject::Checks(Box::new(checks)),
    })))
}

/// Changes that may have caused the failure: those since the last success, or the whole pull request when its checks
/// never passed.
pub(crate) fn find_suspects(
    checks: &ChecksSummary,
    history: &[Trigger],
    facts: &DecisionFacts,
) -> Result<SuspectChanges, Need> {
    let PullRequestRef {
        repository, number, ..
    } = &checks.pull_request;
    let find_passed_head = |trigger: &Trigger| {
        let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(earlier)) = &trigger.reason else {
            return None;
        };
        let has_passed = earlier.conclusion == ChecksConclusion::Success
            && earlier.unfinished.is_empty()
            && earlier.pull_request == checks.pull_request
            && earlier.head != checks.head;
        has_passed.then(|| earlier.head.clone())
    };
    if let Some(green) = history.iter().rev().find_map(find_passed_head) {
        let files = facts.changed_since(repository, &green, &checks.head)?;
        if !files.is_empty() {
            return Ok(SuspectChanges {
                since: Some(green),
                files: limit_patches(files, PatchLimits::BESIDE),
            });
        }
    }
    let files = facts.files(repository, number)?;
    Ok(SuspectChanges {
        since: None,
        files: limit_patches(files, PatchLimits::BESIDE),
    })
}

/// True when every failure has a cause outside of the change, such as the infrastructure.
fn has_no_real_failure(checks: &ChecksSummary) -> bool {
    checks.failed.iter().all(|check| !check.class.is_real())
}

/// True when the failed jobs of this commit were rerun before.
fn has_run_again(checks: &ChecksSummary, history: &[Trigger]) -> bool {
    history.iter().any(|trigger| {
        let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(earlier)) = &trigger.reason else {
            return false;
        };
        earlier.pull_request == checks.pull_request
            && earlier.head == checks.head
            && !earlier.rerun.is_empty()
    })
}

/// Runs of GitHub Actions worth a rerun: those with an infrastructure failure or a flaky check. Missing files, timeouts
/// and policy violations fail again in the same way.
fn list_reruns(failed: &[FailedCheck]) -> Vec<u64> {
    let may_pass = |check: &&FailedCheck| matches!(check.class, FailureClass::Infra | FailureClass::Flaky);
    let runs = failed.iter().filter(may_pass);
    let runs: BTreeSet<u64> = runs
        .filter_map(|check| github::parse_run_id(&check.url))
        .collect();
    runs.into_iter().collect()
}

/// Last request for work on the ticket, with the text as approved at that time.
pub(crate) fn find_last_request(history: &[Trigger]) -> Option<&JobRequest> {
    history.iter().rev().find_map(find_implement_request)
}

fn find_implement_request(trigger: &Trigger) -> Option<&JobRequest> {
    let request = trigger.reason.job_request();
    request.filter(|request| request.job == Job::Implement)
}

/// Reason against a repair; `None` when one may start.
fn find_repair_end(checks: &ChecksSummary, rules: &CiRules, history: &[Trigger]) -> Option<RepairEnd> {
    if has_no_real_failure(checks) {
        return Some(if has_run_again(checks, history) {
            RepairEnd::FailedAgain
        } else {
            RepairEnd::NotOurs
        });
    }
    // A new request for the work also resets the limits of its repairs.
    let since = history
        .iter()
        .rposition(|trigger| find_implement_request(trigger).is_some());
    let history = &history[since.unwrap_or_default()..];
    let repairs: Vec<RequestedRepair<'_>> = list_repairs(history, &checks.pull_request).collect();
    if repairs.len() >= rules.repairs_per_pull_request as usize {
        return Some(RepairEnd::PerPullRequest);
    }
    let of_head = repairs.iter().filter(|repair| repair.checks.head == checks.head);
    if of_head.count() >= rules.repairs_per_commit as usize {
        return Some(RepairEnd::PerHead);
    }
    // A push to another head is the earlier repair itself, unless someone else pushed before it. The same fingerprint at
    // another head therefore means that the repair failed.
    let before = repairs
        .iter()
        .filter(|repair| repair.checks.head != checks.head && !repair.is_overtaken);
    let repaired: BTreeSet<String> = before
        .flat_map(|repair| list_fingerprints(repair.checks))
        .collect();
    let is_repeated = list_fingerprints(checks)
        .iter()
        .any(|fingerprint| repaired.contains(fingerprint));
    is_repeated.then_some(RepairEnd::Repeated)
}

/// Requested repair in the history.
struct RequestedRepair<'a> {
    checks: &'a ChecksSummary,
    /// True when another author pushed before the repair did.
    is_overtaken: bool,
}

fn list_repairs<'a>(
    history: &'a [Trigger],
    ours: &'a PullRequestRef,
) -> impl Iterator<Item = RequestedRepair<'a>> {
    let about = |trigger: &'a Trigger| {
        let checks = trigger.reason.job_request()?.about.checks();
        checks.filter(|checks| checks.pull_request == *ours)
    };
    let numbered = history.iter().zip(1..);
    numbered.filter_map(move |(trigger, next)| {
        about(trigger).map(|checks| RequestedRepair {
            checks,
            is_overtaken: is_others_push_first(&history[next..], ours),
        })
    })
}

/// True when another author made the first push to the pull request.
fn is_others_push_first(history: &[Trigger], ours: &PullRequestRef) -> bool {
    let by_others = history.iter().find_map(|trigger| {
        if let TriggerReason::PullRequest(PullRequestEvent::PushedByOthers(pushed)) = &trigger.reason {
            return (pushed.pull_request == *ours).then_some(true);
        }
        let TriggerReason::ReportSettled(settled) = &trigger.reason else {
            return None;
        };
        let OutboundReceipt::Pushed { branch, .. } = settled.outcome.receipt()? else {
            return None;
        };
        (*branch == ours.branch).then_some(false)
    });
    by_others == Some(true)
}

/// Fingerprints of the failed checks. They are equal when the same checks fail again in the same way.
fn list_fingerprints(checks: &ChecksSummary) -> Vec<String> {
    let real = checks.failed.iter().filter(|check| check.class.is_real());
    real.map(|check| fingerprint_failure(&check.name, check.output()))
        .collect()
}
