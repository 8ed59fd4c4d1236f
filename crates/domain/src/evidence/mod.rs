//! Evidence for a change: checks with their reports and integrity levels, comparisons of test runs, classes
//! of failures, and the size of the change.

pub mod check;
pub mod comparison;
pub(crate) mod failure;
pub(crate) mod log_failures;
pub(crate) mod size;
pub(crate) mod wording;
