//! Events that follow from a changed pull request in a listing.

use domain::{PullRequestStatus, RepositoryName, Source};
use github::PullRequest;

use crate::{
    catch_up::news,
    kinds::{
        closed::is_closed,
        elsewhere::MergedElsewhere,
        given_up::GivenUp,
        pushed::Pushed,
        reopened::Reopened,
        review_requested::{ReviewRequested, waits_for},
        reviewed::Reviewed,
        withdrawn::Withdrawn,
    },
    outcome::Failure,
    router::Router,
};

/// Repository and number of a pull request.
pub(crate) type Place = (RepositoryName, u64);

/// Handles a listed change of our open pull request: a push, a review or a review request. Returns the number of events
/// whose webhook was missed.
pub(crate) async fn saw_open(router: &Router, place: &Place, now: &PullRequest) -> Result<u64, Failure> {
    let Some(record) = router.queue.pull_requests().get(&place.0, place.1).await? else {
        return Ok(0);
    };
    let pushed = Pushed::from_poll(&record, now.head.clone());
    let mut outcomes = vec![router.take(&pushed, Source::Poll).await?];
    let book = router.rules.book();
    let rules = book.for_repository(&place.0).map(|rules| &rules.pull_request);
    if rules.is_some_and(|rules| rules.self_review && waits_for(&rules.reviewer, now)) {
        let requested = ReviewRequested::from_poll(place.0.clone(), place.1);
        outcomes.push(router.take(&requested, Source::Poll).await?);
    }
    for review in router.outside.reviews(&place.0, place.1).await? {
        let reviewed = Reviewed::from_poll(&record, &review);
        outcomes.push(router.take(&reviewed, Source::Poll).await?);
    }
    Ok(news(&outcomes))
}

/// Handles a listed change of any other pull request: a merge, a close, a reopening, or a review request for Journeyman
/// and its withdrawal. Returns the number of events whose webhook was missed.
pub(crate) async fn saw_another(router: &Router, place: &Place, now: &PullRequest) -> Result<u64, Failure> {
    // An open pull request with the record of a closed one was reopened.
    if !is_closed(now)
        && let Some(record) = router.queue.pull_requests().get(&place.0, place.1).await?
        && record.status == PullRequestStatus::Closed
    {
        let reopened = Reopened::from_poll(&record);
        return Ok(news(&[router.take(&reopened, Source::Poll).await?]));
    }
    let book = router.rules.book();
    let reviewer = book
        .for_repository(&place.0)
        .map(|rules| &rules.pull_request.reviewer);
    if !is_closed(now) && reviewer.is_some_and(|reviewer| waits_for(reviewer, now)) {
        let requested = ReviewRequested::from_poll(place.0.clone(), place.1);
        return Ok(news(&[router.take(&requested, Source::Poll).await?]));
    }
    // A withdrawn review request is visible only by its absence, so every change is checked for it.
    let withdrawn = Withdrawn::from_poll(place.0.clone(), place.1);
    let mut outcomes = vec![router.take(&withdrawn, Source::Poll).await?];
    if now.merged {
        let merged = MergedElsewhere::from_poll(&place.0, now);
        outcomes.push(router.take(&merged, Source::Poll).await?);
    } else if is_closed(now) {
        let given_up = GivenUp::from_poll(&place.0, now);
        outcomes.push(router.take(&given_up, Source::Poll).await?);
    }
    Ok(news(&outcomes))
}

/// Repositories of the rules that are on a server. Their pull requests may be merged for a ticket, reopened, or request
/// our review.
pub(crate) fn of_the_rules(router: &Router) -> Vec<RepositoryName> {
    let book = router.rules.book();
    let on_servers = book.repositories().filter(|rules| rules.repo.folder.is_none());
    on_servers.filter_map(|rules| rules.repository().ok()).collect()
}
