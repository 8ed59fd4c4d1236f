//! JQL condition of the rules: the first match of a ticket requests work.

use domain::{Job, Row, TicketKey, Trigger, TriggerKey};

use super::{
    Follows, Kind, Verdict,
};
use crate::{
    approved::{actor, approved},
    facts::{Facts, Need, Person},
    payload::{Hook, Unreadable},
    standing::Approval,
};

/// Possible match of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    ticket: TicketKey,
    /// True when a search found the ticket, so that the condition needs no check.
    is_found: bool,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<Matched>, Unreadable> {
    let Hook::Jira { instance, payload } = hook else {
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
    Ok(Some(Matched {
        ticket: payload.ticket_and_time(*instance)?.0,
        is_found: false,
    }))
}

impl Matched {
    /// Ticket from the search of a poll.
    pub(crate) const fn from_poll(ticket: TicketKey) -> Self {
        Self { ticket, is_found: true }
    }

    fn holds(&self, condition: &str, facts: &Facts) -> Result<bool, Need> {
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
fn is_old(history: &[Trigger], row: &Row) -> bool {
    let worked_on = history.iter().any(|trigger| trigger.reason.job() == Some(Job::Implement));
    let ran = row.runs.iter().any(|run| run.job == Job::Implement);
    worked_on || ran || !row.pull_requests.is_empty()
}

impl Kind for Matched {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let rules = facts.rules(&self.ticket)?;
        let Some(rules) = rules.filter(|rules| !rules.jira.jql.is_empty()) else {
            return Ok(Verdict::nothing("no rules with a condition for tickets"));
        };
        // One key per ticket: only the first match requests work.
        let key = TriggerKey::new(format!("matched:{}", self.ticket));
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(Verdict::Known(*sequence));
        }
        if is_old(facts.history(&self.ticket)?, facts.row(&self.ticket)?) {
            return Ok(Verdict::nothing("work on the ticket was asked for before"));
        }
        if !self.holds(&rules.jira.jql, facts)? {
            return Ok(Verdict::nothing("the condition of the rules does not hold"));
        }
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(Verdict::Never(detail.clone())),
        };
        if issue.is_over {
            return Ok(Verdict::nothing("the ticket is closed"));
        }
        let approval = Approval {
            changelog: None,
            at: issue.created.unwrap_or(facts.now),
            by: issue.creator.clone(),
        };
        let person = Person::on(&self.ticket, &approval.by.clone().unwrap_or_default());
        if facts.is_ours(&person) || facts.is_program(&person) || !*facts.authority(&person)? {
            // No user asked, so Journeyman posts no refusal.
            tracing::info!(ticket = %self.ticket, "no work: who created the ticket may not ask for it");
            return Ok(Verdict::nothing("who created the ticket may not ask for work"));
        }
        Ok(match approved(&self.ticket, issue, &approval, rules, facts)? {
            Ok(reason) => Verdict::from(Follows {
                ticket: self.ticket.clone(),
                key,
                at: approval.at,
                actor: actor(&approval),
                reason,
            }),
            Err(problem) => Verdict::Never(problem.to_string()),
        })
    }
}
