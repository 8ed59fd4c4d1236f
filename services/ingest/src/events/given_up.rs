//! Close of a competing pull request without a merge. It had blocked work on a ticket, so the request is repeated. A
//! reopened pull request needs no event: each request checks the open ones.

use domain::{Job, RepositoryName, SkipReason, TicketKey, Trigger, TriggerKey, TriggerReason};
use github::PullRequest;

use super::{
    EventKind, EventVerdict, NewTrigger, assignment::is_assigned, competing_close::ClosedPullRequest,
};
use crate::{
    facts::{DecisionFacts, Need, tracker_reader::TrackerIssue},
    policy::{
        job_request::decide_after_approval,
        status_check::{WorkApproval, asks_for_work},
    },
    webhook::payload::{UnreadablePayload, WebhookPayload},
};

/// Close of a pull request of any author without a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompetingCloseEvent(ClosedPullRequest);

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<CompetingCloseEvent>, UnreadablePayload> {
    Ok(ClosedPullRequest::from_webhook(hook, false)?.map(CompetingCloseEvent))
}

impl CompetingCloseEvent {
    /// Closed pull request from a listing.
    pub(crate) fn from_poll(repository: &RepositoryName, closed: &PullRequest) -> Self {
        Self(ClosedPullRequest::from_listing(repository, closed))
    }
}

/// Request that the open pull request blocked, unless a later request exists.
fn find_blocked_request<'a>(history: &'a [Trigger], now: &PullRequest) -> Option<&'a Trigger> {
    let last = history.iter().rev().find(|trigger| {
        trigger.reason.job() == Some(Job::Implement) || matches!(trigger.reason, TriggerReason::Skipped(_))
    })?;
    let is_it = matches!(&last.reason, TriggerReason::Skipped(SkipReason::PullRequestExists { url, .. }) if *url == now.url);
    is_it.then_some(last)
}

/// Approval of that request: its actor and its time.
fn recover_approval(kept_back: &Trigger) -> WorkApproval {
    let changelog = kept_back.key.as_str().strip_prefix("changelog:");
    let by = kept_back.actor.as_ref().map(|name| domain::TrackerAccount {
        display_name: name.clone(),
        ..domain::TrackerAccount::default()
    });
    WorkApproval {
        changelog: changelog.map(str::to_owned),
        at: kept_back.at,
        by,
    }
}

impl EventKind for CompetingCloseEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let Some(rules) = facts.book.for_repository(&self.0.repository) else {
            return Ok(EventVerdict::nothing("no rules for the repository"));
        };
        // Most pull requests name no ticket. The check comes first, because it needs no read.
        let Some(ticket) = self.0.find_ticket(rules) else {
            return Ok(EventVerdict::nothing("it names no ticket of the project"));
        };
        let history = facts.history(&ticket)?;
        if history.is_empty() {
            return Ok(EventVerdict::nothing(
                "no work was requested on the ticket that it names",
            ));
        }
        // A user who closes our pull request rejects the change. That is not a request for another one.
        if facts.record(&self.0.repository, &self.0.number)?.is_some() {
            return Ok(EventVerdict::nothing("a pull request of ours"));
        }
        let now = facts.pull_request(&self.0.repository, &self.0.number)?;
        let Some(closed_at) = now.closed_at.filter(|_| !now.merged) else {
            return Ok(EventVerdict::nothing("the pull request is open again, or merged"));
        };
        // The time of the close makes a second close a new event.
        let key = TriggerKey::new(format!(
            "asked_again:{}#{}:{}",
            self.0.repository,
            self.0.number,
            closed_at.unix_s()
        ));
        if let Some(sequence) = facts.known(&ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let Some(kept_back) = find_blocked_request(history, now) else {
            return Ok(EventVerdict::nothing("it kept us from no work"));
        };
        let issue = match facts.issue(&ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(EventVerdict::Never(detail.clone())),
        };
        if !is_still_requested(&ticket, issue, rules) {
            return Ok(EventVerdict::nothing("the ticket asks for no work any more"));
        }
        let approval = recover_approval(kept_back);
        Ok(
            match decide_after_approval(&ticket, issue, &approval, rules, facts)? {
                Ok(reason) => EventVerdict::from(NewTrigger {
                    ticket,
                    key,
                    at: approval.at,
                    actor: kept_back.actor.clone(),
                    reason,
                }),
                Err(problem) => EventVerdict::Never(problem.to_string()),
            },
        )
    }
}

/// True when the ticket still requests work.
fn is_still_requested(ticket: &TicketKey, issue: &TrackerIssue, rules: &domain::RepositoryRules) -> bool {
    !issue.is_over && (asks_for_work(&issue.status, rules) || is_assigned(issue, ticket, rules))
}
