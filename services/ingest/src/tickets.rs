//! A Jira ticket that somebody asks to be worked on: what is read, who may ask, and what follows.

use std::sync::Arc;

use domain::{Reason, Rules, SkipReason, Source, TicketKey, Timestamp, Trigger, TriggerKey};
use queue::Appended;

use crate::{
    detect::{self, Approval, Standing},
    outcome::{Failure, Outcome},
    outside::{Issue, ReadError},
    request::{Asked, Request},
    router::Router,
};

/// What follows from a request: a reason for the ticket's log, or nothing.
enum Verdict {
    Follows(Box<Follows>),
    Nothing(&'static str),
}

struct Follows {
    at: Timestamp,
    actor: Option<String>,
    reason: Reason,
}

impl Verdict {
    fn follows(at: Timestamp, actor: Option<String>, reason: Reason) -> Self {
        Self::Follows(Box::new(Follows { at, actor, reason }))
    }

    fn skipped(approval: &Approval, reason: SkipReason) -> Self {
        Self::follows(approval.at, actor(approval), Reason::Skipped(reason))
    }
}

impl Router {
    /// Reads the issue, and appends the job or the reason why there is none.
    pub(crate) async fn job_for_issue(&self, request: Request, rules: &Rules) -> Result<Outcome, Failure> {
        // What the log knows costs no reads.
        if let Some(sequence) = self.known(&request.ticket, &request.key).await? {
            return Ok(Outcome::Known(sequence));
        }
        match self.verdict(&request, rules).await? {
            Verdict::Nothing(why) => Ok(Outcome::Nothing(why.to_owned())),
            Verdict::Follows(follows) => self.outcome(trigger(request, *follows)).await,
        }
    }

    /// The same for somebody who wants to know at once: the reason is not appended when it is a skip rule's.
    pub(crate) async fn dispatch(
        &self,
        request: Request,
        rules: &Rules,
    ) -> Result<Result<Appended, SkipReason>, Failure> {
        match self.verdict(&request, rules).await? {
            Verdict::Nothing(why) => Err(Failure::Never(why.to_owned())),
            Verdict::Follows(follows) => match follows.reason {
                Reason::Skipped(reason) => Ok(Err(reason)),
                _ => Ok(Ok(self.append(&trigger(request, *follows)).await?)),
            },
        }
    }

    /// Where the ticket's log holds this key already.
    pub(crate) async fn known(&self, ticket: &TicketKey, key: &TriggerKey) -> Result<Option<u64>, Failure> {
        Ok(self.queue.triggers().sequence_of(ticket, key.as_str()).await?)
    }

    async fn verdict(&self, request: &Request, rules: &Rules) -> Result<Verdict, Failure> {
        let mut issue = match self.outside.issue(&request.ticket).await {
            Ok(issue) => issue,
            Err(ReadError::Unreadable(detail)) => return Ok(unreadable(request, &detail)),
            Err(error) => return Err(error.into()),
        };
        let approval = match self.approval(request, &issue, rules).await? {
            Ok(approval) => approval,
            Err(verdict) => return Ok(verdict),
        };
        let ours = Arc::clone(&self.own_accounts);
        issue
            .comments
            .retain(|comment| !ours.contains(&comment.author_id) && !ours.contains(&comment.author));
        let authors = issue.comments.iter().map(|comment| comment.author_id.as_str());
        let editors = issue.edits.iter().filter(|edit| edit.at >= approval.at);
        let editors = editors.filter_map(|edit| Some(edit.by.as_ref()?.id.as_str()));
        let people = authors.chain(editors);
        let instructors = self
            .instructors
            .among(&self.outside, request.ticket.instance(), people)
            .await?;
        let repository = rules
            .repository()
            .map_err(|problem| Failure::Never(problem.to_string()))?;
        let open = self
            .outside
            .mentioning(&repository, &request.ticket)
            .await
            .map_err(must_exist)?;
        let mut reason = detect::implement(&issue, &approval, rules, &open, &instructors)
            .map_err(|problem| Failure::Never(problem.to_string()))?;
        if let Reason::JobRequested(job) = &mut reason {
            job.background = self.background(&request.ticket, &issue, &repository).await;
        }
        Ok(Verdict::follows(approval.at, actor(&approval), reason))
    }

    /// Who asks for the work and since when the text counts; or what follows instead, when nobody does who may.
    async fn approval(
        &self,
        request: &Request,
        issue: &Issue,
        rules: &Rules,
    ) -> Result<Result<Approval, Verdict>, Failure> {
        let told = match &request.asked {
            Asked::Ordered { at, by } => {
                return Ok(Ok(Approval {
                    changelog: None,
                    at: *at,
                    by: Some(jira::Account {
                        id: String::new(),
                        display_name: by.clone(),
                    }),
                }));
            }
            Asked::Entered(told) => told.clone(),
        };
        let approval = match detect::standing(issue, told.clone(), rules) {
            Standing::Asks(approval) => approval,
            Standing::Repeated => {
                return Ok(Err(Verdict::Nothing("a later move into the status asks for it")));
            }
            // Searches lag behind, webhooks are promises.
            Standing::Left { .. } if request.source == Source::Poll => {
                return Ok(Err(Verdict::Nothing("the ticket has left the status")));
            }
            Standing::Left { status } => {
                let wanted = rules.agent.status.clone();
                return Ok(Err(Verdict::skipped(
                    &told,
                    SkipReason::StatusLeft { wanted, status },
                )));
            }
        };
        let account = approval.by.as_ref();
        if account.is_some_and(|account| self.is_ours_on(issue, account)) {
            return Ok(Err(Verdict::Nothing("our own account did it")));
        }
        let id = account.map(|account| account.id.as_str());
        if self
            .instructors
            .include(&self.outside, request.ticket.instance(), id)
            .await?
        {
            return Ok(Ok(approval));
        }
        tracing::info!(ticket = %request.ticket, "no work: who asks for it may not");
        let reason = SkipReason::NotAllowed {
            actor: detect::name(account),
            group: self.instructors.group().to_owned(),
        };
        Ok(Err(Verdict::skipped(&approval, reason)))
    }

    /// Whether an account is ours by the settings, or because it wrote comments of ours on this issue.
    fn is_ours_on(&self, issue: &Issue, account: &jira::Account) -> bool {
        self.is_ours(&[&account.id, &account.display_name]) || issue.our_accounts.contains(&account.id)
    }
}

fn unreadable(request: &Request, detail: &str) -> Verdict {
    tracing::error!(ticket = %request.ticket, detail, "the ticket cannot be read");
    let (at, actor) = match &request.asked {
        Asked::Entered(told) => (told.at, actor(told)),
        Asked::Ordered { at, by } => (*at, Some(by.clone())),
    };
    Verdict::follows(at, actor, Reason::Skipped(SkipReason::Unreadable))
}

fn actor(approval: &Approval) -> Option<String> {
    let name = approval.by.as_ref()?.display_name.clone();
    Some(name).filter(|name| !name.is_empty())
}

fn trigger(request: Request, follows: Follows) -> Trigger {
    let Follows { at, actor, reason } = follows;
    Trigger {
        ticket: request.ticket,
        key: request.key,
        at,
        source: request.source,
        actor,
        reason,
    }
}

/// The repository that rules name must be visible; until an operator fixes that, the finding waits.
fn must_exist(error: ReadError) -> Failure {
    match error {
        ReadError::NotFound(detail) => Failure::Later { detail, after: None },
        other @ (ReadError::Unreadable(_) | ReadError::Later { .. }) => other.into(),
    }
}
