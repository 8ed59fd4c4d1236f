//! Polls of issues that changed since the last poll and may request work or a triage.

use std::collections::BTreeMap;

use domain::{IssueRules, RepositoryName, TicketKey, TriggerChannel, cause::format_error_chain};
use github::{ETag, IssuePoll, PolledIssue};

use crate::{
    catch_up::count_new_triggers,
    kinds::{given::TicketAssignedEvent, issue_text::IssueText},
    memory::PollMemory,
    outcome::EventFailure,
    router::EventRouter,
};

/// State of the issue polls between rounds.
#[derive(Default)]
pub(crate) struct ChangedIssues {
    /// `ETag`s of the listings. GitHub answers a matching `ETag` with 304, which costs nothing of the rate limit.
    tags: BTreeMap<RepositoryName, ETag>,
}

impl ChangedIssues {
    /// Reads the open issues of a repository that changed since the last poll, and those assigned to Journeyman
    /// regardless of their age. Returns the number of events whose webhook was missed.
    pub(crate) async fn poll(
        &mut self,
        router: &EventRouter,
        repository: &RepositoryName,
        rules: &IssueRules,
        memory: &mut PollMemory,
    ) -> Result<u64, EventFailure> {
        let look = router.look(format!("reconciled:issues:{repository}")).await?;
        let known = self.tags.get(repository);
        let polled = router.outside.changed_issues(repository, known).await?;
        let IssuePoll::Changed { mut issues, etag } = polled else {
            return Ok(0);
        };
        issues.retain(|issue| issue.updated_at >= look.since || is_given(issue, rules));
        let (mut recovered, mut is_whole) = (0, true);
        for issue in &issues {
            match poll_issue(router, repository, issue, memory).await {
                Ok(IssuePollResult { news, is_certain }) => {
                    recovered += news;
                    is_whole &= is_certain;
                }
                // A rate limit applies to all issues, so the rest of the round would fail too.
                Err(limit) if limit.is_limit() => return Err(limit),
                Err(failure)
                    if failure.is_unsettled()
                        || failure.may_pass()
                            && !memory.is_hopeless(&describe_finding(repository, issue), true) =>
                {
                    tracing::warn!(
                        %repository,
                        issue = issue.number,
                        error = %format_error_chain(&failure),
                        "not read; it is tried again in the next round"
                    );
                    is_whole = false;
                }
                Err(failure) => {
                    let ticket = build_issue_key(repository, issue);
                    let finding = describe_finding(repository, issue);
                    router.give_up(&finding, Some(ticket), &failure).await?;
                    memory.settle(finding);
                }
            }
        }
        // A 304 would hide an issue that failed, or that may change again within the same second. The ETag is kept only
        // after a complete round.
        match etag.filter(|_| is_whole) {
            Some(etag) => drop(self.tags.insert(repository.clone(), etag)),
            None => drop(self.tags.remove(repository)),
        }
        if is_whole {
            router.looked(&look, look.now).await?;
        }
        Ok(recovered)
    }
}

fn build_issue_key(repository: &RepositoryName, issue: &PolledIssue) -> TicketKey {
    TicketKey::GitHub {
        repository: repository.clone(),
        number: issue.number,
    }
}

/// True when the listed assignees or labels request work.
fn is_given(issue: &PolledIssue, rules: &IssueRules) -> bool {
    let assigned = &issue.assigned;
    assigned.assignees.iter().any(|login| rules.is_assignee(login))
        || assigned.labels.iter().any(|label| rules.is_label(label))
}

fn describe_finding(repository: &RepositoryName, issue: &PolledIssue) -> String {
    format!("{repository}#{} updated {}", issue.number, issue.updated_at)
}

/// Result of the poll of one issue.
struct IssuePollResult {
    /// Findings whose webhook was missed.
    news: u64,
    /// True when an earlier poll saw the issue with the same update time. GitHub reports whole seconds: a change within
    /// the second of the first poll is not visible in a listing.
    is_certain: bool,
}

async fn poll_issue(
    router: &EventRouter,
    repository: &RepositoryName,
    issue: &PolledIssue,
    memory: &mut PollMemory,
) -> Result<IssuePollResult, EventFailure> {
    let finding = describe_finding(repository, issue);
    // Two keys per issue and update time: the second one records the repeated poll of the same second.
    let again = format!("{finding}, again");
    if memory.knows(&again) {
        return Ok(IssuePollResult {
            news: 0,
            is_certain: true,
        });
    }
    let ticket = build_issue_key(repository, issue);
    let given = router
        .take(
            &TicketAssignedEvent::from_poll(ticket.clone()),
            TriggerChannel::Poll,
        )
        .await?;
    let text = router
        .take(&IssueText::from_poll(ticket), TriggerChannel::Poll)
        .await?;
    let is_certain = memory.knows(&finding);
    memory.settle(if is_certain { again } else { finding });
    Ok(IssuePollResult {
        news: count_new_triggers(&[given, text]),
        is_certain,
    })
}
