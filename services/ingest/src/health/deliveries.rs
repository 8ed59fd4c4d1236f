//! Assessments that a webhook causes, after its own events.

use std::time::Duration;

use domain::{
    PullRequestRecord, PullRequestStatus, RepositoryName, TriggerChannel, cause::format_error_chain,
};
use queue::{DeliveryDisposition, WebhookDelivery};

use crate::{
    health::{
        assessor::{AssessmentOutcome, assess_place, assess_record},
        store::read_health,
        webhook_scope::{AffectedPullRequests, QueueMembership, find_affected},
    },
    router::{
        EventRouter,
        outcome::{EventFailure, choose_disposition},
    },
    webhook::payload::WebhookPayload,
};

// Time limit of the assessments of one delivery.
const ASSESSMENT_LIMIT: Duration = Duration::from_secs(20);
// Assessments for one push to a base branch. Polls, a repeated delivery and the next push assess the others.
const MOST_AT_ONCE: usize = 20;
// First pause before an assessment while GitHub computes whether a pull request can be merged, in milliseconds.
const COMPUTING_PAUSE_MS: i64 = 5_000;
// Longest time in which a delivery waits for that, in milliseconds. Later polls assess the pull request again.
const COMPUTING_LIMIT_MS: i64 = 2 * 60 * 1000;
// Age of a delivery, in milliseconds, up to which a failed assessment is retried. Later polls assess the pull request again.
// Without a limit, the deliveries of all pushes would stay in the queue as long as one pull request cannot be read.
const RETRY_LIMIT_MS: i64 = 10 * 60 * 1000;

/// Handles a delivery: its own events first, then the assessments that it causes.
pub(crate) async fn handle_delivery(router: &EventRouter, delivery: WebhookDelivery) -> DeliveryDisposition {
    let affected = WebhookPayload::open(&delivery).and_then(|hook| find_affected(&hook));
    let received_at = delivery.received_at;
    let disposition = router.handle(delivery).await;
    // An unreadable payload has its disposition from its own events.
    let Ok(Some(affected)) = affected else {
        return disposition;
    };
    if !matches!(disposition, DeliveryDisposition::Done) {
        return disposition;
    }
    let age_ms = bootstrap::read_wall_clock().unix_ms() - received_at.unix_ms();
    let assessed = tokio::time::timeout(ASSESSMENT_LIMIT, Box::pin(assess_affected(router, &affected)));
    let result = assessed.await.unwrap_or_else(|_| {
        Err(EventFailure::Later {
            detail: format!("not assessed within {} s", ASSESSMENT_LIMIT.as_secs()),
            after: None,
        })
    });
    match result {
        Ok(is_computing) => match choose_computing_pause(age_ms).filter(|_| is_computing) {
            Some(after) => DeliveryDisposition::Retry { after },
            None => disposition,
        },
        Err(failure) => {
            tracing::warn!(error = %format_error_chain(&failure), "pull requests not assessed");
            choose_failure_disposition(failure, age_ms)
        }
    }
}

/// Effect of a failed assessment on a delivery of this age whose own events are handled. Polls assess the pull request
/// again, so that no failure needs a dead letter.
fn choose_failure_disposition(failure: EventFailure, age_ms: i64) -> DeliveryDisposition {
    if failure.may_pass() && age_ms < RETRY_LIMIT_MS {
        choose_disposition(Err(failure), age_ms)
    } else {
        DeliveryDisposition::Done
    }
}

/// Returns the pause of a delivery of this age while GitHub computes; `None` after the limit. The pauses are about 5, 10, 20
/// and 40 s, and the last one ends at the limit.
fn choose_computing_pause(age_ms: i64) -> Option<Duration> {
    let age_ms = age_ms.max(0);
    let left = COMPUTING_LIMIT_MS - age_ms;
    // The pauses before add up to the age, and each is twice the previous one.
    let pause = age_ms.saturating_add(COMPUTING_PAUSE_MS).min(left);
    (left > 0).then(|| Duration::from_millis(pause.unsigned_abs()))
}

/// Assesses the affected pull requests. True while GitHub computes for one of them whether it can be merged.
async fn assess_affected(
    router: &EventRouter,
    affected: &AffectedPullRequests,
) -> Result<bool, EventFailure> {
    let is_computing = |outcome: &AssessmentOutcome| outcome.is_computing;
    match affected {
        AffectedPullRequests::One {
            repository,
            number,
            queue,
        } => {
            let webhook = TriggerChannel::Webhook;
            let assessed = assess_place(router, repository, *number, *queue, webhook).await?;
            Ok(assessed.as_ref().is_some_and(is_computing))
        }
        AffectedPullRequests::OfBase { repository, branch } => {
            // Most pushes are to other branches, and the index is read for base branches alone.
            let book = router.rules.book();
            let rules = book.for_repository(repository);
            if rules.is_none_or(|rules| rules.target_branch() != branch) {
                return Ok(false);
            }
            let (mut is_any_computing, mut failed) = (false, None);
            for record in list_longest_unassessed(router, repository).await? {
                match Box::pin(assess_record(
                    router,
                    &record,
                    QueueMembership::Unknown,
                    TriggerChannel::Webhook,
                ))
                .await
                {
                    Ok(assessed) => is_any_computing |= is_computing(&assessed),
                    // The limit holds for the others, too.
                    Err(failure) if failure.is_limit() => return Err(failure),
                    // The failure may be of this pull request alone. The others are assessed all the same.
                    Err(failure) => {
                        let number = record.pull_request.number;
                        tracing::warn!(%repository, number, error = %format_error_chain(&failure), "not assessed");
                        failed = failed.or(Some(failure).filter(EventFailure::may_pass));
                    }
                }
            }
            failed.map_or(Ok(is_any_computing), Err)
        }
    }
}

/// Lists the open pull requests of a repository that one delivery assesses: those whose last assessment is the oldest. A
/// repeated delivery and the next push continue with the others.
async fn list_longest_unassessed(
    router: &EventRouter,
    repository: &RepositoryName,
) -> Result<Vec<PullRequestRecord>, EventFailure> {
    let (records, _) = router
        .queue
        .pull_requests()
        .changes_after(queue::TableRevision::default())
        .await?;
    let is_open = |record: &PullRequestRecord| {
        record.status == PullRequestStatus::Open && record.pull_request.repository == *repository
    };
    let open: Vec<PullRequestRecord> = records.into_iter().filter(is_open).collect();
    if open.len() <= MOST_AT_ONCE {
        return Ok(open);
    }
    let mut dated = Vec::with_capacity(open.len());
    for record in open {
        let (health, _) = read_health(&router.queue, repository, record.pull_request.number).await?;
        dated.push((health.map(|health| health.at), record));
    }
    dated.sort_by_key(|(at, _)| *at);
    let oldest = dated.into_iter().take(MOST_AT_ONCE);
    Ok(oldest.map(|(_, record)| record).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_until_limit() {
        let (mut age_ms, mut pauses) = (0, Vec::new());
        while let Some(pause) = choose_computing_pause(age_ms) {
            pauses.push(pause.as_secs());
            age_ms += i64::try_from(pause.as_millis()).unwrap();
        }
        assert_eq!(pauses, [5, 10, 20, 40, 45]);
        assert_eq!(age_ms, COMPUTING_LIMIT_MS);
        // The clock of the sender is ahead.
        assert_eq!(choose_computing_pause(-60_000), Some(Duration::from_secs(5)));
        assert_eq!(choose_computing_pause(i64::MAX), None);
    }

    #[test]
    fn failed_assessment_is_retried_until_limit() {
        let refused = || EventFailure::Refused("403".to_owned());
        for (failure, age_ms, is_retried) in [
            (refused(), 0, true),
            (refused(), RETRY_LIMIT_MS - 1, true),
            (refused(), RETRY_LIMIT_MS, false),
            (EventFailure::Unknown("gone".to_owned()), 0, false),
        ] {
            let chosen = choose_failure_disposition(failure.clone(), age_ms);
            let retries = matches!(chosen, DeliveryDisposition::Retry { .. });
            assert_eq!(retries, is_retried, "{failure:?} after {age_ms} ms");
            assert!(retries || chosen == DeliveryDisposition::Done, "{chosen:?}");
        }
    }
}
