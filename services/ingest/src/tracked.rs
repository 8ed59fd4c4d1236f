//! When an open pull request of ours is looked at.

use std::time::Duration;

use domain::CommitId;
use tokio::time::Instant;

use crate::looks::Looks;

/// The longest first wait between two looks at the checks of a head; a shorter interval of polls shortens it.
pub(crate) const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 60);
/// Checks that ended may be run again.
const SETTLED_WAIT: Duration = Duration::from_secs(6 * 60 * 60);

/// An open pull request of ours, as the polls know it.
pub(crate) struct Tracked {
    pub(crate) head: Option<CommitId>,
    /// At its reviews.
    pub(crate) looks: Looks,
    /// Since when that is its head, as far as this process saw.
    since: Instant,
    pub(crate) due: Instant,
    first_wait: Duration,
    wait: Duration,
}

impl Tracked {
    pub(crate) fn new(head: Option<CommitId>, first_wait: Duration) -> Self {
        Self {
            head,
            looks: Looks::default(),
            since: Instant::now(),
            due: Instant::now(),
            first_wait,
            wait: first_wait,
        }
    }

    pub(crate) fn has_head(&mut self, head: &CommitId) {
        if self.head.as_ref() != Some(head) {
            self.head = Some(head.clone());
            (self.since, self.due, self.wait) = (Instant::now(), Instant::now(), self.first_wait);
        }
    }

    /// The next look, later each time while the checks are not complete.
    pub(crate) fn looked(&mut self, is_settled: bool) {
        let wait = if is_settled { SETTLED_WAIT } else { self.wait };
        self.due = Instant::now() + wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }

    /// Whether no check has reported for so long that none will. While it has not, the next look is no later than that.
    pub(crate) fn is_silent_for(&mut self, settle: Duration) -> bool {
        let end = self.since + settle;
        if Instant::now() < end {
            self.due = self.due.min(end);
        }
        Instant::now() >= end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn checks_are_looked_at_less_often_the_longer_they_take_and_at_once_for_a_new_head() {
        let mut tracked = Tracked::new(Some("a".repeat(40).parse().unwrap()), FIRST_WAIT);
        let wait = |tracked: &mut Tracked| {
            tracked.looked(false);
            (tracked.due - Instant::now()).as_secs()
        };
        let waits: Vec<u64> = (0..7).map(|_| wait(&mut tracked)).collect();
        assert_eq!(waits, [60, 120, 240, 480, 960, 1_800, 1_800]);
        tracked.has_head(&"b".repeat(40).parse().unwrap());
        assert_eq!(tracked.due, Instant::now());
        tracked.looked(true);
        assert_eq!(tracked.due - Instant::now(), SETTLED_WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_silent_once_it_has_been_for_the_whole_time_and_is_looked_at_right_then() {
        let settle = Duration::from_secs(600);
        let mut tracked = Tracked::new(Some("a".repeat(40).parse().unwrap()), FIRST_WAIT);
        let mut looks = Vec::new();
        loop {
            tokio::time::sleep_until(tracked.due).await;
            looks.push(tracked.since.elapsed().as_secs());
            tracked.looked(false);
            if tracked.is_silent_for(settle) {
                break;
            }
        }
        assert_eq!(looks, [0, 60, 180, 420, 600]);
        tracked.has_head(&"b".repeat(40).parse().unwrap());
        assert!(!tracked.is_silent_for(settle), "a new head may get checks");
    }
}
