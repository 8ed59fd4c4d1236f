//! New or edited text of a Jira ticket: its triage, where the rules of the repository enable it.

use std::collections::BTreeSet;

use domain::{
    About, Background, Job, JobRequest, Reason, Rules, RulesProblem, TicketKey, TicketText, Timestamp, TriggerKey,
};

use super::{Follows, Kind, Verdict};
use crate::{
    facts::{Facts, Need, PROGRAM, Person},
    outside::{Edit, Issue},
    payload::{Hook, Unreadable, jira::nobody},
    pin, skip,
    standing::asks_for_work,
};

/// Creation of a ticket, or edit of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextWritten {
    ticket: TicketKey,
    /// Changelog id of the edit; absent: the ticket was created, in this status.
    changelog: Option<String>,
    status: String,
    at: Timestamp,
    /// Author; without an id when Jira does not report the account.
    by: domain::Account,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<TextWritten>, Unreadable> {
    let Hook::Jira { instance, payload } = hook else {
        return Ok(None);
    };
    let (status, changelog) = match payload.webhook_event.as_str() {
        // A status change is another kind, even when the entry contains an edit too.
        "jira:issue_updated" => match payload.changelog.as_ref() {
            Some(changelog) if changelog.status().is_none() && changelog.is_edit() => {
                (String::new(), Some(changelog.id()))
            }
            Some(_) | None => return Ok(None),
        },
        "jira:issue_created" => match payload.status() {
            Some(status) => (status, None),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let (ticket, at) = payload.ticket_and_time(*instance)?;
    Ok(Some(TextWritten {
        ticket,
        changelog,
        status,
        at,
        by: payload.actor(),
    }))
}

impl TextWritten {
    /// Last edit of a ticket's text from a poll, or its creation; `None` when both are before `since`.
    pub(crate) fn from_poll(
        issue: &jira::ChangedIssue,
        last_edit: Option<Edit>,
        since: Timestamp,
    ) -> Option<Self> {
        let written = |changelog: Option<String>, at: Timestamp, by: Option<domain::Account>| Self {
            ticket: issue.key.clone(),
            changelog,
            status: issue.status.clone(),
            at,
            by: by.unwrap_or_else(nobody),
        };
        match last_edit {
            Some(edit) => Some(written(Some(edit.id), edit.at, edit.by)),
            None => (issue.created >= since).then(|| written(None, issue.created, issue.creator.clone())),
        }
    }

    fn key(&self) -> TriggerKey {
        let what = self.changelog.as_deref().unwrap_or("created");
        TriggerKey::new(format!("triage:{what}"))
    }
}

impl Kind for TextWritten {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let Some(rules) = facts.rules(&self.ticket)? else {
            return Ok(Verdict::nothing("no rules for the project"));
        };
        if rules.triage.is_off() {
            return Ok(Verdict::nothing("nothing follows from the ticket's text"));
        }
        if self.changelog.is_none() && asks_for_work(&self.status, rules) {
            return Ok(Verdict::nothing("the new ticket asks for work at once"));
        }
        let written = Written {
            ticket: &self.ticket,
            key: self.key(),
            at: self.at,
            by: &self.by,
        };
        let is_last = |issue: &Issue| !has_later_text(issue, self.changelog.as_deref(), self.at);
        triage(written, is_last, rules, facts)
    }
}

/// Text of a ticket with its last author.
pub(super) struct Written<'a> {
    pub(super) ticket: &'a TicketKey,
    pub(super) key: TriggerKey,
    pub(super) at: Timestamp,
    pub(super) by: &'a domain::Account,
}

/// Verdict on the triage of a ticket.
pub(super) fn triage(
    written: Written<'_>,
    is_last: impl Fn(&Issue) -> bool,
    rules: &Rules,
    facts: &Facts,
) -> Result<Verdict, Need> {
    let Written { ticket, key, at, by } = written;
    let person = Person::on(ticket, by);
    if facts.is_ours(&person) {
        return Ok(Verdict::nothing("our own account did it"));
    }
    if facts.is_program(&person) {
        return Ok(Verdict::nothing(PROGRAM));
    }
    if let Some(sequence) = facts.known(ticket, &key)? {
        return Ok(Verdict::Known(*sequence));
    }
    if !rules.triage.anyone && !*facts.authority(&person)? {
        tracing::info!(%ticket, "no triage: who wrote the text may not ask for it");
        return Ok(Verdict::nothing("who wrote the text may not ask for a triage"));
    }
    let issue = match facts.issue(ticket)? {
        Ok(issue) => issue,
        Err(detail) => return Ok(Verdict::Never(detail.clone())),
    };
    if issue.labels.contains(&rules.triage.done_label) {
        return Ok(Verdict::nothing("the ticket is triaged"));
    }
    if !is_last(issue) {
        return Ok(Verdict::nothing("a later edit of the text stands for it"));
    }
    let raw = skip::text_of(issue);
    if skip::skip(&raw, &[], rules, &[]).is_some() {
        return Ok(Verdict::nothing("a skip rule forbids work on the ticket"));
    }
    let request = match request(pin::pin(raw, &[], at, &BTreeSet::new()), rules) {
        Ok(request) => request,
        Err(problem) => return Ok(Verdict::Never(problem.to_string())),
    };
    Ok(Verdict::from(Follows {
        key,
        ticket: ticket.clone(),
        at,
        actor: Some(by.display_name.clone()).filter(|name| !name.is_empty()),
        reason: Reason::JobRequested(Box::new(request)),
    }))
}

/// Triage job for a text.
pub(super) fn request(text: TicketText, rules: &Rules) -> Result<JobRequest, RulesProblem> {
    Ok(JobRequest {
        job: Job::Triage,
        repository: rules.repository()?,
        text,
        rules: rules.clone(),
        background: Background::default(),
        about: About::default(),
    })
}

/// True when the text was edited after the edit `changelog`, or after the creation, at `at`.
fn has_later_text(issue: &Issue, changelog: Option<&str>, at: Timestamp) -> bool {
    match (changelog, issue.edits.last()) {
        (Some(id), Some(last)) => last.id != id && last.at >= at,
        (None, Some(last)) => last.at >= at,
        (_, None) => false,
    }
}
