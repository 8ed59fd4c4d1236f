//! Return of a ticket: a user moves it to a status of the rules after our work on it ended.

use domain::{
    Job, JobRequest, JobSubject, PullRequestRecord, PullRequestStatus, RepositoryRules, ReviewRound,
    SkipReason, TicketBackground, TicketComment, TicketKey, TicketRow, TicketText, Timestamp, Trigger,
    TriggerKey, TriggerReason,
};

use super::{
    EventKind, EventVerdict, NewTrigger, check_active_work, closed::is_closed, reviewed::list_own_changes,
};
use crate::{
    facts::{DecisionFacts, EventActor, Need, PROGRAM, tracker_reader::TrackerIssue},
    policy::{
        job_request::{clean_account_name, decide_after_approval, name_approver, refuse_program},
        repair, skip,
        status_check::{WorkApproval, asks_for_work},
    },
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload},
};

// Age of a status change, in milliseconds, up to which the log still has what followed from it: a day less than the log
// keeps its records.
const HANDLED_MS: i64 = 29 * 24 * 60 * 60 * 1000;

/// Status change of a ticket. The ticket's history decides whether it is a return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TicketReturnEvent {
    ticket: TicketKey,
    status: String,
    /// Status change from a signed webhook, because the changelog may lag behind it.
    reported: Option<WorkApproval>,
}

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<TicketReturnEvent>, UnreadablePayload> {
    let WebhookPayload::Jira { instance, payload } = hook else {
        return Ok(None);
    };
    let changelog = payload.changelog.as_ref();
    let moved = changelog.filter(|_| payload.webhook_event == "jira:issue_updated");
    let Some((id, status)) = moved.and_then(crate::webhook::payload::jira::JiraHookChangelog::status) else {
        return Ok(None);
    };
    let (ticket, at) = payload.ticket_and_time(*instance)?;
    let reported = WorkApproval {
        changelog: Some(id),
        at,
        by: Some(payload.actor()).filter(|actor| !actor.id.is_empty()),
    };
    Ok(Some(TicketReturnEvent {
        ticket,
        status,
        reported: Some(reported),
    }))
}

impl TicketReturnEvent {
    /// Ticket that a poll found in the status.
    pub(crate) const fn from_poll(ticket: TicketKey, status: String) -> Self {
        Self {
            ticket,
            status,
            reported: None,
        }
    }

    /// Status change that brought the ticket into its current status; `None` when the ticket has left the status or was
    /// created in it.
    fn approval(&self, issue: &TrackerIssue) -> Option<WorkApproval> {
        if !issue.status.eq_ignore_ascii_case(&self.status) {
            return None;
        }
        let reported = self.reported.as_ref();
        let is_reported = |entry: &&jira::StatusChange| {
            reported.is_some_and(|reported| reported.changelog.as_ref() == Some(&entry.id.0))
        };
        if let (Some(reported), None) = (reported, issue.moves.iter().find(is_reported)) {
            return Some(reported.clone());
        }
        let last = issue.moves.last()?;
        let is_there = last.to.eq_ignore_ascii_case(&issue.status);
        is_there.then(|| WorkApproval {
            changelog: Some(last.id.0.clone()),
            at: last.at.unwrap_or_default(),
            by: last.by.clone(),
        })
    }

    fn follows(&self, approval: &WorkApproval, key: TriggerKey, reason: TriggerReason) -> EventVerdict {
        EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key,
            at: approval.at,
            actor: name_approver(approval),
            reason,
        })
    }

    /// Job for the return: continues the open pull request, else starts again.
    fn again(
        &self,
        issue: &TrackerIssue,
        approval: &WorkApproval,
        rules: &RepositoryRules,
        facts: &DecisionFacts,
    ) -> Result<Result<TriggerReason, EventVerdict>, Need> {
        if let Some(reason) = continue_pull_request(&self.ticket, issue, approval, rules, facts)? {
            return Ok(Ok(reason));
        }
        let since = match find_last_work(facts.history(&self.ticket)?) {
            Some(asked) => asked,
            None => find_last_run(facts.row(&self.ticket)?).unwrap_or_default(),
        };
        Ok(
            match decide_after_approval(&self.ticket, issue, approval, rules, facts)? {
                Ok(mut reason) => {
                    if let TriggerReason::JobRequested(job) = &mut reason {
                        // Comments since the last request come first in the prompt.
                        text_pin::mark_new(&mut job.text, since);
                    }
                    Ok(reason)
                }
                Err(problem) => Err(EventVerdict::Never(problem.to_string())),
            },
        )
    }
}

/// Job that continues our open pull request with the instructions since the last request; `None` without an open pull
/// request or without new instructions.
pub(super) fn continue_pull_request(
    ticket: &TicketKey,
    issue: &TrackerIssue,
    approval: &WorkApproval,
    rules: &RepositoryRules,
    facts: &DecisionFacts,
) -> Result<Option<TriggerReason>, Need> {
    let Some(record) = find_open_pull_request(ticket, rules, facts)? else {
        return Ok(None);
    };
    let now = facts.pull_request(&record.pull_request.repository, &record.pull_request.number)?;
    let history = facts.history(ticket)?;
    let since = find_last_work(history).unwrap_or_default();
    let said = list_new_instructions(ticket, issue, approval, since, facts)?;
    let Some(asked) = repair::find_last_request(history) else {
        return Ok(None);
    };
    if said.is_empty() || is_closed(now) || skip::find_own_skip(now, rules).is_some() {
        return Ok(None);
    }
    let round = ReviewRound {
        files: list_own_changes(record, facts)?,
        ..build_review_round(record, now.head.clone(), &said)
    };
    Ok(Some(build_review_request(
        record,
        asked.text.clone(),
        rules,
        round,
    )))
}

/// Our open pull request in the repository of the rules.
fn find_open_pull_request<'a>(
    ticket: &TicketKey,
    rules: &RepositoryRules,
    facts: &'a DecisionFacts,
) -> Result<Option<&'a PullRequestRecord>, Need> {
    for ours in facts.row(ticket)?.pull_requests.iter().rev() {
        if rules.repository().is_ok_and(|name| name == ours.repository)
            && let Some(record) = facts.record(&ours.repository, &ours.number)?
            && record.status == PullRequestStatus::Open
        {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

/// Time of the last request for work on the ticket.
fn find_last_work(history: &[Trigger]) -> Option<Timestamp> {
    find_last_asked(history, &[Job::Implement, Job::AddressReview])
}

/// Start of the last run that worked on the ticket. The row outlives the log, whose records age out.
fn find_last_run(row: &TicketRow) -> Option<Timestamp> {
    let mut runs = row.runs.iter().rev();
    let last = runs.find(|run| run.job == Job::Implement)?;
    Some(last.started_at)
}

/// Time of the last request for one of these jobs on the ticket.
fn find_last_asked(history: &[Trigger], jobs: &[Job]) -> Option<Timestamp> {
    let mut asked = history.iter().rev();
    let last = asked.find(|trigger| trigger.reason.job().is_some_and(|job| jobs.contains(&job)));
    last.map(|trigger| trigger.at)
}

/// Pinned instructions of authorized users since then, oldest first.
fn list_new_instructions(
    ticket: &TicketKey,
    issue: &TrackerIssue,
    approval: &WorkApproval,
    since: Timestamp,
    facts: &DecisionFacts,
) -> Result<Vec<TicketComment>, Need> {
    let comments = crate::policy::job_request::remove_own_comments(issue, facts);
    let recent = TrackerIssue {
        comments: comments
            .into_iter()
            .filter(|comment| comment.created > since)
            .collect(),
        ..TrackerIssue::default()
    };
    // Only the authors of recent comments are checked, because each check may cost a request.
    let may = crate::policy::job_request::list_instructors(ticket, &recent, approval, facts)?;
    let pinned = text_pin::pin_text(TicketText::default(), &recent.comments, approval.at, &may);
    let instructions = pinned.comments.into_iter().filter(|comment| comment.may_instruct);
    Ok(instructions.collect())
}

/// Review round from the comments, as a review of the whole change.
fn build_review_round(
    record: &PullRequestRecord,
    head: domain::CommitId,
    said: &[TicketComment],
) -> ReviewRound {
    let texts: Vec<&str> = said.iter().map(|comment| comment.text.as_str()).collect();
    ReviewRound {
        pull_request: record.pull_request.clone(),
        head,
        id: 0,
        author: said
            .last()
            .map(|comment| comment.author.clone())
            .unwrap_or_default(),
        asks_for_changes: true,
        body: text_pin::pin_words(&texts.join("\n\n")),
        threads: Vec::new(),
        left: None,
        deciders: Vec::new(),
        by_program: false,
        files: Vec::new(),
    }
}

fn build_review_request(
    record: &PullRequestRecord,
    text: TicketText,
    rules: &RepositoryRules,
    round: ReviewRound,
) -> TriggerReason {
    TriggerReason::JobRequested(Box::new(JobRequest {
        job: Job::AddressReview,
        repository: record.pull_request.repository.clone(),
        text,
        rules: rules.clone(),
        background: TicketBackground::default(),
        about: JobSubject::Review(Box::new(round)),
    }))
}

impl EventKind for TicketReturnEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let rules = facts.rules(&self.ticket)?;
        let asks = |rules: &&RepositoryRules| {
            rules.jira.reopens(&self.status) && !asks_for_work(&self.status, rules)
        };
        let Some(rules) = rules.filter(asks) else {
            return Ok(EventVerdict::nothing("the status brings no ticket back"));
        };
        let asked = find_last_asked(facts.history(&self.ticket)?, &[Job::Implement]);
        let worked_on = if let Some(asked) = asked {
            asked
        } else if let Some(began) = find_last_run(facts.row(&self.ticket)?) {
            // What followed from an older status change may have aged out, too, and must not follow again.
            began.max(facts.now.plus_ms(-HANDLED_MS))
        } else {
            return Ok(EventVerdict::nothing("the ticket was not worked on"));
        };
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(EventVerdict::Never(detail.clone())),
        };
        // A status change before the last request belongs to the earlier work.
        let approval = self.approval(issue).filter(|approval| approval.at > worked_on);
        let Some(approval) = approval else {
            return Ok(EventVerdict::nothing(
                "the ticket did not come back since it was worked on",
            ));
        };
        let by = approval.by.clone().unwrap_or_default();
        let person = EventActor::of_account(&self.ticket, &by);
        // The settings may not name the writer account. Its marked comments on the issue reveal it.
        if facts.is_ours(&person) || issue.our_accounts.contains(&by.id) {
            return Ok(EventVerdict::nothing("our own account did it"));
        }
        let key = TriggerKey::new(format!(
            "changelog:{}",
            approval.changelog.as_deref().unwrap_or_default()
        ));
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        if let Some(verdict) = check_active_work(&self.ticket, facts)? {
            return Ok(verdict);
        }
        if facts.is_program(&person) {
            let refused = refuse_program(&self.ticket, approval.by.as_ref(), facts)?;
            let refused = refused.map(|reason| self.follows(&approval, key, reason));
            return Ok(refused.unwrap_or_else(|| EventVerdict::nothing(PROGRAM)));
        }
        if !*facts.authority(&person)? {
            tracing::info!(ticket = %self.ticket, "no work: the user who returned the ticket is not allowed to request it");
            let refused = SkipReason::NotAllowed {
                actor: clean_account_name(approval.by.as_ref()),
                group: facts.group.clone(),
                role: facts.role.clone(),
            };
            return Ok(self.follows(&approval, key, TriggerReason::Skipped(refused)));
        }
        let again = self.again(issue, &approval, rules, facts)?;
        Ok(again.map_or_else(|verdict| verdict, |reason| self.follows(&approval, key, reason)))
    }
}
