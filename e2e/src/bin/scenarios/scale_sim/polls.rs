//! Polls of ingest on a virtual clock, with ingest's plan and allowance.

use std::time::Duration;

use ingest::{OVERLAP_MS, ReadAllowance, TrackedPullRequest};
use tokio::time::Instant;

/// Page size of GitHub's delivery log and of Jira's search.
const PAGE: u64 = 100;
/// Calls per poll of a commit's checks: check runs and statuses.
const CALLS_PER_READ: u64 = 2;
/// Calls per changed pull request of ours: its reviews.
const CALLS_A_CHANGE: u64 = 1;
/// Searches per project: requested tickets, and changed tickets.
const SEARCHES_A_PROJECT: u64 = 2;
// Listings per change of ours. GitHub's times have whole seconds, so a change is certain after two listings
// within the same second.
const LISTINGS_A_CHANGE: u8 = 2;

/// Open pull request of ours.
pub(crate) struct SimulatedPullRequest {
    pub(crate) repository: usize,
    pub(crate) tracked: TrackedPullRequest,
    /// Time at which its checks are complete.
    pub(crate) checked: Instant,
}

/// Requests of one round of polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SimulatedPollRound {
    /// Requests that GitHub answers with 304, which do not count against the rate limit.
    pub(crate) unchanged: u64,
    pub(crate) counted: u64,
    pub(crate) jira: u64,
    /// Longest delay of a poll of checks.
    pub(crate) latest: Duration,
}

/// State of the polls.
pub(crate) struct SimulatedPolls {
    pub(crate) interval: Duration,
    projects: u64,
    allowance: ReadAllowance,
    /// Number of coming listings without a 304 answer for each repository, and number of those with a change
    /// of ours.
    changed: Vec<(u8, u8)>,
    /// Times of the webhooks, oldest first.
    delivered: std::collections::VecDeque<Instant>,
}

impl SimulatedPolls {
    pub(crate) fn new(interval: Duration, repositories: usize, projects: u64, now: Instant) -> Self {
        Self {
            interval,
            projects,
            allowance: ReadAllowance::new(now),
            // The first listing of a repository is never a 304.
            changed: vec![(1, 0); repositories],
            delivered: std::collections::VecDeque::new(),
        }
    }

    /// Records a changed pull request in a repository.
    pub(crate) fn changed(&mut self, repository: usize, is_ours: bool) {
        if let Some((listings, ours)) = self.changed.get_mut(repository) {
            let wanted = if is_ours { LISTINGS_A_CHANGE } else { 1 };
            *listings = wanted.max(*listings);
            *ours = if is_ours { wanted } else { *ours };
        }
    }

    /// Records a webhook that GitHub sent.
    pub(crate) fn delivered(&mut self, at: Instant) {
        self.delivered.push_back(at);
    }

    /// Simulates one round of polls.
    pub(crate) fn round(&mut self, open: &mut [SimulatedPullRequest], now: Instant) -> SimulatedPollRound {
        let mut round = SimulatedPollRound {
            counted: self.pages_of_deliveries(now),
            jira: self.projects * SEARCHES_A_PROJECT,
            ..SimulatedPollRound::default()
        };
        for (listings, ours) in &mut self.changed {
            if *listings == 0 {
                round.unchanged += 1;
                continue;
            }
            *listings -= 1;
            round.counted += 1;
            if *ours > 0 {
                *ours -= 1;
                round.counted += CALLS_A_CHANGE;
            }
        }
        let mut due: Vec<&mut SimulatedPullRequest> =
            open.iter_mut().filter(|open| open.tracked.due() <= now).collect();
        // The longest overdue polls get the allowance first.
        due.sort_by_key(|open| open.tracked.due());
        for open in due {
            round.latest = round.latest.max(now - open.tracked.due());
            if !self.allowance.spend(now) {
                break;
            }
            round.counted += CALLS_PER_READ;
            open.tracked.schedule_next_read(now >= open.checked, now);
        }
        round
    }

    /// Counts the pages of the delivery log back to an overlap before the previous round.
    fn pages_of_deliveries(&mut self, now: Instant) -> u64 {
        let window = Duration::from_millis(OVERLAP_MS.unsigned_abs()) + self.interval;
        while self.delivered.front().is_some_and(|at| *at + window < now) {
            self.delivered.pop_front();
        }
        (self.delivered.len() as u64).div_ceil(PAGE).max(1)
    }
}
