//! Job request or refusal that follows from an approval of a ticket.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    CommitAuthor, Job, JobRequest, JobSubject, RepositoryName, RepositoryRules, RulesProblem, SkipReason,
    TicketBackground, TicketKey, TicketText, Timestamp, Trigger, TriggerReason,
};
use github::PullRequest;

use crate::{
    facts::{
        DecisionFacts, EventActor, Need,
        tracker_reader::{TrackerComment, TrackerIssue},
    },
    policy::{
        skip::{self, build_ticket_text},
        status_check::{WorkApproval, find_unauthorized_edit},
    },
    text::text_pin,
};

/// Job request or skip reason that follows from an approval by an authorized account.
pub(crate) fn decide_after_approval(
    ticket: &TicketKey,
    issue: &TrackerIssue,
    approval: &WorkApproval,
    rules: &RepositoryRules,
    facts: &DecisionFacts,
) -> Result<Result<TriggerReason, RulesProblem>, Need> {
    // Without our own comments: they would count as instructions, and they may quote the skip phrase.
    let issue = TrackerIssue {
        comments: remove_own_comments(issue, facts),
        ..issue.clone()
    };
    let instructors = list_instructors(ticket, &issue, approval, facts)?;
    let repository = match rules.repository() {
        Ok(repository) => repository,
        Err(problem) => return Ok(Err(problem)),
    };
    let open = facts.open(&repository, ticket)?;
    let reason = decide_implementation(&issue, approval, rules, open, &instructors, repository);
    Ok(Ok(set_requester(reason, ticket, approval.by.as_ref())))
}

/// Comments of an issue without those of our own accounts.
pub(crate) fn remove_own_comments(issue: &TrackerIssue, facts: &DecisionFacts) -> Vec<TrackerComment> {
    let ours = &facts.own_accounts;
    let is_ours =
        |comment: &&TrackerComment| ours.contains(&comment.author_id) || ours.contains(&comment.author);
    let people = issue.comments.iter().filter(|comment| !is_ours(comment));
    people.cloned().collect()
}

/// Accounts whose comments, or whose edits since the approval, count as instructions.
pub(crate) fn list_instructors(
    ticket: &TicketKey,
    issue: &TrackerIssue,
    approval: &WorkApproval,
    facts: &DecisionFacts,
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
        let account = domain::TrackerAccount {
            id: id.to_owned(),
            display_name: if asked_by_name {
                name.to_owned()
            } else {
                String::new()
            },
            is_bot: false,
        };
        if *facts.authority(&EventActor::of_account(ticket, &account))? {
            instructors.insert(id.to_owned());
        }
    }
    Ok(instructors)
}

/// Skip reason for a program that requests work without being named in the rules. Posted once per ticket: two programs
/// that answer each other would never end.
pub(crate) fn refuse_program(
    ticket: &TicketKey,
    by: Option<&domain::TrackerAccount>,
    facts: &DecisionFacts,
) -> Result<Option<TriggerReason>, Need> {
    let is_refusal =
        |trigger: &Trigger| matches!(trigger.reason, TriggerReason::Skipped(SkipReason::Bot { .. }));
    let is_refused_before = facts.history(ticket)?.iter().any(is_refusal);
    tracing::info!(%ticket, is_refused_before, "no work: a program requests it that the rules do not name");
    Ok((!is_refused_before).then(|| {
        TriggerReason::Skipped(SkipReason::Bot {
            actor: clean_account_name(by),
        })
    }))
}

pub(crate) fn name_approver(approval: &WorkApproval) -> Option<String> {
    let name = approval.by.as_ref()?.display_name.clone();
    Some(name).filter(|name| !name.is_empty())
}

/// Job that a ticket requests, or the reason to skip it. `instructors` are the accounts of the issue whose comments and
/// edits count as instructions.
fn decide_implementation(
    issue: &TrackerIssue,
    approval: &WorkApproval,
    rules: &RepositoryRules,
    open: &[PullRequest],
    instructors: &BTreeSet<String>,
    repository: RepositoryName,
) -> TriggerReason {
    if let Some(edit) = find_unauthorized_edit(issue, approval, instructors) {
        return TriggerReason::Skipped(SkipReason::TextChanged {
            by: clean_account_name(edit.by.as_ref()),
        });
    }
    let raw = build_ticket_text(issue);
    if let Some(reason) = skip::find_skip_reason(&raw, &issue.comments, rules, open) {
        return TriggerReason::Skipped(reason);
    }
    let text = text_pin::pin_text(raw, &issue.comments, approval.at, instructors);
    build_implement_request(repository, text, rules)
}

/// Job of a ticket in a folder, whose text is its summary and description alone; or the skip rule that forbids it.
pub(crate) fn decide_in_folder(
    summary: String,
    description: String,
    rules: &RepositoryRules,
) -> Result<TriggerReason, RulesProblem> {
    let raw = TicketText {
        summary,
        description,
        ..TicketText::default()
    };
    if let Some(reason) = skip::find_skip_reason(&raw, &[], rules, &[]) {
        return Ok(TriggerReason::Skipped(reason));
    }
    let text = text_pin::pin_text(raw, &[], Timestamp::default(), &BTreeSet::new());
    Ok(build_implement_request(rules.repository()?, text, rules))
}

/// Sets the requester of the job, in the form that commits name people.
fn set_requester(
    mut reason: TriggerReason,
    ticket: &TicketKey,
    by: Option<&domain::TrackerAccount>,
) -> TriggerReason {
    if let (TriggerReason::JobRequested(job), Some(by)) = (&mut reason, by.filter(|by| !by.is_bot)) {
        job.background.requester = match ticket {
            TicketKey::GitHub { .. } | TicketKey::Discussion { .. } => {
                find_github_requester(&job.text.url, by)
            }
            // A mail address of Jira never goes into a commit; the rules name the addresses.
            TicketKey::Jira { .. } => job.rules.commits.requesters.get(&by.id).cloned(),
            TicketKey::Folder { .. } => None,
        };
    }
    reason
}

/// GitHub account of the requester, on the server of the ticket.
fn find_github_requester(ticket_url: &str, by: &domain::TrackerAccount) -> Option<CommitAuthor> {
    let (_, place) = ticket_url.split_once("://")?;
    let host = place.split(['/', ':']).next()?;
    CommitAuthor::of_github(host, by.id.parse().ok()?, &by.display_name)
}

fn build_implement_request(
    repository: RepositoryName,
    text: TicketText,
    rules: &RepositoryRules,
) -> TriggerReason {
    TriggerReason::JobRequested(Box::new(JobRequest {
        job: Job::Implement,
        repository,
        text,
        rules: rules.clone(),
        background: TicketBackground::default(),
        about: JobSubject::default(),
    }))
}

/// Sanitized display name of an account, at most 100 characters; a placeholder for a missing or empty name.
pub(crate) fn clean_account_name(account: Option<&domain::TrackerAccount>) -> String {
    let name = account.map_or("", |account| account.display_name.as_str());
    let clean = text_pin::clean_text(name, 100);
    if clean.trim().is_empty() {
        "somebody".to_owned()
    } else {
        clean
    }
}

#[cfg(test)]
mod tests {
    use domain::TrackerAccount;

    use super::*;

    /// Requester of a job for the Jira account, with the author that the rules link with `a1`.
    fn find_requester(account: TrackerAccount, linked: Option<&str>) -> Option<String> {
        let mut rules = RepositoryRules::default();
        if let Some(linked) = linked {
            let linked = linked.parse().expect("author");
            rules.commits.requesters.insert("a1".to_owned(), linked);
        }
        let repository = RepositoryName::new("acme", "shop").expect("repository");
        let ticket: TicketKey = "jira:ENG-12".parse().expect("ticket");
        let reason = build_implement_request(repository, TicketText::default(), &rules);
        match set_requester(reason, &ticket, Some(&account)) {
            TriggerReason::JobRequested(job) => job.background.requester.map(|who| who.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn jira_requester_is_named_by_rules_alone() {
        let ada = |is_bot| TrackerAccount {
            id: "a1".to_owned(),
            display_name: "Ada".to_owned(),
            is_bot,
        };
        let linked = "ada <17+ada@users.noreply.github.com>";
        assert_eq!(find_requester(ada(false), Some(linked)).as_deref(), Some(linked));
        assert_eq!(find_requester(ada(true), Some(linked)), None);
        assert_eq!(find_requester(ada(false), None), None);
    }
}
