//! Whether red checks are repaired, and why not.

use std::collections::BTreeSet;

use domain::{
    About, Background, ChecksSummary, FailedCheck, FailureClass, Job, JobRequest, Reason, RepairEnd,
    TicketKey, Trigger, fingerprint,
};

use crate::facts::{Facts, Need};

/// Repairs of one commit, and of one pull request.
const PER_HEAD: usize = 3;
const PER_PULL_REQUEST: usize = 6;

/// The job that repairs the checks, or what people are told of them.
pub(crate) fn wanted(ticket: &TicketKey, mut checks: ChecksSummary, facts: &Facts) -> Result<Reason, Need> {
    let rules = facts.book.for_repository(&checks.pull_request.repository);
    let rules = rules.filter(|rules| rules.cover(ticket));
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
    if let Some(why) = end(&checks, history) {
        checks.unrepaired = Some(why);
        return Ok(Reason::ChecksCompleted(checks));
    }
    let Some(asked) = asked_for(history) else {
        checks.unrepaired = Some(RepairEnd::Forgotten);
        return Ok(Reason::ChecksCompleted(checks));
    };
    Ok(Reason::JobRequested(Box::new(JobRequest {
        job: Job::FixCi,
        repository: checks.pull_request.repository.clone(),
        text: asked.text.clone(),
        rules: rules.clone(),
        background: Background::default(),
        about: About::Checks(Box::new(checks)),
    })))
}

fn is_all_not_ours(checks: &ChecksSummary) -> bool {
    checks.failed.iter().all(|check| !check.class.is_real())
}

/// Whether the failed jobs of this commit were started again once.
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

/// The runs of GitHub Actions in which the machine failed, or a check that can pass on this commit. What exists nowhere,
/// takes too long or breaks a rule about pull requests ends the same way each time.
fn reruns(failed: &[FailedCheck]) -> Vec<u64> {
    let may_pass = |check: &&FailedCheck| matches!(check.class, FailureClass::Infra | FailureClass::Flaky);
    let runs = failed.iter().filter(may_pass);
    let runs: BTreeSet<u64> = runs.filter_map(|check| github::actions_run(&check.url)).collect();
    runs.into_iter().collect()
}

/// What the ticket was last worked on for: its text as it was approved then.
pub(crate) fn asked_for(history: &[Trigger]) -> Option<&JobRequest> {
    history.iter().rev().find_map(|trigger| match &trigger.reason {
        Reason::JobRequested(request) if request.job == Job::Implement => Some(&**request),
        _ => None,
    })
}

fn end(checks: &ChecksSummary, history: &[Trigger]) -> Option<RepairEnd> {
    if is_all_not_ours(checks) {
        return Some(match has_run_again(checks, history) {
            true => RepairEnd::FailedAgain,
            false => RepairEnd::NotOurs,
        });
    }
    let repairs: Vec<&ChecksSummary> = history
        .iter()
        .filter_map(|trigger| match &trigger.reason {
            Reason::JobRequested(request) => match &request.about {
                About::Checks(earlier) if earlier.pull_request == checks.pull_request => Some(&**earlier),
                _ => None,
            },
            _ => None,
        })
        .collect();
    if repairs.len() >= PER_PULL_REQUEST {
        return Some(RepairEnd::PerPullRequest);
    }
    let of_head = repairs.iter().filter(|earlier| earlier.head == checks.head);
    if of_head.count() >= PER_HEAD {
        return Some(RepairEnd::PerHead);
    }
    // Another head is the push of a repair, or of a person, that meant to mend it.
    let mut before = repairs.iter().rev().filter(|earlier| earlier.head != checks.head);
    let is_repeated = before
        .next()
        .is_some_and(|earlier| prints(earlier) == prints(checks));
    is_repeated.then_some(RepairEnd::Repeated)
}

/// What stays the same when the same checks fail in the same way again.
fn prints(checks: &ChecksSummary) -> Vec<String> {
    let real = checks.failed.iter().filter(|check| check.class.is_real());
    let print = |check: &FailedCheck| fingerprint(&check.name, check.output());
    let mut prints: Vec<String> = real.map(print).collect();
    prints.sort();
    prints
}
