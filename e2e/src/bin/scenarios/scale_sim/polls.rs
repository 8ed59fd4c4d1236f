//! The polls of ingest, by its own plan of looks and its own allowance, on a virtual clock.

use std::time::Duration;

use ingest::{Allowance, OVERLAP_MS, Tracked};
use tokio::time::Instant;

/// Deliveries on one page of GitHub's log, and tickets on one of Jira's search.
const PAGE: u64 = 100;
/// Of one look at the checks of a commit: runs and statuses.
const CALLS_A_LOOK: u64 = 2;
/// Of a pull request of ours that a listing shows as changed: its reviews.
const CALLS_A_CHANGE: u64 = 1;
/// Of a project: tickets that ask for work, and what changed.
const SEARCHES_A_PROJECT: u64 = 2;
/// A change of ours is certain when two listings saw it as of the same second.
const LISTINGS_A_CHANGE: u8 = 2;

/// An open pull request of ours.
pub(crate) struct Open {
    pub(crate) repository: usize,
    pub(crate) tracked: Tracked,
    /// When its checks are complete.
    pub(crate) checked: Instant,
}

/// What one round asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Answered with 'not modified', which GitHub does not count.
    pub(crate) unchanged: u64,
    pub(crate) counted: u64,
    pub(crate) jira: u64,
    /// The longest that a look at checks came after it was due.
    pub(crate) latest: Duration,
}

/// What polls remember.
pub(crate) struct Polls {
    pub(crate) interval: Duration,
    projects: u64,
    allowance: Allowance,
    /// For each repository how many listings will not be 'not modified', and how many of these show a change of ours.
    changed: Vec<(u8, u8)>,
    /// When webhooks were sent, oldest first.
    delivered: std::collections::VecDeque<Instant>,
}

impl Polls {
    pub(crate) fn new(interval: Duration, repositories: usize, projects: u64, now: Instant) -> Self {
        Self {
            interval,
            projects,
            allowance: Allowance::new(now),
            // Nothing is known at first.
            changed: vec![(1, 0); repositories],
            delivered: std::collections::VecDeque::new(),
        }
    }

    /// A pull request changed in a repository, one of ours or of somebody else.
    pub(crate) fn changed(&mut self, repository: usize, is_ours: bool) {
        if let Some((listings, ours)) = self.changed.get_mut(repository) {
            let wanted = if is_ours { LISTINGS_A_CHANGE } else { 1 };
            *listings = wanted.max(*listings);
            *ours = if is_ours { wanted } else { *ours };
        }
    }

    /// GitHub sent a webhook.
    pub(crate) fn delivered(&mut self, at: Instant) {
        self.delivered.push_back(at);
    }

    /// One round.
    pub(crate) fn round(&mut self, open: &mut [Open], now: Instant) -> Round {
        let mut round = Round {
            counted: self.pages_of_deliveries(now),
            jira: self.projects * SEARCHES_A_PROJECT,
            ..Round::default()
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
        let mut due: Vec<&mut Open> = open.iter_mut().filter(|open| open.tracked.due() <= now).collect();
        due.sort_by_key(|open| open.tracked.due());
        for open in due {
            round.latest = round.latest.max(now - open.tracked.due());
            if !self.allowance.spend(now) {
                break;
            }
            round.counted += CALLS_A_LOOK;
            open.tracked.looked(now >= open.checked, now);
        }
        round
    }

    /// The log is read back to some minutes before the last round.
    fn pages_of_deliveries(&mut self, now: Instant) -> u64 {
        let window = Duration::from_millis(OVERLAP_MS.unsigned_abs()) + self.interval;
        while self.delivered.front().is_some_and(|at| *at + window < now) {
            self.delivered.pop_front();
        }
        (self.delivered.len() as u64).div_ceil(PAGE).max(1)
    }
}
