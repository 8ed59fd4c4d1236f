//! Failed checks of a commit, each with its class and the essence of its log.

use domain::{
    ChecksConclusion, ChecksSummary, CommitId, FailedCheck, FailureClass, PullRequestRef, RepositoryName,
};
use github::CommitCheck;

use crate::{
    facts::{DecisionFacts, Need, log_essence},
    text::text_pin,
};

pub(crate) const FAILED_CHECKS: usize = 20;
// Limit of logs that are read per commit. Each costs a request.
const READ_LOGS: usize = 6;
pub(crate) const PAGE_CHARS: usize = 500;
const LOG_TAIL_BYTES: usize = 8 * 1024;

/// Summary of checks with at least one failure, with the details of each failure.
pub(crate) fn summarize_failure(
    ours: &PullRequestRef,
    head: &CommitId,
    checks: &[CommitCheck],
    facts: &DecisionFacts,
) -> Result<ChecksSummary, Need> {
    Ok(ChecksSummary {
        failed: list_failed_checks(checks, ours, facts)?,
        page: find_checks_page(checks),
        ..ChecksSummary::new(ours.clone(), head.clone(), ChecksConclusion::Failure)
    })
}

/// Page of the CI run: a run of GitHub Actions before others, a failed check before a successful one.
pub(crate) fn find_checks_page(checks: &[CommitCheck]) -> String {
    let is_red = |check: &&CommitCheck| check.conclusion.is_some_and(|end| !end.is_good());
    let by_color = || {
        checks
            .iter()
            .filter(is_red)
            .chain(checks.iter().filter(|check| !is_red(check)))
    };
    let of_actions = by_color().find(|check| github::parse_run_id(&check.url).is_some());
    let any = of_actions.or_else(|| by_color().find(|check| !check.url.is_empty()));
    any.map(|check| text_pin::truncate_text(&check.url, PAGE_CHARS))
        .unwrap_or_default()
}

/// Failed checks, each with its class and the essence of its log.
fn list_failed_checks(
    checks: &[CommitCheck],
    ours: &PullRequestRef,
    facts: &DecisionFacts,
) -> Result<Vec<FailedCheck>, Need> {
    let is_red = |check: &&CommitCheck| check.conclusion.is_some_and(|end| !end.is_good());
    let (mut failed, mut room) = (Vec::new(), log_essence::ALL_CHARS);
    for check in checks.iter().filter(is_red).take(FAILED_CHECKS) {
        let raw = if failed.len() < READ_LOGS {
            facts.log(&ours.repository, &Box::new(check.clone()))?.as_deref()
        } else {
            None
        };
        let essence = raw.map(|raw| log_essence::extract_essence(raw, room));
        room -= essence
            .as_ref()
            .map_or(0, |essence| essence.text.chars().count().min(room));
        let mut new = failed_check(check, essence);
        let is_silent = raw.is_some_and(|raw| raw.trim().is_empty()) && check.output_tail.trim().is_empty();
        // A job whose log is empty ended before its first step.
        if is_silent && new.class.is_real() {
            new.class = FailureClass::Infra;
        }
        failed.push(new);
    }
    // A failure of the infrastructure needs no comparison with the base branch.
    let is_open = failed.iter().any(|check| check.class.is_real());
    if is_open {
        let base = &facts.pull_request(&ours.repository, &ours.number)?.base_branch;
        let before = facts.branch_checks(&ours.repository, base)?;
        for check in &mut failed {
            let same = |other: &&CommitCheck| other.name == check.name;
            let is_good =
                |other: &CommitCheck| other.conclusion.is_some_and(github::CheckConclusion::is_good);
            // A check that also passed on this commit is flaky, so its failure does not count against the change.
            if checks.iter().filter(same).any(is_good) {
                check.class = FailureClass::Flaky;
            } else if let Some(old) = before.iter().filter(same).find(is_red)
                && let Some(new) = checks.iter().filter(same).find(is_red)
                && has_only_known_failures(new, old, &ours.repository, facts)?
            {
                check.class = FailureClass::PreExisting;
            }
        }
    }
    Ok(failed)
}

/// True when a check fails on the head only in the ways in which it fails on the base. A failure on the base excuses the
/// same failures and no new ones.
///
/// A check without output on the head is not known to fail in the same way, so it is not excused.
fn has_only_known_failures(
    new: &CommitCheck,
    old: &CommitCheck,
    repository: &RepositoryName,
    facts: &DecisionFacts,
) -> Result<bool, Need> {
    let log = |check: &CommitCheck| -> Result<String, Need> {
        let log = facts.log(repository, &Box::new(check.clone()))?.as_deref();
        Ok(log.unwrap_or(&check.output_tail).to_owned())
    };
    let new = domain::list_failures(&log(new)?);
    Ok(new.are_known_in(&domain::list_failures(&log(old)?)))
}

fn failed_check(check: &CommitCheck, log: Option<log_essence::LogEssence>) -> FailedCheck {
    // A log is not markup, so only hidden characters are removed and tags stay.
    let clean = domain::text::remove_hidden(&check.output_tail);
    let log = log.unwrap_or_default();
    let shown = if log.text.is_empty() { &clean } else { &log.text };
    let has_timed_out = check.conclusion == Some(github::CheckConclusion::TimedOut);
    // A user, a newer run or another job ended a cancelled check, so it shows nothing about the change.
    let class = if check.conclusion == Some(github::CheckConclusion::Cancelled) {
        FailureClass::Inert
    } else {
        domain::classify_failure(&check.name, has_timed_out, shown)
    };
    FailedCheck {
        name: text_pin::clean_text(&check.name, 200),
        url: check.url.clone(),
        log_tail: domain::text::take_tail_bytes(&clean, LOG_TAIL_BYTES).to_owned(),
        class,
        step: log.step,
        command: log.command,
        log: log.text,
    }
}
