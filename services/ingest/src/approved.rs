//! Job request or refusal that follows from an approval of a ticket.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    About, Background, CommitAuthor, Job, JobRequest, Reason, RepositoryName, Rules, RulesProblem,
    SkipReason, TicketKey, TicketText, Timestamp, Trigger,
};
use github::PullRequest;

use crate::{
    facts::{Facts, Need, Person},
    outside::{Comment, Issue},
    pin,
    skip::{self, text_of},
    standing::{Approval, changed_by},
};

/// Job request or skip reason that follows from an approval by an authorized account.
pub(crate) fn approved(
    ticket: &TicketKey,
    issue: &Issue,
    approval: &Approval,
    rules: &Rules,
    facts: &Facts,
) -> Result<Result<Reason, RulesProblem>, Need> {
    // Without our own comments: they would count as instructions, and they may quote the skip phrase.
    let issue = Issue {
        comments: of_people(issue, facts),
        ..issue.clone()
    };
    let instructors = instructors(ticket, &issue, approval, facts)?;
    let repository = match rules.repository() {
        Ok(repository) => repository,
        Err(problem) => return Ok(Err(problem)),
    };
    let open = facts.open(&repository, ticket)?;
    let reason = implement(&issue, approval, rules, open, &instructors, repository);
    Ok(Ok(with_requester(reason, ticket, approval.by.as_ref())))
}

/// Comments of an issue without those of our own accounts.
pub(crate) fn of_people(issue: &Issue, facts: &Facts) -> Vec<Comment> {
    let ours = &facts.own_accounts;
    let is_ours = |comment: &&Comment| ours.contains(&comment.author_id) || ours.contains(&comment.author);
    let people = issue.comments.iter().filter(|comment| !is_ours(comment));
    people.cloned().collect()
}

/// Accounts whose comments, or whose edits since the approval, count as instructions.
pub(crate) fn instructors(
    ticket: &TicketKey,
    issue: &Issue,
    approval: &Approval,
    facts: &Facts,
) -> Result<BTreeSet<String>, Need> {
    let authors = issue.comments.iter().filter(|comment| !comment.by_bot);
    let authors = authors.map(|comment| (comment.author_id.as_str(), comment.author.as_str()));
    let editors = issue.edits.iter().filter(|edit| edit.at >= approval.at);
    let editors = editors
        .filter_map(|edit| edit.by.as_ref())
        .filter(|by| !by.is_bot);
    let editors = editors.map(|by| (by.id.as_str(), by.display_name.as_str()));
    let people: BTreeMap<&str, &str> = authors.chain(editors).collect();
    let mut instructors = BTreeSet::new();
    for (id, name) in people {
        // Jira is queried by account id alone. One cache entry then serves an account under every display name.
        let asked_by_name = matches!(ticket, TicketKey::GitHub { .. } | TicketKey::Discussion { .. });
        let account = domain::Account {
            id: id.to_owned(),
            display_name: if asked_by_name {
                name.to_owned()
            } else {
                String::new()
            },
            is_bot: false,
        };
        if *facts.authority(&Person::on(ticket, &account))? {
            instructors.insert(id.to_owned());
        }
    }
    Ok(instructors)
}

/// Skip reason for a program that requests work without being named in the rules. Posted once per ticket: two programs
/// that answer each other would never end.
pub(crate) fn refused_program(
    ticket: &TicketKey,
    by: Option<&domain::Account>,
    facts: &Facts,
) -> Result<Option<Reason>, Need> {
    let is_told = |trigger: &Trigger| matches!(trigger.reason, Reason::Skipped(SkipReason::Bot { .. }));
    let told = facts.history(ticket)?.iter().any(is_told);
    tracing::info!(%ticket, told, "no work: a program asks for it that the rules do not name");
    Ok((!told).then(|| Reason::Skipped(SkipReason::Bot { actor: name(by) })))
}

pub(crate) fn actor(approval: &Approval) -> Option<String> {
    let name = approval.by.as_ref()?.display_name.clone();
    Some(name).filter(|name| !name.is_empty())
}

/// Job that a ticket requests, or the reason to skip it. `instructors` are the accounts of the issue whose comments and
/// edits count as instructions.
fn implement(
    issue: &Issue,
    approval: &Approval,
    rules: &Rules,
    open: &[PullRequest],
    instructors: &BTreeSet<String>,
    repository: RepositoryName,
) -> Reason {
    if let Some(edit) = changed_by(issue, approval, instructors) {
        return Reason::Skipped(SkipReason::TextChanged {
            by: name(edit.by.as_ref()),
        });
    }
    let raw = text_of(issue);
    if let Some(reason) = skip::skip(&raw, &issue.comments, rules, open) {
        return Reason::Skipped(reason);
    }
    let text = pin::pin(raw, &issue.comments, approval.at, instructors);
    requested(repository, text, rules)
}

/// Job of a ticket in a folder, whose text is its summary and description alone; or the skip rule that forbids it.
pub(crate) fn in_folder(summary: String, description: String, rules: &Rules) -> Result<Reason, RulesProblem> {
    let raw = TicketText {
        summary,
        description,
        ..TicketText::default()
    };
    if let Some(reason) = skip::skip(&raw, &[], rules, &[]) {
        return Ok(Reason::Skipped(reason));
    }
    let text = pin::pin(raw, &[], Timestamp::default(), &BTreeSet::new());
    Ok(requested(rules.repository()?, text, rules))
}

/// Sets the requester of the job, in the form that commits name people.
fn with_requester(mut reason: Reason, ticket: &TicketKey, by: Option<&domain::Account>) -> Reason {
    if let Reason::JobRequested(job) = &mut reason {
        job.background.requester = requester(ticket, &job.text.url, by);
    }
    reason
}

/// GitHub account of the requester, on the server of the ticket. Jira accounts have none: a mail address of Jira never
/// goes into a commit.
fn requester(ticket: &TicketKey, ticket_url: &str, by: Option<&domain::Account>) -> Option<CommitAuthor> {
    let is_github = matches!(ticket, TicketKey::GitHub { .. } | TicketKey::Discussion { .. });
    let by = by.filter(|by| is_github && !by.is_bot)?;
    let (_, place) = ticket_url.split_once("://")?;
    let host = place.split(['/', ':']).next()?;
    CommitAuthor::of_github(host, by.id.parse().ok()?, &by.display_name)
}

fn requested(repository: RepositoryName, text: TicketText, rules: &Rules) -> Reason {
    Reason::JobRequested(Box::new(JobRequest {
        job: Job::Implement,
        repository,
        text,
        rules: rules.clone(),
        background: Background::default(),
        about: About::default(),
    }))
}

/// Sanitized display name of an account, at most 100 characters; a placeholder for a missing or empty name.
pub(crate) fn name(account: Option<&domain::Account>) -> String {
    let name = account.map_or("", |account| account.display_name.as_str());
    let clean = pin::cut(&pin::sanitise(name), 100);
    if clean.trim().is_empty() {
        "somebody".to_owned()
    } else {
        clean
    }
}
