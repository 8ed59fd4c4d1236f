//! The per-ticket lease in Redis. The only crate that names redis.
//!
//! The lease saves double work; fences and compare-and-set elsewhere make it correct. Losing Redis may delay work, never
//! corrupt or repeat it.

mod acl;
mod lease;
mod leases;
mod settings;

pub use acl::{USER, acl};
pub use lease::{Lease, Lost};
pub use leases::{Error, Leases};
pub use settings::Settings;
