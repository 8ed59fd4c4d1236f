//! Decision about the repair of failed checks, with the reason against one.

use std::collections::BTreeSet;

use domain::{
    About, Background, ChecksSummary, CiRules, Conclusion, FailedCheck, FailureClass, Job, JobRequest,
    PullRequestRef, Reason, Receipt, RepairEnd, ReportOutcome, Suspects, TicketKey, Trigger, fingerprint,
};

use crate::{
    deciders::deciders,
    facts::{Facts, Need},
    patches::{Room, bounded},
};

/// Repair job for failed checks, or a report of the checks with the reason why there is no repair.
pub(crate) fn wanted(ticket: &TicketKey, mut checks: ChecksSummary, facts: &Facts) -> Result<Reason, Need> {
    let rules = facts.book.for_repository(&checks.pull_request.repository);
    let rules = rules.filter(|rules| rules.cover(ticket));
    // Reruns come first: a failure of the infrastructure or a flaky check costs no repair.
    if rules.is_some_and(|rules| rules.ci.rerun) && is_all_not_ours(&checks) {
        let is_tried = has_run_again(&checks, facts.history(ticket)?);
        checks.rerun = if is_tried {
            Vec::new()
        } else {
            reruns(&checks.failed)
        };
        if !checks.rerun.is_empty() {
            return Ok(Reason::ChecksCompleted(checks));
        }
    }
    let Some(rules) = rules.filter(|rules| rules.ci.repair) else {
        checks.unrepaired = Some(RepairEnd::Off);
        return Ok(Reason::ChecksCompleted(checks));
    };
    let history = facts.history(ticket)?;
    // The text is pinned at the last request for work, so that a later edit of the ticket does not steer the repair.
    let asked = match (end(&checks, &rules.ci, history), asked_for(history)) {
        (None, Some(asked)) => asked,
        (why, _) => {
            let why = why.unwrap_or(RepairEnd::Forgotten);
            if why.calls_people() {
                checks.asked = deciders(ticket, rules, history);
            }
            checks.unrepaired = Some(why);
            return Ok(Reason::ChecksCompleted(checks));
        }
    };
    checks.suspects = suspects(&checks, history, facts)?;
    Ok(Reason::JobRequested(Box::new(JobRequest {
        job: Job::FixCi,
        repository: checks.pull_request.repository.clone(),
        text: asked.text.clone(),
        rules: rules.clone(),
        background: Background::default(),
        about: About::Checks(Box::new(checks)),
    })))
}

/// Changes that may have caused the failure: those since the last success, or the whole pull request when its checks
/// never passed.
pub(crate) fn suspects(checks: &ChecksSummary, history: &[Trigger], facts: &Facts) -> Result<Suspects, Need> {
    let PullRequestRef {
        repository, number, ..
    } = &checks.pull_request;
    let passed = |trigger: &Trigger| match &trigger.reason {
        Reason::ChecksCompleted(earlier)
            if earlier.conclusion == Conclusion::Success
                && earlier.pull_request == checks.pull_request
                && earlier.head != checks.head =>
        {
            Some(earlier.head.clone())
        }
        _ => None,
    };
    if let Some(green) = history.iter().rev().find_map(passed) {
        let files = facts.changed_since(repository, &green, &checks.head)?;
        if !files.is_empty() {
            return Ok(Suspects {
                since: Some(green),
                files: bounded(files, Room::BESIDE),
            });
        }
    }
    let files = facts.files(repository, number)?;
    Ok(Suspects {
        since: None,
        files: bounded(files, Room::BESIDE),
    })
}

fn is_all_not_ours(checks: &ChecksSummary) -> bool {
    checks.failed.iter().all(|check| !check.class.is_real())
}

/// True when the failed jobs of this commit were rerun before.
fn has_run_again(checks: &ChecksSummary, history: &[Trigger]) -> bool {
    history.iter().any(|trigger| match &trigger.reason {
        Reason::ChecksCompleted(earlier) => {
            earlier.pull_request == checks.pull_request
                && earlier.head == checks.head
                && !earlier.rerun.is_empty()
        }
        _ => false,
    })
}

/// Runs of GitHub Actions worth a rerun: those with an infrastructure failure or a flaky check. Missing files, timeouts
/// and policy violations fail again in the same way.
fn reruns(failed: &[FailedCheck]) -> Vec<u64> {
    let may_pass = |check: &&FailedCheck| matches!(check.class, FailureClass::Infra | FailureClass::Flaky);
    let runs = failed.iter().filter(may_pass);
    let runs: BTreeSet<u64> = runs.filter_map(|check| github::actions_run(&check.url)).collect();
    runs.into_iter().collect()
}

/// Last request for work on the ticket, with the text as approved at that time.
pub(crate) fn asked_for(history: &[Trigger]) -> Option<&JobRequest> {
    history.iter().rev().find_map(implement)
}

fn implement(trigger: &Trigger) -> Option<&JobRequest> {
    match &trigger.reason {
        Reason::JobRequested(request) if request.job == Job::Implement => Some(&**request),
        _ => None,
    }
}

fn end(checks: &ChecksSummary, rules: &CiRules, history: &[Trigger]) -> Option<RepairEnd> {
    if is_all_not_ours(checks) {
        return Some(match has_run_again(checks, history) {
            true => RepairEnd::FailedAgain,
            false => RepairEnd::NotOurs,
        });
    }
    // A new request for the work also resets the limits of its repairs.
    let since = history.iter().rposition(|trigger| implement(trigger).is_some());
    let history = &history[since.unwrap_or_default()..];
    let repairs: Vec<Repair<'_>> = repairs(history, &checks.pull_request).collect();
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
        .filter(|repair| repair.checks.head != checks.head && !repair.was_cut);
    let mended: BTreeSet<String> = before.flat_map(|repair| prints(repair.checks)).collect();
    let is_repeated = prints(checks).iter().any(|print| mended.contains(print));
    is_repeated.then_some(RepairEnd::Repeated)
}

/// Requested repair in the history.
struct Repair<'a> {
    checks: &'a ChecksSummary,
    /// True when another author pushed before the repair did.
    was_cut: bool,
}

fn repairs<'a>(history: &'a [Trigger], ours: &'a PullRequestRef) -> impl Iterator<Item = Repair<'a>> {
    let about = |trigger: &'a Trigger| match &trigger.reason {
        Reason::JobRequested(request) => match &request.about {
            About::Checks(checks) if checks.pull_request == *ours => Some(&**checks),
            _ => None,
        },
        _ => None,
    };
    let numbered = history.iter().zip(1..);
    numbered.filter_map(move |(trigger, next)| {
        about(trigger).map(|checks| Repair {
            checks,
            was_cut: is_others_push_first(&history[next..], ours),
        })
    })
}

/// True when another author made the first push to the pull request.
fn is_others_push_first(history: &[Trigger], ours: &PullRequestRef) -> bool {
    let by_others = history.iter().find_map(|trigger| match &trigger.reason {
        Reason::HeadMoved { pull_request, .. } if pull_request == ours => Some(true),
        Reason::ReportSettled(settled) => match &settled.outcome {
            ReportOutcome::Done(Receipt::Pushed { branch, .. }) if *branch == ours.branch => Some(false),
            _ => None,
        },
        _ => None,
    });
    by_others == Some(true)
}

/// Fingerprints of the failed checks. They are equal when the same checks fail again in the same way.
fn prints(checks: &ChecksSummary) -> Vec<String> {
    let real = checks.failed.iter().filter(|check| check.class.is_real());
    let print = |check: &FailedCheck| fingerprint(&check.name, check.output());
    real.map(print).collect()
}
