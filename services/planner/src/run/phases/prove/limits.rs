//! Limits of the proof's cost.

/// Commands. More of them cost more time than they show.
pub(super) const MOST_COMMANDS: usize = 2;
/// Seconds for one check.
pub(super) const CHECK_S: u32 = 900;
/// Maximum of returns to the model because of failed checks.
pub(super) const MOST_TRIES: usize = 3;
/// Milliseconds below which a check runs again to confirm a repaired test.
pub(super) const REPEATED_MS: u64 = 10_000;
/// Milliseconds above which a check has one repeat less before a failure counts.
pub(super) const SLOW_MS: u64 = 120_000;
/// Names of tests that one finding lists.
pub(super) const MOST_NAMES: usize = 10;
/// Changed lines above which the model gets a question, by class of the ticket: trivial, normal.
pub(super) const MOST_LINES: [u32; 2] = [400, 1_500];
/// Milliseconds below which a check is fast enough to revert hunks one at a time.
pub(super) const TAKEN_BACK_MS: u64 = 20_000;
/// Maximum of hunks that are reverted one at a time.
pub(super) const MOST_HUNKS: usize = 8;
/// Characters that are kept of a failed check's output.
pub(super) const TAIL: usize = 2_000;
/// Seconds for a command that demonstrates the change.
pub(super) const DEMONSTRATION_S: u32 = 120;
/// Characters that are kept of a line of its output.
pub(super) const SEEN: usize = 200;
