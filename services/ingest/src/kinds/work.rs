//! Somebody asks for work on a ticket: it entered the status that asks for it, or somebody said so who may.

use domain::{Reason, RepositoryName, Rules, SkipReason, Source, TicketKey, Timestamp, TriggerKey};

use super::{Follows, Kind, Verdict, returned::continue_pull_request, under_way};
use crate::{
    approved::{actor, approved, name, refused_program},
    facts::{Facts, Need, PROGRAM, Person},
    outside::Issue,
    payload::{
        Hook, Unreadable,
        jira::{Payload, nobody},
    },
    pin,
    standing::{Approval, Standing, asks_for_work, standing},
};

/// Work on a ticket is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    ticket: TicketKey,
    key: TriggerKey,
    /// For a ticket whose project does not say it.
    repository: Option<RepositoryName>,
    asked: Asked,
    /// What whoever asked adds to the ticket's text.
    words: Option<String>,
}

/// How work was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// The ticket came into the status, as a webhook or a search tells; who did it has to be looked at.
    Entered { status: String, approval: Approval },
    /// Somebody asked who may.
    Ordered { at: Timestamp, by: String },
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<Work>, Unreadable> {
    let Hook::Jira { instance, payload } = hook else {
        return Ok(None);
    };
    let Some((status, changelog)) = entered(payload) else {
        return Ok(None);
    };
    let (ticket, at) = payload.ticket_and_time(*instance)?;
    let by = Some(payload.actor()).filter(|actor| !actor.id.is_empty());
    Ok(Some(Work::entered(ticket, status, Approval { changelog, at, by })))
}

/// The status that an issue came into, by a move or by its creation, and the changelog of the move.
fn entered(payload: &Payload) -> Option<(String, Option<String>)> {
    match payload.webhook_event.as_str() {
        "jira:issue_updated" => {
            let (id, status) = payload.changelog.as_ref()?.status()?;
            Some((status, Some(id)))
        }
        "jira:issue_created" => Some((payload.status()?, None)),
        _ => None,
    }
}

impl Work {
    /// The ticket entered a status: by the move of the approval's changelog, or by its creation.
    pub(crate) fn entered(ticket: TicketKey, status: String, approval: Approval) -> Self {
        let key = match &approval.changelog {
            Some(id) => TriggerKey::new(format!("changelog:{id}")),
            None => TriggerKey::new(format!("created:{ticket}")),
        };
        Self {
            ticket,
            key,
            repository: None,
            asked: Asked::Entered { status, approval },
            words: None,
        }
    }

    /// A ticket that a search found in a status, with the move that brought it there; absent: it was created there.
    pub(crate) fn from_poll(
        ticket: TicketKey,
        status: String,
        moved: Option<jira::StatusChange>,
        now: Timestamp,
    ) -> Self {
        let approval = Approval {
            changelog: moved.as_ref().map(|moved| moved.id.to_string()),
            at: moved.as_ref().and_then(|moved| moved.at).unwrap_or(now),
            by: moved.and_then(|moved| moved.by),
        };
        Self::entered(ticket, status, approval)
    }

    /// Somebody asked who may.
    pub(crate) fn ordered(
        ticket: TicketKey,
        key: TriggerKey,
        repository: Option<RepositoryName>,
        at: Timestamp,
        by: String,
    ) -> Self {
        Self {
            ticket,
            key,
            repository,
            asked: Asked::Ordered { at, by },
            words: None,
        }
    }

    /// With what whoever ordered it adds to the ticket's text.
    #[must_use]
    pub(crate) fn with_words(self, words: Option<String>) -> Self {
        Self { words, ..self }
    }

    pub(crate) const fn key(&self) -> &TriggerKey {
        &self.key
    }

    /// The rules that the request is judged by, and why it is not clear whose the ticket is.
    fn rules<'a>(&self, facts: &'a Facts) -> Result<Option<(&'a Rules, Option<SkipReason>)>, Need> {
        if let Some(repository) = &self.repository {
            return Ok(facts.book.for_repository(repository).map(|rules| (rules, None)));
        }
        let place = facts.place(&self.ticket)?;
        let first = place.candidates().next();
        let asking = place.candidates().find(|rules| self.is_interested(rules));
        Ok(asking.or(first).map(|rules| (rules, place.problem())))
    }

    fn is_interested(&self, rules: &Rules) -> bool {
        match &self.asked {
            Asked::Entered { status, .. } => asks_for_work(status, rules),
            Asked::Ordered { .. } => true,
        }
    }

    /// Why nothing follows, before anything is read.
    fn uninteresting(&self, facts: &Facts) -> Option<Verdict> {
        let Asked::Entered { status, approval } = &self.asked else {
            return None;
        };
        if approval.by.as_ref().is_some_and(|by| facts.is_ours(&self.person(by))) {
            return Some(Verdict::nothing("our own account did it"));
        }
        let mut covering = facts.book.repositories().filter(|rules| rules.cover(&self.ticket)).peekable();
        if covering.peek().is_none() && !asks_anybody(status, facts) {
            return Some(Verdict::nothing("no rules for the project"));
        }
        (covering.peek().is_some() && !covering.any(|rules| self.is_interested(rules)))
            .then(|| self.of_no_interest(status))
    }

    fn of_no_interest(&self, status: &str) -> Verdict {
        Verdict::nothing(format!("status {status:?} asks for nothing"))
    }

    fn person(&self, account: &domain::Account) -> Person {
        Person::on(&self.ticket, account)
    }

    /// Who asks for the work and since when the text counts; or what follows instead, when nobody does who may.
    fn approval(
        &self,
        issue: &Issue,
        rules: &Rules,
        facts: &Facts,
    ) -> Result<Result<Approval, Verdict>, Need> {
        let told = match &self.asked {
            Asked::Entered { approval, .. } => approval.clone(),
            Asked::Ordered { at, by } => {
                let by = Some(domain::Account {
                    display_name: by.clone(),
                    ..domain::Account::default()
                });
                let changelog = None;
                return Ok(Ok(Approval {
                    changelog,
                    at: *at,
                    by,
                }));
            }
        };
        let approval = match standing(issue, told.clone(), rules) {
            Standing::Asks(approval) => approval,
            Standing::Repeated => {
                return Ok(Err(Verdict::nothing("a later move into the status asks for it")));
            }
            // Searches lag behind, webhooks are promises.
            Standing::Left { .. } if facts.source == Source::Poll => {
                return Ok(Err(Verdict::nothing("the ticket has left the status")));
            }
            Standing::Left { status } => {
                let wanted = rules.agent.status.clone();
                let reason = SkipReason::StatusLeft { wanted, status };
                return Ok(Err(self.skipped(&told, reason)));
            }
        };
        let account = approval.by.clone().unwrap_or_else(nobody);
        let person = self.person(&account);
        if approval.by.is_some() && (facts.is_ours(&person) || issue.our_accounts.contains(&account.id)) {
            return Ok(Err(Verdict::nothing("our own account did it")));
        }
        if facts.is_program(&person) {
            let refused = refused_program(&self.ticket, approval.by.as_ref(), facts)?;
            let refused = refused.map(|reason| self.follows(approval.at, actor(&approval), reason));
            return Ok(Err(refused.unwrap_or_else(|| Verdict::nothing(PROGRAM))));
        }
        if *facts.authority(&person)? {
            return Ok(Ok(approval));
        }
        tracing::info!(ticket = %self.ticket, "no work: who asks for it may not");
        let reason = SkipReason::NotAllowed {
            actor: name(approval.by.as_ref()),
            group: facts.group.clone(),
            role: facts.role.clone(),
        };
        Ok(Err(self.skipped(&approval, reason)))
    }

    fn skipped(&self, approval: &Approval, reason: SkipReason) -> Verdict {
        self.follows(approval.at, actor(approval), Reason::Skipped(reason))
    }

    fn follows(&self, at: Timestamp, actor: Option<String>, reason: Reason) -> Verdict {
        Verdict::from(Follows {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at,
            actor,
            reason,
        })
    }

    fn worded(&self, mut reason: Reason, approval: &Approval) -> Reason {
        if let (Reason::JobRequested(job), Some(words)) = (&mut reason, &self.words) {
            let by = name(approval.by.as_ref());
            job.text = pin::with_words(std::mem::take(&mut job.text), &by, approval.at, words);
        }
        reason
    }

    fn unreadable(&self, detail: &str) -> Verdict {
        tracing::error!(ticket = %self.ticket, detail, "the ticket cannot be read");
        let (at, actor) = match &self.asked {
            Asked::Entered { approval, .. } => (approval.at, actor(approval)),
            Asked::Ordered { at, by } => (*at, Some(by.clone())),
        };
        self.follows(at, actor, Reason::Skipped(SkipReason::Unreadable))
    }
}

impl Kind for Work {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        if let Some(verdict) = self.uninteresting(facts) {
            return Ok(verdict);
        }
        // What the log knows costs no reads.
        if let Some(sequence) = facts.known(&self.ticket, &self.key)? {
            return Ok(Verdict::Known(*sequence));
        }
        let Some((rules, unclear)) = self.rules(facts)? else {
            return Ok(Verdict::Unruled(self.ticket.clone()));
        };
        if let Asked::Entered { status, .. } = &self.asked
            && !self.is_interested(rules)
        {
            return Ok(self.of_no_interest(status));
        }
        // Assigned and moved in one breath is one wish.
        let may_be_given = !rules.jira.assignee.is_empty() && matches!(self.asked, Asked::Entered { .. });
        if may_be_given && let Some(verdict) = under_way(&self.ticket, facts)? {
            return Ok(verdict);
        }
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(self.unreadable(detail)),
        };
        let approval = match self.approval(issue, rules, facts)? {
            Ok(approval) => approval,
            Err(verdict) => return Ok(verdict),
        };
        if let Some(unclear) = unclear {
            tracing::info!(ticket = %self.ticket, "no work: it is not clear for which repository");
            return Ok(self.skipped(&approval, unclear));
        }
        // What people said since, and a move, are a wish for more of it; an order names what it wants.
        if matches!(self.asked, Asked::Entered { .. })
            && let Some(reason) = continue_pull_request(&self.ticket, issue, &approval, rules, facts)?
        {
            return Ok(self.follows(approval.at, actor(&approval), reason));
        }
        Ok(match approved(&self.ticket, issue, &approval, rules, facts)? {
            Ok(reason) => self.follows(approval.at, actor(&approval), self.worded(reason, &approval)),
            Err(problem) => Verdict::Never(problem.to_string()),
        })
    }
}

/// True when some repository, or the default, asks for work by this status.
fn asks_anybody(status: &str, facts: &Facts) -> bool {
    asks_for_work(status, &Rules::default())
        || facts
            .book
            .repositories()
            .any(|rules| asks_for_work(status, rules))
}
