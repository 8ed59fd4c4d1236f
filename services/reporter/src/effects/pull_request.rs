//! Open the draft pull request, or adopt the open one of the same branch.

use domain::{BranchRecord, PullRequestRecord, PullRequestStatus};
use github::PullRequestState;

use super::{Asked, Outside};
use crate::{
    message,
    plan::{Draft, Made},
    trouble::Trouble,
};

/// Done when one is open for the branch.
pub(super) async fn look(
    outside: &Outside,
    asked: &Asked<'_>,
    draft: &Draft,
) -> Result<Option<Made>, Trouble> {
    let found = outside
        .github
        .find_pull_request_by_head(&draft.repository, &draft.branch)
        .await?;
    match found.filter(|found| found.state == PullRequestState::Open) {
        Some(found) => remember(outside, asked, draft, &found).await.map(Some),
        None => Ok(None),
    }
}

/// Opens it, always as a draft.
pub(super) async fn create(outside: &Outside, asked: &Asked<'_>, draft: &Draft) -> Result<Made, Trouble> {
    let ticket = &asked.report.ticket;
    let key = BranchRecord::key(&draft.repository, &draft.branch);
    if outside.own_branch(ticket, &key).await?.is_none() {
        return Err(Trouble::Refused(format!(
            "the branch `{}` was not pushed; push it first",
            draft.branch
        )));
    }
    let ticket_url = outside.ticket_url(ticket, asked.rules);
    let title = message::pull_request_title(draft);
    let body = message::pull_request_body(draft, ticket, ticket_url.as_deref(), asked.report.run.as_ref());
    let (repository, github) = (&draft.repository, &outside.github);
    let open = github.create_pull_request(repository, &draft.branch, &draft.base_branch, &title, &body, true);
    match failpoint::around("reporter.pull_request.open", open).await {
        Ok(opened) => remember(outside, asked, draft, &opened).await,
        // It is there, although the list may not show it yet.
        Err(error @ github::Error::Conflict { .. }) => look(outside, asked, draft)
            .await?
            .ok_or_else(|| Trouble::Unknown(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// Later events of the pull request find their ticket by the branch's record.
async fn remember(
    outside: &Outside,
    asked: &Asked<'_>,
    draft: &Draft,
    opened: &github::PullRequest,
) -> Result<Made, Trouble> {
    let pull_request = opened.to_ref(&draft.repository);
    let key = BranchRecord::key(&draft.repository, &draft.branch);
    if let Some((record, last)) = outside.own_branch(&asked.report.ticket, &key).await?
        && record.pull_request.as_ref() != Some(&pull_request)
    {
        let record = BranchRecord {
            pull_request: Some(pull_request.clone()),
            ..record
        };
        outside.branches.put(&key, &record, Some(last)).await?;
    }
    let open = PullRequestRecord {
        pull_request: pull_request.clone(),
        ticket: asked.report.ticket.clone(),
        head: Some(opened.head.clone()),
        status: PullRequestStatus::Open,
    };
    outside.index(&open).await?;
    tracing::info!(repository = %draft.repository, number = opened.number, "pull request open");
    Ok(Outside::made_pull_request(pull_request))
}
