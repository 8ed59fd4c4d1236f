//! Request for work on a ticket: it entered the ready status, or an authorized user requested it.

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

/// Request for work on a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    ticket: TicketKey,
    key: TriggerKey,
    /// Repository for a ticket of a shared project.
    repository: Option<RepositoryName>,
    asked: Asked,
    /// Text that the requester adds to the ticket's text.
    words: Option<String>,
}

/// Form of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// Entry into the status, from a webhook or a search. The actor still needs a check.
    Entered { status: String, approval: Approval },
    /// Request of an authorized user.
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

/// New status of an issue, by a status change or by its creation, and the changelog id of the change.
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
    /// Entry of a ticket into a status: by the change with the approval's changelog id, or by its creation.
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

    /// Ticket that a search found in a status, with the status change that brought it there; without one it was
    /// created there.
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

    /// Request of an authorized user.
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

    /// Adds the requester's text to the ticket's text.
    #[must_use]
    pub(crate) fn with_words(self, words: Option<String>) -> Self {
        Self { words, ..self }
    }

    pub(crate) const fn key(&self) -> &TriggerKey {
        &self.key
    }

    /// Rules for the request, and the reason why the repository is ambiguous, if it is.
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

    /// Verdict that needs no read, if there is one.
    fn uninteresting(&self, facts: &Facts) -> Option<Verdict> {
        let Asked::Entered { status, approval } = &self.asked else {
            return None;
        };
        if approval.by.as_ref().is_some_and(|by| facts.is_ours(&self.person(by))) {
            return Some(Verdict::nothing("our own account did it"));
        }
        let mut covering = facts.book.repositories().filter(|rules| rules.cover(&self.ticket)).peekable();
        // A Data Center sends events of every project, so those without rules are ignored. A status that some rules
        // name is kept: its dead letter shows the operator a project whose rules are missing.
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

    /// Approval of the request, with its actor and time; else the verdict without one.
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
            // A search index may lag behind, so a poll ignores the ticket silently. A webhook is exact, so
            // Journeyman comments on the ticket.
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
        // The settings may not name the writer account. Its marked comments on the issue reveal it.
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
        // The lookup in the log comes first, because a known key makes all further reads unnecessary.
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
        // An assignment together with a status change is one request.
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
        // A status change with new comments requests more work on the open pull request. A dispatched job names its
        // subject itself.
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

/// True when some repository, or the default, requests work by this status.
fn asks_anybody(status: &str, facts: &Facts) -> bool {
    asks_for_work(status, &Rules::default())
        || facts
            .book
            .repositories()
            .any(|rules| asks_for_work(status, rules))
}
