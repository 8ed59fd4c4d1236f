//! Take a draft out of draft.

use domain::{CiRequired, CommitId, PullRequestRef, TicketKey};
use github::PullRequestState;

use super::{Outside, ci};
use crate::{made::Made, message, trouble::Trouble};

/// Done when it is no draft, or closed: then there is nothing to hand over.
pub(super) async fn look(
    outside: &Outside,
    ticket: &TicketKey,
    draft: &PullRequestRef,
) -> Result<Option<Made>, Trouble> {
    check_ours(outside, ticket, draft).await?;
    let found = outside
        .github
        .pull_request(&draft.repository, draft.number)
        .await?;
    let is_done = !found.draft || found.state == PullRequestState::Closed;
    Ok(is_done.then(Made::default))
}

/// Our record of the ticket's branch names it: a person's pull request is not ours to hand over.
async fn check_ours(outside: &Outside, ticket: &TicketKey, draft: &PullRequestRef) -> Result<(), Trouble> {
    let record = outside
        .own_branch(ticket, &draft.repository, &draft.branch)
        .await?;
    let known = record.and_then(|(record, _)| record.pull_request);
    if known.is_some_and(|known| known.number == draft.number) {
        Ok(())
    } else {
        Err(Trouble::Refused(message::unknown_pull_request(draft.number)))
    }
}

/// Marks it without a check, unless one is configured to report on it.
pub(super) async fn create_unchecked(
    outside: &Outside,
    draft: &PullRequestRef,
    head: &CommitId,
    required: CiRequired,
) -> Result<Made, Trouble> {
    let awaited = match required {
        CiRequired::Always => Some("ci.required: true".to_owned()),
        CiRequired::Auto => ci::configured(outside, draft, head).await?,
        CiRequired::Never => None,
    };
    if awaited.is_none() {
        return create(outside, draft, head).await;
    }
    tracing::info!(repository = %draft.repository, number = draft.number, awaited, "no check has reported");
    Ok(Made {
        awaited,
        ..Made::default()
    })
}

/// Marks it, if the commit that was judged is still its head.
pub(super) async fn create(
    outside: &Outside,
    draft: &PullRequestRef,
    head: &CommitId,
) -> Result<Made, Trouble> {
    let found = outside
        .github
        .pull_request(&draft.repository, draft.number)
        .await?;
    if found.head != *head {
        return Err(Trouble::Refused(message::moved_since_checks(head, &found.head)));
    }
    let github = &outside.github;
    let marked = github.mark_ready(&draft.repository, draft.number, &found.node_id);
    failpoint::around("reporter.pull_request.mark_ready", marked).await?;
    tracing::info!(repository = %draft.repository, number = draft.number, "pull request ready for review");
    Ok(Made::default())
}
