//! Failpoints: named awaits that reach outside the process. The crash matrix ends a process directly before
//! or after each. A build without debug assertions contains none.

mod around;
mod point;
mod sites;
mod watch;

pub use around::{Around, around, around_kind};
pub use point::{NotAPoint, Phase, Point};
pub use sites::{EFFECTS, SITES};
pub use watch::{IS_ACTIVE, arm, record, recorded};
