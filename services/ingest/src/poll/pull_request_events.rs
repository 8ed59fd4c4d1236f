//! Events that follow from a changed pull request in a listing.

use domain::{PullRequestStatus, RepositoryName, TriggerChannel};
use github::PullRequest;

use crate::{
    events::{
        closed::is_closed,
        competing_close::CompetingMergeEvent,
        given_up::CompetingCloseEvent,
        pushed::PushEvent,
        reopened::ReopenEvent,
        review_requested::{ReviewRequestEvent, is_waiting_for},
        reviewed::ReviewEvent,
        withdrawn::ReviewWithdrawalEvent,
    },
    poll::round::count_new_triggers,
    router::{EventRouter, outcome::EventFailure},
};

/// Repository and number of a pull request.
pub(crate) type PullRequestPlace = (RepositoryName, u64);

/// Handles a listed change of our open pull request: a push, a review or a review request. Returns the number of events
/// whose webhook was missed.
pub(crate) async fn handle_open_pull_request(
    router: &EventRouter,
    place: &PullRequestPlace,
    now: &PullRequest,
) -> Result<u64, EventFailure> {
    let Some(record) = router.queue.pull_requests().get(&place.0, place.1).await? else {
        return Ok(0);
    };
    let pushed = PushEvent::from_poll(&record, now.head.clone());
    let mut outcomes = vec![router.take(&pushed, TriggerChannel::Poll).await?];
    let book = router.rules.book();
    let rules = book.for_repository(&place.0).map(|rules| &rules.pull_request);
    if rules.is_some_and(|rules| rules.self_review && is_waiting_for(&rules.reviewer, now)) {
        let requested = ReviewRequestEvent::from_poll(place.0.clone(), place.1);
        outcomes.push(router.take(&requested, TriggerChannel::Poll).await?);
    }
    for review in router.outside.reviews(&place.0, place.1).await? {
        let reviewed = ReviewEvent::from_poll(&record, &review);
        outcomes.push(router.take(&reviewed, TriggerChannel::Poll).await?);
    }
    Ok(count_new_triggers(&outcomes))
}

/// Handles a listed change of any other pull request: a merge, a close, a reopening, or a review request for Journeyman
/// and its withdrawal. Returns the number of events whose webhook was missed.
pub(crate) async fn handle_other_pull_request(
    router: &EventRouter,
    place: &PullRequestPlace,
    now: &PullRequest,
) -> Result<u64, EventFailure> {
    // An open pull request with the record of a closed one was reopened.
    if !is_closed(now)
        && let Some(record) = router.queue.pull_requests().get(&place.0, place.1).await?
        && record.status == PullRequestStatus::Closed
    {
        let reopened = ReopenEvent::from_poll(&record);
        return Ok(count_new_triggers(&[router
            .take(&reopened, TriggerChannel::Poll)
            .await?]));
    }
    let book = router.rules.book();
    let reviewer = book
        .for_repository(&place.0)
        .map(|rules| &rules.pull_request.reviewer);
    if !is_closed(now) && reviewer.is_some_and(|reviewer| is_waiting_for(reviewer, now)) {
        let requested = ReviewRequestEvent::from_poll(place.0.clone(), place.1);
        return Ok(count_new_triggers(&[router
            .take(&requested, TriggerChannel::Poll)
            .await?]));
    }
    // A withdrawn review request is visible only by its absence, so every change is checked for it.
    let withdrawn = ReviewWithdrawalEvent::from_poll(place.0.clone(), place.1);
    let mut outcomes = vec![router.take(&withdrawn, TriggerChannel::Poll).await?];
    if now.merged {
        let merged = CompetingMergeEvent::from_poll(&place.0, now);
        outcomes.push(router.take(&merged, TriggerChannel::Poll).await?);
    } else if is_closed(now) {
        let given_up = CompetingCloseEvent::from_poll(&place.0, now);
        outcomes.push(router.take(&given_up, TriggerChannel::Poll).await?);
    }
    Ok(count_new_triggers(&outcomes))
}

/// Repositories of the rules that are on a server. Their pull requests may be merged for a ticket, reopened, or request
/// our review.
pub(crate) fn list_rules_repositories(router: &EventRouter) -> Vec<RepositoryName> {
    let book = router.rules.book();
    let on_servers = book.repositories().filter(|rules| rules.repo.folder.is_none());
    on_servers.filter_map(|rules| rules.repository().ok()).collect()
}
