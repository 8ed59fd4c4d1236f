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
        for (place, updated) in self.list_due(router, open) {
            // The time is recorded first, so that a failure is retried at the next interval instead of at
            // once.
            self.record_check(place.clone(), updated, Instant::now());
            if let Err(failure) = check_for_reminder(router, &place).await {
                let (repository, number) = &place;
                tracing::warn!(%repository, number, error = %format_error_chain(&failure), "reminders failed");
                if failure.is_limit() {
                    return;
                }
            }
        }
    }

    fn record_check(&mut self, place: PullRequestPlace, updated: Option<Timestamp>, at: Instant) {
        let known = self.checked.get(&place);
        let mut marks = known.map(|known| known.marks).unwrap_or_default();
        marks.record(updated);
        self.checked.insert(place, ReminderCheck { at, marks });
    }

    /// Pull requests to check in this round, where the rules enable reminders.
    fn list_due(
        &self,
        router: &EventRouter,
        open: &[(PullRequestPlace, Option<Timestamp>)],
    ) -> Vec<(PullRequestPlace, Option<Timestamp>)> {
        let book = router.rules.book();
        let reminds = |place: &PullRequestPlace| {
            let rules = book.for_repository(&place.0);
            rules.is_some_and(|rules| rules.review.reminds())
        };
        let reminded = open.iter().filter(|(place, _)| reminds(place));
        self.choose_due(reminded, Instant::now())
    }

    /// Chooses the pull requests that changed since the last check, or whose last check is an interval ago: the longest
    /// unchecked ones.
    fn choose_due<'a>(
        &self,
        open: impl Iterator<Item = &'a (PullRequestPlace, Option<Timestamp>)>,
        now: Instant,
    ) -> Vec<(PullRequestPlace, Option<Timestamp>)> {
        let is_due = |(place, updated): &&(PullRequestPlace, Option<Timestamp>)| {
            let known = self.checked.get(place);
            // A pull request that no listing has shown since the start has no update time. It counts as
            // unchanged.
            let is_new = |marks: UpdateMarks| marks.updated() != *updated || !marks.is_certain();
            known.is_none_or(|known| {
                is_new(known.marks) || now.saturating_duration_since(known.at) >= INTERVAL
            })
        };
        let mut due: Vec<_> = open.filter(is_due).collect();
        // Without this order, long poll intervals would leave the last ones unchecked forever.
        due.sort_by_key(|(place, _)| self.checked.get(place).map(|known| known.at));
        due.into_iter().take(AT_ONCE).cloned().collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_check_every_pull_request_in_turn() {
        let mut schedule = ReminderSchedule::default();
        let start = Instant::now();
        let most = 3 * AT_ONCE as u64;
        let open: Vec<(PullRequestPlace, Option<Timestamp>)> = (0..most)
            .map(|number| (("acme/shop".parse().unwrap(), number), None))
            .collect();
        let mut counts: BTreeMap<PullRequestPlace, u32> = BTreeMap::new();
        // All are due in each round, because the rounds are an interval apart.
        for round in 0..6 {
            let now = start + INTERVAL * round;
            for (place, updated) in schedule.choose_due(open.iter(), now) {
                *counts.entry(place.clone()).or_default() += 1;
                schedule.record_check(place, updated, now);
            }
        }
        assert_eq!(counts.len() as u64, most);
        assert!(counts.values().all(|count| *count == 2), "{counts:?}");
    }
}
