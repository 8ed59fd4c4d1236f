//! Schedule of review reminders: selects the open pull requests to check for an overdue review.

use std::{collections::BTreeMap, time::Duration};

use domain::{Timestamp, TriggerChannel, cause::format_error_chain};
use tokio::time::Instant;

use crate::{
    events::overdue_review::OverdueReviewEvent,
    poll::{check_schedule::UpdateMarks, pull_request_events::PullRequestPlace},
    router::{EventRouter, outcome::EventFailure},
};

// Pause between two checks of an unchanged pull request.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
// Checks in one round, at three requests each.
const AT_ONCE: usize = 20;

/// Times of the last checks by pull request.
#[derive(Default)]
pub(crate) struct ReminderSchedule {
    checked: BTreeMap<PullRequestPlace, ReminderCheck>,
}

/// Time of the last check, and the update times that the last two checks reported.
struct ReminderCheck {
    at: Instant,
    marks: UpdateMarks,
}

impl ReminderSchedule {
    /// Runs one round. A failed pull request does not block the others; a rate limit ends the round.
    pub(crate) async fn remind(
        &mut self,
        router: &EventRouter,
        open: &[(PullRequestPlace, Option<Timestamp>)],
    ) {
        self.checked
            .retain(|place, _| open.iter().any(|(known, _)| known == place));
        for (place, updated) in self.due(router, open) {
            // The time is recorded first, so that a failure is retried at the next interval instead of at
            // once.
            let mut marks = self
                .checked
                .get(&place)
                .map(|known| known.marks)
                .unwrap_or_default();
            marks.record(updated);
            let at = Instant::now();
            self.checked.insert(place.clone(), ReminderCheck { at, marks });
            if let Err(failure) = check_for_reminder(router, &place).await {
                let (repository, number) = &place;
                tracing::warn!(%repository, number, error = %format_error_chain(&failure), "reminders failed");
                if failure.is_limit() {
                    return;
                }
            }
        }
    }

    /// Pull requests that changed since the last check, or whose last check is an interval ago, where the
    /// rules enable reminders.
    fn due(
        &self,
        router: &EventRouter,
        open: &[(PullRequestPlace, Option<Timestamp>)],
    ) -> Vec<(PullRequestPlace, Option<Timestamp>)> {
        let book = router.rules.book();
        let reminds = |place: &PullRequestPlace| {
            let rules = book.for_repository(&place.0);
            rules.is_some_and(|rules| rules.review.reminds())
        };
        let is_due = |(place, updated): &&(PullRequestPlace, Option<Timestamp>)| {
            let known = self.checked.get(place);
            // A pull request that no listing has shown since the start has no update time. It counts as
            // unchanged.
            let is_new = |marks: UpdateMarks| marks.updated() != *updated || !marks.is_certain();
            known.is_none_or(|known| is_new(known.marks) || known.at.elapsed() >= INTERVAL)
        };
        let due = open.iter().filter(|(place, _)| reminds(place)).filter(is_due);
        due.take(AT_ONCE).cloned().collect()
    }
}

async fn check_for_reminder(router: &EventRouter, place: &PullRequestPlace) -> Result<(), EventFailure> {
    let (repository, number) = place;
    if let Some(record) = router.queue.pull_requests().get(repository, *number).await? {
        router
            .take(&OverdueReviewEvent::from_poll(record), TriggerChannel::Poll)
            .await?;
    }
    Ok(())
}
