//! Checks of a commit changed: once all on the head of a pull request of ours are complete, their verdict.

use domain::{
    ChecksSummary, CommitId, FailedCheck, PullRequestRecord, PullRequestRef, Reason, RepositoryName,
    TicketKey, TriggerKey,
};
use github::Check;

use super::{Follows, Kind, Verdict, closed::is_closed};
use crate::{
    facts::{Facts, Need},
    hex,
    payload::{Hook, Unreadable, github as wire},
    pin,
};

const FAILED_CHECKS: usize = 20;
const LOG_TAIL_BYTES: usize = 8 * 1024;

/// The checks of a head may be complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChecksChanged {
    head: CommitId,
    of: Of,
}

/// Whose head it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Of {
    /// That of a branch, says a webhook.
    Branch(RepositoryName, String),
    /// That of a pull request of ours.
    Ours(TicketKey, PullRequestRef),
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Vec<ChecksChanged>, Unreadable> {
    let Hook::GitHub { event, .. } = hook else {
        return Ok(Vec::new());
    };
    let (is_complete, repository, head, branches) = match *event {
        "check_run" => {
            let wire::CheckRunPayload { action, check_run, repository } = hook.read()?;
            let branches = Vec::from_iter(check_run.check_suite.head_branch);
            (action == "completed", repository, check_run.head_sha, branches)
        }
        "check_suite" => {
            let wire::CheckSuitePayload { action, check_suite, repository } = hook.read()?;
            let branches = Vec::from_iter(check_suite.head_branch);
            (action == "completed", repository, check_suite.head_sha, branches)
        }
        "status" => {
            let payload: wire::StatusPayload = hook.read()?;
            let branches = payload.branches.into_iter().map(|branch| branch.name).collect();
            (payload.state != "pending", payload.repository, payload.sha, branches)
        }
        _ => return Ok(Vec::new()),
    };
    let repository = hook.repository(repository);
    let changed = |branch| ChecksChanged {
        head: head.clone(),
        of: Of::Branch(repository.clone(), branch),
    };
    Ok(branches.into_iter().filter(|_| is_complete).map(changed).collect())
}

impl ChecksChanged {
    /// The head of an open pull request of ours, whose checks a poll looks at.
    pub(crate) fn from_poll(record: &PullRequestRecord, head: CommitId) -> Self {
        Self {
            head,
            of: Of::Ours(record.ticket.clone(), record.pull_request.clone()),
        }
    }
}

impl Kind for ChecksChanged {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let (ticket, ours) = match &self.of {
            Of::Ours(ticket, ours) => (ticket, ours),
            Of::Branch(repository, branch) => {
                let Some(record) = facts.branch(repository, branch)? else {
                    return Ok(Verdict::nothing("not a branch of ours"));
                };
                let Some(ours) = &record.pull_request else {
                    let early = format!("the pull request of {branch} is not recorded yet");
                    return Ok(Verdict::Early(early));
                };
                let now = facts.pull_request(repository, &ours.number)?;
                if now.head != self.head || is_closed(now) {
                    return Ok(Verdict::nothing("not the open head of the pull request"));
                }
                (&record.ticket, ours)
            }
        };
        let checks = facts.checks(&ours.repository, &self.head)?;
        if checks.is_empty() {
            return Ok(Verdict::NoChecks);
        }
        let Some(conclusion) = github::conclusion(checks) else {
            return Ok(Verdict::nothing("checks are not complete"));
        };
        let summary = ChecksSummary {
            pull_request: ours.clone(),
            head: self.head.clone(),
            conclusion,
            failed: failed(checks),
        };
        let at = checks.iter().filter_map(|check| check.completed_at).max();
        Ok(Verdict::from(Follows {
            ticket: ticket.clone(),
            key: key(ours, &self.head, &digest(checks)),
            at: at.unwrap_or(facts.now),
            actor: None,
            reason: Reason::ChecksCompleted(summary),
        }))
    }
}

/// No check has reported on the head of a pull request of ours, however long one waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChecksAbsent {
    ticket: TicketKey,
    ours: PullRequestRef,
    head: CommitId,
}

impl ChecksAbsent {
    pub(crate) fn from_poll(record: &PullRequestRecord, head: CommitId) -> Self {
        Self {
            ticket: record.ticket.clone(),
            ours: record.pull_request.clone(),
            head,
        }
    }
}

impl Kind for ChecksAbsent {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let summary = ChecksSummary {
            pull_request: self.ours.clone(),
            head: self.head.clone(),
            conclusion: domain::Conclusion::Absent,
            failed: Vec::new(),
        };
        Ok(Verdict::from(Follows {
            ticket: self.ticket.clone(),
            key: key(&self.ours, &self.head, "absent"),
            at: facts.now,
            actor: None,
            reason: Reason::ChecksCompleted(summary),
        }))
    }
}

/// It changes when a check runs again or ends differently.
fn key(ours: &PullRequestRef, head: &CommitId, result: &str) -> TriggerKey {
    TriggerKey::new(format!("checks:{}:{head}:{result}", ours.repository))
}

fn failed(checks: &[Check]) -> Vec<FailedCheck> {
    let failed = checks
        .iter()
        .filter(|check| check.conclusion.is_some_and(|end| !end.is_good()));
    failed.take(FAILED_CHECKS).map(failed_check).collect()
}

fn digest(checks: &[Check]) -> String {
    let line = |check: &Check| {
        let end = check.conclusion.map(github::CheckConclusion::as_str);
        format!(
            "{:?} {} {} {end:?} {:?}\n",
            check.kind, check.id, check.suite, check.completed_at
        )
    };
    let mut lines: Vec<_> = checks.iter().map(line).collect();
    lines.sort();
    hex::sha256(lines.concat().as_bytes())
}

fn failed_check(check: &Check) -> FailedCheck {
    // A log is no markup: what looks like a tag stands for itself.
    let clean = domain::text::without_hidden(&check.output_tail);
    let mut start = clean.len().saturating_sub(LOG_TAIL_BYTES);
    while !clean.is_char_boundary(start) {
        start += 1;
    }
    FailedCheck {
        name: pin::cut(&pin::sanitise(&check.name), 200),
        url: check.url.clone(),
        log_tail: clean[start..].to_owned(),
    }
}
