//! Schedule and allowance for repeated reads of our open pull requests and their checks. Pure: callers pass the time.

use std::time::Duration;

use domain::{CommitId, Timestamp};
use github::HeadState;
use tokio::time::Instant;

// Longest first wait between two reads of the checks of a head. A shorter poll interval shortens it.
const FIRST_WAIT: Duration = Duration::from_secs(60);
// The wait doubles up to this limit, so that checks that run for hours leave the allowance to other pull
// requests.
const LONGEST_WAIT: Duration = Duration::from_secs(30 * 60);
// Settled checks are read rarely, because only a rerun changes them.
const SETTLED_WAIT: Duration = Duration::from_secs(6 * 60 * 60);

// Pull requests whose checks are read per hour, at three requests each.
const CHECKS_AN_HOUR: f64 = 150.0;
// Burst limit of the allowance.
const CHECKS_AT_ONCE: f64 = 20.0;

/// Token bucket for reads of pull requests, refilled over time.
#[derive(Debug)]
pub struct ReadAllowance {
    left: f64,
    filled: Instant,
    an_hour: f64,
    at_once: f64,
}

impl ReadAllowance {
    /// Creates a full allowance for reads of checks.
    pub const fn new(now: Instant) -> Self {
        Self::with_rate(CHECKS_AN_HOUR, CHECKS_AT_ONCE, now)
    }

    /// Creates a full allowance for a number of reads in an hour and at once.
    pub(crate) const fn with_rate(an_hour: f64, at_once: f64, now: Instant) -> Self {
        Self {
            left: at_once,
            filled: now,
            an_hour,
            at_once,
        }
    }

    /// Takes one read from the allowance; false when it is exhausted.
    pub fn spend(&mut self, now: Instant) -> bool {
        let filled = now.duration_since(self.filled).as_secs_f64() * self.an_hour / 3600.0;
        (self.left, self.filled) = ((self.left + filled).min(self.at_once), now);
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }
}

/// State of a head as the last listings of heads show it.
#[derive(Debug)]
struct ShownHead {
    state: HeadState,
    seen: ListedHead,
    /// End of the time for which the last listing counts.
    end: Instant,
}

/// Time since which listings of heads show the present state of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedHead {
    /// First listing with this state.
    pub(crate) since: Instant,
    /// True when an earlier listing had another state.
    pub(crate) has_changed: bool,
}

/// Open pull request of ours with its polling state.
#[derive(Debug)]
pub struct TrackedPullRequest {
    pub(crate) head: Option<CommitId>,
    /// Update times at the reads of its reviews.
    pub(crate) update_marks: UpdateMarks,
    /// First time that this process saw the current head.
    since: Instant,
    due: Instant,
    /// Time at which a read decides, although nothing changes outside until then; absent without such a time.
    settles_at: Option<Instant>,
    /// Earliest time at which a read decides about a settling time or the absence of checks.
    decides_at: Option<Instant>,
    /// Start of the last read of its checks that succeeded.
    read_at: Option<Instant>,
    /// State of its head in the listings of heads; absent without one.
    shown: Option<ShownHead>,
    first_wait: Duration,
    wait: Duration,
}

impl TrackedPullRequest {
    /// Starts tracking a pull request now, with polls at this interval.
    pub fn new(head: Option<CommitId>, interval: Duration, now: Instant) -> Self {
        let first_wait = interval.min(FIRST_WAIT);
        Self {
            head,
            update_marks: UpdateMarks::default(),
            since: now,
            due: now,
            settles_at: None,
            decides_at: None,
            read_at: None,
            shown: None,
            first_wait,
            wait: first_wait,
        }
    }

    /// Updates the head. A new head is due at once.
    pub fn update_head(&mut self, head: &CommitId, now: Instant) {
        if self.head.as_ref() != Some(head) {
            self.head = Some(head.clone());
            (self.since, self.due, self.wait) = (now, now, self.first_wait);
            // The last read was about the former head.
            self.read_at = None;
        }
    }

    /// Time of the next read of its checks.
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// Schedules a read that decides at `end`, if no earlier one is due.
    pub(crate) fn schedule_decision(&mut self, end: Instant) {
        self.due = self.due.min(end);
        self.decides_at = Some(self.decides_at.map_or(end, |known| known.min(end)));
    }

    /// Records a read of its checks that succeeded, by its start.
    pub(crate) const fn record_read(&mut self, at: Instant) {
        self.read_at = Some(at);
    }

    /// Records the state of its head in a listing that counts until `end`. A changed head is due at once. One whose checks
    /// were read in this state waits for a change or a decision, as long as listings follow.
    pub(crate) fn record_listing(&mut self, state: HeadState, end: Instant, now: Instant) {
        let earlier = self.shown.take();
        let state = match &earlier {
            Some(earlier) => state.completed_by(&earlier.state),
            None => state,
        };
        let has_changed = earlier.as_ref().is_some_and(|earlier| earlier.state != state);
        let seen = match earlier.filter(|_| !has_changed) {
            Some(earlier) => earlier.seen,
            None => ListedHead {
                since: now,
                has_changed,
            },
        };
        self.shown = Some(ShownHead { state, seen, end });
        if has_changed {
            (self.due, self.wait) = (self.due.min(now), self.first_wait);
        } else if self.read_at.is_some_and(|at| at > seen.since) {
            let next = self.decides_at.map_or(end, |decides| decides.min(end));
            self.due = self.due.max(next);
        }
    }

    /// Present state of its head in the listings; `None` without a listing that counts.
    pub(crate) fn listed_head(&self, now: Instant) -> Option<ListedHead> {
        let shown = self.shown.as_ref()?;
        let counts = now < shown.end && self.head.as_ref() == Some(&shown.state.head);
        counts.then_some(shown.seen)
    }

    /// Time at which a read decides, although nothing changes outside until then.
    pub(crate) const fn settles_at(&self) -> Option<Instant> {
        self.settles_at
    }

    /// Schedules a read that decides, for the end of a settling time at the latest.
    pub(crate) fn schedule_settling(&mut self, end: Instant) {
        self.schedule_decision(end);
        self.settles_at = Some(end);
    }

    /// Time at which this process will have known the current head for `age`.
    pub(crate) fn time_of_head_age(&self, age: Duration) -> Instant {
        self.since + age
    }

    /// Schedules the next read. The wait doubles each time while the checks are incomplete.
    pub fn schedule_next_read(&mut self, is_settled: bool, now: Instant) {
        (self.settles_at, self.decides_at) = (None, None);
        let wait = if is_settled { SETTLED_WAIT } else { self.wait };
        self.due = now + wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
    }

    /// True when this process has known the current head for `age` or longer.
    pub(crate) fn is_head_older_than(&self, age: Duration, now: Instant) -> bool {
        now >= self.time_of_head_age(age)
    }
}

/// Update times that the last reads of a pull request reported. GitHub reports whole seconds: a change within the second of
/// the first read is not visible in a listing, so only a second read is reliable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpdateMarks {
    updated: Option<Timestamp>,
    is_certain: bool,
}

impl UpdateMarks {
    /// True when no change is possible since the last read.
    pub(crate) fn is_unchanged(self, updated: Option<Timestamp>) -> bool {
        self.is_certain && updated.is_some() && self.updated == updated
    }

    /// Records the update time at a read.
    pub(crate) fn record(&mut self, updated: Option<Timestamp>) {
        self.is_certain = self.updated == updated;
        self.updated = updated;
    }

    /// True when the last two reads reported the same update time.
    pub(crate) const fn is_certain(self) -> bool {
        self.is_certain
    }

    /// Update time at the last read.
    pub(crate) const fn updated(self) -> Option<Timestamp> {
        self.updated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_reads_slow_down_until_new_head() {
        let now = Instant::now();
        let mut tracked = TrackedPullRequest::new(Some("a".repeat(40).parse().unwrap()), FIRST_WAIT, now);
        let wait = |tracked: &mut TrackedPullRequest| {
            tracked.schedule_next_read(false, now);
            (tracked.due - now).as_secs()
        };
        let waits: Vec<u64> = (0..7).map(|_| wait(&mut tracked)).collect();
        assert_eq!(waits, [60, 120, 240, 480, 960, 1_800, 1_800]);
        tracked.update_head(&"b".repeat(40).parse().unwrap(), now);
        assert_eq!(tracked.due, now);
        tracked.schedule_next_read(true, now);
        assert_eq!(tracked.due - now, SETTLED_WAIT);
    }

    #[test]
    fn silent_head_is_read_at_limit() {
        let settle = Duration::from_secs(600);
        let start = Instant::now();
        let mut tracked = TrackedPullRequest::new(Some("a".repeat(40).parse().unwrap()), FIRST_WAIT, start);
        let mut reads = Vec::new();
        loop {
            let now = tracked.due;
            reads.push(now.duration_since(start).as_secs());
            tracked.schedule_next_read(false, now);
            if tracked.is_head_older_than(settle, now) {
                break;
            }
            tracked.schedule_decision(tracked.time_of_head_age(settle));
        }
        assert_eq!(reads, [0, 60, 180, 420, 600]);
        let now = start + settle;
        tracked.update_head(&"b".repeat(40).parse().unwrap(), now);
        assert!(
            !tracked.is_head_older_than(settle, now),
            "a new head may get checks"
        );
    }

    #[test]
    fn settling_time_lasts_until_next_read() {
        let now = Instant::now();
        let mut tracked = TrackedPullRequest::new(None, FIRST_WAIT, now);
        tracked.schedule_next_read(false, now);
        assert_eq!(tracked.settles_at(), None);
        let end = now + Duration::from_secs(30);
        tracked.schedule_settling(end);
        assert_eq!((tracked.settles_at(), tracked.due()), (Some(end), end));
        tracked.schedule_next_read(false, end);
        assert_eq!(tracked.settles_at(), None);
    }

    fn build_head_state(checks: u64) -> HeadState {
        HeadState {
            head: "a".repeat(40).parse().unwrap(),
            is_queued: false,
            merge: None,
            checks: [("run SUCCESS".to_owned(), checks)].into(),
        }
    }

    #[test]
    fn listed_head_is_read_after_change() {
        let start = Instant::now();
        let minute = |minutes: u64| start + Duration::from_secs(60 * minutes);
        let listed = |since, has_changed| ListedHead { since, has_changed };
        let head = "a".repeat(40).parse().unwrap();
        let mut tracked = TrackedPullRequest::new(Some(head), FIRST_WAIT, minute(0));
        tracked.record_listing(build_head_state(1), minute(10), minute(0));
        assert_eq!(tracked.due(), minute(0), "its checks were never read");
        // A failed read is retried at its own time.
        tracked.schedule_next_read(false, minute(1));
        tracked.record_listing(build_head_state(1), minute(15), minute(5));
        assert!(tracked.due() < minute(5));
        tracked.schedule_next_read(false, minute(6));
        tracked.record_read(minute(6));
        for minutes in (10..60).step_by(5) {
            tracked.record_listing(build_head_state(1), minute(minutes + 10), minute(minutes));
            assert_eq!(tracked.due(), minute(minutes + 10));
            assert_eq!(
                tracked.listed_head(minute(minutes)),
                Some(listed(minute(0), false))
            );
        }
        assert_eq!(tracked.listed_head(minute(65)), None, "the listings ended");
        tracked.record_listing(build_head_state(2), minute(75), minute(65));
        assert_eq!(tracked.due(), minute(65));
        assert_eq!(tracked.listed_head(minute(66)), Some(listed(minute(65), true)));
    }

    #[test]
    fn listed_new_head_waits_for_own_read() {
        let start = Instant::now();
        let minute = |minutes: u64| start + Duration::from_secs(60 * minutes);
        let former = "b".repeat(40).parse().unwrap();
        let mut tracked = TrackedPullRequest::new(Some(former), FIRST_WAIT, start);
        // The listing of heads shows a push before the listing of pull requests does.
        let pushed = build_head_state(1);
        tracked.record_listing(pushed.clone(), minute(10), minute(1));
        tracked.schedule_next_read(false, minute(2));
        tracked.record_read(minute(2));
        tracked.update_head(&pushed.head, minute(3));
        // No read of the new head succeeds until the next listing.
        tracked.schedule_next_read(false, minute(4));
        let due = tracked.due();
        tracked.record_listing(pushed, minute(15), minute(5));
        assert_eq!(tracked.due(), due, "its checks were never read");
    }

    #[test]
    fn listed_head_is_read_for_decision() {
        let start = Instant::now();
        let second = |seconds: u64| start + Duration::from_secs(seconds);
        let head = "a".repeat(40).parse().unwrap();
        let mut tracked = TrackedPullRequest::new(Some(head), FIRST_WAIT, start);
        tracked.record_listing(build_head_state(0), second(600), start);
        tracked.schedule_next_read(false, second(1));
        tracked.record_read(second(1));
        tracked.schedule_decision(tracked.time_of_head_age(Duration::from_secs(600)));
        tracked.record_listing(build_head_state(0), second(900), second(300));
        assert_eq!(tracked.due(), second(600));
    }

    #[test]
    fn read_allowance_refills_by_hour() {
        let mut now = Instant::now();
        let mut allowance = ReadAllowance::new(now);
        let spent =
            |allowance: &mut ReadAllowance, now| (0..1_000).take_while(|_| allowance.spend(now)).count();
        assert_eq!(spent(&mut allowance, now), 20);
        let mut hour = 0;
        for _ in 0..60 {
            now += Duration::from_secs(60);
            hour += spent(&mut allowance, now);
        }
        assert!((149..=150).contains(&hour), "{hour}");
    }

    #[test]
    fn update_is_certain_after_second_read() {
        let second = |second: i64| Some(Timestamp::from_unix_ms(second * 1_000));
        let mut marks = UpdateMarks::default();
        for (updated, is_known) in [
            (1, false),
            (1, false),
            (1, true),
            (2, false),
            (2, false),
            (2, true),
        ] {
            assert_eq!(marks.is_unchanged(second(updated)), is_known, "{updated}");
            marks.record(second(updated));
        }
    }
}
