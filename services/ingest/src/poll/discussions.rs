//! Polls of discussions: new discussions, and comments that may address Journeyman.

use domain::{RepositoryName, TicketKey, TriggerChannel};
use github::DiscussionStub;

use crate::{
    events::{comment::CommentEvent, discussed::DiscussionEvent},
    poll::{
        context::{PollContext, PollWindow},
        round::{FailedFinding, PollRound, count_new_triggers},
    },
    router::{EventRouter, outcome::EventFailure},
};

/// Reads the discussions of a repository that changed since the last poll. Returns the number of events whose
/// webhook was missed.
pub(crate) async fn poll_discussions(
    context: &mut PollContext,
    repository: &RepositoryName,
) -> Result<u64, EventFailure> {
    let window = context
        .open_window(format!("reconciled:discussions:{repository}"))
        .await?;
    let changed = context
        .router
        .outside
        .changed_discussions(repository, window.since)
        .await?;
    let mut round = PollRound::default();
    for stub in &changed {
        let finding = format!(
            "{repository} discussion {} updated {}",
            stub.number, stub.updated_at
        );
        if context.memory.has_settled(&finding) {
            continue;
        }
        match poll_discussion(&context.router, repository, stub, &window).await {
            Ok(new) => {
                round.add_read(new);
                context.memory.settle(finding);
            }
            Err(failure) => {
                let failed = FailedFinding {
                    finding,
                    ticket: Some(build_discussion_key(repository, stub)),
                    at: stub.updated_at,
                    failure,
                };
                context.add_failure(&mut round, failed).await?;
            }
        }
    }
    let recovered = round.recovered();
    let waits_from = context.settle_round(round).await?;
    if waits_from.is_none() {
        // The poll mark moves only after a complete round, so that the next round lists a failed discussion again.
        context.store_mark(&window, window.now).await?;
    }
    Ok(recovered)
}

fn build_discussion_key(repository: &RepositoryName, stub: &DiscussionStub) -> TicketKey {
    TicketKey::Discussion {
        repository: repository.clone(),
        number: stub.number,
    }
}

/// Handles a changed discussion. Earlier polls handled the comments from before `since`, and an old discussion with
/// a new comment is not a new discussion.
async fn poll_discussion(
    router: &EventRouter,
    repository: &RepositoryName,
    stub: &DiscussionStub,
    window: &PollWindow,
) -> Result<u64, EventFailure> {
    let found = router.outside.discussion(repository, stub.number).await?;
    let mut outcomes = Vec::new();
    if found.created_at.is_some_and(|created| created >= window.since) {
        let opened = DiscussionEvent::opened(build_discussion_key(repository, stub));
        outcomes.push(router.take(&opened, TriggerChannel::Poll).await?);
    }
    let said = found.comments.into_iter();
    for comment in said.filter(|comment| comment.created_at >= window.since) {
        let said = CommentEvent::from_discussion_poll(repository, stub.number, comment);
        if router.is_for_us(&said) {
            outcomes.push(router.take(&said, TriggerChannel::Poll).await?);
        }
    }
    Ok(count_new_triggers(&outcomes))
}
