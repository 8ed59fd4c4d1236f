//! Schedule of assessments by polls: each open pull request after a change, and at an interval.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{Timestamp, TriggerChannel, cause::format_error_chain};
use tokio::time::Instant;

use crate::{
    health::{assessor::assess_place, store::remove_health, webhook_scope::QueueMembership},
    poll::{
        check_schedule::{ListedHead, ReadAllowance},
        pull_request_events::PullRequestPlace,
        round::count_new_triggers,
    },
    router::EventRouter,
};

// Pause between two assessments of an unchanged pull request. A push to its base changes its health without it.
const INTERVAL: Duration = Duration::from_secs(5 * 60);

/// Assessments per hour of pull requests whose heads stay the same in the listings of heads. They find what no listing
/// shows, such as a changed ruleset.
pub const STEADY_ASSESSMENTS_AN_HOUR: f64 = 30.0;
// Burst limit of these assessments.
const STEADY_AT_ONCE: f64 = 2.0;
// Stored assessments that one round removes. After a start, the index names every pull request that ever ended.
const REMOVALS_AT_ONCE: usize = 50;

/// Times of the last assessments by pull request.
#[derive(Debug)]
pub(crate) struct HealthSchedule {
    assessed: BTreeMap<PullRequestPlace, LastAssessment>,
    /// Pull requests that ended and may have a stored assessment.
    ended: BTreeSet<PullRequestPlace>,
    /// Allowance for assessments. Unchanged answers cost nothing of GitHub's limit, so it bounds the changed ones.
    allowance: ReadAllowance,
    /// Allowance for assessments of pull requests that listings show as unchanged.
    steady_allowance: ReadAllowance,
}

/// Last assessment, with the update time that the listing of pull requests reported then.
#[derive(Debug)]
struct LastAssessment {
    at: Instant,
    updated: Option<Timestamp>,
    /// True after a success.
    is_done: bool,
    /// Time from which another one may decide otherwise although nothing changes.
    again_at: Option<Timestamp>,
}

/// Pull request that is due for an assessment.
#[derive(Debug)]
struct DueAssessment {
    place: PullRequestPlace,
    updated: Option<Timestamp>,
    /// True when only the interval has passed, and listings show the head as it was.
    is_steady: bool,
}

/// Present time, by both clocks.
#[derive(Clone, Copy, Debug)]
struct PresentTime {
    instant: Instant,
    wall: Timestamp,
}

impl LastAssessment {
    /// True when nothing has changed and no time has come since the assessment, as far as listings show it.
    fn is_steady(&self, listed: Option<ListedHead>, now: Timestamp) -> bool {
        let is_early = self.again_at.is_none_or(|at| now < at);
        let is_known = listed.is_some_and(|listed| listed.since < self.at);
        is_known && self.is_done && is_early
    }
}

impl HealthSchedule {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            assessed: BTreeMap::new(),
            ended: BTreeSet::new(),
            allowance: ReadAllowance::new(now),
            steady_allowance: ReadAllowance::with_rate(STEADY_ASSESSMENTS_AN_HOUR, STEADY_AT_ONCE, now),
        }
    }

    /// Notes pull requests that ended, also those that an earlier process assessed.
    pub(crate) fn note_ended(&mut self, ended: BTreeSet<PullRequestPlace>) {
        self.ended.extend(ended);
    }

    /// Runs one round, within the allowances. Returns the number of steps that no webhook caused. A failed pull request does
    /// not block the others; a rate limit ends the round of its organization.
    pub(crate) async fn assess(
        &mut self,
        router: &EventRouter,
        open: &[(PullRequestPlace, Option<Timestamp>)],
        listed: &BTreeMap<PullRequestPlace, ListedHead>,
    ) -> u64 {
        self.forget_ended(router, open).await;
        let (mut recovered, mut limited) = (0, BTreeSet::new());
        let now = PresentTime {
            instant: Instant::now(),
            wall: bootstrap::read_wall_clock(),
        };
        for due in self.list_due(open, listed, now) {
            let (repository, number) = &due.place;
            let organization = repository.organization();
            if limited.contains(&organization) || !self.begin(&due, Instant::now()) {
                continue;
            }
            match Box::pin(assess_place(
                router,
                repository,
                *number,
                QueueMembership::Unknown,
                TriggerChannel::Poll,
            ))
            .await
            {
                Ok(assessed) => {
                    if let Some(last) = self.assessed.get_mut(&due.place) {
                        last.is_done = true;
                        last.again_at = assessed.as_ref().and_then(|assessed| assessed.again_at);
                    }
                    let step = assessed.and_then(|assessed| assessed.step);
                    recovered += count_new_triggers(step.as_slice());
                }
                Err(failure) => {
                    tracing::warn!(%repository, number, error = %format_error_chain(&failure), "not assessed");
                    if failure.is_limit() {
                        limited.insert(organization);
                    }
                }
            }
        }
        recovered
    }

    /// Begins an assessment; false when the allowance is exhausted.
    fn begin(&mut self, due: &DueAssessment, at: Instant) -> bool {
        let allowance = if due.is_steady {
            &mut self.steady_allowance
        } else {
            &mut self.allowance
        };
        if !allowance.spend(at) {
            return false;
        }
        // The time is recorded first, so that a failure is retried at the next interval instead of at once.
        let last = LastAssessment {
            at,
            updated: due.updated,
            is_done: false,
            again_at: None,
        };
        self.assessed.insert(due.place.clone(), last);
        true
    }

    /// Removes the assessments of pull requests that are no longer open: nothing assesses them again.
    async fn forget_ended(&mut self, router: &EventRouter, open: &[(PullRequestPlace, Option<Timestamp>)]) {
        for place in self.take_ended(open) {
            let (repository, number) = &place;
            if let Err(error) = remove_health(&router.queue, repository, *number).await {
                tracing::warn!(%repository, number, error = %format_error_chain(&error), "an assessment is not removed");
                self.ended.insert(place);
            }
        }
    }

    /// Takes places that are no longer open out of the schedule, as many as one round removes.
    fn take_ended(&mut self, open: &[(PullRequestPlace, Option<Timestamp>)]) -> Vec<PullRequestPlace> {
        let open: BTreeSet<&PullRequestPlace> = open.iter().map(|(place, _)| place).collect();
        self.ended.extend(self.assessed.keys().cloned());
        self.ended.retain(|place| !open.contains(place));
        self.assessed.retain(|place, _| open.contains(place));
        let taken: Vec<PullRequestPlace> = self.ended.iter().take(REMOVALS_AT_ONCE).cloned().collect();
        for place in &taken {
            self.ended.remove(place);
        }
        taken
    }

    /// Pull requests that changed since the last assessment or were not assessed for an interval: the changed ones before
    /// those that listings show as unchanged, and the longest first.
    fn list_due(
        &self,
        open: &[(PullRequestPlace, Option<Timestamp>)],
        listed: &BTreeMap<PullRequestPlace, ListedHead>,
        now: PresentTime,
    ) -> Vec<DueAssessment> {
        let last = |place: &PullRequestPlace| self.assessed.get(place);
        let find_due = |(place, updated): &(PullRequestPlace, Option<Timestamp>)| {
            let listed = listed.get(place).copied();
            let is_change =
                |last: &LastAssessment| listed.is_some_and(|head| head.has_changed && head.since >= last.at);
            let is_steady = match last(place) {
                None => false,
                Some(last) if last.updated != *updated => false,
                Some(last) if is_change(last) => false,
                Some(last) if now.instant.saturating_duration_since(last.at) < INTERVAL => return None,
                Some(last) => last.is_steady(listed, now.wall),
            };
            Some(DueAssessment {
                place: place.clone(),
                updated: *updated,
                is_steady,
            })
        };
        let mut due: Vec<DueAssessment> = open.iter().filter_map(find_due).collect();
        // The longest come first, so that an exhausted allowance delays no pull request forever.
        due.sort_by_key(|due| (due.is_steady, last(&due.place).map(|last| last.at)));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_pull_requests_share_allowance_evenly() {
        let mut schedule = HealthSchedule::new();
        let start = Instant::now();
        let place = |number| -> PullRequestPlace { ("acme/shop".parse().unwrap(), number) };
        let open: Vec<(PullRequestPlace, Option<Timestamp>)> =
            (1..=60).map(|number| (place(number), None)).collect();
        let mut counts: BTreeMap<PullRequestPlace, u32> = BTreeMap::new();
        // A round each minute for an hour.
        for minute in 0..=60 {
            let now = PresentTime {
                instant: start + Duration::from_secs(minute * 60),
                wall: Timestamp::from_unix_ms(10_000),
            };
            for due in schedule.list_due(&open, &BTreeMap::new(), now) {
                if schedule.begin(&due, now.instant) {
                    *counts.entry(due.place).or_default() += 1;
                }
            }
        }
        // A burst of 20, and 150 in the hour.
        let all: u32 = counts.values().sum();
        assert!((165..=170).contains(&all), "{all}");
        assert_eq!(counts.len(), 60);
        let uneven: Vec<&u32> = counts
            .values()
            .filter(|count| !(2..=3).contains(*count))
            .collect();
        assert!(uneven.is_empty(), "{counts:?}");
    }

    #[test]
    fn ended_pull_requests_are_taken_once() {
        let place = |number| -> PullRequestPlace { ("acme/shop".parse().unwrap(), number) };
        let mut schedule = HealthSchedule::new();
        let most = 2 * REMOVALS_AT_ONCE as u64;
        schedule.note_ended((1..=most).map(place).collect());
        // The first one was opened again.
        let open = [(place(1), None)];
        let mut taken = BTreeSet::new();
        for _ in 0..2 {
            taken.extend(schedule.take_ended(&open));
        }
        let ended: BTreeSet<PullRequestPlace> = (2..=most).map(place).collect();
        assert_eq!(taken, ended);
        assert!(schedule.take_ended(&open).is_empty());
    }

    #[test]
    fn changed_or_old_pull_request_is_due() {
        let now = PresentTime {
            instant: Instant::now(),
            wall: Timestamp::from_unix_ms(10_000),
        };
        let place = |number| -> PullRequestPlace { ("acme/shop".parse().unwrap(), number) };
        let at = |second: i64| Some(Timestamp::from_unix_ms(second * 1_000));
        let ago = |seconds: u64| now.instant.checked_sub(Duration::from_secs(seconds)).unwrap();
        let mut schedule = HealthSchedule::new();
        let mut assess = |number: u64, seconds: u64, is_done, again_at| {
            let last = LastAssessment {
                at: ago(seconds),
                updated: at(1),
                is_done,
                again_at,
            };
            schedule.assessed.insert(place(number), last);
        };
        for (number, seconds) in [(1, 400), (2, 10), (3, 20), (5, 10), (6, 500), (8, 30)] {
            assess(number, seconds, true, None);
        }
        // The last one failed, and the other one waits for a time that has come.
        assess(7, 450, false, None);
        assess(9, 350, true, at(10));
        let open = [
            (place(1), at(1)),
            (place(2), at(1)),
            (place(3), at(2)),
            (place(4), None),
            (place(6), at(1)),
            (place(7), at(1)),
            (place(8), at(1)),
            (place(9), at(1)),
        ];
        // The head of the eighth changed after its assessment. The second was listed for the first time after its own.
        let listed = [(1, 900), (2, 5), (6, 900), (7, 900), (8, 5), (9, 900)];
        let listed = BTreeMap::from(listed.map(|(number, seconds)| {
            let (since, has_changed) = (ago(seconds), number == 8);
            (place(number), ListedHead { since, has_changed })
        }));
        assert_eq!(schedule.take_ended(&open), [place(5)]);
        let list = |listed: &BTreeMap<PullRequestPlace, ListedHead>| -> Vec<(u64, bool)> {
            let due = schedule.list_due(&open, listed, now).into_iter();
            due.map(|due| (due.place.1, due.is_steady)).collect()
        };
        let changed = [(4, false), (7, false), (9, false), (8, false), (3, false)];
        let same = [(6, true), (1, true)];
        assert_eq!(list(&listed), [&changed[..], &same[..]].concat());
        let unlisted: Vec<u64> = list(&BTreeMap::new())
            .into_iter()
            .map(|(number, _)| number)
            .collect();
        assert_eq!(unlisted, [4, 6, 7, 1, 9, 3]);
    }
}
