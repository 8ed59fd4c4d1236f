//! Per-ticket leases, shared budgets and shared limits of outside services, in Redis. The only crate that
//! depends on redis.
//!
//! The lease saves double work; fences and compare-and-set elsewhere make it correct. So work continues
//! without Redis, and work without a lease gets one when Redis answers again.

mod acl;
mod budgets;
mod connection;
mod error;
mod lease;
mod leases;
mod limits;
mod outage;
mod server;
mod settings;

pub use acl::{User, acl};
pub use budgets::{Account, Budgets, Call, Rebuild, Refusal, Reserved};
pub use error::Error;
pub use lease::{Lease, Lost, RENEWALS};
pub use leases::Leases;
pub use limits::Limits;
pub use settings::Settings;
