//! Close of a competing pull request without a merge. It had blocked work on a ticket, so the request is repeated. A
//! reopened pull request needs no event: each request checks the open ones.

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

/// Close of a pull request of any author without a merge.
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
    /// Closed pull request from a listing.
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

/// Request that the open pull request blocked, unless a later request exists.
fn kept_back<'a>(history: &'a [Trigger], now: &PullRequest) -> Option<&'a Trigger> {
    let last = history.iter().rev().find(|trigger| {
        trigger.reason.job() == Some(Job::Implement) || matches!(trigger.reason, Reason::Skipped(_))
    })?;
    let is_it =
        matches!(&last.reason, Reason::Skipped(SkipReason::PullRequestExists { url, .. }) if *url == now.url);
    is_it.then_some(last)
}

/// Approval of that request: its actor and its time.
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
        // Most pull requests name no ticket. The check comes first, because it needs no read.
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
        // A user who closes our pull request rejects the change. That is not a request for another one.
        if facts.record(&self.repository, &self.number)?.is_some() {
            return Ok(Verdict::nothing("a pull request of ours"));
        }
        let now = facts.pull_request(&self.repository, &self.number)?;
        let Some(closed_at) = now.closed_at.filter(|_| !now.merged) else {
            return Ok(Verdict::nothing("the pull request is open again, or merged"));
        };
        // The time of the close makes a second close a new event.
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

/// True when the ticket still requests work.
fn still_asks(ticket: &TicketKey, issue: &Issue, rules: &domain::Rules) -> bool {
    !issue.is_over && (asks_for_work(&issue.status, rules) || is_given(issue, ticket, rules))
}
