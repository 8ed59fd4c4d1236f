//! Polls of discussions: new discussions, and comments that may address Journeyman.

use domain::{RepositoryName, Source, TicketKey, cause::chain};
use github::DiscussionStub;

use crate::{
    catch_up::news,
    kinds::{comment::Comment, discussed::Discussed},
    memory::Memory,
    outcome::Failure,
    reconcile::Look,
    router::Router,
};

/// Reads the discussions of a repository that changed since the last poll. Returns the number of events whose
/// webhook was missed.
pub(crate) async fn poll(
    router: &Router,
    repository: &RepositoryName,
    memory: &mut Memory,
) -> Result<u64, Failure> {
    let look = router
        .look(format!("reconciled:discussions:{repository}"))
        .await?;
    let mut changed = router.outside.changed_discussions(repository).await?;
    changed.retain(|stub| stub.updated_at >= look.since);
    let (mut recovered, mut is_whole) = (0, true);
    for stub in &changed {
        let finding = format!(
            "{repository} discussion {} updated {}",
            stub.number, stub.updated_at
        );
        if memory.knows(&finding) {
            continue;
        }
        match look_at(router, repository, stub, &look).await {
            Ok(new) => {
                recovered += new;
                memory.settle(finding);
            }
            // A rate limit applies to all discussions, so the rest of the round would fail too.
            Err(limit) if limit.is_limit() => return Err(limit),
            Err(failure) if failure.may_pass() && !memory.is_hopeless(&finding, true) => {
                tracing::warn!(
                    %repository,
                    discussion = stub.number,
                    error = %chain(&failure),
                    "not read; it is tried again in the next round"
                );
                is_whole = false;
            }
            Err(failure) => {
                let ticket = ticket(repository, stub);
                router.give_up(&finding, Some(ticket), &failure).await?;
                memory.settle(finding);
            }
        }
    }
    if is_whole {
        // The poll mark moves only after a complete round, so that the next round lists a failed discussion again.
        router.looked(&look, look.now).await?;
    }
    Ok(recovered)
}

fn ticket(repository: &RepositoryName, stub: &DiscussionStub) -> TicketKey {
    TicketKey::Discussion {
        repository: repository.clone(),
        number: stub.number,
    }
}

/// Handles a changed discussion. Earlier polls handled the comments from before `since`, and an old discussion with
/// a new comment is not a new discussion.
async fn look_at(
    router: &Router,
    repository: &RepositoryName,
    stub: &DiscussionStub,
    look: &Look,
) -> Result<u64, Failure> {
    let found = router.outside.discussion(repository, stub.number).await?;
    let mut outcomes = Vec::new();
    if found.created_at.is_some_and(|created| created >= look.since) {
        let opened = Discussed::opened(ticket(repository, stub));
        outcomes.push(router.take(&opened, Source::Poll).await?);
    }
    let said = found.comments.into_iter();
    for comment in said.filter(|comment| comment.created_at >= look.since) {
        let said = Comment::from_discussion_poll(repository, stub.number, comment);
        if router.is_for_us(&said) {
            outcomes.push(router.take(&said, Source::Poll).await?);
        }
    }
    Ok(news(&outcomes))
}
