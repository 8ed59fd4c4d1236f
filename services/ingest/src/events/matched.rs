//! JQL condition of the rules: the first match of a ticket requests work.

use domain::{Job, TicketKey, TicketRow, Trigger, TriggerKey};

use super::{EventKind, EventVerdict, NewTrigger};
use crate::{
    facts::{DecisionFacts, EventActor, Need},
    policy::{
        job_request::{decide_after_approval, name_approver},
        status_check::WorkApproval,
    },
    webhook::payload::{UnreadablePayload, WebhookPayload},
};

/// Possible match of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionMatchEvent {
    ticket: TicketKey,
    /// True when a search found the ticket, so that the condition needs no check.
    is_found: bool,
}

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<ConditionMatchEvent>, UnreadablePayload> {
    let WebhookPayload::Jira { instance, payload } = hook else {
        return Ok(None);
    };
    let mut items = payload.changelog.iter().flat_map(|changelog| &changelog.items);
    let is_change = match payload.webhook_event.as_str() {
        "jira:issue_created" => true,
        "jira:issue_updated" => items.next().is_some(),
        _ => false,
    };
    if !is_change {
        return Ok(None);
    }
    Ok(Some(ConditionMatchEvent {
        ticket: payload.ticket_and_time(*instance)?.0,
        is_found: false,
    }))
}

impl ConditionMatchEvent {
    /// Ticket from the search of a poll.
    pub(crate) const fn from_poll(ticket: TicketKey) -> Self {
        Self {
            ticket,
            is_found: true,
        }
    }

    /// Ticket whose condition Jira has to check.
    pub(crate) const fn to_check(ticket: TicketKey) -> Self {
        Self {
            ticket,
            is_found: false,
        }
    }

    fn holds(&self, condition: &str, facts: &DecisionFacts) -> Result<bool, Need> {
        if self.is_found {
            return Ok(true);
        }
        Ok(match facts.matches(&self.ticket, &condition.to_owned())? {
            Ok(holds) => *holds,
            Err(detail) => {
                // The next poll checks the ticket again with the condition of that time.
                tracing::error!(ticket = %self.ticket, detail, "jira does not understand jira.jql");
                false
            }
        })
    }
}

/// True when work on the ticket was requested before. The row outlives the log, whose records age
/// out.
fn has_earlier_request(history: &[Trigger], row: &TicketRow) -> bool {
    let worked_on = history
        .iter()
        .any(|trigger| trigger.reason.job() == Some(Job::Implement));
    let ran = row.runs.iter().any(|run| run.job == Job::Implement);
    worked_on || ran || !row.pull_requests.is_empty()
}

impl EventKind for ConditionMatchEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let rules = facts.rules(&self.ticket)?;
        let Some(rules) = rules.filter(|rules| !rules.jira.jql.is_empty()) else {
            return Ok(EventVerdict::nothing("no rules with a condition for tickets"));
        };
        // One key per ticket: only the first match requests work.
        let key = TriggerKey::new(format!("matched:{}", self.ticket));
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        if has_earlier_request(facts.history(&self.ticket)?, facts.row(&self.ticket)?) {
            return Ok(EventVerdict::nothing("work on the ticket was asked for before"));
        }
        if !self.holds(&rules.jira.jql, facts)? {
            return Ok(EventVerdict::nothing("the condition of the rules does not hold"));
        }
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(EventVerdict::Never(detail.clone())),
        };
        if issue.is_over {
            return Ok(EventVerdict::nothing("the ticket is closed"));
        }
        let approval = WorkApproval {
            changelog: None,
            at: issue.created.unwrap_or(facts.now),
            by: issue.creator.clone(),
        };
        let person = EventActor::of_account(&self.ticket, &approval.by.clone().unwrap_or_default());
        if facts.is_ours(&person) || facts.is_program(&person) || !*facts.authority(&person)? {
            // No user asked, so Journeyman posts no refusal.
            tracing::info!(ticket = %self.ticket, "no work: the creator of the ticket is not allowed to request it");
            return Ok(EventVerdict::nothing(
                "the creator of the ticket is not allowed to request work",
            ));
        }
        Ok(
            match decide_after_approval(&self.ticket, issue, &approval, rules, facts)? {
                Ok(reason) => EventVerdict::from(NewTrigger {
                    ticket: self.ticket.clone(),
                    key,
                    at: approval.at,
                    actor: name_approver(&approval),
                    reason,
                }),
                Err(problem) => EventVerdict::Never(problem.to_string()),
            },
        )
    }
}
