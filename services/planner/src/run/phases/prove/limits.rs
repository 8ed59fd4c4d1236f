//! What a proof may cost.

/// More commands than this cost more time than they show.
pub(super) const MOST_COMMANDS: usize = 2;
/// Seconds that one check may take.
pub(super) const CHECK_S: u32 = 900;
/// How often a change goes back to the model because of its checks.
pub(super) const MOST_TRIES: usize = 3;
/// A test that passes with the change is only run again where its check took less, in milliseconds.
pub(super) const REPEATED_MS: u64 = 10_000;
/// A check that takes longer is run again once, before it is believed that the change broke it, in milliseconds.
pub(super) const SLOW_MS: u64 = 120_000;
/// Names of tests that one finding lists.
pub(super) const MOST_NAMES: usize = 10;
/// More changed lines than this are questioned, by the class of the ticket: trivial, normal.
pub(super) const MOST_LINES: [u32; 2] = [400, 1_500];
/// Hunks are only taken back one at a time where the check took less, in milliseconds, …
pub(super) const TAKEN_BACK_MS: u64 = 20_000;
/// … and where there are no more of them than this.
pub(super) const MOST_HUNKS: usize = 8;
/// Kept of a failing check's output, in characters.
pub(super) const TAIL: usize = 2_000;
/// Seconds that a command may take which shows what the change does.
pub(super) const DEMONSTRATION_S: u32 = 120;
/// Kept of a line that it prints, in characters.
pub(super) const SEEN: usize = 200;
