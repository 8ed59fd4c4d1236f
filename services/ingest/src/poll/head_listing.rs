//! Schedule of the listings of heads, for repositories with many of our pull requests. Pure: callers pass the time.
//!
//! A listing shows with one request which of 100 pull requests need a read. Up to a dozen pull requests are assessed at
//! their interval without it, mostly by answers that cost nothing of GitHub's limit.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::RepositoryName;
use tokio::time::Instant;

use crate::poll::pull_request_events::PullRequestPlace;

/// Listings of the heads of one repository in an hour.
pub const HEAD_LISTINGS_AN_HOUR: u32 = 12;
// Rounds between two listings, where that is shorter.
const ROUNDS: u32 = 5;
// Most open pull requests that need no listing.
const FEW: usize = 12;
// Fewest pull requests of a listed repository. Below that, the listings of many repositories cost more than the reads.
const FEWEST_LISTED: usize = 10;

/// Times of the last listings by repository.
#[derive(Debug)]
pub(crate) struct HeadListings {
    interval: Duration,
    listed: BTreeMap<RepositoryName, Instant>,
}

impl HeadListings {
    pub(crate) fn new(poll_interval: Duration) -> Self {
        let longest = Duration::from_secs(3_600) / HEAD_LISTINGS_AN_HOUR;
        Self {
            interval: longest.min(poll_interval * ROUNDS),
            listed: BTreeMap::new(),
        }
    }

    /// End of the time for which a listing at this time counts. One failed listing does not end it.
    pub(crate) fn end_of(&self, now: Instant) -> Instant {
        now + self.interval * 2
    }

    /// Takes the repositories whose listing is due, each with the numbers of our pull requests.
    pub(crate) fn take_due<'a>(
        &mut self,
        open: impl Iterator<Item = &'a PullRequestPlace>,
        now: Instant,
    ) -> Vec<(RepositoryName, BTreeSet<u64>)> {
        let mut numbers = BTreeMap::<&RepositoryName, BTreeSet<u64>>::new();
        for (repository, number) in open {
            numbers.entry(repository).or_default().insert(*number);
        }
        self.listed
            .retain(|repository, _| numbers.contains_key(repository));
        if numbers.values().map(BTreeSet::len).sum::<usize>() <= FEW {
            return Vec::new();
        }
        let due = numbers.into_iter().filter(|(repository, numbers)| {
            let last = self.listed.get(*repository);
            let is_due = last.is_none_or(|at| now.saturating_duration_since(*at) >= self.interval);
            is_due && numbers.len() >= FEWEST_LISTED
        });
        let due: Vec<_> = due
            .map(|(repository, numbers)| (repository.clone(), numbers))
            .collect();
        // The time is recorded first, so that a failure is retried at the next interval instead of at once.
        let times = due.iter().map(|(repository, _)| (repository.clone(), now));
        self.listed.extend(times);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_places(counts: &[(&str, u64)]) -> Vec<PullRequestPlace> {
        let places = counts.iter().flat_map(|(name, count)| {
            let repository: RepositoryName = name.parse().unwrap();
            (1..=*count).map(move |number| (repository.clone(), number))
        });
        places.collect()
    }

    #[test]
    fn repository_with_many_is_listed_by_interval() {
        let start = Instant::now();
        let mut listings = HeadListings::new(Duration::from_secs(60));
        let mut take = |counts: &[(&str, u64)], after_s: u64| -> Vec<(String, usize)> {
            let now = start + Duration::from_secs(after_s);
            let due = listings.take_due(build_places(counts).iter(), now);
            due.into_iter()
                .map(|(repository, numbers)| (repository.to_string(), numbers.len()))
                .collect()
        };
        assert_eq!(take(&[("acme/shop", 12)], 0), []);
        let many = [("acme/shop", 11), ("acme/web", 3)];
        let shop = [("acme/shop".to_owned(), 11)];
        assert_eq!(take(&many, 60), shop);
        assert_eq!(take(&many, 240), []);
        assert_eq!(take(&many, 360), shop);
    }

    #[test]
    fn short_poll_interval_shortens_listing_interval() {
        let now = Instant::now();
        let end = |interval_s| {
            let listings = HeadListings::new(Duration::from_secs(interval_s));
            listings.end_of(now) - now
        };
        assert_eq!(end(1), Duration::from_secs(10));
        assert_eq!(end(600), Duration::from_secs(600));
    }
}
