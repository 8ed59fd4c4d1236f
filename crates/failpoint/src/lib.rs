//! Failpoints: named awaits that reach outside the process. The crash matrix ends a process directly before
//! or after each. A build without debug assertions contains none.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod failpoint_future;
mod point;
mod sites;
mod watch;

pub use failpoint_future::{FailpointFuture, around, around_kind};
pub use point::{FailpointPass, FailpointPhase, InvalidFailpoint};
pub use sites::{EFFECTS, SITES};
pub use watch::{IS_ACTIVE, arm_failpoint, list_recorded_passes, start_recording};
