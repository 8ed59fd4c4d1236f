//! Failpoints: the awaits that touch the outside, by name, so that the crash matrix can end the process right before
//! and right after each. A build without debug assertions holds none of it.

mod around;
mod point;
mod sites;
mod watch;

pub use around::{Around, around, around_kind};
pub use point::{NotAPoint, Phase, Point};
pub use sites::{EFFECTS, SITES};
pub use watch::{IS_ACTIVE, arm, record, recorded};
