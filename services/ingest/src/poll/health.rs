//! Schedule of assessments by polls: each open pull request after a change, and at an interval.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{Timestamp, TriggerChannel, cause::format_error_chain};
use tokio::time::Instant;

use crate::{
    health::{assessor::assess_place, store::remove_health},
    poll::{check_schedule::ReadAllowance, pull_request_events::PullRequestPlace, round::count_new_triggers},
    router::EventRouter,
};

// Pause between two assessments of an unchanged pull request. A push to its base changes its health without it.
const INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Times of the last assessments by pull request.
#[derive(Debug)]
pub(crate) struct HealthSchedule {
    assessed: BTreeMap<PullRequestPlace, LastAssessment>,
    /// Allowance for assessments. Unchanged answers cost nothing of GitHub's limit, so it bounds the changed ones.
    allowance: ReadAllowance,
}

/// Time of an assessment, with the update time that the listing reported then.
#[derive(Debug)]
struct LastAssessment {
    at: Instant,
    updated: Option<Timestamp>,
}

impl HealthSchedule {
    pub(crate) fn new() -> Self {
        Self {
            assessed: BTreeMap::new(),
            allowance: ReadAllowance::new(Instant::now()),
        }
    }

    /// Runs one round, within the allowance. Returns the number of steps that no webhook caused. A failed pull request
    /// does not block the others; a rate limit ends the round.
    pub(crate) async fn assess(
        &mut self,
        router: &EventRouter,
        open: &[(PullRequestPlace, Option<Timestamp>)],
    ) -> u64 {
        self.forget_ended(router, open).await;
        let mut recovered = 0;
        for (place, updated) in self.list_due(open, Instant::now()) {
            if !self.allowance.spend(Instant::now()) {
                break;
            }
            let at = Instant::now();
            // The time is recorded first, so that a failure is retried at the next interval instead of at once.
            self.assessed
                .insert(place.clone(), LastAssessment { at, updated });
            let (repository, number) = &place;
            match Box::pin(assess_place(
                router,
                repository,
                *number,
                false,
                TriggerChannel::Poll,
            ))
            .await
            {
                Ok(assessed) => {
                    let step = assessed.and_then(|assessed| assessed.step);
                    recovered += count_new_triggers(step.as_slice());
                }
                Err(failure) => {
                    tracing::warn!(%repository, number, error = %format_error_chain(&failure), "not assessed");
                    if failure.is_limit() {
                        break;
                    }
                }
            }
        }
        recovered
    }

    /// Removes the assessments of pull requests that are no longer open: nothing assesses them again.
    async fn forget_ended(&mut self, router: &EventRouter, open: &[(PullRequestPlace, Option<Timestamp>)]) {
        for (repository, number) in self.take_ended(open) {
            if let Err(error) = remove_health(&router.queue, &repository, number).await {
                tracing::warn!(%repository, number, error = %format_error_chain(&error), "an assessment is not removed");
            }
        }
    }

    /// Takes the places that are no longer open out of the schedule.
    fn take_ended(&mut self, open: &[(PullRequestPlace, Option<Timestamp>)]) -> Vec<PullRequestPlace> {
        let open: BTreeSet<&PullRequestPlace> = open.iter().map(|(place, _)| place).collect();
        let ended = self.assessed.keys().filter(|place| !open.contains(place));
        let ended: Vec<PullRequestPlace> = ended.cloned().collect();
        self.assessed.retain(|place, _| open.contains(place));
        ended
    }

    /// Pull requests that changed since the last assessment or were not assessed for an interval, the longest first.
    fn list_due(
        &self,
        open: &[(PullRequestPlace, Option<Timestamp>)],
        now: Instant,
    ) -> Vec<(PullRequestPlace, Option<Timestamp>)> {
        let last = |place: &PullRequestPlace| self.assessed.get(place);
        let is_due = |(place, updated): &&(PullRequestPlace, Option<Timestamp>)| {
            last(place).is_none_or(|last| {
                last.updated != *updated || now.saturating_duration_since(last.at) >= INTERVAL
            })
        };
        let mut due: Vec<_> = open.iter().filter(is_due).cloned().collect();
        // The longest come first, so that an exhausted allowance delays no pull request forever.
        due.sort_by_key(|(place, _)| last(place).map(|last| last.at));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_or_old_pull_request_is_due() {
        let now = Instant::now();
        let place = |number| -> PullRequestPlace { ("acme/shop".parse().unwrap(), number) };
        let at = |second: i64| Some(Timestamp::from_unix_ms(second * 1_000));
        let mut schedule = HealthSchedule::new();
        for (number, ago, updated) in [(1, 400, at(1)), (2, 10, at(1)), (3, 20, at(1)), (5, 10, at(1))] {
            let ago = Duration::from_secs(ago);
            schedule.assessed.insert(
                place(number),
                LastAssessment {
                    at: now.checked_sub(ago).unwrap(),
                    updated,
                },
            );
        }
        let open = [
            (place(1), at(1)),
            (place(2), at(1)),
            (place(3), at(2)),
            (place(4), None),
        ];
        assert_eq!(schedule.take_ended(&open), [place(5)]);
        let due: Vec<u64> = schedule
            .list_due(&open, now)
            .into_iter()
            .map(|((_, number), _)| number)
            .collect();
        assert_eq!(due, [4, 1, 3]);
    }
}
