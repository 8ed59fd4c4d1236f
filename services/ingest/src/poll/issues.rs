//! Polls of issues that changed since the last poll and may request work or a triage.

use std::collections::BTreeMap;

use domain::{IssueRules, RepositoryName, TicketKey, TriggerChannel};
use github::{ETag, IssuePoll, PolledIssue};

use crate::{
    events::{assignment::TicketAssignedEvent, issue_text::IssueText},
    poll::{
        context::PollContext,
        round::{FailedFinding, PollRound, count_new_triggers},
    },
    router::outcome::EventFailure,
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
        context: &mut PollContext,
        repository: &RepositoryName,
        rules: &IssueRules,
    ) -> Result<u64, EventFailure> {
        let window = context
            .open_window(format!("reconciled:issues:{repository}"))
            .await?;
        let (since, known) = (Some(window.since), self.tags.get(repository));
        let polled = context
            .router
            .outside
            .changed_issues(repository, since, known)
            .await?;
        let IssuePoll::Changed { mut issues, etag } = polled else {
            return Ok(0);
        };
        issues.retain(|issue| issue.updated_at >= window.since || is_assigned(issue, rules));
        let (mut round, mut is_whole) = (PollRound::default(), true);
        for issue in &issues {
            let finding = describe_finding(repository, issue);
            // Assigned issues are listed regardless of their age, so one that was given up would otherwise be read, and
            // dead-lettered, whenever another issue changes.
            if context.memory.has_abandoned(&finding)
                || context.memory.has_settled(&describe_second_poll(&finding))
            {
                continue;
            }
            match poll_issue(context, repository, issue).await {
                Ok(IssuePollResult { news, is_certain }) => {
                    round.add_read(news);
                    is_whole &= is_certain;
                }
                Err(failure) => {
                    let failed = FailedFinding {
                        finding,
                        ticket: Some(build_issue_key(repository, issue)),
                        at: issue.updated_at,
                        failure,
                    };
                    context.add_failure(&mut round, failed).await?;
                }
            }
        }
        let recovered = round.recovered();
        is_whole &= context.settle_round(round).await?.is_none();
        // A 304 would hide an issue that failed, or that may change again within the same second. The ETag is kept only
        // after a complete round.
        match etag.filter(|_| is_whole) {
            Some(etag) => drop(self.tags.insert(repository.clone(), etag)),
            None => drop(self.tags.remove(repository)),
        }
        if is_whole {
            context.store_mark(&window, window.now).await?;
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
fn is_assigned(issue: &PolledIssue, rules: &IssueRules) -> bool {
    let assigned = &issue.assigned;
    assigned.assignees.iter().any(|login| rules.is_assignee(login))
        || assigned.labels.iter().any(|label| rules.is_label(label))
}

fn describe_finding(repository: &RepositoryName, issue: &PolledIssue) -> String {
    format!("{repository}#{} updated {}", issue.number, issue.updated_at)
}

/// Key of the repeated poll of an issue: each issue and update time has two keys, one for each poll.
fn describe_second_poll(finding: &str) -> String {
    format!("{finding}, again")
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
    context: &mut PollContext,
    repository: &RepositoryName,
    issue: &PolledIssue,
) -> Result<IssuePollResult, EventFailure> {
    let ticket = build_issue_key(repository, issue);
    let given = context
        .router
        .take(
            &TicketAssignedEvent::from_poll(ticket.clone()),
            TriggerChannel::Poll,
        )
        .await?;
    let text = context
        .router
        .take(&IssueText::from_poll(ticket), TriggerChannel::Poll)
        .await?;
    let finding = describe_finding(repository, issue);
    let is_certain = context.memory.has_settled(&finding);
    context.memory.settle(if is_certain {
        describe_second_poll(&finding)
    } else {
        finding
    });
    Ok(IssuePollResult {
        news: count_new_triggers(&[given, text]),
        is_certain,
    })
}
