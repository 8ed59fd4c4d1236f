//! Whether red checks are repaired, and why not.

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

/// What was changed since the checks last passed; where they never did, what the pull request changes.
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
    // Whoever asks for the work once more asks for its repairs too.
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
    // Another head is the push that meant to mend it, unless somebody pushed before the repair did. What comes back later
    // comes back too.
    let before = repairs
        .iter()
        .filter(|repair| repair.checks.head != checks.head && !repair.was_cut);
    let mended: BTreeSet<String> = before.flat_map(|repair| prints(repair.checks)).collect();
    let is_repeated = prints(checks).iter().any(|print| mended.contains(print));
    is_repeated.then_some(RepairEnd::Repeated)
}

/// A repair that was asked for.
struct Repair<'a> {
    checks: &'a ChecksSummary,
    /// Whether a push by somebody else came before anything that it pushed.
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

/// Whether the first push to the pull request is one by somebody else.
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

/// What stays the same when the same checks fail in the same way again.
fn prints(checks: &ChecksSummary) -> Vec<String> {
    let real = checks.failed.iter().filter(|check| check.class.is_real());
    let print = |check: &FailedCheck| fingerprint(&check.name, check.output());
    real.map(print).collect()
}
