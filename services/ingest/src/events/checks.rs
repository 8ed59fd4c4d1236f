//! Verdict on the checks of a commit, once all checks on the head of our pull request are complete.

use std::collections::BTreeSet;

use domain::{
    CheckFacts, CheckVerdict, ChecksConclusion, ChecksSummary, CommitId, MergeState, ObservedCheck,
    ObservedWorkflowRun, PullRequestEvent, PullRequestRecord, PullRequestRef, RepositoryName, SkipReason,
    TicketKey, TriggerKey, TriggerReason, can_wait_for_handover, find_last_end, judge_checks,
};
use github::{CommitCheck, CommitRun, PullRequest, WorkflowRunProgress};

use super::{EventKind, EventVerdict, NewTrigger, closed::is_closed};
use crate::{
    facts::{
        DecisionFacts, Need,
        failed_checks::{FAILED_CHECKS, PAGE_CHARS, find_checks_page, summarize_failure},
    },
    hex,
    policy::{repair, skip},
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

const NOT_OPEN_HEAD: &str = "not the open head of the pull request";

/// Possible completion of the checks of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChecksChanged {
    head: CommitId,
    of: HeadOrigin,
}

/// Origin of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
enum HeadOrigin {
    /// Head of a branch, from a webhook.
    Branch(RepositoryName, String),
    /// Head of our pull request.
    Ours(TicketKey, PullRequestRef),
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Vec<ChecksChanged>, UnreadablePayload> {
    let WebhookPayload::GitHub { event, .. } = hook else {
        return Ok(Vec::new());
    };
    let (is_complete, repository, head, branches) = match *event {
        "check_run" => {
            let wire::CheckRunPayload {
                action,
                check_run,
                repository,
            } = hook.read()?;
            let branches = Vec::from_iter(check_run.check_suite.head_branch);
            // The reporter's check run about our own work is not a check of that work, nor is a job of our action.
            let is_of_ci = github::is_ci_check_run(&check_run.name, check_run.external_id.as_deref());
            (
                action == "completed" && is_of_ci,
                repository,
                check_run.head_sha,
                branches,
            )
        }
        "check_suite" => {
            let wire::CheckSuitePayload {
                action,
                check_suite,
                repository,
            } = hook.read()?;
            let branches = Vec::from_iter(check_suite.head_branch);
            (action == "completed", repository, check_suite.head_sha, branches)
        }
        "workflow_run" => {
            let wire::WorkflowRunPayload {
                action,
                workflow_run,
                repository,
            } = hook.read()?;
            let branches = Vec::from_iter(workflow_run.head_branch);
            (action == "completed", repository, workflow_run.head_sha, branches)
        }
        // A commit may be on several branches, so one status may concern several pull requests.
        "status" => {
            let payload: wire::StatusPayload = hook.read()?;
            let branches = payload.branches.into_iter().map(|branch| branch.name).collect();
            (
                payload.state != "pending",
                payload.repository,
                payload.sha,
                branches,
            )
        }
        _ => return Ok(Vec::new()),
    };
    let repository = hook.repository(repository);
    let changed = |branch| ChecksChanged {
        head: head.clone(),
        of: HeadOrigin::Branch(repository.clone(), branch),
    };
    Ok(branches
        .into_iter()
        .filter(|_| is_complete)
        .map(changed)
        .collect())
}

impl ChecksChanged {
    /// Head of our open pull request, from a poll of its checks.
    pub(crate) fn from_poll(record: &PullRequestRecord, head: CommitId) -> Self {
        Self {
            head,
            of: HeadOrigin::Ours(record.ticket.clone(), record.pull_request.clone()),
        }
    }
}

impl EventKind for ChecksChanged {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let (ticket, ours) = match &self.of {
            HeadOrigin::Ours(ticket, ours) => (ticket, ours),
            HeadOrigin::Branch(repository, branch) => {
                let Some(record) = facts.branch(repository, branch)? else {
                    return Ok(EventVerdict::nothing("not a branch of ours"));
                };
                let Some(ours) = &record.pull_request else {
                    let early = format!("the pull request of {branch} is not recorded yet");
                    return Ok(EventVerdict::Early(early));
                };
                let now = facts.pull_request(repository, &ours.number)?;
                if !is_open_head(now, &self.head) {
                    return Ok(EventVerdict::nothing(NOT_OPEN_HEAD));
                }
                (&record.ticket, ours)
            }
        };
        let checks = facts.counted_checks(&ours.repository, &self.head)?;
        let head_facts = HeadFacts {
            facts,
            ours,
            head: &self.head,
        };
        let open = match judge_checks(&head_facts, &facts.patience.limits(), facts.now)? {
            CheckVerdict::AwaitsApproval => return notify_waiting(ticket, ours, &self.head, facts),
            CheckVerdict::Pending { is_run: true } => {
                return Ok(EventVerdict::nothing("a workflow run is not complete"));
            }
            CheckVerdict::Absent => return Ok(EventVerdict::NoChecks),
            CheckVerdict::Pending { is_run: false } => {
                return Ok(EventVerdict::nothing("checks are not complete"));
            }
            CheckVerdict::Settling { remaining } => Some(EventVerdict::Unsettled {
                why: "the last check has ended just now: more may begin".to_owned(),
                after: remaining,
            }),
            // The end of that check is an event. If it never ends, an assessment gives a notice.
            CheckVerdict::RequiredMissing { name, since: _ } => Some(EventVerdict::nothing(format!(
                "the required check {name:?} has not reported"
            ))),
            CheckVerdict::Failed | CheckVerdict::Passed => None,
        };
        let Some(conclusion) = github::conclude_checks(&checks) else {
            return Ok(EventVerdict::nothing("checks are not complete"));
        };
        // The lookup in the log comes first, because a known key makes all further reads unnecessary.
        let key = build_checks_key(ours, &self.head, &hash_checks(&checks));
        if let Some(sequence) = facts.known(ticket, &key)? {
            // An event has one trigger: the repair comes first, and the next event about the same failure gives the notice
            // that other runs need an approval.
            if conclusion == ChecksConclusion::Failure
                && awaits_approval(&facts.counted_runs(&ours.repository, &self.head)?)
            {
                return notify_waiting(ticket, ours, &self.head, facts);
            }
            return Ok(EventVerdict::Known(*sequence));
        }
        if let Some(open) = open {
            return Ok(open);
        }
        if let Some(obstacle) = find_obstacle(ours, &self.head, facts)? {
            return Ok(EventVerdict::nothing(obstacle));
        }
        // Most workflows do not run on a head that conflicts, so its green checks prove nothing about the merge.
        if conclusion == ChecksConclusion::Success && is_conflicting(ours, facts)? {
            return Ok(EventVerdict::nothing("the pull request conflicts with its base"));
        }
        let at = checks.iter().filter_map(|check| check.completed_at).max();
        let follows = |reason| NewTrigger {
            ticket: ticket.clone(),
            key: key.clone(),
            at: at.unwrap_or(facts.now),
            actor: None,
            reason,
        };
        if conclusion == ChecksConclusion::Failure {
            let summary = summarize_failure(ours, &self.head, &checks, facts)?;
            return Ok(follows(repair::decide_repair(ticket, summary, facts)?).into());
        }
        let summary = ChecksSummary {
            page: find_checks_page(&checks),
            ignored: list_ignored(ours, &self.head, facts)?,
            ..ChecksSummary::new(ours.clone(), self.head.clone(), conclusion)
        };
        Ok(follows(PullRequestEvent::ChecksCompleted(summary).into()).into())
    }
}

/// Lists the checks of a head that the rules ignore.
fn list_ignored(ours: &PullRequestRef, head: &CommitId, facts: &DecisionFacts) -> Result<Vec<String>, Need> {
    let ignored = facts.ignored_checks(&ours.repository, head)?;
    let names = ignored.into_iter().take(FAILED_CHECKS);
    Ok(names.map(|name| text_pin::clean_text(name, 200)).collect())
}

fn awaits_approval(runs: &[CommitRun]) -> bool {
    runs.iter()
        .any(|run| run.progress == WorkflowRunProgress::AwaitsApproval)
}

/// Facts about the checks of a head, read one by one.
struct HeadFacts<'a> {
    facts: &'a DecisionFacts,
    ours: &'a PullRequestRef,
    head: &'a CommitId,
}

impl CheckFacts for HeadFacts<'_> {
    type Missing = Need;

    fn checks(&self) -> Result<Vec<ObservedCheck>, Need> {
        let checks = self.facts.counted_checks(&self.ours.repository, self.head)?;
        Ok(checks.iter().map(ObservedCheck::from).collect())
    }

    fn runs(&self) -> Result<Vec<ObservedWorkflowRun>, Need> {
        let runs = self.facts.counted_runs(&self.ours.repository, self.head)?;
        Ok(runs.iter().cloned().map(ObservedWorkflowRun::from).collect())
    }

    /// Without a settle time, an operator wants no wait for further checks, so the required ones are not read.
    fn required(&self) -> Result<Vec<String>, Need> {
        if self.facts.patience.settle.is_zero() {
            return Ok(Vec::new());
        }
        let now = self
            .facts
            .pull_request(&self.ours.repository, &self.ours.number)?;
        let required = self
            .facts
            .counted_required(&self.ours.repository, &now.base_branch)?;
        Ok(required.into_owned())
    }
}

/// True when head and base of our pull request changed the same lines. A repository without rules is only observed.
fn is_conflicting(ours: &PullRequestRef, facts: &DecisionFacts) -> Result<bool, Need> {
    if facts.book.for_repository(&ours.repository).is_none() {
        return Ok(false);
    }
    let now = facts.pull_request(&ours.repository, &ours.number)?;
    Ok(now.merge.state == MergeState::Conflicting)
}

/// Returns the reason why the checks of a head lead to nothing: a newer head, an end, or a skip label. A poll may know an
/// older head than the pull request has.
fn find_obstacle(
    ours: &PullRequestRef,
    head: &CommitId,
    facts: &DecisionFacts,
) -> Result<Option<&'static str>, Need> {
    let now = facts.pull_request(&ours.repository, &ours.number)?;
    if !is_open_head(now, head) {
        return Ok(Some(NOT_OPEN_HEAD));
    }
    let rules = facts.book.for_repository(&ours.repository);
    let is_skipped = rules.is_some_and(|rules| skip::find_own_skip(now, rules).is_some());
    Ok(is_skipped.then_some(skip::FORBIDDEN))
}

fn is_open_head(now: &PullRequest, head: &CommitId) -> bool {
    now.head == *head && !is_closed(now)
}

/// Absence of checks on the head of our pull request after the waiting time.
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

impl EventKind for ChecksAbsent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if let Some(obstacle) = find_obstacle(&self.ours, &self.head, facts)? {
            return Ok(EventVerdict::nothing(obstacle));
        }
        // The caller read the checks a moment ago, and the first one may have begun since.
        if !facts.counted_checks(&self.ours.repository, &self.head)?.is_empty() {
            return Ok(EventVerdict::nothing("a check has reported"));
        }
        let runs = facts.counted_runs(&self.ours.repository, &self.head)?;
        if runs.iter().any(|run| run.progress != WorkflowRunProgress::Ended) {
            return Ok(EventVerdict::nothing("a workflow run is not complete"));
        }
        let summary = ChecksSummary {
            ignored: list_ignored(&self.ours, &self.head, facts)?,
            ..ChecksSummary::new(self.ours.clone(), self.head.clone(), ChecksConclusion::Absent)
        };
        Ok(EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key: build_checks_key(&self.ours, &self.head, "absent"),
            at: facts.now,
            actor: None,
            reason: PullRequestEvent::ChecksCompleted(summary).into(),
        }))
    }
}

/// Checks on the head of our pull request that have not ended for so long that a user should know. Where they may wait
/// for the end of the draft, the handover names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChecksPending {
    ticket: TicketKey,
    ours: PullRequestRef,
    head: CommitId,
}

impl ChecksPending {
    pub(crate) fn from_poll(record: &PullRequestRecord, head: CommitId) -> Self {
        Self {
            ticket: record.ticket.clone(),
            ours: record.pull_request.clone(),
            head,
        }
    }

    /// True when the draft may be the reason for which the checks have not ended.
    fn can_wait_for_handover(&self, facts: &DecisionFacts) -> Result<bool, Need> {
        let now = facts.pull_request(&self.ours.repository, &self.ours.number)?;
        if !now.draft || facts.book.for_repository(&self.ours.repository).is_none() {
            return Ok(false);
        }
        let head_facts = HeadFacts {
            facts,
            ours: &self.ours,
            head: &self.head,
        };
        Ok(can_wait_for_handover(
            &head_facts.checks()?,
            &head_facts.required()?,
        ))
    }
}

impl EventKind for ChecksPending {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let key = build_checks_key(&self.ours, &self.head, "unfinished");
        // The handover was the notice.
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let open = list_open_checks(&self.ours, &self.head, facts)?;
        // Without names, a handover could not be distinguished from a complete one.
        if open.names.is_empty() || open.needs_approval || !self.can_wait_for_handover(facts)? {
            return notify_waiting(&self.ticket, &self.ours, &self.head, facts);
        }
        if let Some(obstacle) = find_obstacle(&self.ours, &self.head, facts)? {
            return Ok(EventVerdict::nothing(obstacle));
        }
        let head_facts = HeadFacts {
            facts,
            ours: &self.ours,
            head: &self.head,
        };
        let last = find_last_end(&head_facts.checks()?, facts.now);
        if last.is_some_and(|last| facts.now.since(last) < facts.patience.pending) {
            return Ok(EventVerdict::nothing("a check has ended since"));
        }
        if is_conflicting(&self.ours, facts)? {
            return Ok(EventVerdict::nothing("the pull request conflicts with its base"));
        }
        let summary = ChecksSummary {
            page: open.page,
            unfinished: open.names,
            ignored: list_ignored(&self.ours, &self.head, facts)?,
            ..ChecksSummary::new(self.ours.clone(), self.head.clone(), ChecksConclusion::Success)
        };
        Ok(EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key,
            at: facts.now,
            actor: None,
            reason: PullRequestEvent::ChecksCompleted(summary).into(),
        }))
    }
}

/// Checks of a head that have not ended: those that need an approval, else all of them.
struct OpenChecks {
    /// True when all checks have ended.
    is_none: bool,
    /// Names, at most 20.
    names: Vec<String>,
    /// Page on which a user can act; may be empty.
    page: String,
    needs_approval: bool,
}

/// Lists the checks that have not ended; runs without a check count where no check is open.
fn list_open_checks(
    ours: &PullRequestRef,
    head: &CommitId,
    facts: &DecisionFacts,
) -> Result<OpenChecks, Need> {
    let checks = facts.counted_checks(&ours.repository, head)?;
    let runs = facts.counted_runs(&ours.repository, head)?;
    let of = |progress: WorkflowRunProgress| runs.iter().filter(move |run| run.progress == progress);
    // Waiting for approval takes precedence: no amount of time ends it without a user.
    let needs_approval = of(WorkflowRunProgress::AwaitsApproval).next().is_some();
    let (mut names, mut pages) = (BTreeSet::new(), Vec::new());
    if needs_approval {
        names.extend(of(WorkflowRunProgress::AwaitsApproval).map(|run| run.name.as_str()));
        pages.extend(of(WorkflowRunProgress::AwaitsApproval).map(|run| run.url.as_str()));
    } else {
        let open = || checks.iter().filter(|check| check.conclusion.is_none());
        names.extend(open().map(|check| check.name.as_str()));
        pages.extend(open().map(|check| check.url.as_str()));
        if names.is_empty() {
            names.extend(of(WorkflowRunProgress::UnderWay).map(|run| run.name.as_str()));
            pages.extend(of(WorkflowRunProgress::UnderWay).map(|run| run.url.as_str()));
        }
    }
    let is_none = names.is_empty();
    let page = pages.into_iter().find(|page| !page.is_empty());
    let names = names
        .into_iter()
        .filter(|name| !name.is_empty())
        .take(FAILED_CHECKS);
    Ok(OpenChecks {
        is_none,
        names: names.map(|name| text_pin::clean_text(name, 200)).collect(),
        page: text_pin::truncate_text(page.unwrap_or_default(), PAGE_CHARS),
        needs_approval,
    })
}

/// Comment on the ticket, once per head, with the checks that have not ended and the page where a user can act.
fn notify_waiting(
    ticket: &TicketKey,
    ours: &PullRequestRef,
    head: &CommitId,
    facts: &DecisionFacts,
) -> Result<EventVerdict, Need> {
    let open = list_open_checks(ours, head, facts)?;
    if open.is_none {
        return Ok(EventVerdict::nothing("the checks have ended"));
    }
    let result = if open.needs_approval {
        "approval"
    } else {
        "pending"
    };
    let key = build_checks_key(ours, head, result);
    if let Some(sequence) = facts.known(ticket, &key)? {
        return Ok(EventVerdict::Known(*sequence));
    }
    if let Some(obstacle) = find_obstacle(ours, head, facts)? {
        return Ok(EventVerdict::nothing(obstacle));
    }
    Ok(EventVerdict::from(NewTrigger {
        ticket: ticket.clone(),
        key,
        at: facts.now,
        actor: None,
        reason: TriggerReason::Skipped(SkipReason::ChecksWait {
            pull_request: ours.clone(),
            checks: open.names,
            needs_approval: open.needs_approval,
            page: open.page,
        }),
    }))
}

/// Trigger key of a result. It changes when a check is rerun or ends differently.
fn build_checks_key(ours: &PullRequestRef, head: &CommitId, result: &str) -> TriggerKey {
    TriggerKey::new(format!("checks:{}:{head}:{result}", ours.repository))
}

fn hash_checks(checks: &[CommitCheck]) -> String {
    let line = |check: &CommitCheck| {
        let end = check.conclusion.map(github::CheckConclusion::as_str);
        format!(
            "{:?} {} {} {end:?} {:?}\n",
            check.kind, check.id, check.suite, check.completed_at
        )
    };
    let mut lines: Vec<_> = checks.iter().map(line).collect();
    // The order of the listing must not change the key.
    lines.sort();
    hex::hash_sha256(lines.concat().as_bytes())
}
