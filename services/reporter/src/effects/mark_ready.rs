//! Take a draft out of draft.

use domain::{CommitId, PullRequestRef, TicketKey};
use github::PullRequestState;

use super::Outside;
use crate::{message, plan::Made, trouble::Trouble};

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

/// Marks it, if the checked commit is still its head.
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
        return Err(Trouble::Refused(format!(
            "the checks passed on {} and the pull request is at {} now; it stays a draft until those pass",
            head.short(),
            found.head.short()
        )));
    }
    let github = &outside.github;
    let marked = github.mark_ready(&draft.repository, draft.number, &found.node_id);
    failpoint::around("reporter.pull_request.mark_ready", marked).await?;
    tracing::info!(repository = %draft.repository, number = draft.number, "pull request ready for review");
    Ok(Made::default())
}
