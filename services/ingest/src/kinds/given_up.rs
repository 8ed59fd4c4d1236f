//! Somebody else's pull request was closed without a merge that kept us from work on a ticket: the work is asked for once
//! more. One that is opened again needs no event: each request for work looks at what is open then.

use domain::{Job, Reason, RepositoryName, SkipReason, TicketKey, Trigger, TriggerKey};
use github::PullRequest;

use super::{Follows, Kind, Verdict, given::is_given};
use crate::{
    approved::approved,
    facts::{Facts, Need},
    named::{Texts, named},
    outside::Issue,
    payload::{Hook, Unreadable, github as wire},
    standing::{Approval, asks_for_work},
};

/// A pull request was closed without a merge; whose it is has to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    repository: RepositoryName,
    number: u64,
    title: String,
    branch: String,
    body: String,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<GivenUp>, Unreadable> {
    let Hook::GitHub {
        event: "pull_request",
        ..
    } = hook
    else {
        return Ok(None);
    };
    let payload: wire::PullRequestPayload = hook.read()?;
    let is_given_up = payload.action == "closed" && !payload.pull_request.merged.unwrap_or(false);
    Ok(is_given_up.then(|| GivenUp {
        number: payload.pull_request.number,
        title: payload.pull_request.title,
        branch: payload.pull_request.head.r#ref,
        body: payload.pull_request.body.unwrap_or_default(),
        repository: hook.repository(payload.repository),
    }))
}

impl GivenUp {
    /// A closed pull request that a listing shows.
    pub(crate) fn from_poll(repository: &RepositoryName, closed: &PullRequest) -> Self {
        Self {
            repository: repository.clone(),
            number: closed.number,
            title: closed.title.clone(),
            branch: closed.branch.clone(),
            body: closed.body.clone(),
        }
    }
}

/// The request for work that an open pull request stood in the way of, when nothing was asked for since.
fn kept_back<'a>(history: &'a [Trigger], now: &PullRequest) -> Option<&'a Trigger> {
    let last = history.iter().rev().find(|trigger| {
        trigger.reason.job() == Some(Job::Implement) || matches!(trigger.reason, Reason::Skipped(_))
    })?;
    let is_it =
        matches!(&last.reason, Reason::Skipped(SkipReason::PullRequestExists { url, .. }) if *url == now.url);
    is_it.then_some(last)
}

/// Who asked then, and since when the text counts.
fn approval(kept_back: &Trigger) -> Approval {
    let changelog = kept_back.key.as_str().strip_prefix("changelog:");
    let by = kept_back.actor.as_ref().map(|name| domain::Account {
        display_name: name.clone(),
        ..domain::Account::default()
    });
    Approval {
        changelog: changelog.map(str::to_owned),
        at: kept_back.at,
        by,
    }
}

impl Kind for GivenUp {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let Some(rules) = facts.book.for_repository(&self.repository) else {
            return Ok(Verdict::nothing("no rules for the repository"));
        };
        // Most name none, and then nothing is read.
        let texts = Texts {
            title: &self.title,
            branch: &self.branch,
            body: &self.body,
        };
        let Some(ticket) = named(&texts, &self.repository, rules) else {
            return Ok(Verdict::nothing("it names no ticket of the project"));
        };
        let history = facts.history(&ticket)?;
        if history.is_empty() {
            return Ok(Verdict::nothing(
                "nobody asked for work on the ticket that it names",
            ));
        }
        // Who closes ours refuses the change; that is no wish for another one.
        if facts.record(&self.repository, &self.number)?.is_some() {
            return Ok(Verdict::nothing("a pull request of ours"));
        }
        let now = facts.pull_request(&self.repository, &self.number)?;
        let Some(closed_at) = now.closed_at.filter(|_| !now.merged) else {
            return Ok(Verdict::nothing("the pull request is open again, or merged"));
        };
        let key = TriggerKey::new(format!(
            "asked_again:{}#{}:{}",
            self.repository,
            self.number,
            closed_at.unix_s()
        ));
        if let Some(sequence) = facts.known(&ticket, &key)? {
            return Ok(Verdict::Known(*sequence));
        }
        let Some(kept_back) = kept_back(history, now) else {
            return Ok(Verdict::nothing("it kept us from no work"));
        };
        let issue = match facts.issue(&ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(Verdict::Never(detail.clone())),
        };
        if !still_asks(&ticket, issue, rules) {
            return Ok(Verdict::nothing("the ticket asks for no work any more"));
        }
        let approval = approval(kept_back);
        Ok(match approved(&ticket, issue, &approval, rules, facts)? {
            Ok(reason) => Verdict::from(Follows {
                ticket,
                key,
                at: approval.at,
                actor: kept_back.actor.clone(),
                reason,
            }),
            Err(problem) => Verdict::Never(problem.to_string()),
        })
    }
}

/// Whether the ticket stands where it stood when work was asked for.
fn still_asks(ticket: &TicketKey, issue: &Issue, rules: &domain::Rules) -> bool {
    !issue.is_over && (asks_for_work(&issue.status, rules) || is_given(issue, ticket, rules))
}
